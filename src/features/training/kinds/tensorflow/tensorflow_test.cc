#include "features/training/kinds/tensorflow/tensorflow.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "features/training/engine/defaults.h"
#include "features/training/testing/builders.h"

namespace skiff::training {
namespace {

using testing::tfjob;

struct State {
  std::string_view role;
  std::int64_t running = 0;
  std::int64_t succeeded = 0;
  bool first = false;
};

struct TensorFlowCase {
  const char* sentence;
  json::value job;
  std::vector<State> states;
  Verdict expected;
};

class TFJobVerdict : public ::testing::TestWithParam<TensorFlowCase> {};

TEST_P(TFJobVerdict, Is) {
  const Job job = read_job(tensorflow(), GetParam().job);
  std::vector<RoleState> states;
  for (const Role& role : job.roles) {
    RoleState& state = states.emplace_back(RoleState{.role = &role});
    for (const State& given : GetParam().states) {
      if (given.role != role.name) continue;
      state.running = given.running;
      state.succeeded = given.succeeded;
      state.first_succeeded = given.first;
    }
  }
  EXPECT_EQ(job.kind->judge(job, states), GetParam().expected) << GetParam().sentence;
}

const auto kAllWorkers = [](testing::JobBuilder builder) {
  return builder.spec("successPolicy", "AllWorkers").build();
};

INSTANTIATE_TEST_SUITE_P(
    WithAChief, TFJobVerdict,
    ::testing::Values(TensorFlowCase{"runs when the chief does",
                                     tfjob().role("Chief", 1).role("Worker", 2).build(),
                                     {{.role = "Chief", .running = 1}},
                                     {.running = true}},
                      TensorFlowCase{"does not run by its workers alone",
                                     tfjob().role("Chief", 1).role("Worker", 2).build(),
                                     {{.role = "Worker", .running = 2}},
                                     {}},
                      TensorFlowCase{"succeeds with the chief while workers run",
                                     tfjob().role("Chief", 1).role("Worker", 2).build(),
                                     {{.role = "Chief", .succeeded = 1, .first = true},
                                      {.role = "Worker", .running = 2}},
                                     {.succeeded = true}},
                      TensorFlowCase{"does not succeed with its workers",
                                     tfjob().role("Chief", 1).role("Worker", 2).build(),
                                     {{.role = "Chief", .running = 1},
                                      {.role = "Worker", .succeeded = 2, .first = true}},
                                     {.running = true}},
                      TensorFlowCase{"does not ask the success policy",
                                     kAllWorkers(tfjob().role("Master", 1).role("Worker", 2)),
                                     {{.role = "Master", .succeeded = 1, .first = true}},
                                     {.succeeded = true}}));

INSTANTIATE_TEST_SUITE_P(
    WithoutAChief, TFJobVerdict,
    ::testing::Values(
        TensorFlowCase{"runs when a worker does",
                       tfjob().role("Worker", 2).role("PS", 1).build(),
                       {{.role = "Worker", .running = 1}},
                       {.running = true}},
        TensorFlowCase{"does not run by its parameter servers",
                       tfjob().role("Worker", 2).role("PS", 1).build(),
                       {{.role = "PS", .running = 1}},
                       {}},
        TensorFlowCase{"succeeds with worker 0",
                       tfjob().role("Worker", 3).build(),
                       {{.role = "Worker", .running = 2, .succeeded = 1, .first = true}},
                       {.succeeded = true, .running = true}},
        TensorFlowCase{"does not succeed with another worker",
                       tfjob().role("Worker", 3).build(),
                       {{.role = "Worker", .running = 2, .succeeded = 1}},
                       {.running = true}},
        TensorFlowCase{"under AllWorkers worker 0 is not enough",
                       kAllWorkers(tfjob().role("Worker", 2)),
                       {{.role = "Worker", .running = 1, .succeeded = 1, .first = true}},
                       {.running = true}},
        TensorFlowCase{"under AllWorkers all are",
                       kAllWorkers(tfjob().role("Worker", 2)),
                       {{.role = "Worker", .succeeded = 2, .first = true}},
                       {.succeeded = true}},
        TensorFlowCase{
            "a role of no replicas has not succeeded", tfjob().role("Worker", 0).build(), {}, {}},
        TensorFlowCase{
            "without workers all must be done",
            tfjob().role("PS", 2).role("Evaluator", 1).build(),
            {{.role = "PS", .succeeded = 2, .first = true}, {.role = "Evaluator", .running = 1}},
            {.running = true}},
        TensorFlowCase{"and then it is",
                       tfjob().role("PS", 2).role("Evaluator", 1).build(),
                       {{.role = "PS", .succeeded = 2, .first = true},
                        {.role = "Evaluator", .succeeded = 1, .first = true}},
                       {.succeeded = true}}));

TEST(TFJobMaster, IsTheChiefElseWorkerZero) {
  const json::value with = tfjob().role("Chief", 1).role("Worker", 2).build();
  const Job chief = read_job(tensorflow(), with);
  EXPECT_TRUE(chief.kind->is_master(chief, *chief.role("Chief"), 0));
  EXPECT_FALSE(chief.kind->is_master(chief, *chief.role("Worker"), 0));
  const json::value without = tfjob().role("PS", 1).role("Worker", 2).build();
  const Job workers = read_job(tensorflow(), without);
  EXPECT_TRUE(workers.kind->is_master(workers, *workers.role("Worker"), 0));
  EXPECT_FALSE(workers.kind->is_master(workers, *workers.role("Worker"), 1));
  EXPECT_FALSE(workers.kind->is_master(workers, *workers.role("PS"), 0));
}

TEST(TFJobFailure, IsToleratedOnlyOfDynamicWorkers) {
  const json::value fixed = tfjob().role("Worker", 2).role("PS", 1).build();
  const json::value dynamic =
      tfjob().role("Worker", 2).role("PS", 1).spec("enableDynamicWorker", true).build();
  const Job a = read_job(tensorflow(), fixed);
  const Job b = read_job(tensorflow(), dynamic);
  EXPECT_FALSE(a.kind->tolerates_failure(a, *a.role("Worker")));
  EXPECT_TRUE(b.kind->tolerates_failure(b, *b.role("Worker")));
  EXPECT_FALSE(b.kind->tolerates_failure(b, *b.role("PS")));
}

}  // namespace
}  // namespace skiff::training
