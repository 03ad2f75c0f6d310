// Connections that leave HTTP.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>

#include "net/server.h"

namespace skiff::net {
namespace {

// Gives back what it gets, in capitals; ends at a full stop. Full while `brake` is set.
class Echo final : public http::Tunnel {
 public:
  Echo(std::atomic<int>& alive, std::atomic<bool>& brake) : alive_(alive), brake_(brake) {
    ++alive_;
  }
  ~Echo() override { --alive_; }

  void push(std::string_view bytes) override {
    for (const char c : bytes) out_ += static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
    if (wake_) std::exchange(wake_, nullptr)();
  }
  bool full() const override { return brake_; }
  bool pull(std::string& out, std::function<void()> wake) override {
    out += std::exchange(out_, {});
    if (out.empty()) wake_ = std::move(wake);
    return !out.contains('.');
  }

 private:
  std::atomic<int>& alive_;
  std::atomic<bool>& brake_;
  std::string out_ = {};
  std::function<void()> wake_ = {};
};

class Tunnels : public ::testing::Test {
 protected:
  Tunnels() {
    auto started = Server::start(
        {.listeners = {{.address = "127.0.0.1", .port = 0}},
         .gate = [](std::uint64_t, const auto&, const auto&) {}},  // holds answers for ever
        [this](const http::Request& request) {
          const int status = request.target == "/own" ? 0 : 101;
          http::Response response{.status = status, .headers = {{"Upgrade", "echo"}}};
          response.tunnel = std::make_unique<Echo>(alive_, brake_);
          if (request.target == "/held") response.after_revision = 1;
          return response;
        });
    EXPECT_TRUE(started);
    server_ = std::move(*started);
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(server_->port(0));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  ~Tunnels() override {
    if (fd_ >= 0) ::close(fd_);
  }

  void send(std::string_view text) {
    EXPECT_EQ(::send(fd_, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  // Everything until `text` has come, the end, or silence.
  std::string read_until(std::string_view text, int timeout_ms = 60'000) {
    std::string got;
    pollfd ready{fd_, POLLIN, 0};
    while (!got.contains(text) && ::poll(&ready, 1, timeout_ms) > 0) {
      char piece[4096];
      const ssize_t size = ::recv(fd_, piece, sizeof piece, 0);
      if (size <= 0) break;
      got.append(piece, static_cast<std::size_t>(size));
    }
    return got;
  }
  void hang_up() { ::close(std::exchange(fd_, -1)); }
  bool wait_for(int alive) {
    for (int i = 0; i < 6000 && alive_ != alive; ++i) ::usleep(10'000);
    return alive_ == alive;
  }

  std::atomic<int> alive_ = 0;
  std::atomic<bool> brake_ = false;
  std::unique_ptr<Server> server_;
  int fd_ = -1;
};

constexpr std::string_view kAsk = "GET /t HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\n\r\n";

TEST_F(Tunnels, CarryBytesBothWaysUntilTheirBodyEnds) {
  send(std::string(kAsk) + "early");
  const std::string head = read_until("EARLY");
  EXPECT_TRUE(head.starts_with("HTTP/1.1 101 Switching Protocols\r\n")) << head;
  EXPECT_TRUE(head.contains("Upgrade: echo\r\n")) << head;
  EXPECT_TRUE(head.contains("Connection: Upgrade\r\n")) << head;
  EXPECT_FALSE(head.contains("Content-Length")) << head;
  send("more");
  EXPECT_EQ(read_until("MORE"), "MORE");
  send("end.");
  EXPECT_EQ(read_until("nothing"), "END.");
}

TEST_F(Tunnels, MaySpeakFromTheFirstWordOfTheAnswer) {
  send("GET /own HTTP/1.1\r\nHost: h\r\n\r\nHttp/1.1 200 ok\r\n\r\n.");
  EXPECT_EQ(read_until("nothing"), "HTTP/1.1 200 OK\r\n\r\n.");
  EXPECT_EQ(alive_, 0);
}

TEST_F(Tunnels, EndWithTheirClient) {
  send(kAsk);
  read_until("\r\n\r\n");
  EXPECT_EQ(alive_, 1);
  hang_up();
  EXPECT_TRUE(wait_for(0));
}

TEST_F(Tunnels, EndWithAClientThatLeavesBeforeTheyBegin) {
  send("GET /held HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\n\r\n");
  EXPECT_TRUE(wait_for(1));
  hang_up();
  EXPECT_TRUE(wait_for(0));
}

TEST_F(Tunnels, ReadNothingWhileTheyAreFull) {
  brake_ = true;
  send(std::string(kAsk));
  read_until("\r\n\r\n");
  send("a");  // a read that was under way brings this
  EXPECT_EQ(read_until("A"), "A");
  // Another one may have begun before the tunnel had; after these no more.
  int brought = 0;
  for (bool more = true; more && brought < 5; brought += more ? 1 : 0) {
    send("b");
    more = !read_until("B", 200).empty();
  }
  EXPECT_LE(brought, 1);
}

}  // namespace
}  // namespace skiff::net
