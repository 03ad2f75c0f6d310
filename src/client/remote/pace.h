// How fast we may ask a server: a token bucket whose rate follows how the server fares. Pure: time
// is given, in the sense of a clock that never goes back.
#pragma once

#include <optional>

#include "base/time.h"

namespace skiff::client {

struct PaceOptions {
  // One control plane on a laptop takes two thousand writes a second; a slower one says so.
  double start_per_s = 1'000;
  double least_per_s = 1;
  double most_per_s = 5'000;
  double burst = 200;      // requests that may go at once after a quiet time
  double grow_per_s = 50;  // what a second of good answers adds to the rate
};

// What an answer, or the want of one, tells about the server.
struct Fared {
  bool overloaded = false;  // 429, 5xx, no answer in time
  // Of requests that are alike enough to compare: not of lists and streams.
  std::optional<Duration> latency = {};
  std::optional<Duration> retry_after = {};  // nothing at all is to be sent until then
};

class Pace {
 public:
  explicit Pace(PaceOptions options = {}) : options_(options), rate_(options.start_per_s) {}

  // Takes the next place. The request may go this long after `now`.
  Duration reserve(Duration now);
  // How long reserve() would make us wait.
  Duration delay(Duration now) const;
  void fared(Duration now, const Fared& how);

  double per_second() const { return rate_; }

 private:
  bool slower(Duration now, Duration latency);
  void cut(Duration now, double factor);
  Duration place(Duration now) const;

  PaceOptions options_;
  double rate_;
  Duration next_ = Duration::zero();  // when the bucket has its next token
  Duration held_until_ = Duration::zero();
  std::optional<Duration> last_cut_ = {};
  bool limited_ = false;  // somebody has had to wait since the rate last grew
  double usual_us_ = 0;   // latency of a server at ease: the least, forgotten slowly
  double recent_us_ = 0;
  Duration last_latency_ = Duration::zero();
};

}  // namespace skiff::client
