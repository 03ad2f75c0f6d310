#include "features/training/engine/active_deadline.h"

#include <gtest/gtest.h>

namespace skiff::training {
namespace {

using std::chrono::seconds;

constexpr Time kActiveDeadlineNoon{std::chrono::hours{12}};

struct ActiveDeadlineCase {
  const char* sentence;
  std::optional<seconds> limit;
  std::optional<Time> started_at;
  Deadline expected;
};

class ActiveDeadline : public ::testing::TestWithParam<ActiveDeadlineCase> {};

TEST_P(ActiveDeadline, Decides) {
  EXPECT_EQ(check_deadline(GetParam().limit, GetParam().started_at, kActiveDeadlineNoon),
            GetParam().expected)
      << GetParam().sentence;
}

INSTANTIATE_TEST_SUITE_P(
    All, ActiveDeadline,
    ::testing::Values(ActiveDeadlineCase{"a job without a deadline runs as long as it likes",
                                         {},
                                         kActiveDeadlineNoon - seconds{9'999},
                                         {}},
                      ActiveDeadlineCase{
                          "a job that has not started has all of its time", seconds{60}, {}, {}},
                      ActiveDeadlineCase{"before the deadline we come back exactly when it is due",
                                         seconds{60},
                                         kActiveDeadlineNoon - seconds{20},
                                         {.look_again_after = seconds{40}}},
                      ActiveDeadlineCase{"at the deadline it is exceeded",
                                         seconds{60},
                                         kActiveDeadlineNoon - seconds{60},
                                         {.exceeded = true}},
                      ActiveDeadlineCase{"and ever after",
                                         seconds{60},
                                         kActiveDeadlineNoon - seconds{6'000},
                                         {.exceeded = true}},
                      ActiveDeadlineCase{"a deadline of nothing is exceeded at once",
                                         seconds{0},
                                         kActiveDeadlineNoon,
                                         {.exceeded = true}},
                      ActiveDeadlineCase{"a start in the future only makes us wait longer",
                                         seconds{60},
                                         kActiveDeadlineNoon + seconds{5},
                                         {.look_again_after = seconds{65}}}));

}  // namespace
}  // namespace skiff::training
