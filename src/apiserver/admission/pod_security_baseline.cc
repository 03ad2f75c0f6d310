// What the baseline level forbids: ways out of the container that nearly nobody needs.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "apiserver/admission/pod_security.h"
#include "base/strings.h"

namespace skiff::apiserver::pod_security {
namespace {

constexpr std::string_view kAppArmorPrefix = "container.apparmor.security.beta.kubernetes.io/";
constexpr std::string_view kSeccompPod = "seccomp.security.alpha.kubernetes.io/pod";
constexpr std::string_view kSeccompPrefix = "container.seccomp.security.alpha.kubernetes.io/";

Finding app_armor(const Pod& pod) {
  std::set<std::string> values;
  const auto bad = [&](const json::value& owner) {
    const json::value* profile = json::find(owner, {"securityContext", "appArmorProfile"});
    if (profile == nullptr || profile->is_null()) return false;
    const std::string_view type = json::get_string(*profile, {"type"});
    if (type == "RuntimeDefault" || type == "Localhost") return false;
    values.emplace(type);
    return true;
  };
  const bool whole = bad(pod.spec);
  Names containers;
  for (const json::value* c : pod.containers) {
    if (bad(*c)) containers.push_back(name_of(c));
  }
  std::set<std::string> annotations;
  for (const auto& [key, value] : json::get_object(pod.metadata, {"annotations"})) {
    if (!std::string_view(key).starts_with(kAppArmorPrefix) || !value.is_string()) continue;
    const std::string_view profile = json::view(value.get_string());
    if (profile.empty() || profile == "runtime/default" || profile.starts_with("localhost/")) {
      continue;
    }
    annotations.insert(fmt::format("{}={}", std::string_view(key), json::serialize(value)));
  }
  Names all = sorted(values);
  all.insert(all.end(), annotations.begin(), annotations.end());
  if (all.empty()) return {};
  std::string who = setters(whole, containers);
  if (!annotations.empty()) {
    if (!who.empty()) who += " and ";
    who += plural("annotation", "annotations", annotations.size());
  }
  return {
      std::string(plural("forbidden AppArmor profile", "forbidden AppArmor profiles", all.size())),
      fmt::format("{} must not set AppArmor profile type to {}", who, quoted(all))};
}

Finding baseline_capabilities(const Pod& pod) {
  static const std::set<std::string, std::less<>> kAllowed{
      "AUDIT_WRITE",      "CHOWN",   "DAC_OVERRIDE", "FOWNER",  "FSETID", "KILL",      "MKNOD",
      "NET_BIND_SERVICE", "SETFCAP", "SETGID",       "SETPCAP", "SETUID", "SYS_CHROOT"};
  Names containers;
  std::set<std::string> values;
  for (const json::value* c : pod.containers) {
    bool valid = true;
    for (const std::string& added :
         json::strings(json::get_array(*c, {"securityContext", "capabilities", "add"}))) {
      if (kAllowed.contains(added)) continue;
      valid = false;
      values.insert(added);
    }
    if (!valid) containers.push_back(name_of(c));
  }
  if (containers.empty()) return {};
  return {"non-default capabilities",
          fmt::format("{} must not include {} in securityContext.capabilities.add",
                      named("container", containers), quoted(sorted(values)))};
}

Finding host_namespaces(const Pod& pod) {
  Names used;
  for (std::string_view field : {"hostNetwork", "hostPID", "hostIPC"}) {
    if (json::get_bool(pod.spec, {field}).value_or(false)) {
      used.push_back(fmt::format("{}=true", field));
    }
  }
  if (used.empty()) return {};
  return {"host namespaces", join(used, ", ")};
}

Finding host_paths(const Pod& pod) {
  Names volumes;
  for (const json::value& volume : json::get_array(pod.spec, {"volumes"})) {
    const json::value* path = json::find(volume, {"hostPath"});
    if (path != nullptr && !path->is_null()) volumes.push_back(name_of(&volume));
  }
  if (volumes.empty()) return {};
  return {"hostPath volumes", named("volume", volumes)};
}

Finding host_ports(const Pod& pod) {
  Names containers;
  std::set<std::string> ports;
  for (const json::value* c : pod.containers) {
    bool valid = true;
    for (const json::value& port : json::get_array(*c, {"ports"})) {
      const std::int64_t number = json::get_int(port, {"hostPort"}).value_or(0);
      if (number == 0) continue;
      valid = false;
      ports.insert(std::to_string(number));
    }
    if (!valid) containers.push_back(name_of(c));
  }
  if (containers.empty()) return {};
  return {"hostPort",
          fmt::format("{} {} {} {}", named("container", containers),
                      plural("uses", "use", containers.size()),
                      plural("hostPort", "hostPorts", ports.size()), join(sorted(ports), ", "))};
}

Finding host_probes(const Pod& pod) {
  std::set<std::string> containers, hosts;
  for (const json::value* c : pod.containers) {
    for (const auto& path : {std::initializer_list<std::string_view>{"livenessProbe"},
                             {"readinessProbe"},
                             {"startupProbe"},
                             {"lifecycle", "postStart"},
                             {"lifecycle", "preStop"}}) {
      const json::value* handler = json::find(*c, path);
      if (handler == nullptr) continue;
      for (std::string_view type : {"httpGet", "tcpSocket"}) {
        const std::string_view host = json::get_string(*handler, {type, "host"});
        if (host.empty()) continue;
        containers.insert(name_of(c));
        hosts.emplace(host);
      }
    }
  }
  if (containers.empty()) return {};
  return {"probe or lifecycle host",
          fmt::format("{} {} {} {}", named("container", sorted(containers)),
                      plural("uses", "use", containers.size()),
                      plural("probe or lifecycle host", "probe or lifecycle hosts", hosts.size()),
                      quoted(sorted(hosts)))};
}

Finding privileged(const Pod& pod) {
  Names containers;
  for (const json::value* c : pod.containers) {
    if (json::get_bool(*c, {"securityContext", "privileged"}).value_or(false)) {
      containers.push_back(name_of(c));
    }
  }
  if (containers.empty()) return {};
  return {"privileged", fmt::format("{} must not set securityContext.privileged=true",
                                    named("container", containers))};
}

Finding proc_mount(const Pod& pod) {
  Names containers;
  std::set<std::string> values;
  for (const json::value* c : pod.containers) {
    const std::string_view type = json::get_string(*c, {"securityContext", "procMount"}, "Default");
    if (type == "Default") continue;
    containers.push_back(name_of(c));
    values.emplace(type);
  }
  if (containers.empty()) return {};
  return {"procMount", fmt::format("{} must not set securityContext.procMount to {}",
                                   named("container", containers), quoted(sorted(values)))};
}

Finding se_linux(const Pod& pod, bool engine_type) {
  std::set<std::string> types;
  bool user = false, role = false;
  const auto bad = [&](const json::value& owner) {
    const json::value* options = json::find(owner, {"securityContext", "seLinuxOptions"});
    if (options == nullptr || options->is_null()) return false;
    const std::string_view type = json::get_string(*options, {"type"});
    const bool known = type.empty() || type == "container_t" || type == "container_init_t" ||
                       type == "container_kvm_t" || (engine_type && type == "container_engine_t");
    if (!known) types.emplace(type);
    const bool sets_user = !json::get_string(*options, {"user"}).empty();
    const bool sets_role = !json::get_string(*options, {"role"}).empty();
    user = user || sets_user;
    role = role || sets_role;
    return !known || sets_user || sets_role;
  };
  const bool whole = bad(pod.spec);
  Names containers;
  for (const json::value* c : pod.containers) {
    if (bad(*c)) containers.push_back(name_of(c));
  }
  if (!whole && containers.empty()) return {};
  std::vector<std::string> what;
  if (!types.empty()) what.push_back(named("type", sorted(types)));
  if (user) what.emplace_back("user may not be set");
  if (role) what.emplace_back("role may not be set");
  return {"seLinuxOptions", fmt::format("{} set forbidden securityContext.seLinuxOptions: {}",
                                        setters(whole, containers), join(what, "; "))};
}

Finding seccomp_annotations(const Pod& pod) {
  std::set<std::string> bad;
  const auto look = [&](const std::string& key) {
    const json::value* value = json::find(pod.metadata, {"annotations", key});
    if (value == nullptr || !value->is_string()) return;
    const std::string_view profile = json::view(value->get_string());
    if (profile == "runtime/default" || profile == "docker/default" ||
        profile.starts_with("localhost/")) {
      return;
    }
    bad.insert(fmt::format("{}={}", key, json::serialize(*value)));
  };
  look(std::string(kSeccompPod));
  for (const json::value* c : pod.containers) look(std::string(kSeccompPrefix) + name_of(c));
  if (bad.empty()) return {};
  return {"seccompProfile",
          fmt::format("forbidden {} {}", plural("annotation", "annotations", bad.size()),
                      join(sorted(bad), ", "))};
}

Finding baseline_seccomp(const Pod& pod) {
  std::set<std::string> values;
  const auto bad = [&](const json::value& owner) {
    const json::value* profile = json::find(owner, {"securityContext", "seccompProfile"});
    if (profile == nullptr || profile->is_null()) return false;
    const std::string_view type = json::get_string(*profile, {"type"});
    if (type == "RuntimeDefault" || type == "Localhost") return false;
    values.emplace(type);
    return true;
  };
  const bool whole = bad(pod.spec);
  Names containers;
  for (const json::value* c : pod.containers) {
    if (bad(*c)) containers.push_back(name_of(c));
  }
  if (values.empty()) return {};
  return {"seccompProfile", fmt::format("{} must not set securityContext.seccompProfile.type to {}",
                                        setters(whole, containers), quoted(sorted(values)))};
}

Finding sysctls(const Pod& pod, int minor) {
  struct Safe {
    std::string_view name;
    int since;
  };
  constexpr Safe kSafe[] = {{"kernel.shm_rmid_forced", 0},
                            {"net.ipv4.ip_local_port_range", 0},
                            {"net.ipv4.tcp_syncookies", 0},
                            {"net.ipv4.ping_group_range", 0},
                            {"net.ipv4.ip_unprivileged_port_start", 0},
                            {"net.ipv4.ip_local_reserved_ports", 27},
                            {"net.ipv4.tcp_keepalive_time", 29},
                            {"net.ipv4.tcp_fin_timeout", 29},
                            {"net.ipv4.tcp_keepalive_intvl", 29},
                            {"net.ipv4.tcp_keepalive_probes", 29},
                            {"net.ipv4.tcp_rmem", 32},
                            {"net.ipv4.tcp_wmem", 32}};
  Names bad;
  for (const json::value& sysctl : json::get_array(pod.spec, {"securityContext", "sysctls"})) {
    const std::string_view name = json::get_string(sysctl, {"name"});
    const bool safe = std::ranges::any_of(
        kSafe, [&](const Safe& s) { return s.name == name && s.since <= minor; });
    if (!safe) bad.emplace_back(name);
  }
  if (bad.empty()) return {};
  return {"forbidden sysctls", join(bad, ", ")};
}

Finding windows_host_process(const Pod& pod) {
  const auto bad = [](const json::value& owner) {
    return json::get_bool(owner, {"securityContext", "windowsOptions", "hostProcess"})
        .value_or(false);
  };
  Names containers;
  for (const json::value* c : pod.containers) {
    if (bad(*c)) containers.push_back(name_of(c));
  }
  const bool whole = bad(pod.spec);
  if (!whole && containers.empty()) return {};
  return {"hostProcess", fmt::format("{} must not set securityContext.windowsOptions.hostProcess="
                                     "true",
                                     setters(whole, containers))};
}

}  // namespace

const std::vector<Check>& baseline_checks() {
  static const std::vector<Check> kChecks{
      {"appArmorProfile", {{0, app_armor}}},
      {"capabilities_baseline", {{0, baseline_capabilities}}},
      {"hostNamespaces", {{0, host_namespaces}}},
      {"hostPathVolumes", {{0, host_paths}}},
      {"hostPorts", {{0, host_ports}}},
      {"hostProbesAndHostLifecycle", {{34, host_probes}}},
      {"privileged", {{0, privileged}}},
      {"procMount", {{0, proc_mount}}},
      {"seLinuxOptions",
       {{0, [](const Pod& p) { return se_linux(p, false); }},
        {31, [](const Pod& p) { return se_linux(p, true); }}}},
      {"seccompProfile_baseline", {{0, seccomp_annotations}, {19, baseline_seccomp}}},
      {"sysctls",
       {{0, [](const Pod& p) { return sysctls(p, 0); }},
        {27, [](const Pod& p) { return sysctls(p, 27); }},
        {29, [](const Pod& p) { return sysctls(p, 29); }},
        {32, [](const Pod& p) { return sysctls(p, 32); }}}},
      {"windowsHostProcess", {{0, windows_host_process}}}};
  return kChecks;
}

}  // namespace skiff::apiserver::pod_security
