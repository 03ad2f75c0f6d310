#include "node/usage/idle_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace skiff::node {
namespace {

bool cpu_full(const IdleSample& s) {
  return s.cpu_limit_nano > 0 && s.cpu_nano >= s.cpu_limit_nano / 100 * IdleRule::kFullPercent;
}

// The first of its GPUs that idled in every sample.
std::optional<std::size_t> idle_gpu(const std::deque<IdleSample>& samples) {
  for (std::size_t gpu = 0; gpu < samples.front().busy_percent.size(); ++gpu) {
    const bool idle = std::ranges::all_of(samples, [&](const IdleSample& s) {
      return gpu < s.busy_percent.size() && s.busy_percent[gpu] < IdleRule::kIdlePercent;
    });
    if (idle) return gpu;
  }
  return {};
}

std::string span_text(Duration span) {
  const auto seconds = std::chrono::round<std::chrono::seconds>(span).count();
  return seconds >= 90 ? fmt::format("{} min", (seconds + 30) / 60) : fmt::format("{} s", seconds);
}

}  // namespace

std::optional<std::string> IdleRule::note(const std::string& key, std::string_view who,
                                          const IdleSample& sample) {
  if (sample.busy_percent.empty()) return {};
  Entry& entry = entries_[key];
  entry.samples.push_back(sample);
  if (entry.samples.size() > kSamples) entry.samples.pop_front();
  if (entry.samples.size() < kSamples) return {};
  if (entry.told && sample.elapsed - *entry.told < kAgainAfter) return {};
  const auto gpu = idle_gpu(entry.samples);
  if (!gpu) return {};
  const bool full = std::ranges::all_of(entry.samples, cpu_full);
  const bool reading = std::ranges::all_of(
      entry.samples, [](const IdleSample& s) { return s.received_per_s >= kReadingPerS; });
  if (!full && !reading) return {};
  entry.told = sample.elapsed;
  int sum = 0;
  for (const IdleSample& s : entry.samples) sum += s.busy_percent[*gpu];
  // Each sample stands for the time since the one before it.
  const Duration span = (sample.elapsed - entry.samples.front().elapsed) *
                        static_cast<std::int64_t>(kSamples) /
                        static_cast<std::int64_t>(kSamples - 1);
  return fmt::format(
      "GPU {} of {} was {} % busy in the last {} while {}: the input pipeline is the brake; more "
      "loader processes or a cached data set would help",
      *gpu, who, sum / static_cast<int>(kSamples), span_text(span),
      full ? "the CPU was full" : "it read its input over the network");
}

void IdleRule::keep_only(const std::set<std::string, std::less<>>& keys) {
  std::erase_if(entries_, [&](const auto& entry) { return !keys.contains(entry.first); });
}

}  // namespace skiff::node
