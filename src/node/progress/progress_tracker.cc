#include "node/progress/progress_tracker.h"

#include <algorithm>
#include <cmath>

namespace skiff::node {
namespace {

// Beyond this an estimate is no news to anybody.
constexpr double kFarSeconds = 10.0 * 365 * 24 * 3600;

double part(std::int64_t of, std::int64_t total) {
  return total <= 0 ? 0
                    : std::clamp(static_cast<double>(of) / static_cast<double>(total), 0.0, 1.0);
}

void put(json::object& out, std::string_view name, const std::optional<std::int64_t>& value) {
  if (value) out[name] = *value;
}

}  // namespace

void ProgressTracker::take(const ProgressLine& line, Time at) {
  const bool next_epoch = line.epoch && last_.epoch && *line.epoch > *last_.epoch;
  if (next_epoch && line.step && last_.step && !line.bar) {
    steps_go_on_ = *line.step > *last_.step;
  }
  if (line.bar) steps_go_on_ = false;
  // What a new epoch has not said yet is not what the last one ended with.
  if (next_epoch && !line.step && !steps_go_on_) last_.step = 0;
  if (line.step) last_.step = line.step, last_.bar = line.bar;
  if (line.total_steps) last_.total_steps = line.total_steps;
  if (line.epoch) {
    last_.epoch = line.epoch;
    epoch_done_ = !line.metrics.empty();
  }
  if (line.total_epochs) last_.total_epochs = line.total_epochs;
  for (const auto& [name, value] : line.metrics) {
    if (metrics_.contains(name) || metrics_.size() < kProgressMetrics) metrics_[name] = value;
  }
  if (!first_ && (line.step || line.epoch)) first_ = at;
  updated_ = std::max(updated_.value_or(at), at);

  const auto now = fraction();
  if (!now) return;
  // It began anew, from a checkpoint or from nothing: what it did before says little.
  if (!moments_.empty() && *now < moments_.back().fraction) moments_.clear();
  if (!moments_.empty() && *now == moments_.back().fraction) return;
  // The newest moment is always the last; those before it stand apart.
  if (moments_.size() > 1 && at - moments_[moments_.size() - 2].at < kApart) moments_.pop_back();
  moments_.push_back({.at = at, .fraction = *now});
  if (moments_.size() > kMoments) moments_.pop_front();
}

std::optional<double> ProgressTracker::fraction() const {
  const bool steps = last_.step && last_.total_steps;
  if (last_.epoch && last_.total_epochs && !steps_go_on_) {
    // Epochs count from one. An epoch without steps is told at its end, with its metrics, or at
    // its beginning, without.
    const std::int64_t behind = *last_.epoch - (epoch_done_ && !steps ? 0 : 1);
    const double whole = static_cast<double>(std::max<std::int64_t>(behind, 0));
    const double inside = steps ? part(*last_.step, *last_.total_steps) : 0;
    const double total = static_cast<double>(std::max<std::int64_t>(*last_.total_epochs, 1));
    return std::clamp((whole + inside) / total, 0.0, 1.0);
  }
  if (!steps) return {};
  return part(*last_.step, *last_.total_steps);
}

std::optional<Time> ProgressTracker::estimated_end() const {
  const auto now = fraction();
  if (!now || moments_.size() < 2) return {};
  const Moment& from = moments_.front();
  const Moment& to = moments_.back();
  const double seconds = std::chrono::duration<double>(to.at - from.at).count();
  const double done = to.fraction - from.fraction;
  if (seconds <= 0 || done <= 0) return {};
  const double left = (1 - *now) * seconds / done;
  if (!(left >= 0) || left > kFarSeconds) return {};
  return to.at + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(left));
}

json::object ProgressTracker::told() const {
  json::object out;
  if (empty()) return out;
  put(out, "step", last_.step);
  put(out, "totalSteps", last_.total_steps);
  put(out, "epoch", last_.epoch);
  put(out, "totalEpochs", last_.total_epochs);
  if (const auto done = fraction()) {
    // A hundred is for the end, not for what rounds to it.
    out["percent"] = static_cast<std::int64_t>(std::floor(*done * 100 + 1e-9));
  }
  if (!metrics_.empty()) {
    json::object metrics;
    for (const auto& [name, value] : metrics_) metrics[name] = value;
    out["metrics"] = std::move(metrics);
  }
  if (first_) out["firstStepTime"] = rfc3339(*first_);
  out["lastUpdateTime"] = rfc3339(*updated_);
  if (const auto end = estimated_end()) out["estimatedCompletionTime"] = rfc3339(*end);
  return out;
}

}  // namespace skiff::node
