#include "features/training/engine/retention.h"

#include <gtest/gtest.h>

namespace skiff::training {
namespace {

using std::chrono::seconds;

constexpr Time kRetentionNoon{std::chrono::hours{12}};

struct RetentionCase {
  const char* sentence;
  std::optional<seconds> ttl;
  std::optional<Time> completed_at;
  Retention expected;
};

class RetentionPolicy : public ::testing::TestWithParam<RetentionCase> {};

TEST_P(RetentionPolicy, Decides) {
  EXPECT_EQ(check_retention(GetParam().ttl, GetParam().completed_at, kRetentionNoon),
            GetParam().expected)
      << GetParam().sentence;
}

INSTANTIATE_TEST_SUITE_P(
    All, RetentionPolicy,
    ::testing::Values(
        RetentionCase{"a job without a TTL is kept", {}, kRetentionNoon - seconds{1'000'000}, {}},
        RetentionCase{"a job whose completion time was lost is kept", seconds{0}, {}, {}},
        RetentionCase{
            "a TTL of nothing deletes at once", seconds{0}, kRetentionNoon, {.delete_now = true}},
        RetentionCase{"a job past its TTL is deleted",
                      seconds{60},
                      kRetentionNoon - seconds{61},
                      {.delete_now = true}},
        RetentionCase{"a job exactly at its TTL is deleted",
                      seconds{60},
                      kRetentionNoon - seconds{60},
                      {.delete_now = true}},
        RetentionCase{"before that we come back exactly when it is due",
                      seconds{60},
                      kRetentionNoon - seconds{20},
                      {.look_again_after = seconds{40}}},
        RetentionCase{"a clock that ran ahead when the job ended only makes us wait longer",
                      seconds{60},
                      kRetentionNoon + seconds{5},
                      {.look_again_after = seconds{65}}}));

}  // namespace
}  // namespace skiff::training
