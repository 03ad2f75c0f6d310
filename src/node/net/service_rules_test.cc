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

}  // namespace
}  // namespace skiff::node
