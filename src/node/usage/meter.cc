#include "node/usage/meter.h"

#include <fmt/format.h>

namespace skiff::node {
namespace {

// No pod's uid is empty.
constexpr std::string_view kMachine;

std::string key_of(const RunningPod& pod, const RunningPod::Run& run) {
  return fmt::format("{}/{}/{}", pod.uid, run.container, run.attempt);
}

apiserver::Used used(const Rate& rate) {
  return {.cpu_nano = rate.cpu_nano, .memory_bytes = rate.memory_bytes};
}

}  // namespace

Meter::Meter(Runtime& runtime, const env::Clock& clock, std::string node_name,
             ReadMachine read_machine)
    : runtime_(runtime),
      clock_(clock),
      node_name_(std::move(node_name)),
      read_machine_(std::move(read_machine)) {}

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
  std::size_t next = 0;
  for (const RunningPod& pod : running) {
    for (const RunningPod::Run& run : pod.runs) {
      const std::size_t at = next++;
      const std::string key = key_of(pod, run);
      if (at < readings.size()) note(key, readings[at], memory, now - run.started_at);
      keys.insert(key);
    }
  }
  book_.keep_only(keys);
  if (!memory || (sampled_ && *sampled_ > began)) return;
  sampled_ = began;
  sampled_at_ = now;
}

apiserver::Usage Meter::usage(const std::vector<RunningPod>& running) {
  {
    const std::lock_guard lock(mutex_);
    if (sampled_ && clock_.elapsed() - *sampled_ < kFresh) return told(running);
  }
  sample(running, true);
  const std::lock_guard lock(mutex_);
  return told(running);
}

apiserver::Usage Meter::told(const std::vector<RunningPod>& running) const {
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
      told.containers.push_back({.name = run.container, .used = used(*rate)});
    }
    if (told.containers.empty() || told.containers.size() != pod.runs.size()) continue;
    out.pods.push_back(std::move(told));
  }
  return out;
}

}  // namespace skiff::node
