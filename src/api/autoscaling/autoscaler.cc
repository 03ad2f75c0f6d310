#include <fmt/format.h>

#include "api/apps/apps.h"
#include "api/autoscaling/autoscaling.h"
#include "api/cells.h"
#include "api/help.h"
#include "base/strings.h"

namespace skiff::api {
namespace {

constexpr int kDefaultCpuUtilization = 80;
constexpr std::string_view kMetricsNote = "autoscaling.alpha.kubernetes.io/metrics";

json::array cpu_metric(std::int64_t utilization) {
  return {json::object{
      {"type", "Resource"},
      {"resource", json::object{{"name", "cpu"},
                                {"target", json::object{{"type", "Utilization"},
                                                        {"averageUtilization", utilization}}}}}}};
}

void default_rules(json::object& behavior, std::string_view direction) {
  json::object* rules = object_in(behavior, direction);
  if (rules == nullptr) return;
  const auto policy = [](std::string_view type, int value) {
    return json::object{{"type", json::string(type)}, {"value", value}, {"periodSeconds", 15}};
  };
  const bool up = direction == "scaleUp";
  if (up) default_int(*rules, "stabilizationWindowSeconds", 0);
  default_text(*rules, "selectPolicy", "Max");
  json::value& policies = (*rules)["policies"];
  if (!policies.is_null()) return;
  json::array fresh;
  if (up) fresh.emplace_back(policy("Pods", 4));
  fresh.emplace_back(policy("Percent", 100));
  policies = std::move(fresh);
}

void set_autoscaler_defaults(json::value& object) {
  json::object* root = object.if_object();
  json::object* spec = root == nullptr ? nullptr : object_in(*root, "spec");
  if (spec == nullptr) return;
  default_int(*spec, "minReplicas", 1);
  json::value& metrics = (*spec)["metrics"];
  if (metrics.is_null() || (metrics.is_array() && metrics.get_array().empty())) {
    metrics = cpu_metric(kDefaultCpuUtilization);
  }
  if (json::object* behavior = object_in(*spec, "behavior", false)) {
    default_rules(*behavior, "scaleUp");
    default_rules(*behavior, "scaleDown");
  }
}

void set_v1_defaults(json::value& object) {
  json::object* root = object.if_object();
  json::object* spec = root == nullptr ? nullptr : object_in(*root, "spec");
  if (spec == nullptr) return;
  default_int(*spec, "minReplicas", 1);
  // What says all of a newer version's metrics stands in a note.
  if (!json::get_object(object, {"metadata", "annotations"}).contains(kMetricsNote)) {
    default_int(*spec, "targetCPUUtilizationPercentage", kDefaultCpuUtilization);
  }
}

std::vector<Cause> validate_autoscaler(const json::value& object, const Admission& context) {
  Causes out;
  check_autoscaler(object, context, out);
  return out;
}

json::array autoscaler_cells(const json::value& object, std::int64_t now_s) {
  const auto least = json::get_int(object, {"spec", "minReplicas"});
  return {json::string(fmt::format("{}/{}",
                                   json::get_string(object, {"spec", "scaleTargetRef", "kind"}),
                                   json::get_string(object, {"spec", "scaleTargetRef", "name"}))),
          json::string(targets_cell(object)),
          json::string(least ? std::to_string(*least) : "<unset>"),
          count(object, {"spec", "maxReplicas"}),
          count(object, {"status", "currentReplicas"}),
          json::string(age_cell(object, now_s))};
}

json::array v1_cells(const json::value& object, std::int64_t now_s) {
  json::value whole = object;
  autoscaler_to_v2(whole);
  return autoscaler_cells(whole, now_s);
}

std::vector<Column> autoscaler_columns() {
  return {
      {"Reference", "string", "", 0,
       "scaleTargetRef points to the target resource to scale, and is used to the pods for which "
       "metrics should be collected, as well as to actually change the replica count."},
      {"Targets", "string", "", 0,
       "metrics contains the specifications for which to use to calculate the desired replica "
       "count (the maximum replica count across all metrics will be used).  The desired replica "
       "count is calculated multiplying the ratio between the target value and the current value "
       "by the current number of pods.  Ergo, metrics used must decrease as the pod count is "
       "increased, and vice-versa.  See the individual metric source types for more information "
       "about how each type of metric must respond."},
      {"MinPods", "string", "", 0,
       "minReplicas is the lower limit for the number of replicas to which the autoscaler can "
       "scale down.  It defaults to 1 pod.  minReplicas is allowed to be 0 if the alpha feature "
       "gate HPAScaleToZero is enabled and at least one Object or External metric is configured.  "
       "Scaling is active as long as at least one metric value is available."},
      {"MaxPods", "string", "", 0,
       "maxReplicas is the upper limit for the number of replicas to which the autoscaler can "
       "scale up. It cannot be less that minReplicas."},
      {"Replicas", "string", "", 0,
       "currentReplicas is current number of replicas of pods managed by this autoscaler, as last "
       "seen by the autoscaler."},
      {"Age", "string", "", 0, std::string(kAgeHelp)}};
}

}  // namespace

std::vector<Kind> autoscaling_kinds() {
  Kind kept{.resource = {"autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler",
                         true},
            .singular = "horizontalpodautoscaler",
            .short_names = {"hpa"},
            .categories = {"all"},
            .has_status = true,
            .has_generation = false,
            .schema = "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler",
            .columns = autoscaler_columns(),
            .set_defaults = set_autoscaler_defaults,
            .validate = validate_autoscaler,
            .cells = autoscaler_cells};
  Kind view = kept;
  view.resource.version = "v1";
  view.schema = "io.k8s.api.autoscaling.v1.HorizontalPodAutoscaler";
  view.to_storage = autoscaler_to_v2;
  view.from_storage = autoscaler_to_v1;
  view.set_defaults = set_v1_defaults;
  view.cells = v1_cells;
  return {kept, view};
}

}  // namespace skiff::api
