#include "apiserver/streams/channels.h"

#include <gtest/gtest.h>

#include "apiserver/streams/testing/clients.h"

namespace skiff::apiserver {
namespace {

using std::string_view_literals::operator""sv;
using testing::EchoPeer;
using testing::masked;
using testing::SpdyClient;

const ExecOptions kAllStreams{.container = "c", .in = true, .out = true, .err = true};

Upgrade ask_exec(http::Headers headers, const ExecOptions& options) {
  auto made = upgrade({.method = "GET", .target = "/", .headers = std::move(headers)}, options);
  EXPECT_TRUE(made) << made.error().message;
  return made ? std::move(*made) : Upgrade{};
}

Upgrade over_websocket(const ExecOptions& options = kAllStreams,
                       const std::string& offers = "v9.channel.k8s.io, v5.channel.k8s.io") {
  return ask_exec({{"Connection", "Upgrade"},
                   {"Upgrade", "websocket"},
                   {"Sec-WebSocket-Version", "13"},
                   {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="},
                   {"Sec-WebSocket-Protocol", offers}},
                  options);
}

Upgrade over_spdy(const ExecOptions& options = kAllStreams) {
  return ask_exec({{"Upgrade", "SPDY/3.1"}, {"X-Stream-Protocol-Version", "v4.channel.k8s.io"}},
                  options);
}

std::string pull_exec(ExecTunnel& tunnel, bool more = true) {
  std::string out;
  EXPECT_EQ(tunnel.pull(out, [] {}), more);
  return out;
}

TEST(Channels, OverAWebSocketInputSizeAndEndHaveTheirNumbers) {
  Upgrade made = over_websocket();
  EXPECT_EQ(http::header(made.headers, "Sec-WebSocket-Protocol"), "v5.channel.k8s.io");
  ExecTunnel tunnel(std::make_unique<EchoPeer>(7), std::move(made.channels), kAllStreams);
  const auto message = [](std::string_view bytes) { return ws::frame(ws::Op::kBinary, bytes); };
  tunnel.push(masked(ws::Op::kBinary, "\0in"sv));
  EXPECT_EQ(pull_exec(tunnel), message("\1IN"));
  tunnel.push(masked(ws::Op::kBinary, "\4{\"Width\":80,\"Height\":25}"sv));
  EXPECT_EQ(pull_exec(tunnel), message("\00180x25"));
  tunnel.push(masked(ws::Op::kPing, "p"));
  EXPECT_EQ(pull_exec(tunnel), ws::frame(ws::Op::kPong, "p"));
  tunnel.push(masked(ws::Op::kBinary, "\xff\0"sv));
  EXPECT_EQ(pull_exec(tunnel, false),
            message("\3" + json::serialize(exit_status(7))) + ws::close_frame(ws::kNormal, ""));
}

TEST(Channels, TheFirstProtocolTellsAFailureInWordsAndASuccessNotAtAll) {
  for (const std::string offers : {"channel.k8s.io", ""}) {
    Upgrade made = over_websocket(kAllStreams, offers);
    EXPECT_EQ(http::header(made.headers, "Sec-WebSocket-Protocol"), offers);
    ExecTunnel well(std::make_unique<EchoPeer>(0, true), std::move(made.channels), kAllStreams);
    EXPECT_EQ(pull_exec(well, false), ws::close_frame(ws::kNormal, ""));
    ExecTunnel badly(std::make_unique<EchoPeer>(3, true),
                     over_websocket(kAllStreams, offers).channels, kAllStreams);
    EXPECT_EQ(
        pull_exec(badly, false),
        ws::frame(ws::Op::kBinary, "\3command terminated with non-zero exit code: exit status 3") +
            ws::close_frame(ws::kNormal, ""));
  }
}

TEST(Channels, OverSpdyTheProgramWaitsUntilEveryStreamIsThere) {
  ExecTunnel tunnel(std::make_unique<EchoPeer>(fail(Code::kInternal, "no"), true),
                    over_spdy().channels, kAllStreams);
  SpdyClient client;
  spdy::Writer words;
  tunnel.push(client.open(1, {{"streamtype", "error"}}) +
              client.open(3, {{"streamtype", "stdin"}}) +
              client.open(5, {{"streamtype", "stdout"}}));
  (void)pull_exec(tunnel);
  EXPECT_EQ(pull_exec(tunnel), "");
  tunnel.push(client.open(7, {{"streamtype", "stderr"}}));
  const std::string status = json::serialize(exit_status(fail(Code::kInternal, "no")));
  EXPECT_TRUE(pull_exec(tunnel, false)
                  .ends_with(words.data(1, status, true) + words.data(5, "", true) +
                             words.data(7, "", true)));
}

// Complains once, is silent then.
class Grumbler final : public Peer {
 public:
  void write(std::string_view) override {}
  std::size_t backlog() const override { return 0; }
  void end_input() override {}
  void resize(int, int) override {}
  bool read(std::vector<Piece>& out, std::function<void()>) override {
    if (!std::exchange(said_, true)) out.push_back({Channel::kErr, "no"});
    return true;
  }
  Result<int> exit_code() override { return 0; }

 private:
  bool said_ = false;
};

TEST(Channels, WordsThatNobodyAskedForAreFollowedByOthers) {
  const ExecOptions out_only{.container = "c", .out = true};
  ExecTunnel tunnel(std::make_unique<Grumbler>(), over_websocket(out_only).channels, out_only);
  const auto woken = [&] {
    bool called = false;
    std::string out;
    EXPECT_TRUE(tunnel.pull(out, [&] { called = true; }));
    EXPECT_EQ(out, "");
    return called;
  };
  EXPECT_TRUE(woken());   // the program keeps no wake after it has spoken
  EXPECT_FALSE(woken());  // it does after a silence
}

TEST(Channels, ClientsLearnHowAProgramEnded) {
  EXPECT_EQ(json::serialize(exit_status(0)), R"({"metadata":{},"status":"Success"})");
  const json::value failed = exit_status(3);
  EXPECT_EQ(json::get_string(failed, {"reason"}), "NonZeroExitCode");
  EXPECT_EQ(json::get_string(failed, {"message"}),
            "command terminated with non-zero exit code: exit status 3");
  EXPECT_EQ(json::serialize(*json::find(failed, {"details", "causes"})),
            R"([{"reason":"ExitCode","message":"3"}])");
}

TEST(Channels, ABrokenClientEndsTheProgram) {
  ExecTunnel by_socket(std::make_unique<EchoPeer>(), over_websocket().channels, kAllStreams);
  by_socket.push("\xff\xff\xff\xff");
  EXPECT_EQ(pull_exec(by_socket, false).front(), ws::close_frame(ws::kBroken, "").front());
  ExecTunnel by_spdy(std::make_unique<EchoPeer>(), over_spdy().channels, kAllStreams);
  by_spdy.push("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(pull_exec(by_spdy, false), "");
}

}  // namespace
}  // namespace skiff::apiserver
