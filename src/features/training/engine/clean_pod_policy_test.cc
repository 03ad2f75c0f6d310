#include "features/training/engine/clean_pod_policy.h"

#include <gtest/gtest.h>

namespace skiff::training {
namespace {

struct Case {
  const char* sentence;
  CleanPodPolicy policy;
  Phase phase;
  bool cleans;
};

class CleanPods : public ::testing::TestWithParam<Case> {};

TEST_P(CleanPods, Decides) {
  EXPECT_EQ(cleans_up(GetParam().policy, GetParam().phase), GetParam().cleans)
      << GetParam().sentence;
}

INSTANTIATE_TEST_SUITE_P(
    All, CleanPods,
    ::testing::Values(
        Case{"None keeps a running pod", CleanPodPolicy::kNone, Phase::kRunning, false},
        Case{"None keeps a waiting pod", CleanPodPolicy::kNone, Phase::kPending, false},
        Case{"None keeps a failed pod", CleanPodPolicy::kNone, Phase::kFailed, false},
        Case{"Running deletes a running pod", CleanPodPolicy::kRunning, Phase::kRunning, true},
        Case{"Running deletes a waiting pod, which would run later", CleanPodPolicy::kRunning,
             Phase::kPending, true},
        Case{"Running keeps a pod that succeeded, for its logs", CleanPodPolicy::kRunning,
             Phase::kSucceeded, false},
        Case{"Running keeps a pod that failed, for its logs", CleanPodPolicy::kRunning,
             Phase::kFailed, false},
        Case{"All deletes a running pod", CleanPodPolicy::kAll, Phase::kRunning, true},
        Case{"All deletes a pod that succeeded", CleanPodPolicy::kAll, Phase::kSucceeded, true},
        Case{"All deletes a pod that failed", CleanPodPolicy::kAll, Phase::kFailed, true}));

}  // namespace
}  // namespace skiff::training
