#include "base/ip.h"

#include <gtest/gtest.h>

namespace skiff {
namespace {

std::string canonical(std::string_view text) {
  const auto ip = parse_ip(text);
  return ip ? ip->text() : "none";
}

TEST(Ip, IsWrittenInOneForm) {
  EXPECT_EQ(canonical("10.0.0.1"), "10.0.0.1");
  EXPECT_EQ(canonical("010.000.0.01"), "10.0.0.1");
  EXPECT_EQ(canonical("2001:DB8:0:0:0:0:0:1"), "2001:db8::1");
  EXPECT_EQ(canonical("::"), "::");
  EXPECT_EQ(canonical("::1"), "::1");
  EXPECT_EQ(canonical("fe80::"), "fe80::");
  EXPECT_EQ(canonical("1:0:0:2:0:0:0:3"), "1:0:0:2::3");
  EXPECT_EQ(canonical("1:0:2:3:4:5:6:7"), "1:0:2:3:4:5:6:7");
  EXPECT_EQ(canonical("::ffff:1.2.3.4"), "1.2.3.4");
}

TEST(Ip, RefusesWhatIsNone) {
  for (const std::string_view text :
       {"", "1.2.3", "1.2.3.4.5", "256.0.0.1", "1.2.3.x", "1:2", ":::", "1::2::3",
        "12345::", "1:2:3:4:5:6:7:8:9", "-1.2.3.4", "::g", "1.2.3.4::", "host"}) {
    EXPECT_FALSE(parse_ip(text)) << text;
  }
}

TEST(Ip, LeadingZerosAreTakenButNotStrict) {
  EXPECT_TRUE(is_strict_ip("10.0.0.1"));
  EXPECT_TRUE(is_strict_ip("fe80::1"));
  EXPECT_FALSE(is_strict_ip("10.0.0.01"));
  EXPECT_FALSE(is_strict_ip("::ffff:1.2.3.04"));
  EXPECT_FALSE(is_strict_ip("x"));
}

TEST(Ip, Blocks) {
  const auto block = parse_cidr("10.1.2.3/8");
  ASSERT_TRUE(block);
  EXPECT_EQ(block->text(), "10.0.0.0/8");
  EXPECT_EQ(block->address.text(), "10.1.2.3");
  EXPECT_TRUE(block->contains(*parse_ip("10.255.0.1")));
  EXPECT_FALSE(block->contains(*parse_ip("11.0.0.1")));
  EXPECT_FALSE(block->contains(*parse_ip("::1")));
  EXPECT_EQ(parse_cidr("2001:db8::ff/64")->text(), "2001:db8::/64");
  EXPECT_EQ(parse_cidr("0.0.0.0/0")->text(), "0.0.0.0/0");
  EXPECT_TRUE(parse_cidr("::/0")->contains(*parse_ip("fe80::1")));
  for (const std::string_view text : {"", "10.0.0.0", "10.0.0.0/33", "10.0.0.0/", "::/129", "x/8",
                                      "10.0.0.0/-1", "10.0.0.0/8/8"}) {
    EXPECT_FALSE(parse_cidr(text)) << text;
  }
}

TEST(Ip, WhatOnlyThisMachineAnswersIsLocalInWhicheverForm) {
  for (const char* local : {"127.0.0.1", "127.64.3.4", "169.254.169.254", "0.0.0.0", "0.1.2.3",
                            "::", "::1", "fe80::1", "febf::1", "::ffff:127.0.0.1", "::ffff:0.0.0.0",
                            "::ffff:169.254.0.1", "::127.0.0.1", "64:ff9b::127.0.0.1"}) {
    EXPECT_TRUE(is_local_only(*parse_ip(local))) << local;
  }
  for (const char* far : {"10.0.0.1", "192.168.1.1", "128.0.0.1", "169.253.0.1", "2001:db8::1",
                          "fec0::1", "::ffff:10.0.0.1", "64:ff9b::10.0.0.1", "64::127.0.0.1"}) {
    EXPECT_FALSE(is_local_only(*parse_ip(far))) << far;
  }
}

}  // namespace
}  // namespace skiff
