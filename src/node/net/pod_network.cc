#include "node/net/pod_network.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <net/if.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

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

// `purpose` is what cannot be done where it fails.
Result<void> run_nft(const std::string& script, std::string_view purpose) {
  // From a file: thousands of services are more than an argument may hold.
  const Fd file(::memfd_create("nft", MFD_CLOEXEC));
  if (!file.valid() ||
      ::write(file.get(), script.data(), script.size()) != static_cast<ssize_t>(script.size()) ||
      ::lseek(file.get(), 0, SEEK_SET) != 0) {
    return fail(Code::kInternal, fmt::format("{}: no memory for its rules", purpose));
  }
  std::string words[] = {"nft", "-f", "-"};
  char* argv[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, file.get(), 0);
  for (const int fd : {1, 2}) {
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
                fmt::format("{}: the program nft is missing (package nftables)", purpose));
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0) {
    return fail(Code::kServiceUnavailable, fmt::format("{}: nft refused the rules", purpose));
  }
  return {};
}

// False where the kernel does not take it.
bool set_kernel(const std::string& name, std::string_view value) {
  const Fd file(::open(("/proc/sys/net/ipv4/" + name).c_str(), O_WRONLY | O_CLOEXEC));
  return file.valid() &&
         ::write(file.get(), value.data(), value.size()) == static_cast<ssize_t>(value.size());
}

constexpr std::string_view kNoOutside = "pods cannot reach the outside";

// Adding before deleting makes the deletion succeed the first time, too. Pods keep their addresses
// among themselves even where the kernel shows bridged packets to nft and the bridge is that of
// another Skiff: the table of one that was killed may be there still.
std::string egress_rules(const NetworkOptions& options) {
  return fmt::format(
      "add table ip {0}; delete table ip {0}; add table ip {0}; "
      "add chain ip {0} out {{ type nat hook postrouting priority 100; }}; "
      "add rule ip {0} out ip saddr {1} ip daddr != {1} oifname != \"{2}\" masquerade\n",
      table_name(options), format_subnet(options.subnet), options.bridge);
}

// Whether packets of the bridge may have addresses of this machine's loopback.
bool open_loopback(const NetworkOptions& options, bool open) {
  return set_kernel("conf/" + options.bridge + "/route_localnet", open ? "1" : "0");
}

// All Skiffs of this thread's network see it, wherever their files are.
Fd lock_network() {
  Fd lock(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  while (lock.valid() && ::flock(lock.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
  return lock;
}

// Invalid where somebody has the claim. The kernel takes it from a process that ends, however it
// ends, and keeps the claims of two network namespaces apart.
Fd bind_claim(std::string_view bridge) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const std::string text = fmt::format("skiff/bridge/{}", bridge);
  std::memcpy(name.sun_path + 1, text.data(), std::min(text.size(), sizeof name.sun_path - 1));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  Fd claim(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::bind(claim.get(), reinterpret_cast<sockaddr*>(&name), size) != 0) claim.reset();
  return claim;
}

bool is_bridge_of_skiff(std::string_view name) {
  return name.size() == 11 && name.starts_with("skiff") &&
         name.find_first_not_of("0123456789abcdef", 5) == std::string_view::npos;
}

// Bridges as Skiff names them that have no link of a pod. Whether a bridge has a carrier would say
// it too, but up to a second late.
std::vector<std::string> idle_bridges() {
  std::vector<std::string> out;
  auto machine = Netlink::open();
  struct if_nameindex* const all = ::if_nameindex();
  for (const auto* one = all; machine && one != nullptr && one->if_index != 0; ++one) {
    if (!is_bridge_of_skiff(one->if_name)) continue;
    const auto port = machine->find_port(static_cast<int>(one->if_index));
    if (port && *port == 0) out.emplace_back(one->if_name);
  }
  if (all != nullptr) ::if_freenameindex(all);
  return out;
}

}  // namespace

Fd claim_bridge(const std::string& bridge) {
  // Locked, because the owner of a bridge may start at this moment.
  const Fd lock = lock_network();
  Fd claim = bind_claim(bridge);
  for (const std::string& other : idle_bridges()) {
    if (other != bridge && bind_claim(other).valid()) {
      (void)remove_network({.bridge = other});  // at worst it stays as it was
    }
  }
  return claim;
}

Result<void> ensure_bridge(const NetworkOptions& options) {
  SKIFF_ASSIGN(Netlink machine, Netlink::open());
  SKIFF_ASSIGN(int bridge, machine.find_link(options.bridge));
  if (bridge == 0) {
    SKIFF_TRY(machine.make_bridge(options.bridge));
    SKIFF_ASSIGN(bridge, machine.find_link(options.bridge));
  }
  SKIFF_TRY(machine.add_address(bridge, options.gateway, options.subnet.prefix));
  SKIFF_TRY(machine.set_up(bridge));
  // Programs of this machine find a way to services where there is no default route, too. Where
  // these addresses are somebody else's, that stays so.
  if (options.services.prefix == 0 || services_elsewhere(options)) return {};
  return machine.add_route(options.services, bridge);
}

Result<std::string> take_subnet(const std::vector<std::string>& preferred,
                                const std::string& bridge) {
  const Fd lock = lock_network();
  SKIFF_ASSIGN(std::string chosen, pick_subnet(preferred, bridge));
  const auto subnet = parse_subnet(chosen);
  if (!subnet) return fail(Code::kInvalid, fmt::format("{} is not an IPv4 network", chosen));
  SKIFF_TRY(ensure_bridge({.bridge = bridge, .subnet = *subnet, .gateway = subnet->base + 1}));
  return chosen;
}

bool services_elsewhere(const NetworkOptions& options) {
  return options.services.prefix != 0 &&
         !pick_subnet({format_subnet(options.services)}, options.bridge);
}

Result<void> ensure_egress(const NetworkOptions& options) {
  if (!set_kernel("ip_forward", "1")) {
    return fail(Code::kServiceUnavailable,
                fmt::format("{}: IP forwarding cannot be switched on", kNoOutside));
  }
  return run_nft(egress_rules(options), kNoOutside);
}

Result<void> lead_services(const NetworkOptions& options, const std::vector<ServicePort>& ports) {
  constexpr std::string_view kPurpose = "services cannot be reached by their cluster IPs";
  if (!set_kernel("ip_forward", "1")) {
    return fail(Code::kServiceUnavailable,
                fmt::format("{}: IP forwarding cannot be switched on", kPurpose));
  }
  const Result<void> led = run_nft(
      (options.egress ? egress_rules(options) : "") +
          service_rules({.table = table_name(options) + "_services",
                         .bridge = options.bridge,
                         .subnet = options.subnet,
                         .not_here = services_elsewhere(options) ? options.services : Subnet{}},
                        ports),
      kPurpose);
  // Closed, packets from this machine's own loopback are thrown away on their way to a pod. Open,
  // it is only these rules that keep pods from what listens there.
  const bool opened = open_loopback(options, led.has_value());
  if (!led || opened) return led;
  return fail(Code::kServiceUnavailable,
              fmt::format("{}: the bridge does not take this machine's loopback", kPurpose));
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
  // A pod that is led to itself by a service: where the kernel shows bridged packets to nft, such
  // a packet never leaves the bridge.
  SKIFF_ASSIGN(const int outer, machine.find_link(link));
  SKIFF_TRY(machine.reflect(outer));
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
  (void)open_loopback(options, false);  // no bridge: nothing to close
  // Without nft there is no table either.
  for (const std::string& name : {table, table + "_services"}) {
    (void)run_nft(fmt::format("add table ip {0}; delete table ip {0}", name), kNoOutside);
  }
  return remove_link(options.bridge);
}

}  // namespace skiff::node
