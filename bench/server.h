// A Skiff of the bench's own, on loopback with its own data folder.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "bench/load.h"

namespace skiff::bench {

using Clock = std::chrono::steady_clock;

constexpr std::uint16_t kHttp = 17420;
constexpr std::uint16_t kHttps = 17443;

double ms_since(Clock::time_point start);

class Server {
 public:
  // `user` 0: as whoever runs the bench. Another one (the bench must be root) has no rights to
  // anything: its pods are plain processes.
  Server(std::string binary, std::string data, uid_t user = 0)
      : binary_(std::move(binary)), data_(std::move(data)), user_(user) {}
  ~Server() { stop(); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Milliseconds from exec to the first /readyz that says ok.
  double start();
  void stop();
  int pid() const { return pid_; }
  // As its administrator: another user's Skiff trusts nobody else on the machine.
  Target target() const;

 private:
  std::string binary_, data_;
  uid_t user_;
  pid_t pid_ = 0;
};

// CPU seconds of everything that has ended below this process: Skiff, its shims, their programs.
// Nobody else's work is in it, so it is steadier than any clock.
double children_cpu_seconds();
// Makes orphans below this process its own, so that the function above counts them.
void adopt_orphans();
// Waits for those that have ended.
void reap_orphans();

}  // namespace skiff::bench
