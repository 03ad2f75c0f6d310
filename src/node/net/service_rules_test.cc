#include "node/net/service_rules.h"

#include <gtest/gtest.h>

namespace skiff::node {
namespace {

const std::uint32_t kIp = *parse_ip("10.96.0.7"), kA = *parse_ip("10.0.0.1"),
                    kB = *parse_ip("10.0.0.2");

const RulesPlace kPlace{.table = "t", .bridge = "br", .subnet = {*parse_ip("10.0.0.0"), 24}};

TEST(ServiceRules, OneTargetOrAChoiceAmongSeveral) {
  const std::string rules = service_rules(
      kPlace, {{.ips = {kIp}, .port = 80, .node_port = 30080, .targets = {{kA, 8080}, {kB, 8080}}},
               {.ips = {kIp}, .udp = true, .port = 53, .targets = {{kA, 53}}},
               {.ips = {kIp}, .port = 81, .sticky = true, .targets = {{kA, 1}, {kB, 1}}}});
  for (const char* part :
       {"dnat ip addr . port to numgen random mod 2 map { 0 : 10.0.0.1 . 8080, 1 : 10.0.0.2 . 8080 "
        "}",
        "dnat to 10.0.0.1:53", "jhash ip saddr mod 2",
        "10.96.0.7 . tcp . 80 : goto service0, 10.96.0.7 . udp . 53 : goto service1",
        "tcp . 30080 : goto service0",
        "ct status dnat ip saddr 10.0.0.0/24 oifname \"br\" masquerade"}) {
    EXPECT_NE(rules.find(part), std::string::npos) << part << "\n" << rules;
  }
  EXPECT_EQ(rules.find("reject"), std::string::npos) << rules;
}

TEST(ServiceRules, NobodyBehindAServiceIsARefusalAndNoServiceIsNothing) {
  const std::string refused = service_rules(kPlace, {{.ips = {kIp}, .port = 80, .node_port = 30080},
                                                     {.ips = {kIp}, .udp = true, .port = 53}});
  for (const char* part :
       {"ip daddr . meta l4proto . th dport { 10.96.0.7 . tcp . 80 } reject with tcp reset\n",
        "fib daddr type local meta l4proto . th dport { tcp . 30080 } reject with tcp reset\n",
        "ip daddr . meta l4proto . th dport { 10.96.0.7 . udp . 53 } reject\n"}) {
    EXPECT_NE(refused.find(part), std::string::npos) << part << "\n" << refused;
  }
  const std::string none = service_rules(kPlace, {});
  EXPECT_EQ(none.find("{  }"), std::string::npos) << "an empty list is an error to nft";
  EXPECT_EQ(none.find("vmap"), std::string::npos);
}

TEST(ServiceRules, AnAddressThatTwoServicesClaimIsTheFirstOnes) {
  const std::string rules =
      service_rules(kPlace, {{.ips = {kIp, kIp}, .port = 80, .targets = {{kA, 1}}},
                             {.ips = {kIp}, .port = 80, .targets = {{kB, 1}}},
                             {.ips = {kIp}, .port = 80}});
  EXPECT_NE(rules.find("vmap { 10.96.0.7 . tcp . 80 : goto service0 }"), std::string::npos)
      << rules;
  EXPECT_EQ(rules.find("reject"), std::string::npos) << rules;
}

TEST(ServiceRules, PodsNeitherReachTheLoopbackOfTheMachineNorSpeakForIt) {
  const std::string rules = service_rules(kPlace, {});
  for (const char* part : {"iifname \"br\" ip daddr 127.0.0.0/8 drop\n",
                           "iifname \"br\" ip saddr 127.0.0.0/8 drop\n"}) {
    EXPECT_NE(rules.find(part), std::string::npos) << part << "\n" << rules;
  }
}

// The lines of a chain.
std::string body(const std::string& rules, const std::string& chain) {
  const std::size_t begin = rules.find("  chain " + chain + " {\n");
  return begin == std::string::npos ? "" : rules.substr(begin, rules.find("  }\n", begin) - begin);
}

TEST(ServiceRules, AddressesThatAreSomebodyElsesOnThisMachineAreOnlyForPods) {
  const std::uint32_t outer = *parse_ip("192.0.2.9");
  RulesPlace place = kPlace;
  const std::vector<ServicePort> ports = {
      {.ips = {kIp, outer}, .port = 80, .node_port = 30080, .targets = {{kA, 1}}},
      {.ips = {kIp}, .port = 81, .node_port = 30081}};
  EXPECT_NE(body(service_rules(place, ports), "from_here").find("jump services\n"),
            std::string::npos);
  place.not_here = *parse_subnet("10.96.0.0/16");
  const std::string rules = service_rules(place, ports);
  EXPECT_NE(body(rules, "from_here").find("jump services_here\n"), std::string::npos) << rules;
  EXPECT_NE(body(rules, "refuse_output").find("jump refusals_here\n"), std::string::npos);
  EXPECT_NE(body(rules, "refuse_prerouting").find("jump refusals\n"), std::string::npos);
  for (const char* chain : {"services_here", "refusals_here"}) {
    EXPECT_EQ(body(rules, chain).find("10.96."), std::string::npos) << rules;
    EXPECT_NE(body(rules, chain).find("tcp . 3008"), std::string::npos) << "node ports stay";
  }
  EXPECT_NE(body(rules, "services_here").find("192.0.2.9 . tcp . 80 : goto service0"),
            std::string::npos);
  EXPECT_NE(body(rules, "services").find("10.96.0.7 . tcp . 80 : goto service0"),
            std::string::npos);
}

}  // namespace
}  // namespace skiff::node
