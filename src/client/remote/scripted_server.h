// For tests: a server over real sockets that answers what a test tells it to.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client/remote/access.h"
#include "net/server.h"

namespace skiff::client {

// A server that answers what a test says for "METHOD target", and remembers what it was asked.
class Scripted {
 public:
  Scripted() { start(0); }
  // The last answer of several is given again and again.
  void say(const std::string& request, int status, std::string body, http::Headers headers = {}) {
    const std::lock_guard lock(mutex_);
    answers_[request].push_back({status, std::move(body), std::move(headers)});
  }
  void stream(const std::string& request, std::vector<std::string> pieces) {
    const std::lock_guard lock(mutex_);
    streams_[request] = std::move(pieces);
  }
  std::vector<std::string> asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  std::string last_body() {
    const std::lock_guard lock(mutex_);
    return body_;
  }
  std::string authorization() {
    const std::lock_guard lock(mutex_);
    return authorization_;
  }
  Access access() {
    Access out;
    out.endpoint.port = server_->port(0);
    out.token = "secret";
    return out;
  }
  void stop() { server_.reset(); }
  // Every connection breaks; the address stays.
  void restart() {
    const std::uint16_t port = server_->port(0);
    stop();
    start(port);
  }

 private:
  void start(std::uint16_t port) {
    auto started = net::Server::start({.listeners = {{.port = port}}},
                                      [this](const http::Request& r) { return answer(r); });
    server_ = std::move(*started);
  }

  // Hands out its pieces and then stays silent; a piece END ends it.
  class Pieces : public http::Stream {
   public:
    explicit Pieces(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {}
    bool pull(std::string& out, std::function<void()>) override {
      if (at_ < pieces_.size()) out = pieces_[at_++];
      if (out != "END") return true;
      out.clear();
      return false;
    }

   private:
    std::vector<std::string> pieces_;
    std::size_t at_ = 0;
  };

  http::Response answer(const http::Request& request) {
    const std::lock_guard lock(mutex_);
    const std::string key = request.method + " " + request.target;
    asked_.push_back(key);
    body_ = request.body;
    authorization_ = http::header(request.headers, "Authorization");
    if (const auto found = streams_.find(key); found != streams_.end()) {
      return {.stream = std::make_unique<Pieces>(found->second)};
    }
    auto& queue = answers_[key];
    if (queue.empty()) {
      return {.status = 404, .body = R"({"kind":"Status","code":404,"reason":"NotFound"})"};
    }
    http::Response out{.status = queue.front().status,
                       .headers = queue.front().headers,
                       .body = queue.front().body};
    if (queue.size() > 1) queue.pop_front();
    return out;
  }

  struct Answer {
    int status;
    std::string body;
    http::Headers headers;
  };
  std::mutex mutex_;
  std::map<std::string, std::deque<Answer>> answers_;
  std::map<std::string, std::vector<std::string>> streams_;
  std::vector<std::string> asked_;
  std::string body_;
  std::string authorization_;
  std::unique_ptr<net::Server> server_;
};

}  // namespace skiff::client
