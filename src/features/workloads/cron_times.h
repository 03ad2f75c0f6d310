// Which starts of a schedule have been missed, and how a zone's clock writes a time.
#pragma once

#include <optional>
#include <string>

#include "base/cron.h"
#include "base/time.h"
#include "base/time_zone.h"

namespace skiff::workloads {

struct Missed {
  std::optional<Time> latest = {};  // the last start after `since`, at `now` or before
  bool many = false;                // more than a hundred
};
// Costs little however long ago `since` is.
Missed missed_starts(const CronSchedule& schedule, const TimeZone& zone, Time since, Time now);

// 2026-11-16T09:00:00+01:00; Z where the clock shows UTC.
std::string rfc3339_local(Time t, const TimeZone& zone);

}  // namespace skiff::workloads
