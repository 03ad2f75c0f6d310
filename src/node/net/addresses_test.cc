#include "node/net/addresses.h"

#include <gtest/gtest.h>

namespace skiff::node {
namespace {

// eth0 has 192.0.2.0/24, docker0 has 172.17.0.0/16, skiff0 has 10.87.0.0/16.
constexpr const char* kRoutes =
    "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
    "eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
    "eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
    "docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n"
    "skiff0\t0000570A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n";

TEST(Addresses, NetworksAreReadAndWritten) {
  EXPECT_EQ(format_subnet(*parse_subnet("10.1.2.3/16")), "10.1.0.0/16");
  for (const char* bad : {"", "10.0.0.0", "10.0.0.0/", "10.0.0.0/33", "10.0.0/8", "a/8",
                          "10.0.0.0/16x", "10.0.0.0/31", "0.0.0.0/0"}) {
    EXPECT_FALSE(parse_subnet(bad)) << bad;
  }
  EXPECT_EQ(*first_address("10.1.0.0/16"), "10.1.0.1");
}

TEST(Addresses, ANetworkThatIsRoutedIsNotChosen) {
  struct Case {
    const char* sentence;
    std::vector<std::string> preferred;
    std::string own;
    std::string expected;
  };
  const Case cases[] = {
      {"the first free one wins", {"10.1.0.0/16", "10.2.0.0/16"}, "", "10.1.0.0/16"},
      {"one inside a routed network is passed over",
       {"172.17.9.0/24", "10.2.0.0/16"},
       "",
       "10.2.0.0/16"},
      {"one around a routed network too", {"192.0.0.0/8", "10.2.0.0/16"}, "", "10.2.0.0/16"},
      {"our own bridge's network stays ours", {"10.87.0.0/16"}, "skiff0", "10.87.0.0/16"},
  };
  for (const Case& c : cases) {
    const auto picked = pick_subnet(c.preferred, c.own, kRoutes);
    ASSERT_TRUE(picked) << c.sentence;
    EXPECT_EQ(*picked, c.expected) << c.sentence;
  }
  EXPECT_EQ(pick_subnet({"10.87.0.0/16"}, "", kRoutes).error().code, Code::kConflict);
}

TEST(Addresses, OnlyAnAddressOfALinkIsTheMachinesOwn) {
  EXPECT_TRUE(is_own_address("127.0.0.1"));
  EXPECT_FALSE(is_own_address("192.0.2.1")) << "kept for documentation";
  EXPECT_FALSE(is_own_address(""));
}

TEST(Addresses, APoolHandsOutEachAddressOnceAndInTurn) {
  AddressPool pool(*parse_subnet("10.0.0.0/29"));
  pool.hold("10.0.0.3");
  EXPECT_EQ(*pool.take(), "10.0.0.2");
  EXPECT_EQ(*pool.take(), "10.0.0.4");
  pool.release("10.0.0.4");
  EXPECT_EQ(*pool.take(), "10.0.0.5") << "what was given back waits its turn";
  EXPECT_EQ(*pool.take(), "10.0.0.6");
  EXPECT_EQ(*pool.take(), "10.0.0.4");
  EXPECT_EQ(pool.take().error().code, Code::kTooManyRequests);
}

}  // namespace
}  // namespace skiff::node
