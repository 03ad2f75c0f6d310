#include <gtest/gtest.h>

#include <cstdlib>

#include "base/http.h"
#include "base/json.h"
#include "base/random.h"
#include "base/time.h"

namespace skiff {
namespace {

using namespace std::chrono_literals;

TEST(Json, ErrorSaysWhere) {
  const auto bad = json::parse("{\"a\": tru}");
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().message.find("byte"), std::string::npos);
  EXPECT_FALSE(json::parse("{} x"));
  EXPECT_TRUE(json::parse("{} \n"));
}

TEST(Json, DepthIsBounded) { EXPECT_FALSE(json::parse(std::string(100'000, '['))); }

TEST(Json, ANumberTooLargeForADoubleIsRefused) {
  for (const std::string text : {"1e999", R"({"a":[-1E400]})", "[1.5e309]"}) {
    EXPECT_FALSE(json::parse(text)) << text;
  }
  EXPECT_FALSE(json::parse(std::string(400, '9')));
  EXPECT_TRUE(json::parse("[1e308, 1e-400, \"1e999\"]"));
  EXPECT_TRUE(json::parse("\"" + std::string(400, '9') + "\""));
}

TEST(Json, NumbersAreReadToTheLastPlace) {
  for (const char* text : {"-3e50", "0.1", "2.2250738585072014e-308", "1.7976931348623157e308",
                           "123456789.123456789", "5e-324", "12345678901234567890123"}) {
    const auto read = json::parse(text);
    ASSERT_TRUE(read) << text;
    EXPECT_EQ(read->as_double(), std::strtod(text, nullptr)) << text;
    const auto again = json::parse(json::serialize(*read));
    ASSERT_TRUE(again) << text;
    EXPECT_EQ(*again, *read) << "it does not drift";
  }
  EXPECT_EQ(json::parse("1e-400")->as_double(), 0);
  EXPECT_EQ(json::parse("-9223372036854775808")->as_int64(), INT64_MIN);
  EXPECT_EQ(json::parse("18446744073709551615")->as_uint64(), UINT64_MAX);
}

TEST(Json, WhatAnObjectGivesTwiceCanBePutTogether) {
  const auto got = json::parse_joining(
      R"({"a":{"x":1,"y":{"z":1}},"b":[1],"a":{"x":2,"y":{"w":2}},"b":[2],"c":{"k":1},"c":null})");
  ASSERT_TRUE(got);
  EXPECT_EQ(json::serialize(*got), R"({"a":{"x":2,"y":{"z":1,"w":2}},"b":[2],"c":null})");
  const char* once = R"({"l":[{"s":"a\"b"},true,-1,18446744073709551615,1.5E0,null,[]],"o":{}})";
  EXPECT_EQ(json::serialize(*json::parse_joining(once)), once);
  EXPECT_FALSE(json::parse_joining("{"));
}

TEST(Json, WhatIsNoCharacterCanBeReplaced) {
  struct Case {
    const char* name;
    std::string text, result;
  };
  const Case cases[] = {
      {"half a pair", R"("\ud800")", R"("\ufffd")"},
      {"the other half", R"("a\udc00b")", R"("a\ufffdb")"},
      {"two first halves", R"("\ud800\ud800\udc00")", R"("\ufffd\ud800\udc00")"},
      {"a pair", R"("\ud83d\ude00")", R"("\ud83d\ude00")"},
      {"an escaped backslash", R"("\\ud800")", R"("\\ud800")"},
      {"a byte that is no text", "\"\xff\"", R"("\ufffd")"},
      {"a long form", "\"\xC0\xAF\"", R"("\ufffd\ufffd")"},
      {"a surrogate in bytes", "\"\xED\xA0\x80\"", R"("\ufffd\ufffd\ufffd")"},
      {"a cut character", "\"\xE2\x82", "\"\\ufffd\\ufffd"},
      {"good text", "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"",
       "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\""},
  };
  for (const Case& c : cases) EXPECT_EQ(json::with_replacements(c.text), c.result) << c.name;
}

TEST(Json, SetMakesTheWay) {
  json::value v;
  json::set(v, {"metadata", "labels", "a.b/c"}, "x");
  EXPECT_EQ(json::serialize(v), R"({"metadata":{"labels":{"a.b/c":"x"}}})");
  EXPECT_EQ(json::get_string(v, {"metadata", "labels", "a.b/c"}), "x");
}

TEST(Time, RoundTrip) {
  const auto t = parse_time("2026-11-15T20:02:55Z");
  ASSERT_TRUE(t);
  EXPECT_EQ(rfc3339(*t), "2026-11-15T20:02:55Z");
  EXPECT_EQ(parse_time("2026-11-15T22:02:55.5+02:00"), *t + 500ms);
  EXPECT_FALSE(parse_time("2026-13-15T20:02:55Z"));
  EXPECT_FALSE(parse_time("yesterday"));
}

TEST(Time, AgeAsKubectlPrintsIt) {
  EXPECT_EQ(age(45s), "45s");
  EXPECT_EQ(age(119s), "119s");
  EXPECT_EQ(age(200s), "3m20s");
  EXPECT_EQ(age(17min), "17m");
  EXPECT_EQ(age(5h + 12min), "5h12m");
  EXPECT_EQ(age(30h), "30h");
  EXPECT_EQ(age(76h), "3d4h");
}

TEST(Random, SameSeedSameRun) {
  Random a(7), b(7), c(8);
  EXPECT_EQ(a.uuid(), b.uuid());
  EXPECT_NE(a.uuid(), c.uuid());
  EXPECT_EQ(a.uuid()[14], '4');
  EXPECT_EQ(a.suffix(5).size(), 5u);
}

TEST(Url, EscapedSlashStaysInItsSegment) {
  const auto url = http::parse_url("/api/v1/pods/a%2Fb?watch=1&labelSelector=a%3Db+c");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->segments.back(), "a/b");
  EXPECT_TRUE(url->flag("watch"));
  EXPECT_EQ(url->param("labelSelector"), "a=b c");
}

TEST(Url, NothingLeavesTheTree) {
  EXPECT_FALSE(http::parse_url("/a/../b"));
  EXPECT_FALSE(http::parse_url("/a/%2e%2e/b"));
  EXPECT_FALSE(http::parse_url("/a%2"));
}

}  // namespace
}  // namespace skiff
