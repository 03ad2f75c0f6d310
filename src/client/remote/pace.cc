#include "client/remote/pace.h"

#include <algorithm>

namespace skiff::client {
namespace {

using namespace std::chrono_literals;

// Requests that were under way when the server first complained complain as well: one cut for all.
constexpr Duration kOneCut = 1s;
constexpr double kOverload = 0.5;
constexpr double kSlower = 0.8;
// Latency that counts as "rising": so many times the usual one, and more than noise.
constexpr double kRise = 5;
constexpr double kNoiseUs = 50'000;
constexpr double kRecentWeight = 0.2;
// How long it takes to get used to a server that has become slower for good.
constexpr double kForgetUs = 60e6;
constexpr double kOneStepUs = 1e6;
// A server that asks us to stay away longer than this is taken at its word only so far.
constexpr Duration kLongestHold = 5min;

Duration seconds_of(double s) { return Duration(static_cast<std::int64_t>(s * 1e6)); }

}  // namespace

Duration Pace::place(Duration now) const {
  // A bucket that nobody has used for long is full, not fuller.
  return std::max({next_, now - seconds_of(options_.burst / rate_), held_until_});
}

Duration Pace::delay(Duration now) const { return std::max(Duration::zero(), place(now) - now); }

Duration Pace::reserve(Duration now) {
  const Duration at = place(now);
  next_ = at + seconds_of(1 / rate_);
  if (at <= now) return Duration::zero();
  limited_ = true;
  return at - now;
}

bool Pace::slower(Duration now, Duration latency) {
  const double us = static_cast<double>(latency.count());
  recent_us_ = recent_us_ == 0 ? us : recent_us_ + kRecentWeight * (us - recent_us_);
  const double since_us = static_cast<double>((now - last_latency_).count());
  const double forgotten = std::clamp(since_us, 0.0, kOneStepUs) / kForgetUs;
  usual_us_ = usual_us_ == 0 || us < usual_us_ ? us : usual_us_ + forgotten * (us - usual_us_);
  last_latency_ = now;
  return recent_us_ > kNoiseUs && recent_us_ > kRise * usual_us_;
}

void Pace::cut(Duration now, double factor) {
  if (last_cut_ && now - *last_cut_ < kOneCut) return;
  last_cut_ = now;
  rate_ = std::max(options_.least_per_s, rate_ * factor);
  // Places that were given out stay; the next ones are further apart.
  next_ = std::max(next_, now);
}

void Pace::fared(Duration now, const Fared& how) {
  if (how.retry_after) {
    held_until_ = std::max(held_until_, now + std::min(*how.retry_after, kLongestHold));
  }
  const bool rising = how.latency && slower(now, *how.latency);
  if (how.overloaded) return cut(now, kOverload);
  if (rising) return cut(now, kSlower);
  // A rate that nobody reaches says nothing about the server.
  if (!limited_) return;
  limited_ = false;
  rate_ = std::min(options_.most_per_s, rate_ + std::min(rate_, options_.grow_per_s / rate_));
}

}  // namespace skiff::client
