// What the server itself writes into a new object of the kinds that it has duties for.
#include "api/meta.h"
#include "apiserver/writes.h"

namespace skiff::apiserver {
namespace {

void prepare_namespace(json::value& object) {
  json::set(object, {"metadata", "labels", "kubernetes.io/metadata.name"},
            json::string(api::name(object)));
  json::object& spec = json::make_object(object, {"spec"});
  if (!spec.contains("finalizers")) spec["finalizers"] = json::array{"kubernetes"};
  json::set(object, {"status", "phase"}, "Active");
}

bool equal_requests_and_limits(const json::value& container, bool& any, bool& complete) {
  const json::object& limits = json::get_object(container, {"resources", "limits"});
  const json::object& requests = json::get_object(container, {"resources", "requests"});
  for (std::string_view name : {"cpu", "memory"}) {
    const json::value* limit = limits.if_contains(name);
    const json::value* request = requests.if_contains(name);
    if (limit != nullptr || request != nullptr) any = true;
    if (limit == nullptr) complete = false;
    if (request != nullptr && limit != nullptr && *request != *limit) return false;
  }
  return true;
}

// Guaranteed: every container limits both CPU and memory and asks for just that.
std::string_view qos_class(const json::value& pod) {
  bool any = false, complete = true, equal = true;
  for (std::string_view list : {"containers", "initContainers"}) {
    for (const json::value& container : json::get_array(pod, {"spec", list})) {
      if (!equal_requests_and_limits(container, any, complete)) equal = false;
    }
  }
  if (!any) return "BestEffort";
  return complete && equal ? "Guaranteed" : "Burstable";
}

json::object condition(std::string_view type, std::string_view reason, std::string_view message,
                       const std::string& now) {
  return {{"type", json::string(type)},         {"status", "True"},
          {"lastTransitionTime", json::string(now)}, {"reason", json::string(reason)},
          {"message", json::string(message)}};
}

// A definition is served from the moment it is written, so it says so from its first revision.
void prepare_definition(json::value& object, const std::string& now) {
  json::value names = json::find(object, {"spec", "names"}) == nullptr
                          ? json::value(json::object())
                          : *json::find(object, {"spec", "names"});
  json::object& accepted = json::make_object(names, {});
  if (!accepted.contains("listKind")) {
    accepted["listKind"] = std::string(json::get_string(names, {"kind"})) + "List";
  }
  json::set(object, {"spec", "names"}, names);
  json::array stored;
  for (const json::value& version : json::get_array(object, {"spec", "versions"})) {
    if (json::get_bool(version, {"storage"}).value_or(false)) {
      stored.emplace_back(json::string(json::get_string(version, {"name"})));
    }
  }
  object.get_object()["status"] = json::object{
      {"conditions",
       json::array{condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
                   condition("Established", "InitialNamesAccepted",
                             "the initial names have been accepted", now)}},
      {"acceptedNames", names},
      {"storedVersions", std::move(stored)}};
  json::object& metadata = json::make_object(object, {"metadata"});
  json::value& finalizers = metadata["finalizers"];
  if (!finalizers.is_array()) finalizers.emplace_array();
  finalizers.get_array().emplace_back(json::string(kCrdFinalizer));
}

}  // namespace

void prepare_new(const ServedKind& kind, json::value& object, const std::string& now) {
  const std::string key = kind.resource().key();
  if (key == "namespaces") prepare_namespace(object);
  if (key == "pods") {
    json::set(object, {"status"},
              json::object{{"phase", "Pending"}, {"qosClass", json::string(qos_class(object))}});
  }
  if (key == kCrdKey) prepare_definition(object, now);
}

}  // namespace skiff::apiserver
