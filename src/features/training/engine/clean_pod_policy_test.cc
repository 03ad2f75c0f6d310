#include "features/training/engine/clean_pod_policy.h"

#include <gtest/gtest.h>

namespace skiff::training {
namespace {

struct CleanPodPolicyCase {
  const char* sentence;
  CleanPodPolicy policy;
  Phase phase;
  bool cleans;
};

class CleanPods : public ::testing::TestWithParam<CleanPodPolicyCase> {};

TEST_P(CleanPods, Decides) {
  EXPECT_EQ(cleans_up(GetParam().policy, GetParam().phase), GetParam().cleans)
      << GetParam().sentence;
}

INSTANTIATE_TEST_SUITE_P(
    All, CleanPods,
    ::testing::Values(CleanPodPolicyCase{"None keeps a running pod", CleanPodPolicy::kNone,
                                         Phase::kRunning, false},
                      CleanPodPolicyCase{"None keeps a waiting pod", CleanPodPolicy::kNone,
                                         Phase::kPending, false},
                      CleanPodPolicyCase{"None keeps a failed pod", CleanPodPolicy::kNone,
                                         Phase::kFailed, false},
                      CleanPodPolicyCase{"Running deletes a running pod", CleanPodPolicy::kRunning,
                                         Phase::kRunning, true},
                      CleanPodPolicyCase{"Running deletes a waiting pod, which would run later",
                                         CleanPodPolicy::kRunning, Phase::kPending, true},
                      CleanPodPolicyCase{"Running keeps a pod that succeeded, for its logs",
                                         CleanPodPolicy::kRunning, Phase::kSucceeded, false},
                      CleanPodPolicyCase{"Running keeps a pod that failed, for its logs",
                                         CleanPodPolicy::kRunning, Phase::kFailed, false},
                      CleanPodPolicyCase{"All deletes a running pod", CleanPodPolicy::kAll,
                                         Phase::kRunning, true},
                      CleanPodPolicyCase{"All deletes a pod that succeeded", CleanPodPolicy::kAll,
                                         Phase::kSucceeded, true},
                      CleanPodPolicyCase{"All deletes a pod that failed", CleanPodPolicy::kAll,
                                         Phase::kFailed, true}));

}  // namespace
}  // namespace skiff::training
