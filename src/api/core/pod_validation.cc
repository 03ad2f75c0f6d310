// The rules of a pod spec, in the order in which a real server tells them.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "api/core/pod.h"
#include "api/core/pod_checks.h"
#include "api/meta.h"
#include "base/strings.h"

namespace skiff::api {
namespace {

using schema::child;
using schema::entry;

constexpr std::string_view kDeletionCost = "controller.kubernetes.io/pod-deletion-cost";

void check_host_network_ports(const json::value& spec, bool is_pod, const std::string& path,
                              Rules& rules) {
  if (!json::get_bool(spec, {"hostNetwork"}).value_or(false)) return;
  const json::array& containers = json::get_array(spec, {"containers"});
  for (std::size_t c = 0; c < containers.size(); ++c) {
    const json::array& ports = json::get_array(containers[c], {"ports"});
    for (std::size_t i = 0; i < ports.size(); ++i) {
      const std::int64_t host = json::get_int(ports[i], {"hostPort"}).value_or(0);
      const std::int64_t inside = json::get_int(ports[i], {"containerPort"}).value_or(0);
      if (host == inside || (!is_pod && host == 0)) continue;
      rules.say(schema::invalid(
          child(child(child(child(child(path, "containers"), c), "ports"), i), "hostPort"), host,
          "must match `containerPort` when `hostNetwork` is true"));
    }
  }
}

void check_dns(const json::value& spec, const std::string& path, Rules& rules) {
  const json::value* config = present(spec, {"dnsConfig"});
  const bool none = json::get_string(spec, {"dnsPolicy"}) == "None";
  if (none && config == nullptr) {
    rules.say(schema::required(path, "must provide `dnsConfig` when `dnsPolicy` is None"));
    return;
  }
  if (config == nullptr) return;
  const std::vector<std::string> servers = json::strings(json::get_array(*config, {"nameservers"}));
  if (none && servers.empty()) {
    rules.say(
        schema::required(child(path, "nameservers"),
                         "must provide at least one DNS nameserver when `dnsPolicy` is None"));
    return;
  }
  if (servers.size() > 3) {
    rules.say(schema::invalid(child(path, "nameservers"), json::get_array(*config, {"nameservers"}),
                              "must not have more than 3 nameservers"));
  }
  for (std::size_t i = 0; i < servers.size(); ++i) {
    rules.ip(child(child(path, "nameservers"), i), servers[i]);
  }
  const json::array& searches = json::get_array(*config, {"searches"});
  if (searches.size() > 32) {
    rules.say(schema::invalid(child(path, "searches"), searches,
                              "must not have more than 32 search paths"));
  }
  const std::vector<std::string> domains = json::strings(searches);
  constexpr std::size_t kMostCharacters = 2048;
  if (join(domains, " ").size() > kMostCharacters) {
    rules.say(schema::invalid(
        child(path, "searches"), searches,
        "must not have more than 2048 characters (including spaces) in the search list"));
  }
  for (std::size_t i = 0; i < domains.size(); ++i) {
    std::string_view domain = domains[i];
    if (domain == ".") continue;
    if (domain.ends_with('.')) domain.remove_suffix(1);
    rules.called(child(child(path, "searches"), i), domain, names::check_search_domain(domain));
  }
  const json::array& options = json::get_array(*config, {"options"});
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (json::get_string(options[i], {"name"}).empty()) {
      rules.say(schema::required(child(child(path, "options"), i), "must not be empty"));
    }
  }
}

void check_gates(const json::value& spec, const std::string& path, Rules& rules) {
  const json::array& ready = json::get_array(spec, {"readinessGates"});
  for (std::size_t i = 0; i < ready.size(); ++i) {
    const std::string_view type = json::get_string(ready[i], {"conditionType"});
    rules.called(child(child(child(path, "readinessGates"), i), "conditionType"), type,
                 names::check_label_key(type));
  }
  std::set<std::string_view> seen;
  const json::array& gates = json::get_array(spec, {"schedulingGates"});
  for (std::size_t i = 0; i < gates.size(); ++i) {
    const std::string at = child(child(path, "schedulingGates"), i);
    const std::string_view name = json::get_string(gates[i], {"name"});
    rules.called(at, name, names::check_label_key(name));
    if (!seen.insert(name).second) rules.say(schema::duplicate(at, json::string(name)));
  }
}

void check_host_users(const json::value& spec, const std::string& path, Rules& rules) {
  if (json::get_bool(spec, {"hostUsers"}).value_or(true)) return;
  for (const auto& [field, shown] :
       {std::pair{"hostNetwork", "hostNetwork"}, std::pair{"hostPID", "HostPID"},
        std::pair{"hostIPC", "HostIPC"}}) {
    if (!json::get_bool(spec, {field}).value_or(false)) continue;
    rules.say(schema::forbidden(child(path, shown), "when `hostUsers` is false"));
  }
}

using NameCheck = names::Complaints (*)(std::string_view);

void check_named_fields(const json::value& spec, const std::string& path,
                        std::initializer_list<std::pair<std::string_view, NameCheck>> fields,
                        Rules& rules) {
  for (const auto& [field, check] : fields) {
    const std::string_view text = json::get_string(spec, {field});
    if (!text.empty()) rules.called(child(path, field), text, check(text));
  }
}

void check_aliases(const json::value& spec, const std::string& path, Rules& rules) {
  const json::array& aliases = json::get_array(spec, {"hostAliases"});
  for (std::size_t i = 0; i < aliases.size(); ++i) {
    const std::string at = child(path, i);
    rules.ip(child(at, "ip"), json::get_string(aliases[i], {"ip"}));
    const std::vector<std::string> hosts =
        json::strings(json::get_array(aliases[i], {"hostnames"}));
    for (std::size_t k = 0; k < hosts.size(); ++k) {
      rules.called(child(child(at, "hostnames"), k), hosts[k],
                   names::check_dns1123_subdomain(hosts[k]));
    }
  }
}

void check_tail(const json::value& spec, const std::string& path, Rules& rules) {
  check_named_fields(spec, path,
                     {{"serviceAccountName", names::check_dns1123_subdomain},
                      {"nodeName", names::check_dns1123_subdomain}},
                     rules);
  const auto deadline = json::get_int(spec, {"activeDeadlineSeconds"});
  if (deadline && (*deadline < 1 || *deadline > INT32_MAX)) {
    rules.say(schema::invalid(child(path, "activeDeadlineSeconds"), *deadline,
                              "must be between 1 and 2147483647, inclusive"));
  }
  check_named_fields(
      spec, path,
      {{"hostname", names::check_dns1123_label}, {"subdomain", names::check_dns1123_label}}, rules);
  rules.add(
      validate_tolerations(json::get_array(spec, {"tolerations"}), child(path, "tolerations")));
  check_aliases(spec, child(path, "hostAliases"), rules);
  check_named_fields(spec, path,
                     {{"priorityClassName", names::check_dns1123_subdomain},
                      {"runtimeClassName", names::check_dns1123_subdomain}},
                     rules);
  rules.maybe_one_of(spec, path, "preemptionPolicy", {"PreemptLowerPriority", "Never"});
  if (const json::value* overhead = present(spec, {"overhead"})) {
    rules.add(validate_resources(json::object{{"limits", *overhead}}, child(path, "overhead")));
  }
  if (const json::value* os = present(spec, {"os"})) {
    if (rules.needs(*os, child(path, "os"), "name")) {
      rules.one_of(child(path, "os.name"), json::get_string(*os, {"name"}), {"linux", "windows"});
    }
  }
}

// `is_pod`: not a template, where some things are only known when the pod is made.
std::vector<Cause> check_pod_spec(const json::value& spec, const std::string& path, bool is_pod) {
  Rules rules;
  PodFacts facts{.grace_s = json::get_int(spec, {"terminationGracePeriodSeconds"}).value_or(30),
                 .host_users = json::get_bool(spec, {"hostUsers"}).value_or(true)};
  check_volumes(spec, child(path, "volumes"), facts, rules);
  check_containers(spec, path, facts, rules);
  check_host_network_ports(spec, is_pod, path, rules);
  rules.maybe_one_of(spec, path, "restartPolicy", {"Always", "OnFailure", "Never"});
  rules.maybe_one_of(spec, path, "dnsPolicy",
                     {"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"});
  rules.labels(json::get_object(spec, {"nodeSelector"}), child(path, "nodeSelector"));
  check_pod_security(spec, path, rules);
  check_affinity(spec, child(path, "affinity"), rules);
  check_dns(spec, child(path, "dnsConfig"), rules);
  check_gates(spec, path, rules);
  check_topology_spread(spec, child(path, "topologySpreadConstraints"), rules);
  check_host_users(spec, path, rules);
  check_tail(spec, path, rules);
  return rules.take();
}

void check_images(const json::value& spec, std::string_view list, Rules& rules) {
  const json::array& containers = json::get_array(spec, {list});
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const std::string_view image = json::get_string(containers[i], {"image"});
    if (trim(image).size() == image.size()) continue;
    rules.say(schema::invalid(child(child(child("spec", list), i), "image"), json::string(image),
                              "must not have leading or trailing whitespace"));
  }
}

void check_deletion_cost(const json::value& pod, Rules& rules) {
  if (json::find(pod, {"metadata", "annotations", kDeletionCost}) == nullptr) return;
  const std::string_view text = annotation(pod, kDeletionCost);
  std::int32_t cost = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, cost);
  if (error == std::errc{} && at == end) return;
  rules.say(schema::invalid(entry("metadata.annotations", kDeletionCost), json::string(text),
                            "must be a 32bit integer"));
}

void check_tokens(const json::value& spec, Rules& rules) {
  if (!json::get_string(spec, {"serviceAccountName"}).empty()) return;
  const json::array& volumes = json::get_array(spec, {"volumes"});
  for (std::size_t i = 0; i < volumes.size(); ++i) {
    const json::array& sources = json::get_array(volumes[i], {"projected", "sources"});
    for (std::size_t k = 0; k < sources.size(); ++k) {
      if (present(sources[k], {"serviceAccountToken"}) == nullptr) continue;
      rules.say(
          schema::forbidden(child(child(child(child("spec.volumes", i), "projected.sources"), k),
                                  "serviceAccountToken"),
                            "must not be specified when serviceAccountName is not set"));
    }
  }
}

}  // namespace

std::vector<Cause> validate_pod_spec(const json::value& spec, std::string_view path) {
  return check_pod_spec(spec, std::string(path), false);
}

std::vector<Cause> validate_pod(const json::value& pod) {
  static const json::value kNothing = json::object();
  const json::value* found = present(pod, {"spec"});
  const json::value& spec = found == nullptr ? kNothing : *found;
  Rules rules;
  check_deletion_cost(pod, rules);
  rules.add(check_pod_spec(spec, "spec", true));
  check_tokens(spec, rules);
  check_images(spec, "containers", rules);
  check_images(spec, "initContainers", rules);
  return rules.take();
}

std::vector<Cause> validate_pod_template(const json::value& body, const std::string& path) {
  static const json::value kNothing = json::object();
  Rules rules;
  rules.labels(json::get_object(body, {"metadata", "labels"}), child(path, "labels"));
  for (const auto& [key, value] : json::get_object(body, {"metadata", "annotations"})) {
    rules.called(child(path, "annotations"), key, names::check_label_key(lower(key)));
  }
  const json::value* spec = present(body, {"spec"});
  rules.add(check_pod_spec(spec == nullptr ? kNothing : *spec, child(path, "spec"), false));
  if (!json::get_array(body, {"spec", "ephemeralContainers"}).empty()) {
    rules.say(schema::forbidden(child(path, "spec.ephemeralContainers"),
                                "ephemeral containers not allowed in pod template"));
  }
  return rules.take();
}

}  // namespace skiff::api
