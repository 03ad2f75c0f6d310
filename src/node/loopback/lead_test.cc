#include "node/loopback/lead.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <cstring>
#include <vector>

namespace skiff::node {
namespace {

constexpr std::string_view kPod = "127.70.0.5";

// A sockaddr by its text: "0.0.0.0:80", "[::]:80".
std::vector<std::byte> address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const auto port = htons(static_cast<std::uint16_t>(std::stoi(text.substr(colon + 1))));
  const auto copy = [](const auto& from) {
    std::vector<std::byte> out(sizeof from);
    std::memcpy(out.data(), &from, sizeof from);
    return out;
  };
  if (text.front() == '[') {
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = port;
    EXPECT_EQ(::inet_pton(AF_INET6, text.substr(1, colon - 2).c_str(), &v6.sin6_addr), 1);
    return copy(v6);
  }
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = port;
  EXPECT_EQ(::inet_pton(AF_INET, text.substr(0, colon).c_str(), &v4.sin_addr), 1);
  return copy(v4);
}

std::string text_of(const std::vector<std::byte>& bytes) {
  char out[INET6_ADDRSTRLEN] = {};
  sa_family_t family = 0;
  std::memcpy(&family, bytes.data(), sizeof family);
  if (family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, bytes.data(), sizeof v4);
    ::inet_ntop(AF_INET, &v4.sin_addr, out, sizeof out);
    return std::string(out) + ":" + std::to_string(ntohs(v4.sin_port));
  }
  sockaddr_in6 v6{};
  std::memcpy(&v6, bytes.data(), sizeof v6);
  ::inet_ntop(AF_INET6, &v6.sin6_addr, out, sizeof out);
  return "[" + std::string(out) + "]:" + std::to_string(ntohs(v6.sin6_port));
}

class Lead : public ::testing::Test {
 protected:
  std::string led(LedCall call, const std::string& to, SocketFacts facts = {}) {
    std::vector<std::byte> bytes = address(to);
    const bool changed = lead(call, bytes, facts,
                              {.ip = *parse_ip(kPod),
                               .listens = [this](std::uint16_t port) { return port == listening_; },
                               .table = [this] { return table_; },
                               .choice = choice_});
    return changed ? text_of(bytes) : "";
  }
  std::string bound(const std::string& to, SocketFacts facts = {}) {
    return led(LedCall::kBind, to, facts);
  }
  std::string connected(const std::string& to, SocketFacts facts = {}) {
    return led(LedCall::kConnect, to, facts);
  }

  std::uint16_t listening_ = 0;
  std::uint32_t choice_ = 0;
  LedTable table_ = {};
};

TEST_F(Lead, WhoListensOnAllAddressesListensOnThePodsOwn) {
  EXPECT_EQ(bound("0.0.0.0:2222"), "127.70.0.5:2222");
  EXPECT_EQ(bound("127.0.0.1:2222"), "127.70.0.5:2222");
  EXPECT_EQ(bound("[::]:2222"), "[::ffff:127.70.0.5]:2222");
  EXPECT_EQ(bound("[::1]:2222"), "[::ffff:127.70.0.5]:2222");
  EXPECT_EQ(bound("[::ffff:0.0.0.0]:2222"), "[::ffff:127.70.0.5]:2222");
}

TEST_F(Lead, APortOfTheKernelsChoiceAndAnAddressByNameStay) {
  EXPECT_EQ(bound("0.0.0.0:0"), "");
  EXPECT_EQ(bound("[::]:0"), "");
  EXPECT_EQ(bound("192.0.2.1:80"), "");
  EXPECT_EQ(bound("127.70.0.6:80"), "");
  EXPECT_EQ(bound("[2001:db8::1]:80"), "");
}

TEST_F(Lead, ASocketForIPv6AloneListensWhereItIsInNobodysWay) {
  EXPECT_EQ(bound("[::]:2222", {.only_v6 = true}), "[::1]:0");
  EXPECT_EQ(bound("0.0.0.0:2222", {.only_v6 = true}), "127.70.0.5:2222");
}

TEST_F(Lead, PortsThatOnlyRootMayTakeAreAtOthers) {
  EXPECT_EQ(bound("0.0.0.0:80"), "127.70.0.5:64592");
  EXPECT_EQ(bound("127.70.0.5:80"), "127.70.0.5:64592") << "by its own address";
  EXPECT_EQ(connected("127.80.0.9:80"), "127.80.0.9:64592");
  EXPECT_EQ(connected("[::ffff:127.80.0.9]:1023"), "[::ffff:127.80.0.9]:65535");
  EXPECT_EQ(connected("127.80.0.9:1024"), "");
  EXPECT_EQ(led_port(*parse_ip("192.0.2.1"), 80), 80);
}

TEST_F(Lead, WhatThePodItselfListensOnIsFoundHere) {
  listening_ = 8080;
  EXPECT_EQ(connected("127.0.0.1:8080"), "127.70.0.5:8080");
  EXPECT_EQ(connected("0.0.0.0:8080"), "127.70.0.5:8080");
  EXPECT_EQ(connected("[::1]:8080"), "[::ffff:127.70.0.5]:8080");
  EXPECT_EQ(connected("127.0.0.1:7443"), "") << "of the machine";
  listening_ = 64592;
  EXPECT_EQ(connected("127.0.0.1:80"), "127.70.0.5:64592");
}

TEST_F(Lead, NamesAreAskedOfSkiff) {
  EXPECT_EQ(connected("192.0.2.53:53"), "") << "nobody answers";
  table_.names_port = 41053;
  EXPECT_EQ(connected("192.0.2.53:53", {.udp = true}), "127.0.0.1:41053");
  EXPECT_EQ(connected("127.0.0.53:53"), "127.0.0.1:41053");
  EXPECT_EQ(connected("[::1]:53"), "[::ffff:127.0.0.1]:41053");
  EXPECT_EQ(connected("127.80.0.9:53"), "127.80.0.9:64565") << "a name server that is a pod";
}

TEST_F(Lead, AServiceLeadsToOneOfItsPods) {
  table_ = read_table(
      "tcp 10.96.0.7 80 127.80.0.1:8080 127.80.0.2:443\nudp 10.96.0.7 80 127.80.0.3:9000\n"
      "tcp 10.96.0.8 80\n");
  EXPECT_EQ(connected("10.96.0.7:80"), "127.80.0.1:8080");
  choice_ = 1;
  EXPECT_EQ(connected("10.96.0.7:80"), "127.80.0.2:64955");
  EXPECT_EQ(connected("10.96.0.7:80", {.udp = true}), "127.80.0.3:9000");
  EXPECT_EQ(connected("10.96.0.7:81"), "");
  EXPECT_EQ(connected("10.96.0.8:80"), "127.70.0.5:1") << "nobody is behind it";
}

TEST_F(Lead, ResolversOfTheMachineAreNotFound) {
  sockaddr_un un{.sun_family = AF_UNIX, .sun_path = "/var/run/nscd/socket"};
  std::vector<std::byte> bytes(sizeof un);
  std::memcpy(bytes.data(), &un, sizeof un);
  EXPECT_TRUE(lead(LedCall::kConnect, bytes, {}, {}));
  std::memcpy(&un, bytes.data(), sizeof un);
  EXPECT_STREQ(un.sun_path, "/-ar/run/nscd/socket");
  EXPECT_FALSE(lead(LedCall::kConnect, bytes, {}, {})) << "any other path";
  EXPECT_FALSE(lead(LedCall::kBind, bytes, {}, {}));
}

TEST_F(Lead, WhatIsTooShortToBeAnAddressStays) {
  std::vector<std::byte> whole = address("0.0.0.0:80");
  for (std::size_t n = 0; n < whole.size(); ++n) {
    EXPECT_FALSE(lead(LedCall::kBind, {whole.data(), n}, {}, {.ip = 1}));
  }
}

TEST(IsTaken, ReadsTheKernelsTables) {
  const std::string tcp =
      "  sl  local_address rem_address   st tx_queue rx_queue\n"
      "   0: 0500467F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0\n"
      "   1: 0500467F:1F91 0500467F:D2A4 01 00000000:00000000 00:00000000 00000000     0\n";
  const std::uint32_t ip = *parse_ip(kPod);
  EXPECT_TRUE(is_taken(tcp, ip, 8080));
  EXPECT_FALSE(is_taken(tcp, ip, 8081)) << "a connection";
  EXPECT_FALSE(is_taken(tcp, ip + 1, 8080));
  const std::string tcp6 =
      "   0: 0000000000000000FFFF00000500467F:1F92 00000000000000000000000000000000:0000 0A 0\n";
  EXPECT_TRUE(is_taken(tcp6, ip, 8082));
  EXPECT_FALSE(is_taken("", ip, 8080));
  EXPECT_FALSE(is_taken("   0: x:y z 0A", ip, 8080));
}

TEST(LedTable, ReadsWhatItWrites) {
  const LedTable table{.names_port = 53001,
                       .services = {{.ips = {*parse_ip("10.96.0.7")},
                                     .port = 80,
                                     .targets = {{*parse_ip("127.80.0.1"), 8080}}},
                                    {.ips = {*parse_ip("10.96.0.8")}, .udp = true, .port = 5353}}};
  EXPECT_EQ(to_text(table), "names 53001\ntcp 10.96.0.7 80 127.80.0.1:8080\nudp 10.96.0.8 5353\n");
  EXPECT_EQ(read_table(to_text(table)), table);
}

TEST(LedTable, LeavesOutWhatItCannotRead) {
  const LedTable table = read_table(
      "names x\nsctp 10.96.0.7 80\ntcp 10.96.0.300 80\ntcp 10.96.0.7 80000\n\ntcp\n"
      "tcp 10.96.0.9 80 127.80.0.1 nobody:1 127.80.0.2:99999 127.80.0.3:1\n");
  EXPECT_EQ(table.names_port, 0);
  ASSERT_EQ(table.services.size(), 1U);
  ASSERT_EQ(table.services[0].targets.size(), 1U);
  EXPECT_EQ(table.services[0].targets[0].port, 1);
}

}  // namespace
}  // namespace skiff::node
