#include "base/time.h"

#include <fmt/format.h>

#include <charconv>

namespace skiff {
namespace {

using namespace std::chrono;

// Exactly `digits` decimal digits at `text[at]`, or nothing.
std::optional<int> digits(std::string_view text, std::size_t at, std::size_t count) {
  if (at + count > text.size()) return {};
  int n = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + at + count, n);
  if (error != std::errc{} || end != text.data() + at + count || text[at] == '-') return {};
  return n;
}

std::string stamp(Time t, bool micro) {
  const auto day = floor<days>(t);
  const year_month_day date{day};
  const hh_mm_ss time{t - day};
  std::string out =
      fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(date.year()),
                  static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                  time.hours().count(), time.minutes().count(), time.seconds().count());
  if (micro) out += fmt::format(".{:06}", time.subseconds().count());
  return out + "Z";
}

}  // namespace

std::string rfc3339(Time t) { return stamp(t, false); }
std::string rfc3339_micro(Time t) { return stamp(t, true); }

std::optional<Time> parse_time(std::string_view text) {
  const auto y = digits(text, 0, 4), mo = digits(text, 5, 2), d = digits(text, 8, 2);
  const auto h = digits(text, 11, 2), mi = digits(text, 14, 2), s = digits(text, 17, 2);
  if (!y || !mo || !d || !h || !mi || !s) return {};
  if (text[4] != '-' || text[7] != '-' || (text[10] != 'T' && text[10] != 't') || text[13] != ':' ||
      text[16] != ':') {
    return {};
  }
  const year_month_day date{year{*y}, month{static_cast<unsigned>(*mo)},
                            day{static_cast<unsigned>(*d)}};
  if (!date.ok() || *h > 23 || *mi > 59 || *s > 60) return {};
  Time t = sys_days{date} + hours{*h} + minutes{*mi} + seconds{*s};
  std::size_t at = 19;
  if (at < text.size() && text[at] == '.') {
    Duration unit = 100ms;
    std::size_t count = 0;
    for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, ++count) {
      t += unit * (text[at] - '0');
      unit /= 10;
    }
    if (count == 0) return {};
  }
  const std::string_view zone = text.substr(at);
  if (zone == "Z" || zone == "z") return t;
  if (zone.size() != 6 || (zone[0] != '+' && zone[0] != '-') || zone[3] != ':') return {};
  const auto zh = digits(zone, 1, 2), zm = digits(zone, 4, 2);
  if (!zh || !zm) return {};
  const Duration offset = hours{*zh} + minutes{*zm};
  return zone[0] == '+' ? t - offset : t + offset;
}

std::string age(Duration d) {
  const auto s = floor<seconds>(d).count();
  if (s < 0) return "0s";
  if (s < 120) return fmt::format("{}s", s);
  const auto m = s / 60;
  if (m < 10) return s % 60 == 0 ? fmt::format("{}m", m) : fmt::format("{}m{}s", m, s % 60);
  if (m < 180) return fmt::format("{}m", m);
  const auto h = m / 60;
  if (h < 8) return m % 60 == 0 ? fmt::format("{}h", h) : fmt::format("{}h{}m", h, m % 60);
  if (h < 48) return fmt::format("{}h", h);
  const auto days = h / 24;
  if (days < 8) return h % 24 == 0 ? fmt::format("{}d", days) : fmt::format("{}d{}h", days, h % 24);
  if (days < 730) return fmt::format("{}d", days);
  const auto years = days / 365;
  if (years < 8 && days % 365 != 0) return fmt::format("{}y{}d", years, days % 365);
  return fmt::format("{}y", years);
}

}  // namespace skiff
