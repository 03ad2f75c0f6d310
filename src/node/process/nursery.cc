#include "node/process/nursery.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>
#include <vector>

#include "node/process/shim_link.h"
#include "node/shim/descriptors.h"

extern char** environ;

namespace skiff::node {
namespace {

constexpr int kShimStartMs = 30'000;
// A pod's uid: the nursery's argument has room for the folder of any pod.
constexpr std::size_t kUidChars = 36;

// Looking names up once is enough for all: each shim would do it again for itself.
std::vector<char*> bound_environment() {
  static char bind_now[] = "LD_BIND_NOW=1";
  std::vector<char*> out;
  for (char** entry = environ; *entry != nullptr; ++entry) out.push_back(*entry);
  out.push_back(bind_now);
  out.push_back(nullptr);
  return out;
}

int spawn(const std::string& binary, std::string pod_folders, int socket, pid_t& pid) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, socket, 0);
  ::posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
  std::string words[] = {"skiff", "shim", std::move(pod_folders)};
  char* argv[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  std::vector<char*> env = bound_environment();
  const int number = ::posix_spawn(&pid, binary.c_str(), &actions, &attributes, argv, env.data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return number;
}

}  // namespace

Nursery::Nursery(std::string binary, std::string pods_folder)
    : binary_(std::move(binary)), pods_folder_(std::move(pods_folder)) {}

Nursery::~Nursery() { close(); }

Result<void> Nursery::open() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return os_failure("cannot make a socket");
  }
  Fd ours(ends[0]);
  const Fd theirs(ends[1]);
  const std::string folders = pods_folder_ + "/" + std::string(kUidChars, '*');
  if (const int number = spawn(binary_, folders, theirs.get(), pid_); number != 0) {
    pid_ = 0;
    return fail(Code::kInternal,
                fmt::format("cannot start {}: {}", binary_, std::strerror(number)));
  }
  socket_ = std::move(ours);
  return {};
}

void Nursery::close() {
  socket_.reset();
  if (pid_ == 0) return;
  // It ends when its socket does.
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
}

Result<void> Nursery::ask(const std::string& pod_folder, int output) {
  const std::lock_guard lock(mutex_);
  if (socket_.valid() && send_descriptors(socket_.get(), pod_folder, {&output, 1})) return {};
  // There was none yet, or somebody killed it.
  close();
  SKIFF_TRY(open());
  if (send_descriptors(socket_.get(), pod_folder, {&output, 1})) return {};
  return os_failure("cannot ask for the pod's shim");
}

// What the shim says first; nothing where it, or the nursery before it, was killed.
Result<std::string> Nursery::first_words(const std::string& pod_folder) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return os_failure("cannot make a pipe");
  const Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  SKIFF_TRY(ask(pod_folder, write_end.get()));
  write_end.reset();
  return read_to_end(read_end.get(), kShimStartMs);
}

Result<void> Nursery::start_shim(const std::string& pod_folder) {
  SKIFF_ASSIGN(std::string said, first_words(pod_folder));
  // Nobody holds the other end any more, so none is running: a second try makes no second shim.
  if (said.empty()) {
    SKIFF_ASSIGN(said, first_words(pod_folder));
  }
  if (said == "ready") return {};
  return fail(Code::kInternal, fmt::format("the pod's shim did not start: {}",
                                           said.empty() ? "it ended without a word" : said));
}

}  // namespace skiff::node
