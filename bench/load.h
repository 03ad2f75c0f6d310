// A load generator that costs little itself: plain sockets, one connection per thread, kept open.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace skiff::bench {

// Where to: a port of 127.0.0.1, plain or TLS (any certificate will do), with a bearer token or
// not.
struct Target {
  std::uint16_t port = 0;
  bool tls = false;
  std::string token = {};
};

// One keep-alive connection. Aborts the program on an error that is not an answer.
class Connection {
 public:
  explicit Connection(const Target& target);
  explicit Connection(std::uint16_t port) : Connection(Target{.port = port}) {}
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  std::string patch_type = "application/merge-patch+json";
  std::string accept = "application/json";

  struct Answer {
    int status = 0;
    std::string body = {};
  };
  Answer request(const std::string& method, const std::string& target,
                 const std::string& body = {});

  // Sends without waiting for the answer: a watch. Afterwards poll() fd() and read_some().
  void send_request(const std::string& method, const std::string& target,
                    const std::string& body = {});
  int fd() const { return fd_; }
  // What has arrived, without waiting.
  std::string read_some();

 private:
  struct Tls;
  void write_all(const std::string& out);
  // More bytes into `buffer_`; false where none came and `wait` is false.
  bool fill(bool wait);
  std::string read_body(std::size_t head);

  int fd_;
  std::unique_ptr<Tls> tls_;
  std::string token_;
  std::string buffer_;
};

bool listening(std::uint16_t port);

// Milliseconds for one small write and fdatasync in `folder`; the median of 51.
double sync_ms(const std::string& folder);

// Calls `work(thread, connection)` in `threads` threads again and again for `seconds`; calls/s.
double calls_per_second(const Target& target, int threads, double seconds,
                        const std::function<void(int, std::uint64_t, Connection&)>& work);

// Memory of a process in MB: proportional set size, and resident set size.
double pss_mb(int pid);
double rss_mb(int pid);
double cpu_seconds(int pid);
// By the scheduler's clock instead of ticks of ten milliseconds.
double exact_cpu_seconds(int pid);

}  // namespace skiff::bench
