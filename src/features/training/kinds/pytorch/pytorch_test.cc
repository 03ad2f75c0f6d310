#include "features/training/kinds/pytorch/pytorch.h"

#include <gtest/gtest.h>

#include "features/training/engine/defaults.h"
#include "features/training/testing/builders.h"

namespace skiff::training {
namespace {

using testing::torchjob;

struct PyTorchCase {
  const char* sentence;
  json::value job;
  RoleState master;  // counts only
  RoleState worker;
  Verdict expected;
};

class PyTorchJobVerdict : public ::testing::TestWithParam<PyTorchCase> {};

TEST_P(PyTorchJobVerdict, Is) {
  const Job job = read_job(pytorch(), GetParam().job);
  std::vector<RoleState> states;
  for (const Role& role : job.roles) {
    states.push_back(role.name == "Master" ? GetParam().master : GetParam().worker);
    states.back().role = &role;
  }
  EXPECT_EQ(job.kind->judge(job, states), GetParam().expected) << GetParam().sentence;
}

INSTANTIATE_TEST_SUITE_P(
    All, PyTorchJobVerdict,
    ::testing::Values(
        PyTorchCase{"runs when the master does",
                    torchjob().role("Master", 1).role("Worker", 2).build(),
                    {.running = 1},
                    {},
                    {.running = true}},
        PyTorchCase{"does not run by its workers alone",
                    torchjob().role("Master", 1).role("Worker", 2).build(),
                    {},
                    {.running = 2},
                    {}},
        PyTorchCase{"succeeds with the master while workers run",
                    torchjob().role("Master", 1).role("Worker", 2).build(),
                    {.succeeded = 1},
                    {.running = 2},
                    {.succeeded = true}},
        PyTorchCase{"does not succeed with its workers",
                    torchjob().role("Master", 1).role("Worker", 2).build(),
                    {.running = 1},
                    {.succeeded = 2},
                    {.running = true}},
        PyTorchCase{"without a master runs when a worker does",
                    torchjob().role("Worker", 2).build(),
                    {},
                    {.running = 1},
                    {.running = true}},
        PyTorchCase{"without a master succeeds with all workers",
                    torchjob().role("Worker", 2).build(),
                    {},
                    {.succeeded = 2},
                    {.succeeded = true}},
        PyTorchCase{"without a master one worker is not enough",
                    torchjob().role("Worker", 2).build(),
                    {},
                    {.running = 1, .succeeded = 1},
                    {.running = true}},
        PyTorchCase{"elastic workers are done when one is",
                    torchjob().role("Worker", 2).spec("elasticPolicy", json::object{}).build(),
                    {},
                    {.running = 1, .succeeded = 1},
                    {.succeeded = true, .running = true}},
        PyTorchCase{"elastic workers with a master wait for it",
                    torchjob()
                        .role("Master", 1)
                        .role("Worker", 2)
                        .spec("elasticPolicy", json::object{})
                        .build(),
                    {.running = 1},
                    {.succeeded = 1},
                    {.running = true}},
        PyTorchCase{"a job without roles is nothing", torchjob().build(), {}, {}, {}}));

TEST(PyTorchJobMaster, IsTheMasterElseWorkerZero) {
  const json::value with = torchjob().role("Master", 1).role("Worker", 2).build();
  const Job master = read_job(pytorch(), with);
  EXPECT_TRUE(master.kind->is_master(master, *master.role("Master"), 0));
  EXPECT_FALSE(master.kind->is_master(master, *master.role("Worker"), 0));
  const json::value without = torchjob().role("Worker", 2).build();
  const Job workers = read_job(pytorch(), without);
  EXPECT_TRUE(workers.kind->is_master(workers, *workers.role("Worker"), 0));
  EXPECT_FALSE(workers.kind->is_master(workers, *workers.role("Worker"), 1));
}

TEST(PyTorchJobFailure, IsNeverTolerated) {
  const json::value root = torchjob().role("Worker", 2).build();
  const Job job = read_job(pytorch(), root);
  EXPECT_EQ(job.kind->tolerates_failure, nullptr);
}

}  // namespace
}  // namespace skiff::training
