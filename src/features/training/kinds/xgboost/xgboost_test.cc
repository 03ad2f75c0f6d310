#include "features/training/kinds/xgboost/xgboost.h"

#include <gtest/gtest.h>

#include "features/training/engine/validation.h"
#include "features/training/testing/builders.h"

namespace skiff::training {
namespace {

using testing::environment;
using testing::JobBuilder;
using testing::verdict;

JobBuilder xgboost_job() { return JobBuilder(xgboost()); }

TEST(XGBoostEnvironment, RanksTheMasterFirstAndNamesEveryWorker) {
  const json::value root = xgboost_job().role("Master", 1).role("Worker", 2).build();
  EXPECT_EQ(
      environment(xgboost(), root, "Master", 0),
      (std::vector<std::string>{"MASTER_PORT=9999", "MASTER_ADDR=mnist-master-0", "WORLD_SIZE=3",
                                "RANK=0", "PYTHONUNBUFFERED=1", "WORKER_PORT=9999",
                                "WORKER_ADDRS=mnist-worker-0,mnist-worker-1"}));
  EXPECT_EQ(environment(xgboost(), root, "Worker", 1)[3], "RANK=2");
}

TEST(XGBoostEnvironment, OfAMasterAloneNamesNoWorkers) {
  EXPECT_EQ(environment(xgboost(), xgboost_job().role("Master", 1).build(), "Master", 0),
            (std::vector<std::string>{"MASTER_PORT=9999", "MASTER_ADDR=mnist-master-0",
                                      "WORLD_SIZE=1", "RANK=0", "PYTHONUNBUFFERED=1"}));
}

TEST(XGBoostVerdict, IsTheMasters) {
  const json::value root = xgboost_job().role("Master", 1).role("Worker", 2).build();
  EXPECT_EQ(verdict(xgboost(), root, {{.role = "Worker", .running = 2}}), Verdict{});
  EXPECT_EQ(verdict(xgboost(), root, {{.role = "Master", .running = 1}}),
            (Verdict{.running = true}));
  EXPECT_EQ(verdict(xgboost(), root, {{.role = "Worker", .succeeded = 2}}), Verdict{});
  EXPECT_EQ(verdict(xgboost(), root, {{.role = "Master", .succeeded = 1}}),
            (Verdict{.succeeded = true}));
}

TEST(XGBoostValidation, WantsExactlyOneMaster) {
  const auto complaint = [](const json::value& root) {
    const std::vector<Cause> causes = validate_job(xgboost(), root, {});
    return causes.empty() ? "" : causes[0].field + ": " + causes[0].message;
  };
  EXPECT_EQ(complaint(xgboost_job().role("Master", 1).role("Worker", 2).build()), "");
  EXPECT_EQ(complaint(xgboost_job().role("Worker", 2).build()),
            "spec.xgbReplicaSpecs[Master]: Required value: the tracker that workers meet at runs "
            "in the master");
  EXPECT_EQ(complaint(xgboost_job().role("Master", 2).build()),
            "spec.xgbReplicaSpecs[Master].replicas: Invalid value: 2: must be 1");
  json::value silent = xgboost_job().role("Master", 1).build();
  silent.at_pointer("/spec/xgbReplicaSpecs/Master").as_object().erase("replicas");
  EXPECT_EQ(complaint(silent), "spec.xgbReplicaSpecs[Master].replicas: Required value: must be 1");
}

TEST(XGBoostMaster, IsTheRoleOfThatName) {
  const json::value root = xgboost_job().role("Master", 1).role("Worker", 1).build();
  const Job read = read_job(xgboost(), root);
  EXPECT_TRUE(xgboost().is_master(read, *read.role("Master"), 0));
  EXPECT_FALSE(xgboost().is_master(read, *read.role("Worker"), 0));
}

}  // namespace
}  // namespace skiff::training
