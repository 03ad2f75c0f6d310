#include <fmt/format.h>

#include "api/apps/apps.h"
#include "api/cells.h"
#include "api/core/pod_template.h"
#include "api/core/pod_warnings.h"
#include "api/help.h"
#include "schema/causes.h"

namespace skiff::api {
namespace {

using schema::child;

constexpr std::string_view kStrategy = "spec.strategy";

void set_deployment_defaults(json::value& object) {
  json::object* root = object.if_object();
  json::object* spec = root == nullptr ? nullptr : object_in(*root, "spec");
  if (spec == nullptr) return;
  default_int(*spec, "replicas", 1);
  default_pod_template(*spec);
  if (json::object* strategy = object_in(*spec, "strategy")) {
    default_text(*strategy, "type", "RollingUpdate");
    const bool rolling = text_in(*strategy, "type") == "RollingUpdate";
    json::object* rolls = rolling ? object_in(*strategy, "rollingUpdate") : nullptr;
    if (rolls != nullptr) {
      for (const std::string_view field : {"maxUnavailable", "maxSurge"}) {
        json::value& v = (*rolls)[field];
        if (v.is_null()) v = "25%";
      }
    }
  }
  default_int(*spec, "revisionHistoryLimit", 10);
  default_int(*spec, "progressDeadlineSeconds", 600);
  object_in(*root, "status");
}

// The strategy as the server's own form of it is written in sentences.
json::value shown_strategy(const json::value& object) {
  const json::value* rolling = json::find(object, {"spec", "strategy", "rollingUpdate"});
  json::value shown = nullptr;
  if (rolling != nullptr && rolling->is_object()) {
    const auto member = [&](std::string_view name) {
      const json::value* v = json::find(*rolling, {name});
      return v == nullptr ? json::value(0) : *v;
    };
    shown = json::object{{"MaxUnavailable", member("maxUnavailable")},
                         {"MaxSurge", member("maxSurge")}};
  }
  return json::object{
      {"Type", json::string(json::get_string(object, {"spec", "strategy", "type"}))},
      {"RollingUpdate", std::move(shown)}};
}

void check_deployment_rolling(const json::value& rolling, const std::string& path, Causes& out) {
  const json::value none = 0;
  const json::value* unavailable = json::find(rolling, {"maxUnavailable"});
  const json::value* surge = json::find(rolling, {"maxSurge"});
  if (unavailable == nullptr) unavailable = &none;
  if (surge == nullptr) surge = &none;
  const std::string at = child(path, "maxUnavailable");
  check_int_or_percent(*unavailable, at, out);
  check_int_or_percent(*surge, child(path, "maxSurge"), out);
  if (int_or_percent(*unavailable) == 0 && int_or_percent(*surge) == 0) {
    out.push_back(schema::invalid(at, *unavailable, "may not be 0 when `maxSurge` is 0"));
  }
  check_at_most_100_percent(*unavailable, at, out);
}

void check_deployment_strategy(const json::value& object, Causes& out) {
  const std::string_view type = json::get_string(object, {"spec", "strategy", "type"});
  const json::value* rolling = json::find(object, {"spec", "strategy", "rollingUpdate"});
  const std::string path = child(kStrategy, "rollingUpdate");
  if (type == "Recreate") {
    if (rolling != nullptr && !rolling->is_null()) {
      out.push_back(
          schema::forbidden(path, "may not be specified when strategy `type` is 'Recreate'"));
    }
  } else if (type == "RollingUpdate") {
    if (rolling != nullptr) check_deployment_rolling(*rolling, path, out);
  } else {
    out.push_back(schema::unsupported(std::string(kStrategy), shown_strategy(object),
                                      {"Recreate", "RollingUpdate"}));
  }
}

void check_deployment_status(const json::value& object, const json::value& old, Causes& out) {
  static const json::value kNothing;
  const json::value* status = json::find(object, {"status"});
  check_counts(
      status == nullptr ? kNothing : *status, "status",
      {"observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas",
       "unavailableReplicas", "terminatingReplicas", "collisionCount"},
      out);
  check_bounded(object, {"updatedReplicas", "readyReplicas", "availableReplicas"}, "replicas",
                "cannot be greater than status.replicas", out);
  check_bounded(object, {"availableReplicas"}, "readyReplicas",
                "cannot be greater than readyReplicas", out);
  check_collisions(object, old, out);
}

std::vector<Cause> validate_deployment(const json::value& object, const Admission& context) {
  Causes out;
  if (context.subresource == "status" && context.old != nullptr) {
    check_deployment_status(object, *context.old, out);
    return out;
  }
  const json::value* spec = json::find(object, {"spec"});
  if (spec == nullptr) return out;
  check_counts(*spec, "spec", {"replicas"}, out);
  check_owned_selector(object, "deployment", out);
  check_owned_template(object, "ReplicaSet", "invalid label selector", out);
  check_deployment_strategy(object, out);
  check_counts(*spec, "spec",
               {"minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"}, out);
  const auto deadline = json::get_int(*spec, {"progressDeadlineSeconds"});
  if (deadline && *deadline <= count(*spec, {"minReadySeconds"})) {
    out.push_back(schema::invalid("spec.progressDeadlineSeconds", *deadline,
                                  "must be greater than minReadySeconds"));
  }
  if (context.old != nullptr) {
    check_immutable(json::find(object, {"spec", "selector"}),
                    json::find(*context.old, {"spec", "selector"}), "spec.selector", out);
  }
  return out;
}

json::array deployment_cells(const json::value& object, std::int64_t now_s) {
  static const json::value kNothing;
  const json::value* pod = json::find(object, {"spec", "template", "spec"});
  const json::value* selector = json::find(object, {"spec", "selector"});
  if (pod == nullptr) pod = &kNothing;
  return {json::string(fmt::format("{}/{}", count(object, {"status", "readyReplicas"}),
                                   count(object, {"spec", "replicas"}))),
          count(object, {"status", "updatedReplicas"}),
          count(object, {"status", "availableReplicas"}),
          json::string(age_cell(object, now_s)),
          names_cell(*pod),
          images_cell(*pod),
          selector_cell(selector)};
}

}  // namespace

Kind deployment_kind() {
  return {
      .resource = {"apps", "v1", "deployments", "Deployment", true},
      .singular = "deployment",
      .short_names = {"deploy"},
      .categories = {"all"},
      .has_status = true,
      .annotations_count = true,
      .scale = ScalePaths{".spec.replicas", ".status.replicas", ".spec.selector"},
      .schema = "io.k8s.api.apps.v1.Deployment",
      .columns =
          {{"Ready", "string", "", 0, std::string(kReadyPodsHelp)},
           {"Up-to-date", "string", "", 0,
            "Total number of non-terminating pods targeted by this deployment that have the "
            "desired template spec."},
           {"Available", "string", "", 0,
            "Total number of available non-terminating pods (ready for at least minReadySeconds) "
            "targeted by this deployment."},
           {"Age", "string", "", 0, std::string(kAgeHelp)},
           {"Containers", "string", "", 1, std::string(kContainersHelp)},
           {"Images", "string", "", 1, std::string(kImagesHelp)},
           {"Selector", "string", "", 1,
            "Label selector for pods. Existing ReplicaSets whose pods are selected by this will "
            "be the ones affected by this deployment."}},
      .set_defaults = set_deployment_defaults,
      .validate = validate_deployment,
      .warnings = workload_warnings,
      .cells = deployment_cells};
}

}  // namespace skiff::api
