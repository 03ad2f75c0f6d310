#include "features/training/engine/replica_statuses.h"

#include <gtest/gtest.h>

#include "features/training/engine/defaults.h"
#include "features/training/testing/builders.h"

namespace skiff::training {
namespace {

TEST(ReplicaStatuses, LeaveZerosOut) {
  const json::value root = testing::tfjob().role("Worker", 3).role("PS", 1).build();
  const Job job = read_job(tensorflow(), root);
  json::object status;
  write_replica_statuses(
      job, {{.role = job.role("Worker"), .active = 2, .succeeded = 1}, {.role = job.role("PS")}},
      status);
  EXPECT_EQ(json::serialize(status),
            R"({"replicaStatuses":{"Worker":{"active":2,"succeeded":1},"PS":{}}})");
}

TEST(ReplicaStatuses, CarryASelectorWhereTheKindCanBeScaled) {
  const json::value root = testing::torchjob().role("Worker", 3).build();
  const Job job = read_job(pytorch(), root);
  json::object status;
  write_replica_statuses(job, {{.role = job.role("Worker"), .failed = 1}}, status);
  EXPECT_EQ(json::get_string(status, {"replicaStatuses", "Worker", "selector"}),
            "training.kubeflow.org/job-name=mnist,"
            "training.kubeflow.org/operator-name=pytorchjob-controller,"
            "training.kubeflow.org/replica-type=worker");
}

TEST(ReplicaStatuses, ForgetARoleThatIsGone) {
  const json::value root = testing::tfjob().role("Worker", 1).build();
  const Job job = read_job(tensorflow(), root);
  json::object status{{"replicaStatuses", {{"PS", {{"active", 1}}}}}};
  write_replica_statuses(job, {{.role = job.role("Worker"), .active = 1}}, status);
  EXPECT_EQ(json::serialize(status), R"({"replicaStatuses":{"Worker":{"active":1}}})");
}

TEST(ReplicaStatuses, CountWhatStillRunsAsSucceededWhenTheJobHas) {
  json::object status{{"replicaStatuses",
                       {{"Worker", {{"active", 2}, {"succeeded", 1}}}, {"PS", {{"active", 1}}}}}};
  settle_succeeded(status);
  EXPECT_EQ(status, (json::object{{"replicaStatuses",
                                   {{"Worker", {{"succeeded", 3}}}, {"PS", {{"succeeded", 1}}}}}}));
  const json::object before = status;
  settle_succeeded(status);
  EXPECT_EQ(status, before) << "settling twice changes nothing";
}

TEST(ReplicaStatuses, FollowOnlyTheActiveCountAfterTheEnd) {
  const json::value root = testing::tfjob().role("Worker", 3).role("PS", 1).build();
  const Job job = read_job(tensorflow(), root);
  json::object status{{"replicaStatuses", {{"Worker", {{"active", 2}, {"failed", 1}}}}}};
  write_active({{.role = job.role("Worker"), .active = 1}, {.role = job.role("PS"), .active = 1}},
               status);
  EXPECT_EQ(json::serialize(status), R"({"replicaStatuses":{"Worker":{"active":1,"failed":1}}})");
  write_active({{.role = job.role("Worker")}}, status);
  EXPECT_EQ(json::serialize(status), R"({"replicaStatuses":{"Worker":{"failed":1}}})");
}

TEST(ReplicaStatuses, CarryNoSelectorWhereTheKindCannotBeScaled) {
  const json::value root = testing::tfjob().role("Worker", 3).role("PS", 1).build();
  const Job job = read_job(tensorflow(), root);
  json::object status;
  write_replica_statuses(job, {{.role = job.role("Worker")}, {.role = job.role("PS")}}, status);
  EXPECT_EQ(json::serialize(status), R"({"replicaStatuses":{"Worker":{},"PS":{}}})");
}

TEST(ReplicaStatuses, ThatSomebodyWroteNonsenseIntoAreLeftAloneAtTheEnd) {
  json::object status{{"replicaStatuses", {{"Worker", "two"}, {"PS", {{"active", 1}}}}}};
  settle_succeeded(status);
  EXPECT_EQ(status,
            (json::object{{"replicaStatuses", {{"Worker", "two"}, {"PS", {{"succeeded", 1}}}}}}));
}

}  // namespace
}  // namespace skiff::training
