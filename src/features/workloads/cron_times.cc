#include "features/workloads/cron_times.h"

#include <fmt/format.h>

#include <cstdlib>

namespace skiff::workloads {
namespace {

constexpr int kMany = 100;

}  // namespace

Missed missed_starts(const CronSchedule& schedule, const TimeZone& zone, Time since, Time now) {
  Missed out;
  std::optional<Time> next = schedule.next(since, zone);
  for (int i = 0; next && *next <= now; ++i) {
    if (i == kMany) {
      out.many = true;
      break;
    }
    out.latest = next;
    next = schedule.next(*next, zone);
  }
  if (!out.many) return out;
  if (const auto every = schedule.every()) {
    out.latest = *next + (now - *next) / *every * *every;
    return out;
  }
  out.latest = next;
  // The last one is near: looked for in spans that grow, none of them holds many before it.
  using std::chrono::hours;
  for (const auto span : {hours(1), hours(24), hours(24 * 7), hours(24 * 31), hours(24 * 366)}) {
    Time from = now - span;
    if (from < *next) from = *next;
    std::optional<Time> found = schedule.next(from, zone);
    if (!found || *found > now) continue;
    while (found && *found <= now) {
      out.latest = found;
      found = schedule.next(*found, zone);
    }
    return out;
  }
  return out;
}

std::string rfc3339_local(Time t, const TimeZone& zone) {
  const std::int64_t offset = zone.offset_at(t).count() / 60;
  if (offset == 0) return rfc3339(t);
  std::string out = rfc3339(t + std::chrono::minutes(offset));
  out.pop_back();
  return out + fmt::format("{}{:02}:{:02}", offset < 0 ? '-' : '+', std::abs(offset) / 60,
                           std::abs(offset) % 60);
}

}  // namespace skiff::workloads
