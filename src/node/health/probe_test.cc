// Probes against a small server of this process; programs in containers are in
// process/exec_test.cc.
#include "node/health/probe.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <latch>
#include <thread>

#include "node/health/crew.h"
#include "node/health/hook.h"
#include "node/health/pod_dialer.h"
#include "node/testing/no_runtime.h"
#include "node/testing/parse.h"

namespace skiff::node {
namespace {

using std::chrono::milliseconds;

// Answers every connection with the same text, and keeps what it was asked.
class Server {
 public:
  explicit Server(std::function<std::string(const std::string& asked)> reply)
      : reply_(std::move(reply)), listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_, 16), 0);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~Server() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  int port() const { return port_; }
  const std::string& asked() const { return asked_; }  // after an answer

 private:
  void serve() {
    while (true) {
      const int fd = ::accept(listener_, nullptr, nullptr);
      if (fd < 0) return;
      char text[4096];
      const ssize_t n = ::read(fd, text, sizeof text);
      asked_.assign(text, n > 0 ? static_cast<std::size_t>(n) : 0);
      const std::string reply = reply_(asked_);
      (void)!::write(fd, reply.data(), reply.size());
      ::close(fd);
    }
  }

  const std::function<std::string(const std::string&)> reply_;
  const int listener_;
  int port_ = 0;
  std::string asked_ = {};
  std::thread thread_;
};

std::string plain(int status, const std::string& headers = "") {
  return "HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Length: 0\r\n" + headers + "\r\n";
}

// A pod in the network of this process; counts the sockets that it was asked for.
class OneNetwork : public NoRuntime {
 public:
  Result<int> open_socket(std::string_view pod_uid, bool v6) override {
    if (pod_uid != "u") return fail(Code::kNotFound, "no such pod");
    ++sockets;
    return ::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  }
  int sockets = 0;
};

ProbeAnswer ask(const std::string& handler, const std::string& container = "{}",
                milliseconds timeout = std::chrono::seconds(5)) {
  OneNetwork runtime;
  return run_probe(runtime,
                   {.pod_uid = "u",
                    .pod_ip = "127.0.0.1",
                    .container = parse(container),
                    .handler = parse(handler),
                    .timeout = timeout},
                   {});
}

std::string get(int port, const std::string& extra = "") {
  return R"({"httpGet":{"path":"/ok","port":)" + std::to_string(port) + extra + "}}";
}

TEST(HttpProbe, StatusesFrom200To399AreWellAndRedirectsElsewhereAWarning) {
  struct Case {
    int status;
    ProbeOutcome outcome;
    bool warning;
    std::string text;
  };
  for (const Case& c :
       {Case{200, ProbeOutcome::kSuccess, false, ""}, Case{204, ProbeOutcome::kSuccess, false, ""},
        Case{302, ProbeOutcome::kSuccess, true, "Probe terminated redirects, Response body: "},
        Case{404, ProbeOutcome::kFailure, false, "HTTP probe failed with statuscode: 404"},
        Case{500, ProbeOutcome::kFailure, false, "HTTP probe failed with statuscode: 500"}}) {
    SCOPED_TRACE(c.status);
    Server server([&](const std::string&) {
      return plain(c.status, c.status == 302 ? "Location: http://elsewhere.invalid/\r\n" : "");
    });
    const ProbeAnswer answer = ask(get(server.port()));
    EXPECT_EQ(answer.outcome, c.outcome);
    EXPECT_EQ(answer.warning, c.warning);
    EXPECT_EQ(answer.text, c.text);
  }
}

TEST(HttpProbe, SaysWhatKubeletSaysAndWhatItWasTold) {
  Server server([](const std::string&) { return plain(200); });
  ask(get(server.port(), R"(,"httpHeaders":[{"name":"X-Color","value":"blue"}])"));
  EXPECT_TRUE(server.asked().starts_with("GET /ok HTTP/1.1\r\n")) << server.asked();
  EXPECT_NE(server.asked().find("User-Agent: kube-probe/1.34\r\n"), std::string::npos)
      << server.asked();
  EXPECT_NE(server.asked().find("Accept: */*\r\n"), std::string::npos) << server.asked();
  EXPECT_NE(server.asked().find("X-Color: blue\r\n"), std::string::npos) << server.asked();
}

TEST(HttpProbe, RedirectsOnTheSameHostAreFollowed) {
  Server server([](const std::string& asked) {
    return asked.starts_with("GET /ok") ? plain(302, "Location: /next\r\n") : plain(503);
  });
  EXPECT_EQ(ask(get(server.port())).text, "HTTP probe failed with statuscode: 503");
}

TEST(HttpProbe, EndlessRedirectsAreAFailure) {
  Server server([](const std::string&) { return plain(302, "Location: /ok\r\n"); });
  const ProbeAnswer answer = ask(get(server.port()));
  EXPECT_EQ(answer.outcome, ProbeOutcome::kFailure);
  EXPECT_NE(answer.text.find("stopped after 10 redirects"), std::string::npos) << answer.text;
}

TEST(HttpProbe, ASlowServerIsAFailureAfterTheTimeOut) {
  std::latch given_up(1);
  Server server([&](const std::string&) {
    given_up.wait();
    return plain(200);
  });
  const ProbeAnswer answer = ask(get(server.port()), "{}", milliseconds(200));
  given_up.count_down();
  EXPECT_EQ(answer.outcome, ProbeOutcome::kFailure);
  EXPECT_NE(answer.text.find("context deadline exceeded"), std::string::npos) << answer.text;
}

int closed_port() {
  const Server server([](const std::string&) { return plain(200); });
  return server.port();
}

TEST(HttpProbe, APortThatNobodyListensOnIsAFailure) {
  const std::string port = std::to_string(closed_port());
  EXPECT_EQ(ask(get(std::stoi(port))).text, "Get \"http://127.0.0.1:" + port +
                                                "/ok\": dial tcp 127.0.0.1:" + port +
                                                ": connect: connection refused");
}

// Frames of HTTP/2: settings, headers, a message with this status, trailers with grpc-status 0.
std::string grpc_answer(char status) {
  using std::string_literals::operator""s;
  return "\0\0\0\x04\0\0\0\0\0"s + "\0\0\x01\x01\x04\0\0\0\x01\x88"s +
         "\0\0\x07\0\0\0\0\0\x01\0\0\0\0\x02\x08"s + status +
         "\0\0\x0f\x01\x05\0\0\0\x01\0\x0bgrpc-status\x01"s + "0";
}

// Probe to cluster-admin: a path with line breaks wrote a second request, and a host of the
// tenant's choice was Skiff's own listener.
TEST(HttpProbe, ProbeToClusterAdminPathsAreEncodedAsKubeletDoes) {
  Server server([](const std::string&) { return plain(200); });
  const std::string port = std::to_string(server.port());
  const auto path = [&](const std::string& text) {
    return R"({"httpGet":{"path":")" + text + R"(","port":)" + port + "}}";
  };
  EXPECT_EQ(ask(path(R"(/ HTTP/1.1\r\nHost: localhost\r\n\r\nPOST /b HTTP/1.1\r\nX: y)")).outcome,
            ProbeOutcome::kSuccess);
  EXPECT_TRUE(server.asked().starts_with(
      "GET /%20HTTP/1.1%0D%0AHost:%20localhost%0D%0A%0D%0APOST%20/b%20HTTP/1.1%0D%0AX:%20y "
      "HTTP/1.1\r\n"))
      << server.asked();
  EXPECT_EQ(ask(path("/a b?c=d")).outcome, ProbeOutcome::kSuccess);
  EXPECT_TRUE(server.asked().starts_with("GET /a%20b?c=d HTTP/1.1\r\n")) << server.asked();
}

TEST(HttpProbe, WhatCannotBeSentIsAFailure) {
  Server server([](const std::string&) { return plain(200); });
  const ProbeAnswer header =
      ask(get(server.port(), R"(,"httpHeaders":[{"name":"X-A","value":"b\r\n\r\nPOST / "}])"));
  EXPECT_EQ(header.outcome, ProbeOutcome::kFailure);
  EXPECT_NE(header.text.find("invalid header field value for \"X-A\""), std::string::npos)
      << header.text;
  for (const char* host : {R"(127.0.0.1\r\nX: y)", R"(127.0.0.1\u0000)", "a b", "u@127.0.0.1"}) {
    const std::string field = R"(,"host":")" + std::string(host) + "\"";
    EXPECT_EQ(ask(get(server.port(), field)).outcome, ProbeOutcome::kFailure) << host;
    EXPECT_EQ(ask(R"({"tcpSocket":{"port":1)" + field + "}}").outcome, ProbeOutcome::kFailure);
  }
  EXPECT_EQ(server.asked(), "");
}

TEST(Probe, ProbeToClusterAdminSocketsAreThePodsOwn) {
  Server server([](const std::string&) { return grpc_answer(1); });
  const std::string port = std::to_string(server.port());
  for (const std::string& handler :
       {R"({"httpGet":{"host":"localhost","path":"/","port":)" + port + "}}",
        R"({"tcpSocket":{"host":"127.0.0.1","port":)" + port + "}}",
        R"({"grpc":{"port":)" + port + "}}"}) {
    OneNetwork runtime;
    const ProbeRequest request{.pod_uid = "u", .pod_ip = "127.0.0.1", .handler = parse(handler)};
    (void)run_probe(runtime, request, {});
    EXPECT_GE(runtime.sockets, 1) << handler;
    ProbeRequest gone = request;
    gone.pod_uid = "gone";
    const ProbeAnswer answer = run_probe(runtime, gone, {});
    EXPECT_NE(answer.outcome, ProbeOutcome::kSuccess) << handler;
    EXPECT_NE(answer.text.find("no such pod"), std::string::npos) << answer.text;
  }
}

TEST(PodDialer, APodWithALoopbackAddressIsWhatItCallsHere) {
  OneNetwork runtime;
  struct Case {
    std::string host;
    int port;
    std::string ip;
    int led;
  };
  const Case cases[] = {
      {"127.0.0.1", 8080, "127.64.0.9", 8080}, {"localhost", 80, "127.64.0.9", 64592},
      {"0.0.0.0", 8080, "127.64.0.9", 8080},   {"::1", 8080, "127.64.0.9", 8080},
      {"::", 8080, "127.64.0.9", 8080},        {"127.0.0.7", 8080, "127.64.0.9", 8080},
      {"127.64.0.5", 80, "127.64.0.5", 64592}, {"10.1.2.3", 80, "10.1.2.3", 80}};
  for (const Case& c : cases) {
    auto to = PodDialer::resolve(c.host, c.port);
    ASSERT_TRUE(to) << c.host;
    const auto fd = PodDialer(runtime, "u", "127.64.0.9").socket_for(*to);
    ASSERT_TRUE(fd);
    ::close(*fd);
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(*to);
    EXPECT_EQ(v4.sin_family, AF_INET) << c.host;
    char text[INET_ADDRSTRLEN];
    EXPECT_EQ(std::string(::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text)), c.ip) << c.host;
    EXPECT_EQ(ntohs(v4.sin_port), c.led) << c.host;
    // A pod with a network of its own is asked for what was written.
    auto own = PodDialer::resolve(c.host, c.port);
    const sockaddr_storage before = *own;
    ::close(*PodDialer(runtime, "u", "10.0.0.9").socket_for(*own));
    EXPECT_EQ(std::memcmp(&before, &*own, sizeof before), 0) << c.host;
  }
}

TEST(TcpProbe, AConnectionIsEnough) {
  Server server([](const std::string&) { return std::string(); });
  const std::string port = std::to_string(server.port());
  EXPECT_EQ(ask(R"({"tcpSocket":{"port":"web"}})",
                R"({"ports":[{"name":"web","containerPort":)" + port + "}]}")
                .outcome,
            ProbeOutcome::kSuccess);
}

TEST(TcpProbe, ARefusedConnectionIsAFailure) {
  const std::string port = std::to_string(closed_port());
  const ProbeAnswer answer = ask(R"({"tcpSocket":{"port":)" + port + "}}");
  EXPECT_EQ(answer.outcome, ProbeOutcome::kFailure);
  EXPECT_EQ(answer.text, "dial tcp 127.0.0.1:" + port + ": connect: connection refused");
}

TEST(Probe, APortByAnUnknownNameAndAHandlerWeLackTeachNothing) {
  EXPECT_EQ(ask(R"({"tcpSocket":{"port":"none"}})").outcome, ProbeOutcome::kError);
  EXPECT_EQ(ask(R"({"telepathy":{}})").outcome, ProbeOutcome::kError);
}

std::string grpc(int port) { return R"({"grpc":{"port":)" + std::to_string(port) + "}}"; }

TEST(GrpcProbe, AServiceThatServesIsWell) {
  Server well([](const std::string&) { return grpc_answer(1); });
  const ProbeAnswer answer = ask(grpc(well.port()));
  EXPECT_EQ(answer.outcome, ProbeOutcome::kSuccess) << answer.text;
  EXPECT_NE(well.asked().find("/grpc.health.v1.Health/Check"), std::string::npos);
  Server ill([](const std::string&) { return grpc_answer(2); });
  EXPECT_EQ(ask(grpc(ill.port())).outcome, ProbeOutcome::kFailure);
  EXPECT_EQ(ask(grpc(ill.port())).text, "service unhealthy (responded with \"NOT_SERVING\")");
}

TEST(GrpcProbe, WhoeverDoesNotSpeakItFails) {
  Server web([](const std::string&) { return plain(400); });
  EXPECT_EQ(ask(grpc(web.port())).text,
            "error: health rpc probe failed: the server does not speak HTTP/2");
  Server mute([](const std::string&) { return ""; });
  EXPECT_EQ(ask(grpc(mute.port())).text,
            "error: health rpc probe failed: the server closed the connection");
  const std::string closed = std::to_string(closed_port());
  EXPECT_EQ(ask(R"({"grpc":{"port":)" + closed + "}}").text,
            "timeout: failed to connect service \"127.0.0.1:" + closed +
                "\" within 5s: context deadline exceeded");
}

TEST(Probe, PortsAreNumbersNamesOrNumbersInText) {
  const json::value container = parse(R"({"ports":[{"name":"web","containerPort":8080}]})");
  EXPECT_EQ(*probe_port(container, json::value(9)), 9);
  EXPECT_EQ(*probe_port(container, json::value("web")), 8080);
  EXPECT_EQ(*probe_port(container, json::value("81")), 81);
  EXPECT_FALSE(probe_port(container, json::value("other")));
  EXPECT_FALSE(probe_port(container, json::value(70000)));
}

TEST(Probe, RedirectsStayOnTheirHost) {
  const std::string url = "http://10.0.0.1:80/a/b?c";
  EXPECT_EQ(redirect_target(url, "/x"), "http://10.0.0.1:80/x");
  EXPECT_EQ(redirect_target(url, "x"), "http://10.0.0.1:80/a/x");
  EXPECT_EQ(redirect_target(url, "https://10.0.0.1:443/x"), "https://10.0.0.1:443/x");
  EXPECT_EQ(redirect_target(url, "http://10.0.0.2:80/x"), std::nullopt);
  EXPECT_EQ(redirect_target(url, "//10.0.0.2/x"), std::nullopt);
}

TEST(Crew, SlowWorkHoldsUpNobodyAndIsToldToStop) {
  std::atomic_bool told = false;
  std::atomic_int done = 0;
  {
    Crew crew(4);
    crew.run([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) std::this_thread::sleep_for(milliseconds(1));
      told = true;
    });
    for (int i = 0; i < 10; ++i) crew.run([&](const std::stop_token&) { ++done; });
    for (int i = 0; i < 60'000 && done < 10; ++i) std::this_thread::sleep_for(milliseconds(1));
    EXPECT_EQ(done, 10);
    EXPECT_FALSE(told);
  }
  EXPECT_TRUE(told);
}

Result<void> hook(const std::string& handler, const std::stop_token& stop = {}) {
  OneNetwork runtime;
  return run_hook(runtime, {.pod_uid = "u", .pod_ip = "127.0.0.1", .handler = parse(handler)},
                  stop);
}

TEST(Hook, AnyAnswerToARequestIsWellAndNoneIsNot) {
  int port = 0;
  {
    Server server([](const std::string&) { return plain(500); });
    port = server.port();
    EXPECT_TRUE(hook(get(port)));
    EXPECT_NE(server.asked().find("User-Agent: kube-lifecycle/1.34"), std::string::npos);
  }
  const auto refused = hook(get(port));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("connection refused"), std::string::npos);
}

TEST(Hook, ASleepTakesItsTimeUnlessItIsGivenUp) {
  const auto before = std::chrono::steady_clock::now();
  EXPECT_TRUE(hook(R"({"sleep":{"seconds":1}})"));
  EXPECT_GE(std::chrono::steady_clock::now() - before, std::chrono::seconds(1));
  std::stop_source stop;
  stop.request_stop();
  const auto given_up = hook(R"({"sleep":{"seconds":600}})", stop.get_token());
  ASSERT_FALSE(given_up);
  EXPECT_EQ(given_up.error().message, "container terminated before sleep hook finished");
}

TEST(Hook, AConnectionIsNoHookAlthoughTheApiTakesIt) {
  EXPECT_FALSE(hook(R"({"tcpSocket":{"port":80}})"));
  EXPECT_FALSE(hook("{}"));
}

}  // namespace
}  // namespace skiff::node
