#include "net/server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "base/json.h"
#include "net/client.h"

namespace skiff::net {
namespace {

using namespace std::chrono_literals;

// A client that sends exactly the bytes a test wants.
class RawSocket {
 public:
  explicit RawSocket(std::uint16_t port, int receive_buffer = 0)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_buffer > 0) {
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  ~RawSocket() { hang_up(); }
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;

  void send(std::string_view data) {
    while (!data.empty()) {
      const ssize_t sent = ::send(fd_, data.data(), data.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      data.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  // Reads until the text has been seen; what came so far where the server hung up or is silent.
  std::string read_until(std::string_view text, int timeout_ms = 60'000) {
    while (!text_.contains(text) && read_some(timeout_ms)) {
    }
    return text_;
  }
  std::string read_all() {
    while (read_some(60'000)) {
    }
    return text_;
  }
  bool read_some(int timeout_ms) {
    pollfd ready{fd_, POLLIN, 0};
    if (::poll(&ready, 1, timeout_ms) <= 0) return false;
    char chunk[4096];
    const ssize_t size = ::recv(fd_, chunk, sizeof chunk, 0);
    if (size <= 0) {
      ended_ = true;
      return false;
    }
    text_.append(chunk, static_cast<std::size_t>(size));
    return true;
  }
  bool ended() const { return ended_; }
  void clear() { text_.clear(); }
  void end_sending() { ::shutdown(fd_, SHUT_WR); }
  void hang_up() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
  bool ended_ = false;
  std::string text_;
};

// Pieces that a test hands out from outside, and what became of the stream.
struct Tap {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::string> pieces;
  bool ended = false;
  bool destroyed = false;
  int pulls = 0;
  std::function<void()> wake;

  void push(std::string piece, bool last = false) {
    std::function<void()> call;
    {
      const std::lock_guard lock(mutex);
      pieces.push_back(std::move(piece));
      ended = last;
      call = std::exchange(wake, nullptr);
    }
    if (call) call();
  }
  template <class Condition>
  bool wait(Condition condition, std::chrono::milliseconds time = 60s) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, time, condition);
  }
};

class TapStream : public http::Stream {
 public:
  explicit TapStream(std::shared_ptr<Tap> tap) : tap_(std::move(tap)) {}
  ~TapStream() override {
    const std::lock_guard lock(tap_->mutex);
    tap_->destroyed = true;
    tap_->changed.notify_all();
  }
  bool pull(std::string& out, std::function<void()> wake) override {
    const std::lock_guard lock(tap_->mutex);
    ++tap_->pulls;
    tap_->changed.notify_all();
    if (tap_->pieces.empty()) {
      if (tap_->ended) return false;
      tap_->wake = std::move(wake);
      return true;
    }
    out += tap_->pieces.front();
    tap_->pieces.pop_front();
    return !(tap_->pieces.empty() && tap_->ended);
  }

 private:
  std::shared_ptr<Tap> tap_;
};

http::Response echo(const http::Request& request) {
  if (request.target == "/big") return {.body = std::string(5'000'000, 'b')};
  if (request.target == "/throw") throw std::runtime_error("lost");
  if (request.target == "/none") return {.status = 204};
  return {.headers = {{"X-Method", request.method}},
          .body = request.target + "|" + request.body + "|" +
                  std::string(http::header(request.headers, "x-a"))};
}

std::unique_ptr<Server> serve_with(http::Handler handler = echo, ServerOptions options = {}) {
  if (options.listeners.empty()) options.listeners = {{}};
  auto server = Server::start(std::move(options), std::move(handler));
  EXPECT_TRUE(server) << server.error().message;
  return server ? std::move(*server) : nullptr;
}

std::string answer_to(const Server& server, std::string_view bytes) {
  RawSocket socket(server.port(0));
  socket.send(bytes);
  return socket.read_all();
}

TEST(Server, AnswersWhatTheHandlerSaysOnce) {
  struct Case {
    std::string_view name, request, status, body;
  };
  const Case cases[] = {
      {"a plain request", "GET /a HTTP/1.1\r\nHost: h\r\nX-A: 1\r\nConnection: close\r\n\r\n",
       "200 OK", "\r\n\r\n/a||1"},
      {"a body with a length",
       "POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nConnection: close\r\n\r\nxyz", "200 OK",
       "\r\n\r\n/b|xyz|"},
      {"a chunked body",
       "POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
       "3\r\nabc\r\n5;ext=1\r\ndefgh\r\n0\r\nTrailer: x\r\n\r\n",
       "200 OK", "\r\n\r\n/c|abcdefgh|"},
      {"HTTP/1.0 closes by itself", "GET /d HTTP/1.0\r\n\r\n", "200 OK", "\r\n\r\n/d||"},
      {"an exception of the handler", "GET /throw HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
       "500", "the server failed on this request: lost"},
      {"no content has no length", "GET /none HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
       "204 No Content", "Connection: close\r\n\r\n"},
      {"something else than HTTP", "\x16\x03\x01 hello\r\n\r\n", "400 Bad Request",
       "not an HTTP/1.1 request"},
      {"length and chunked at once",
       "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: "
       "chunked\r\n\r\n0\r\n\r\n",
       "400", ""},
      {"an unknown transfer encoding",
       "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n", "501", "chunked"},
      {"no host", "GET / HTTP/1.1\r\n\r\n", "400 Bad Request", "names no host"},
      {"two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400", "names two hosts"},
      {"another version", "GET / HTTP/3.0\r\nHost: h\r\n\r\n", "505 HTTP Version Not Supported",
       "HTTP/1.1"},
      {"a negative length", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", "400", ""},
  };
  const auto server = serve_with();
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const std::string answer = answer_to(*server, c.request);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 " + std::string(c.status))) << answer;
    EXPECT_TRUE(answer.contains(c.body)) << answer;
    EXPECT_EQ(answer.find("\r\nDate: "), answer.rfind("\r\nDate: ")) << answer;
  }
}

TEST(Server, HeadHasTheLengthButNoBody) {
  const auto server = serve_with();
  const std::string answer =
      answer_to(*server, "HEAD /abc HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(answer.contains("Content-Length: 6\r\n")) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << answer;
}

TEST(Server, PipelinedRequestsAreAnsweredInOrder) {
  const auto server = serve_with();
  std::string bytes;
  for (int i = 0; i < 500; ++i) {
    bytes += "POST /" + std::to_string(i) + " HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nok";
  }
  RawSocket socket(server->port(0));
  socket.send(bytes);
  socket.end_sending();  // half-closed, and still every answer comes
  const std::string answers = socket.read_all();
  std::size_t at = 0;
  for (int i = 0; i < 500; ++i) {
    at = answers.find("\r\n\r\n/" + std::to_string(i) + "|ok|", at);
    ASSERT_NE(at, std::string::npos) << i;
  }
}

TEST(Server, ARequestMayArriveByteByByte) {
  const auto server = serve_with();
  RawSocket socket(server->port(0));
  const std::string_view bytes =
      "\r\nPOST /slow HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody";
  for (const char c : bytes) socket.send({&c, 1});
  EXPECT_TRUE(socket.read_until("/slow|body|").contains("200 OK"));
}

TEST(Server, ContinuesAClientThatAsksFirst) {
  const auto server = serve_with();
  RawSocket socket(server->port(0));
  socket.send("PUT /e HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(socket.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  socket.send("hi");
  EXPECT_TRUE(socket.read_until("/e|hi|").contains("HTTP/1.1 200 OK"));
}

TEST(Server, RefusesWhatIsTooLarge) {
  std::atomic<int> handled = 0;
  const auto server = serve_with(
      [&](const http::Request& request) {
        ++handled;
        return echo(request);
      },
      {.header_bytes = 4096, .body_bytes = 1000});
  struct Case {
    std::string_view name;
    std::string request;
    std::string_view status, message;
  };
  const Case cases[] = {
      {"a declared body",
       "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2000000\r\n\r\n" + std::string(900'000, 'x'),
       "413", "larger than the limit of 1000 bytes"},
      {"a declared body that waits to be asked for",
       "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2000000\r\nExpect: 100-continue\r\n\r\n",
       "413", "limit"},
      {"a chunked body",
       "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n" +
           std::string(2000, 'x') + "\r\n0\r\n\r\n",
       "413", "limit"},
      {"one long header", "GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(9000, 'h') + "\r\n\r\n",
       "431", "4096"},
      {"an endless target", "GET /" + std::string(9000, 't'), "431", "4096"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    RawSocket socket(server->port(0));
    socket.send(c.request);
    socket.end_sending();
    const std::string answer = socket.read_all();
    ASSERT_TRUE(answer.starts_with("HTTP/1.1 " + std::string(c.status))) << answer;
    const auto status = json::parse(answer.substr(answer.find("\r\n\r\n") + 4));
    ASSERT_TRUE(status) << answer;
    EXPECT_EQ(json::get_string(*status, {"kind"}), "Status");
    EXPECT_EQ(json::get_int(*status, {"code"}), std::stoi(std::string(c.status)));
    EXPECT_TRUE(json::get_string(*status, {"message"}).contains(c.message));
  }
  EXPECT_EQ(handled, 0);
}

TEST(Server, HangsUpOnClientsThatOnlyHoldSockets) {
  const auto server = serve_with(echo, {.idle = 100ms, .request_time = 100ms});
  struct Case {
    std::string_view name, bytes;
  };
  const Case cases[] = {
      {"nothing at all", ""},
      {"half a head", "GET / HTTP/1.1\r\nHost: h\r\nHos"},
      {"half a body", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc"},
      {"an idle kept connection", "GET / HTTP/1.1\r\nHost: h\r\n\r\n"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    RawSocket socket(server->port(0));
    socket.send(c.bytes);
    socket.read_all();
    EXPECT_TRUE(socket.ended());
  }
}

TEST(Server, ABodyLargerThanAllBuffersArrivesWhole) {
  const auto server = serve_with();
  RawSocket socket(server->port(0), 4096);
  socket.send("GET /big HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  const std::string answer = socket.read_all();
  EXPECT_EQ(answer.size() - answer.find("\r\n\r\n") - 4, 5'000'000U);
}

TEST(Server, AStreamIsFlushedPieceByPiece) {
  auto tap = std::make_shared<Tap>();
  const auto server = serve_with([&](const http::Request&) {
    return http::Response{.stream = std::make_unique<TapStream>(tap)};
  });
  RawSocket socket(server->port(0));
  socket.send("GET /w HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_TRUE(socket.read_until("\r\n\r\n").contains("Transfer-Encoding: chunked"));
  socket.clear();
  for (const std::string piece : {"one", "two", "three"}) {
    tap->push(piece);
    EXPECT_EQ(socket.read_until(piece + "\r\n"),
              std::to_string(piece.size()) + "\r\n" + piece + "\r\n");
    socket.clear();
  }
  tap->push("end", true);
  EXPECT_EQ(socket.read_until("0\r\n\r\n"), "3\r\nend\r\n0\r\n\r\n");
  EXPECT_TRUE(tap->wait([&] { return tap->destroyed; }));
  // The connection goes on.
  socket.clear();
  tap->pieces = {"again"};
  socket.send("GET /w HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_TRUE(socket.read_until("again").contains("200 OK"));
}

TEST(Server, AStreamToAnOldClientEndsWithTheConnection) {
  auto tap = std::make_shared<Tap>();
  tap->pieces = {"a", "b"};
  tap->ended = true;
  const auto server = serve_with([&](const http::Request&) {
    return http::Response{.stream = std::make_unique<TapStream>(tap)};
  });
  const std::string answer = answer_to(*server, "GET / HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(answer.ends_with("\r\n\r\nab")) << answer;
}

TEST(Server, ASlowReaderIsNotPulledFor) {
  class Endless : public http::Stream {
   public:
    explicit Endless(std::atomic<int>& pulls) : pulls_(pulls) {}
    bool pull(std::string& out, std::function<void()>) override {
      ++pulls_;
      out.assign(64 * 1024, 'x');
      return true;
    }

   private:
    std::atomic<int>& pulls_;
  };
  std::atomic<int> pulls = 0;
  const auto server = serve_with([&](const http::Request&) {
    return http::Response{.stream = std::make_unique<Endless>(pulls)};
  });
  RawSocket socket(server->port(0), 4096);
  socket.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  int before = -1;
  while (pulls != before) {  // until the kernel's buffers are full
    before = pulls;
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_LT(pulls, 500);
  for (int i = 0; i < 5000 && pulls == before; ++i) socket.read_some(1000);
  EXPECT_GT(pulls, before);
}

TEST(Server, HangsUpOnAReaderOfAStreamThatStopsReading) {
  auto tap = std::make_shared<Tap>();
  ServerOptions options;
  options.stalled = 300ms;
  const auto server = serve_with(
      [&](const http::Request&) {
        return http::Response{.stream = std::make_unique<TapStream>(tap)};
      },
      options);
  RawSocket socket(server->port(0), 4096);
  socket.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  tap->push("a");
  socket.read_until("a\r\n");
  EXPECT_FALSE(tap->wait([&] { return tap->destroyed; }, 1s)) << "silence is no fault of a reader";
  tap->push(std::string(32 << 20, 'x'));  // more than the kernel's buffers hold
  EXPECT_TRUE(tap->wait([&] { return tap->destroyed; }));
}

TEST(Server, AClientThatLeavesEndsItsStreamAtOnce) {
  auto tap = std::make_shared<Tap>();
  const auto server = serve_with([&](const http::Request&) {
    return http::Response{.stream = std::make_unique<TapStream>(tap)};
  });
  RawSocket socket(server->port(0));
  socket.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  ASSERT_TRUE(tap->wait([&] { return tap->pulls > 0; }));
  socket.hang_up();
  EXPECT_TRUE(tap->wait([&] { return tap->destroyed; }));
  tap->push("too late");  // wakes a connection that is gone
}

TEST(Server, StopsWithOpenStreamsAndSurvivesLateWakes) {
  std::vector<std::shared_ptr<Tap>> taps;
  std::mutex mutex;
  auto server = serve_with([&](const http::Request&) {
    const std::lock_guard lock(mutex);
    taps.push_back(std::make_shared<Tap>());
    return http::Response{.stream = std::make_unique<TapStream>(taps.back())};
  });
  std::deque<RawSocket> sockets;
  for (int i = 0; i < 20; ++i) {
    sockets.emplace_back(server->port(0)).send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    sockets.back().read_until("\r\n\r\n");
  }
  for (const auto& tap : taps) ASSERT_TRUE(tap->wait([&] { return tap->pulls > 0; }));
  // Wakes race with the stop.
  std::thread waker([&] {
    for (const auto& tap : taps) tap->push("x");
  });
  const auto begun = std::chrono::steady_clock::now();
  server.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 30s);
  waker.join();
  for (const auto& tap : taps) {
    EXPECT_TRUE(tap->destroyed);
    tap->push("y");
  }
}

TEST(Server, AnswersWithTheErrorOfAGateThatRefuses) {
  ServerOptions options;
  options.gate = [](std::uint64_t, auto, const std::function<void(const Error&)>& refused) {
    std::thread(refused, Error{.code = Code::kTimeout, .message = "the disk is full"}).join();
  };
  const auto server = serve_with(
      [](const http::Request& request) {
        return http::Response{.body = "done", .after_revision = request.target == "/7" ? 7U : 0U};
      },
      options);
  RawSocket socket(server->port(0));
  socket.send("POST /7 HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
  const std::string answer = socket.read_until("disk is full");
  EXPECT_TRUE(answer.contains("504 Gateway Timeout")) << answer;
  EXPECT_TRUE(answer.contains(R"("reason":"Timeout")")) << answer;
  EXPECT_FALSE(answer.contains("done")) << answer;
  socket.clear();
  socket.send("GET /0 HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_TRUE(socket.read_until("done").contains("200 OK")) << "the connection goes on";
}

TEST(Server, HoldsAnAnswerUntilItsRevisionIsSafe) {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::pair<std::uint64_t, std::function<void()>>> held;
  ServerOptions options;
  options.gate = [&](std::uint64_t revision, std::function<void()> ready, auto) {
    const std::lock_guard lock(mutex);
    held.emplace_back(revision, std::move(ready));
    changed.notify_all();
  };
  auto server = serve_with(
      [](const http::Request& request) {
        return http::Response{.body = "done", .after_revision = request.target == "/7" ? 7U : 0U};
      },
      options);
  RawSocket socket(server->port(0));
  socket.send("GET /0 HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_TRUE(socket.read_until("done").contains("done"));
  socket.clear();
  socket.send("GET /7 HTTP/1.1\r\nHost: h\r\n\r\n");
  {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, 60s, [&] { return held.size() == 1; }));
  }
  EXPECT_EQ(held[0].first, 7U);
  EXPECT_EQ(socket.read_until("done", 50), "");
  std::thread(held[0].second).join();
  EXPECT_TRUE(socket.read_until("done").contains("200 OK"));
  // One more is held while the server goes away; its release then does nothing.
  socket.send("GET /7 HTTP/1.1\r\nHost: h\r\n\r\n");
  {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, 60s, [&] { return held.size() == 2; }));
  }
  server.reset();
  held[1].second();
}

// Another process of our user asks once.
void ask_from_outside(const std::string& address, std::uint16_t port) {
  sockaddr_storage to{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(to);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(to);
  const bool six = ::inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr) == 1;
  if (!six) ::inet_pton(AF_INET, address.c_str(), &v4.sin_addr);
  to.ss_family = six ? AF_INET6 : AF_INET;
  v4.sin_port = htons(port);
  const pid_t child = ::fork();
  if (child == 0) {
    static constexpr std::string_view kOutsideAsk = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    char answer[256];
    const int fd = ::socket(to.ss_family, SOCK_STREAM, 0);
    const bool ok = ::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0 &&
                    ::write(fd, kOutsideAsk.data(), kOutsideAsk.size()) > 0 &&
                    ::read(fd, answer, 256) > 0;
    ::_exit(ok ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Server, KnowsOurOwnUserOnLoopbackOnlyWhereTold) {
  const auto peer_of = [](Listen listen, bool outside = true) {
    http::Peer peer;
    const auto server = serve_with(
        [&](const http::Request& request) {
          peer = request.peer;
          return http::Response{};
        },
        {.listeners = {listen}});
    if (outside) {
      ask_from_outside(listen.address, server->port(0));
    } else {
      EXPECT_TRUE(Client().send({.host = listen.address, .port = server->port(0)}, {}));
    }
    return peer;
  };
  EXPECT_TRUE(peer_of({.trust_local = true}).same_user);
  EXPECT_TRUE(peer_of({.trust_local = true}).loopback);
  EXPECT_FALSE(peer_of({.trust_local = false}).same_user);
  EXPECT_TRUE(peer_of({.trust_local = false}).loopback);
  // The server's own process asks for whoever has talked it into that.
  EXPECT_FALSE(peer_of({.trust_local = true}, false).same_user);
  EXPECT_TRUE(peer_of({.trust_local = true}, false).loopback);
  if (Server::start({.listeners = {{.address = "::1"}}}, echo)) {
    EXPECT_TRUE(peer_of({.address = "::1", .trust_local = true}).same_user);
    EXPECT_FALSE(peer_of({.address = "::1", .trust_local = true}, false).same_user);
  }
}

TEST(Server, SaysWhyItCannotListen) {
  const auto server = serve_with();
  struct Case {
    Listen listen;
    std::string_view message;
  };
  const Case cases[] = {
      {{.port = server->port(0)}, ":" /* the port is checked below */},
      {{.address = "203.0.113.7"}, "no such address"},
      {{.address = "localhost"}, "not an IP address"},
      {{.tls = true}, "no certificate"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.message);
    const auto failed = Server::start({.listeners = {c.listen}}, echo);
    ASSERT_FALSE(failed);
    EXPECT_TRUE(failed.error().message.contains(c.message)) << failed.error().message;
  }
  const auto taken = Server::start({.listeners = {{.port = server->port(0)}}}, echo);
  EXPECT_EQ(
      taken.error().message,
      "127.0.0.1:" + std::to_string(server->port(0)) +
          " is already in use: another Skiff or another program listens there. Stop it (skiff "
          "down), or choose another address with --http");
}

TEST(Server, AddsListenersWhileItRuns) {
  const auto server = serve_with();
  ASSERT_TRUE(server->add_listener({.address = "127.0.0.2"}));
  Client client;
  const auto answer = client.send({.host = "127.0.0.2", .port = server->port(1)}, {.target = "/2"});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body, "/2||");
}

TEST(Server, KeepsConnectionsBelowItsLimit) {
  const auto server = serve_with(echo, {.connections = 2});
  RawSocket first(server->port(0)), second(server->port(0));
  for (RawSocket* socket : {&first, &second}) {
    socket->send("GET /in HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_TRUE(socket->read_until("/in||").contains("200 OK"));
  }
  RawSocket third(server->port(0));
  third.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  third.read_all();
  EXPECT_TRUE(third.ended());
}

TEST(Server, ServesTwoHundredKeptConnectionsAtOnce) {
  const auto server = serve_with();
  std::deque<RawSocket> sockets;
  for (int i = 0; i < 200; ++i) sockets.emplace_back(server->port(0));
  for (int round = 0; round < 5; ++round) {
    for (RawSocket& socket : sockets) socket.send("GET /r HTTP/1.1\r\nHost: h\r\n\r\n");
    for (RawSocket& socket : sockets) {
      ASSERT_TRUE(socket.read_until("/r||").contains("200 OK"));
      socket.clear();
    }
  }
}

}  // namespace
}  // namespace skiff::net
