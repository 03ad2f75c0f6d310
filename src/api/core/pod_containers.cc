// Containers of all three lists.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "api/core/pod.h"
#include "api/core/pod_checks.h"
#include "api/core/resource_names.h"

namespace skiff::api {
namespace {

using schema::child;
using schema::entry;

constexpr std::string_view kOneFieldOnly = "may not have more than one field specified at a time";

// A field that defaults always fill, so that only what is there can be wrong.
void choice(const json::value& at, std::string_view path, std::string_view field,
            const std::vector<std::string>& allowed, Rules& rules) {
  rules.maybe_one_of(at, path, field, allowed);
}

void check_container_ports(const json::value& c, const std::string& path, Rules& rules) {
  std::set<std::string_view> seen;
  const json::array& ports = json::get_array(c, {"ports"});
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const std::string at = child(path, i);
    const std::string_view name = json::get_string(ports[i], {"name"});
    if (!name.empty()) {
      if (const auto bad = names::check_port_name(name); !bad.empty()) {
        rules.called(child(at, "name"), name, bad);
      } else if (!seen.insert(name).second) {
        rules.say(schema::duplicate(child(at, "name"), json::string(name)));
      }
    }
    const std::int64_t number = json::get_int(ports[i], {"containerPort"}).value_or(0);
    if (number == 0) {
      rules.say(schema::required(child(at, "containerPort")));
    } else {
      rules.port(child(at, "containerPort"), number);
    }
    const std::int64_t host = json::get_int(ports[i], {"hostPort"}).value_or(0);
    if (host != 0) rules.port(child(at, "hostPort"), host);
    choice(ports[i], at, "protocol", {"SCTP", "TCP", "UDP"}, rules);
  }
}

void check_key_ref(const json::value& ref, const std::string& path, Rules& rules) {
  const std::string_view name = json::get_string(ref, {"name"});
  rules.called(child(path, "name"), name, names::check_dns1123_subdomain(name));
  if (rules.needs(ref, path, "key")) {
    const std::string_view key = json::get_string(ref, {"key"});
    rules.called(child(path, "key"), key, names::check_config_key(key));
  }
}

void check_value_from(const json::value& env, const std::string& path, Rules& rules) {
  const json::value* from = present(env, {"valueFrom"});
  if (from == nullptr) return;
  static const std::vector<std::string> kFields = {"metadata.name",
                                                   "metadata.namespace",
                                                   "metadata.uid",
                                                   "spec.nodeName",
                                                   "spec.serviceAccountName",
                                                   "status.hostIP",
                                                   "status.hostIPs",
                                                   "status.podIP",
                                                   "status.podIPs"};
  int found = 0;
  for (const std::string_view kind :
       {"fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef"}) {
    const json::value* ref = present(*from, {kind});
    if (ref == nullptr) continue;
    ++found;
    const std::string at = child(path, kind);
    if (kind == "fieldRef") {
      check_field_ref(*ref, kFields, at, rules);
    } else if (kind == "resourceFieldRef") {
      check_resource_field_ref(*ref, false, at, rules);
    } else {
      check_key_ref(*ref, at, rules);
    }
  }
  if (found == 0) {
    rules.say(schema::invalid(path, "",
                              "must specify one of: `fieldRef`, `resourceFieldRef`, "
                              "`configMapKeyRef` or `secretKeyRef`"));
  } else if (!json::get_string(env, {"value"}).empty()) {
    rules.say(schema::invalid(path, "", "may not be specified when `value` is not empty"));
  } else if (found > 1) {
    rules.say(schema::invalid(path, "", kOneFieldOnly));
  }
}

void check_env(const json::value& c, const std::string& path, Rules& rules) {
  const json::array& env = json::get_array(c, {"env"});
  for (std::size_t i = 0; i < env.size(); ++i) {
    const std::string at = child(path, i);
    if (rules.needs(env[i], at, "name")) {
      const std::string_view name = json::get_string(env[i], {"name"});
      rules.called(child(at, "name"), name, names::check_env_name(name));
    }
    check_value_from(env[i], child(at, "valueFrom"), rules);
  }
}

void check_env_from(const json::value& c, const std::string& path, Rules& rules) {
  const json::array& list = json::get_array(c, {"envFrom"});
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string at = child(path, i);
    const std::string_view prefix = json::get_string(list[i], {"prefix"});
    if (!prefix.empty()) rules.called(child(at, "prefix"), prefix, names::check_env_name(prefix));
    int found = 0;
    for (const std::string_view kind : {"configMapRef", "secretRef"}) {
      const json::value* ref = present(list[i], {kind});
      if (ref == nullptr) continue;
      ++found;
      if (!rules.needs(*ref, child(at, kind), "name")) continue;
      const std::string_view name = json::get_string(*ref, {"name"});
      rules.called(child(child(at, kind), "name"), name, names::check_dns1123_subdomain(name));
    }
    if (found == 0) {
      rules.say(schema::invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"));
    } else if (found > 1) {
      rules.say(schema::invalid(path, "", kOneFieldOnly));
    }
  }
}

void check_mount(const json::value& mount, const json::value& c, const std::string& path,
                 const std::string& at, Rules& rules) {
  const std::string_view inside = json::get_string(mount, {"subPath"});
  const std::string_view expression = json::get_string(mount, {"subPathExpr"});
  if (!inside.empty()) check_inner_path(child(path, "subPath"), inside, rules);
  if (!expression.empty()) {
    if (!inside.empty()) {
      rules.say(schema::invalid(child(at, "subPathExpr"), json::string(expression),
                                "subPathExpr and subPath are mutually exclusive"));
    }
    check_inner_path(child(path, "subPathExpr"), expression, rules);
  }
  if (present(mount, {"mountPropagation"}) != nullptr) {
    const std::string_view mode = json::get_string(mount, {"mountPropagation"});
    rules.one_of(child(path, "mountPropagation"), mode,
                 {"Bidirectional", "HostToContainer", "None"});
    if (mode == "Bidirectional" &&
        !json::get_bool(c, {"securityContext", "privileged"}).value_or(false)) {
      rules.say(schema::forbidden(
          child(path, "mountPropagation"),
          "Bidirectional mount propagation is available only to privileged containers"));
    }
  }
}

void check_mounts(const json::value& c, const std::string& path, const PodFacts& facts,
                  Rules& rules) {
  std::set<std::string_view> places;
  const json::array& mounts = json::get_array(c, {"volumeMounts"});
  for (std::size_t i = 0; i < mounts.size(); ++i) {
    const std::string at = child(path, i);
    const std::string_view name = json::get_string(mounts[i], {"name"});
    const std::string_view place = json::get_string(mounts[i], {"mountPath"});
    rules.needs(mounts[i], at, "name");
    if (!facts.volumes.contains(name)) {
      rules.say(schema::not_found(child(at, "name"), json::string(name)));
    }
    rules.needs(mounts[i], at, "mountPath");
    if (!places.insert(place).second) {
      rules.say(schema::invalid(child(at, "mountPath"), json::string(place), "must be unique"));
    }
    for (const json::value& device : json::get_array(c, {"volumeDevices"})) {
      if (json::get_string(device, {"name"}) == name) {
        rules.say(schema::invalid(child(at, "name"), json::string(name),
                                  "must not already exist in volumeDevices"));
      }
      if (json::get_string(device, {"devicePath"}) == place) {
        rules.say(schema::invalid(child(at, "mountPath"), json::string(place),
                                  "must not already exist as a path in volumeDevices"));
      }
    }
    check_mount(mounts[i], c, path, at, rules);
  }
}

void check_devices(const json::value& c, const std::string& path, const PodFacts& facts,
                   Rules& rules) {
  std::set<std::string_view> seen_names, places;
  const json::array& devices = json::get_array(c, {"volumeDevices"});
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::string at = child(path, i);
    const std::string_view name = json::get_string(devices[i], {"name"});
    const std::string_view place = json::get_string(devices[i], {"devicePath"});
    rules.needs(devices[i], at, "name");
    if (!name.empty() && !seen_names.insert(name).second) {
      rules.say(schema::invalid(child(at, "name"), json::string(name), "must be unique"));
    }
    const auto volume = facts.volumes.find(name);
    if (volume == facts.volumes.end()) {
      rules.say(schema::not_found(child(at, "name"), json::string(name)));
    } else if (present(*volume->second, {"persistentVolumeClaim"}) == nullptr &&
               present(*volume->second, {"ephemeral"}) == nullptr) {
      rules.say(schema::invalid(child(at, "name"), json::string(name),
                                "can only use volume source type of PersistentVolumeClaim or "
                                "Ephemeral for block mode"));
    }
    rules.needs(devices[i], at, "devicePath");
    if (!places.insert(place).second) {
      rules.say(schema::invalid(child(at, "devicePath"), json::string(place), "must be unique"));
    }
  }
}

void check_common(const json::value& c, const std::string& path, const PodFacts& facts,
                  Rules& rules) {
  if (rules.needs(c, path, "name")) {
    const std::string_view name = json::get_string(c, {"name"});
    rules.called(child(path, "name"), name, names::check_dns1123_label(name));
  }
  rules.needs(c, path, "image");
  choice(c, path, "terminationMessagePolicy", {"File", "FallbackToLogsOnError"}, rules);
  check_container_ports(c, child(path, "ports"), rules);
  check_env(c, child(path, "env"), rules);
  check_env_from(c, child(path, "envFrom"), rules);
  check_mounts(c, child(path, "volumeMounts"), facts, rules);
  check_devices(c, child(path, "volumeDevices"), facts, rules);
  choice(c, path, "imagePullPolicy", {"Always", "IfNotPresent", "Never"}, rules);
  if (const json::value* resources = present(c, {"resources"})) {
    rules.add(validate_resources(*resources, child(path, "resources")));
  }
  if (const json::value* context = present(c, {"securityContext"})) {
    check_security_context(*context, child(path, "securityContext"), facts, rules);
  }
}

void check_host_ports(const json::array& containers, const std::string& path, Rules& rules) {
  std::set<std::string> seen;
  for (std::size_t c = 0; c < containers.size(); ++c) {
    const json::array& ports = json::get_array(containers[c], {"ports"});
    for (std::size_t i = 0; i < ports.size(); ++i) {
      const std::int64_t port = json::get_int(ports[i], {"hostPort"}).value_or(0);
      if (port == 0) continue;
      const std::string key = fmt::format("{}/{}/{}", json::get_string(ports[i], {"protocol"}),
                                          json::get_string(ports[i], {"hostIP"}), port);
      if (seen.insert(key).second) continue;
      rules.say(schema::duplicate(child(child(child(child(path, c), "ports"), i), "hostPort"),
                                  json::string(key)));
    }
  }
}

void check_init(const json::value& c, const std::string& path, const PodFacts& facts,
                std::set<std::string_view>& seen, Rules& rules) {
  check_common(c, path, facts, rules);
  const std::string_view name = json::get_string(c, {"name"});
  if (seen.contains(name)) {
    rules.say(schema::duplicate(child(path, "name"), json::string(name)));
  } else if (!name.empty()) {
    seen.insert(name);
  }
  if (json::get_string(c, {"restartPolicy"}) == "Always") {
    check_probes(c, path, facts, rules);
    return;
  }
  for (const std::string_view field :
       {"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"}) {
    if (present(c, {field}) == nullptr) continue;
    rules.say(schema::forbidden(child(path, field),
                                "may not be set for init containers without "
                                "restartPolicy=Always"));
  }
}

// It looks at the pod and is no part of its work. `others`: names it may look at.
void check_ephemeral(const json::value& c, const std::string& path,
                     const std::set<std::string_view>& others, Rules& rules) {
  constexpr std::string_view kNotHere = "cannot be set for an Ephemeral Container";
  const std::string_view target = json::get_string(c, {"targetContainerName"});
  if (!target.empty() && !others.contains(target)) {
    rules.say(schema::not_found(child(path, "targetContainerName"), json::string(target)));
  }
  for (const std::string_view field :
       {"ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules",
        "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"}) {
    const json::value* given = present(c, {field});
    // Clients write resources even where there are none.
    const bool blank = field == "resources" && json::get_object(c, {field}).empty();
    if (given != nullptr && !blank) rules.say(schema::forbidden(child(path, field), kNotHere));
  }
  const json::array& mounts = json::get_array(c, {"volumeMounts"});
  for (std::size_t i = 0; i < mounts.size(); ++i) {
    const std::string at = child(child(path, "volumeMounts"), i);
    for (const std::string_view field : {"subPath", "subPathExpr"}) {
      if (json::get_string(mounts[i], {field}).empty()) continue;
      rules.say(schema::forbidden(child(at, field), kNotHere));
    }
  }
}

}  // namespace

void check_containers(const json::value& spec, const std::string& path, const PodFacts& facts,
                      Rules& rules) {
  const json::array& containers = json::get_array(spec, {"containers"});
  const std::string list = child(path, "containers");
  std::set<std::string_view> seen;
  if (containers.empty()) rules.say(schema::required(list));
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const std::string at = child(list, i);
    check_common(containers[i], at, facts, rules);
    const std::string_view name = json::get_string(containers[i], {"name"});
    if (!seen.insert(name).second) {
      rules.say(schema::duplicate(child(at, "name"), json::string(name)));
    }
    check_probes(containers[i], at, facts, rules);
  }
  check_host_ports(containers, list, rules);
  const json::array& init = json::get_array(spec, {"initContainers"});
  for (std::size_t i = 0; i < init.size(); ++i) {
    check_init(init[i], child(child(path, "initContainers"), i), facts, seen, rules);
  }
  const std::set<std::string_view> others = seen;
  const json::array& ephemeral = json::get_array(spec, {"ephemeralContainers"});
  for (std::size_t i = 0; i < ephemeral.size(); ++i) {
    const std::string at = child(child(path, "ephemeralContainers"), i);
    check_common(ephemeral[i], at, facts, rules);
    const std::string_view name = json::get_string(ephemeral[i], {"name"});
    if (!seen.insert(name).second) {
      rules.say(schema::duplicate(child(at, "name"), json::string(name)));
    }
    check_ephemeral(ephemeral[i], at, others, rules);
  }
}

std::vector<Cause> validate_resources(const json::value& resources, const std::string& path) {
  Rules rules;
  const json::object& limits = json::get_object(resources, {"limits"});
  const json::object& requests = json::get_object(resources, {"requests"});
  const std::string limits_path = child(path, "limits"), requests_path = child(path, "requests");
  bool compute = false, pages = false;
  const auto check_one = [&](std::string_view name, const json::value& amount,
                             const std::string& at) {
    check_container_resource_name(name, at, rules);
    check_quota_amount(name, amount, at, rules);
    compute = compute || name == "cpu" || name == "memory";
    pages = pages || huge_pages(name);
  };
  for (const auto& [name, amount] : limits) {
    check_one(name, amount, entry(limits_path, std::string_view(name)));
  }
  for (const auto& [name, amount] : requests) {
    check_one(name, amount, entry(requests_path, std::string_view(name)));
    const Quantity want = quantity_of(amount);
    const json::value* limit = limits.if_contains(name);
    const bool flexible = overcommit_allowed(name);
    const std::string_view called = name;
    if (limit == nullptr) {
      if (!flexible) {
        rules.say(
            schema::required(limits_path, "Limit must be set for non overcommitable resources"));
      }
    } else if (const Quantity most = quantity_of(*limit); want != most && !flexible) {
      rules.say(
          schema::invalid(requests_path, json::string(want.text()),
                          fmt::format("must be equal to {} limit of {}", called, most.text())));
    } else if (want > most) {
      rules.say(schema::invalid(
          requests_path, json::string(want.text()),
          fmt::format("must be less than or equal to {} limit of {}", called, most.text())));
    }
  }
  if (pages && !compute) rules.say(schema::forbidden(path, "HugePages require cpu or memory"));
  return rules.take();
}

}  // namespace skiff::api
