#include "features/training/engine/backoff_limit.h"

#include <gtest/gtest.h>

namespace skiff::training {
namespace {

struct BackoffLimitCase {
  const char* sentence;
  std::optional<std::int64_t> limit;
  RestartCount count;
  bool exceeded;
};

class BackoffLimit : public ::testing::TestWithParam<BackoffLimitCase> {};

TEST_P(BackoffLimit, Decides) {
  EXPECT_EQ(backoff_exceeded(GetParam().limit, GetParam().count), GetParam().exceeded)
      << GetParam().sentence;
}

INSTANTIATE_TEST_SUITE_P(
    All, BackoffLimit,
    ::testing::Values(
        BackoffLimitCase{"no limit allows any number of restarts",
                         {},
                         {.replaced = 1'000, .to_replace = 1, .in_place = 1'000},
                         false},
        BackoffLimitCase{
            "the last allowed replacement is made", 3, {.replaced = 2, .to_replace = 1}, false},
        BackoffLimitCase{"one more is not", 3, {.replaced = 3, .to_replace = 1}, true},
        BackoffLimitCase{
            "a job at its limit goes on while nothing fails", 3, {.replaced = 3}, false},
        BackoffLimitCase{"several failures at once may exceed it together",
                         3,
                         {.replaced = 1, .to_replace = 3},
                         true},
        BackoffLimitCase{"a limit of none allows no replacement", 0, {.to_replace = 1}, true},
        BackoffLimitCase{"a limit of none lets a job run that never fails", 0, {}, false},
        BackoffLimitCase{"a limit of none allows no restart in place", 0, {.in_place = 1}, true},
        BackoffLimitCase{
            "a restart in place short of the limit is allowed", 3, {.in_place = 2}, false},
        BackoffLimitCase{
            "the restart in place that reaches the limit ends the job", 3, {.in_place = 3}, true},
        BackoffLimitCase{
            "a limit of one is reached by one restart in place", 1, {.in_place = 1}, true},
        BackoffLimitCase{"replacements and restarts in place are counted apart",
                         3,
                         {.replaced = 2, .to_replace = 1, .in_place = 2},
                         false}));

}  // namespace
}  // namespace skiff::training
