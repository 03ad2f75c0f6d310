// In a network namespace of its own: the machine's links and settings are not touched.
#include "node/net/pod_network.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <thread>

#include "node/net/netlink.h"

namespace skiff::node {
namespace {

const NetworkOptions kNetwork{
    .bridge = "skt-bridge", .subnet = *parse_subnet("10.99.0.0/24"), .gateway = 0x0a630001};

// A process in a network namespace of its own.
class Neighbour {
 public:
  Neighbour() {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      const char result = ::unshare(CLONE_NEWNET) == 0 ? 'y' : 'n';
      (void)!::write(ready[1], &result, 1);
      ::pause();
      ::_exit(0);
    }
    char result = 0;
    EXPECT_EQ(::read(ready[0], &result, 1), 1);
    EXPECT_EQ(result, 'y');
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~Neighbour() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

std::string kernel_says(const std::string& name) {
  std::string line;
  std::ifstream file("/proc/sys/net/ipv4/" + name);
  std::getline(file, line);
  return line;
}
std::string forwarding() { return kernel_says("ip_forward"); }

void set_up_and_take_down() {
  ASSERT_EQ(::unshare(CLONE_NEWNET), 0);
  ASSERT_TRUE(ensure_bridge(kNetwork));
  const auto again = ensure_bridge(kNetwork);
  ASSERT_TRUE(again) << "twice is fine: " << again.error().message;
  const auto egress = ensure_egress(kNetwork);
  EXPECT_EQ(forwarding(), "1");
  if (::access("/usr/sbin/nft", X_OK) == 0) {
    EXPECT_TRUE(egress) << egress.error().message;
  } else {
    EXPECT_NE(egress.error().message.find("nftables"), std::string::npos);
  }
  const Neighbour pod;
  for (int round = 0; round < 2; ++round) {
    const auto joined = connect_pod(kNetwork, "skt-pod", pod.pid(), 0x0a630002);
    ASSERT_TRUE(joined) << "twice is fine: " << joined.error().message;
  }
  auto inside = Netlink::open_in(pod.pid());
  ASSERT_TRUE(inside);
  EXPECT_GT(*inside->find_link("eth0"), 0);
  auto outside = Netlink::open();
  ASSERT_TRUE(outside);
  EXPECT_EQ(*outside->find_link("eth0"), 0) << "the thread came back";
  EXPECT_GT(*outside->find_link("skt-pod"), 0);
  ASSERT_TRUE(remove_link("skt-pod"));
  ASSERT_TRUE(remove_link("skt-pod")) << "twice is fine";
  EXPECT_EQ(*inside->find_link("eth0"), 0) << "a pair goes together";
  ASSERT_TRUE(remove_network(kNetwork));
  EXPECT_EQ(*outside->find_link(kNetwork.bridge), 0);
}

// A socket that belongs to the network namespace of the process.
int socket_in(pid_t pid, int type = SOCK_STREAM, int protocol = 0) {
  int made = -1;
  std::thread([&] {
    const std::string path = "/proc/" + std::to_string(pid) + "/ns/net";
    const int ns = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (::setns(ns, CLONE_NEWNET) == 0) made = ::socket(AF_INET, type | SOCK_CLOEXEC, protocol);
    ::close(ns);
  }).join();
  EXPECT_GE(made, 0);
  return made;
}

void talk_past_the_table_of_another_skiff() {
  ASSERT_EQ(::unshare(CLONE_NEWNET), 0);
  NetworkOptions killed = kNetwork;
  killed.bridge = "skt-killed";
  ASSERT_TRUE(ensure_egress(killed));
  ASSERT_TRUE(ensure_bridge(kNetwork));
  const Neighbour one, two;
  ASSERT_TRUE(connect_pod(kNetwork, "skt-one", one.pid(), 0x0a630002));
  ASSERT_TRUE(connect_pod(kNetwork, "skt-two", two.pid(), 0x0a630003));
  const int listener = socket_in(one.pid()), client = socket_in(two.pid());
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(0x0a630002);
  address.sin_port = htons(2222);
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(listener, raw, sizeof address), 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  ASSERT_EQ(::connect(client, raw, sizeof address), 0);
  socklen_t size = sizeof address;
  const int accepted = ::accept(listener, raw, &size);
  ASSERT_GE(accepted, 0);
  EXPECT_EQ(ntohl(address.sin_addr.s_addr), 0x0a630003U) << "the pod's own, not the bridge's";
  for (const int fd : {accepted, client, listener}) ::close(fd);
}

TEST(PodNetwork, PodsSeeEachOthersAddressesInSpiteOfWhatAnotherSkiffLeft) {
  if (::geteuid() != 0 || ::access("/usr/sbin/nft", X_OK) != 0) GTEST_SKIP() << "needs root, nft";
  std::thread(talk_past_the_table_of_another_skiff).join();
}

sockaddr_in place_of(std::uint32_t ip, std::uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_addr.s_addr = htonl(ip);
  out.sin_port = htons(port);
  return out;
}

// What is sent to a service's address and to its node port reaches a pod, from another pod, from
// the pod itself and from this machine; where nobody stands behind it, it is refused.
// There is no default route.
void reach_a_service() {
  ASSERT_EQ(::unshare(CLONE_NEWNET), 0);
  NetworkOptions network = kNetwork;
  network.services = *parse_subnet("10.96.0.0/16");
  ASSERT_TRUE(ensure_bridge(network));
  ASSERT_TRUE(ensure_bridge(network)) << "twice is fine";
  const Neighbour one, two;
  ASSERT_TRUE(connect_pod(kNetwork, "skt-one", one.pid(), 0x0a630002));
  ASSERT_TRUE(connect_pod(kNetwork, "skt-two", two.pid(), 0x0a630003));
  {
    auto machine = Netlink::open();
    ASSERT_TRUE(machine);
    ASSERT_TRUE(machine->set_up(*machine->find_link("lo")));
  }
  const std::vector<ServicePort> ports = {
      {.ips = {0x0a600001}, .port = 80, .node_port = 30080, .targets = {{0x0a630002, 2222}}},
      {.ips = {0x0a600002}, .port = 80}};
  const auto led = lead_services(kNetwork, ports);
  ASSERT_TRUE(led) << led.error().message;
  ASSERT_TRUE(lead_services(kNetwork, ports)) << "once more";
  const auto at = place_of;
  const int listener = socket_in(one.pid());
  const sockaddr_in place = at(0x0a630002, 2222);
  ASSERT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&place), sizeof place), 0);
  ASSERT_EQ(::listen(listener, 8), 0);
  const auto connect_from = [&](int client, const sockaddr_in& to) {
    const int result = ::connect(client, reinterpret_cast<const sockaddr*>(&to), sizeof to);
    const int problem = result == 0 ? 0 : errno;
    ::close(client);
    return problem;
  };
  const auto here = [] { return ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); };
  EXPECT_EQ(connect_from(socket_in(two.pid()), at(0x0a600001, 80)), 0) << "from another pod";
  EXPECT_EQ(connect_from(socket_in(one.pid()), at(0x0a600001, 80)), 0) << "from itself";
  EXPECT_EQ(connect_from(here(), at(0x0a600001, 80)), 0) << "from this machine";
  EXPECT_EQ(connect_from(here(), at(0x7f000001, 30080)), 0) << "by the node port";
  EXPECT_EQ(connect_from(socket_in(two.pid()), at(0x0a630001, 30080)), 0) << "a pod by it";
  EXPECT_EQ(connect_from(socket_in(two.pid()), at(0x0a600002, 80)), ECONNREFUSED);
  EXPECT_EQ(connect_from(here(), at(0x0a600002, 80)), ECONNREFUSED);
  ::close(listener);
}

// One letter by UDP, to the bridge's link whatever the packet says of itself.
void send_forged(int raw, std::uint32_t from, std::uint32_t to, std::uint16_t port, char letter) {
  struct {
    iphdr ip;
    udphdr udp;
    char letter;
  } __attribute__((packed)) packet{};
  packet.ip.version = 4;
  packet.ip.ihl = 5;
  packet.ip.ttl = 64;
  packet.ip.protocol = IPPROTO_UDP;
  packet.ip.saddr = htonl(from);
  packet.ip.daddr = htonl(to);
  packet.udp.source = htons(4444);
  packet.udp.dest = htons(port);
  packet.udp.len = htons(sizeof(udphdr) + 1);
  packet.letter = letter;
  const sockaddr_in way = place_of(kNetwork.gateway, 0);
  EXPECT_EQ(
      ::sendto(raw, &packet, sizeof packet, 0, reinterpret_cast<const sockaddr*>(&way), sizeof way),
      static_cast<ssize_t>(sizeof packet))
      << std::strerror(errno);
}

void forge_the_loopback() {
  ASSERT_EQ(::unshare(CLONE_NEWNET), 0);
  ASSERT_TRUE(ensure_bridge(kNetwork));
  const Neighbour pod;
  ASSERT_TRUE(connect_pod(kNetwork, "skt-pod", pod.pid(), 0x0a630002));
  {
    auto machine = Netlink::open();
    ASSERT_TRUE(machine);
    ASSERT_TRUE(machine->set_up(*machine->find_link("lo")));
  }
  const std::string open = "conf/" + kNetwork.bridge + "/route_localnet";
  EXPECT_EQ(kernel_says(open), "0");
  ASSERT_TRUE(lead_services(kNetwork, {}));
  EXPECT_EQ(kernel_says(open), "1");
  const int here = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in any = place_of(0, 0);
  socklen_t size = sizeof any;
  ASSERT_EQ(::bind(here, reinterpret_cast<sockaddr*>(&any), size), 0);
  ASSERT_EQ(::getsockname(here, reinterpret_cast<sockaddr*>(&any), &size), 0);
  const std::uint16_t port = ntohs(any.sin_port);
  const int raw = socket_in(pod.pid(), SOCK_RAW, IPPROTO_RAW);
  send_forged(raw, 0x0a630002, 0x7f000001, port, 'r');        // reaches for the loopback
  send_forged(raw, 0x7f000001, kNetwork.gateway, port, 's');  // speaks for it
  send_forged(raw, 0x0a630002, kNetwork.gateway, port, 'h');  // honest
  const timeval patience{.tv_sec = 10, .tv_usec = 0};
  ::setsockopt(here, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  char letter = 0;
  EXPECT_EQ(::recv(here, &letter, 1, 0), 1);
  EXPECT_EQ(letter, 'h') << "only what is honest comes through";
  NetworkOptions wrong = kNetwork;
  wrong.subnet.prefix = 40;
  EXPECT_FALSE(lead_services(wrong, {}));
  EXPECT_EQ(kernel_says(open), "0") << "without rules it stays closed";
  for (const int fd : {raw, here}) ::close(fd);
}

TEST(PodNetwork, PodsDoNotReachTheLoopbackOfTheMachine) {
  if (::geteuid() != 0 || ::access("/usr/sbin/nft", X_OK) != 0) GTEST_SKIP() << "needs root, nft";
  std::thread(forge_the_loopback).join();
}

bool nft_knows(const std::string& table) {
  return std::system(("/usr/sbin/nft list table ip " + table + " >/dev/null 2>&1").c_str()) == 0;
}

void mend() {
  ASSERT_EQ(::unshare(CLONE_NEWNET), 0);
  NetworkOptions network = kNetwork;
  network.egress = true;
  ASSERT_TRUE(ensure_bridge(network));
  ASSERT_TRUE(ensure_egress(network));
  ASSERT_TRUE(lead_services(network, {}));
  ASSERT_EQ(std::system("/usr/sbin/nft flush ruleset"), 0);
  ASSERT_FALSE(nft_knows("skiff_skt_bridge"));
  ASSERT_TRUE(lead_services(network, {}));
  EXPECT_TRUE(nft_knows("skiff_skt_bridge")) << "the way out";
  EXPECT_TRUE(nft_knows("skiff_skt_bridge_services"));
  ASSERT_TRUE(remove_network(network));
  EXPECT_FALSE(nft_knows("skiff_skt_bridge"));
  EXPECT_FALSE(nft_knows("skiff_skt_bridge_services"));
}

TEST(PodNetwork, RulesThatSomebodyTookAwayComeBack) {
  if (::geteuid() != 0 || ::access("/usr/sbin/nft", X_OK) != 0) GTEST_SKIP() << "needs root, nft";
  std::thread(mend).join();
}

void start_beside_others() {
  ASSERT_EQ(::unshare(CLONE_NEWNET), 0);
  std::uint32_t network = 0x0a640000;
  const auto make = [&network](const std::string& bridge) {
    network += 0x100;
    const NetworkOptions options{
        .bridge = bridge, .subnet = {.base = network, .prefix = 24}, .gateway = network + 1};
    EXPECT_TRUE(ensure_bridge(options));
    EXPECT_TRUE(ensure_egress(options));
    return options;
  };
  make("skiff00dead");
  make("skiff0a11fe");
  const Fd running = claim_bridge("skiff0a11fe");
  const NetworkOptions with_pod = make("skiff0000d1");
  make("skiffs-of-x");
  make("skiff00c0de");
  const Neighbour pod;
  ASSERT_TRUE(connect_pod(with_pod, "skt-pod", pod.pid(), with_pod.gateway + 1));

  const Fd own = claim_bridge("skiff00c0de");
  EXPECT_TRUE(own.valid());
  auto machine = Netlink::open();
  ASSERT_TRUE(machine);
  EXPECT_EQ(*machine->find_link("skiff00dead"), 0) << "nobody runs, no pod";
  EXPECT_FALSE(nft_knows("skiff_skiff00dead"));
  EXPECT_GT(*machine->find_link("skiff0a11fe"), 0) << "its Skiff runs";
  EXPECT_TRUE(nft_knows("skiff_skiff0a11fe"));
  EXPECT_GT(*machine->find_link("skiff0000d1"), 0) << "its pod lives on";
  EXPECT_GT(*machine->find_link("skiffs-of-x"), 0) << "not a name that Skiff gives";
  EXPECT_GT(*machine->find_link("skiff00c0de"), 0) << "its own";
  EXPECT_FALSE(claim_bridge("skiff0a11fe").valid()) << "one process has a claim";
}

TEST(PodNetwork, WhatAKilledSkiffLeftGoesWhenTheNextStarts) {
  if (::geteuid() != 0 || ::access("/usr/sbin/nft", X_OK) != 0) GTEST_SKIP() << "needs root, nft";
  std::thread(start_beside_others).join();
}

// Another link has the way to the addresses of services.
void services_of_another() {
  ASSERT_EQ(::unshare(CLONE_NEWNET), 0);
  NetworkOptions first = kNetwork;
  first.services = *parse_subnet("10.96.0.0/16");
  ASSERT_TRUE(ensure_bridge(first));
  EXPECT_FALSE(services_elsewhere(first)) << "its own way";
  NetworkOptions second = first;
  second.bridge = "skt-second";
  second.subnet = *parse_subnet("10.98.0.0/24");
  second.gateway = 0x0a620001;
  ASSERT_TRUE(ensure_bridge(second));
  EXPECT_TRUE(services_elsewhere(second));
  EXPECT_FALSE(services_elsewhere(kNetwork)) << "who has no addresses misses none";
  ASSERT_TRUE(lead_services(
      second, {{.ips = {0x0a600001}, .port = 80, .node_port = 30080, .targets = {{1, 1}}}}));
  const std::string list = "/usr/sbin/nft list chain ip skiff_skt_second_services ";
  EXPECT_NE(std::system((list + "services_here | grep -q 10.96").c_str()), 0);
  EXPECT_EQ(std::system((list + "services_here | grep -q 30080").c_str()), 0);
  EXPECT_EQ(std::system((list + "services | grep -q 10.96").c_str()), 0);
}

TEST(PodNetwork, AddressesOfServicesThatAreSomebodyElsesStayHis) {
  if (::geteuid() != 0 || ::access("/usr/sbin/nft", X_OK) != 0) GTEST_SKIP() << "needs root, nft";
  std::thread(services_of_another).join();
}

TEST(PodNetwork, ServicesLeadToPods) {
  if (::geteuid() != 0 || ::access("/usr/sbin/nft", X_OK) != 0) GTEST_SKIP() << "needs root, nft";
  std::thread(reach_a_service).join();
}

TEST(PodNetwork, IsSetUpAndTakenDownAndMayBeSetUpTwice) {
  if (::geteuid() != 0) {
    EXPECT_FALSE(ensure_bridge(kNetwork)) << "links are root's";
    return;
  }
  // Namespaces belong to threads: this one's ends with it.
  std::thread(set_up_and_take_down).join();
}

}  // namespace
}  // namespace skiff::node
