// Measures what runs on this machine and tells what it uses. From any thread.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "apiserver/usage_source.h"
#include "env/env.h"
#include "node/runtime.h"
#include "node/usage/usage_book.h"

namespace skiff::node {

// A pod with the containers of it that run.
struct RunningPod {
  struct Run {
    std::string container = {};
    int attempt = 0;
    int pid = 0;
    Time started_at = {};
  };
  std::string uid = {};
  std::string ns = {};
  std::string name = {};
  std::vector<Run> runs = {};
};

class Meter {
 public:
  using ReadMachine = std::function<std::optional<Reading>()>;

  // A measurement younger than this serves whoever asks.
  static constexpr Duration kFresh = std::chrono::seconds(1);

  // Both must outlive the meter.
  Meter(Runtime& runtime, const env::Clock& clock, std::string node_name, ReadMachine read_machine);

  // Reads the counters of all that runs once; memory only where somebody is to be told.
  void sample(const std::vector<RunningPod>& running, bool memory);
  // Reads them where the last time was long ago, and tells what is known.
  apiserver::Usage usage(const std::vector<RunningPod>& running);

 private:
  apiserver::Usage told(const std::vector<RunningPod>& running) const;  // with mutex_ held

  Runtime& runtime_;
  const env::Clock& clock_;
  const std::string node_name_;
  const ReadMachine read_machine_;
  mutable std::mutex mutex_;
  UsageBook book_ = {};
  std::optional<Duration> sampled_ = {};  // with memory
  Time sampled_at_ = {};
};

}  // namespace skiff::node
