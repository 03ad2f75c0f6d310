// What clients ask for: SPDY (kubectl up to 1.30), SPDY inside of a WebSocket (kubectl since), or
// channels of a WebSocket for ports that the address names (the Python client).
#include <charconv>

#include "apiserver/streams/forward.h"
#include "base/strings.h"
#include "base/websocket.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kSpdyProtocol = "portforward.k8s.io";
constexpr std::string_view kTunnelledProtocol = "SPDY/3.1+portforward.k8s.io";
constexpr std::string_view kChannelProtocol = "v4.channel.k8s.io";
// Ours: as v5 of exec, a client can end one direction, by channel 255 and the channel's number.
constexpr std::string_view kClosingProtocol = "v5.channel.k8s.io";
constexpr std::size_t kForwardMessageBytes = 1024 * 1024;

// The messages of a WebSocket; false: the client is gone.
bool read_messages(ws::Reader& reader, std::string_view bytes, std::string& out,
                   const std::function<void(std::string_view)>& data) {
  std::vector<ws::Message> messages;
  const auto taken = reader.take(bytes, messages);
  for (const ws::Message& message : messages) {
    if (message.op == ws::Op::kPing) out += ws::frame(ws::Op::kPong, message.payload);
    if (message.op == ws::Op::kClose) {
      out += ws::close_frame(ws::kNormal, "");
      return false;
    }
    if (message.op == ws::Op::kBinary || message.op == ws::Op::kText) data(message.payload);
  }
  if (!taken) out += ws::close_frame(taken.error().code, taken.error().why);
  return taken.has_value();
}

class TunnelledForward final : public ForwardChannels {
 public:
  void take(std::string_view bytes, std::vector<Input>& input, std::string& out) override {
    std::string answers;
    const bool there = read_messages(reader_, bytes, out, [&](std::string_view payload) {
      inner_->take(payload, input, answers);
    });
    out += wrap(answers);
    if (!there) input.push_back({.kind = Input::Kind::kGone});
  }
  std::string write(Id id, std::string_view bytes) override {
    return wrap(inner_->write(id, bytes));
  }
  std::string finish(Id id, std::string_view problem) override {
    return wrap(inner_->finish(id, problem));
  }

 private:
  static std::string wrap(const std::string& bytes) {
    return bytes.empty() ? bytes : ws::frame(ws::Op::kBinary, bytes);
  }

  const std::unique_ptr<ForwardChannels> inner_ = forward_over_spdy();
  ws::Reader reader_{kForwardMessageBytes};
};

// Channel 2i is the i-th port's data, 2i+1 what went wrong with it; each begins with the port.
class ChannelForward final : public ForwardChannels {
 public:
  explicit ChannelForward(std::vector<int> ports)
      : ports_(std::move(ports)), open_(ports_.size()) {}

  void take(std::string_view bytes, std::vector<Input>& input, std::string& out) override {
    if (!begun_) {
      begun_ = true;
      for (std::size_t i = 0; i < ports_.size(); ++i) begin(static_cast<Id>(i), input, out);
    }
    const bool there = read_messages(reader_, bytes, out, [&](std::string_view payload) {
      if (payload.size() < 2) return;
      const auto at = [&](std::size_t i) { return static_cast<unsigned char>(payload[i]); };
      const bool ends = at(0) == kClose;
      const unsigned channel = at(ends ? 1 : 0);
      if (channel % 2 != 0) return;
      input.push_back({.kind = ends ? Input::Kind::kEnd : Input::Kind::kBytes,
                       .id = channel / 2,
                       .bytes = ends ? "" : std::string(payload.substr(1))});
    });
    if (!there) input.push_back({.kind = Input::Kind::kGone});
  }
  std::string write(Id id, std::string_view bytes) override { return message(2 * id, bytes); }
  std::string finish(Id id, std::string_view problem) override {
    std::string out = problem.empty() ? "" : message(2 * id + 1, problem);
    if (--open_ == 0) out += ws::close_frame(ws::kNormal, "");
    return out;
  }
  bool over() const override { return open_ == 0; }

 private:
  void begin(Id id, std::vector<Input>& input, std::string& out) const {
    const int port = ports_[id];
    const char number[] = {static_cast<char>(port & 0xff), static_cast<char>(port >> 8)};
    out += message(2 * id, {number, 2}) + message(2 * id + 1, {number, 2});
    input.push_back({.kind = Input::Kind::kOpen, .id = id, .port = port});
  }
  static std::string message(Id channel, std::string_view bytes) {
    return ws::frame(ws::Op::kBinary,
                     std::string(1, static_cast<char>(channel)) + std::string(bytes));
  }

  static constexpr unsigned kClose = 255;

  const std::vector<int> ports_;
  std::size_t open_;
  bool begun_ = false;
  ws::Reader reader_{kForwardMessageBytes};
};

Result<std::vector<int>> read_ports(const http::Url& url) {
  constexpr std::size_t kPortsMax = 127;  // two channels each, one byte for a channel
  std::vector<int> ports;
  for (const auto& [key, value] : url.query) {
    if (key != "ports") continue;
    for (const std::string_view text : split(value, ',')) {
      int port = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
      if (error != std::errc() || end != text.data() + text.size() || port < 1 || port > 65535) {
        return fail(Code::kBadRequest, "\"" + std::string(text) + "\" is no port");
      }
      ports.push_back(port);
    }
  }
  if (ports.empty()) return fail(Code::kBadRequest, "query parameter \"ports\" is required");
  if (ports.size() > kPortsMax) return fail(Code::kBadRequest, "too many ports");
  return ports;
}

bool offers(const http::Request& request, std::string_view protocol) {
  for (const auto& [name, value] : request.headers) {
    if (!equal_ignoring_case(name, "X-Stream-Protocol-Version")) continue;
    for (const std::string_view one : split(value, ',')) {
      if (trim(one) == protocol) return true;
    }
  }
  return false;
}

}  // namespace

Result<ForwardUpgrade> forward_upgrade(const http::Request& request, const http::Url& url) {
  if (ws::asked_for(request)) {
    for (const std::string& offered : ws::offered_protocols(request)) {
      const bool channels = offered == kChannelProtocol || offered == kClosingProtocol;
      if (offered != kTunnelledProtocol && !channels) continue;
      ForwardUpgrade out;
      if (!channels) {
        out.channels = std::make_unique<TunnelledForward>();
      } else {
        SKIFF_ASSIGN(auto ports, read_ports(url));
        out.channels = std::make_unique<ChannelForward>(std::move(ports));
      }
      SKIFF_ASSIGN(out.headers, ws::handshake(request, offered));
      return out;
    }
    return fail(Code::kBadRequest, "ports are forwarded here over " +
                                       std::string(kTunnelledProtocol) + " or " +
                                       std::string(kChannelProtocol));
  }
  if (!equal_ignoring_case(http::header(request.headers, "Upgrade"), "SPDY/3.1")) {
    return fail(Code::kBadRequest, "Upgrade request required");
  }
  if (!offers(request, kSpdyProtocol)) {
    return fail(Code::kForbidden, "ports are forwarded here over " + std::string(kSpdyProtocol));
  }
  return ForwardUpgrade{.headers = {{"Upgrade", "SPDY/3.1"},
                                    {"X-Stream-Protocol-Version", std::string(kSpdyProtocol)}},
                        .channels = forward_over_spdy()};
}

}  // namespace skiff::apiserver
