// What is counted of controllers and of what they look after, for /metrics.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "control/controller.h"
#include "env/env.h"
#include "features/jobsets/tally.h"
#include "features/training/tally.h"

namespace skiff::assembly {

class ControllerMetrics {
 public:
  explicit ControllerMetrics(const env::Clock& clock);
  ControllerMetrics(const ControllerMetrics&) = delete;
  ControllerMetrics& operator=(const ControllerMetrics&) = delete;

  // The same controller, whose plans are counted from now on. It must not outlive this.
  control::Controller metered(control::Controller controller);
  // Sees jobs and their children change and changes nothing itself. It must not outlive this.
  control::GlobalController counter();

  std::string text() const;  // as Prometheus reads it; from any thread

 private:
  // As controller-runtime's, of which these are the even ones.
  static constexpr std::array<double, 8> kBounds = {0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 30};
  struct Plans {
    std::uint64_t done = 0;
    std::uint64_t with_timer = 0;  // done, too, and asked to be made again after a while
    std::uint64_t broken = 0;
    double seconds = 0;
    std::array<std::uint64_t, kBounds.size()> within = {};
  };

  control::Plan count(const control::Controller& controller, const control::Observed& observed,
                      Time now);
  std::string plans_text() const;

  const env::Clock& clock_;
  // Plans are made by two threads, and whoever asks for the text is a third.
  mutable std::mutex mutex_ = {};
  std::map<std::string, Plans> plans_ = {};  // by controller
  training::Tally training_;
  jobsets::Tally jobsets_ = {};
};

}  // namespace skiff::assembly
