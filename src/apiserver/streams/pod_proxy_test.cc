#include "apiserver/streams/pod_proxy.h"

#include <gtest/gtest.h>

namespace skiff::apiserver {
namespace {

// Keeps what it hears, says `words` in pieces, ends with `end`.
class Port final : public Peer {
 public:
  Port(std::string& heard, std::vector<std::string> words, Result<int> end)
      : heard_(heard), words_(std::move(words)), end_(std::move(end)) {}
  void write(std::string_view bytes) override { heard_ += bytes; }
  std::size_t backlog() const override { return 0; }
  void end_input() override {}
  void resize(int, int) override {}
  bool read(std::vector<Piece>& out, std::function<void()>) override {
    if (at_ == words_.size()) return false;
    out.push_back({.bytes = words_[at_++]});
    return true;
  }
  Result<int> exit_code() override { return end_; }

 private:
  std::string& heard_;
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
    return std::make_unique<Port>(heard, words, end);
  }
  int dialled = 0;
  std::string heard = {};
  std::vector<std::string> words = {};
  Result<int> end = 0;
};

const json::value kPod = *json::parse(R"({"metadata":{"name":"p"},"spec":{"nodeName":"n",
    "containers":[{"name":"a"},{"name":"b","ports":[{"containerPort":8080}]}]}})");
const http::Request kAsk{.method = "GET",
                         .target = "/api/v1/namespaces/ns/pods/p/proxy/a/b?c=d%2F",
                         .headers = {{"Host", "skiff"},
                                     {"Authorization", "Bearer secret"},
                                     {"cookie", "session"},
                                     {"Accept", "text/plain"}}};

std::string whole(http::Response response) {
  EXPECT_EQ(response.status, 0);
  std::string out;
  if (!response.tunnel) return out;
  while (response.tunnel->pull(out, [] {})) {
  }
  return out;
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
  EXPECT_EQ(proxy_target("/api/v1/namespaces/n/pods/p/proxy/a%20b/?x=/y"), "/a%20b/?x=/y");
  EXPECT_EQ(proxy_target("/api/v1/namespaces/n/pods/p/proxy"), "/");
  EXPECT_EQ(proxy_target("/api/v1/namespaces/n/pods/p/proxy?x=1"), "/?x=1");
  EXPECT_EQ(proxy_target("/api/v1/namespaces/n/pods/p:1/proxy/"), "/");
}

TEST(PodProxy, ThePodHearsTheRequestWithoutTheClientsSecrets) {
  Ports ports;
  ports.words = {"HTTP/1.1 200 OK\r\nContent-Le", "ngth: 2\r\nSet-Cookie: a=b\r\n\r", "\nh", "i"};
  const std::string answer = whole(serve_proxy(&ports, kPod, {.pod = "p"}, kAsk));
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
  const std::string said = proxy_request(post, "/");
  EXPECT_TRUE(said.ends_with("Content-Length: 3\r\n\r\nabc")) << said;
  EXPECT_EQ(said.find("chunked"), std::string::npos);
}

TEST(PodProxy, APortWhereNobodyAnswersIsAFailureInWords) {
  Ports ports;
  ports.end = fail(Code::kInternal, "nobody listens on port 7");
  const std::string answer = whole(serve_proxy(&ports, kPod, {.pod = "p", .port = 7}, kAsk));
  EXPECT_EQ(ports.dialled, 7);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 ")) << answer;
  EXPECT_NE(answer.find("error trying to reach service: nobody listens on port 7"),
            std::string::npos);
  ports.end = 0;
  ports.words = {"HTTP/1.1 2"};
  EXPECT_NE(whole(serve_proxy(&ports, kPod, {.pod = "p"}, kAsk)).find("hung up"),
            std::string::npos);
  ports.words = {std::string(70'000, 'x')};
  EXPECT_NE(whole(serve_proxy(&ports, kPod, {.pod = "p"}, kAsk)).find("64 KiB"), std::string::npos);
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
