#include "apiserver/streams/forward.h"

#include <gtest/gtest.h>

#include "apiserver/streams/testing/clients.h"

namespace skiff::apiserver {
namespace {

using testing::EchoPeer;
using testing::masked;
using testing::SpdyClient;

http::Headers websocket_headers(const std::string& protocol) {
  return {{"Connection", "Upgrade"},
          {"Upgrade", "websocket"},
          {"Sec-WebSocket-Version", "13"},
          {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="},
          {"Sec-WebSocket-Protocol", protocol}};
}

Result<ForwardUpgrade> ask_forward(http::Headers headers, const std::string& query = "") {
  const std::string target = "/api/v1/namespaces/n/pods/p/portforward" + query;
  return forward_upgrade({.method = "GET", .target = target, .headers = std::move(headers)},
                         http::parse_url(target).value());
}

// Port 1 has nobody.
std::unique_ptr<Peer> dial(int port) {
  if (port != 1) return std::make_unique<EchoPeer>();
  return std::make_unique<EchoPeer>(fail(Code::kServiceUnavailable, "nobody there"), true);
}

std::string pull_forward(ForwardTunnel& tunnel) {
  std::string out;
  tunnel.pull(out, [] {});
  return out;
}

std::string opened(SpdyClient& client, std::uint32_t id, const std::string& port) {
  const std::string request = std::to_string(id);
  return client.open(id, {{"streamtype", "error"}, {"port", port}, {"requestid", request}}) +
         client.open(id + 2, {{"streamtype", "data"}, {"port", port}, {"requestid", request}});
}

TEST(Forward, ConnectionsOverSpdyDoNotMix) {
  ForwardTunnel tunnel(forward_over_spdy(), dial);
  SpdyClient client;
  spdy::Writer words;
  tunnel.push(opened(client, 1, "80") + opened(client, 5, "81"));
  (void)pull_forward(tunnel);  // the four replies
  tunnel.push(words.data(7, "b", false) + words.data(3, "a", false) + words.data(9, "x", false));
  EXPECT_EQ(pull_forward(tunnel), words.data(3, "A", false) + words.data(7, "B", false));
  tunnel.push(words.data(3, "", true));
  EXPECT_EQ(pull_forward(tunnel), words.data(1, "", true) + words.data(3, "", true));
  tunnel.push(words.data(7, "c", false));
  EXPECT_EQ(pull_forward(tunnel), words.data(7, "C", false));
}

TEST(Forward, AResetIsTheEndOfItsConnectionForBothSides) {
  ForwardTunnel tunnel(forward_over_spdy(), dial);
  SpdyClient client;
  spdy::Writer words;
  tunnel.push(opened(client, 1, "80"));
  (void)pull_forward(tunnel);
  using std::string_view_literals::operator""sv;
  tunnel.push("\x80\x03\0\x03\0\0\0\x08\0\0\0\x03\0\0\0\x05"sv);
  EXPECT_EQ(pull_forward(tunnel), words.data(1, "", true) + words.data(3, "", true));
  tunnel.push(words.data(3, "more", false));
  EXPECT_EQ(pull_forward(tunnel), "");
}

TEST(Forward, HalvesOfPairsAreNotKeptWithoutEnd) {
  ForwardTunnel tunnel(forward_over_spdy(), dial);
  SpdyClient client;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    tunnel.push(
        client.open(1 + 2 * i, {{"streamtype", "error"}, {"requestid", std::to_string(i)}}));
  }
  std::string out;
  EXPECT_FALSE(tunnel.pull(out, [] {}));
}

TEST(Forward, AProblemIsToldOnTheErrorStreamOfItsConnection) {
  for (const auto& [port, problem] : std::vector<std::pair<std::string, std::string>>{
           {"1", "nobody there"}, {"0", "\"0\" is no port"}, {"x", "\"x\" is no port"}}) {
    ForwardTunnel tunnel(forward_over_spdy(), dial);
    SpdyClient client;
    spdy::Writer words;
    tunnel.push(opened(client, 1, port));
    EXPECT_TRUE(
        pull_forward(tunnel).ends_with(words.data(1, problem, true) + words.data(3, "", true)))
        << port;
  }
}

TEST(Forward, SpdyMayComeInsideOfAWebSocket) {
  auto upgrade = ask_forward(websocket_headers("SPDY/3.1+portforward.k8s.io"));
  ASSERT_TRUE(upgrade) << upgrade.error().message;
  ForwardTunnel tunnel(std::move(upgrade->channels), dial);
  SpdyClient client;
  spdy::Writer words;
  tunnel.push(masked(ws::Op::kBinary, opened(client, 1, "80")));
  (void)pull_forward(tunnel);
  tunnel.push(masked(ws::Op::kBinary, words.data(3, "hi", false)));
  EXPECT_EQ(pull_forward(tunnel), ws::frame(ws::Op::kBinary, words.data(3, "HI", false)));
  tunnel.push(masked(ws::Op::kClose, ""));
  std::string out;
  EXPECT_FALSE(tunnel.pull(out, [] {}));
  EXPECT_EQ(out, ws::close_frame(ws::kNormal, ""));
}

TEST(Forward, ChannelsBeginWithTheirPortAndEndWithTheLast) {
  auto upgrade = ask_forward(websocket_headers("v4.channel.k8s.io"), "?ports=258&ports=1");
  ASSERT_TRUE(upgrade) << upgrade.error().message;
  ForwardTunnel tunnel(std::move(upgrade->channels), dial);
  const auto message = [](std::string_view bytes) { return ws::frame(ws::Op::kBinary, bytes); };
  using std::string_view_literals::operator""sv;
  EXPECT_EQ(pull_forward(tunnel), message("\0\x02\x01"sv) + message("\1\x02\x01"sv) +
                                      message("\2\x01\0"sv) + message("\3\x01\0"sv) +
                                      message("\3nobody there"sv));
  tunnel.push(masked(ws::Op::kBinary, "\0data"sv) + masked(ws::Op::kBinary, "\1lost"sv));
  EXPECT_EQ(pull_forward(tunnel), message("\0DATA"sv));
  tunnel.push(masked(ws::Op::kBinary, "\xff\0"sv));
  std::string last;
  EXPECT_FALSE(tunnel.pull(last, [] {}));
  EXPECT_EQ(last, ws::close_frame(ws::kNormal, ""));
}

TEST(Forward, WhatIsNotSpokenIsRefused) {
  const auto refused = [](http::Headers headers, const std::string& query = "") {
    const auto upgrade = ask_forward(std::move(headers), query);
    return upgrade ? "" : upgrade.error().message;
  };
  EXPECT_EQ(refused({}), "Upgrade request required");
  EXPECT_NE(refused({{"Upgrade", "SPDY/3.1"}, {"X-Stream-Protocol-Version", "v9"}}), "");
  EXPECT_NE(refused(websocket_headers("v9")), "");
  const http::Headers channels = websocket_headers("v4.channel.k8s.io");
  EXPECT_EQ(refused(channels), "query parameter \"ports\" is required");
  EXPECT_EQ(refused(channels, "?ports=80,99999"), "\"99999\" is no port");
  EXPECT_EQ(refused(channels, "?ports=80"), "");
}

TEST(Forward, ThereIsAnEndToHowManyConnectionsOneClientHas) {
  ForwardTunnel tunnel(forward_over_spdy(), dial);
  SpdyClient client;
  std::string all;
  for (std::uint32_t i = 0; i < 300; ++i) all += opened(client, 1 + 4 * i, "80");
  tunnel.push(all);
  EXPECT_TRUE(pull_forward(tunnel).contains("too many connections"));
}

}  // namespace
}  // namespace skiff::apiserver
