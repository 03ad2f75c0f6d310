#include "cli/pod_talk.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <random>
#include <thread>

#include "base/websocket.h"
#include "cli/file_io.h"

namespace skiff::cli {
namespace {

constexpr char kIn = 0, kOut = 1, kErr = 2, kStatus = 3, kResize = 4;
constexpr char kClose = static_cast<char>(0xff);
constexpr std::size_t kMessageBytes = 16 * 1024 * 1024;

// The terminal that was made raw, for whoever must put it right in a hurry; -1: none.
std::atomic<int> raw_fd = -1;
termios before_raw = {};
// Written to when the window of the terminal has changed; -1: nobody asks.
std::atomic<int> resize_fd = -1;

void note_resize(int) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t ignored = ::write(resize_fd, &one, sizeof one);
}

void restore_and_die(int signal) {
  restore_terminal();
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

// Gives a terminal's keys to the other side one by one, and its lines back at the end.
class RawTerminal {
 public:
  explicit RawTerminal(int fd) {
    if (fd < 0 || ::tcgetattr(fd, &before_raw) != 0) return;
    raw_fd = fd;
    resized_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    resize_fd = resized_.get();
    for (const int end : {SIGTERM, SIGHUP, SIGINT}) ::signal(end, restore_and_die);
    ::signal(SIGWINCH, note_resize);
    termios raw = before_raw;
    ::cfmakeraw(&raw);
    ::tcsetattr(fd, TCSADRAIN, &raw);
  }
  ~RawTerminal() {
    if (raw_fd < 0) return;
    for (const int end : {SIGTERM, SIGHUP, SIGINT, SIGWINCH}) ::signal(end, SIG_DFL);
    resize_fd = -1;
    restore_terminal();
  }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

  int resized() const { return resized_.get(); }  // readable when its window has changed

 private:
  Fd resized_ = {};
};

// The connection's writing side.
class Speaker {
 public:
  explicit Speaker(net::StreamingResponse& stream) : stream_(stream) {}

  bool say(char channel, std::string_view bytes) {
    return send(ws::Op::kBinary, std::string(1, channel) + std::string(bytes));
  }
  bool send(ws::Op op, std::string_view payload) {
    const std::lock_guard lock(mutex_);
    return stream_.write(ws::client_frame(op, payload, random_())).has_value();
  }

 private:
  net::StreamingResponse& stream_;
  std::mutex mutex_;
  std::random_device random_ = {};
};

bool say_size(Speaker& speaker, int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0) return true;
  return speaker.say(kResize,
                     fmt::format(R"({{"Width":{},"Height":{}}})", size.ws_col, size.ws_row));
}

// Until the input or `stop` ends.
void pass_input(Speaker& speaker, const Talk& talk, int stop, int resized) {
  if (talk.tty && !say_size(speaker, talk.in_fd)) return;
  while (true) {
    pollfd waits[] = {{talk.in_fd, POLLIN, 0}, {stop, POLLIN, 0}, {resized, POLLIN, 0}};
    if (::poll(waits, 3, -1) < 0 && errno == EINTR) continue;
    if (waits[1].revents != 0) return;
    if (waits[2].revents != 0) {
      std::uint64_t count = 0;
      [[maybe_unused]] const ssize_t ignored = ::read(resized, &count, sizeof count);
      if (!say_size(speaker, talk.in_fd)) return;
    }
    if (waits[0].revents == 0) continue;
    char piece[32 * 1024];
    const ssize_t n = ::read(talk.in_fd, piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      speaker.say(kClose, std::string_view(&kIn, 1));
      return;
    }
    if (!speaker.say(kIn, {piece, static_cast<std::size_t>(n)})) return;
  }
}

Result<int> exit_code_of_status(const json::value& status) {
  if (json::get_string(status, {"status"}) == "Success") return 0;
  for (const json::value& cause : json::get_array(status, {"details", "causes"})) {
    if (json::get_string(cause, {"reason"}) != "ExitCode") continue;
    const std::string text(json::get_string(cause, {"message"}));
    int code = 1;
    std::from_chars(text.data(), text.data() + text.size(), code);
    return code;
  }
  return fail(Code::kInternal, std::string(json::get_string(status, {"message"})));
}

// Messages of a WebSocket until `take` returns false or the other side ends.
Result<void> hear(net::StreamingResponse& stream, Speaker& speaker,
                  const std::function<bool(std::string_view payload)>& take) {
  ws::Reader reader(kMessageBytes, ws::From::kServer);
  while (true) {
    SKIFF_ASSIGN(const auto bytes, stream.read());
    if (!bytes) return {};
    std::vector<ws::Message> messages;
    const auto taken = reader.take(*bytes, messages);
    for (const ws::Message& message : messages) {
      if (message.op == ws::Op::kClose) return {};
      if (message.op == ws::Op::kPing) speaker.send(ws::Op::kPong, message.payload);
      if (message.op == ws::Op::kBinary && !message.payload.empty() && !take(message.payload)) {
        return {};
      }
    }
    if (!taken)
      return fail(Code::kInternal, "the server's frames are broken: " + taken.error().why);
  }
}

}  // namespace

void restore_terminal() {
  const int fd = raw_fd.exchange(-1);
  if (fd >= 0) ::tcsetattr(fd, TCSANOW, &before_raw);
}

std::string talk_target(const Talk& talk) {
  const auto flag = [](bool value) { return value ? "true" : "false"; };
  std::string out =
      fmt::format("/api/v1/namespaces/{}/pods/{}/{}?stdin={}&stdout={}&stderr={}&tty={}", talk.ns,
                  talk.pod, talk.command.empty() ? "attach" : "exec", flag(talk.in_fd >= 0),
                  flag(talk.out_fd >= 0), flag(talk.err_fd >= 0 && !talk.tty), flag(talk.tty));
  if (!talk.container.empty()) out += "&container=" + http::escape(talk.container);
  for (const std::string& word : talk.command) out += "&command=" + http::escape(word);
  return out;
}

Result<int> talk_to_program(Connection& server, const Talk& talk) {
  SKIFF_ASSIGN(const auto stream,
               server.websocket(talk_target(talk), "v5.channel.k8s.io, v4.channel.k8s.io"));
  Speaker speaker(*stream);
  SKIFF_ASSIGN(Pipe stop, make_pipe());
  const RawTerminal raw(talk.tty ? talk.in_fd : -1);
  std::jthread input;
  if (talk.in_fd >= 0) {
    input = std::jthread([&] { pass_input(speaker, talk, stop.read.get(), raw.resized()); });
  }
  std::optional<Result<int>> end;
  const auto heard = hear(*stream, speaker, [&](std::string_view payload) {
    const char channel = payload.front();
    payload.remove_prefix(1);
    if (channel == kOut) return write_all(talk.out_fd, payload);
    if (channel == kErr) return write_all(talk.err_fd, payload);
    if (channel != kStatus) return true;
    const auto status = json::parse(payload);
    end = status ? exit_code_of_status(*status) : std::unexpected(status.error());
    return false;
  });
  // The other thread may be waiting for keys, or for a server that takes no more.
  stop.write.reset();
  stream->cancel();
  if (end) return std::move(*end);
  if (!heard) return std::unexpected(heard.error());
  return fail(Code::kServiceUnavailable, "the connection ended before the program did");
}

namespace {

// One connection of a forwarded port: what comes from either side goes to the other.
void carry(Connection& server, const std::string& target, Fd local) {
  const auto stream = server.websocket(target, "v5.channel.k8s.io, v4.channel.k8s.io");
  if (!stream) {
    fmt::print(stderr, "error: {}\n", stream.error().message);
    return;
  }
  Speaker speaker(**stream);
  std::jthread upwards([&] {
    char piece[32 * 1024];
    ssize_t n = 0;
    while ((n = ::read(local.get(), piece, sizeof piece)) > 0) {
      if (!speaker.say(0, {piece, static_cast<std::size_t>(n)})) return;
    }
    constexpr char kData = 0;
    speaker.say(kClose, std::string_view(&kData, 1));
  });
  bool begun[2] = {false, false};  // each channel begins with its port
  (void)hear(**stream, speaker, [&](std::string_view payload) {
    const int channel = payload.front();
    payload.remove_prefix(1);
    if (channel != 0 && channel != 1) return true;
    if (!std::exchange(begun[channel], true)) return true;
    if (channel == 0) return write_all(local.get(), payload);
    fmt::print(stderr, "error: {}\n", payload);
    return false;
  });
  ::shutdown(local.get(), SHUT_RDWR);
  (*stream)->cancel();
}

}  // namespace

Result<int> forward_port(Connection& server, const std::string& ns, const std::string& pod,
                         int local, int remote) {
  SKIFF_ASSIGN(Listener listener, listen_on_loopback(local));
  const int port = listener.port;
  const std::string target =
      fmt::format("/api/v1/namespaces/{}/pods/{}/portforward?ports={}", ns, pod, remote);
  std::thread([&server, target, listener = std::move(listener.fd)] {
    while (true) {
      Fd peer(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!peer.valid()) {
        ::usleep(10'000);
        continue;
      }
      std::thread(carry, std::ref(server), target, std::move(peer)).detach();
    }
  }).detach();
  return port;
}

}  // namespace skiff::cli
