#include "bench/load.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string_view>
#include <thread>
#include <utility>
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

struct Connection::Tls {
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  SSL* session = SSL_new(context);
  ~Tls() {
    SSL_free(session);
    SSL_CTX_free(context);
  }
};

Connection::Connection(const Target& target) : fd_(dial(target.port)), token_(target.token) {
  if (fd_ < 0) give_up("connect");
  if (!target.tls) return;
  tls_ = std::make_unique<Tls>();
  SSL_set_fd(tls_->session, fd_);
  if (SSL_connect(tls_->session) != 1) give_up("TLS");
}

Connection::~Connection() { close(fd_); }

void Connection::write_all(const std::string& out) {
  for (std::size_t sent = 0; sent < out.size();) {
    const char* data = out.data() + sent;
    const std::size_t left = out.size() - sent;
    const ssize_t n = tls_ ? SSL_write(tls_->session, data, static_cast<int>(left))
                           : send(fd_, data, left, MSG_NOSIGNAL);
    if (n <= 0) give_up("send");
    sent += static_cast<std::size_t>(n);
  }
}

bool Connection::fill(bool wait) {
  char piece[65536];
  if (!wait && (!tls_ || SSL_pending(tls_->session) == 0)) {
    pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, 0) == 0) return false;
  }
  const ssize_t n =
      tls_ ? SSL_read(tls_->session, piece, sizeof piece) : recv(fd_, piece, sizeof piece, 0);
  if (n <= 0) give_up("recv");
  buffer_.append(piece, static_cast<std::size_t>(n));
  return true;
}

void Connection::send_request(const std::string& method, const std::string& target,
                              const std::string& body) {
  std::string out =
      method + " " + target + " HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: " + accept + "\r\n";
  if (!token_.empty()) out += "Authorization: Bearer " + token_ + "\r\n";
  if (!body.empty()) {
    out += "Content-Type: " + (method == "PATCH" ? patch_type : "application/json") +
           "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  }
  write_all(out + "\r\n" + body);
}

std::string Connection::read_some() {
  while (fill(false)) {
  }
  return std::exchange(buffer_, {});
}

// The body after a head of `head` bytes, by Content-Length or in chunks; leaves what follows.
std::string Connection::read_body(std::size_t head) {
  const std::string_view text = std::string_view(buffer_).substr(0, head);
  const std::size_t at = text.find("Content-Length: ");
  if (at != std::string_view::npos) {
    const auto length = static_cast<std::size_t>(std::atoll(buffer_.c_str() + at + 16));
    while (buffer_.size() < head + length) fill(true);
    std::string body = buffer_.substr(head, length);
    buffer_.erase(0, head + length);
    return body;
  }
  std::string body;
  for (std::size_t from = head;;) {
    std::size_t line;
    while ((line = buffer_.find("\r\n", from)) == std::string::npos) fill(true);
    const std::size_t length = std::strtoul(buffer_.c_str() + from, nullptr, 16);
    while (buffer_.size() < line + 2 + length + 2) fill(true);
    body.append(buffer_, line + 2, length);
    from = line + 2 + length + 2;
    if (length > 0) continue;
    buffer_.erase(0, from);
    return body;
  }
}

Connection::Answer Connection::request(const std::string& method, const std::string& target,
                                       const std::string& body) {
  send_request(method, target, body);
  std::size_t end;
  while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) fill(true);
  Answer answer{.status = std::atoi(buffer_.c_str() + 9)};
  answer.body = read_body(end + 4);
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

double calls_per_second(const Target& target, int threads, double seconds,
                        const std::function<void(int, std::uint64_t, Connection&)>& work) {
  std::atomic<std::uint64_t> calls = 0;
  const auto start = Clock::now();
  const auto end =
      start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  {
    std::vector<std::jthread> pool;
    for (int t = 0; t < threads; ++t) {
      pool.emplace_back([&, t] {
        Connection connection(target);
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

double exact_cpu_seconds(int pid) {
  clockid_t id = 0;
  timespec now{};
  if (clock_getcpuclockid(pid, &id) != 0 || clock_gettime(id, &now) != 0) return 0;
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

}  // namespace skiff::bench
