#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "api/apps/apps.h"
#include "api/cells.h"
#include "api/core/pod_template.h"
#include "api/core/pod_warnings.h"
#include "api/help.h"
#include "base/names.h"
#include "schema/causes.h"

namespace skiff::api {
namespace {

using schema::child;

void default_claims(json::object& spec) {
  json::value* list = spec.if_contains("volumeClaimTemplates");
  if (list == nullptr || !list->is_array()) return;
  for (json::value& item : list->get_array()) {
    json::object* claim = item.if_object();
    if (claim == nullptr) continue;
    (*claim)["apiVersion"] = "v1";
    (*claim)["kind"] = "PersistentVolumeClaim";
    object_in(*claim, "metadata");
    if (json::object* inner = object_in(*claim, "spec")) {
      default_text(*inner, "volumeMode", "Filesystem");
      object_in(*inner, "resources");
    }
    if (json::object* status = object_in(*claim, "status"))
      default_text(*status, "phase", "Pending");
  }
}

void default_strategy(json::object& spec) {
  json::object* strategy = object_in(spec, "updateStrategy");
  if (strategy == nullptr) return;
  if (text_in(*strategy, "type").empty()) {
    default_text(*strategy, "type", "RollingUpdate");
    object_in(*strategy, "rollingUpdate");
  }
  json::object* rolling = object_in(*strategy, "rollingUpdate", false);
  if (rolling == nullptr) return;
  // A field behind a feature that is off: the server drops it.
  rolling->erase("maxUnavailable");
  if (text_in(*strategy, "type") == "RollingUpdate") default_int(*rolling, "partition", 0);
}

void set_stateful_set_defaults(json::value& object) {
  json::object* root = object.if_object();
  json::object* spec = root == nullptr ? nullptr : object_in(*root, "spec");
  if (spec == nullptr) return;
  default_text(*spec, "podManagementPolicy", "OrderedReady");
  default_strategy(*spec);
  if (json::object* policy = object_in(*spec, "persistentVolumeClaimRetentionPolicy")) {
    default_text(*policy, "whenDeleted", "Retain");
    default_text(*policy, "whenScaled", "Retain");
  }
  default_int(*spec, "replicas", 1);
  default_int(*spec, "revisionHistoryLimit", 10);
  default_pod_template(*spec);
  default_claims(*spec);
  if (json::object* status = object_in(*root, "status")) {
    default_int(*status, "replicas", 0);
    default_int(*status, "availableReplicas", 0);
  }
}

json::value shown_rolling(const json::value* rolling) {
  if (rolling == nullptr || !rolling->is_object()) return nullptr;
  return json::object{{"Partition", count(*rolling, {"partition"})}, {"MaxUnavailable", nullptr}};
}

void check_stateful_set_strategy(const json::value& spec, Causes& out) {
  const std::string_view type = json::get_string(spec, {"updateStrategy", "type"});
  const json::value* rolling = json::find(spec, {"updateStrategy", "rollingUpdate"});
  const std::string path = "spec.updateStrategy.rollingUpdate";
  if (type == "OnDelete") {
    if (rolling != nullptr && !rolling->is_null()) {
      out.push_back(schema::invalid(path, shown_rolling(rolling),
                                    "only allowed for updateStrategy 'RollingUpdate'"));
    }
  } else if (type == "RollingUpdate") {
    if (rolling != nullptr) check_counts(*rolling, path, {"partition"}, out);
  } else {
    out.push_back(schema::invalid(
        "spec.updateStrategy",
        json::object{{"Type", json::string(type)}, {"RollingUpdate", shown_rolling(rolling)}},
        "must be 'RollingUpdate' or 'OnDelete'"));
  }
}

void check_claims(const json::value& spec, Causes& out) {
  const json::array& claims = json::get_array(spec, {"volumeClaimTemplates"});
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const std::string path = child(child("spec.volumeClaimTemplates", i), "spec");
    const json::array& modes = json::get_array(claims[i], {"spec", "accessModes"});
    const std::string modes_path = child(path, "accessModes");
    if (modes.empty()) {
      out.push_back(schema::required(modes_path, "at least 1 access mode is required"));
    }
    for (const json::value& mode : modes) {
      const std::string_view text = mode.is_string() ? json::view(mode.get_string()) : "";
      if (!is_one_of(text,
                     {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"})) {
        out.push_back(schema::unsupported(
            modes_path, mode,
            {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"}));
      }
    }
    if (json::find(claims[i], {"spec", "resources", "requests", "storage"}) == nullptr) {
      out.push_back(schema::required(child(path, "resources[storage]")));
    }
  }
}

// The template as pods will see it: volumes of the claims are there, and names come from the set.
json::value template_to_check(const json::value& spec) {
  json::value pod = value_at(spec, {"template"});
  if (!pod.is_object()) return pod;
  const json::array& claims = json::get_array(spec, {"volumeClaimTemplates"});
  json::object& inner = json::make_object(pod, {"spec"});
  inner.erase("subdomain");
  inner.erase("hostname");
  if (claims.empty()) return pod;
  json::array volumes;
  std::set<std::string_view> names;
  for (const json::value& claim : claims) {
    const std::string_view name = json::get_string(claim, {"metadata", "name"});
    names.insert(name);
    volumes.emplace_back(
        json::object{{"name", json::string(name)},
                     {"persistentVolumeClaim", json::object{{"claimName", json::string(name)}}}});
  }
  for (const json::value& volume : json::get_array(spec, {"template", "spec", "volumes"})) {
    if (!names.contains(json::get_string(volume, {"name"}))) volumes.push_back(volume);
  }
  inner["volumes"] = std::move(volumes);
  return pod;
}

void check_template(const json::value& object, bool skip_pod, Causes& out) {
  const json::value& spec = value_at(object, {"spec"});
  const json::value* selector = json::find(spec, {"selector"});
  const json::value pod = template_to_check(spec);
  const json::object& labels = json::get_object(pod, {"metadata", "labels"});
  const auto fits = selects(selector, labels);
  if (!fits) {
    out.push_back(schema::invalid("spec.selector", shown_selector(selector), ""));
    return;
  }
  if (!*fits) {
    out.push_back(schema::invalid("spec.template.metadata.labels", shown_map(labels),
                                  "`selector` does not match template `labels`"));
  }
  if (!skip_pod) check_pod_template(pod, "spec.template", out);
  // The real server checks these a second time.
  check_labels(labels, "spec.template.labels", out);
  check_annotations(json::get_object(pod, {"metadata", "annotations"}), "spec.template.annotations",
                    out);
}

void check_stateful_set_spec(const json::value& object, bool update, bool skip_pod, Causes& out) {
  const json::value& spec = value_at(object, {"spec"});
  const std::string_view policy = json::get_string(spec, {"podManagementPolicy"});
  if (policy != "OrderedReady" && policy != "Parallel") {
    out.push_back(schema::invalid("spec.podManagementPolicy", json::string(policy),
                                  "must be 'OrderedReady' or 'Parallel'"));
  }
  check_stateful_set_strategy(spec, out);
  for (const std::string_view field : {"whenDeleted", "whenScaled"}) {
    const std::string_view when =
        json::get_string(spec, {"persistentVolumeClaimRetentionPolicy", field});
    if (when == "Retain" || when == "Delete") continue;
    out.push_back(schema::unsupported(child("spec.persistentVolumeClaimRetentionPolicy", field),
                                      json::string(when), {"Retain", "Delete"}));
  }
  if (!update) check_claims(spec, out);
  check_counts(spec, "spec", {"replicas", "minReadySeconds"}, out);
  check_counts(value_at(spec, {"ordinals"}), "spec.ordinals", {"start"}, out);
  const std::string_view service = json::get_string(spec, {"serviceName"});
  if (!update && !service.empty()) {
    for (const std::string& bad : names::check_dns1123_label(service)) {
      out.push_back(schema::invalid("spec.serviceName", json::string(service), bad));
    }
  }
  check_owned_selector(object, "statefulset", out);
  check_template(object, skip_pod, out);
  check_always_running(value_at(spec, {"template"}), "spec.template", "StatefulSet", out);
}

void check_stateful_set_unchanged(const json::value& object, const json::value& old, Causes& out) {
  json::value rest = value_at(object, {"spec"});
  if (!rest.is_object()) return;
  for (const std::string_view field :
       {"replicas", "template", "updateStrategy", "minReadySeconds", "ordinals",
        "revisionHistoryLimit", "persistentVolumeClaimRetentionPolicy"}) {
    rest.get_object().erase(field);
    if (const json::value* v = json::find(old, {"spec", field})) rest.get_object()[field] = *v;
  }
  if (rest == value_at(old, {"spec"})) return;
  out.push_back(schema::forbidden(
      "spec",
      "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
      "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
      "'minReadySeconds' are forbidden"));
}

void check_stateful_set_status(const json::value& object, const json::value& old, Causes& out) {
  check_counts(value_at(object, {"status"}), "status",
               {"replicas", "readyReplicas", "currentReplicas", "updatedReplicas",
                "availableReplicas", "observedGeneration", "collisionCount"},
               out);
  check_bounded(object,
                {"readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"},
                "replicas", "cannot be greater than status.replicas", out);
  check_bounded(object, {"availableReplicas"}, "readyReplicas",
                "cannot be greater than status.readyReplicas", out);
  check_collisions(object, old, out);
}

std::vector<Cause> validate_stateful_set(const json::value& object, const Admission& context) {
  Causes out;
  if (context.old == nullptr) {
    check_stateful_set_spec(object, false, false, out);
    return out;
  }
  if (context.subresource == "status") {
    check_stateful_set_status(object, *context.old, out);
    return out;
  }
  // What an older server let in does not stop an update.
  Causes before;
  check_stateful_set_spec(*context.old, true, false, before);
  check_stateful_set_spec(object, true, !before.empty(), out);
  check_stateful_set_unchanged(object, *context.old, out);
  return out;
}

std::vector<std::string> stateful_set_warnings(const json::value& object,
                                               const Admission& context) {
  std::vector<std::string> out;
  warn_of_template(object, context, "spec.template", out);
  if (context.subresource.empty() && count(object, {"spec", "revisionHistoryLimit"}) < 0) {
    out.emplace_back(
        "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= "
        "0 is recommended");
  }
  return out;
}

json::array stateful_set_cells(const json::value& object, std::int64_t now_s) {
  const json::value& pod = value_at(object, {"spec", "template", "spec"});
  return {json::string(fmt::format("{}/{}", count(object, {"status", "readyReplicas"}),
                                   count(object, {"spec", "replicas"}))),
          json::string(age_cell(object, now_s)), names_cell(pod), images_cell(pod)};
}

}  // namespace

Kind stateful_set_kind() {
  return {.resource = {"apps", "v1", "statefulsets", "StatefulSet", true},
          .singular = "statefulset",
          .short_names = {"sts"},
          .categories = {"all"},
          .has_status = true,
          .scale = ScalePaths{".spec.replicas", ".status.replicas", ".spec.selector"},
          .schema = "io.k8s.api.apps.v1.StatefulSet",
          .columns = {{"Ready", "string", "", 0, std::string(kReadyPodsHelp)},
                      {"Age", "string", "", 0, std::string(kAgeHelp)},
                      {"Containers", "string", "", 1, std::string(kContainersHelp)},
                      {"Images", "string", "", 1, std::string(kImagesHelp)}},
          .set_defaults = set_stateful_set_defaults,
          .validate = validate_stateful_set,
          .warnings = stateful_set_warnings,
          .cells = stateful_set_cells};
}

}  // namespace skiff::api
