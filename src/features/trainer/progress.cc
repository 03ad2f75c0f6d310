#include "features/trainer/progress.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "api/meta.h"
#include "base/time.h"
#include "features/trainer/trainjob.h"

namespace skiff::trainer {
namespace {

constexpr std::size_t kMetrics = 256;
constexpr std::size_t kText = 64;
constexpr std::int64_t kMostReportedSeconds = (1LL << 31) - 1;

void add_metric(json::array& list, std::string_view name, std::string_view value) {
  if (name.empty() || name.size() > kText || value.empty() || value.size() > kText) return;
  if (list.size() == kMetrics) return;
  list.push_back(json::object{{"name", json::string(name)}, {"value", json::string(value)}});
}

json::value told_by(const json::value& pod) {
  const auto parsed = json::parse(api::annotation(pod, kProgressAnnotation));
  if (!parsed || !parsed->is_object() || parsed->get_object().empty()) return {};
  const json::object& all = parsed->get_object();
  const json::value* told = all.if_contains(kNode);
  return told == nullptr ? all.begin()->value() : *told;
}

}  // namespace

// Anybody may write an annotation: of what it says only what has the right form is taken.
json::object trainer_status(const json::value& pod) {
  const json::value told = told_by(pod);
  const auto updated = parse_time(json::get_string(told, {"lastUpdateTime"}));
  if (!updated) return {};
  json::object out;
  if (const auto percent = json::get_int(told, {"percent"})) {
    out["progressPercentage"] = std::clamp<std::int64_t>(*percent, 0, 100);
  }
  if (const auto end = parse_time(json::get_string(told, {"estimatedCompletionTime"}))) {
    const std::int64_t left =
        std::chrono::duration_cast<std::chrono::seconds>(*end - *updated).count();
    out["estimatedRemainingSeconds"] = std::clamp<std::int64_t>(left, 0, kMostReportedSeconds);
  }
  json::array metrics;
  for (const std::string_view field : {"step", "totalSteps", "epoch", "totalEpochs"}) {
    const auto value = json::get_int(told, {field});
    if (value && *value >= 0) add_metric(metrics, field, std::to_string(*value));
  }
  for (const auto& [name, value] : json::get_object(told, {"metrics"})) {
    if (value.is_string()) add_metric(metrics, name, json::view(value.get_string()));
  }
  if (!metrics.empty()) out["metrics"] = std::move(metrics);
  if (out.empty()) return {};
  out["lastUpdatedTime"] = rfc3339(*updated);
  return out;
}

bool is_news(const json::value* known, const json::object& told) {
  if (told.empty()) return false;
  if (known == nullptr || !known->is_object()) return true;
  const auto before = parse_time(json::get_string(*known, {"lastUpdatedTime"}));
  const auto now = parse_time(json::get_string(told, {"lastUpdatedTime"}));
  return !before || (now && *before < *now);
}

}  // namespace skiff::trainer
