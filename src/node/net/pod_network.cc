#include "node/net/pod_network.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "node/net/netlink.h"

extern char** environ;

namespace skiff::node {
namespace {

std::string table_name(const NetworkOptions& options) {
  std::string name = "skiff_" + options.bridge;
  for (char& c : name) {
    if (c == '-' || c == '.') c = '_';
  }
  return name;
}

Result<void> run_nft(const std::string& script) {
  std::string words[] = {"nft", script};
  char* argv[] = {words[0].data(), words[1].data(), nullptr};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  for (const int fd : {0, 1, 2}) {
    ::posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  }
  pid_t pid = 0;
  int number = ENOENT;
  for (const char* path : {"/usr/sbin/nft", "/sbin/nft", "/usr/bin/nft"}) {
    number = ::posix_spawn(&pid, path, &actions, nullptr, argv, environ);
    if (number == 0) break;
  }
  ::posix_spawn_file_actions_destroy(&actions);
  if (number != 0) {
    return fail(Code::kServiceUnavailable,
                "pods cannot reach the outside: the program nft is missing (package nftables)");
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0) {
    return fail(Code::kServiceUnavailable,
                "pods cannot reach the outside: nft refused the masquerading rule");
  }
  return {};
}

}  // namespace

Result<void> ensure_bridge(const NetworkOptions& options) {
  SKIFF_ASSIGN(Netlink machine, Netlink::open());
  SKIFF_ASSIGN(int bridge, machine.find_link(options.bridge));
  if (bridge == 0) {
    SKIFF_TRY(machine.make_bridge(options.bridge));
    SKIFF_ASSIGN(bridge, machine.find_link(options.bridge));
  }
  SKIFF_TRY(machine.add_address(bridge, options.gateway, options.subnet.prefix));
  return machine.set_up(bridge);
}

Result<void> ensure_egress(const NetworkOptions& options) {
  const int fd = ::open("/proc/sys/net/ipv4/ip_forward", O_WRONLY | O_CLOEXEC);
  const bool forwards = fd >= 0 && ::write(fd, "1", 1) == 1;
  if (fd >= 0) ::close(fd);
  if (!forwards) {
    return fail(Code::kServiceUnavailable,
                "pods cannot reach the outside: IP forwarding cannot be switched on");
  }
  const std::string table = table_name(options);
  // Adding before deleting makes the deletion succeed the first time, too. Pods keep their
  // addresses among themselves even where the kernel shows bridged packets to nft and the bridge is
  // that of another Skiff: the table of one that was killed may be there still.
  return run_nft(
      fmt::format("add table ip {0}; delete table ip {0}; add table ip {0}; "
                  "add chain ip {0} out {{ type nat hook postrouting priority 100; }}; "
                  "add rule ip {0} out ip saddr {1} ip daddr != {1} oifname != \"{2}\" masquerade",
                  table, format_subnet(options.subnet), options.bridge));
}

Result<void> connect_pod(const NetworkOptions& options, const std::string& link, pid_t pid,
                         std::uint32_t ip) {
  SKIFF_ASSIGN(Netlink machine, Netlink::open());
  SKIFF_ASSIGN(const int bridge, machine.find_link(options.bridge));
  if (bridge == 0) {
    return fail(Code::kInternal, fmt::format("the bridge {} is gone", options.bridge));
  }
  SKIFF_ASSIGN(const int present, machine.find_link(link));
  if (present == 0) SKIFF_TRY(machine.make_veth(link, pid, bridge));
  SKIFF_ASSIGN(Netlink pod, Netlink::open_in(pid));
  SKIFF_ASSIGN(const int loopback, pod.find_link("lo"));
  SKIFF_TRY(pod.set_up(loopback));
  SKIFF_ASSIGN(const int eth0, pod.find_link("eth0"));
  SKIFF_TRY(pod.add_address(eth0, ip, options.subnet.prefix));
  SKIFF_TRY(pod.set_up(eth0));
  return pod.add_default_route(options.gateway);
}

Result<void> remove_link(const std::string& name) {
  SKIFF_ASSIGN(Netlink machine, Netlink::open());
  SKIFF_ASSIGN(const int link, machine.find_link(name));
  if (link == 0) return {};
  return machine.remove_link(link);
}

Result<void> remove_network(const NetworkOptions& options) {
  const std::string table = table_name(options);
  // Without nft there is no table either.
  (void)run_nft(fmt::format("add table ip {0}; delete table ip {0}", table));
  return remove_link(options.bridge);
}

}  // namespace skiff::node
