#include "bench/load.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <thread>
#include <vector>

namespace skiff::bench {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::exit(1);
}

int dial(std::uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    close(fd);
    return -1;
  }
  const int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return fd;
}

double memory_mb(int pid, const char* file, std::string_view field) {
  std::ifstream in("/proc/" + std::to_string(pid) + file);
  std::string line;
  while (std::getline(in, line)) {
    if (line.starts_with(field)) return std::atof(line.c_str() + field.size()) / 1024;
  }
  return 0;
}

}  // namespace

Connection::Connection(std::uint16_t port) : fd_(dial(port)) {
  if (fd_ < 0) give_up("connect");
}

Connection::~Connection() { close(fd_); }

Connection::Answer Connection::request(const std::string& method, const std::string& target,
                                       const std::string& body) {
  std::string out = method + " " + target + " HTTP/1.1\r\nHost: 127.0.0.1\r\n";
  if (!body.empty()) {
    out +=
        "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  }
  out += "\r\n" + body;
  for (std::size_t sent = 0; sent < out.size();) {
    const ssize_t n = send(fd_, out.data() + sent, out.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) give_up("send");
    sent += static_cast<std::size_t>(n);
  }
  char piece[65536];
  std::size_t end = std::string::npos;
  std::size_t length = 0;
  for (;;) {
    if (end == std::string::npos && (end = buffer_.find("\r\n\r\n")) != std::string::npos) {
      const std::size_t at = buffer_.find("Content-Length: ");
      if (at > end) give_up("an answer without Content-Length");
      length = static_cast<std::size_t>(std::atoll(buffer_.c_str() + at + 16));
    }
    if (end != std::string::npos && buffer_.size() >= end + 4 + length) break;
    const ssize_t n = recv(fd_, piece, sizeof piece, 0);
    if (n <= 0) give_up("recv");
    buffer_.append(piece, static_cast<std::size_t>(n));
  }
  Answer answer{.status = std::atoi(buffer_.c_str() + 9), .body = buffer_.substr(end + 4, length)};
  buffer_.erase(0, end + 4 + length);
  return answer;
}

bool listening(std::uint16_t port) {
  const int fd = dial(port);
  if (fd < 0) return false;
  close(fd);
  return true;
}

double sync_ms(const std::string& folder) {
  const std::string path = folder + "/sync-probe";
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) give_up("open");
  std::vector<double> times;
  const std::string data(512, 'x');
  for (int i = 0; i < 51; ++i) {
    const auto start = Clock::now();
    if (write(fd, data.data(), data.size()) < 0 || fdatasync(fd) != 0) give_up("fdatasync");
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  close(fd);
  unlink(path.c_str());
  std::ranges::sort(times);
  return times[times.size() / 2];
}

double calls_per_second(std::uint16_t port, int threads, double seconds,
                        const std::function<void(int, std::uint64_t, Connection&)>& work) {
  std::atomic<std::uint64_t> calls = 0;
  const auto start = Clock::now();
  const auto end =
      start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  {
    std::vector<std::jthread> pool;
    for (int t = 0; t < threads; ++t) {
      pool.emplace_back([&, t] {
        Connection connection(port);
        for (std::uint64_t n = 0; Clock::now() < end; ++n) {
          work(t, n, connection);
          calls.fetch_add(1, std::memory_order_relaxed);
        }
      });
    }
  }
  return static_cast<double>(calls) / std::chrono::duration<double>(Clock::now() - start).count();
}

double pss_mb(int pid) { return memory_mb(pid, "/smaps_rollup", "Pss:"); }
double rss_mb(int pid) { return memory_mb(pid, "/status", "VmRSS:"); }

double cpu_seconds(int pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(in, text);
  text.erase(0, text.rfind(')') + 2);
  // After the name: state is field 3; utime and stime are 14 and 15.
  std::size_t at = 0;
  for (int field = 3; field < 14; ++field) at = text.find(' ', at) + 1;
  char* rest = nullptr;
  const double user = std::strtod(text.c_str() + at, &rest);
  const double system = std::strtod(rest, nullptr);
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace skiff::bench
