#include "features/training/engine/retention.h"

#include <gtest/gtest.h>

namespace skiff::training {
namespace {

using std::chrono::seconds;

constexpr Time kNoon{std::chrono::hours{12}};

struct Case {
  const char* sentence;
  std::optional<seconds> ttl;
  std::optional<Time> completed_at;
  Retention expected;
};

class RetentionPolicy : public ::testing::TestWithParam<Case> {};

TEST_P(RetentionPolicy, Decides) {
  EXPECT_EQ(check_retention(GetParam().ttl, GetParam().completed_at, kNoon), GetParam().expected)
      << GetParam().sentence;
}

INSTANTIATE_TEST_SUITE_P(
    All, RetentionPolicy,
    ::testing::Values(
        Case{"a job without a TTL is kept", {}, kNoon - seconds{1'000'000}, {}},
        Case{"a job whose completion time was lost is kept", seconds{0}, {}, {}},
        Case{"a TTL of nothing deletes at once", seconds{0}, kNoon, {.delete_now = true}},
        Case{"a job past its TTL is deleted",
             seconds{60},
             kNoon - seconds{61},
             {.delete_now = true}},
        Case{"a job exactly at its TTL is deleted",
             seconds{60},
             kNoon - seconds{60},
             {.delete_now = true}},
        Case{"before that we come back exactly when it is due",
             seconds{60},
             kNoon - seconds{20},
             {.look_again_after = seconds{40}}},
        Case{"a clock that ran ahead when the job ended only makes us wait longer",
             seconds{60},
             kNoon + seconds{5},
             {.look_again_after = seconds{65}}}));

}  // namespace
}  // namespace skiff::training
