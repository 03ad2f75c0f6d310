#include "api/core/pod_template.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/core/pod.h"
#include "schema/causes.h"

namespace skiff::api {

using schema::child;

void default_pod_template(json::object& owner, std::string_view key) {
  json::object* pod = object_in(owner, key);
  if (pod == nullptr) return;
  object_in(*pod, "metadata");
  if (json::object* spec = object_in(*pod, "spec")) default_pod_spec(*spec);
}

void check_pod_template(const json::value& pod_template, std::string_view path, Causes& out) {
  check_labels(json::get_object(pod_template, {"metadata", "labels"}), child(path, "labels"), out);
  check_annotations(json::get_object(pod_template, {"metadata", "annotations"}),
                    child(path, "annotations"), out);
  static const json::value kNothing = json::object();
  const json::value* spec = json::find(pod_template, {"spec"});
  std::ranges::move(validate_pod_spec(spec == nullptr ? kNothing : *spec, child(path, "spec")),
                    std::back_inserter(out));
  if (!json::get_array(pod_template, {"spec", "ephemeralContainers"}).empty()) {
    out.push_back(schema::forbidden(child(path, "spec.ephemeralContainers"),
                                    "ephemeral containers not allowed in pod template"));
  }
}

void check_always_running(const json::value& pod_template, std::string_view path,
                          std::string_view kind, Causes& out) {
  const std::string_view policy = json::get_string(pod_template, {"spec", "restartPolicy"});
  if (policy != "Always") {
    out.push_back(
        schema::unsupported(child(path, "spec.restartPolicy"), json::string(policy), {"Always"}));
  }
  const json::value* deadline = json::find(pod_template, {"spec", "activeDeadlineSeconds"});
  if (deadline != nullptr && !deadline->is_null()) {
    out.push_back(
        schema::forbidden(child(path, "spec.activeDeadlineSeconds"),
                          fmt::format("activeDeadlineSeconds in {} is not Supported", kind)));
  }
}

}  // namespace skiff::api
