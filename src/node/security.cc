#include "node/security.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "api/meta.h"
#include "base/quantity.h"
#include "node/capabilities.h"
#include "node/pod_plan.h"

namespace skiff::node {
namespace {

// In the order of their numbers.
constexpr std::array<std::string_view, 41> kNames = {"CHOWN",
                                                     "DAC_OVERRIDE",
                                                     "DAC_READ_SEARCH",
                                                     "FOWNER",
                                                     "FSETID",
                                                     "KILL",
                                                     "SETGID",
                                                     "SETUID",
                                                     "SETPCAP",
                                                     "LINUX_IMMUTABLE",
                                                     "NET_BIND_SERVICE",
                                                     "NET_BROADCAST",
                                                     "NET_ADMIN",
                                                     "NET_RAW",
                                                     "IPC_LOCK",
                                                     "IPC_OWNER",
                                                     "SYS_MODULE",
                                                     "SYS_RAWIO",
                                                     "SYS_CHROOT",
                                                     "SYS_PTRACE",
                                                     "SYS_PACCT",
                                                     "SYS_ADMIN",
                                                     "SYS_BOOT",
                                                     "SYS_NICE",
                                                     "SYS_RESOURCE",
                                                     "SYS_TIME",
                                                     "SYS_TTY_CONFIG",
                                                     "MKNOD",
                                                     "LEASE",
                                                     "AUDIT_WRITE",
                                                     "AUDIT_CONTROL",
                                                     "SETFCAP",
                                                     "MAC_OVERRIDE",
                                                     "MAC_ADMIN",
                                                     "SYSLOG",
                                                     "WAKE_ALARM",
                                                     "BLOCK_SUSPEND",
                                                     "AUDIT_READ",
                                                     "PERFMON",
                                                     "BPF",
                                                     "CHECKPOINT_RESTORE"};
static_assert(kNames.size() == CAP_LAST_CAP + 1);

// Kubelet's numbers.
constexpr std::int64_t kGuaranteedScore = -997;
constexpr std::int64_t kBestEffortScore = 1000;

std::expected<void, Refusal> check_root(const json::value& pod, const json::value& container,
                                        bool by_pod, int uid) {
  auto wanted = json::get_bool(container, {"securityContext", "runAsNonRoot"});
  if (!wanted) wanted = json::get_bool(pod, {"spec", "securityContext", "runAsNonRoot"});
  if (!wanted.value_or(false) || uid != 0) return {};
  return std::unexpected(
      Refusal{"CreateContainerConfigError",
              fmt::format("{} (pod: \"{}_{}({})\", container: {})",
                          by_pod ? "container's runAsUser breaks non-root policy"
                                 : "container has runAsNonRoot and image will run as root",
                          api::name(pod), api::ns(pod), api::uid(pod),
                          json::get_string(container, {"name"}))});
}

// "ALL" first, then names, and what is dropped by name is dropped. A name that this kernel does not
// have gives and takes nothing.
Capabilities capabilities_of(const json::value& container) {
  if (json::get_bool(container, {"securityContext", "privileged"}).value_or(false)) {
    return kAllCapabilities;
  }
  Capabilities out = kDefaultCapabilities;
  const auto add =
      json::strings(json::get_array(container, {"securityContext", "capabilities", "add"}));
  const auto drop =
      json::strings(json::get_array(container, {"securityContext", "capabilities", "drop"}));
  const auto all = [](const std::string& name) { return name == "ALL" || name == "all"; };
  if (std::any_of(add.begin(), add.end(), all)) out = kAllCapabilities;
  if (std::any_of(drop.begin(), drop.end(), all)) out = 0;
  for (const std::string& name : add) out |= capability_named(name);
  for (const std::string& name : drop) out &= ~capability_named(name);
  return out;
}

std::int64_t requested_memory(const json::value& container) {
  for (const std::string_view list : {"requests", "limits"}) {
    const json::value* given = json::find(container, {"resources", list, "memory"});
    if (given != nullptr) return Quantity::from_json(*given).value_or(Quantity()).value();
  }
  return 0;
}

// Each belongs to a namespace that every pod has for itself, and harms nobody else.
constexpr std::string_view kSafe[] = {"kernel.shm_rmid_forced",
                                      "net.ipv4.ip_local_port_range",
                                      "net.ipv4.tcp_syncookies",
                                      "net.ipv4.ping_group_range",
                                      "net.ipv4.ip_unprivileged_port_start",
                                      "net.ipv4.ip_local_reserved_ports",
                                      "net.ipv4.tcp_keepalive_time",
                                      "net.ipv4.tcp_fin_timeout",
                                      "net.ipv4.tcp_keepalive_intvl",
                                      "net.ipv4.tcp_keepalive_probes",
                                      "net.ipv4.tcp_rmem",
                                      "net.ipv4.tcp_wmem"};

}  // namespace

std::optional<int> run_as(const json::value& pod, const json::value& container,
                          std::string_view field) {
  auto id = json::get_int(container, {"securityContext", field});
  if (!id) id = json::get_int(pod, {"spec", "securityContext", field});
  return id ? std::optional(static_cast<int>(*id)) : std::nullopt;
}

Capabilities capability_named(std::string_view name) {
  std::string upper(name);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  std::string_view plain = upper;
  if (plain.starts_with("CAP_")) plain.remove_prefix(4);
  const auto found = std::find(kNames.begin(), kNames.end(), plain);
  return found == kNames.end() ? 0 : capability(static_cast<int>(found - kNames.begin()));
}

std::optional<int> volume_group(const json::value& pod) {
  const auto group = json::get_int(pod, {"spec", "securityContext", "fsGroup"});
  return group ? std::optional(static_cast<int>(*group)) : std::nullopt;
}

std::expected<void, Refusal> secure(const json::value& pod, const json::value& container,
                                    int own_uid, ContainerSpec& spec) {
  const auto user = run_as(pod, container, "runAsUser");
  const auto checked =
      check_root(pod, container, user.has_value(), user.value_or(spec.uid.value_or(own_uid)));
  if (!checked) return checked;
  if (user && user != spec.uid) {
    spec.uid = user;
    spec.gid.reset();  // the image's group belonged to the image's user
  }
  if (const auto group = run_as(pod, container, "runAsGroup")) spec.gid = group;
  for (const json::value& group :
       json::get_array(pod, {"spec", "securityContext", "supplementalGroups"})) {
    if (const auto number = json::get_int(group, {})) {
      spec.groups.push_back(static_cast<int>(*number));
    }
  }
  if (const auto group = volume_group(pod)) spec.groups.push_back(*group);
  spec.own_groups =
      json::get_string(pod, {"spec", "securityContext", "supplementalGroupsPolicy"}) != "Strict";
  spec.capabilities = capabilities_of(container);
  const auto flag = [&](std::string_view field) {
    return json::get_bool(container, {"securityContext", field});
  };
  spec.privileged = flag("privileged").value_or(false);
  spec.no_new_privileges = !flag("allowPrivilegeEscalation").value_or(true);
  spec.read_only_root = flag("readOnlyRootFilesystem").value_or(false);
  return {};
}

int oom_score(const json::value& pod, const json::value& container,
              std::int64_t node_memory_bytes) {
  const std::string_view quality = qos_class(pod);
  if (quality == "Guaranteed") return kGuaranteedScore;
  if (quality == "BestEffort" || node_memory_bytes <= 0) return kBestEffortScore;
  std::int64_t memory = requested_memory(container);
  if (json::get_string(container, {"restartPolicy"}) == "Always") {
    // A sidecar outlives the container that asks for the least.
    std::optional<std::int64_t> least;
    for (const json::value& main : json::get_array(pod, {"spec", "containers"})) {
      least = std::min(least.value_or(requested_memory(main)), requested_memory(main));
    }
    memory = std::max(memory, least.value_or(0));
  }
  const std::int64_t score = 1000 - 1000 * memory / node_memory_bytes;
  return static_cast<int>(
      std::clamp<std::int64_t>(score, 1000 + kGuaranteedScore, kBestEffortScore - 1));
}

Sysctls pod_sysctls(const json::value& pod) {
  Sysctls out;
  for (const json::value& one : json::get_array(pod, {"spec", "securityContext", "sysctls"})) {
    std::string name(json::get_string(one, {"name"}));
    std::ranges::replace(name, '/', '.');
    out.emplace_back(std::move(name), json::get_string(one, {"value"}));
  }
  return out;
}

std::optional<std::string> forbidden_sysctl(const json::value& pod) {
  const auto shares = [&](std::string_view field) {
    return json::get_bool(pod, {"spec", field}).value_or(false);
  };
  for (const auto& [name, value] : pod_sysctls(pod)) {
    if (std::ranges::find(kSafe, name) == std::end(kSafe)) {
      return fmt::format("forbidden sysctl: \"{}\" not allowlisted", name);
    }
    const bool net = name.starts_with("net.");
    if (!shares(net ? "hostNetwork" : "hostIPC")) continue;
    return fmt::format("forbidden sysctl: \"{}\" not allowed with host {} enabled", name,
                       net ? "net" : "ipc");
  }
  return std::nullopt;
}

}  // namespace skiff::node
