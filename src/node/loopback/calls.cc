#include "node/loopback/calls.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <string_view>

namespace skiff::node {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#endif

std::unexpected<Error> refusal(std::string_view what, int number) {
  return fail(Code::kNotFound, fmt::format("{}: {}", what, std::strerror(number)));
}

// The kernel names the thread that calls; its files are its process's.
pid_t process_of(std::uint32_t thread) {
  const Fd file(::open(fmt::format("/proc/{}/status", thread).c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 1024> text{};
  const ssize_t n = file.valid() ? ::read(file.get(), text.data(), text.size()) : 0;
  const std::string_view status(text.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
  constexpr std::string_view kLabel = "\nTgid:\t";
  const std::size_t at = status.find(kLabel);
  pid_t process = static_cast<pid_t>(thread);
  if (at != std::string_view::npos) {
    const std::string_view rest = status.substr(at + kLabel.size());
    (void)std::from_chars(rest.data(), rest.data() + rest.size(), process);
  }
  return process;
}

// What the program's socket is. Where this machine does not let us look, it is taken for the common
// kind: TCP, open for both families.
SocketFacts facts_of(const seccomp_notif& call) {
  SocketFacts facts;
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, process_of(call.pid), 0)));
  if (!process.valid()) return facts;
  const Fd socket(static_cast<int>(
      ::syscall(SYS_pidfd_getfd, process.get(), static_cast<int>(call.data.args[0]), 0)));
  if (!socket.valid()) return facts;
  int value = 0;
  socklen_t size = sizeof value;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_TYPE, &value, &size) == 0) {
    facts.udp = value == SOCK_DGRAM;
  }
  size = sizeof value;
  if (::getsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &value, &size) == 0) {
    facts.only_v6 = value != 0;
  }
  return facts;
}

// Of the program that waits: its number cannot have become another's while it does.
bool still_waits(int descriptor, const seccomp_notif& call) {
  return ::ioctl(descriptor, SECCOMP_IOCTL_NOTIF_ID_VALID, &call.id) == 0;
}

void change_address(int descriptor, const seccomp_notif& call, const LedPod& pod) {
  std::array<std::byte, sizeof(sockaddr_storage)> buffer{};
  const std::size_t size = call.data.args[2];
  if (size == 0 || size > buffer.size()) return;
  const Fd memory(::open(fmt::format("/proc/{}/mem", call.pid).c_str(), O_RDWR | O_CLOEXEC));
  if (!memory.valid() || !still_waits(descriptor, call)) return;
  const auto at = static_cast<off_t>(call.data.args[1]);
  const auto length = static_cast<ssize_t>(size);
  if (::pread(memory.get(), buffer.data(), size, at) != length) return;
  const auto which = call.data.nr == __NR_bind ? LedCall::kBind : LedCall::kConnect;
  if (!lead(which, {buffer.data(), size}, facts_of(call), pod)) return;
  (void)::pwrite(memory.get(), buffer.data(), size, at);
}

// The descriptor, or the error's number below zero. Allocates nothing: it is called after fork().
int install() {
  constexpr auto kNumber = static_cast<std::uint32_t>(offsetof(seccomp_data, nr));
  constexpr auto kArch = static_cast<std::uint32_t>(offsetof(seccomp_data, arch));
  sock_filter lines[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kArch),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kNumber),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_bind, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_connect, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
  };
  const sock_fprog program{.len = std::size(lines), .filter = lines};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -errno;
  const long fd =
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
  if (fd < 0) return -errno;
  ::fcntl(static_cast<int>(fd), F_SETFD, FD_CLOEXEC);
  return static_cast<int>(fd);
}

}  // namespace

Fd install_filter() { return Fd(std::max(install(), -1)); }

Result<void> can_lead() {
  const pid_t child = ::fork();
  if (child < 0) return refusal("cannot start a process", errno);
  if (child == 0) {
    const int made = install();
    ::_exit(made < 0 ? -made : 0);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status == 0) return {};
  return refusal("the kernel leads no calls (seccomp)",
                 WIFEXITED(status) ? WEXITSTATUS(status) : 0);
}

bool answer_call(int descriptor, LedPod pod) {
  // To take a call waits for one, and before Linux 6.11 also when nobody is left to make it.
  pollfd asks{.fd = descriptor, .events = POLLIN, .revents = 0};
  if (::poll(&asks, 1, 0) < 0 || (asks.revents & POLLIN) == 0) {
    return (asks.revents & POLLHUP) == 0;
  }
  seccomp_notif call{};
  // The caller may have been killed meanwhile.
  if (::ioctl(descriptor, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) return true;
  pod.choice = static_cast<std::uint32_t>(call.id);
  change_address(descriptor, call, pod);
  seccomp_notif_resp answer{};
  answer.id = call.id;
  answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  (void)::ioctl(descriptor, SECCOMP_IOCTL_NOTIF_SEND, &answer);
  return true;
}

}  // namespace skiff::node
