#include "features/training/engine/restart_policy.h"

#include <gtest/gtest.h>

#include "features/training/engine/replicas.h"

namespace skiff::training {
namespace {

struct RestartPolicyCase {
  const char* sentence;
  RestartPolicy policy;
  std::int64_t code;
  AfterFailure expected;
};

class AfterAFailure : public ::testing::TestWithParam<RestartPolicyCase> {};

TEST_P(AfterAFailure, Decides) {
  EXPECT_EQ(after_failure(GetParam().policy, GetParam().code), GetParam().expected)
      << GetParam().sentence;
}

INSTANTIATE_TEST_SUITE_P(
    All, AfterAFailure,
    ::testing::Values(
        RestartPolicyCase{"Always replaces whatever the code", RestartPolicy::kAlways, 1,
                          AfterFailure::kReplace},
        RestartPolicyCase{"OnFailure replaces whatever the code", RestartPolicy::kOnFailure, 1,
                          AfterFailure::kReplace},
        RestartPolicyCase{"OnFailure replaces what a signal ended", RestartPolicy::kOnFailure, 137,
                          AfterFailure::kReplace},
        RestartPolicyCase{"Never leaves it", RestartPolicy::kNever, 1, AfterFailure::kFinal},
        RestartPolicyCase{"Never leaves what a signal ended too", RestartPolicy::kNever, 137,
                          AfterFailure::kFinal},
        RestartPolicyCase{"ExitCode leaves a program that gave up", RestartPolicy::kExitCode, 1,
                          AfterFailure::kFinal},
        RestartPolicyCase{"ExitCode leaves the highest code of a program's own",
                          RestartPolicy::kExitCode, 127, AfterFailure::kFinal},
        RestartPolicyCase{"ExitCode replaces from 128 on", RestartPolicy::kExitCode, 128,
                          AfterFailure::kReplace},
        RestartPolicyCase{"ExitCode replaces what was killed", RestartPolicy::kExitCode, 137,
                          AfterFailure::kReplace},
        RestartPolicyCase{"ExitCode replaces what left no code", RestartPolicy::kExitCode,
                          kNoExitCode, AfterFailure::kReplace}));

TEST(PodRestartPolicy, IsTheRolesOwn) {
  EXPECT_EQ(pod_restart_policy(RestartPolicy::kAlways, false), "Always");
  EXPECT_EQ(pod_restart_policy(RestartPolicy::kOnFailure, false), "OnFailure");
  EXPECT_EQ(pod_restart_policy(RestartPolicy::kNever, false), "Never");
}

TEST(PodRestartPolicy, IsNeverForExitCodeSoThatTheCodeCanBeSeen) {
  EXPECT_EQ(pod_restart_policy(RestartPolicy::kExitCode, false), "Never");
}

TEST(PodRestartPolicy, IsNeverWhereOneFailureStartsAllAgain) {
  for (const RestartPolicy policy : {RestartPolicy::kAlways, RestartPolicy::kOnFailure,
                                     RestartPolicy::kNever, RestartPolicy::kExitCode}) {
    EXPECT_EQ(pod_restart_policy(policy, true), "Never");
  }
}

json::value failed(std::string_view reason, std::string_view disrupted) {
  json::value pod = {{"status", {{"phase", "Failed"}, {"reason", json::string(reason)}}}};
  if (disrupted.empty()) return pod;
  json::set(
      pod, {"status", "conditions"},
      json::array{json::object{{"type", "DisruptionTarget"}, {"status", json::string(disrupted)}}});
  return pod;
}

TEST(TakenAway, IsWhatADisruptionEnded) {
  EXPECT_TRUE(taken_away(failed("", "True"))) << "preempted, drained, its node lost";
  EXPECT_TRUE(taken_away(failed("Terminated", "True"))) << "the node was shut down";
}

TEST(TakenAway, IsNotWhatEndedByItself) {
  EXPECT_FALSE(taken_away(failed("", "")));
  EXPECT_FALSE(taken_away(failed("", "False")));
  EXPECT_FALSE(taken_away(failed("Evicted", "True"))) << "it used more than it may";
}

}  // namespace
}  // namespace skiff::training
