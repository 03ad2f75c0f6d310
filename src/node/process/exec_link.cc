#include "node/process/exec_link.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/strings.h"
#include "node/process/shim_link.h"
#include "node/shim/descriptors.h"
#include "node/shim/wire.h"

namespace skiff::node {
namespace {

// Somebody far away waits for this, and whoever hangs up waits for it, too.
constexpr int kAnswerMs = 2000;

class ShimExec final : public ExecSession {
 public:
  explicit ShimExec(Fd connection) : connection_(std::move(connection)) {}

  int fd() const override { return connection_.get(); }

  std::optional<Result<int>> ended() override {
    char piece[1024];
    while (true) {
      const ssize_t n = ::recv(connection_.get(), piece, sizeof piece, MSG_DONTWAIT);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return std::nullopt;
      if (n <= 0) return result();
      text_.append(piece, static_cast<std::size_t>(n));
      if (text_.ends_with('\n')) return result();
    }
  }

 private:
  Result<int> result() const {
    if (text_.empty()) return fail(Code::kServiceUnavailable, "the container or its pod ended");
    SKIFF_ASSIGN(const json::value answer, json::parse(trim(text_)));
    if (const auto code = json::get_int(answer, {"exitCode"})) return static_cast<int>(*code);
    if (auto error = answered_error(answer)) return std::unexpected(std::move(*error));
    return fail(Code::kInternal, "the pod's shim answered nothing");
  }

  const Fd connection_;
  std::string text_ = {};
};

// One line, and the descriptor that came with it, or -1.
Result<int> read_answer(const Fd& connection) {
  std::string text;
  std::vector<Fd> descriptors;
  while (!text.ends_with('\n')) {
    pollfd wait{.fd = connection.get(), .events = POLLIN, .revents = 0};
    char piece[1024];
    if (::poll(&wait, 1, kAnswerMs) == 0) {
      return fail(Code::kTimeout, "the pod's shim does not answer");
    }
    const ssize_t n = receive_descriptors(connection.get(), piece, descriptors);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return fail(Code::kServiceUnavailable, "the pod's shim went away");
    text.append(piece, static_cast<std::size_t>(n));
  }
  SKIFF_ASSIGN(const json::value answer, json::parse(trim(text)));
  if (auto error = answered_error(answer)) return std::unexpected(std::move(*error));
  return descriptors.empty() ? -1 : descriptors.front().release();
}

}  // namespace

Result<std::unique_ptr<ExecSession>> exec_in_pod(const std::string& pod_folder,
                                                 const ExecSpec& spec) {
  SKIFF_ASSIGN(Fd connection, connect_shim(pod_folder));
  const Fd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!nothing.valid()) return os_failure("/dev/null");
  const auto given = [&](int fd) { return fd < 0 ? nothing.get() : fd; };
  const int descriptors[3] = {given(spec.in_fd), given(spec.out_fd), given(spec.err_fd)};
  json::object request = to_json(spec);
  request["op"] = "exec";
  const std::string line = json::serialize(request) + "\n";
  if (!send_descriptors(connection.get(), line, descriptors)) {
    return os_failure("the pod's shim went away");
  }
  return std::make_unique<ShimExec>(std::move(connection));
}

Result<int> attach_in_pod(const std::string& pod_folder, std::string_view container, bool input,
                          int out_fd, int err_fd) {
  SKIFF_ASSIGN(const Fd connection, connect_shim(pod_folder));
  const json::object request{{"op", "attach"}, {"container", container}, {"stdin", input}};
  const int descriptors[] = {out_fd, err_fd};
  if (!send_descriptors(connection.get(), json::serialize(request) + "\n", descriptors)) {
    return os_failure("the pod's shim went away");
  }
  return read_answer(connection);
}

Result<int> socket_in_pod(const std::string& pod_folder, bool v6) {
  SKIFF_ASSIGN(const Fd connection, connect_shim(pod_folder));
  if (!write_all(connection.get(), fmt::format("{{\"op\":\"socket\",\"v6\":{}}}\n", v6))) {
    return os_failure("the pod's shim went away");
  }
  return read_answer(connection);
}

}  // namespace skiff::node
