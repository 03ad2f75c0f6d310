#include "base/guarded.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>

#include "base/json.h"

namespace skiff {
namespace {

TEST(Guarded, gives_back_what_is_returned) {
  EXPECT_EQ(guarded([] { return 3; }).value_or(0), 3);
  EXPECT_TRUE(guarded([] {}).has_value());
  EXPECT_EQ(**guarded([] { return std::make_unique<int>(4); }), 4) << "what can only be moved, too";
}

TEST(Guarded, an_error_stays_the_error_it_is) {
  const Result<int> refused = guarded([]() -> Result<int> { return fail(Code::kConflict, "no"); });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kConflict);
  EXPECT_EQ(refused.error().message, "no");
}

TEST(Guarded, an_exception_becomes_an_error_that_says_what_it_said) {
  const auto broken = guarded([]() -> int { throw std::runtime_error("lost"); });
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().message, "a bug in Skiff: lost");
  EXPECT_EQ(broken.error().code, Code::kUnknown);
}

TEST(Guarded, so_does_a_look_at_json_that_is_not_what_it_was_taken_for) {
  const json::value text("x");
  const auto broken = guarded([&] { return text.as_object().size(); });
  ASSERT_FALSE(broken);
  EXPECT_TRUE(broken.error().message.starts_with("a bug in Skiff: ")) << broken.error().message;
  EXPECT_GT(broken.error().message.size(), std::string("a bug in Skiff: ").size());
}

TEST(Guarded, and_what_is_no_exception_of_the_library) {
  const auto broken = guarded([]() -> Result<int> { throw 3; });
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().message, "a bug in Skiff: an exception without words");
}

}  // namespace
}  // namespace skiff
