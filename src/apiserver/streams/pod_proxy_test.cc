#include "apiserver/streams/pod_proxy.h"

#include <gtest/gtest.h>

namespace skiff::apiserver {
namespace {

// Keeps what it hears, says `words` one at a time, ends with `end`. An empty word is a silence:
// then alone, as a port of a pod does it, the one who listens is kept to be woken.
class Port final : public Peer {
 public:
  Port(std::string& heard, std::function<void()>& wake, std::vector<std::string> words,
       Result<int> end)
      : heard_(heard), wake_(wake), words_(std::move(words)), end_(std::move(end)) {}
  void write(std::string_view bytes) override { heard_ += bytes; }
  std::size_t backlog() const override { return 0; }
  void end_input() override {}
  void resize(int, int) override {}
  bool read(std::vector<Piece>& out, std::function<void()> wake) override {
    if (at_ == words_.size()) return false;
    const std::string& word = words_[at_++];
    if (word.empty()) {
      wake_ = std::move(wake);
    } else {
      out.push_back({.bytes = word});
    }
    return true;
  }
  Result<int> exit_code() override { return end_; }

 private:
  std::string& heard_;
  std::function<void()>& wake_;
  const std::vector<std::string> words_;
  const Result<int> end_;
  std::size_t at_ = 0;
};

class Ports final : public PodStreams {
 public:
  Result<std::unique_ptr<http::Stream>> logs(const json::value&, const LogOptions&) override {
    return fail(Code::kInternal, "no");
  }
  Result<std::unique_ptr<Peer>> exec(const json::value&, const ExecOptions&) override {
    return fail(Code::kInternal, "no");
  }
  Result<std::unique_ptr<Peer>> attach(const json::value&, const ExecOptions&) override {
    return fail(Code::kInternal, "no");
  }
  std::unique_ptr<Peer> dial(const json::value&, int port) override {
    dialled = port;
    return std::make_unique<Port>(heard, wake, words, end);
  }
  int dialled = 0;
  std::string heard = {};
  std::vector<std::string> words = {};
  Result<int> end = 0;
  std::function<void()> wake = {};
};

const json::value kPod = *json::parse(R"({"metadata":{"name":"p"},"spec":{"nodeName":"n",
    "containers":[{"name":"a"},{"name":"b","ports":[{"containerPort":8080}]}]}})");
const http::Request kAsk{.method = "GET",
                         .target = "/api/v1/namespaces/ns/pods/p/proxy/a/b?c=d%2F",
                         .headers = {{"Host", "skiff"},
                                     {"Authorization", "Bearer secret"},
                                     {"cookie", "session"},
                                     {"Referer", "http://skiff/?token=secret"},
                                     {"Accept", "text/plain"}}};

// As a connection pulls: after a silence it waits until it is woken.
std::string whole(Ports& ports, const ProxyName& name = {.pod = "p"}) {
  const http::Response response = serve_proxy(&ports, kPod, name, kAsk);
  EXPECT_EQ(response.status, 0);
  if (!response.tunnel) return {};
  std::string out;
  while (true) {
    std::string piece;
    bool woken = false;
    const bool more = response.tunnel->pull(piece, [&] { woken = true; });
    out += piece;
    if (!more) return out;
    if (!piece.empty()) continue;
    if (const auto wake = std::exchange(ports.wake, nullptr)) wake();
    if (woken) continue;
    ADD_FAILURE() << "nobody wakes the connection";
    return out;
  }
}

std::string target(std::string text, const http::Headers& headers = {}) {
  return proxy_target({.method = "GET", .target = std::move(text), .headers = headers});
}

TEST(PodProxy, NamesHaveASchemeAndAPortOrNot) {
  EXPECT_EQ(parse_proxy_name("p")->pod, "p");
  EXPECT_FALSE(parse_proxy_name("p")->port);
  EXPECT_EQ(parse_proxy_name("p:80")->port, 80);
  EXPECT_EQ(parse_proxy_name("https:p:443")->scheme, "https");
  EXPECT_EQ(parse_proxy_name("https:p:443")->pod, "p");
  EXPECT_FALSE(parse_proxy_name("http:p:")->port);
  for (const std::string_view bad : {"", ":80", "p:x", "p:0", "p:65536", "ftp:p:1", "a:b:c:d"}) {
    EXPECT_FALSE(parse_proxy_name(bad)) << bad;
  }
}

TEST(PodProxy, ThePathBehindIsAsTheClientWroteIt) {
  EXPECT_EQ(target("/api/v1/namespaces/n/pods/p/proxy/a%20b/?x=/y"), "/a%20b/?x=/y");
  EXPECT_EQ(target("/api/v1/namespaces/n/pods/p/proxy"), "/");
  EXPECT_EQ(target("/api/v1/namespaces/n/pods/p/proxy?x=1"), "/?x=1");
  EXPECT_EQ(target("/api/v1/namespaces/n/pods/p:1/proxy/"), "/");
  EXPECT_EQ(target("/api/v1/namespaces/n/pods/p/proxy//a//b"), "//a//b");
  EXPECT_EQ(target("http://h:1/api/v1/namespaces/n/pods/p/proxy/a/b"), "/a/b");
  EXPECT_EQ(target("https://h/api/v1/namespaces/n/pods/p/proxy?x=1"), "/?x=1");
}

TEST(PodProxy, TwoSlashesTogetherCountInFrontAlone) {
  EXPECT_FALSE(proxy_gaps("/api/v1/namespaces/n/pods/p/proxy//a"));
  EXPECT_FALSE(proxy_gaps("http://h/api/v1/namespaces/n/pods/p/proxy/a//b?c=//"));
  EXPECT_TRUE(proxy_gaps("/api/v1//namespaces/n/pods/p/proxy/a"));
  EXPECT_TRUE(proxy_gaps("//api/v1/namespaces/n/pods/p/proxy/a"));
}

TEST(PodProxy, ATokenThatSaysWhoAsksStaysWithSkiff) {
  const std::string place = "/api/v1/namespaces/n/pods/p/proxy";
  EXPECT_EQ(target(place + "/a?token=secret"), "/a");
  EXPECT_EQ(target(place + "?token=secret&x=1&y"), "/?x=1&y");
  EXPECT_EQ(target(place + "/a?x=a%20b&%74oken=secret&token=again&tokens=3"),
            "/a?x=a%20b&tokens=3");
  // Schemes that are not read here leave the token in charge.
  EXPECT_EQ(target(place + "/a?token=secret", {{"Authorization", "Digest x"}}), "/a");
  EXPECT_EQ(target(place + "/a?token=secret", {{"Authorization", "Bearer "}}), "/a");
  // Somebody who is known otherwise speaks of a token of the program's own.
  EXPECT_EQ(target(place + "/a?token=its", {{"Authorization", "bearer x"}}), "/a?token=its");
  EXPECT_EQ(target(place + "/a?token=its", {{"Authorization", "Basic eDp5"}}), "/a?token=its");
  EXPECT_EQ(proxy_target({.target = place + "/a?token=its", .peer = {.common_name = "ann"}}),
            "/a?token=its");
}

TEST(PodProxy, ThePodHearsTheRequestWithoutTheClientsSecrets) {
  Ports ports;
  ports.words = {
      "HTTP/1.1 200 OK\r\nContent-Le", "ngth: 2\r\nSet-Cookie: a=b\r\n\r", "", "\nh", "", "i"};
  const std::string answer = whole(ports);
  EXPECT_EQ(ports.dialled, 8080);
  EXPECT_EQ(ports.heard,
            "GET /a/b?c=d%2F HTTP/1.1\r\nHost: skiff\r\nConnection: close\r\n"
            "Accept: text/plain\r\n\r\n");
  EXPECT_EQ(answer,
            "HTTP/1.1 200 OK\r\nContent-Security-Policy: sandbox\r\n"
            "X-Content-Type-Options: nosniff\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi");
}

TEST(PodProxy, ABodyIsPassedOnWithItsLength) {
  http::Request post = kAsk;
  post.method = "POST";
  post.body = "abc";
  post.headers.emplace_back("Transfer-Encoding", "chunked");
  const std::string said = proxy_request(post, "/").value_or("");
  EXPECT_TRUE(said.ends_with("Content-Length: 3\r\n\r\nabc")) << said;
  EXPECT_EQ(said.find("chunked"), std::string::npos);
}

TEST(PodProxy, WhatWouldBeASecondRequestIsNotPassedOn) {
  EXPECT_FALSE(proxy_request(kAsk, "/a HTTP/1.1\r\n\r\nDELETE /b"));
  http::Request twice = kAsk;
  twice.headers.emplace_back("X-A", "b\r\n\r\nDELETE /b HTTP/1.1");
  EXPECT_FALSE(proxy_request(twice, "/"));
}

TEST(PodProxy, APortWhereNobodyAnswersIsAFailureInWords) {
  Ports ports;
  ports.end = fail(Code::kInternal, "nobody listens on port 7");
  const std::string answer = whole(ports, {.pod = "p", .port = 7});
  EXPECT_EQ(ports.dialled, 7);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 ")) << answer;
  EXPECT_NE(answer.find("error trying to reach service: nobody listens on port 7"),
            std::string::npos);
  ports.end = 0;
  ports.words = {"HTTP/1.1 2"};
  EXPECT_NE(whole(ports).find("hung up"), std::string::npos);
  ports.words = {std::string(70'000, 'x')};
  EXPECT_NE(whole(ports).find("64 KiB"), std::string::npos);
}

TEST(PodProxy, AHeadThatABrowserCouldReadOtherwiseIsAFailure) {
  using std::string_literals::operator""s;
  Ports ports;
  for (const std::string& head : {
           "HTTP/1.1 200 OK\nSet-Cookie: a=b\n\n<script>\r\n\r\n"s,
           "HTTP/1.1 200 OK\nA: b\n\nno end at all"s,
           "HTTP/1.1 200 OK\r\nA: b\nSet-Cookie: a=b\r\n\r\n"s,
           "HTTP/1.1 200 OK\r\nA: b\rSet-Cookie: a=b\r\n\r\n"s,
           "HTTP/1.1 200 OK\r\nA: b\0c\r\n\r\n"s,
           "HTTP/1.1 200 OK\r\nSet-Cookie : a=b\r\n\r\n"s,
           "HTTP/1.1 200 OK\r\nA: b\r\n Set-Cookie: a=b\r\n\r\n"s,
           "HTTP/1.1 200 OK\r\n: b\r\n\r\n"s,
           "HTTP/1.1 200 OK\r\nSet-Cookie\r\n\r\n"s,
           "HTTP/1.1 2000 OK\r\n\r\n"s,
           "HTTP/1.1 20 OK\r\n\r\n"s,
           "HTTP/1.1 099 OK\r\n\r\n"s,
           "HTTP/2 200 OK\r\n\r\n"s,
           "HTTP/0.9 200 OK\r\n\r\n"s,
           "\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"s,
           "<html>\r\n\r\n"s,
           "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"s,
       }) {
    ports.words = {head, ""};
    const std::string answer = whole(ports);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 ")) << head << "\n" << answer;
    EXPECT_EQ(answer.find("a=b"), std::string::npos) << answer;
    EXPECT_EQ(answer.find("hung up"), std::string::npos) << head;
  }
}

TEST(PodProxy, AHeadThatOnlySaysThatAnAnswerWillComeIsNotTheAnswer) {
  Ports ports;
  ports.words = {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nSet-Cookie: a=b\r\n\r\n",
                 "", "HTTP/1.0 404\r\nset-cookie: a=b\r\nA:b \r\n\r\nbody"};
  EXPECT_EQ(whole(ports),
            "HTTP/1.1 404\r\nContent-Security-Policy: sandbox\r\n"
            "X-Content-Type-Options: nosniff\r\nA: b\r\nConnection: close\r\n\r\nbody");
  // They are bounded as one head is.
  ports.words.assign(4000, "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_NE(whole(ports).find("64 KiB"), std::string::npos);
}

TEST(PodProxy, WhatABrowserKeepsForAnAddressIsNotPassedOn) {
  for (const std::string_view name :
       {"Set-Cookie", "NEL", "report-to", "Reporting-Endpoints", "Alt-Svc", "Clear-Site-Data",
        "Service-Worker-Allowed", "Strict-Transport-Security", "Upgrade",
        "X-Content-Type-Options"}) {
    const auto head = proxy_head("HTTP/1.1 200 OK\r\nA: b\r\n" + std::string(name) + ": evil");
    ASSERT_TRUE(head) << head.error().message;
    EXPECT_EQ(head->status, 200);
    EXPECT_NE(head->text.find("A: b\r\n"), std::string::npos);
    EXPECT_EQ(head->text.find("evil"), std::string::npos) << name;
  }
}

TEST(PodProxy, WhatCannotBeAskedIsRefusedBeforeAnybodyIsDialled) {
  Ports ports;
  EXPECT_EQ(serve_proxy(&ports, kPod, {.scheme = "https", .pod = "p"}, kAsk).status, 400);
  EXPECT_EQ(serve_proxy(nullptr, kPod, {.pod = "p"}, kAsk).status, 503);
  EXPECT_EQ(serve_proxy(&ports, *json::parse(R"({"spec":{}})"), {.pod = "p"}, kAsk).status, 400);
  EXPECT_EQ(ports.dialled, 0);
}

}  // namespace
}  // namespace skiff::apiserver
