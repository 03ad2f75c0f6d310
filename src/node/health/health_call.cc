#include "node/health/health_call.h"

#include <fmt/format.h>

#include <array>

namespace skiff::node {
namespace {

// RFC 9113 and RFC 7541.
enum FrameType : std::uint8_t {
  kData = 0,
  kHeaders = 1,
  kReset = 3,
  kSettings = 4,
  kPing = 6,
  kGoAway = 7,
  kContinuation = 9
};
constexpr std::uint8_t kEndStream = 1, kAck = 1, kEndHeaders = 4, kPadded = 8, kPriority = 0x20;
constexpr std::size_t kFrameHead = 9;
constexpr std::size_t kFrameMost = 16'384;  // what we allow by saying nothing about it
constexpr std::size_t kReplyMost = 65'536;  // of an answer that is two bytes long
constexpr std::string_view kStatusName = "grpc-status";
// The same in HPACK's Huffman code, which most servers prefer.
constexpr std::string_view kStatusNameCoded = "\x9a\xca\xc8\xb2\x12\x34\xda\x8f";

void put_number(std::string& out, std::uint32_t value, int bytes) {
  for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>(value >> shift & 0xff));
  }
}

std::uint32_t number(std::string_view bytes) {
  std::uint32_t value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

std::string frame_bytes(std::uint8_t type, std::uint8_t flags, std::uint32_t stream,
                        std::string_view payload) {
  std::string out;
  put_number(out, static_cast<std::uint32_t>(payload.size()), 3);
  put_number(out, type, 1);
  put_number(out, flags, 1);
  put_number(out, stream, 4);
  out.append(payload);
  return out;
}

// A number of HPACK that begins in the low `bits` of a byte whose high bits are `head`.
void put_packed(std::string& out, std::uint8_t head, int bits, std::size_t value) {
  const std::size_t most = (1u << bits) - 1;
  if (value < most) {
    out.push_back(static_cast<char>(head | value));
    return;
  }
  out.push_back(static_cast<char>(head | most));
  for (value -= most; value >= 128; value /= 128) {
    out.push_back(static_cast<char>(value % 128 | 128));
  }
  out.push_back(static_cast<char>(value));
}

std::optional<std::size_t> take_packed(std::string_view& from, int bits) {
  if (from.empty()) return std::nullopt;
  const std::size_t most = (1u << bits) - 1;
  std::size_t value = static_cast<unsigned char>(from[0]) & most;
  from.remove_prefix(1);
  if (value < most) return value;
  for (int shift = 0; shift <= 21; shift += 7) {
    if (from.empty()) return std::nullopt;
    const auto byte = static_cast<unsigned char>(from[0]);
    from.remove_prefix(1);
    value += static_cast<std::size_t>(byte & 127) << shift;
    if ((byte & 128) == 0) return value;
  }
  return std::nullopt;
}

void put_text(std::string& out, std::string_view text) {
  put_packed(out, 0, 7, text.size());
  out.append(text);
}

struct Text {
  std::string_view bytes = {};
  bool coded = false;  // in the Huffman code
};

std::optional<Text> take_text(std::string_view& from) {
  if (from.empty()) return std::nullopt;
  Text out{.coded = (static_cast<unsigned char>(from[0]) & 128) != 0};
  const auto size = take_packed(from, 7);
  if (!size || *size > from.size()) return std::nullopt;
  out.bytes = from.substr(0, *size);
  from.remove_prefix(*size);
  return out;
}

// Digits have codes of five or six bits: 00000 to 00010 for 0 to 2, 011001 to 011111 for 3 to 9.
std::optional<int> decimal(const Text& text) {
  int value = 0;
  if (!text.coded) {
    for (const char c : text.bytes) {
      if (c < '0' || c > '9' || value > 100) return std::nullopt;
      value = value * 10 + (c - '0');
    }
    return text.bytes.empty() ? std::nullopt : std::optional(value);
  }
  if (text.bytes.empty() || text.bytes.size() > 3) return std::nullopt;
  const std::size_t bits = text.bytes.size() * 8;
  const std::uint32_t all = number(text.bytes);
  const auto look = [&](std::size_t at, std::size_t n) {
    return all >> (bits - at - n) & ((1u << n) - 1);
  };
  std::size_t at = 0;
  while (bits - at >= 5) {
    if (const std::uint32_t five = look(at, 5); five <= 2) {
      value = value * 10 + static_cast<int>(five);
      at += 5;
      continue;
    }
    if (bits - at < 6) break;
    const std::uint32_t six = look(at, 6);
    if (six < 0x19 || six > 0x1f) break;
    value = value * 10 + static_cast<int>(six - 0x19) + 3;
    at += 6;
  }
  // What is left over is filled with ones, less than a byte of them.
  const std::size_t rest = bits - at;
  if (at == 0 || rest >= 8 || look(at, rest) != (1u << rest) - 1) return std::nullopt;
  return value;
}

}  // namespace

std::string health_request(std::string_view authority, std::string_view service,
                           std::string_view user_agent) {
  std::string out = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  std::string settings;
  put_number(settings, 1, 2);  // the server may not refer to fields that it sent before
  put_number(settings, 0, 4);
  put_number(settings, 2, 2);  // nor send what was not asked for
  put_number(settings, 0, 4);
  out += frame_bytes(kSettings, 0, 0, settings);
  std::string fields = "\x83\x86";  // POST, http
  const auto known = [&](std::size_t name, std::string_view value) {
    put_packed(fields, 0, 4, name);
    put_text(fields, value);
  };
  known(4, "/grpc.health.v1.Health/Check");
  known(1, authority);
  known(31, "application/grpc");
  known(58, user_agent);
  fields.push_back(0);
  put_text(fields, "te");
  put_text(fields, "trailers");
  out += frame_bytes(kHeaders, kEndHeaders, 1, fields);
  std::string message;
  if (!service.empty()) {
    message.push_back(0x0a);  // field 1, text
    std::size_t size = service.size();
    for (; size >= 128; size /= 128) message.push_back(static_cast<char>(size % 128 | 128));
    message.push_back(static_cast<char>(size));
    message.append(service);
  }
  std::string body(1, '\0');
  put_number(body, static_cast<std::uint32_t>(message.size()), 4);
  return out + frame_bytes(kData, kEndStream, 1, body + message);
}

void HealthReply::give_up(std::string why) {
  if (!done_) broken_ = std::move(why);
  done_ = true;
}

std::string HealthReply::take(std::string_view bytes) {
  pending_.append(bytes);
  std::string reply;
  std::string_view left = pending_;
  while (!done_ && left.size() >= kFrameHead) {
    const std::size_t size = number(left.substr(0, 3));
    if (size > kFrameMost) {
      give_up("the server does not speak HTTP/2");
      break;
    }
    if (left.size() < kFrameHead + size) break;
    frame({.type = static_cast<std::uint8_t>(left[3]),
           .flags = static_cast<std::uint8_t>(left[4]),
           .stream = number(left.substr(5, 4)) & 0x7fff'ffff,
           .payload = left.substr(kFrameHead, size)},
          reply);
    left.remove_prefix(kFrameHead + size);
  }
  pending_ = std::string(left);
  return reply;
}

void HealthReply::frame(const Frame& f, std::string& reply) {
  switch (f.type) {
    case kSettings:
      if ((f.flags & kAck) == 0) reply += frame_bytes(kSettings, kAck, 0, "");
      return;
    case kPing:
      if ((f.flags & kAck) == 0) reply += frame_bytes(kPing, kAck, 0, f.payload);
      return;
    case kGoAway:
      return give_up("the server closed the connection");
    default:
      break;
  }
  if (f.stream != 1) return;
  if (f.type == kReset) return give_up("the server reset the call");
  if (f.type == kHeaders || f.type == kContinuation) return headers(f);
  if (f.type != kData) return;
  std::string_view data = f.payload;
  if ((f.flags & kPadded) != 0) {
    const std::size_t padding = data.empty() ? 1 : static_cast<unsigned char>(data[0]) + 1u;
    if (padding > data.size()) return give_up("the server sent a frame that is cut off");
    data = data.substr(1, data.size() - padding);
  }
  message_.append(data);
  if (message_.size() > kReplyMost) return give_up("the server's answer is too long");
  if ((f.flags & kEndStream) != 0) done_ = true;
}

void HealthReply::headers(const Frame& f) {
  std::string_view part = f.payload;
  if (f.type == kHeaders) {
    last_block_ = (f.flags & kEndStream) != 0;
    std::size_t front = 0, back = 0;
    if ((f.flags & kPadded) != 0) {
      front = 1;
      back = part.empty() ? 0 : static_cast<unsigned char>(part[0]);
    }
    if ((f.flags & kPriority) != 0) front += 5;
    if (front + back > part.size()) return give_up("the server sent a frame that is cut off");
    part = part.substr(front, part.size() - front - back);
  }
  block_.append(part);
  if (block_.size() > kReplyMost) return give_up("the server's answer is too long");
  if ((f.flags & kEndHeaders) == 0) return;
  fields();
  block_.clear();
  if (last_block_) done_ = true;
}

void HealthReply::fields() {
  std::string_view left = block_;
  while (!left.empty()) {
    const auto first = static_cast<unsigned char>(left[0]);
    if ((first & 0x80) != 0) {  // a field that every connection knows
      if (!take_packed(left, 7)) return give_up("the server's header cannot be read");
      continue;
    }
    if ((first & 0xe0) == 0x20) {  // the size of its table
      if (!take_packed(left, 5)) return give_up("the server's header cannot be read");
      continue;
    }
    const auto index = take_packed(left, (first & 0x40) != 0 ? 6 : 4);
    std::optional<Text> name;
    if (index && *index == 0) name = take_text(left);
    const bool named = index && (*index != 0 || name);
    const auto value = named ? take_text(left) : std::nullopt;
    if (!value) return give_up("the server's header cannot be read");
    if (name && name->bytes == (name->coded ? kStatusNameCoded : kStatusName)) {
      grpc_status_ = decimal(*value);
    }
  }
}

std::optional<std::string> HealthReply::serving() const {
  constexpr std::size_t kPrefix = 5;
  if (message_.size() < kPrefix || message_[0] != 0) return std::nullopt;
  const std::size_t size = number(std::string_view(message_).substr(1, 4));
  if (message_.size() < kPrefix + size) return std::nullopt;
  static constexpr std::array<const char*, 4> kNames = {"UNKNOWN", "SERVING", "NOT_SERVING",
                                                        "SERVICE_UNKNOWN"};
  // Field 1, a number; 0 is left out.
  if (size == 0) return kNames[0];
  if (size < 2 || message_[kPrefix] != 0x08) return std::nullopt;
  const auto value = static_cast<unsigned char>(message_[kPrefix + 1]);
  return value < kNames.size() ? kNames[value] : fmt::format("{}", value);
}

}  // namespace skiff::node
