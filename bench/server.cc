#include "bench/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

namespace skiff::bench {
namespace {

using namespace std::chrono_literals;

[[noreturn]] void become_skiff(std::vector<std::string>& words, const std::string& log,
                               uid_t user) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int null_fd = open("/dev/null", O_RDWR);
  const int log_fd = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  dup2(null_fd, 0);
  dup2(null_fd, 1);
  dup2(log_fd, 2);
  if (user != 0 && (setgroups(0, nullptr) != 0 || setgid(user) != 0 || setuid(user) != 0)) _exit(1);
  execv(argv[0], argv.data());
  _exit(1);
}

}  // namespace

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double Server::start() {
  std::vector<std::string> words = {binary_,        "up",
                                    "--data",       data_,
                                    "--https",      fmt::format("127.0.0.1:{}", kHttps),
                                    "--http",       fmt::format("127.0.0.1:{}", kHttp),
                                    "--images=host"};
  if (user_ != 0) {
    std::filesystem::create_directories(data_);
    if (chown(data_.c_str(), user_, user_) != 0) std::exit(1);
  }
  const auto begin = Clock::now();
  pid_ = fork();
  if (pid_ < 0) std::exit(1);
  if (pid_ == 0) become_skiff(words, data_ + ".log", user_);
  while (!listening(kHttp)) {
    if (ms_since(begin) > 20'000) {
      fmt::print(stderr, "bench: Skiff does not start; see {}.log\n", data_);
      std::exit(1);
    }
    std::this_thread::sleep_for(200us);
  }
  Connection connection(kHttp);
  while (connection.request("GET", "/readyz").status != 200) std::this_thread::sleep_for(200us);
  return ms_since(begin);
}

Target Server::target() const {
  Target out{.port = kHttp};
  std::getline(std::ifstream(data_ + "/pki/token"), out.token);
  return out;
}

void Server::stop() {
  if (pid_ == 0) return;
  {
    Connection connection(target());
    connection.request("POST", "/skiff/v1/stop", "{}");
  }
  waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

double children_cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_CHILDREN, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

void adopt_orphans() { prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

void reap_orphans() {
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

}  // namespace skiff::bench
