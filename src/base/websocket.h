// WebSocket (RFC 6455): frames in, messages out. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/http.h"
#include "base/result.h"

namespace skiff::ws {

enum class Op : std::uint8_t {
  kContinuation = 0,
  kText = 1,
  kBinary = 2,
  kClose = 8,
  kPing = 9,
  kPong = 10,
};

struct Message {
  Op op = Op::kBinary;
  std::string payload = {};
};

// Reasons to end a connection, as they travel.
inline constexpr std::uint16_t kNormal = 1000;
inline constexpr std::uint16_t kBroken = 1002;  // against the protocol
inline constexpr std::uint16_t kTooBig = 1009;

// What is wrong with what the client has sent, and the code that it is to be told.
struct Fault {
  std::uint16_t code = kBroken;
  std::string why = {};
};

// Who sends what is read. A client masks its frames, a server does not.
enum class From { kClient, kServer };

class Reader {
 public:
  // Messages of more than `most` bytes are refused.
  explicit Reader(std::size_t most, From from = From::kClient) : most_(most), from_(from) {}

  // Takes what has arrived; whole messages, control frames among them, are added to `out`. Broken
  // fragments are joined. After a fault nothing more is read.
  std::expected<void, Fault> take(std::string_view bytes, std::vector<Message>& out);

 private:
  struct Frame {
    bool last = false;
    Op op = Op::kBinary;
    std::size_t head = 0;
    std::size_t size = 0;
    char mask[4] = {};
  };
  // Nothing where the head is not whole yet.
  std::expected<bool, Fault> read_head(Frame& frame) const;
  std::expected<void, Fault> accept(const Frame& frame, std::string payload,
                                    std::vector<Message>& out);

  const std::size_t most_;
  const From from_;
  std::string bytes_ = {};
  bool open_ = false;  // a message of several frames has begun
  Message partial_ = {};
};

// From the server: whole and without a mask.
std::string frame(Op op, std::string_view payload);
// From the client. The mask hides nothing; it only must not be chosen by whoever chose the payload.
std::string client_frame(Op op, std::string_view payload, std::uint32_t mask);
std::string close_frame(std::uint16_t code, std::string_view why);

// What a client adds to its request; `nonce` has 16 bytes.
http::Headers client_headers(std::string_view nonce, std::string_view protocols);
// True where the request asks for a WebSocket.
bool asked_for(const http::Request& request);
// The headers of the answer 101; `protocol` is one of those that the client offers, or empty.
// kBadRequest where the request is no proper handshake.
Result<http::Headers> handshake(const http::Request& request, std::string_view protocol);
// The sub-protocols that the client offers, in its order.
std::vector<std::string> offered_protocols(const http::Request& request);

}  // namespace skiff::ws
