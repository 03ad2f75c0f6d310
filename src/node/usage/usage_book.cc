#include "node/usage/usage_book.h"

#include <algorithm>

namespace skiff::node {

void UsageBook::note(std::string_view key, const Sample& sample, std::optional<Duration> age) {
  auto found = entries_.find(key);
  if (found == entries_.end()) found = entries_.emplace(key, Entry()).first;
  std::deque<Sample>& samples = found->second.samples;
  if (sample.memory_bytes) found->second.memory_bytes = sample.memory_bytes;
  if (samples.empty() && age && *age >= Duration(0) && *age <= kYoung) {
    samples.push_back({.elapsed = sample.elapsed - *age});
  }
  // Two threads may hand theirs over in the other order.
  if (!samples.empty() && samples.back().elapsed >= sample.elapsed) return;
  samples.push_back(sample);
  while (samples.size() > 2 && sample.elapsed - samples[1].elapsed >= kWindow) samples.pop_front();
}

std::optional<Rate> UsageBook::rate(std::string_view key) const {
  const auto found = entries_.find(key);
  if (found == entries_.end() || found->second.samples.size() < 2) return std::nullopt;
  if (!found->second.memory_bytes) return std::nullopt;
  const Sample &from = found->second.samples.front(), &to = found->second.samples.back();
  const Duration window = to.elapsed - from.elapsed;
  if (window < kLeast) return std::nullopt;
  // A sum over processes falls when one of them ends unseen.
  const std::int64_t used_ns = std::max<std::int64_t>(0, to.cpu_ns - from.cpu_ns);
  const double seconds = std::chrono::duration<double>(window).count();
  return Rate{.cpu_nano = static_cast<std::int64_t>(static_cast<double>(used_ns) / seconds),
              .memory_bytes = *found->second.memory_bytes,
              .window = window};
}

void UsageBook::keep_only(const std::set<std::string, std::less<>>& keys) {
  std::erase_if(entries_, [&](const auto& entry) { return !keys.contains(entry.first); });
}

}  // namespace skiff::node
