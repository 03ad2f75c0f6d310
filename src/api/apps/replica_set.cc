#include "api/apps/apps.h"
#include "api/cells.h"
#include "api/core/pod_template.h"
#include "api/core/pod_warnings.h"
#include "api/help.h"
#include "schema/causes.h"

namespace skiff::api {
namespace {

void set_replica_set_defaults(json::value& object) {
  json::object* root = object.if_object();
  json::object* spec = root == nullptr ? nullptr : object_in(*root, "spec");
  if (spec == nullptr) return;
  default_int(*spec, "replicas", 1);
  default_pod_template(*spec);
  if (json::object* status = object_in(*root, "status")) default_int(*status, "replicas", 0);
}

void check_replica_set_status(const json::value& object, Causes& out) {
  const json::value* status = json::find(object, {"status"});
  if (status == nullptr) return;
  check_counts(*status, "status",
               {"replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas",
                "observedGeneration", "terminatingReplicas"},
               out);
  check_bounded(object, {"fullyLabeledReplicas", "readyReplicas", "availableReplicas"}, "replicas",
                "cannot be greater than status.replicas", out);
  check_bounded(object, {"availableReplicas"}, "readyReplicas",
                "cannot be greater than readyReplicas", out);
}

std::vector<Cause> validate_replica_set(const json::value& object, const Admission& context) {
  Causes out;
  if (context.subresource == "status") {
    check_replica_set_status(object, out);
    return out;
  }
  const json::value* spec = json::find(object, {"spec"});
  if (spec == nullptr) return out;
  check_counts(*spec, "spec", {"replicas", "minReadySeconds"}, out);
  // The real server says deployment here too.
  check_owned_selector(object, "deployment", out);
  check_owned_template(object, "ReplicaSet", "invalid label selector", out);
  if (context.old != nullptr) {
    check_immutable(json::find(object, {"spec", "selector"}),
                    json::find(*context.old, {"spec", "selector"}), "spec.selector", out);
  }
  return out;
}

json::array replica_set_cells(const json::value& object, std::int64_t now_s) {
  static const json::value kNothing;
  const json::value* pod = json::find(object, {"spec", "template", "spec"});
  if (pod == nullptr) pod = &kNothing;
  return {count(object, {"spec", "replicas"}),
          count(object, {"status", "replicas"}),
          count(object, {"status", "readyReplicas"}),
          json::string(age_cell(object, now_s)),
          names_cell(*pod),
          images_cell(*pod),
          selector_cell(json::find(object, {"spec", "selector"}))};
}

}  // namespace

Kind replica_set_kind() {
  return {
      .resource = {"apps", "v1", "replicasets", "ReplicaSet", true},
      .singular = "replicaset",
      .short_names = {"rs"},
      .categories = {"all"},
      .has_status = true,
      .scale = ScalePaths{".spec.replicas", ".status.replicas", ".spec.selector"},
      .schema = "io.k8s.api.apps.v1.ReplicaSet",
      .columns =
          {{"Desired", "integer", "", 0,
            "Replicas is the number of desired pods. This is a pointer to distinguish between "
            "explicit zero and unspecified. Defaults to 1. More info: "
            "https://kubernetes.io/docs/concepts/workloads/controllers/replicaset"},
           {"Current", "integer", "", 0,
            "Replicas is the most recently observed number of non-terminating pods. More info: "
            "https://kubernetes.io/docs/concepts/workloads/controllers/replicaset"},
           {"Ready", "integer", "", 0,
            "The number of non-terminating pods targeted by this ReplicaSet with a Ready "
            "Condition."},
           {"Age", "string", "", 0, std::string(kAgeHelp)},
           {"Containers", "string", "", 1, std::string(kContainersHelp)},
           {"Images", "string", "", 1, std::string(kImagesHelp)},
           {"Selector", "string", "", 1,
            "Selector is a label query over pods that should match the replica count. If the "
            "selector is empty, it is defaulted to the labels present on the pod template. Label "
            "keys and values that must match in order to be controlled by this replica set. More "
            "info: "
            "https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/"
            "#label-selectors"}},
      .set_defaults = set_replica_set_defaults,
      .validate = validate_replica_set,
      .warnings = workload_warnings,
      .cells = replica_set_cells};
}

}  // namespace skiff::api
