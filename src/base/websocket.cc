#include "base/websocket.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/base64.h"
#include "base/sha1.h"
#include "base/strings.h"

namespace skiff::ws {
namespace {

constexpr std::size_t kControlBytes = 125;

bool control(Op op) { return static_cast<std::uint8_t>(op) >= 8; }

bool known(std::uint8_t op) { return op <= 2 || (op >= 8 && op <= 10); }

// Whether a comma-separated header holds the word, compared without case.
bool has_word(std::string_view header, std::string_view word) {
  return std::ranges::any_of(split(header, ','), [&](std::string_view part) {
    return equal_ignoring_case(trim(part), word);
  });
}

std::string head_of(Op op, std::size_t size, std::uint8_t mask_bit) {
  std::string out;
  out += static_cast<char>(0x80 | static_cast<std::uint8_t>(op));
  const auto put = [&](std::uint8_t first, std::size_t bytes) {
    out += static_cast<char>(mask_bit | first);
    for (std::size_t i = bytes; i-- > 0;) out += static_cast<char>(size >> (8 * i) & 0xff);
  };
  if (size < 126) {
    put(static_cast<std::uint8_t>(size), 0);
  } else if (size < 65536) {
    put(126, 2);
  } else {
    put(127, 8);
  }
  return out;
}

std::string accept_of(std::string_view key) {
  return base64::encode(sha1(std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"));
}

}  // namespace

std::expected<bool, Fault> Reader::read_head(Frame& frame) const {
  const auto at = [&](std::size_t i) { return static_cast<std::uint8_t>(bytes_[i]); };
  if (bytes_.size() < 2) return false;
  const std::uint8_t op = at(0) & 0x0f;
  if ((at(0) & 0x70) != 0) return std::unexpected(Fault{kBroken, "reserved bits are set"});
  if (!known(op)) return std::unexpected(Fault{kBroken, "an unknown kind of frame"});
  const bool masked = (at(1) & 0x80) != 0;
  if (masked != (from_ == From::kClient)) {
    return std::unexpected(
        Fault{kBroken, masked ? "a server's frame has a mask" : "a client's frame has no mask"});
  }
  frame.last = (at(0) & 0x80) != 0;
  frame.op = static_cast<Op>(op);
  std::uint64_t size = at(1) & 0x7f;
  if (control(frame.op) && (!frame.last || size > kControlBytes)) {
    return std::unexpected(Fault{kBroken, "a control frame is in pieces or too long"});
  }
  const std::size_t wide = size == 126 ? 2 : size == 127 ? 8 : 0;
  const std::size_t mask = masked ? 4 : 0;
  if (bytes_.size() < 2 + wide + mask) return false;
  if (wide > 0) {
    size = 0;
    for (std::size_t i = 0; i < wide; ++i) size = size << 8 | at(2 + i);
  }
  const std::size_t held = control(frame.op) ? 0 : partial_.payload.size();
  if (size > most_ || size + held > most_) {
    return std::unexpected(Fault{kTooBig, fmt::format("a message of more than {} bytes", most_)});
  }
  frame.size = static_cast<std::size_t>(size);
  frame.head = 2 + wide + mask;
  std::copy_n(bytes_.data() + 2 + wide, mask, frame.mask);
  return true;
}

std::expected<void, Fault> Reader::accept(const Frame& frame, std::string payload,
                                          std::vector<Message>& out) {
  if (control(frame.op)) {
    out.push_back({frame.op, std::move(payload)});
    return {};
  }
  const bool goes_on = frame.op == Op::kContinuation;
  if (goes_on != open_) {
    return std::unexpected(
        Fault{kBroken, goes_on ? "nothing to go on with" : "the message before has no end"});
  }
  if (!goes_on) partial_.op = frame.op;
  partial_.payload += payload;
  open_ = !frame.last;
  if (frame.last) out.push_back(std::exchange(partial_, {}));
  return {};
}

std::expected<void, Fault> Reader::take(std::string_view bytes, std::vector<Message>& out) {
  bytes_ += bytes;
  std::size_t used = 0;
  while (true) {
    bytes_.erase(0, std::exchange(used, 0));
    Frame frame;
    const auto whole_head = read_head(frame);
    if (!whole_head) return std::unexpected(whole_head.error());
    if (!*whole_head || bytes_.size() < frame.head + frame.size) return {};
    std::string payload = bytes_.substr(frame.head, frame.size);
    for (std::size_t i = 0; i < payload.size(); ++i) {
      payload[i] = static_cast<char>(payload[i] ^ frame.mask[i % 4]);
    }
    used = frame.head + frame.size;
    if (auto taken = accept(frame, std::move(payload), out); !taken) return taken;
  }
}

std::string frame(Op op, std::string_view payload) {
  return head_of(op, payload.size(), 0).append(payload);
}

std::string client_frame(Op op, std::string_view payload, std::uint32_t mask) {
  std::string out = head_of(op, payload.size(), 0x80);
  char bytes[4];
  std::memcpy(bytes, &mask, 4);
  out.append(bytes, 4);
  for (std::size_t i = 0; i < payload.size(); ++i) {
    out += static_cast<char>(payload[i] ^ bytes[i % 4]);
  }
  return out;
}

http::Headers client_headers(std::string_view nonce, std::string_view protocols) {
  return {{"Connection", "Upgrade"},
          {"Upgrade", "websocket"},
          {"Sec-WebSocket-Version", "13"},
          {"Sec-WebSocket-Key", base64::encode(nonce)},
          {"Sec-WebSocket-Protocol", std::string(protocols)}};
}

std::string close_frame(std::uint16_t code, std::string_view why) {
  std::string payload = {static_cast<char>(code >> 8), static_cast<char>(code & 0xff)};
  payload += why.substr(0, kControlBytes - 2);
  return frame(Op::kClose, payload);
}

bool asked_for(const http::Request& request) {
  return has_word(http::header(request.headers, "Upgrade"), "websocket") &&
         has_word(http::header(request.headers, "Connection"), "upgrade");
}

Result<http::Headers> handshake(const http::Request& request, std::string_view protocol) {
  const std::string_view key = http::header(request.headers, "Sec-WebSocket-Key");
  if (request.method != "GET") {
    return fail(Code::kBadRequest, "a WebSocket begins with a GET request");
  }
  if (http::header(request.headers, "Sec-WebSocket-Version") != "13") {
    return fail(Code::kBadRequest, "only version 13 of WebSocket is spoken here");
  }
  const auto decoded = base64::decode(key);
  if (!decoded || decoded->size() != 16) {
    return fail(Code::kBadRequest, "Sec-WebSocket-Key is not 16 bytes in base64");
  }
  http::Headers out = {{"Upgrade", "websocket"}, {"Sec-WebSocket-Accept", accept_of(key)}};
  if (!protocol.empty()) out.emplace_back("Sec-WebSocket-Protocol", protocol);
  return out;
}

std::vector<std::string> offered_protocols(const http::Request& request) {
  std::vector<std::string> out;
  for (const auto& [name, value] : request.headers) {
    if (!equal_ignoring_case(name, "Sec-WebSocket-Protocol")) continue;
    for (const std::string_view part : split(value, ',')) {
      if (!trim(part).empty()) out.emplace_back(trim(part));
    }
  }
  return out;
}

}  // namespace skiff::ws
