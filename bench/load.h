// A load generator that costs little itself: plain sockets, one connection per thread, kept open.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace skiff::bench {

// One keep-alive connection to 127.0.0.1. Aborts the program on an error that is not an answer.
class Connection {
 public:
  explicit Connection(std::uint16_t port);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  struct Answer {
    int status = 0;
    std::string body = {};
  };
  Answer request(const std::string& method, const std::string& target,
                 const std::string& body = {});

 private:
  int fd_;
  std::string buffer_;
};

bool listening(std::uint16_t port);

// Milliseconds for one small write and fdatasync in `folder`; the median of 51.
double sync_ms(const std::string& folder);

// Calls `work(thread, connection)` in `threads` threads again and again for `seconds`; calls/s.
double calls_per_second(std::uint16_t port, int threads, double seconds,
                        const std::function<void(int, std::uint64_t, Connection&)>& work);

// Memory of a process in MB: proportional set size, and resident set size.
double pss_mb(int pid);
double rss_mb(int pid);
double cpu_seconds(int pid);

}  // namespace skiff::bench
