#include "apiserver/streams/log_socket.h"

#include <algorithm>

#include "apiserver/status.h"
#include "base/base64.h"
#include "base/websocket.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kBinary = "binary.k8s.io";
constexpr std::string_view kText = "base64.binary.k8s.io";
// Nothing that a client says here matters but its farewell.
constexpr std::size_t kLogMessageBytes = 4096;
// What the client has not taken yet; more is not read from it.
constexpr std::size_t kLogBacklogBytes = 64 * 1024;

class LogTunnel final : public http::Tunnel {
 public:
  LogTunnel(std::unique_ptr<http::Stream> log, bool text) : log_(std::move(log)), text_(text) {
    waiting_ = message("");  // as Kubernetes greets: the connection stands
  }

  void push(std::string_view bytes) override {
    if (over_) return;
    std::vector<ws::Message> messages;
    const auto taken = reader_.take(bytes, messages);
    for (const ws::Message& message : messages) {
      if (message.op == ws::Op::kPing) waiting_ += ws::frame(ws::Op::kPong, message.payload);
      if (message.op == ws::Op::kClose) end(ws::kNormal, "");
      if (over_) break;
    }
    if (!taken && !over_) end(taken.error().code, taken.error().why);
    if (!waiting_.empty() && wake_) std::exchange(wake_, nullptr)();
  }

  bool full() const override { return waiting_.size() > kLogBacklogBytes; }

  bool pull(std::string& out, std::function<void()> wake) override {
    if (!over_) {
      std::string piece;
      const bool more = log_->pull(piece, wake);
      if (!piece.empty()) waiting_ += message(piece);
      if (!more) end(ws::kNormal, "");
    }
    out += std::exchange(waiting_, {});
    if (out.empty() && !over_) wake_ = std::move(wake);
    return !over_;
  }

 private:
  std::string message(std::string_view bytes) const {
    return text_ ? ws::frame(ws::Op::kText, base64::encode(bytes))
                 : ws::frame(ws::Op::kBinary, bytes);
  }

  void end(std::uint16_t code, std::string_view why) {
    waiting_ += ws::close_frame(code, why);
    over_ = true;
  }

  const std::unique_ptr<http::Stream> log_;
  const bool text_;
  ws::Reader reader_{kLogMessageBytes};
  std::string waiting_ = {};
  bool over_ = false;
  std::function<void()> wake_ = {};
};

}  // namespace

http::Response log_over_socket(const http::Request& request, http::Response answer) {
  if (!ws::asked_for(request) || !answer.stream) return answer;
  const std::vector<std::string> offers = ws::offered_protocols(request);
  const auto chosen = std::ranges::find_if(
      offers, [](const std::string& offer) { return offer == kBinary || offer == kText; });
  if (chosen == offers.end() && !offers.empty()) {
    return error_response({.code = Code::kBadRequest,
                           .message = "logs are told here by binary.k8s.io and "
                                      "base64.binary.k8s.io"});
  }
  const std::string protocol = chosen == offers.end() ? std::string() : *chosen;
  auto headers = ws::handshake(request, protocol);
  if (!headers) return error_response(headers.error());
  http::Response response{
      .status = 101, .headers = std::move(*headers), .after_revision = answer.after_revision};
  response.tunnel = std::make_unique<LogTunnel>(std::move(answer.stream), protocol == kText);
  return response;
}

}  // namespace skiff::apiserver
