// The first byte of each message names the stream: v4.channel.k8s.io; v5, which can also end the
// program's input; and channel.k8s.io, the first, which tells failures in words alone.
#include "apiserver/streams/channels.h"
#include "base/websocket.h"

namespace skiff::apiserver {
namespace {

constexpr char kIn = 0, kError = 3, kResize = 4;
constexpr char kCloseChannel = static_cast<char>(0xff);
// kubectl cp sends pieces of 32 KiB; nobody needs more than this in one message.
constexpr std::size_t kChannelMessageBytes = 1024 * 1024;

constexpr std::string_view kFirstProtocol = "channel.k8s.io";

class WebSocketChannels final : public Channels {
 public:
  explicit WebSocketChannels(bool words) : words_(words) {}

  void take(std::string_view bytes, std::vector<Input>& input, std::string& out) override {
    std::vector<ws::Message> messages;
    const auto taken = reader_.take(bytes, messages);
    for (const ws::Message& message : messages) {
      if (message.op == ws::Op::kPing) out += ws::frame(ws::Op::kPong, message.payload);
      if (message.op == ws::Op::kClose) {
        out += ws::close_frame(ws::kNormal, "");
        input.push_back({.kind = Input::Kind::kGone});
        return;
      }
      const bool data = message.op == ws::Op::kBinary || message.op == ws::Op::kText;
      if (data && !message.payload.empty()) sort(message.payload, input);
    }
    if (taken) return;
    out += ws::close_frame(taken.error().code, taken.error().why);
    input.push_back({.kind = Input::Kind::kGone});
  }

  bool ready() const override { return true; }

  std::string write(Peer::Channel channel, std::string_view bytes) override {
    return message(static_cast<char>(channel), bytes);
  }

  std::string finish(const json::object& status) override {
    const bool well = json::get_string(json::value(status), {"status"}) == "Success";
    const std::string end = ws::close_frame(ws::kNormal, "");
    if (!words_) return message(kError, json::serialize(status)) + end;
    if (well) return end;
    return message(kError, json::get_string(json::value(status), {"message"})) + end;
  }

 private:
  static std::string message(char channel, std::string_view bytes) {
    return ws::frame(ws::Op::kBinary, std::string(1, channel) + std::string(bytes));
  }

  static void sort(std::string_view payload, std::vector<Input>& input) {
    const char channel = payload.front();
    payload.remove_prefix(1);
    if (channel == kIn) input.push_back({Input::Kind::kBytes, std::string(payload)});
    if (channel == kResize) input.push_back({Input::Kind::kResize, std::string(payload)});
    const bool input_ends =
        channel == kCloseChannel && payload.size() == 1 && payload.front() == kIn;
    if (input_ends) input.push_back({.kind = Input::Kind::kEnd});
  }

  const bool words_;
  ws::Reader reader_{kChannelMessageBytes};
};

}  // namespace

Result<std::optional<Upgrade>> websocket_upgrade(const http::Request& request) {
  if (!ws::asked_for(request)) return std::nullopt;
  std::string protocol;
  const std::vector<std::string> offers = ws::offered_protocols(request);
  for (const std::string& offered : offers) {
    if (offered == "v5.channel.k8s.io" || offered == "v4.channel.k8s.io" ||
        offered == kFirstProtocol) {
      protocol = offered;
      break;
    }
  }
  // A client that names none speaks the first.
  if (protocol.empty() && !offers.empty()) {
    return fail(Code::kBadRequest,
                "the streams spoken here are v5.channel.k8s.io, v4.channel.k8s.io and "
                "channel.k8s.io");
  }
  SKIFF_ASSIGN(http::Headers headers, ws::handshake(request, protocol));
  return Upgrade{.headers = std::move(headers),
                 .channels = std::make_unique<WebSocketChannels>(protocol.empty() ||
                                                                 protocol == kFirstProtocol)};
}

}  // namespace skiff::apiserver
