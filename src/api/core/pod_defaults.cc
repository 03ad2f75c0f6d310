#include <array>

#include "api/core/pod.h"
#include "api/rules.h"
#include "base/quantity.h"
#include "schema/check.h"

namespace skiff::api {
namespace {

constexpr std::array<std::string_view, 3> kContainerLists{"containers", "initContainers",
                                                          "ephemeralContainers"};

// A request that is not told is the limit.
void default_requests(json::object& container) {
  json::object* resources = find_object(container, "resources");
  json::object* limits = resources == nullptr ? nullptr : find_object(*resources, "limits");
  if (limits == nullptr || limits->empty()) return;
  const json::object copy = *limits;
  json::object& requests = json::make_object(*resources, {"requests"});
  for (const auto& [name, amount] : copy) put(requests, name, amount);
}

void default_probe(json::object& container, std::string_view name) {
  json::object* probe = find_object(container, name);
  if (probe == nullptr) return;
  put(*probe, "timeoutSeconds", 1);
  put(*probe, "periodSeconds", 10);
  put(*probe, "successThreshold", 1);
  put(*probe, "failureThreshold", 3);
  if (json::object* get = find_object(*probe, "httpGet")) {
    put(*get, "path", "/");
    put(*get, "scheme", "HTTP");
  }
}

void default_container(json::object& container) {
  put(container, "terminationMessagePath", "/dev/termination-log");
  put(container, "terminationMessagePolicy", "File");
  const json::value* image = container.if_contains("image");
  if (image != nullptr && image->is_string()) {
    const std::string_view policy = default_pull_policy(json::view(image->get_string()));
    put(container, "imagePullPolicy", json::string(policy));
  }
  each(container, "ports", [&](json::object& port) { put(port, "protocol", "TCP"); });
  each(container, "env", [](json::object& env) {
    json::object* from = find_object(env, "valueFrom");
    json::object* field = from == nullptr ? nullptr : find_object(*from, "fieldRef");
    if (field != nullptr) put(*field, "apiVersion", "v1");
  });
  for (const std::string_view probe : {"livenessProbe", "readinessProbe", "startupProbe"}) {
    default_probe(container, probe);
  }
}

void default_field_refs(json::object& downward) {
  each(downward, "items", [](json::object& item) {
    if (json::object* field = find_object(item, "fieldRef")) put(*field, "apiVersion", "v1");
  });
}

void default_pod_volume(json::object& volume) {
  constexpr int kMode = 0644;
  // A volume that says nothing of where it comes from is an empty directory.
  if (volume.size() == 1 && volume.contains("name")) put(volume, "emptyDir", json::object());
  for (const std::string_view source : {"secret", "configMap", "downwardAPI", "projected"}) {
    if (json::object* s = find_object(volume, source)) put(*s, "defaultMode", kMode);
  }
  if (json::object* s = find_object(volume, "downwardAPI")) default_field_refs(*s);
  if (json::object* s = find_object(volume, "hostPath")) put(*s, "type", "");
  if (json::object* s = find_object(volume, "projected")) {
    each(*s, "sources", [](json::object& source) {
      if (json::object* t = find_object(source, "serviceAccountToken")) {
        put(*t, "expirationSeconds", 3600);
      }
      if (json::object* d = find_object(source, "downwardAPI")) default_field_refs(*d);
    });
  }
}

// The old and the new name of one field; either may be given.
void mirror_service_account(json::object& spec) {
  const json::value* current = spec.if_contains("serviceAccountName");
  const json::value* old = spec.if_contains("serviceAccount");
  if (current != nullptr && old == nullptr) {
    const json::value copy = *current;
    put(spec, "serviceAccount", copy);
  } else if (current == nullptr && old != nullptr) {
    const json::value copy = *old;
    put(spec, "serviceAccountName", copy);
  }
}

}  // namespace

std::string_view default_pull_policy(std::string_view image) {
  // What is no reference has no tag, and so not "latest".
  static const std::string kReference =
      R"(^(?:(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)"
      R"((?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?/)?)"
      R"([a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*)"
      R"((?::[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127})?(?:@.*)?$)";
  if (!schema::matches_pattern(kReference, image)) return "IfNotPresent";
  if (image.find('@') != image.npos) return "IfNotPresent";
  const std::size_t slash = image.rfind('/');
  const std::string_view last = slash == image.npos ? image : image.substr(slash + 1);
  const std::size_t colon = last.rfind(':');
  return colon == last.npos || last.substr(colon + 1) == "latest" ? "Always" : "IfNotPresent";
}

// Only init containers have a policy of their own, and only this one; others are dropped unsaid.
void drop_restart_policies(json::object& spec) {
  for (const std::string_view list : kContainerLists) {
    each(spec, list, [&](json::object& container) {
      const json::value* policy = container.if_contains("restartPolicy");
      if (policy == nullptr || (list == "initContainers" && *policy == "Always")) return;
      container.erase("restartPolicy");
    });
  }
}

void default_pod_spec(json::object& spec) {
  drop_restart_policies(spec);
  for (const std::string_view list : kContainerLists) each(spec, list, default_container);
  each(spec, "volumes", default_pod_volume);
  put(spec, "restartPolicy", "Always");
  put(spec, "terminationGracePeriodSeconds", 30);
  put(spec, "dnsPolicy", "ClusterFirst");
  mirror_service_account(spec);
  put(spec, "securityContext", json::object());
  put(spec, "schedulerName", "default-scheduler");
}

void default_pod_only(json::object& spec) {
  // Kept for pods of old, whose negative grace meant the shortest.
  json::value* grace = spec.if_contains("terminationGracePeriodSeconds");
  if (grace != nullptr && grace->is_int64() && grace->get_int64() < 0) *grace = 1;
  const json::value* host = spec.if_contains("hostNetwork");
  const bool host_network = host != nullptr && host->is_bool() && host->get_bool();
  for (const std::string_view list : {"containers", "initContainers"}) {
    each(spec, list, [&](json::object& container) {
      default_requests(container);
      if (!host_network) return;
      each(container, "ports", [](json::object& port) {
        const json::value* number = port.if_contains("containerPort");
        const json::value copy = number == nullptr ? json::value() : *number;
        if (!copy.is_null()) put(port, "hostPort", copy);
      });
    });
  }
  put(spec, "enableServiceLinks", true);
}

std::string_view qos_class(const json::value& spec) {
  bool any = false, guaranteed = true;
  for (const std::string_view list : {"containers", "initContainers"}) {
    for (const json::value& container : json::get_array(spec, {list})) {
      for (const std::string_view resource : {"cpu", "memory"}) {
        const json::value* request = json::find(container, {"resources", "requests", resource});
        const json::value* limit = json::find(container, {"resources", "limits", resource});
        const Result<Quantity> want = request ? Quantity::from_json(*request) : Quantity();
        const Result<Quantity> most = limit ? Quantity::from_json(*limit) : Quantity();
        const bool wants = want && !want->zero(), bounded = most && !most->zero();
        any = any || wants || bounded;
        // A request that is not given is the limit.
        guaranteed = guaranteed && bounded && (request == nullptr || (want && *want == *most));
      }
    }
  }
  if (!any) return "BestEffort";
  return guaranteed ? "Guaranteed" : "Burstable";
}

}  // namespace skiff::api
