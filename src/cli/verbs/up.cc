// skiff up: starts the platform, in the foreground or (-d) behind.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <utility>

#include "cli/verbs/verbs.h"

namespace skiff::cli {
namespace {

// A started Skiff that is not ready by then has a problem worth showing.
constexpr std::chrono::seconds kReady{60};

struct UpVerbOptions {
  UpOptions up;
  bool detach = false;
  std::string images = {};
  std::vector<std::string> capacity = {};
  bool no_local_trust = false;
};

Result<void> read_capacity(const std::vector<std::string>& pairs, UpOptions& up) {
  for (const std::string& pair : pairs) {
    const std::size_t equals = pair.find('=');
    char* end = nullptr;
    const char* number = equals == std::string::npos ? "" : pair.c_str() + equals + 1;
    const long long n = std::strtoll(number, &end, 10);
    if (equals == std::string::npos || equals == 0 || *number == 0 || *end != 0 || n < 0) {
      return fail(Code::kBadRequest,
                  fmt::format("--capacity {}: write RESOURCE=NUMBER, e.g. nvidia.com/gpu=4", pair));
    }
    up.capacity[pair.substr(0, equals)] = n;
  }
  return {};
}

// The child's first line on the pipe: what to print, or nothing when it ended, or took too long,
// before it was ready.
std::string read_line(int fd) {
  std::string line;
  const auto end = std::chrono::steady_clock::now() + kReady;
  for (char c = 0; c != '\n';) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || poll(&wait, 1, static_cast<int>(left.count())) <= 0) return {};
    if (read(fd, &c, 1) != 1) return {};
    if (c != '\n') line += c;
  }
  return line;
}

off_t file_size(const std::string& path) {
  struct stat info{};
  return stat(path.c_str(), &info) == 0 ? info.st_size : 0;
}

// What this start wrote, not the ones before it.
void show_log_from(const std::string& path, off_t start) {
  std::FILE* file = std::fopen(path.c_str(), "r");
  if (file == nullptr) return;
  std::fseek(file, static_cast<long>(start), SEEK_SET);
  char buffer[4096];
  for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, file)) > 0;) {
    std::fwrite(buffer, 1, n, stderr);
  }
  std::fclose(file);
}

// Runs the platform in a session of its own, its output in skiff.log; returns when it is ready.
int detach(const UpVerbOptions& options, const Hooks& hooks) {
  const std::string log = options.up.data + "/skiff.log";
  std::error_code error;
  std::filesystem::create_directories(options.up.data, error);
  const off_t log_start = file_size(log);
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0) return report({.message = "cannot make a pipe"});
  const pid_t child = fork();
  if (child < 0) return report({.message = "cannot fork"});
  if (child == 0) {
    setsid();
    const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (out < 0) {
      fmt::print(stderr, "error: cannot write {}: is the folder yours?\n", log);
      _exit(1);
    }
    dup2(null, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    close(ready[0]);
    UpOptions up = options.up;
    up.ready = [&](const std::string& summary) {
      fmt::print(stderr, "{}\n", summary);
      if (ready[1] < 0) return;  // started again; nobody waits for that
      const std::string line = summary + "\n";
      if (write(ready[1], line.data(), line.size()) < 0)
        fmt::print(stderr, "nobody waits for us\n");
      close(std::exchange(ready[1], -1));
    };
    _exit(hooks.serve(up));
  }
  close(ready[1]);
  const std::string line = read_line(ready[0]);
  if (!line.empty()) {
    fmt::print("{}\n", line);
    return 0;
  }
  pollfd gone{.fd = ready[0], .events = POLLIN, .revents = 0};
  if (poll(&gone, 1, 0) == 0) {  // nobody has closed the other end: it still runs
    return report(
        {.message = fmt::format("Skiff is not ready after {} s and goes on trying; its log is {}",
                                kReady.count(), log)});
  }
  waitpid(child, nullptr, 0);
  show_log_from(log, log_start);
  return 1;
}

}  // namespace

void add_up(CLI::App& app, Context& context, const Hooks& hooks, int& exit_code) {
  auto options = std::make_shared<UpVerbOptions>();
  CLI::App* verb =
      app.add_subcommand("up", "Start Skiff: API server, scheduler, node, controllers");
  verb->add_flag("-d,--detach", options->detach, "Return when it is ready; it goes on behind");
  verb->add_option("--https", options->up.https, "HTTPS address")->capture_default_str();
  verb->add_option("--http", options->up.http, "HTTP address, loopback only")
      ->capture_default_str();
  // Not in --help until it works; asked for, it says so.
  verb->add_option("--kubeconfig", options->up.kubeconfig,
                   "Run the controllers only, against this cluster (installs Skiff's kinds there)");
  verb->add_option("--images", options->images, "host: every image is this machine's own files")
      ->check(CLI::IsMember({"host"}));
  verb->add_option("--capacity", options->capacity,
                   "Extended resource of this machine: RESOURCE=NUMBER");
  verb->add_flag("--no-local-trust", options->no_local_trust,
                 "Ask the same user on this machine for a token, too");
  verb->add_flag("--api-only", options->up.api_only,
                 "Only the API: no controllers, no scheduler, no pods on this machine");
  verb->callback([options, &context, &hooks, &exit_code] {
    options->up.data = context.globals.data;
    options->up.images_host = options->images == "host";
    options->up.local_trust = !options->no_local_trust;
    if (auto read = read_capacity(options->capacity, options->up); !read) {
      report(read.error());
      exit_code = 2;
      return;
    }
    if (options->detach) {
      exit_code = detach(*options, hooks);
    } else {
      options->up.ready = [](const std::string& summary) {
        fmt::print("{}\n", summary);
        std::fflush(stdout);
      };
      exit_code = hooks.serve(options->up);
    }
  });
}

}  // namespace skiff::cli
