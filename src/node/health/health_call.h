// One call of grpc.health.v1.Health/Check as bytes of HTTP/2 without TLS: what is sent, and what
// the bytes that come back mean. Pure; just as much of HTTP/2 and HPACK as this one call needs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace skiff::node {

// All that the client sends of its own accord.
std::string health_request(std::string_view authority, std::string_view service,
                           std::string_view user_agent);

class HealthReply {
 public:
  // Takes what has arrived and gives what must be sent back. Nothing more is taken after the end.
  std::string take(std::string_view bytes);

  // The call is over: what follows says how.
  bool done() const { return done_; }
  // Why it is no gRPC at all; empty: it is.
  const std::string& broken() const { return broken_; }
  std::optional<int> grpc_status() const { return grpc_status_; }  // 0: well
  // UNKNOWN, SERVING, NOT_SERVING, ...; nothing where no answer came.
  std::optional<std::string> serving() const;

 private:
  struct Frame {
    std::uint8_t type = 0, flags = 0;
    std::uint32_t stream = 0;
    std::string_view payload = {};
  };
  void frame(const Frame& frame, std::string& reply);
  void headers(const Frame& frame);
  void fields();
  void give_up(std::string why);

  std::string pending_ = {};  // a frame that is not whole yet
  std::string block_ = {};    // header fields that are not whole yet
  bool last_block_ = false;
  std::string message_ = {};
  bool done_ = false;
  std::string broken_ = {};
  std::optional<int> grpc_status_ = {};
};

}  // namespace skiff::node
