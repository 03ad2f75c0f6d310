#include "features/training/engine/conditions.h"

#include "features/training/engine/job_kind.h"

namespace skiff::training {
namespace {

json::array& conditions_of(json::object& status) {
  json::value& conditions = status["conditions"];
  return conditions.is_array() ? conditions.get_array() : conditions.emplace_array();
}

std::string_view text(bool status) { return status ? "True" : "False"; }

// Running and Restarting exclude each other, so that the list never claims both.
std::string_view displaced_by(std::string_view type) {
  if (type == kRunning) return kRestarting;
  if (type == kRestarting) return kRunning;
  return {};
}

}  // namespace

bool has_condition(const json::object& status, std::string_view type, bool value) {
  const json::value* conditions = status.if_contains("conditions");
  if (conditions == nullptr || !conditions->is_array()) return false;
  for (const json::value& entry : conditions->get_array()) {
    if (json::get_string(entry, {"type"}) == type) {
      return json::get_string(entry, {"status"}) == text(value);
    }
  }
  return false;
}

bool finished(const json::object& status) {
  return has_condition(status, kSucceeded) || has_condition(status, kFailed);
}

std::string condition_reason(const Job& job, std::string_view word) {
  return job.kind->resource.kind + std::string(word);
}

void set_condition(json::object& status, const Condition& condition, Time now) {
  if (has_condition(status, kFailed)) return;
  json::array& entries = conditions_of(status);
  const std::string stamp = rfc3339(now);
  std::string changed_at = stamp;
  for (const json::value& entry : entries) {
    if (json::get_string(entry, {"type"}) != condition.type) continue;
    if (json::get_string(entry, {"status"}) != text(condition.status)) continue;
    if (json::get_string(entry, {"reason"}) == condition.reason) return;
    changed_at = json::get_string(entry, {"lastTransitionTime"}, stamp);
  }
  json::array kept;
  kept.reserve(entries.size() + 1);
  const std::string_view displaced = displaced_by(condition.type);
  const bool ends = condition.status && (condition.type == kSucceeded || condition.type == kFailed);
  for (json::value& entry : entries) {
    const std::string_view type = json::get_string(entry, {"type"});
    if (type == condition.type || (!displaced.empty() && type == displaced)) continue;
    // A job that has ended neither runs nor restarts.
    if (ends && (type == kRunning || type == kRestarting)) {
      json::set(entry, {"status"}, json::string(text(false)));
    }
    kept.push_back(std::move(entry));
  }
  kept.push_back({{"type", json::string(condition.type)},
                  {"status", json::string(text(condition.status))},
                  {"reason", condition.reason},
                  {"message", condition.message},
                  {"lastUpdateTime", stamp},
                  {"lastTransitionTime", changed_at}});
  entries = std::move(kept);
}

}  // namespace skiff::training
