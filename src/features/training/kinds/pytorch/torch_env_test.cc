#include "features/training/kinds/pytorch/torch_env.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "features/training/engine/defaults.h"
#include "features/training/testing/builders.h"

namespace skiff::training {
namespace {

using testing::torchjob;

struct TorchEnvCase {
  const char* sentence;
  json::value job;
  std::string_view role;
  std::int64_t index;
  std::vector<std::string> expected;  // NAME=value, in order
};

class TorchEnvironment : public ::testing::TestWithParam<TorchEnvCase> {};

TEST_P(TorchEnvironment, Says) {
  const Job job = read_job(pytorch(), GetParam().job);
  std::vector<std::string> said;
  for (const EnvVar& var : torch_environment(job)(*job.role(GetParam().role), GetParam().index)) {
    said.push_back(var.name + "=" + var.value);
  }
  EXPECT_EQ(said, GetParam().expected) << GetParam().sentence;
}

json::value elastic(testing::JobBuilder builder, std::string_view policy) {
  return builder.spec("elasticPolicy", testing::must_parse(policy)).build();
}

INSTANTIATE_TEST_SUITE_P(
    All, TorchEnvironment,
    ::testing::Values(
        TorchEnvCase{
            "the master has rank 0",
            torchjob().role("Master", 1).role("Worker", 2).build(),
            "Master",
            0,
            {"PYTHONUNBUFFERED=1", "MASTER_PORT=23456", "PET_MASTER_PORT=23456",
             "MASTER_ADDR=mnist-master-0", "PET_MASTER_ADDR=mnist-master-0", "WORLD_SIZE=3",
             "RANK=0", "PET_NODE_RANK=0", "PET_NPROC_PER_NODE=auto", "PET_NNODES=3"}},
        TorchEnvCase{
            "a worker comes after the master",
            torchjob().role("Master", 1).role("Worker", 2).build(),
            "Worker",
            1,
            {"PYTHONUNBUFFERED=1", "MASTER_PORT=23456", "PET_MASTER_PORT=23456",
             "MASTER_ADDR=mnist-master-0", "PET_MASTER_ADDR=mnist-master-0", "WORLD_SIZE=3",
             "RANK=2", "PET_NODE_RANK=2", "PET_NPROC_PER_NODE=auto", "PET_NNODES=3"}},
        TorchEnvCase{
            "a number of processes multiplies the world",
            torchjob().role("Master", 1).role("Worker", 1).spec("nprocPerNode", "4").build(),
            "Master",
            0,
            {"PYTHONUNBUFFERED=1", "MASTER_PORT=23456", "PET_MASTER_PORT=23456",
             "MASTER_ADDR=mnist-master-0", "PET_MASTER_ADDR=mnist-master-0", "WORLD_SIZE=8",
             "RANK=0", "PET_NODE_RANK=0", "PET_NPROC_PER_NODE=4", "PET_NNODES=2"}},
        TorchEnvCase{"workers alone have no rank",
                     torchjob().role("Worker", 2).spec("nprocPerNode", "gpu").build(),
                     "Worker",
                     0,
                     {"PYTHONUNBUFFERED=1", "PET_NPROC_PER_NODE=gpu", "PET_NNODES=2"}},
        TorchEnvCase{
            "elastic workers meet at worker 0",
            elastic(torchjob().role("Worker", 2), "{}"),
            "Worker",
            1,
            {"PYTHONUNBUFFERED=1", "PET_NPROC_PER_NODE=auto",
             "PET_RDZV_ENDPOINT=mnist-worker-0:23456", "PET_RDZV_BACKEND=c10d", "PET_NNODES=2:2"}},
        TorchEnvCase{
            "everything of an elastic policy is passed on",
            elastic(torchjob().role("Worker", 2),
                    R"({"minReplicas":1,"maxReplicas":4,"rdzvBackend":"etcd","rdzvPort":2379,
                     "rdzvHost":"etcd","rdzvId":"meet","rdzvConf":[{"key":"a","value":"1"},
                     {"key":"b","value":"2"}],"standalone":true,"nProcPerNode":2,
                     "maxRestarts":7})"),
            "Worker",
            0,
            {"PYTHONUNBUFFERED=1", "PET_RDZV_ENDPOINT=etcd:2379", "PET_RDZV_BACKEND=etcd",
             "PET_NNODES=1:4", "PET_MAX_RESTARTS=7", "PET_NPROC_PER_NODE=2", "PET_RDZV_ID=meet",
             "PET_RDZV_CONF=a=1,b=2", "PET_STANDALONE="}},
        TorchEnvCase{
            "a greatest number alone is the least too",
            elastic(torchjob().role("Worker", 2), R"({"maxReplicas":5})"),
            "Worker",
            0,
            {"PYTHONUNBUFFERED=1", "PET_NPROC_PER_NODE=auto",
             "PET_RDZV_ENDPOINT=mnist-worker-0:23456", "PET_RDZV_BACKEND=c10d", "PET_NNODES=5:5"}},
        TorchEnvCase{"a least number alone is the greatest too",
                     elastic(torchjob().role("Worker", 2), R"({"minReplicas":3})"),
                     "Worker",
                     0,
                     {"PYTHONUNBUFFERED=1", "PET_NPROC_PER_NODE=auto",
                      "PET_RDZV_ENDPOINT=mnist-worker-0:23456", "PET_RDZV_BACKEND=c10d",
                      "PET_NNODES=3:3"}}));

}  // namespace
}  // namespace skiff::training
