// Cron schedules as CronJobs write them: five fields, @daily and the like, @every 90m.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "base/time_zone.h"

namespace skiff {

class CronSchedule {
 public:
  // "*/5 9-17 * * mon-fri". The error is the sentence the Kubernetes server would say.
  static Result<CronSchedule> parse(std::string_view text);

  // The first time after `after` that the schedule names, by the clock of `zone`; nothing where
  // none comes within five years (31 February). A local time that daylight saving skips is passed
  // over; one that comes twice is taken twice.
  std::optional<Time> next(Time after, const TimeZone& zone) const;

  // How far apart the times of "@every" are, counted from whatever came before; nothing for others.
  std::optional<std::chrono::seconds> every() const { return every_; }

 private:
  struct Bits {
    std::uint64_t set = 0;
    bool star = false;  // given as * or ?, so that it restricts nothing

    bool has(int n) const { return (set >> n & 1) != 0; }
  };
  struct Bounds {
    int least = 0;
    int most = 0;
    std::array<std::string_view, 12> names = {};
    int first_name = 0;
  };
  static Result<Bits> parse_field(std::string_view text, const Bounds& bounds);
  static Result<Bits> parse_range(std::string_view text, const Bounds& bounds);
  static Result<CronSchedule> parse_descriptor(std::string_view text);
  bool day_fits(std::chrono::year_month_day day) const;

  Bits minutes_, hours_, days_, months_, weekdays_;
  std::optional<std::chrono::seconds> every_ = {};
};

}  // namespace skiff
