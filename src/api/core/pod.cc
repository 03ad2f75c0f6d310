#include "api/core/pod.h"

#include <algorithm>

#include "api/checks.h"
#include "api/core/pod_warnings.h"
#include "api/meta.h"
#include "schema/causes.h"

namespace skiff::api {
namespace {

void set_pod_defaults(json::value& object) {
  if (!object.is_object()) return;
  json::object& spec = json::make_object(object, {"spec"});
  default_pod_spec(spec);
  default_pod_only(spec);
  json::object& status = json::make_object(object, {"status"});
  status.emplace("phase", "Pending");
  status.emplace("qosClass", json::string(qos_class(object.get_object().at("spec"))));
}

// A debugger that was put into a pod stays as it is.
std::vector<Cause> validate_ephemeral(const json::value& object, const json::value& old) {
  std::vector<Cause> out;
  const json::array& now = json::get_array(object, {"spec", "ephemeralContainers"});
  for (const json::value& before : json::get_array(old, {"spec", "ephemeralContainers"})) {
    const std::string name(json::get_string(before, {"name"}));
    const auto same = [&](const json::value& c) { return json::get_string(c, {"name"}) == name; };
    const auto found = std::find_if(now.begin(), now.end(), same);
    if (found != now.end() && *found == before) continue;
    out.push_back({.field = "spec.ephemeralContainers",
                   .reason = "FieldValueForbidden",
                   .message = "Forbidden: existing ephemeral containers \"" + name +
                              "\" may not be " + (found == now.end() ? "removed" : "changed") +
                              "\n"});
  }
  return out;
}

std::vector<Cause> validate_pod_write(const json::value& object, const Admission& context) {
  static const json::value kNothing = json::object();
  const json::value* spec = json::find(object, {"spec"});
  if (spec == nullptr) spec = &kNothing;
  if (context.subresource == "ephemeralcontainers") {
    std::vector<Cause> out = validate_pod(object);
    for (Cause& cause : validate_ephemeral(object, *context.old)) out.push_back(std::move(cause));
    return out;
  }
  if (context.subresource == "resize") return validate_pod(object);
  // Sub-resources change what a plain update may not: binding sets the node.
  if (!context.subresource.empty()) return {};
  const json::value* old_spec =
      context.old == nullptr ? nullptr : json::find(*context.old, {"spec"});
  std::vector<Cause> out = validate_pod(object);
  if (context.old == nullptr) {
    if (!json::get_array(*spec, {"ephemeralContainers"}).empty()) {
      out.push_back(schema::forbidden("spec.ephemeralContainers", "cannot be set on create"));
    }
    if (!json::get_string(*spec, {"nodeName"}).empty() &&
        !json::get_array(*spec, {"schedulingGates"}).empty()) {
      out.push_back(schema::forbidden("spec.nodeName",
                                      "cannot be set until all schedulingGates have been cleared"));
    }
  } else if (old_spec != nullptr) {
    for (Cause& cause : validate_pod_update(*spec, *old_spec)) out.push_back(std::move(cause));
  }
  return out;
}

// Of new pods only: people seldom change pods, and controllers do not read.
std::vector<std::string> new_pod_warnings(const json::value& object, const Admission& context) {
  if (context.old != nullptr || !context.subresource.empty()) return {};
  std::vector<std::string> out;
  warn_of_pod_names(object, out, "the Pod's hostname");
  for (std::string& warning : pod_warnings(object, "")) out.push_back(std::move(warning));
  return out;
}

std::optional<std::string> pod_field_text(const json::value& object, std::string_view path) {
  if (path != "spec.hostNetwork") return std::nullopt;
  return json::get_bool(object, {"spec", "hostNetwork"}).value_or(false) ? "true" : "false";
}

}  // namespace

Kind pod_kind() {
  const std::vector<std::string> kProxyVerbs = {"create", "delete", "get", "patch", "update"};
  return {.resource = {"", "v1", "pods", "Pod", true},
          .singular = "pod",
          .short_names = {"po"},
          .categories = {"all"},
          .has_status = true,
          .subresources = {{"attach", "PodAttachOptions", {"create", "get"}},
                           {"binding", "Binding", {"create"}},
                           {"ephemeralcontainers", "Pod", {"get", "patch", "update"}},
                           {"eviction", "Eviction", {"create"}, "policy", "v1"},
                           {"exec", "PodExecOptions", {"create", "get"}},
                           {"log", "Pod", {"get"}},
                           {"portforward", "PodPortForwardOptions", {"create", "get"}},
                           {"proxy", "PodProxyOptions", kProxyVerbs},
                           {"resize", "Pod", {"get", "patch", "update"}}},
          .schema = "io.k8s.api.core.v1.Pod",
          .columns = {{"Ready", "string"},
                      {"Status", "string"},
                      {"Restarts", "string"},
                      {"Age", "string"},
                      {"IP", "string", "", 1},
                      {"Node", "string", "", 1},
                      {"Nominated Node", "string", "", 1},
                      {"Readiness Gates", "string", "", 1}},
          .selectable = {"spec.nodeName", "spec.restartPolicy", "spec.schedulerName",
                         "spec.serviceAccountName", "spec.hostNetwork", "status.phase",
                         "status.podIP", "status.podIPs", "status.nominatedNodeName"},
          .set_defaults = set_pod_defaults,
          .validate = validate_pod_write,
          .warnings = new_pod_warnings,
          .field_text = pod_field_text,
          .cells = pod_cells};
}

}  // namespace skiff::api
