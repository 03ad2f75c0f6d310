#include "base/time_zone.h"

#include <algorithm>
#include <charconv>

namespace skiff {
namespace {

constexpr std::string_view kNotTzif = "the time zone data is damaged";
constexpr std::size_t kHeaderBytes = 44;

std::unexpected<Error> damaged() { return fail(Code::kInvalid, std::string(kNotTzif)); }

// Big-endian and signed.
std::int64_t number(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint64_t n = 0;
  for (std::size_t i = 0; i < size; ++i) n = n << 8 | static_cast<unsigned char>(bytes[at + i]);
  if (size == 4) return static_cast<std::int32_t>(static_cast<std::uint32_t>(n));
  return static_cast<std::int64_t>(n);
}

struct Counts {
  std::size_t utc_flags, standard_flags, leaps, times, types, characters;

  static Counts of(std::string_view bytes, std::size_t header) {
    const auto field = [&](std::size_t i) {
      return static_cast<std::size_t>(
          static_cast<std::uint32_t>(number(bytes, header + 20 + 4 * i, 4)));
    };
    return {field(0), field(1), field(2), field(3), field(4), field(5)};
  }
  std::size_t bytes(std::size_t time_bytes) const {
    return times * (time_bytes + 1) + types * 6 + characters + leaps * (time_bytes + 4) +
           standard_flags + utc_flags;
  }
  // So large that sums cannot overflow, and far above any zone.
  bool sane() const {
    constexpr std::size_t kMost = 100000;
    return std::max({utc_flags, standard_flags, leaps, times, types, characters}) < kMost;
  }
};

// The parts of a POSIX TZ text: EST5EDT,M3.2.0,M11.1.0/3
class Footer {
 public:
  explicit Footer(std::string_view text) : text_(text) {}
  bool empty() const { return text_.empty(); }

  bool skip(char c) {
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool name() {
    if (skip('<')) {
      const std::size_t end = text_.find('>');
      if (end == text_.npos) return false;
      text_.remove_prefix(end + 1);
      return true;
    }
    const std::size_t end = std::min(text_.find_first_of("+-0123456789,"), text_.size());
    text_.remove_prefix(end);
    return end > 0;
  }
  bool integer(int& out) {
    const auto parsed = std::from_chars(text_.data(), text_.data() + text_.size(), out);
    if (parsed.ec != std::errc{}) return false;
    text_.remove_prefix(static_cast<std::size_t>(parsed.ptr - text_.data()));
    return true;
  }
  // [+-]hh[:mm[:ss]], in seconds.
  bool clock(std::int32_t& out) {
    const bool negative = skip('-');
    if (!negative) skip('+');
    int hours = 0, minutes = 0, seconds = 0;
    if (!integer(hours)) return false;
    if (skip(':') && !integer(minutes)) return false;
    if (skip(':') && !integer(seconds)) return false;
    constexpr int kMostHours = 167;
    if (hours > kMostHours || minutes > 59 || seconds > 59) return false;
    out = hours * 3600 + minutes * 60 + seconds;
    if (negative) out = -out;
    return true;
  }

 private:
  std::string_view text_;
};

}  // namespace

TimeZone TimeZone::fixed(std::chrono::seconds offset) {
  TimeZone zone;
  zone.first_offset_s_ = zone.standard_s_ = static_cast<std::int32_t>(offset.count());
  zone.daylight_s_ = zone.standard_s_;
  return zone;
}

Result<void> TimeZone::parse_footer(std::string_view text, TimeZone& zone) {
  Footer footer(text);
  std::int32_t west = 0;
  if (!footer.name() || !footer.clock(west)) return damaged();
  zone.standard_s_ = zone.daylight_s_ = -west;  // POSIX counts to the west
  if (footer.empty()) return {};
  if (!footer.name()) return damaged();
  zone.daylight_s_ = zone.standard_s_ + 3600;
  if (footer.skip(',')) {
    // The offset is left out where it is an hour.
  } else {
    if (!footer.clock(west) || !footer.skip(',')) return damaged();
    zone.daylight_s_ = -west;
  }
  for (Rule* rule : {&zone.begins_, &zone.ends_}) {
    if (rule == &zone.ends_ && !footer.skip(',')) return damaged();
    if (!footer.skip('M') || !footer.integer(rule->month) || !footer.skip('.') ||
        !footer.integer(rule->week) || !footer.skip('.') || !footer.integer(rule->weekday)) {
      return damaged();
    }
    if (footer.skip('/') && !footer.clock(rule->time_s)) return damaged();
    if (rule->month < 1 || rule->month > 12 || rule->week < 1 || rule->week > 5 ||
        rule->weekday < 0 || rule->weekday > 6) {
      return damaged();
    }
    rule->set = true;
  }
  return footer.empty() ? Result<void>() : damaged();
}

Result<TimeZone> TimeZone::parse_tzif(std::string_view bytes) {
  // The first block has 32-bit times; only the second is read.
  if (bytes.size() < kHeaderBytes || !bytes.starts_with("TZif") || bytes[4] < '2') return damaged();
  const Counts old = Counts::of(bytes, 0);
  if (!old.sane()) return damaged();
  const std::size_t header = kHeaderBytes + old.bytes(4);
  if (bytes.size() < header + kHeaderBytes || !bytes.substr(header).starts_with("TZif")) {
    return damaged();
  }
  const Counts counts = Counts::of(bytes, header);
  const std::size_t start = header + kHeaderBytes;
  if (!counts.sane() || counts.types == 0 || bytes.size() < start + counts.bytes(8)) {
    return damaged();
  }
  const std::size_t indexes = start + counts.times * 8, types = indexes + counts.times;
  TimeZone zone;
  zone.first_offset_s_ = static_cast<std::int32_t>(number(bytes, types, 4));
  for (std::size_t i = 0; i < counts.times; ++i) {
    const auto type = static_cast<std::size_t>(static_cast<unsigned char>(bytes[indexes + i]));
    if (type >= counts.types) return damaged();
    zone.changes_.push_back(
        {.at_s = number(bytes, start + i * 8, 8),
         .offset_s = static_cast<std::int32_t>(number(bytes, types + type * 6, 4))});
  }
  zone.standard_s_ = zone.daylight_s_ =
      zone.changes_.empty() ? zone.first_offset_s_ : zone.changes_.back().offset_s;
  std::string_view footer = bytes.substr(start + counts.bytes(8));
  if (footer.size() > 2 && footer.front() == '\n' && footer.back() == '\n') {
    SKIFF_TRY(parse_footer(footer.substr(1, footer.size() - 2), zone));
  }
  return zone;
}

// The moment in local time, counted as if it were UTC.
std::int64_t TimeZone::date_of(const Rule& rule, int year) {
  using namespace std::chrono;
  const auto month =
      std::chrono::year(year) / std::chrono::month(static_cast<unsigned>(rule.month));
  const auto day = std::chrono::weekday(static_cast<unsigned>(rule.weekday));
  const sys_days date = rule.week == 5 ? sys_days(month / day[last])
                                       : sys_days(month / day[static_cast<unsigned>(rule.week)]);
  return sys_seconds(date).time_since_epoch().count() + rule.time_s;
}

std::chrono::seconds TimeZone::offset_at(Time t) const {
  using namespace std::chrono;
  const std::int64_t at = floor<seconds>(t).time_since_epoch().count();
  if (!changes_.empty() && at < changes_.front().at_s) return seconds(first_offset_s_);
  if (changes_.empty() || at >= changes_.back().at_s) {
    if (!begins_.set) return seconds(changes_.empty() ? standard_s_ : changes_.back().offset_s);
    const year_month_day day(floor<days>(t + seconds(standard_s_)));
    const int year = static_cast<int>(day.year());
    const std::int64_t from = date_of(begins_, year) - standard_s_;
    const std::int64_t to = date_of(ends_, year) - daylight_s_;
    const bool daylight = from < to ? at >= from && at < to : at >= from || at < to;
    return seconds(daylight ? daylight_s_ : standard_s_);
  }
  const auto after = std::ranges::upper_bound(changes_, at, {}, &Change::at_s);
  return seconds(std::prev(after)->offset_s);
}

std::chrono::local_seconds TimeZone::local(Time t) const {
  const auto utc = std::chrono::floor<std::chrono::seconds>(t);
  return std::chrono::local_seconds((utc + offset_at(t)).time_since_epoch());
}

}  // namespace skiff
