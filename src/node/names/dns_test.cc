#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/random.h"
#include "base/strings.h"
#include "node/names/dns_packet.h"
#include "node/names/dns_records.h"
#include "node/names/dns_server.h"

namespace skiff::node {
namespace {

Object dns_object(std::string_view text) {
  auto parsed = json::parse(text);
  EXPECT_TRUE(parsed) << text;
  return std::make_shared<const json::value>(*parsed);
}

Object pod(const std::string& name, const std::string& ip, bool ready, const std::string& spec = "",
           const std::string& phase = "Running") {
  return dns_object(R"({"metadata":{"namespace":"ns","name":")" + name +
                    R"(","labels":{"app":"x"}},"spec":{)" + spec + R"(},"status":{"podIP":")" + ip +
                    R"(","phase":")" + phase + R"(","conditions":[{"type":"Ready","status":")" +
                    (ready ? "True" : "False") + R"("}]}})");
}

DnsRecords records() {
  const std::vector<Object> pods = {
      pod("p0", "10.0.0.2", true, R"("hostname":"worker-0","subdomain":"head")"),
      pod("p1", "10.0.0.3", false, R"("hostname":"worker-1","subdomain":"head")"),
      pod("p2", "10.0.0.4", true),
      pod("p3", "10.0.0.5", true, "", "Succeeded"),
  };
  const std::vector<Object> services = {
      dns_object(R"({"metadata":{"namespace":"ns","name":"head"},"spec":{"clusterIP":"None",
                 "selector":{"app":"x"},"ports":[{"name":"tf","port":2222}]}})"),
      dns_object(R"({"metadata":{"namespace":"ns","name":"all"},"spec":{"clusterIP":"None",
                 "publishNotReadyAddresses":true,"selector":{"app":"x"}}})"),
      dns_object(R"({"metadata":{"namespace":"ns","name":"vip"},"spec":{"clusterIP":"10.96.0.1",
                 "selector":{"app":"x"},"ports":[{"name":"https","port":443}]}})"),
      dns_object(R"({"metadata":{"namespace":"ns","name":"empty"},"spec":{"clusterIP":"None",
                 "selector":{"app":"nobody"}}})"),
      dns_object(R"({"metadata":{"namespace":"ns","name":"out"},"spec":{"type":"ExternalName",
                 "externalName":"Example.com"}})"),
  };
  return build_dns_records(pods, services);
}

std::string query(std::string_view name, std::uint16_t type, std::string_view extra = {}) {
  std::string out("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00", 11);
  out += extra.empty() ? '\0' : '\1';
  for (const std::string_view label : split(name, '.')) {
    out += static_cast<char>(label.size());
    out += label;
  }
  out += '\0';
  out += static_cast<char>(type >> 8);
  out += static_cast<char>(type & 255);
  out += std::string("\0\1", 2);
  out += extra;
  return out;
}

int code(const std::string& answer) { return answer[3] & 15; }
int count(const std::string& answer) {
  return static_cast<unsigned char>(answer[6]) << 8 | static_cast<unsigned char>(answer[7]);
}

struct Case {
  std::string_view sentence;
  std::string_view name;
  DnsType type;
  int code;
  int answers;
};

TEST(DnsRecords, LeadToTheApiWhereThereIsOne) {
  const DnsRecords with = build_dns_records({}, {}, "10.0.0.1");
  for (const char* name :
       {"kubernetes.default.svc.cluster.local", "skiff.skiff-system.svc.cluster.local"}) {
    ASSERT_TRUE(with.names.contains(name)) << name;
    EXPECT_EQ(with.names.at(name).addresses, std::vector<Ipv4>{*parse_ipv4("10.0.0.1")});
  }
  EXPECT_TRUE(with.names.contains("default.svc.cluster.local"));
  EXPECT_TRUE(build_dns_records({}, {}, "").names.empty());
}

TEST(DnsRecords, TheApisServiceLeadsThereWhereClusterIpsLeadAnywhere) {
  const auto service = std::make_shared<const json::value>(*json::parse(
      R"({"metadata":{"namespace":"default","name":"kubernetes"},
          "spec":{"clusterIP":"10.96.0.1","ports":[{"name":"https","port":443}]}})"));
  const auto answer = [&](bool cluster_ips, const std::string& name) {
    return build_dns_records({}, {service}, "10.0.0.1", cluster_ips)
        .names.at(name + ".svc.cluster.local")
        .addresses;
  };
  const std::vector<Ipv4> gateway{*parse_ipv4("10.0.0.1")}, cluster{*parse_ipv4("10.96.0.1")};
  EXPECT_EQ(answer(true, "kubernetes.default"), cluster);
  EXPECT_EQ(answer(false, "kubernetes.default"), gateway);
  EXPECT_EQ(answer(true, "skiff.skiff-system"), gateway) << "it has no service";
}

TEST(DnsRecords, AClusterIpIsTheAnswerWhereSomebodyCarriesIt) {
  const auto service = std::make_shared<const json::value>(*json::parse(
      R"({"metadata":{"namespace":"n","name":"s"},"spec":{"clusterIP":"10.96.0.9",
          "ports":[{"name":"http","port":80}]}})"));
  const auto headless = std::make_shared<const json::value>(
      *json::parse(R"({"metadata":{"namespace":"n","name":"h"},"spec":{"clusterIP":"None"}})"));
  const DnsRecords led = build_dns_records({}, {service, headless}, "", true);
  EXPECT_EQ(led.names.at("s.n.svc.cluster.local").addresses,
            std::vector<Ipv4>{*parse_ipv4("10.96.0.9")});
  EXPECT_EQ(led.names.at("_http._tcp.s.n.svc.cluster.local").services.at(0).target,
            "s.n.svc.cluster.local");
  EXPECT_TRUE(led.names.at("h.n.svc.cluster.local").addresses.empty());
  EXPECT_TRUE(build_dns_records({}, {service}).names.at("s.n.svc.cluster.local").addresses.empty());
}

TEST(Dns, AnswersNamesOfTheCluster) {
  const Case kCases[] = {
      {"a headless service has the addresses of its ready pods", "head.ns.svc.cluster.local",
       DnsType::kA, 0, 2},
      {"a service that publishes all has all that are not over", "all.ns.svc.cluster.local",
       DnsType::kA, 0, 3},
      {"a service with a cluster IP has its pods' addresses", "vip.ns.svc.cluster.local",
       DnsType::kA, 0, 2},
      {"letters may be large or small", "VIP.ns.SVC.cluster.local", DnsType::kA, 0, 2},
      {"the domain may be left out after svc", "vip.ns.svc", DnsType::kA, 0, 2},
      {"a pod has a name in its subdomain", "worker-0.head.ns.svc.cluster.local", DnsType::kA, 0,
       1},
      {"a pod that is not ready has none", "worker-1.head.ns.svc.cluster.local", DnsType::kA, 3, 0},
      {"a service without pods exists and is empty", "empty.ns.svc.cluster.local", DnsType::kA, 0,
       0},
      {"there are no IPv6 addresses, but the name exists", "vip.ns.svc.cluster.local",
       DnsType::kAaaa, 0, 0},
      {"a namespace is a name without records", "ns.svc.cluster.local", DnsType::kA, 0, 0},
      {"an unknown service does not exist", "none.ns.svc.cluster.local", DnsType::kA, 3, 0},
      {"an unknown service has no IPv6 address either", "none.ns.svc.cluster.local", DnsType::kAaaa,
       3, 0},
      {"the domain itself exists", "cluster.local", DnsType::kA, 0, 0},
      {"a named port has one SRV record per pod", "_tf._tcp.head.ns.svc.cluster.local",
       DnsType::kSrv, 0, 2},
      {"a port nobody named does not exist", "_x._tcp.head.ns.svc.cluster.local", DnsType::kSrv, 3,
       0},
      {"a pod's address is a name", "10-0-0-2.ns.pod.cluster.local", DnsType::kA, 0, 1},
      {"in a namespace without pods it is not", "10-0-0-2.other.pod.cluster.local", DnsType::kA, 3,
       0},
      {"an address that is none does not exist", "10-0-0.ns.pod.cluster.local", DnsType::kA, 3, 0},
      {"an external name is an alias", "out.ns.svc.cluster.local", DnsType::kA, 0, 1},
      {"a pod's address leads back to its name", "2.0.0.10.in-addr.arpa", DnsType::kPtr, 0, 1},
  };
  const DnsRecords known = records();
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.sentence);
    const auto parsed = parse_dns_query(query(c.name, static_cast<std::uint16_t>(c.type)));
    ASSERT_TRUE(parsed);
    const auto answer = answer_dns(*parsed, known, 512);
    ASSERT_TRUE(answer);
    EXPECT_EQ(code(*answer), c.code);
    EXPECT_EQ(count(*answer), c.answers);
    EXPECT_EQ(answer->substr(0, 2), "\x12\x34");
    EXPECT_TRUE((*answer)[2] & 4) << "authoritative";
  }
}

TEST(Dns, LeavesOtherNamesToOthers) {
  const DnsRecords known = records();
  for (const char* name : {"example.com", "xcluster.local", "9.9.9.9.in-addr.arpa", "local"}) {
    const auto parsed = parse_dns_query(query(name, 1));
    ASSERT_TRUE(parsed);
    EXPECT_FALSE(answer_dns(*parsed, known, 512)) << name;
  }
}

TEST(Dns, CutsWhatDoesNotFitAndSaysSo) {
  DnsRecords many;
  for (Ipv4 i = 0; i < 100; ++i) many.names["big.ns.svc.cluster.local"].addresses.push_back(i);
  const auto parsed = parse_dns_query(query("big.ns.svc.cluster.local", 1));
  const auto cut = answer_dns(*parsed, many, udp_room(*parsed));
  EXPECT_LE(cut->size(), 512U);
  EXPECT_TRUE((*cut)[2] & 2);
  EXPECT_EQ(count(*answer_dns(*parsed, many, 65535)), 100);
}

TEST(Dns, AnswersWithAnOptRecordToWhoSentOne) {
  const std::string opt("\0\0\x29\x04\xd0\0\0\0\0\0\0", 11);
  const auto parsed = parse_dns_query(query("vip.ns.svc.cluster.local", 1, opt));
  ASSERT_TRUE(parsed && parsed->edns);
  EXPECT_EQ(udp_room(*parsed), 1232U);
  EXPECT_EQ((*answer_dns(*parsed, records(), 1232))[11], 1);
}

TEST(Dns, RefusesWhatItDoesNotUnderstand) {
  std::string two = query("a.b", 1);
  two[5] = 2;
  EXPECT_EQ(parse_dns_query(two)->problem, DnsCode::kFormat);
  std::string update = query("a.b", 1);
  update[2] = 0x28;
  EXPECT_EQ(parse_dns_query(update)->problem, DnsCode::kNotImplemented);
  std::string answer = query("a.b", 1);
  answer[2] = static_cast<char>(0x80);
  EXPECT_FALSE(parse_dns_query(answer));
  EXPECT_FALSE(parse_dns_query("short"));
  EXPECT_EQ(parse_dns_query(query("a.b", 1).substr(0, 14))->problem, DnsCode::kFormat);
}

TEST(Dns, TakesAnyBytesWithoutHarm) {
  const DnsRecords known = records();
  Random random(7);
  const std::string base = query("worker-0.head.ns.svc.cluster.local", 1);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = base.substr(0, random.below(base.size() + 1));
    for (int n = 0; n < 3 && !bytes.empty(); ++n) {
      bytes[random.below(bytes.size())] = static_cast<char>(random.next());
    }
    const auto parsed = parse_dns_query(bytes);
    if (!parsed) continue;
    const auto answer = answer_dns(*parsed, known, 512);
    if (answer) EXPECT_LE(answer->size(), 512U);
  }
}

TEST(DnsFiles, GiveTheSearchListOfKubernetes) {
  const Object plain = dns_object(R"({"metadata":{"namespace":"ns","name":"p"},"spec":{}})");
  EXPECT_EQ(resolv_conf_for(*plain, "10.0.0.1"),
            "nameserver 10.0.0.1\nsearch ns.svc.cluster.local svc.cluster.local cluster.local\n"
            "options ndots:5\n");
  EXPECT_EQ(resolv_conf_for(*plain, ""), "");
  const Object own = dns_object(R"({"metadata":{"namespace":"ns","name":"p"},"spec":{
      "dnsPolicy":"None","dnsConfig":{"nameservers":["1.1.1.1"],"options":[{"name":"ndots",
      "value":"2"}]}}})");
  EXPECT_EQ(resolv_conf_for(*own, "10.0.0.1"), "nameserver 1.1.1.1\noptions ndots:2\n");
  const Object host =
      dns_object(R"({"metadata":{"namespace":"ns","name":"p"},"spec":{"hostNetwork":true}})");
  EXPECT_EQ(resolv_conf_for(*host, "10.0.0.1"), "");
}

TEST(DnsFiles, HostsHaveEveryNameInTheFormsASearchListWouldAllow) {
  const DnsRecords known = records();
  const std::string hosts = hosts_for(*pod("p", "10.0.0.9", true), &known);
  EXPECT_NE(hosts.find("10.0.0.2\tworker-0.head.ns.svc.cluster.local worker-0.head.ns.svc "
                       "worker-0.head.ns worker-0.head\n"),
            std::string::npos)
      << hosts;
  EXPECT_EQ(hosts_for(*pod("p", "10.0.0.9", true), nullptr).find("worker"), std::string::npos);
}

TEST(DnsFiles, APodFindsItselfInItsHosts) {
  const std::string plain = hosts_for(*pod("p", "10.0.0.9", true), nullptr);
  EXPECT_NE(plain.find("10.0.0.9\tp\n"), std::string::npos) << plain;
  const std::string named =
      hosts_for(*pod("p", "10.0.0.9", true, R"("hostname":"h","subdomain":"s")"), nullptr);
  EXPECT_NE(named.find("10.0.0.9\th.s.ns.svc.cluster.local\th\n"), std::string::npos) << named;
}

TEST(DnsFiles, APodOnTheMachinesNetworkHasItsHostsAndTheAliases) {
  EXPECT_EQ(host_network_hosts(*pod("p", "10.0.0.9", true), "127.0.0.1 localhost\n"),
            "# Kubernetes-managed hosts file (host network).\n127.0.0.1 localhost\n");
  const Object aliased =
      pod("p", "10.0.0.9", true, R"("hostAliases":[{"ip":"1.2.3.4","hostnames":["foo","bar"]}])");
  EXPECT_TRUE(host_network_hosts(*aliased, "").ends_with("HostAliases.\n1.2.3.4\tfoo\tbar\n"));
}

TEST(DnsFiles, HostsAreInTheFormThatKubeletWrites) {
  const Object aliased =
      pod("p", "10.0.0.9", true,
          R"("hostAliases":[{"ip":"1.2.3.4","hostnames":["foo","bar"]},{"ip":"::2"}])");
  EXPECT_EQ(hosts_for(*aliased, nullptr),
            "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n"
            "::1\tlocalhost ip6-localhost ip6-loopback\nfe00::0\tip6-localnet\n"
            "fe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n"
            "10.0.0.9\tp\n\n# Entries added by HostAliases.\n1.2.3.4\tfoo\tbar\n::2\t\n");
}

TEST(DnsFiles, UpstreamsAreReadFromResolvConf) {
  const auto found = parse_upstreams(
      "# x\nnameserver 8.8.8.8\nnameserver ::1\n"
      "nameserver 10.0.0.1\nsearch a\n",
      "10.0.0.1");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(ipv4_text(found[0].address), "8.8.8.8");
}

// A client that gives up in the end.
class Asker {
 public:
  Asker(int type, std::uint16_t port) : fd_(::socket(AF_INET, type, 0)) {
    const timeval patience{.tv_sec = 60, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(port);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  ~Asker() { ::close(fd_); }
  std::string ask(const std::string& packet) {
    EXPECT_EQ(::send(fd_, packet.data(), packet.size(), 0), static_cast<ssize_t>(packet.size()));
    char buffer[4096];
    const ssize_t n = ::recv(fd_, buffer, sizeof buffer, 0);
    return std::string(buffer, n > 0 ? static_cast<std::size_t>(n) : 0);
  }

 private:
  int fd_;
};

std::unique_ptr<DnsServer> serve(DnsRecords known, std::vector<DnsUpstream> upstreams) {
  auto shared = std::make_shared<const DnsRecords>(std::move(known));
  auto server = DnsServer::start({.address = "127.0.0.1",
                                  .port = 0,
                                  .upstreams = std::move(upstreams),
                                  .upstream_timeout = std::chrono::milliseconds(200),
                                  .records = [shared] { return shared; }});
  EXPECT_TRUE(server) << server.error().message;
  return std::move(*server);
}

TEST(DnsServer, AnswersOverUdpAndTcp) {
  const auto server = serve(records(), {});
  const std::string packet = query("vip.ns.svc.cluster.local", 1);
  const std::string udp = Asker(SOCK_DGRAM, server->port()).ask(packet);
  ASSERT_GE(udp.size(), 12U);
  EXPECT_EQ(count(udp), 2);
  const std::string framed = std::string(1, '\0') + static_cast<char>(packet.size()) + packet;
  const std::string tcp = Asker(SOCK_STREAM, server->port()).ask(framed);
  ASSERT_GE(tcp.size(), 14U);
  EXPECT_EQ(tcp.substr(2), udp);
}

TEST(DnsServer, AsksAnotherServerForOtherNames) {
  DnsRecords elsewhere;
  elsewhere.names["far.ns.svc.cluster.local"].addresses = {0x01020304};
  const auto upstream = serve(elsewhere, {});
  DnsRecords mine;
  mine.reverse[1] = "x";
  const auto server = serve(mine, {{.address = 0x7f000001, .port = upstream->port()}});
  // The upstream knows nothing of this name and has nobody to ask: its SERVFAIL comes through.
  const std::string answer = Asker(SOCK_DGRAM, server->port()).ask(query("example.com", 1));
  ASSERT_GE(answer.size(), 12U);
  EXPECT_EQ(code(answer), 2);
  EXPECT_EQ(answer.substr(0, 2), "\x12\x34");
}

TEST(DnsServer, SaysSoWhenNobodyCanBeAsked) {
  const auto server = serve(records(), {});
  const std::string answer = Asker(SOCK_DGRAM, server->port()).ask(query("example.com", 1));
  ASSERT_GE(answer.size(), 12U);
  EXPECT_EQ(code(answer), 2);
}

}  // namespace
}  // namespace skiff::node
