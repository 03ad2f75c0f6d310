#include "apiserver/streams/channels.h"

#include <fmt/format.h>

namespace skiff::apiserver {
namespace {

// What the program has not taken yet; more is not read from the client.
constexpr std::size_t kChannelBacklogBytes = 256 * 1024;

}  // namespace

Result<Upgrade> upgrade(const http::Request& request, const ExecOptions& options) {
  SKIFF_ASSIGN(auto by_websocket, websocket_upgrade(request));
  if (by_websocket) return std::move(*by_websocket);
  SKIFF_ASSIGN(auto by_spdy, spdy_upgrade(request, options));
  if (by_spdy) return std::move(*by_spdy);
  return fail(Code::kBadRequest, "Upgrade request required");
}

json::object exit_status(const Result<int>& exit_code) {
  if (!exit_code) {
    return {{"metadata", json::object()},
            {"status", "Failure"},
            {"message", exit_code.error().message},
            {"reason", "InternalError"},
            {"details", json::object{{"causes", json::array{json::object{
                                                    {"message", exit_code.error().message}}}}}},
            {"code", 500}};
  }
  if (*exit_code == 0) return {{"metadata", json::object()}, {"status", "Success"}};
  const json::object cause{{"reason", "ExitCode"}, {"message", std::to_string(*exit_code)}};
  return {{"metadata", json::object()},
          {"status", "Failure"},
          {"message",
           fmt::format("command terminated with non-zero exit code: exit status {}", *exit_code)},
          {"reason", "NonZeroExitCode"},
          {"details", json::object{{"causes", json::array{cause}}}}};
}

ExecTunnel::ExecTunnel(std::unique_ptr<Peer> terminal, std::unique_ptr<Channels> channels,
                       const ExecOptions& options)
    : peer_(std::move(terminal)),
      channels_(std::move(channels)),
      reads_(options.in),
      shows_(options.out),
      // A terminal has one output.
      shows_errors_(options.err && !options.tty) {}

void ExecTunnel::take(const Channels::Input& input) {
  using Kind = Channels::Input::Kind;
  if (input.kind == Kind::kBytes && reads_) peer_->write(input.bytes);
  if (input.kind == Kind::kEnd) peer_->end_input();
  if (input.kind == Kind::kGone) over_ = true;
  if (input.kind != Kind::kResize) return;
  if (const auto size = json::parse(input.bytes)) {
    peer_->resize(static_cast<int>(json::get_int(*size, {"Width"}).value_or(0)),
                  static_cast<int>(json::get_int(*size, {"Height"}).value_or(0)));
  }
}

void ExecTunnel::push(std::string_view bytes) {
  if (over_) return;
  const bool was_ready = channels_->ready();
  std::vector<Channels::Input> inputs;
  channels_->take(bytes, inputs, waiting_);
  for (const Channels::Input& input : inputs) take(input);
  const bool news = !waiting_.empty() || over_ || channels_->ready() != was_ready;
  if (news && wake_) std::exchange(wake_, nullptr)();
}

bool ExecTunnel::full() const {
  return waiting_.size() > kChannelBacklogBytes || peer_->backlog() > kChannelBacklogBytes;
}

bool ExecTunnel::pull(std::string& out, std::function<void()> wake) {
  if (!over_ && channels_->ready()) {
    std::vector<Peer::Piece> pieces;
    const bool more = peer_->read(pieces, wake);
    for (const Peer::Piece& piece : pieces) {
      const bool wanted = piece.channel == Peer::Channel::kErr ? shows_errors_ : shows_;
      if (wanted) waiting_ += channels_->write(piece.channel, piece.bytes);
    }
    // Nothing of it is for the client, and a peer that gave something keeps no wake.
    if (more && waiting_.empty() && !pieces.empty()) wake();
    if (!more) {
      waiting_ += channels_->finish(exit_status(peer_->exit_code()));
      over_ = true;
    }
  }
  out += std::exchange(waiting_, {});
  if (out.empty() && !over_) wake_ = std::move(wake);
  return !over_;
}

}  // namespace skiff::apiserver
