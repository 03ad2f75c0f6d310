#include "node/process/exec_link.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/strings.h"
#include "node/process/shim_link.h"
#include "node/shim/wire.h"

namespace skiff::node {
namespace {

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
    const auto code = json::get_int(answer, {"code"});
    return fail(code ? static_cast<Code>(*code) : Code::kInternal,
                std::string(json::get_string(answer, {"error"})));
  }

  const Fd connection_;
  std::string text_ = {};
};

// The descriptors travel with the first bytes.
ssize_t send_first(int fd, std::string_view text, const int (&descriptors)[3]) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptors)] = {};
  iovec bytes{.iov_base = const_cast<char*>(text.data()), .iov_len = text.size()};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof descriptors);
  std::memcpy(CMSG_DATA(part), descriptors, sizeof descriptors);
  ssize_t sent = 0;
  while ((sent = ::sendmsg(fd, &message, MSG_NOSIGNAL)) < 0 && errno == EINTR) {
  }
  return sent;
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
  const ssize_t sent = send_first(connection.get(), line, descriptors);
  if (sent < 0 ||
      !write_all(connection.get(), std::string_view(line).substr(static_cast<std::size_t>(sent)))) {
    return os_failure("the pod's shim went away");
  }
  return std::make_unique<ShimExec>(std::move(connection));
}

}  // namespace skiff::node
