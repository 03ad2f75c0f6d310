#include "node/sysctls.h"

#include <fmt/format.h>

#include <algorithm>

namespace skiff::node {
namespace {

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
