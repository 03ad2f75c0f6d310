#include "base/selectors.h"

#include <gtest/gtest.h>

namespace skiff {
namespace {

TEST(LabelSelector, Matches) {
  const json::object labels{{"app", "web"}, {"tier", "front"}, {"n", "5"}, {"e", ""}};
  struct Case {
    const char* selector;
    bool matches;
  };
  const Case cases[] = {
      {"", true},
      {"app=web", true},
      {"app==web,tier=front", true},
      {"app = web , tier != back", true},
      {"app!=web", false},
      {"missing!=web", true},
      {"app in (db, web)", true},
      {"app in (db)", false},
      {"app notin (db)", true},
      {"missing notin (db)", true},
      {"missing in (db)", false},
      {"app", true},
      {"!app", false},
      {"! missing", true},
      {"n>4", true},
      {"n>5", false},
      {"n<6,n > 1", true},
      {"app>1", false},
      {"e=", true},
      {"e in ()", true},
      {"app in (,web)", true},
  };
  for (const Case& c : cases) {
    const auto got = LabelSelector::parse(c.selector);
    ASSERT_TRUE(got) << c.selector << ": " << got.error().message;
    EXPECT_EQ(got->matches(labels), c.matches) << c.selector;
    const auto again = LabelSelector::parse(got->text());
    ASSERT_TRUE(again) << got->text();
    EXPECT_EQ(again->matches(labels), c.matches) << got->text();
  }
}

TEST(LabelSelector, RefusesWhatItCannotRead) {
  for (const char* text : {"a in", "a in (x", "=x", "a b", "a,,b", "a,", "-a=b", "a=b c", "a in x",
                           "a=!", "a>b", "x/y/z=1", "!", "a=-b"}) {
    const auto got = LabelSelector::parse(text);
    ASSERT_FALSE(got) << text;
    EXPECT_EQ(got.error().code, Code::kBadRequest) << text;
  }
}

TEST(LabelSelector, SaysWhatItFoundAndWhatItExpected) {
  struct Case {
    const char* text;
    const char* message;
  };
  for (const Case& c : {
           Case{"a b",
                "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, "
                "lt"},
           {"a===b", "unable to parse requirement: found '=', expected: identifier"},
           {"a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"},
           {"a in x", "unable to parse requirement: found 'x' expected: '('"},
           {"a in (x y)", "unable to parse requirement: found 'y', expected: ',' or ')'"},
           {"a in (x,=)", "unable to parse requirement: found '=', expected: ',', or identifier"},
           {"!", "unable to parse requirement: found '', expected: identifier"},
           {"!a=b", "found '=', expected: ',' or 'end of string'"},
           {"a,,b", "found ',', expected: identifier after ','"},
           {"=x", "found '=', expected: !, identifier, or 'end of string'"},
           {"a<",
            "unable to parse requirement: values[0]: Invalid value: \"\": for 'Gt', 'Lt' "
            "operators, the value must be an integer"},
           {"a>b",
            "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' "
            "operators, the value must be an integer"},
       }) {
    const auto got = LabelSelector::parse(c.text);
    ASSERT_FALSE(got) << c.text;
    EXPECT_EQ(got.error().message, c.message) << c.text;
  }
}

TEST(LabelSelector, TakesItsOwnWordsAsKeysAndValues) {
  const json::object labels{{"in", "notin"}};
  for (const char* text : {"in", "in=notin", "in in (notin)", "in notin (in)"}) {
    const auto got = LabelSelector::parse(text);
    ASSERT_TRUE(got) << text << ": " << got.error().message;
    EXPECT_TRUE(got->matches(labels)) << text;
  }
}

TEST(LabelSelector, FromObject) {
  const auto s = LabelSelector::from_object(*json::parse(
      R"({"matchLabels":{"a":"b"},"matchExpressions":[{"key":"c","operator":"In","values":["d"]},
          {"key":"e","operator":"DoesNotExist"}]})"));
  ASSERT_TRUE(s);
  EXPECT_EQ(s->text(), "a=b,c=d,!e");
  EXPECT_TRUE(s->matches_object(*json::parse(R"({"metadata":{"labels":{"a":"b","c":"d"}}})")));
  EXPECT_FALSE(s->matches_object(*json::parse(R"({"metadata":{}})")));
  EXPECT_FALSE(LabelSelector::from_object(
      *json::parse(R"({"matchExpressions":[{"key":"c","operator":"Near"}]})")));
  EXPECT_FALSE(LabelSelector::from_object(
      *json::parse(R"({"matchExpressions":[{"key":"c","operator":"In"}]})")));
}

TEST(FieldSelector, Matches) {
  const auto pod = json::parse(
      R"({"metadata":{"name":"p"},"spec":{"nodeName":"n","hostNetwork":true},"status":{}})");
  struct Case {
    const char* selector;
    bool matches;
  };
  const Case cases[] = {
      {"", true},
      {"metadata.name=p", true},
      {"metadata.name==p,spec.nodeName!=m", true},
      {"metadata.name!=p", false},
      {"status.phase=", true},
      {"status.phase!=Running", true},
      {"spec.hostNetwork=true", true},
  };
  for (const Case& c : cases) {
    const auto got = FieldSelector::parse(c.selector);
    ASSERT_TRUE(got) << c.selector;
    EXPECT_EQ(got->matches_object(*pod), c.matches) << c.selector;
  }
  EXPECT_FALSE(FieldSelector::parse("metadata.name"));
  EXPECT_EQ(FieldSelector::parse("=x")->terms().size(), 1u) << "for the caller to refuse";
  EXPECT_TRUE(FieldSelector::parse("=")->empty());
  const auto escaped = FieldSelector::parse(R"(a=x\,y\=\\z,b!=)");
  ASSERT_TRUE(escaped);
  ASSERT_EQ(escaped->terms().size(), 2u);
  EXPECT_EQ(escaped->terms()[0].value, R"(x,y=\z)");
  EXPECT_TRUE(escaped->terms()[1].negated);
  EXPECT_EQ(FieldSelector::parse(R"(a=\b)").error().message,
            R"(invalid field selector: invalid escape sequence: \b)");
  EXPECT_EQ(FieldSelector::parse("a=b=c").error().message,
            "invalid field selector: unescaped character in value: 61");
}

}  // namespace
}  // namespace skiff
