// Time zones: which names there are, and what the clocks of one show. The rules come as the bytes
// of a TZif file (RFC 9636), so that reading files stays with those who may.
#pragma once

#include <chrono>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace skiff {

// Whether the IANA database has a zone of that name: Europe/Madrid, UTC, EST5EDT.
bool time_zone_exists(std::string_view name);

class TimeZone {
 public:
  TimeZone() = default;  // UTC
  // Without daylight saving, so many seconds east of Greenwich.
  static TimeZone fixed(std::chrono::seconds offset);
  static Result<TimeZone> parse_tzif(std::string_view bytes);

  std::chrono::seconds offset_at(Time t) const;
  std::chrono::local_seconds local(Time t) const;

 private:
  struct Change {
    std::int64_t at_s = 0;
    std::int32_t offset_s = 0;
  };
  // When daylight saving begins and ends in years after the last change of the file.
  struct Rule {
    int month = 0, week = 0, weekday = 0;  // M3.5.0: the last Sunday of March
    std::int32_t time_s = 7200;
    bool set = false;
  };
  static Result<void> parse_footer(std::string_view text, TimeZone& zone);
  static std::int64_t date_of(const Rule& rule, int year);

  std::int32_t first_offset_s_ = 0;  // before the first change
  std::vector<Change> changes_;      // by time
  std::int32_t standard_s_ = 0, daylight_s_ = 0;
  Rule begins_, ends_;
};

}  // namespace skiff
