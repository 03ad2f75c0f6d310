#include "features/training/engine/active_deadline.h"

#include <gtest/gtest.h>

namespace skiff::training {
namespace {

using std::chrono::seconds;

constexpr Time kNoon{std::chrono::hours{12}};

struct Case {
  const char* sentence;
  std::optional<seconds> limit;
  std::optional<Time> started_at;
  Deadline expected;
};

class ActiveDeadline : public ::testing::TestWithParam<Case> {};

TEST_P(ActiveDeadline, Decides) {
  EXPECT_EQ(check_deadline(GetParam().limit, GetParam().started_at, kNoon), GetParam().expected)
      << GetParam().sentence;
}

INSTANTIATE_TEST_SUITE_P(
    All, ActiveDeadline,
    ::testing::Values(
        Case{"a job without a deadline runs as long as it likes", {}, kNoon - seconds{9'999}, {}},
        Case{"a job that has not started has all of its time", seconds{60}, {}, {}},
        Case{"before the deadline we come back exactly when it is due",
             seconds{60},
             kNoon - seconds{20},
             {.look_again_after = seconds{40}}},
        Case{
            "at the deadline it is exceeded", seconds{60}, kNoon - seconds{60}, {.exceeded = true}},
        Case{"and ever after", seconds{60}, kNoon - seconds{6'000}, {.exceeded = true}},
        Case{"a deadline of nothing is exceeded at once", seconds{0}, kNoon, {.exceeded = true}},
        Case{"a start in the future only makes us wait longer",
             seconds{60},
             kNoon + seconds{5},
             {.look_again_after = seconds{65}}}));

}  // namespace
}  // namespace skiff::training
