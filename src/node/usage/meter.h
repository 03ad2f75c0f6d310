// Measures what runs on this machine and tells what it uses. From any thread.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "apiserver/usage_source.h"
#include "env/env.h"
#include "node/gpu/gpu_book.h"
#include "node/runtime.h"
#include "node/usage/idle_rule.h"
#include "node/usage/readings.h"
#include "node/usage/usage_book.h"

namespace skiff::node {

// Resources of a pod's network in PodMetrics: bytes a second.
inline constexpr std::string_view kNetworkIn = "skiff.dev/network-in";
inline constexpr std::string_view kNetworkOut = "skiff.dev/network-out";

// A pod with the containers of it that run.
struct RunningPod {
  struct Run {
    std::string container = {};
    int attempt = 0;
    int pid = 0;
    Time started_at = {};
    std::vector<std::string> gpus = {};  // those it has
    std::int64_t cpu_limit_milli = 0;    // 0: none
  };
  std::string uid = {};
  std::string ns = {};
  std::string name = {};
  std::string shown = {};  // for people: worker-1 of a training job
  std::vector<Run> runs = {};
};

// Something that people should know about a pod.
struct UsageNote {
  std::string uid = {};
  std::string message = {};
};

class Meter {
 public:
  using ReadMachine = std::function<std::optional<Reading>()>;
  using ReadNetwork = std::function<std::optional<NetworkReading>(int pid)>;
  using Loads = std::map<std::string, GpuLoad>;  // of the machine's GPUs, by their names

  // A measurement younger than this serves whoever asks.
  static constexpr Duration kFresh = std::chrono::seconds(1);

  // Both must outlive the meter.
  Meter(Runtime& runtime, const env::Clock& clock, std::string node_name, ReadMachine read_machine,
        ReadNetwork read_network = {});

  // Reads the counters of all that runs once; memory only where somebody is to be told.
  void sample(const std::vector<RunningPod>& running, bool memory);
  // Reads them where the last time was long ago, and tells what is known.
  apiserver::Usage usage(const std::vector<RunningPod>& running, const Loads& loads = {});
  // What the last sample says about GPUs that idle; `cpus`: what a container without a limit may
  // use. To be asked after every sample.
  std::vector<UsageNote> idle(const std::vector<RunningPod>& running, const Loads& loads, int cpus);

 private:
  // Both with mutex_ held.
  apiserver::Usage told(const std::vector<RunningPod>& running, const Loads& loads) const;
  std::int64_t network_rate(const RunningPod& pod, std::string_view way) const;  // bytes a second

  Runtime& runtime_;
  const env::Clock& clock_;
  const std::string node_name_;
  const ReadMachine read_machine_;
  const ReadNetwork read_network_;
  mutable std::mutex mutex_;
  UsageBook book_ = {};
  UsageBook network_ = {};  // bytes in place of CPU time
  IdleRule idle_ = {};
  std::optional<Duration> sampled_ = {};  // with memory
  Time sampled_at_ = {};
};

}  // namespace skiff::node
