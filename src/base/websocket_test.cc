#include "base/websocket.h"

#include <gtest/gtest.h>

namespace skiff::ws {
namespace {

std::string masked(Op op, std::string_view payload, bool last = true) {
  std::string out = client_frame(op, payload, 0x12345678);
  if (!last) out[0] = static_cast<char>(out[0] & 0x7f);
  return out;
}

struct Read {
  std::vector<Message> messages = {};
  std::uint16_t fault = 0;
};

// The bytes in pieces of `piece`.
Read read(std::string_view bytes, std::size_t piece = 1'000'000, std::size_t most = 1000) {
  Reader reader(most);
  Read out;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    const auto taken = reader.take(bytes.substr(at, piece), out.messages);
    if (taken) continue;
    out.fault = taken.error().code;
    break;
  }
  return out;
}

TEST(WebSocket, MessagesComeWholeHoweverTheBytesArrive) {
  const std::string bytes =
      masked(Op::kBinary, "one") + masked(Op::kText, std::string(300, 'x')) + masked(Op::kPing, "");
  for (const std::size_t piece : {1U, 2U, 3U, 7U, 1000U}) {
    const Read got = read(bytes, piece);
    ASSERT_EQ(got.messages.size(), 3U) << piece;
    EXPECT_EQ(got.messages[0].payload, "one");
    EXPECT_EQ(got.messages[1].payload, std::string(300, 'x'));
    EXPECT_EQ(got.messages[1].op, Op::kText);
    EXPECT_EQ(got.messages[2].op, Op::kPing);
    EXPECT_EQ(got.fault, 0);
  }
}

TEST(WebSocket, FragmentsAreJoinedAndControlFramesMayComeBetween) {
  const Read got = read(masked(Op::kBinary, "a", false) + masked(Op::kPing, "p") +
                        masked(Op::kContinuation, "b", false) + masked(Op::kContinuation, "c"));
  ASSERT_EQ(got.messages.size(), 2U);
  EXPECT_EQ(got.messages[0].op, Op::kPing);
  EXPECT_EQ(got.messages[1].payload, "abc");
  EXPECT_EQ(got.messages[1].op, Op::kBinary);
}

TEST(WebSocket, WhatBreaksTheProtocolIsRefusedWithItsCode) {
  std::string no_mask = frame(Op::kBinary, "x"), reserved = masked(Op::kBinary, "x");
  reserved[0] = static_cast<char>(reserved[0] | 0x40);
  EXPECT_EQ(read(no_mask).fault, kBroken);
  EXPECT_EQ(read(reserved).fault, kBroken);
  EXPECT_EQ(read(masked(static_cast<Op>(5), "x")).fault, kBroken);
  EXPECT_EQ(read(masked(Op::kContinuation, "x")).fault, kBroken);
  EXPECT_EQ(read(masked(Op::kBinary, "x", false) + masked(Op::kText, "y")).fault, kBroken);
  EXPECT_EQ(read(masked(Op::kPing, "x", false)).fault, kBroken);
  EXPECT_EQ(read(masked(Op::kPing, std::string(126, 'x'))).fault, kBroken);
  EXPECT_EQ(read(masked(Op::kBinary, std::string(1001, 'x'))).fault, kTooBig);
  EXPECT_EQ(read(masked(Op::kBinary, std::string(600, 'x'), false) +
                 masked(Op::kContinuation, std::string(600, 'x')))
                .fault,
            kTooBig);
  // A length that no memory holds is refused before anything is kept for it.
  EXPECT_EQ(read("\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff"
                 "mask")
                .fault,
            kTooBig);
}

TEST(WebSocket, FramesOfTheServerCarryTheirLengthAndNoMask) {
  EXPECT_EQ(frame(Op::kBinary, "hi"), "\x82\x02hi");
  EXPECT_EQ(frame(Op::kBinary, std::string(200, 'x')).substr(0, 4),
            std::string("\x82\x7e\x00\xc8", 4));
  EXPECT_EQ(frame(Op::kBinary, std::string(70'000, 'x')).substr(0, 10),
            std::string("\x82\x7f\x00\x00\x00\x00\x00\x01\x11\x70", 10));
  EXPECT_EQ(close_frame(kNormal, "bye"),
            "\x88\x05\x03\xe8"
            "bye");
}

TEST(WebSocket, HandshakeAnswersTheKey) {
  // The example of RFC 6455, section 1.3.
  http::Request request{
      .headers = {{"Upgrade", "WebSocket"},
                  {"Connection", "keep-alive, Upgrade"},
                  {"Sec-WebSocket-Version", "13"},
                  {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="},
                  {"Sec-WebSocket-Protocol", "v5.channel.k8s.io, v4.channel.k8s.io"}}};
  EXPECT_TRUE(asked_for(request));
  EXPECT_EQ(offered_protocols(request),
            (std::vector<std::string>{"v5.channel.k8s.io", "v4.channel.k8s.io"}));
  const auto headers = handshake(request, "v4.channel.k8s.io");
  ASSERT_TRUE(headers);
  EXPECT_EQ(http::header(*headers, "Sec-WebSocket-Accept"), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
  EXPECT_EQ(http::header(*headers, "Sec-WebSocket-Protocol"), "v4.channel.k8s.io");
  request.headers[3].second = "short";
  EXPECT_FALSE(handshake(request, ""));
  request.headers[1].second = "keep-alive";
  EXPECT_FALSE(asked_for(request));
}

TEST(WebSocket, WhatAServerSendsAClientReads) {
  const std::string long_text(70'000, 'x');
  const std::string bytes = frame(Op::kBinary, "one") + frame(Op::kText, long_text);
  Reader reader(100'000, From::kServer);
  std::vector<Message> messages;
  ASSERT_TRUE(reader.take(bytes, messages));
  ASSERT_EQ(messages.size(), 2U);
  EXPECT_EQ(messages[0].payload, "one");
  EXPECT_EQ(messages[1].payload, long_text);
  EXPECT_FALSE(reader.take(masked(Op::kBinary, "x"), messages)) << "a server does not mask";
}

TEST(WebSocket, WhatAClientAsksForAServerGrants) {
  const http::Request request{.method = "GET",
                              .headers = client_headers("0123456789abcdef", "v5.x, v4.x")};
  EXPECT_TRUE(asked_for(request));
  EXPECT_EQ(offered_protocols(request), (std::vector<std::string>{"v5.x", "v4.x"}));
  EXPECT_TRUE(handshake(request, "v4.x"));
}

}  // namespace
}  // namespace skiff::ws
