#include "client/remote/session.h"

#include <gtest/gtest.h>

#include <thread>

#include "client/remote/lines.h"
#include "client/remote/scripted_server.h"

namespace skiff::client {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

const http::Headers kSoon{{"Retry-After", "0"}};

TEST(Session, ComesAgainWhereTheServerAsksForIt) {
  Scripted server;
  server.say("POST /x", 429, "busy", kSoon);
  server.say("POST /x", 503, "busy", kSoon);
  server.say("POST /x", 201, "made");
  Session session(server.access(), {});
  const auto answer = session.send({.method = "POST", .target = "/x"});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 201);
  EXPECT_EQ(server.asked().size(), 3U);
  EXPECT_LT(session.per_second(), PaceOptions().start_per_s);
}

TEST(Session, AnswersThatDoNotAskForItAreGivenAtOnce) {
  Scripted server;
  server.say("POST /x", 500, "broken");
  Session session(server.access(), {});
  EXPECT_EQ(session.send({.method = "POST", .target = "/x"})->status, 500);
  EXPECT_EQ(server.asked().size(), 1U);
}

TEST(Session, DoesNotWaitLongerThanItsTime) {
  Scripted server;
  server.say("GET /x", 429, "busy", {{"Retry-After", "60"}});
  Session session(server.access(), {.timeout = 30s});
  EXPECT_EQ(session.send({.target = "/x"})->status, 429);
  // The server has said when it wants to hear from us, so it does not.
  const auto refused = session.send({.target = "/y"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kTooManyRequests);
  EXPECT_EQ(server.asked().size(), 1U);
}

TEST(Session, AWaitEndsWhenTheSessionDoes) {
  Scripted server;
  server.say("GET /x", 429, "busy", {{"Retry-After", "60"}});
  Session session(server.access(), {.timeout = 10min});
  const auto began = Clock::now();
  std::jthread end([&] {
    while (server.asked().empty()) std::this_thread::sleep_for(1ms);
    session.shut_down();
  });
  EXPECT_FALSE(session.send({.target = "/x"}));
  EXPECT_LT(Clock::now() - began, 40s);
}

TEST(Session, RenewsExpiredCredentialsOnce) {
  Scripted server;
  server.say("GET /x", 401, "who?");
  server.say("GET /x", 200, "you");
  server.say("GET /never", 401, "who?");
  Access access = server.access();
  access.token.clear();
  access.exec = ExecPlugin{.command = "c"};
  int runs = 0;
  Session session(access, {}, [&](const ExecPlugin&) -> Result<Credential> {
    return Credential{.token = "t" + std::to_string(++runs)};
  });
  EXPECT_EQ(session.send({.target = "/x"})->status, 200);
  EXPECT_EQ(server.authorization(), "Bearer t2");
  EXPECT_EQ(session.send({.target = "/never"})->status, 401);
  EXPECT_EQ(runs, 3);
  EXPECT_EQ((*session.open({.target = "/never"}))->status(), 401);
  EXPECT_EQ(runs, 4);
}

TEST(Session, KeepsToItsPace) {
  Scripted server;
  server.say("GET /x", 200, "{}");
  Session session(server.access(), {.pace = {.start_per_s = 50, .burst = 0, .grow_per_s = 0}});
  const auto began = Clock::now();
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(session.send({.target = "/x"}));
  EXPECT_GE(Clock::now() - began, 90ms);
}

TEST(RetryAfter, IsHeardFromServersThatCannotServe) {
  EXPECT_EQ(retry_after(429, {{"Retry-After", "3"}}), 3s);
  EXPECT_EQ(retry_after(503, {{"retry-after", "0"}}), 0s);
  EXPECT_FALSE(retry_after(200, {{"Retry-After", "3"}}));
  EXPECT_FALSE(retry_after(429, {}));
  EXPECT_FALSE(retry_after(429, {{"Retry-After", "Wed, 21 Oct 2026 07:28:00 GMT"}}));
  EXPECT_FALSE(retry_after(429, {{"Retry-After", "-1"}}));
}

TEST(LineBuffer, CutsLinesHoweverThePiecesFall) {
  const std::string text = "one\n\nthree and more\nrest";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    LineBuffer buffer;
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < text.size(); at += size) {
      buffer.add(std::string_view(text).substr(at, size));
      while (const auto line = buffer.next()) lines.emplace_back(*line);
    }
    EXPECT_EQ(lines, (std::vector<std::string>{"one", "", "three and more"})) << size;
    EXPECT_EQ(buffer.rest(), "rest") << size;
  }
}

TEST(LineBuffer, TakesALongLineInSmallPiecesInLinearTime) {
  LineBuffer buffer;
  const std::string piece(1024, 'x');
  const auto began = Clock::now();
  for (int i = 0; i < 32 * 1024; ++i) {  // 32 MiB: quadratic would be 512 GiB looked at
    buffer.add(piece);
    ASSERT_FALSE(buffer.next());
  }
  EXPECT_LT(Clock::now() - began, 20s);
}

}  // namespace
}  // namespace skiff::client
