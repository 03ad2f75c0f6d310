#include "base/cron.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/strings.h"

namespace skiff {
namespace {

using namespace std::chrono_literals;

constexpr int kYearsAhead = 5;

std::unexpected<Error> bad(std::string message) { return fail(Code::kInvalid, std::move(message)); }

std::vector<std::string_view> words(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> out;
  while (true) {
    const std::size_t start = text.find_first_not_of(separators);
    if (start == text.npos) return out;
    text.remove_prefix(start);
    const std::size_t end = std::min(text.find_first_of(separators), text.size());
    out.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

Result<int> parse_cron_number(std::string_view text) {
  int n = 0;
  const std::string_view digits = text.starts_with('+') ? text.substr(1) : text;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
  if (error != std::errc{} || end != digits.data() + digits.size()) {
    return bad(fmt::format(
        "failed to parse int from {0}: strconv.Atoi: parsing \"{0}\": {1}", text,
        error == std::errc::result_out_of_range ? "value out of range" : "invalid syntax"));
  }
  if (n < 0) return bad(fmt::format("negative number ({}) not allowed: {}", n, text));
  return n;
}

// 1h30m, 90s, 1.5h: a number and a unit, as often as one likes.
Result<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  struct Unit {
    std::string_view name;
    double nanos;
  };
  constexpr std::array kUnits{Unit{"ns", 1},  Unit{"us", 1e3}, Unit{"µs", 1e3},  Unit{"ms", 1e6},
                              Unit{"s", 1e9}, Unit{"m", 60e9}, Unit{"h", 3600e9}};
  const std::string whole(text);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text == "0") return std::chrono::nanoseconds(0);
  if (text.empty()) return bad(fmt::format("time: invalid duration \"{}\"", whole));
  double total = 0;
  while (!text.empty()) {
    double n = 0;
    const auto parsed =
        std::from_chars(text.data(), text.data() + text.size(), n, std::chars_format::fixed);
    if (parsed.ec != std::errc{} || text.front() == '-') {
      return bad(fmt::format("time: invalid duration \"{}\"", whole));
    }
    text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
    const std::size_t end = std::min(text.find_first_of(".0123456789"), text.size());
    const std::string_view name = text.substr(0, end);
    if (name.empty()) return bad(fmt::format("time: missing unit in duration \"{}\"", whole));
    const auto* unit = std::ranges::find(kUnits, name, &Unit::name);
    if (unit == kUnits.end()) {
      return bad(fmt::format("time: unknown unit \"{}\" in duration \"{}\"", name, whole));
    }
    total += n * unit->nanos;
    text.remove_prefix(end);
  }
  constexpr double kMostNanos = 9.2e18;
  if (total > kMostNanos) return bad(fmt::format("time: invalid duration \"{}\"", whole));
  return std::chrono::nanoseconds(static_cast<std::int64_t>(negative ? -total : total));
}

}  // namespace

Result<CronSchedule::Bits> CronSchedule::parse_range(std::string_view text, const Bounds& bounds) {
  const auto number = [&](std::string_view part) -> Result<int> {
    const std::string name = lower(part);
    const auto* found = std::ranges::find(bounds.names, name);
    if (!name.empty() && found != bounds.names.end()) {
      return bounds.first_name + static_cast<int>(found - bounds.names.begin());
    }
    return parse_cron_number(part);
  };
  const auto range_and_step = split(text, '/');
  const auto ends = split(range_and_step[0], '-');
  Bits out;
  int start = bounds.least, end = bounds.most, step = 1;
  if (ends[0] == "*" || ends[0] == "?") {
    out.star = true;
  } else {
    SKIFF_ASSIGN(start, number(ends[0]));
    end = start;
    if (ends.size() == 2) {
      SKIFF_ASSIGN(end, number(ends[1]));
    } else if (ends.size() > 2) {
      return bad(fmt::format("too many hyphens: {}", text));
    }
  }
  if (range_and_step.size() == 2) {
    SKIFF_ASSIGN(step, parse_cron_number(range_and_step[1]));
    if (ends.size() == 1) end = bounds.most;  // N/step is N-max/step
    if (step > 1) out.star = false;
  } else if (range_and_step.size() > 2) {
    return bad(fmt::format("too many slashes: {}", text));
  }
  if (start < bounds.least) {
    return bad(
        fmt::format("beginning of range ({}) below minimum ({}): {}", start, bounds.least, text));
  }
  if (end > bounds.most) {
    return bad(fmt::format("end of range ({}) above maximum ({}): {}", end, bounds.most, text));
  }
  if (start > end) {
    return bad(
        fmt::format("beginning of range ({}) beyond end of range ({}): {}", start, end, text));
  }
  if (step == 0) {
    return bad(fmt::format("step of range should be a positive number: {}", text));
  }
  // In 64 bits: a step may be as large as an int.
  for (std::int64_t n = start; n <= end; n += step) out.set |= std::uint64_t{1} << n;
  return out;
}

Result<CronSchedule::Bits> CronSchedule::parse_field(std::string_view text, const Bounds& bounds) {
  Bits out;
  for (const std::string_view part : words(text, ",")) {
    SKIFF_ASSIGN(const Bits one, parse_range(part, bounds));
    out.set |= one.set;
    out.star = out.star || one.star;
  }
  return out;
}

Result<CronSchedule> CronSchedule::parse_descriptor(std::string_view text) {
  struct Named {
    std::string_view name, fields;
  };
  constexpr std::array kNamed{Named{"@yearly", "0 0 1 1 *"},  Named{"@annually", "0 0 1 1 *"},
                              Named{"@monthly", "0 0 1 * *"}, Named{"@weekly", "0 0 * * 0"},
                              Named{"@daily", "0 0 * * *"},   Named{"@midnight", "0 0 * * *"},
                              Named{"@hourly", "0 * * * *"}};
  const auto* named = std::ranges::find(kNamed, text, &Named::name);
  if (named != kNamed.end()) return parse(named->fields);
  constexpr std::string_view kEvery = "@every ";
  if (!text.starts_with(kEvery)) return bad(fmt::format("unrecognized descriptor: {}", text));
  const auto duration = parse_duration(text.substr(kEvery.size()));
  if (!duration) {
    return bad(fmt::format("failed to parse duration {}: {}", text, duration.error().message));
  }
  CronSchedule out;
  out.every_ = std::max(1s, std::chrono::duration_cast<std::chrono::seconds>(*duration));
  return out;
}

Result<CronSchedule> CronSchedule::parse(std::string_view text) {
  static constexpr Bounds kMinutes{.least = 0, .most = 59};
  static constexpr Bounds kHours{.least = 0, .most = 23};
  static constexpr Bounds kDays{.least = 1, .most = 31};
  static constexpr Bounds kMonths{
      .least = 1,
      .most = 12,
      .names = {"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"},
      .first_name = 1};
  static constexpr Bounds kWeekdays{
      .least = 0, .most = 6, .names = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"}};
  if (text.empty()) return bad("empty spec string");
  if (text.starts_with("TZ=") || text.starts_with("CRON_TZ=")) {
    const std::size_t start = text.find('=') + 1;
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view zone = text.substr(start, end - start);
    if (!time_zone_exists(zone)) {
      return bad(fmt::format("provided bad location {0}: unknown time zone {0}", zone));
    }
    text = trim(text.substr(end));
  }
  if (text.starts_with('@')) return parse_descriptor(text);
  const auto fields = words(text, " \t\r\n\v\f");
  if (fields.size() != 5) {
    std::vector<std::string> given(fields.begin(), fields.end());
    return bad(
        fmt::format("expected exactly 5 fields, found {}: [{}]", fields.size(), join(given, " ")));
  }
  CronSchedule out;
  SKIFF_ASSIGN(out.minutes_, parse_field(fields[0], kMinutes));
  SKIFF_ASSIGN(out.hours_, parse_field(fields[1], kHours));
  SKIFF_ASSIGN(out.days_, parse_field(fields[2], kDays));
  SKIFF_ASSIGN(out.months_, parse_field(fields[3], kMonths));
  SKIFF_ASSIGN(out.weekdays_, parse_field(fields[4], kWeekdays));
  return out;
}

bool CronSchedule::day_fits(std::chrono::year_month_day day) const {
  const bool by_day = days_.has(static_cast<int>(static_cast<unsigned>(day.day())));
  const bool by_weekday = weekdays_.has(
      static_cast<int>(std::chrono::weekday(std::chrono::sys_days(day)).c_encoding()));
  // Two restrictions widen each other; one alone narrows.
  return days_.star || weekdays_.star ? by_day && by_weekday : by_day || by_weekday;
}

std::optional<Time> CronSchedule::next(Time after, const TimeZone& zone) const {
  using std::chrono::days;
  using std::chrono::floor;
  if (every_) return floor<std::chrono::seconds>(after) + *every_;
  Time t = floor<std::chrono::minutes>(after) + 1min;
  const auto first_year = std::chrono::year_month_day(floor<days>(zone.local(after))).year();
  while (true) {
    const auto local = zone.local(t);
    const auto midnight = floor<days>(local);
    const std::chrono::year_month_day day(midnight);
    if (day.year() > first_year + std::chrono::years(kYearsAhead)) return std::nullopt;
    const bool month_fits = months_.has(static_cast<int>(static_cast<unsigned>(day.month())));
    if (month_fits && day_fits(day)) {
      const auto of_day = local - midnight;
      const auto hour = floor<std::chrono::hours>(of_day);
      const auto minute = floor<std::chrono::minutes>(of_day - hour);
      const bool hour_fits = hours_.has(static_cast<int>(hour.count()));
      if (hour_fits && minutes_.has(static_cast<int>(minute.count()))) return t;
      t += hour_fits ? 1min : std::chrono::minutes(60 - minute.count());
      continue;
    }
    auto target = midnight + days(1);
    if (!month_fits) {
      const auto month = day.year() / day.month() + std::chrono::months(1);
      target = std::chrono::local_days(month / 1);
    }
    const auto before = zone.offset_at(t);
    t += target - local;
    t -= zone.offset_at(t) - before;
    // Where midnight comes twice, the first one; where it does not come, the moment after.
    while (zone.local(t - 30min) >= target) t -= 30min;
    while (zone.local(t) < target) t += 30min;
  }
}

}  // namespace skiff
