// The bytes of one gRPC health call, as servers of this world send them.
#include "node/health/health_call.h"

#include <gtest/gtest.h>

namespace skiff::node {
namespace {

std::string frame(int type, int flags, int stream, const std::string& payload) {
  std::string out;
  for (const std::size_t part : {payload.size() >> 16, payload.size() >> 8, payload.size()}) {
    out.push_back(static_cast<char>(part & 0xff));
  }
  out.push_back(static_cast<char>(type));
  out.push_back(static_cast<char>(flags));
  out.append(3, '\0');
  out.push_back(static_cast<char>(stream));
  return out + payload;
}

std::string bytes(std::initializer_list<int> list) {
  std::string out;
  for (const int b : list) out.push_back(static_cast<char>(b));
  return out;
}

const std::string kSettings = frame(4, 0, 0, "");
const std::string kHead = frame(1, 4, 1, bytes({0x88}));  // :status 200
const std::string kCodedName = bytes({0x88, 0x9a, 0xca, 0xc8, 0xb2, 0x12, 0x34, 0xda, 0x8f});

std::string answer_frame(int status) { return frame(0, 0, 1, bytes({0, 0, 0, 0, 2, 8, status})); }
// A literal name in the Huffman code, as Go and C++ servers send it, with a plain value.
std::string trailers(const std::string& value) {
  return frame(1, 5, 1, bytes({0x40}) + kCodedName + static_cast<char>(value.size()) + value);
}

TEST(HealthCall, TheRequestIsHttp2) {
  const std::string request = health_request("10.0.0.1:80", "", "probe");
  EXPECT_TRUE(request.starts_with("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
  EXPECT_NE(request.find("/grpc.health.v1.Health/Check"), std::string::npos);
  EXPECT_NE(request.find("10.0.0.1:80"), std::string::npos);
  EXPECT_TRUE(request.ends_with(frame(0, 1, 1, bytes({0, 0, 0, 0, 0}))));
}

TEST(HealthCall, AServiceIsNamedInTheMessage) {
  EXPECT_TRUE(health_request("a", "db", "p").ends_with(bytes({0, 0, 0, 0, 4, 0x0a, 2}) + "db"));
  const std::string longer(200, 'x');
  EXPECT_TRUE(
      health_request("a", longer, "p").ends_with(bytes({0, 0, 0, 0, 203, 0x0a, 200, 1}) + longer));
}

TEST(HealthCall, AHealthyAnswerIsRead) {
  HealthReply reply;
  EXPECT_EQ(reply.take(kSettings), frame(4, 1, 0, "")) << "settings are acknowledged";
  reply.take(kHead + answer_frame(1));
  EXPECT_FALSE(reply.done());
  reply.take(trailers("0"));
  EXPECT_TRUE(reply.done());
  EXPECT_EQ(reply.grpc_status(), 0);
  EXPECT_EQ(reply.serving(), "SERVING");
  EXPECT_EQ(reply.broken(), "");
}

TEST(HealthCall, ItMayComeByteByByte) {
  HealthReply reply;
  for (const char c : kSettings + kHead + answer_frame(2) + trailers("0")) reply.take({&c, 1});
  EXPECT_TRUE(reply.done());
  EXPECT_EQ(reply.serving(), "NOT_SERVING");
}

TEST(HealthCall, StatesHaveTheirNames) {
  for (const auto& [number, name] :
       {std::pair<int, std::string>{0, "UNKNOWN"}, {3, "SERVICE_UNKNOWN"}, {9, "9"}}) {
    HealthReply reply;
    reply.take(kHead + answer_frame(number) + trailers("0"));
    EXPECT_EQ(reply.serving(), name);
  }
  HealthReply empty;  // the number 0 is left out by those who are strict
  empty.take(kHead + frame(0, 0, 1, bytes({0, 0, 0, 0, 0})) + trailers("0"));
  EXPECT_EQ(empty.serving(), "UNKNOWN");
}

TEST(HealthCall, AnErrorIsItsStatus) {
  const std::string plain = "grpc-status";
  struct Case {
    std::string field;
    int status;
  };
  for (const Case& c : {Case{bytes({0x40}) + kCodedName + bytes({2}) + "12", 12},
                        Case{bytes({0x00, 11}) + plain + bytes({1}) + "5", 5},
                        Case{bytes({0x10, 11}) + plain + bytes({2}) + "14", 14},
                        // 5 and 12 in the Huffman code: 011011 11, 00001 00010 111111
                        Case{bytes({0x00, 11}) + plain + bytes({0x81, 0x6f}), 5},
                        Case{bytes({0x00, 11}) + plain + bytes({0x82, 0x08, 0xbf}), 12}}) {
    HealthReply reply;
    // After a change of the table's size and a field that is none of ours.
    reply.take(frame(1, 5, 1, bytes({0x20, 0x88, 0x0f, 0x10, 2}) + "ab" + c.field));
    EXPECT_TRUE(reply.done());
    EXPECT_EQ(reply.broken(), "");
    EXPECT_EQ(reply.grpc_status(), c.status);
    EXPECT_FALSE(reply.serving());
  }
}

TEST(HealthCall, HeadersMayComeInPiecesWithPadding) {
  HealthReply reply;
  const std::string block = bytes({0x40}) + kCodedName + bytes({1}) + "0";
  reply.take(kHead + frame(0, 8, 1, bytes({2, 0, 0, 0, 0, 2, 8, 1, 0, 0})));
  reply.take(frame(1, 1 | 8 | 0x20, 1, bytes({1, 0, 0, 0, 0, 16}) + block.substr(0, 4) + '\0'));
  EXPECT_FALSE(reply.done());
  reply.take(frame(9, 4, 1, block.substr(4)));
  EXPECT_TRUE(reply.done());
  EXPECT_EQ(reply.grpc_status(), 0);
  EXPECT_EQ(reply.serving(), "SERVING");
}

TEST(HealthCall, PingsAreAnsweredAndOtherFramesAreLeft) {
  HealthReply reply;
  EXPECT_EQ(reply.take(frame(6, 0, 0, "12345678")), frame(6, 1, 0, "12345678"));
  EXPECT_EQ(reply.take(frame(6, 1, 0, "12345678") + frame(8, 0, 0, bytes({0, 0, 0, 9})) +
                       frame(4, 1, 0, "") + frame(0, 1, 3, "other stream")),
            "");
  EXPECT_FALSE(reply.done());
}

TEST(HealthCall, WhatIsNoGrpcIsToldAsSuch) {
  struct Case {
    const char* sentence;
    std::string sent;
  };
  for (const Case& c : {Case{"HTTP/1.1", "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"},
                        Case{"a reset", frame(3, 0, 1, bytes({0, 0, 0, 8}))},
                        Case{"good-bye", frame(7, 0, 0, bytes({0, 0, 0, 0, 0, 0, 0, 0}))},
                        Case{"padding longer than its frame", frame(0, 8, 1, bytes({9, 1}))},
                        Case{"padded headers without anything", frame(1, 8 | 4, 1, "")},
                        Case{"a field that is cut off", frame(1, 5, 1, bytes({0x40, 5, 'a'}))},
                        Case{"a number without end",
                             frame(1, 5, 1, bytes({0xff, 0xff, 0xff, 0xff, 0xff, 0xff}))}}) {
    HealthReply reply;
    reply.take(c.sent);
    EXPECT_TRUE(reply.done()) << c.sentence;
    EXPECT_NE(reply.broken(), "") << c.sentence;
  }
}

TEST(HealthCall, AnAnswerThatIsCutOffIsNone) {
  HealthReply reply;
  reply.take(kHead + frame(0, 0, 1, bytes({0, 0, 0, 0, 9, 8, 1})) + trailers("0"));
  EXPECT_FALSE(reply.serving());
  HealthReply packed;  // compressed, which was not asked for
  packed.take(kHead + frame(0, 0, 1, bytes({1, 0, 0, 0, 2, 8, 1})) + trailers("0"));
  EXPECT_FALSE(packed.serving());
}

}  // namespace
}  // namespace skiff::node
