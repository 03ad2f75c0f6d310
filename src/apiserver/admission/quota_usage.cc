#include "apiserver/admission/quota_usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "api/core/pod.h"
#include "api/meta.h"
#include "base/strings.h"

namespace skiff::apiserver::quota {
namespace {

constexpr std::string_view kClaims = "persistentvolumeclaims";
constexpr std::string_view kClassSuffix = ".storageclass.storage.k8s.io/";
constexpr std::string_view kPodNames[] = {"count/pods",
                                          "cpu",
                                          "memory",
                                          "ephemeral-storage",
                                          "requests.cpu",
                                          "requests.memory",
                                          "requests.ephemeral-storage",
                                          "limits.cpu",
                                          "limits.memory",
                                          "limits.ephemeral-storage",
                                          "pods"};
constexpr std::string_view kServiceNames[] = {"count/services", "services", "services.nodeports",
                                              "services.loadbalancers"};
// Kinds whose plain name counts too, from before count/ was there.
constexpr std::string_view kPlainNames[] = {"configmaps", "resourcequotas",
                                            "replicationcontrollers", "secrets"};

bool one_of(std::string_view word, const auto& list) { return std::ranges::count(list, word) > 0; }

bool native(std::string_view resource) {
  return resource.find('/') == std::string_view::npos ||
         resource.find("kubernetes.io/") != std::string_view::npos;
}

// nvidia.com/gpu, but not hugepages or what Kubernetes itself names.
bool extended(std::string_view resource) {
  return !native(resource) && !resource.starts_with("requests.");
}

bool pod_name(std::string_view name) {
  if (one_of(name, kPodNames)) return true;
  if (name.starts_with("hugepages-") || name.starts_with("requests.hugepages-")) return true;
  return name.starts_with("requests.") && !native(name);
}

bool claim_name(std::string_view name) {
  return name == "count/persistentvolumeclaims" || name == kClaims || name == "requests.storage" ||
         name.ends_with(std::string(kClassSuffix) + std::string(kClaims)) ||
         name.ends_with(std::string(kClassSuffix) + "requests.storage");
}

bool name_fits(std::string_view resource, std::string_view name) {
  if (resource == "pods") return pod_name(name);
  if (resource == "services") return one_of(name, kServiceNames);
  if (resource == kClaims) return claim_name(name);
  return name == "count/" + std::string(resource) ||
         (name == resource && one_of(resource, kPlainNames));
}

Amounts compute(const Amounts& requests, const Amounts& limits) {
  Amounts out{{"pods", Quantity::of(1)}};
  for (const auto& [name, quantity] : requests) {
    const bool plain = name == "cpu" || name == "memory" || name == "ephemeral-storage";
    if (plain || name.starts_with("hugepages-")) out[name] = quantity;
    if (plain || name.starts_with("hugepages-") || extended(name)) {
      out["requests." + name] = quantity;
    }
  }
  for (const auto& [name, quantity] : limits) {
    if (name == "cpu" || name == "memory" || name == "ephemeral-storage") {
      out["limits." + name] = quantity;
    }
  }
  return out;
}

// It has ended, or should have: then it holds nothing that others wait for.
bool over(const json::value& pod, Time now) {
  const std::string_view phase = json::get_string(pod, {"status", "phase"});
  if (phase == "Failed" || phase == "Succeeded") return true;
  const auto end = api::time_at(pod, {"metadata", "deletionTimestamp"});
  const auto grace = json::get_int(pod, {"metadata", "deletionGracePeriodSeconds"});
  return end && grace && now > *end + std::chrono::seconds(*grace);
}

Amounts pod_usage(const json::value& pod, Time now) {
  Amounts out{{"count/pods", Quantity::of(1)}};
  const json::value* spec = json::find(pod, {"spec"});
  if (spec == nullptr || over(pod, now)) return out;
  add(out, compute(pod_amounts(*spec, Side::kRequests, Overhead::kWith),
                   pod_amounts(*spec, Side::kLimits, Overhead::kWith)));
  return out;
}

Amounts service_usage(const json::value& service) {
  const json::array& ports = json::get_array(service, {"spec", "ports"});
  const std::string_view type = json::get_string(service, {"spec", "type"});
  std::int64_t node_ports = 0;
  const bool suppressed =
      json::get_bool(service, {"spec", "allocateLoadBalancerNodePorts"}) == false;
  if (type == "NodePort" || (type == "LoadBalancer" && !suppressed)) {
    node_ports = static_cast<std::int64_t>(ports.size());
  } else if (type == "LoadBalancer") {
    node_ports = std::ranges::count_if(ports, [](const json::value& port) {
      return json::get_int(port, {"nodePort"}).value_or(0) != 0;
    });
  }
  return {{"count/services", Quantity::of(1)},
          {"services", Quantity::of(1)},
          {"services.loadbalancers", Quantity::of(type == "LoadBalancer" ? 1 : 0)},
          {"services.nodeports", Quantity::of(node_ports)}};
}

Amounts claim_usage(const json::value& claim) {
  Amounts out{{"count/persistentvolumeclaims", Quantity::of(1)},
              {std::string(kClaims), Quantity::of(1)}};
  std::string_view name = api::annotation(claim, "volume.beta.kubernetes.io/storage-class");
  if (name.empty()) name = json::get_string(claim, {"spec", "storageClassName"});
  const std::string prefix = std::string(name) + std::string(kClassSuffix);
  if (!name.empty()) out[prefix + std::string(kClaims)] = Quantity::of(1);
  Amounts storage = read_amounts(json::get_object(claim, {"spec", "resources", "requests"}));
  if (!storage.contains("storage")) return out;
  raise(storage, read_amounts(json::get_object(claim, {"status", "allocatedResources"})));
  out["requests.storage"] = storage["storage"];
  if (!name.empty()) out[prefix + "requests.storage"] = storage["storage"];
  return out;
}

bool affine_elsewhere(const json::value& pod) {
  const auto crosses = [](const json::value& term) {
    const json::value* selector = json::find(term, {"namespaceSelector"});
    return !json::get_array(term, {"namespaces"}).empty() ||
           (selector != nullptr && !selector->is_null());
  };
  for (std::string_view kind : {"podAffinity", "podAntiAffinity"}) {
    for (const json::value& term : json::get_array(
             pod, {"spec", "affinity", kind, "requiredDuringSchedulingIgnoredDuringExecution"})) {
      if (crosses(term)) return true;
    }
    for (const json::value& term : json::get_array(
             pod, {"spec", "affinity", kind, "preferredDuringSchedulingIgnoredDuringExecution"})) {
      const json::value* inner = json::find(term, {"podAffinityTerm"});
      if (inner != nullptr && crosses(*inner)) return true;
    }
  }
  return false;
}

// `names` are what the object has for the scope: its priority class, its volume attributes classes.
bool selected(const json::value& selector, const std::set<std::string>& names) {
  const std::string_view op = json::get_string(selector, {"operator"}, "Exists");
  if (op == "Exists") return !names.empty();
  if (op == "DoesNotExist") return names.empty();
  const bool listed =
      std::ranges::any_of(json::strings(json::get_array(selector, {"values"})),
                          [&](const std::string& value) { return names.contains(value); });
  return op == "In" ? listed : !listed;
}

bool pod_in_scope(std::string_view scope, const json::value& selector, const json::value& pod) {
  const bool bounded = json::get_int(pod, {"spec", "activeDeadlineSeconds"}).value_or(-1) >= 0;
  const json::value* spec = json::find(pod, {"spec"});
  const bool best_effort = spec == nullptr || api::qos_class(*spec) == "BestEffort";
  if (scope == "Terminating") return bounded;
  if (scope == "NotTerminating") return !bounded;
  if (scope == "BestEffort") return best_effort;
  if (scope == "NotBestEffort") return !best_effort;
  if (scope == "CrossNamespacePodAffinity") return affine_elsewhere(pod);
  if (scope != "PriorityClass") return false;
  std::set<std::string> names;
  const std::string name(json::get_string(pod, {"spec", "priorityClassName"}));
  if (!name.empty()) names.insert(name);
  return selected(selector, names);
}

bool claim_in_scope(std::string_view scope, const json::value& selector, const json::value& claim) {
  if (scope != "VolumeAttributesClass") return false;
  std::set<std::string> names{
      std::string(json::get_string(claim, {"spec", "volumeAttributesClassName"})),
      std::string(json::get_string(claim, {"status", "currentVolumeAttributesClassName"})),
      std::string(json::get_string(
          claim, {"status", "modifyVolumeStatus", "targetVolumeAttributesClassName"}))};
  names.erase("");
  return selected(selector, names);
}

}  // namespace

Amounts usage(std::string_view resource, const json::value& object, Time now) {
  if (resource == "pods") return pod_usage(object, now);
  if (resource == "services") return service_usage(object);
  if (resource == kClaims) return claim_usage(object);
  Amounts out{{"count/" + std::string(resource), Quantity::of(1)}};
  if (one_of(resource, kPlainNames)) out[std::string(resource)] = Quantity::of(1);
  return out;
}

std::vector<std::string> names_for(std::string_view resource, const Amounts& hard) {
  std::vector<std::string> out;
  for (const auto& [name, quantity] : hard) {
    if (name_fits(resource, name)) out.push_back(name);
  }
  return out;
}

std::vector<std::string> resources_for(std::string_view name) {
  for (std::string_view resource :
       {std::string_view("pods"), std::string_view("services"), kClaims}) {
    if (name_fits(resource, name)) return {std::string(resource)};
  }
  if (name.starts_with("count/")) return {std::string(name.substr(6))};
  if (one_of(name, kPlainNames)) return {std::string(name)};
  return {};
}

bool in_scope(const json::value& quota, std::string_view resource, const json::value& object) {
  const auto holds = [&](std::string_view scope, const json::value& selector) {
    if (resource == "pods") return pod_in_scope(scope, selector, object);
    if (resource == kClaims) return claim_in_scope(scope, selector, object);
    return false;
  };
  static const json::value kExists = json::object();
  for (const std::string& scope : json::strings(json::get_array(quota, {"spec", "scopes"}))) {
    if (!holds(scope, kExists)) return false;
  }
  for (const json::value& selector :
       json::get_array(quota, {"spec", "scopeSelector", "matchExpressions"})) {
    if (!holds(json::get_string(selector, {"scopeName"}), selector)) return false;
  }
  return true;
}

std::string missing(const std::vector<std::string>& names, const json::value& pod) {
  // Said once for the whole pod is enough.
  for (std::string_view side : {"requests", "limits"}) {
    for (const auto& [name, value] : json::get_object(pod, {"spec", "resources", side})) {
      if (name == "cpu" || name == "memory") return {};
    }
  }
  constexpr std::string_view kMustSay[] = {"cpu",    "limits.cpu",   "limits.memory",
                                           "memory", "requests.cpu", "requests.memory"};
  std::vector<std::string> sentences;
  for (std::string_view name : kMustSay) {
    if (!one_of(name, names)) continue;
    std::set<std::string> silent;
    for (std::string_view field : {"containers", "initContainers"}) {
      for (const json::value& container : json::get_array(pod, {"spec", field})) {
        const Amounts own =
            compute(read_amounts(json::get_object(container, {"resources", "requests"})),
                    read_amounts(json::get_object(container, {"resources", "limits"})));
        if (!own.contains(name)) silent.emplace(json::get_string(container, {"name"}));
      }
    }
    if (silent.empty()) continue;
    sentences.push_back(fmt::format("{} for: {}", name, join({silent.begin(), silent.end()}, ",")));
  }
  return sentences.empty() ? "" : "must specify " + join(sentences, "; ");
}

}  // namespace skiff::apiserver::quota
