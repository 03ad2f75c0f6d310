#include "net/client.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>
#include <utility>

#include "net/server.h"

namespace skiff::net {
namespace {

using namespace std::chrono_literals;

std::unique_ptr<Server> serve_plain(http::Handler handler, ServerOptions options = {},
                                    std::uint16_t port = 0) {
  options.listeners = {{.port = port}};
  auto server = Server::start(std::move(options), std::move(handler));
  EXPECT_TRUE(server) << server.error().message;
  return std::move(*server);
}

// Gives its connection away, with a word right behind the head of the answer.
class Given final : public http::Tunnel {
 public:
  void push(std::string_view) override {}
  bool full() const override { return false; }
  bool pull(std::string& out, std::function<void()>) override {
    out += std::exchange(text_, {});
    return true;
  }

 private:
  std::string text_ = "HTTP/1.1 101 Switching Protocols\r\n\r\nearly";
};

// Says what it was given, then stays silent for ever or ends.
class Script : public http::Stream {
 public:
  Script(std::vector<std::string> pieces, bool ends) : pieces_(std::move(pieces)), ends_(ends) {}
  bool pull(std::string& out, std::function<void()>) override {
    if (at_ < pieces_.size()) {
      out = pieces_[at_++];
      return true;
    }
    return !ends_;
  }

 private:
  std::vector<std::string> pieces_;
  bool ends_;
  std::size_t at_ = 0;
};

TEST(Client, SendsTheWholeRequestAndReadsTheWholeAnswer) {
  const auto server = serve_plain([](const http::Request& request) {
    return http::Response{
        .status = 201,
        .headers = {{"X-Seen", std::string(http::header(request.headers, "x-a"))}},
        .body = request.method + request.target + request.body};
  });
  Client client;
  const Endpoint endpoint{.port = server->port(0)};
  const std::string large(2'000'000, 'z');
  const auto answer = client.send(
      endpoint, {.method = "PUT", .target = "/p?q=1", .headers = {{"X-A", "v w"}}, .body = large});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 201);
  EXPECT_EQ(http::header(answer->headers, "x-seen"), "v w");
  EXPECT_EQ(answer->body, "PUT/p?q=1" + large);
  const auto head = client.send(endpoint, {.method = "HEAD", .target = "/h"});
  ASSERT_TRUE(head);
  EXPECT_EQ(head->body, "");
}

TEST(Client, NeverWritesASecondRequestThatSomebodyHidInTheFirst) {
  std::atomic<int> requests = 0;
  const auto server = serve_plain([&](const http::Request&) {
    ++requests;
    return http::Response{};
  });
  Client client;
  const Endpoint to{.port = server->port(0)};
  const std::string hidden = "/ HTTP/1.1\r\nHost: localhost\r\n\r\nPOST /b HTTP/1.1\r\nX: ";
  EXPECT_FALSE(client.send(to, {.target = hidden}));
  EXPECT_FALSE(client.send(to, {.target = "/a b"}));
  EXPECT_FALSE(client.send(to, {.method = "GET " + hidden}));
  EXPECT_FALSE(client.send(to, {.headers = {{"X-A", "b\r\n\r\nPOST / HTTP/1.1\r\n"}}}));
  EXPECT_FALSE(client.send(to, {.headers = {{"X-A: b\r\nY", "c"}}}));
  EXPECT_FALSE(client.send({.host = "127.0.0.1\r\nX: y", .port = to.port}, {}));
  EXPECT_FALSE(client.route(to, {{"X-A", "b\r\nX: y"}}));
  EXPECT_EQ(requests, 0);
}

TEST(Client, ConnectsToNoLocalAddressForAStranger) {
  const auto server = serve_plain([](const http::Request&) { return http::Response{}; });
  Client client;
  for (const char* host : {"127.0.0.1", "localhost", "::ffff:127.0.0.1", "0.0.0.0", "2130706433"}) {
    const Endpoint asked{.host = host, .port = server->port(0)};
    const auto welcome = client.open(asked, {});
    ASSERT_TRUE(welcome) << host << ": " << welcome.error().message;
    EXPECT_TRUE((*welcome)->local_only()) << host;
    // A connection that is kept from before is nobody else's.
    Endpoint strangers = asked;
    strangers.remote_only = true;
    const auto refused = client.open(strangers, {});
    ASSERT_FALSE(refused) << host;
    EXPECT_NE(refused.error().message.find("leads to an address of this machine's own"),
              std::string::npos)
        << refused.error().message;
  }
}

TEST(Client, UsesTheSocketsItIsGivenAndJudgesTheAddressThatWasAsked) {
  const auto server = serve_plain([](const http::Request&) { return http::Response{.body = "x"}; });
  Client client([&](sockaddr_storage& to) -> Result<int> {
    auto& v4 = reinterpret_cast<sockaddr_in&>(to);
    EXPECT_EQ(ntohl(v4.sin_addr.s_addr), 0xcb007107U);
    v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    v4.sin_port = htons(server->port(0));
    return ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  });
  const auto answer = client.open({.host = "203.0.113.7", .port = 80, .remote_only = true}, {});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_FALSE((*answer)->local_only());
  Client none([](sockaddr_storage&) -> Result<int> { return fail(Code::kNotFound, "no pod"); });
  EXPECT_EQ(none.send({.port = server->port(0)}, {}).error().message, "no pod");
}

TEST(Client, SaysWhatToDoWhenNobodyListens) {
  std::uint16_t port = 0;
  {
    const auto server = serve_plain([](const http::Request&) { return http::Response{}; });
    port = server->port(0);
  }
  Client client;
  const auto answer = client.send({.port = port}, {});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message,
            "cannot connect to 127.0.0.1:" + std::to_string(port) +
                ": Connection refused; is Skiff running? start it with: skiff up -d");
}

TEST(Client, TakesAnAnswerGivenBeforeTheBodyWasRead) {
  const auto server =
      serve_plain([](const http::Request&) { return http::Response{}; }, {.body_bytes = 100});
  Client client;
  const auto answer = client.send({.port = server->port(0)},
                                  {.method = "POST", .body = std::string(8'000'000, 'x')});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 413);
}

TEST(Client, UsesAConnectionAgain) {
  const auto server = serve_plain([](const http::Request&) { return http::Response{.body = "x"}; },
                                  {.connections = 1});
  Client client;
  // With one connection allowed, only a kept one can serve these.
  for (int i = 0; i < 5; ++i) {
    const auto answer = client.send({.port = server->port(0)}, {});
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->status, 200);
  }
}

TEST(Client, ReplacesAConnectionThatTheServerClosed) {
  const auto answer_as = [](std::string name) {
    return [name](const http::Request&) { return http::Response{.body = name}; };
  };
  auto server = serve_plain(answer_as("first"));
  Client client;
  const Endpoint endpoint{.port = server->port(0)};
  ASSERT_TRUE(client.send(endpoint, {}));
  server.reset();  // closes the connection that the client keeps
  server = serve_plain(answer_as("second"), {}, endpoint.port);
  const auto answer = client.send(endpoint, {});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->body, "second");
}

TEST(Client, GivesUpInTime) {
  ServerOptions options;
  options.gate = [](std::uint64_t, auto, auto) {};  // never opens
  const auto server = serve_plain(
      [](const http::Request&) { return http::Response{.after_revision = 1}; }, options);
  Client client;
  const auto answer = client.send({.port = server->port(0)}, {}, 50ms);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kTimeout);
}

TEST(Client, ReadsAStreamAndNoticesItsEnd) {
  const auto server = serve_plain([](const http::Request&) {
    return http::Response{
        .stream = std::make_unique<Script>(std::vector<std::string>{"a", "bc", "def"}, true)};
  });
  Client client;
  const auto stream = client.open({.port = server->port(0)}, {});
  ASSERT_TRUE(stream);
  std::string all;
  while (true) {
    const auto piece = (*stream)->read(60s);
    ASSERT_TRUE(piece) << piece.error().message;
    if (!*piece) break;
    all += **piece;
  }
  EXPECT_EQ(all, "abcdef");
  EXPECT_EQ((*stream)->read().value(), std::nullopt);  // still the end
}

TEST(Client, AStreamThatBreaksIsAnErrorAndNotAnEnd) {
  auto server = serve_plain([](const http::Request&) {
    return http::Response{.stream = std::make_unique<Script>(std::vector<std::string>{"a"}, false)};
  });
  Client client;
  const auto stream = client.open({.port = server->port(0)}, {});
  ASSERT_TRUE(stream);
  EXPECT_EQ((*stream)->read(60s).value(), "a");
  server.reset();
  EXPECT_FALSE((*stream)->read(60s));
}

TEST(Client, IsInterruptedFromAnotherThread) {
  const auto server = serve_plain([](const http::Request&) {
    return http::Response{.stream = std::make_unique<Script>(std::vector<std::string>{"a"}, false)};
  });
  for (const bool all : {false, true}) {
    Client client;
    const auto stream = client.open({.port = server->port(0)}, {});
    ASSERT_TRUE(stream);
    EXPECT_EQ((*stream)->read(60s).value(), "a");
    std::thread other([&] { all ? client.shut_down() : (*stream)->cancel(); });
    EXPECT_FALSE((*stream)->read());
    EXPECT_FALSE((*stream)->read());
    other.join();
    EXPECT_EQ(client.send({.port = server->port(0)}, {.method = "HEAD"}).has_value(), !all);
  }
}

TEST(Client, FailsAfterItsEndAlsoWhereItNeedNotWait) {
  // So much that the rest is there, mostly, when the first piece is read.
  const auto server = serve_plain(
      [](const http::Request&) { return http::Response{.body = std::string(1 << 20, 'x')}; });
  for (const bool all : {false, true}) {
    Client client;
    const auto stream = client.open({.port = server->port(0)}, {});
    ASSERT_TRUE(stream);
    EXPECT_TRUE((*stream)->read(60s));
    all ? client.shut_down() : (*stream)->cancel();
    EXPECT_FALSE((*stream)->read());
  }
}

TEST(Client, FailsAfterItsEndAlsoWhereATunnelHasSpokenAlready) {
  const auto server = serve_plain([](const http::Request&) {
    http::Response response{.status = 0};
    response.tunnel = std::make_unique<Given>();
    return response;
  });
  for (const bool all : {false, true}) {
    Client client;
    const auto stream = client.open({.port = server->port(0)}, {});
    ASSERT_TRUE(stream);
    EXPECT_EQ((*stream)->status(), 101);
    all ? client.shut_down() : (*stream)->cancel();
    EXPECT_FALSE((*stream)->read());
  }
}

TEST(Client, ASiblingIsCutOffAlone) {
  const auto server =
      serve_plain([](const http::Request&) { return http::Response{.body = "ok"}; });
  const Endpoint endpoint{.port = server->port(0)};
  Client client;
  const auto sibling = client.sibling();
  ASSERT_TRUE(sibling->send(endpoint, {}));
  sibling->shut_down();
  EXPECT_FALSE(sibling->send(endpoint, {}));
  EXPECT_TRUE(client.send(endpoint, {}));
}

TEST(Client, ManyThreadsShareIt) {
  const auto server = serve_plain(
      [](const http::Request& request) { return http::Response{.body = request.target}; });
  Client client;
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const std::string target = "/" + std::to_string(t) + "/" + std::to_string(i);
        const auto answer = client.send({.port = server->port(0)}, {.target = target});
        right += answer && answer->body == target;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 400);
}

TEST(Endpoint, IsReadFromAnAddress) {
  struct Case {
    std::string_view url, host;
    int port;  // 0: refused
    bool tls;
  };
  const Case cases[] = {
      {"https://10.0.0.1:6443", "10.0.0.1", 6443, true},
      {"http://localhost", "localhost", 80, false},
      {"https://example.org/", "example.org", 443, true},
      {"https://[::1]:7443", "::1", 7443, true},
      {"http://[fe80::1]", "fe80::1", 80, false},
      {"localhost:8080", "", 0, false},
      {"https://h:port", "", 0, false},
      {"https://h:99999", "", 0, false},
      {"https://:1", "", 0, false},
      {"https://h/path", "", 0, false},
      {"https://u@h", "", 0, false},
      {"https://[::1", "", 0, false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.url);
    const auto endpoint = parse_endpoint(c.url);
    ASSERT_EQ(endpoint.has_value(), c.port != 0);
    if (!endpoint) continue;
    EXPECT_EQ(endpoint->host, c.host);
    EXPECT_EQ(endpoint->port, c.port);
    EXPECT_EQ(endpoint->tls, c.tls);
  }
}

}  // namespace
}  // namespace skiff::net
