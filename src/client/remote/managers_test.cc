#include "client/remote/managers.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace skiff::client {
namespace {

TEST(Managers, AreLeftOutOfAnObject) {
  struct Case {
    std::string_view name, text, left;
  };
  const Case cases[] = {
      {"last", R"({"metadata":{"name":"a","managedFields":[{"f":{}}]},"spec":1})",
       R"({"metadata":{"name":"a"},"spec":1})"},
      {"first", R"({"metadata":{"managedFields":[],"name":"a"}})", R"({"metadata":{"name":"a"}})"},
      {"between", R"({"metadata":{"a":1,"managedFields":[[1],[2]],"b":2}})",
       R"({"metadata":{"a":1,"b":2}})"},
      {"alone", R"({"metadata":{"managedFields":[1]}})", R"({"metadata":{}})"},
      {"with brackets and quotes in strings",
       R"({"metadata":{"managedFields":[{"k\"]":"}]\\"}],"n":"]"}})", R"({"metadata":{"n":"]"}})"},
      {"after others that have objects",
       R"({"kind":"Pod","metadata":{"labels":{"x":"y"},"managedFields":[1]}})",
       R"({"kind":"Pod","metadata":{"labels":{"x":"y"}}})"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(without_managers(c.text, kObject), c.left);
    EXPECT_TRUE(json::parse(c.left));
    const std::string event = R"({"type":"ADDED","object":)" + std::string(c.text) + "}";
    EXPECT_EQ(without_managers(event, kEvent),
              R"({"type":"ADDED","object":)" + std::string(c.left) + "}");
  }
}

TEST(Managers, ThatAreOthersStay) {
  for (const std::string_view text : {
           R"({"spec":{"managedFields":[1]}})",
           R"({"metadata":{"labels":{"managedFields":[1]}}})",
           R"({"metadata":{"name":"a"},"spec":{"managedFields":[1]}})",
           R"({"template":{"metadata":{"managedFields":[1]}}})",
           R"({"metadata":{"x\"managedFields":[1]}})",
           R"({"metadata":{"note":"\"managedFields\":[1]"}})",
           R"({"metadata":{"managedFields":"none"}})",
           R"({"managedFields":[1]})",
       }) {
    ASSERT_TRUE(json::parse(text)) << text;
    EXPECT_EQ(without_managers(text, kObject), text);
  }
}

TEST(Managers, OfTextThatEndsTooSoonStay) {
  const std::string whole = R"({"metadata":{"managedFields":[{"a\\":"]"}],"name":"a"}})";
  const std::size_t array_end = whole.find("],\"name\"") + 1;
  for (std::size_t size = 0; size <= array_end; ++size) {
    const std::string_view text = std::string_view(whole).substr(0, size);
    EXPECT_EQ(without_managers(text, kObject), text);
  }
  EXPECT_EQ(without_managers("", kObject), "");
  EXPECT_EQ(without_managers("no JSON at all", kEvent), "no JSON at all");
  EXPECT_EQ(without_managers("]}]}\"", kEvent), "]}]}\"");
}

}  // namespace
}  // namespace skiff::client
