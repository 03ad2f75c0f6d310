#include "env/posix/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>

#include "base/check.h"

extern char** environ;

namespace skiff::env::posix {
namespace {

using SteadyClock = std::chrono::steady_clock;

std::vector<std::string> merged_environment(const Program& program) {
  std::map<std::string, std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string pair = *entry;
    const std::size_t equals = pair.find('=');
    if (equals != std::string::npos) all[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  for (const auto& [name, value] : program.environment) all[name] = value;
  std::vector<std::string> out;
  for (const auto& [name, value] : all) out.push_back(name + "=" + value);
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

// posix_spawn with the child's output in a pipe and nobody's signals blocked.
class Spawn {
 public:
  Spawn() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    sigset_t none, reset;
    sigemptyset(&none);
    sigemptyset(&reset);
    sigaddset(&reset, SIGPIPE);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &reset);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~Spawn() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  Spawn(const Spawn&) = delete;
  Spawn& operator=(const Spawn&) = delete;

  Result<pid_t> run(const Program& program, int output) {
    posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    if (!program.shares_input) {
      posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    }
    std::vector<std::string> arguments = program.arguments;
    std::vector<std::string> environment = merged_environment(program);
    pid_t pid = 0;
    const int error = posix_spawnp(&pid, arguments[0].c_str(), &actions_, &attributes_,
                                   pointers(arguments).data(), pointers(environment).data());
    if (error == 0) return pid;
    return fail(error == ENOENT ? Code::kNotFound : Code::kInternal,
                fmt::format("cannot run {}: {}", arguments[0], std::strerror(error)));
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// Everything until the pipe's other end is closed.
Result<std::string> drain(int fd, const Program& program) {
  const auto end = SteadyClock::now() + program.timeout;
  std::string out;
  char chunk[4096];
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - SteadyClock::now());
    pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = left.count() <= 0 ? 0 : poll(&wait, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      return fail(Code::kTimeout, fmt::format("{} has not ended after {} s", program.arguments[0],
                                              program.timeout.count() / 1000.0));
    }
    const ssize_t size = read(fd, chunk, sizeof chunk);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return out;
    out.append(chunk, static_cast<std::size_t>(size));
    if (out.size() > program.output_bytes) {
      return fail(Code::kTooLarge, fmt::format("{} prints too much", program.arguments[0]));
    }
  }
}

int reap(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

Result<Finished> run_program(const Program& program) {
  SKIFF_CHECK(!program.arguments.empty(), "a program has a name");
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return fail(Code::kInternal, "cannot make a pipe");
  const auto pid = Spawn().run(program, ends[1]);
  close(ends[1]);
  if (!pid) {
    close(ends[0]);
    return std::unexpected(pid.error());
  }
  auto output = drain(ends[0], program);
  close(ends[0]);
  if (!output) kill(*pid, SIGKILL);
  const int exit_code = reap(*pid);
  if (!output) return std::unexpected(std::move(output).error());
  return Finished{.exit_code = exit_code, .output = std::move(*output)};
}

}  // namespace skiff::env::posix
