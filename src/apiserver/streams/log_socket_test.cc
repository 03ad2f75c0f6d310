#include "apiserver/streams/log_socket.h"

#include <gtest/gtest.h>

#include "apiserver/streams/testing/clients.h"

namespace skiff::apiserver {
namespace {

using testing::masked;

// Says its pieces one by one; an empty one is a pause.
class Pieces final : public http::Stream {
 public:
  explicit Pieces(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {}
  bool pull(std::string& out, std::function<void()> wake) override {
    if (at_ == pieces_.size()) return false;
    out += pieces_[at_];
    if (pieces_[at_++].empty()) wake_ = std::move(wake);
    return true;
  }

 private:
  const std::vector<std::string> pieces_;
  std::size_t at_ = 0;
  std::function<void()> wake_ = {};
};

http::Response ask_log(const std::string& protocols, std::vector<std::string> pieces) {
  http::Request request{.method = "GET",
                        .target = "/",
                        .headers = {{"Connection", "Upgrade"},
                                    {"Upgrade", "websocket"},
                                    {"Sec-WebSocket-Version", "13"},
                                    {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}}};
  if (!protocols.empty()) request.headers.emplace_back("Sec-WebSocket-Protocol", protocols);
  http::Response plain{.after_revision = 7};
  plain.stream = std::make_unique<Pieces>(std::move(pieces));
  return log_over_socket(request, std::move(plain));
}

std::string pull_log(http::Response& response, bool more) {
  std::string out;
  EXPECT_EQ(response.tunnel->pull(out, [] {}), more);
  return out;
}

TEST(LogSocket, EveryPieceIsAMessageAndTheEndAFarewell) {
  http::Response response = ask_log("x, binary.k8s.io", {"a\n", "b\n"});
  ASSERT_EQ(response.status, 101);
  EXPECT_EQ(http::header(response.headers, "Sec-WebSocket-Protocol"), "binary.k8s.io");
  EXPECT_EQ(response.after_revision, 7U);
  EXPECT_EQ(pull_log(response, true),
            ws::frame(ws::Op::kBinary, "") + ws::frame(ws::Op::kBinary, "a\n"));
  EXPECT_EQ(pull_log(response, true), ws::frame(ws::Op::kBinary, "b\n"));
  EXPECT_EQ(pull_log(response, false), ws::close_frame(ws::kNormal, ""));
}

TEST(LogSocket, ATextProtocolCarriesBase64) {
  http::Response response = ask_log("base64.binary.k8s.io", {"a\n"});
  EXPECT_EQ(pull_log(response, true),
            ws::frame(ws::Op::kText, "") + ws::frame(ws::Op::kText, "YQo="));
}

TEST(LogSocket, AClientThatGoesOrBreaksTheRulesEndsIt) {
  http::Response gone = ask_log("", {"", ""});
  (void)pull_log(gone, true);
  bool woken = false;
  std::string out;
  EXPECT_TRUE(gone.tunnel->pull(out, [&] { woken = true; }));
  gone.tunnel->push(masked(ws::Op::kPing, "p"));
  EXPECT_TRUE(woken);
  EXPECT_EQ(pull_log(gone, false),
            ws::frame(ws::Op::kPong, "p") + ws::close_frame(ws::kNormal, ""));
  http::Response broken = ask_log("", {"", ""});
  broken.tunnel->push("\xff\xff\xff\xff");
  EXPECT_TRUE(pull_log(broken, false).find(ws::close_frame(ws::kBroken, "").substr(0, 1)) !=
              std::string::npos);
}

TEST(LogSocket, AClientThatAsksAndDoesNotReadIsNotHeardForEver) {
  http::Response response = ask_log("", {"", "", ""});
  (void)pull_log(response, true);
  const std::string ping = masked(ws::Op::kPing, std::string(125, 'p'));
  std::size_t heard = 0;
  for (; heard < 10'000 && !response.tunnel->full(); ++heard) response.tunnel->push(ping);
  EXPECT_LT(heard, 1000U);
  EXPECT_GT(heard, 100U);
  (void)pull_log(response, true);
  EXPECT_FALSE(response.tunnel->full());
}

TEST(LogSocket, WhatAsksForNoSocketStaysAsItIsAndAnUnknownProtocolIsRefused) {
  http::Response plain;
  plain.stream = std::make_unique<Pieces>(std::vector<std::string>{"a"});
  const http::Response same = log_over_socket({.method = "GET", .target = "/"}, std::move(plain));
  EXPECT_EQ(same.status, 200);
  EXPECT_NE(same.stream, nullptr);
  EXPECT_EQ(ask_log("v4.channel.k8s.io", {"a"}).status, 400);
}

}  // namespace
}  // namespace skiff::apiserver
