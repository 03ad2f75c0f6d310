#include "features/training/engine/defaults.h"

#include <gtest/gtest.h>

#include "features/training/testing/builders.h"

namespace skiff::training {
namespace {

using std::chrono::seconds;

TEST(Defaults, FillInARoleThatSaysLittle) {
  const json::value root = testing::must_parse(
      R"({"metadata":{"name":"j","namespace":"n"},"spec":{"tfReplicaSpecs":{"Worker":{}}}})");
  const Job job = read_job(tensorflow(), root);
  ASSERT_EQ(job.roles.size(), 1u);
  EXPECT_EQ(job.roles[0].replicas, 1);
  EXPECT_EQ(job.roles[0].restart, RestartPolicy::kNever);
  EXPECT_EQ(job.roles[0].port, 2222);
  EXPECT_NE(job.roles[0].pod_template, nullptr);
  EXPECT_EQ(job.run.clean_pods, CleanPodPolicy::kNone);
  EXPECT_FALSE(job.run.ttl);
  EXPECT_FALSE(job.run.backoff_limit);
  EXPECT_FALSE(job.run.suspend);
}

TEST(Defaults, TakeTheKindsOwnRestartPolicyAndPort) {
  const json::value root = testing::torchjob().role("Worker", 2).build();
  const Job job = read_job(pytorch(), root);
  EXPECT_EQ(job.roles[0].restart, RestartPolicy::kOnFailure);
  EXPECT_EQ(job.roles[0].port, 23456);
}

TEST(Defaults, ReadWhatTheRunPolicySays) {
  const json::value root = testing::tfjob()
                               .role("Worker", 1)
                               .run("cleanPodPolicy", "All")
                               .run("ttlSecondsAfterFinished", 5)
                               .run("activeDeadlineSeconds", 60)
                               .run("backoffLimit", 0)
                               .run("suspend", true)
                               .run("managedBy", "x")
                               .run("schedulingPolicy", {{"minAvailable", 3}})
                               .build();
  const RunPolicy run = read_job(tensorflow(), root).run;
  EXPECT_EQ(run.clean_pods, CleanPodPolicy::kAll);
  EXPECT_EQ(run.ttl, seconds{5});
  EXPECT_EQ(run.active_deadline, seconds{60});
  EXPECT_EQ(run.backoff_limit, 0);
  EXPECT_TRUE(run.suspend);
  EXPECT_EQ(run.managed_by, "x");
  EXPECT_EQ(run.min_available, 3);
}

struct PolicyCase {
  const char* text;
  RestartPolicy expected;
};

class RestartNames : public ::testing::TestWithParam<PolicyCase> {};

TEST_P(RestartNames, AreRead) {
  const json::value root = testing::tfjob().role("Worker", 1, GetParam().text).build();
  EXPECT_EQ(read_job(tensorflow(), root).roles[0].restart, GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(All, RestartNames,
                         ::testing::Values(PolicyCase{"Always", RestartPolicy::kAlways},
                                           PolicyCase{"OnFailure", RestartPolicy::kOnFailure},
                                           PolicyCase{"Never", RestartPolicy::kNever},
                                           PolicyCase{"ExitCode", RestartPolicy::kExitCode},
                                           PolicyCase{"Sometimes", RestartPolicy::kNever}));

TEST(Defaults, NameRolesAsTheApiDoes) {
  const json::value root =
      testing::tfjob().role("worker", 1).role("ps", 1).role("CHIEF", 1).build();
  const Job job = read_job(tensorflow(), root);
  ASSERT_EQ(job.roles.size(), 3u);
  EXPECT_EQ(job.roles[0].name, "Chief");
  EXPECT_EQ(job.roles[1].name, "PS");
  EXPECT_EQ(job.roles[2].name, "Worker");
  EXPECT_EQ(job.roles[2].lower, "worker");
}

TEST(Defaults, LeaveUnknownRolesOut) {
  const json::value root = testing::tfjob().role("Worker", 1).role("Boss", 1).build();
  EXPECT_EQ(read_job(tensorflow(), root).roles.size(), 1u);
}

TEST(Defaults, KeepAReplicaCountWithinBounds) {
  const json::value huge = testing::tfjob().role("Worker", 1'000'000'000).build();
  EXPECT_EQ(read_job(tensorflow(), huge).replicas(), 10'000);
  const json::value negative = testing::tfjob().role("Worker", -5).build();
  EXPECT_EQ(read_job(tensorflow(), negative).replicas(), 0);
}

TEST(Defaults, KeepSecondsWithinBounds) {
  const json::value root = testing::tfjob()
                               .role("Worker", 1)
                               .run("activeDeadlineSeconds", std::int64_t{1} << 60)
                               .run("ttlSecondsAfterFinished", -7)
                               .build();
  const RunPolicy run = read_job(tensorflow(), root).run;
  EXPECT_EQ(run.active_deadline, seconds{std::int64_t{1} << 31});
  EXPECT_EQ(run.ttl, seconds{0});
}

TEST(Defaults, SurviveASpecOfTheWrongShape) {
  for (const char* text :
       {R"({})", R"({"spec":5})", R"({"spec":{"runPolicy":[],"tfReplicaSpecs":"x"}})",
        R"({"spec":{"tfReplicaSpecs":{"Worker":7,"PS":{"template":[]}}}})"}) {
    const json::value root = testing::must_parse(text);
    const Job job = read_job(tensorflow(), root);
    EXPECT_FALSE(job.run.suspend) << text;
    for (const Role& role : job.roles) EXPECT_EQ(role.replicas, 1) << text;
  }
}

TEST(Port, IsTheOneTheUserNamed) {
  const json::value root = testing::must_parse(
      R"({"spec":{"tfReplicaSpecs":{"Worker":{"template":{"spec":{"containers":[
      {"name":"sidecar","ports":[{"name":"tfjob-port","containerPort":1}]},
      {"name":"tensorflow","ports":[{"name":"metrics","containerPort":9},
      {"name":"tfjob-port","containerPort":2345}]}]}}}}}})");
  EXPECT_EQ(read_job(tensorflow(), root).roles[0].port, 2345);
}

TEST(TrainingContainer, IsTheNamedOneElseTheFirst) {
  const json::value named =
      testing::must_parse(R"({"spec":{"containers":[{"name":"a"},{"name":"tensorflow"}]}})");
  EXPECT_EQ(training_container(tensorflow(), named.as_object())->at("name"), "tensorflow");
  const json::value other = testing::must_parse(R"({"spec":{"containers":[{"name":"a"}]}})");
  EXPECT_EQ(training_container(tensorflow(), other.as_object())->at("name"), "a");
  EXPECT_EQ(training_container(tensorflow(), json::object{}), nullptr);
}

TEST(RestartPolicyName, IsTheApisOwn) {
  EXPECT_EQ(to_string(RestartPolicy::kOnFailure), "OnFailure");
  EXPECT_EQ(to_string(RestartPolicy::kExitCode), "ExitCode");
}

}  // namespace
}  // namespace skiff::training
