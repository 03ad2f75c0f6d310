#include "schema/field_set.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace skiff::schema {
namespace {

FieldSet set_of(std::string_view text) {
  const auto parsed = json::parse(text);
  EXPECT_TRUE(parsed) << text;
  auto set = FieldSet::from_json(*parsed);
  EXPECT_TRUE(set) << text;
  return set ? std::move(*set) : FieldSet();
}

std::string text_of(const FieldSet& set) { return json::serialize(set.to_json()); }

std::string paths_of(const FieldSet& set) {
  std::string out;
  set.each([&](const FieldSet::Path& path) { out += FieldSet::text(path) + " "; });
  return out;
}

TEST(PathElement, ReadsAndWritesEverySort) {
  for (const std::string_view text :
       {R"(f:spec)", R"(f:a.b/c)", R"(f:)", R"(k:{"name":"c"})",
        R"(k:{"containerPort":80,"protocol":"TCP"})", R"(v:"example.org/f")", R"(v:1)", R"(v:1.5)",
        R"(v:true)", R"(i:0)", R"(i:12)", R"(v:"a\u0026b")"}) {
    const auto element = PathElement::parse(text);
    ASSERT_TRUE(element) << text;
    EXPECT_EQ(element->encoded(), text);
  }
}

TEST(PathElement, SortsTheKeysOfAnItem) {
  EXPECT_EQ(PathElement::parse(R"(k:{"protocol":"TCP","port":80})")->encoded(),
            R"(k:{"port":80,"protocol":"TCP"})");
}

TEST(PathElement, ReadsAsPeopleSayIt) {
  EXPECT_EQ(PathElement::parse("f:spec")->text(), ".spec");
  EXPECT_EQ(PathElement::parse(R"(k:{"level":1,"side":"port"})")->text(),
            R"([level=1,side="port"])");
  EXPECT_EQ(PathElement::parse(R"(v:"x")")->text(), R"([="x"])");
  EXPECT_EQ(PathElement::parse("i:3")->text(), "[3]");
}

TEST(PathElement, RefusesWhatIsNone) {
  for (const std::string_view text :
       {"", "f", "spec", "k:", "k:[1]", "k:{", "v:", "v:x", "i:", "i:x", "i:1x"}) {
    EXPECT_FALSE(PathElement::parse(text)) << text;
  }
  EXPECT_EQ(PathElement::parse("z:later").error().code, Code::kNotFound);
}

TEST(PathElement, OrdersFieldsThenKeysThenValuesThenPlaces) {
  const std::vector<std::string_view> sorted = {"f:a",          "f:b",
                                                R"(k:{"a":1})", R"(k:{"a":1,"b":1})",
                                                R"(k:{"a":2})", R"(k:{"a":"x"})",
                                                "k:{\"b\":0}",  "v:1",
                                                "v:1.5",        "v:2",
                                                "v:10",         R"(v:"1")",
                                                "v:false",      "v:true",
                                                "i:2",          "i:10"};
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    for (std::size_t j = 0; j < sorted.size(); ++j) {
      const auto order = *PathElement::parse(sorted[i]) <=> *PathElement::parse(sorted[j]);
      EXPECT_EQ(order < 0, i < j) << sorted[i] << " " << sorted[j];
      EXPECT_EQ(order == 0, i == j) << sorted[i] << " " << sorted[j];
    }
  }
  EXPECT_EQ(*PathElement::parse("v:1"), *PathElement::parse("v:1.0"));
}

TEST(FieldSet, KeepsTheTextOfTheRealServer) {
  for (const std::string_view text :
       {R"({})", R"({"f:data":{"f:x":{},"f:y":{}},"f:metadata":{"f:labels":{"f:l":{}}}})",
        R"({"f:data":{}})", R"({"f:metadata":{"f:finalizers":{".":{},"v:\"example.org/f\"":{}}}})",
        R"({"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{},"f:ports":{".":{},)"
        R"("k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:protocol":{}}}}}}})"}) {
    EXPECT_EQ(text_of(set_of(text)), text);
  }
}

TEST(FieldSet, SortsWhatComesUnsortedAndLeavesOutWhatIsUnknown) {
  EXPECT_EQ(text_of(set_of(R"({"f:b":{},"z:later":{"f:x":{}},"f:a":{"f:y":{},".":{}}})")),
            R"({"f:a":{".":{},"f:y":{}},"f:b":{}})");
  EXPECT_EQ(text_of(set_of(R"({"f:a":null})")), R"({"f:a":{}})");
}

TEST(FieldSet, RefusesWhatIsNoSet) {
  for (const std::string_view text :
       {"[]", "1", R"({"a":{}})", R"({"f:a":1})", R"({"f:a":{"k:":{}}})"}) {
    EXPECT_FALSE(FieldSet::from_json(*json::parse(text))) << text;
  }
  EXPECT_TRUE(FieldSet::from_json(nullptr)->empty());
}

TEST(FieldSet, CountsAndFindsPaths) {
  const FieldSet set = set_of(R"({"f:a":{".":{},"f:b":{}},"f:c":{"f:d":{}}})");
  EXPECT_EQ(set.size(), 3U);
  EXPECT_TRUE(set.contains(PathElement::field("a")));
  EXPECT_FALSE(set.contains(PathElement::field("c")));
  EXPECT_TRUE(set.contains({PathElement::field("c"), PathElement::field("d")}));
  EXPECT_FALSE(set.contains({PathElement::field("c"), PathElement::field("x")}));
  EXPECT_FALSE(set.contains(std::vector<PathElement>()));
  EXPECT_NE(set.below(PathElement::field("c")), nullptr);
  EXPECT_EQ(set.below(PathElement::field("x")), nullptr);
}

TEST(FieldSet, NamesPathsOfALevelBeforeThoseBelow) {
  EXPECT_EQ(paths_of(set_of(R"({"f:a":{".":{},"f:b":{"f:x":{}}},"f:c":{}})")), ".a .c .a.b.x ");
}

TEST(FieldSet, IsMadeOfPaths) {
  EXPECT_EQ(text_of(FieldSet::of({{"metadata", "name"}, {"metadata"}, {"kind"}})),
            R"({"f:kind":{},"f:metadata":{".":{},"f:name":{}}})");
}

struct Sums {
  std::string_view a, b, united, common, without, without_trees;
};

TEST(FieldSet, AddsAndTakesAway) {
  const Sums cases[] = {
      {R"({"f:a":{}})", R"({"f:b":{}})", R"({"f:a":{},"f:b":{}})", "{}", R"({"f:a":{}})",
       R"({"f:a":{}})"},
      {R"({"f:a":{}})", R"({"f:a":{}})", R"({"f:a":{}})", R"({"f:a":{}})", "{}", "{}"},
      {R"({"f:a":{"f:b":{}}})", R"({"f:a":{}})", R"({"f:a":{".":{},"f:b":{}}})", "{}",
       R"({"f:a":{"f:b":{}}})", "{}"},
      {R"({"f:a":{".":{},"f:b":{},"f:c":{}}})", R"({"f:a":{".":{},"f:b":{}}})",
       R"({"f:a":{".":{},"f:b":{},"f:c":{}}})", R"({"f:a":{".":{},"f:b":{}}})",
       R"({"f:a":{"f:c":{}}})", "{}"},
      {R"({"f:a":{".":{},"f:b":{},"f:c":{}}})", R"({"f:a":{"f:b":{}}})",
       R"({"f:a":{".":{},"f:b":{},"f:c":{}}})", R"({"f:a":{"f:b":{}}})",
       R"({"f:a":{".":{},"f:c":{}}})", R"({"f:a":{".":{},"f:c":{}}})"},
      {"{}", R"({"f:a":{}})", R"({"f:a":{}})", "{}", "{}", "{}"},
      {R"({"f:a":{}})", "{}", R"({"f:a":{}})", "{}", R"({"f:a":{}})", R"({"f:a":{}})"},
      {R"({"f:l":{"v:1":{},"v:2":{}}})", R"({"f:l":{"v:2":{},"v:3":{}}})",
       R"({"f:l":{"v:1":{},"v:2":{},"v:3":{}}})", R"({"f:l":{"v:2":{}}})", R"({"f:l":{"v:1":{}}})",
       R"({"f:l":{"v:1":{}}})"},
  };
  for (const Sums& c : cases) {
    const FieldSet a = set_of(c.a), b = set_of(c.b);
    EXPECT_EQ(text_of(a.united(b)), c.united) << c.a << c.b;
    EXPECT_EQ(text_of(a.common(b)), c.common) << c.a << c.b;
    EXPECT_EQ(a.meets(b), c.common != "{}") << c.a << c.b;
    EXPECT_EQ(text_of(a.without(b)), c.without) << c.a << c.b;
    EXPECT_EQ(text_of(a.without_trees(b)), c.without_trees) << c.a << c.b;
  }
}

FieldSet random_set(Random& random) {
  FieldSet out;
  const std::uint64_t paths = random.below(12);
  for (std::uint64_t i = 0; i < paths; ++i) {
    std::vector<PathElement> path;
    const std::uint64_t depth = 1 + random.below(4);
    for (std::uint64_t d = 0; d < depth; ++d) {
      const std::string letter(1, static_cast<char>('a' + random.below(3)));
      switch (random.below(4)) {
        case 0:
          path.push_back(PathElement::key({{"n", json::string(letter)}}));
          break;
        case 1:
          path.push_back(PathElement::value(static_cast<std::int64_t>(random.below(3))));
          break;
        default:
          path.push_back(PathElement::field(letter));
      }
    }
    out.insert(path);
  }
  return out;
}

TEST(FieldSet, KeepsTheLawsOfSets) {
  Random random(11);
  for (int round = 0; round < 500; ++round) {
    const FieldSet a = random_set(random), b = random_set(random), c = random_set(random);
    ASSERT_EQ(*FieldSet::from_json(a.to_json()), a) << text_of(a);
    ASSERT_EQ(a.united(b), b.united(a));
    ASSERT_EQ(a.common(b), b.common(a));
    ASSERT_EQ(a.united(b).united(c), a.united(b.united(c)));
    ASSERT_EQ(a.without(b).united(a.common(b)), a);
    ASSERT_TRUE(a.without(b).common(b).empty());
    ASSERT_EQ(a.united(b).size() + a.common(b).size(), a.size() + b.size());
    ASSERT_EQ(a.meets(b), !a.common(b).empty());
    ASSERT_EQ(a.without(b).without_trees(b), a.without_trees(b));
    std::size_t count = 0;
    a.each([&](const FieldSet::Path&) { ++count; });
    ASSERT_EQ(count, a.size());
  }
}

}  // namespace
}  // namespace skiff::schema
