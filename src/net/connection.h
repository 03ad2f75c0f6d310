// One connection of the server, from accept to close. Internal to net/: it shows Asio's types.
//
// Everything runs on the connection's strand. A read is always pending, also while an answer is
// being made, because only a read notices that the client has gone.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/http.h"
#include "net/server.h"
#include "net/tls.h"

namespace skiff::net {

class Connection;

// What connections share with their server. Each connection keeps it alive, because a stream's wake
// may come after the server has gone.
struct Core {
  boost::asio::io_context io;
  ServerOptions options;
  http::Handler handler;
  std::unique_ptr<ServerTls> tls;

  std::mutex mutex;  // guards what follows
  bool stopping = false;
  std::unordered_map<const Connection*, std::shared_ptr<Connection>> open;

  bool admit(const std::shared_ptr<Connection>& connection);  // false: full or stopping
  void forget(const Connection* connection);
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Clock = std::chrono::steady_clock;

  Connection(std::shared_ptr<Core> core, boost::asio::ip::tcp::socket socket, const Listen& listen);

  // From any thread.
  void start();
  void stop();
  bool expired(Clock::time_point now) const { return now.time_since_epoch().count() > deadline_; }

 private:
  enum class State { kReading, kContinuing, kAnswering, kTunnelling, kLingering };
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;
  using Buffers = std::array<boost::asio::const_buffer, 2>;
  using Step = void (Connection::*)();

  void identify_peer();
  void handshake();
  void next_request();
  void arm_read();
  void on_read(const boost::system::error_code& error, std::size_t size);
  void on_end();
  void advance();
  bool on_head();
  void resume_body();
  void on_parse_error(const boost::system::error_code& error);
  void handle();
  void respond(http::Response response);
  void send_answer();
  void begin_tunnel();
  void give(std::string_view bytes);
  http::Stream* source() {
    return response_.tunnel ? response_.tunnel.get() : response_.stream.get();
  }
  void pull();
  void woken(std::uint64_t pull_number);
  void finish();
  void linger();
  void refuse(int status, std::string_view reason, std::string_view message);
  void write(const Buffers& buffers, Step next);
  void close();
  void expire_in(std::chrono::milliseconds time);
  void never_expire() { deadline_ = INT64_MAX; }
  // A callback for other threads: does `step` on the strand, or nothing once we are gone.
  template <class Action>
  std::function<void()> from_anywhere(Action action);

  const std::shared_ptr<Core> core_;
  boost::asio::ip::tcp::socket socket_;
  std::optional<boost::asio::ssl::stream<boost::asio::ip::tcp::socket&>> tls_;
  const bool trust_local_;
  http::Peer peer_;
  std::atomic<std::int64_t> deadline_{INT64_MAX};

  State state_ = State::kReading;
  bool closed_ = false;
  bool reading_ = false;  // a read is pending
  bool ended_ = false;    // the client will send no more
  std::array<char, 8192> chunk_;
  std::string input_;  // received, not yet parsed
  std::size_t drained_bytes_ = 0;

  std::optional<Parser> parser_;
  bool head_seen_ = false;
  bool head_only_ = false;
  bool keep_alive_ = false;
  bool chunked_ = false;

  http::Response response_;
  std::string output_;
  std::string piece_;
  std::uint64_t pull_number_ = 0;
  bool waiting_ = false;  // the stream had nothing and will wake us
};

}  // namespace skiff::net
