// In a network namespace of its own: the machine's links and settings are not touched.
#include "node/net/pod_network.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
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

std::string forwarding() {
  std::string line;
  std::ifstream file("/proc/sys/net/ipv4/ip_forward");
  std::getline(file, line);
  return line;
}

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
int socket_in(pid_t pid) {
  int made = -1;
  std::thread([&] {
    const std::string path = "/proc/" + std::to_string(pid) + "/ns/net";
    const int ns = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (::setns(ns, CLONE_NEWNET) == 0) made = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
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
  const auto at = [](std::uint32_t ip, std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(ip);
    address.sin_port = htons(port);
    return address;
  };
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
