#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "net/client.h"
#include "net/pki.h"
#include "net/server.h"

namespace skiff::net {
namespace {

using namespace std::chrono_literals;

struct Seen {
  std::mutex mutex;
  std::condition_variable changed;
  int destroyed = 0;

  bool wait_for_end(int count) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, 60s, [&] { return destroyed == count; });
  }
};

// Counts up for ever: one number at a time, each after a wake from another thread.
class Counter : public http::Stream {
 public:
  explicit Counter(Seen& seen) : seen_(seen) {}
  ~Counter() override {
    if (waker_.joinable()) waker_.join();
    const std::lock_guard lock(seen_.mutex);
    ++seen_.destroyed;
    seen_.changed.notify_all();
  }
  bool pull(std::string& out, std::function<void()> wake) override {
    if (waker_.joinable()) waker_.join();
    if (++calls_ % 2 == 0) {
      out = std::to_string(calls_ / 2) + "\n";
    } else {
      waker_ = std::thread(std::move(wake));
    }
    return true;
  }

 private:
  Seen& seen_;
  int calls_ = 0;
  std::thread waker_;
};

class TlsServerTest : public testing::Test {
 protected:
  TlsServerTest() {
    ca_ = *make_authority("test", std::chrono::days(1));
    const auto identity =
        *issue_server(ca_, "skiff", {.addresses = {"127.0.0.1"}}, std::chrono::days(1));
    server_ = *Server::start({.listeners = {{.tls = true}},
                              .certificate_pem = identity.certificate_pem,
                              .key_pem = identity.key_pem,
                              .request_time = 5s},
                             [this](const http::Request& request) {
                               if (request.target != "/count")
                                 return http::Response{.body = request.body};
                               return http::Response{.stream = std::make_unique<Counter>(seen_)};
                             });
    endpoint_ = {.port = server_->port(0), .tls = true, .ca_pem = ca_.certificate_pem};
  }

  Seen seen_;
  Identity ca_;
  std::unique_ptr<Server> server_;
  Endpoint endpoint_;
  Client client_;
};

TEST_F(TlsServerTest, LargeBodiesGoBothWays) {
  const std::string body(2'500'000, 'q');
  for (int i = 0; i < 3; ++i) {
    const auto answer = client_.send(endpoint_, {.method = "POST", .body = body});
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->body, body);
  }
}

TEST_F(TlsServerTest, AStreamArrivesAsItIsMadeAndEndsWithItsReader) {
  auto stream = client_.open(endpoint_, {.target = "/count"});
  ASSERT_TRUE(stream) << stream.error().message;
  std::string text;
  while (!text.contains("\n50\n")) {
    const auto piece = (*stream)->read(60s);
    ASSERT_TRUE(piece) << piece.error().message;
    ASSERT_TRUE(*piece);
    text += **piece;
  }
  EXPECT_TRUE(text.starts_with("1\n2\n3\n")) << text;
  stream->reset();
  EXPECT_TRUE(seen_.wait_for_end(1));
}

TEST_F(TlsServerTest, StopsWithOpenStreams) {
  std::vector<std::unique_ptr<StreamingResponse>> streams;
  for (int i = 0; i < 5; ++i) {
    auto stream = client_.open(endpoint_, {.target = "/count"});
    ASSERT_TRUE(stream) << stream.error().message;
    EXPECT_TRUE((*stream)->read(60s));
    streams.push_back(std::move(*stream));
  }
  server_.reset();
  EXPECT_TRUE(seen_.wait_for_end(5));
}

TEST_F(TlsServerTest, HangsUpOnAClientThatDoesNotShakeHands) {
  // A plain request is no handshake: the server must neither answer it nor wait for ever.
  Endpoint plain = endpoint_;
  plain.tls = false;
  EXPECT_FALSE(client_.send(plain, {}, 10s));
  EXPECT_TRUE(client_.send(endpoint_, {}));
}

}  // namespace
}  // namespace skiff::net
