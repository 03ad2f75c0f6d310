#include "node/usage/meter.h"

#include <fmt/format.h>

namespace skiff::node {
namespace {

// No pod's uid is empty.
constexpr std::string_view kMachine;

std::string key_of(const RunningPod& pod, const RunningPod::Run& run) {
  return fmt::format("{}/{}/{}", pod.uid, run.container, run.attempt);
}

constexpr std::string_view kIn = "in", kOut = "out";

std::vector<GpuLoad> loads_of(const RunningPod::Run& run, const Meter::Loads& loads) {
  std::vector<GpuLoad> out;
  for (const std::string& gpu : run.gpus) {
    if (const auto found = loads.find(gpu); found != loads.end()) out.push_back(found->second);
  }
  return out;
}

std::string way_of(const RunningPod& pod, std::string_view way) {
  return fmt::format("{}/{}", pod.uid, way);
}

apiserver::Used used(const Rate& rate) {
  return {.cpu_nano = rate.cpu_nano, .memory_bytes = rate.memory_bytes};
}

}  // namespace

Meter::Meter(Runtime& runtime, const env::Clock& clock, std::string node_name,
             ReadMachine read_machine, ReadNetwork read_network)
    : runtime_(runtime),
      clock_(clock),
      node_name_(std::move(node_name)),
      read_machine_(std::move(read_machine)),
      read_network_(std::move(read_network)) {}

void Meter::sample(const std::vector<RunningPod>& running, bool memory) {
  std::vector<MeasureTarget> targets;
  for (const RunningPod& pod : running) {
    for (const RunningPod::Run& run : pod.runs) {
      targets.push_back({.pod_uid = pod.uid, .container = run.container, .pid = run.pid});
    }
  }
  const Duration began = clock_.elapsed();
  const auto machine = read_machine_();
  const auto readings =
      targets.empty() ? std::vector<std::optional<Reading>>() : runtime_.measure(targets, memory);
  std::vector<std::optional<NetworkReading>> networks(running.size());
  for (std::size_t i = 0; read_network_ && i < running.size(); ++i) {
    if (!running[i].runs.empty()) networks[i] = read_network_(running[i].runs.front().pid);
  }
  const Time now = clock_.now();

  const std::lock_guard lock(mutex_);
  const auto note = [&](std::string_view key, const std::optional<Reading>& reading, bool whole,
                        std::optional<Duration> age) {
    if (!reading) return;
    Sample sample{.elapsed = began, .cpu_ns = reading->cpu_ns};
    if (whole) sample.memory_bytes = reading->memory_bytes;
    book_.note(key, sample, age);
  };
  std::set<std::string, std::less<>> keys = {std::string(kMachine)};
  note(kMachine, machine, true, {});
  std::set<std::string, std::less<>> ways;
  std::size_t next = 0, number = 0;
  for (const RunningPod& pod : running) {
    if (const auto& network = networks[number++]) {
      const Sample received{.elapsed = began, .cpu_ns = network->received, .memory_bytes = 0};
      const Sample sent{.elapsed = began, .cpu_ns = network->sent, .memory_bytes = 0};
      network_.note(*ways.insert(way_of(pod, kIn)).first, received);
      network_.note(*ways.insert(way_of(pod, kOut)).first, sent);
    }
    for (const RunningPod::Run& run : pod.runs) {
      const std::size_t at = next++;
      const std::string key = key_of(pod, run);
      if (at < readings.size()) note(key, readings[at], memory, now - run.started_at);
      keys.insert(key);
    }
  }
  book_.keep_only(keys);
  network_.keep_only(ways);
  if (!memory || (sampled_ && *sampled_ > began)) return;
  sampled_ = began;
  sampled_at_ = now;
}

apiserver::Usage Meter::usage(const std::vector<RunningPod>& running, const Loads& loads) {
  {
    const std::lock_guard lock(mutex_);
    if (sampled_ && clock_.elapsed() - *sampled_ < kFresh) return told(running, loads);
  }
  sample(running, true);
  const std::lock_guard lock(mutex_);
  return told(running, loads);
}

apiserver::Usage Meter::told(const std::vector<RunningPod>& running, const Loads& loads) const {
  apiserver::Usage out;
  if (const auto rate = book_.rate(kMachine)) {
    out.nodes.push_back({.name = node_name_,
                         .measured = {.at = sampled_at_, .window = rate->window},
                         .used = used(*rate)});
  }
  for (const RunningPod& pod : running) {
    apiserver::PodUsage told{
        .ns = pod.ns, .name = pod.name, .uid = pod.uid, .measured = {.at = sampled_at_}};
    for (const RunningPod::Run& run : pod.runs) {
      const auto rate = book_.rate(key_of(pod, run));
      if (!rate) break;
      told.measured.window = std::max(told.measured.window, rate->window);
      told.containers.push_back(
          {.name = run.container, .used = used(*rate), .more = gpu_usage(loads_of(run, loads))});
    }
    if (told.containers.empty() || told.containers.size() != pod.runs.size()) continue;
    // A pod's containers share its network: it is told with the first of them.
    if (network_.rate(way_of(pod, kIn))) {
      auto& more = told.containers.front().more;
      more[std::string(kNetworkIn)] = std::to_string(network_rate(pod, kIn));
      more[std::string(kNetworkOut)] = std::to_string(network_rate(pod, kOut));
    }
    out.pods.push_back(std::move(told));
  }
  return out;
}

std::int64_t Meter::network_rate(const RunningPod& pod, std::string_view way) const {
  const auto rate = network_.rate(way_of(pod, way));
  return rate ? rate->cpu_nano : 0;
}

std::vector<UsageNote> Meter::idle(const std::vector<RunningPod>& running, const Loads& loads,
                                   int cpus) {
  constexpr std::int64_t kNanoPerMilli = 1'000'000;
  const std::lock_guard lock(mutex_);
  std::vector<UsageNote> out;
  std::set<std::string, std::less<>> keys;
  for (const RunningPod& pod : running) {
    for (const RunningPod::Run& run : pod.runs) {
      const std::vector<GpuLoad> busy = loads_of(run, loads);
      const std::string key = key_of(pod, run);
      const auto rate = book_.rate(key);
      if (busy.empty() || !rate) continue;
      keys.insert(key);
      const std::int64_t limit = run.cpu_limit_milli > 0 ? run.cpu_limit_milli : cpus * 1000LL;
      IdleSample sample{.elapsed = clock_.elapsed(),
                        .cpu_nano = rate->cpu_nano,
                        .cpu_limit_nano = limit * kNanoPerMilli,
                        .received_per_s = network_rate(pod, kIn)};
      for (const GpuLoad& load : busy) sample.busy_percent.push_back(load.busy_percent);
      if (auto told = idle_.note(key, pod.shown.empty() ? pod.name : pod.shown, sample)) {
        out.push_back({.uid = pod.uid, .message = std::move(*told)});
      }
    }
  }
  idle_.keep_only(keys);
  return out;
}

}  // namespace skiff::node
