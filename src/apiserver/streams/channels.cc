#include "apiserver/streams/channels.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"

namespace skiff::apiserver {
namespace {

constexpr char kIn = 0, kError = 3, kResize = 4;
constexpr char kCloseChannel = static_cast<char>(0xff);
// kubectl cp sends pieces of 32 KiB; nobody needs more than this in one message.
constexpr std::size_t kMessageBytes = 1024 * 1024;
constexpr std::size_t kBacklogBytes = 256 * 1024;

}  // namespace

std::string choose_protocol(const std::vector<std::string>& offered) {
  for (const std::string& one : offered) {
    if (one == "v5.channel.k8s.io" || one == "v4.channel.k8s.io") return one;
  }
  return {};
}

json::object exit_status(const Result<int>& exit_code) {
  if (!exit_code) {
    return {{"metadata", json::object()},
            {"status", "Failure"},
            {"message", exit_code.error().message},
            {"reason", "InternalError"},
            {"details", {{"causes", {{{"message", exit_code.error().message}}}}}},
            {"code", 500}};
  }
  if (*exit_code == 0) return {{"metadata", json::object()}, {"status", "Success"}};
  return {{"metadata", json::object()},
          {"status", "Failure"},
          {"message",
           fmt::format("command terminated with non-zero exit code: exit status {}", *exit_code)},
          {"reason", "NonZeroExitCode"},
          {"details",
           {{"causes", {{{"reason", "ExitCode"}, {"message", std::to_string(*exit_code)}}}}}}};
}

ExecTunnel::ExecTunnel(std::unique_ptr<Terminal> terminal, const ExecOptions& options)
    : terminal_(std::move(terminal)),
      reads_(options.in),
      // A terminal has one output.
      shows_errors_(options.err && !options.tty),
      reader_(kMessageBytes) {}

void ExecTunnel::send(char channel, std::string_view bytes) {
  std::string payload(1, channel);
  payload += bytes;
  waiting_ += ws::frame(ws::Op::kBinary, payload);
}

void ExecTunnel::take_channel(std::string_view payload) {
  if (payload.empty()) return;
  const char channel = payload.front();
  payload.remove_prefix(1);
  if (channel == kIn && reads_) {
    terminal_->write(payload);
  } else if (channel == kCloseChannel && payload == std::string_view(&kIn, 1)) {
    terminal_->end_input();
  } else if (channel == kResize) {
    const auto size = json::parse(payload);
    if (!size) return;
    terminal_->resize(static_cast<int>(json::get_int(*size, {"Width"}).value_or(0)),
                      static_cast<int>(json::get_int(*size, {"Height"}).value_or(0)));
  }
}

void ExecTunnel::take(const ws::Message& message) {
  switch (message.op) {
    case ws::Op::kBinary:
    case ws::Op::kText:
      return take_channel(message.payload);
    case ws::Op::kPing:
      waiting_ += ws::frame(ws::Op::kPong, message.payload);
      return;
    case ws::Op::kClose:
      waiting_ += ws::close_frame(ws::kNormal, "");
      over_ = true;
      return;
    case ws::Op::kPong:
    case ws::Op::kContinuation:
      return;
  }
}

void ExecTunnel::push(std::string_view bytes) {
  if (over_) return;
  std::vector<ws::Message> messages;
  const auto taken = reader_.take(bytes, messages);
  for (const ws::Message& message : messages) {
    if (!over_) take(message);
  }
  if (!taken) {
    waiting_ += ws::close_frame(taken.error().code, taken.error().why);
    over_ = true;
  }
  if (!waiting_.empty() && wake_) std::exchange(wake_, nullptr)();
}

bool ExecTunnel::full() const { return terminal_->backlog() > kBacklogBytes; }

bool ExecTunnel::pull(std::string& out, std::function<void()> wake) {
  if (!over_) {
    std::vector<Terminal::Piece> pieces;
    const bool more = terminal_->read(pieces, wake);
    for (const Terminal::Piece& piece : pieces) {
      const bool error = piece.channel == Terminal::Channel::kErr;
      if (error && !shows_errors_) continue;
      send(static_cast<char>(piece.channel), piece.bytes);
    }
    if (!more) {
      send(kError, json::serialize(exit_status(terminal_->exit_code())));
      waiting_ += ws::close_frame(ws::kNormal, "");
      over_ = true;
    }
  }
  out += std::exchange(waiting_, {});
  if (out.empty() && !over_) wake_ = std::move(wake);
  return !over_;
}

}  // namespace skiff::apiserver
