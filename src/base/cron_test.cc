#include "base/cron.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "base/random.h"

namespace skiff {
namespace {

std::string next_of(std::string_view schedule, std::string_view after, const TimeZone& zone = {}) {
  const auto cron = CronSchedule::parse(schedule);
  if (!cron) return cron.error().message;
  const auto from = parse_time(after);
  EXPECT_TRUE(from) << after;
  const auto next = cron->next(*from, zone);
  return next ? rfc3339(*next) : "never";
}

std::string complaint(std::string_view schedule) {
  const auto cron = CronSchedule::parse(schedule);
  return cron ? "" : cron.error().message;
}

// A zone in the form of a file: no changes listed, only the rule for ever.
TimeZone by_rule(std::string_view footer) {
  const std::string header = "TZif2" + std::string(15, '\0');
  const auto counts = [](char types, char characters) {
    std::string out;
    for (const char n : {'\0', '\0', '\0', '\0', types, characters}) {
      out += std::string(3, '\0') + n;
    }
    return out;
  };
  const std::string block = std::string(6, '\0') + std::string(1, '\0');  // one type: UTC
  std::string bytes = header + counts(1, 1) + block + header + counts(1, 1) + block;
  bytes += "\n" + std::string(footer) + "\n";
  const auto zone = TimeZone::parse_tzif(bytes);
  EXPECT_TRUE(zone) << footer;
  return zone ? *zone : TimeZone();
}

TEST(Cron, FindsTheNextTime) {
  constexpr std::string_view kNow = "2026-11-15T10:07:30Z";  // a Sunday
  EXPECT_EQ(next_of("* * * * *", kNow), "2026-11-15T10:08:00Z");
  EXPECT_EQ(next_of("*/5 * * * *", kNow), "2026-11-15T10:10:00Z");
  EXPECT_EQ(next_of("7 10 * * *", kNow), "2026-11-16T10:07:00Z");
  EXPECT_EQ(next_of("7/20 * * * *", kNow), "2026-11-15T10:27:00Z");
  EXPECT_EQ(next_of("30 9-17/4 * * mon-fri", kNow), "2026-11-16T09:30:00Z");
  EXPECT_EQ(next_of("0 0 1,15 * ?", kNow), "2026-12-01T00:00:00Z");
  EXPECT_EQ(next_of("0 0 29 FEB *", kNow), "2028-02-29T00:00:00Z");
  EXPECT_EQ(next_of("0 0 31 2 *", kNow), "never");
  EXPECT_EQ(next_of("59 23 31 12 *", kNow), "2026-12-31T23:59:00Z");
  EXPECT_EQ(next_of("0 0 * * *", "2026-11-15T00:00:00Z"), "2026-11-16T00:00:00Z");
}

TEST(Cron, TwoRestrictionsOnTheDayWidenEachOther) {
  EXPECT_EQ(next_of("0 0 20 * mon", "2026-11-17T00:00:00Z"), "2026-11-20T00:00:00Z");
  EXPECT_EQ(next_of("0 0 20 * mon", "2026-11-20T00:00:00Z"), "2026-11-23T00:00:00Z");
  EXPECT_EQ(next_of("0 0 */2 * mon", "2026-11-15T00:00:00Z"), "2026-11-16T00:00:00Z");
}

TEST(Cron, NamedSchedules) {
  constexpr std::string_view kNow = "2026-11-15T10:07:30Z";
  EXPECT_EQ(next_of("@yearly", kNow), "2027-01-01T00:00:00Z");
  EXPECT_EQ(next_of("@annually", kNow), "2027-01-01T00:00:00Z");
  EXPECT_EQ(next_of("@monthly", kNow), "2026-12-01T00:00:00Z");
  EXPECT_EQ(next_of("@weekly", kNow), "2026-11-22T00:00:00Z");
  EXPECT_EQ(next_of("@daily", kNow), "2026-11-16T00:00:00Z");
  EXPECT_EQ(next_of("@hourly", kNow), "2026-11-15T11:00:00Z");
  EXPECT_EQ(next_of("@every 1h30m", kNow), "2026-11-15T11:37:30Z");
  EXPECT_EQ(next_of("@every 1ms", kNow), "2026-11-15T10:07:31Z");
}

TEST(Cron, SaysWhatIsWrong) {
  EXPECT_EQ(complaint(""), "empty spec string");
  EXPECT_EQ(complaint("* * * *"), "expected exactly 5 fields, found 4: [* * * *]");
  EXPECT_EQ(complaint("60 * * * *"), "end of range (60) above maximum (59): 60");
  EXPECT_EQ(complaint("* * 0 * *"), "beginning of range (0) below minimum (1): 0");
  EXPECT_EQ(complaint("5-1 * * * *"), "beginning of range (5) beyond end of range (1): 5-1");
  EXPECT_EQ(complaint("*/0 * * * *"), "step of range should be a positive number: */0");
  EXPECT_EQ(complaint("1-2-3 * * * *"), "too many hyphens: 1-2-3");
  EXPECT_EQ(complaint("1/2/3 * * * *"), "too many slashes: 1/2/3");
  EXPECT_EQ(complaint("a * * * *"),
            "failed to parse int from a: strconv.Atoi: parsing \"a\": invalid syntax");
  EXPECT_EQ(complaint("@fortnightly"), "unrecognized descriptor: @fortnightly");
  EXPECT_EQ(complaint("@every x"),
            "failed to parse duration @every x: time: invalid duration \"x\"");
  EXPECT_EQ(complaint("@every 5"),
            "failed to parse duration @every 5: time: missing unit in duration \"5\"");
  EXPECT_EQ(complaint("@every 5y"),
            "failed to parse duration @every 5y: time: unknown unit \"y\" in duration \"5y\"");
  EXPECT_EQ(complaint("TZ=Mars/Base * * * * *"),
            "provided bad location Mars/Base: unknown time zone Mars/Base");
  EXPECT_EQ(complaint("TZ=UTC * * * * *"), "");
  EXPECT_EQ(complaint("0 0 * * 7"), "end of range (7) above maximum (6): 7");
}

TEST(Cron, LocalTimeThatDaylightSavingSkipsIsPassedOver) {
  const TimeZone madrid = by_rule("CET-1CEST,M3.5.0,M10.5.0/3");
  // On 28 March 2027 the clock goes from 02:00 to 03:00.
  EXPECT_EQ(next_of("30 2 * * *", "2027-03-27T12:00:00Z", madrid), "2027-03-29T00:30:00Z");
  EXPECT_EQ(next_of("0 9 * * *", "2027-03-27T12:00:00Z", madrid), "2027-03-28T07:00:00Z");
  EXPECT_EQ(next_of("0 9 * * *", "2027-01-01T12:00:00Z", madrid), "2027-01-02T08:00:00Z");
}

TEST(Cron, LocalTimeThatComesTwiceIsTakenTwice) {
  const TimeZone madrid = by_rule("CET-1CEST,M3.5.0,M10.5.0/3");
  // On 31 October 2027 the clock goes from 03:00 back to 02:00.
  EXPECT_EQ(next_of("30 2 * * *", "2027-10-30T12:00:00Z", madrid), "2027-10-31T00:30:00Z");
  EXPECT_EQ(next_of("30 2 * * *", "2027-10-31T00:30:00Z", madrid), "2027-10-31T01:30:00Z");
  EXPECT_EQ(next_of("30 2 * * *", "2027-10-31T01:30:00Z", madrid), "2027-11-01T01:30:00Z");
}

// A field written in some way, and the numbers it stands for.
struct Field {
  std::string text = {};
  std::set<int> numbers = {};
  bool star = false;

  void add(std::string part, int from, int to, int by) {
    text += (text.empty() ? "" : ",") + part;
    for (int n = from; n <= to; n += by) numbers.insert(n);
  }
};

Field random_field(Random& random, int least, int most) {
  Field out;
  const auto pick = [&](int from) {
    return from + static_cast<int>(random.below(static_cast<std::uint64_t>(most - from + 1)));
  };
  for (auto parts = 1 + random.below(3); parts > 0; --parts) {
    const int start = pick(least), end = pick(start);
    const int step = 1 + static_cast<int>(random.below(9));
    switch (random.below(5)) {
      case 0:
        out.add(random.chance(50) ? "*" : "?", least, most, 1);
        out.star = true;
        break;
      case 1:
        out.add(fmt::format("*/{}", step), least, most, step);
        out.star = out.star || step == 1;
        break;
      case 2:
        out.add(fmt::format("{}", start), start, start, 1);
        break;
      case 3:
        out.add(fmt::format("{}-{}", start, end), start, end, 1);
        break;
      default:
        out.add(fmt::format("{}-{}/{}", start, end, step), start, end, step);
    }
  }
  return out;
}

TEST(Cron, AgreesWithTryingEveryMinute) {
  using std::chrono::days;
  using std::chrono::minutes;
  constexpr int kMinutes = 40 * 24 * 60;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const Field minute = random_field(random, 0, 59), hour = random_field(random, 0, 23);
    const Field day = random_field(random, 1, 31), month = random_field(random, 1, 12);
    const Field weekday = random_field(random, 0, 6);
    const std::string text =
        fmt::format("{} {} {} {} {}", minute.text, hour.text, day.text, month.text, weekday.text);
    const auto cron = CronSchedule::parse(text);
    ASSERT_TRUE(cron) << text << ": " << cron.error().message;
    const Time after = Time(std::chrono::seconds(1'700'000'000 + random.below(200'000'000)));
    const TimeZone zone =
        TimeZone::fixed(minutes(30) * static_cast<int>(random.below(40)) - minutes(600));
    const auto fits = [&](Time t) {
      const auto local = zone.local(t);
      const auto date = std::chrono::floor<days>(local);
      const std::chrono::year_month_day ymd(date);
      const auto of_day = std::chrono::duration_cast<minutes>(local - date).count();
      const bool by_day = day.numbers.contains(static_cast<int>(unsigned(ymd.day())));
      const bool by_weekday =
          weekday.numbers.contains(static_cast<int>(std::chrono::weekday(date).c_encoding()));
      return (day.star || weekday.star ? by_day && by_weekday : by_day || by_weekday) &&
             month.numbers.contains(static_cast<int>(unsigned(ymd.month()))) &&
             hour.numbers.contains(static_cast<int>(of_day / 60)) &&
             minute.numbers.contains(static_cast<int>(of_day % 60));
    };
    const Time first = std::chrono::floor<minutes>(after) + minutes(1);
    Time expected = first;
    while (expected < first + minutes(kMinutes) && !fits(expected)) expected += minutes(1);
    const auto found = cron->next(after, zone);
    if (expected < first + minutes(kMinutes)) {
      ASSERT_TRUE(found) << text;
      EXPECT_EQ(rfc3339(*found), rfc3339(expected)) << text << " after " << rfc3339(after);
    } else if (found) {
      EXPECT_GE(*found, expected) << text << " after " << rfc3339(after);
    }
  }
}

TEST(TimeZone, Names) {
  for (const std::string_view name : {"UTC", "Europe/Madrid", "America/Argentina/Buenos_Aires",
                                      "Zulu", "EST5EDT", "Africa/Abidjan", "Etc/GMT+5"}) {
    EXPECT_TRUE(time_zone_exists(name)) << name;
  }
  for (const std::string_view name : {"", "utc", "Europe", "Europe/Madrid ", "../etc/passwd"}) {
    EXPECT_FALSE(time_zone_exists(name)) << name;
  }
}

TEST(TimeZone, OffsetsFollowTheRule) {
  const auto offset = [](const TimeZone& zone, std::string_view at) {
    return zone.offset_at(*parse_time(at)).count();
  };
  const TimeZone madrid = by_rule("CET-1CEST,M3.5.0,M10.5.0/3");
  EXPECT_EQ(offset(madrid, "2027-03-28T00:59:59Z"), 3600);
  EXPECT_EQ(offset(madrid, "2027-03-28T01:00:00Z"), 7200);
  EXPECT_EQ(offset(madrid, "2027-10-31T00:59:59Z"), 7200);
  EXPECT_EQ(offset(madrid, "2027-10-31T01:00:00Z"), 3600);
  // South of the equator daylight saving is over New Year.
  const TimeZone lord_howe = by_rule("<+1030>-10:30<+11>-11,M10.1.0,M4.1.0");
  EXPECT_EQ(offset(lord_howe, "2027-01-15T00:00:00Z"), 39600);
  EXPECT_EQ(offset(lord_howe, "2027-07-15T00:00:00Z"), 37800);
  EXPECT_EQ(offset(by_rule("IST-5:30"), "2027-07-15T00:00:00Z"), 19800);
  EXPECT_EQ(offset(TimeZone::fixed(std::chrono::hours(-3)), "2027-07-15T00:00:00Z"), -10800);
  EXPECT_EQ(offset(TimeZone(), "2027-07-15T00:00:00Z"), 0);
}

TEST(TimeZone, DamagedDataIsRefused) {
  EXPECT_FALSE(TimeZone::parse_tzif(""));
  EXPECT_FALSE(TimeZone::parse_tzif("TZif2"));
  EXPECT_FALSE(TimeZone::parse_tzif(std::string(200, 'x')));
  std::string huge = "TZif2" + std::string(15, '\0') + std::string(24, '\xff');
  EXPECT_FALSE(TimeZone::parse_tzif(huge + std::string(200, '\0')));
}

}  // namespace
}  // namespace skiff
