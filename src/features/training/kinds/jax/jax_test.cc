#include "features/training/kinds/jax/jax.h"

#include <gtest/gtest.h>

#include "features/training/engine/validation.h"
#include "features/training/testing/builders.h"

namespace skiff::training {
namespace {

using testing::environment;
using testing::JobBuilder;
using testing::verdict;

JobBuilder jax_job() { return JobBuilder(jax()); }

TEST(JaxEnvironment, TellsEveryProcessItsNumberAndTheFirstAsCoordinator) {
  EXPECT_EQ(environment(jax(), jax_job().role("Worker", 3).build(), "Worker", 2),
            (std::vector<std::string>{"PYTHONUNBUFFERED=1", "COORDINATOR_PORT=6666",
                                      "COORDINATOR_ADDRESS=mnist-worker-0", "NUM_PROCESSES=3",
                                      "PROCESS_ID=2"}));
}

TEST(JaxVerdict, WaitsForEveryWorker) {
  const json::value root = jax_job().role("Worker", 2).build();
  EXPECT_EQ(verdict(jax(), root, {{.role = "Worker", .running = 1, .succeeded = 1}}),
            (Verdict{.running = true}));
  EXPECT_EQ(verdict(jax(), root, {{.role = "Worker", .succeeded = 2}}),
            (Verdict{.succeeded = true}));
}

TEST(JaxValidation, KnowsWorkersOnly) {
  EXPECT_TRUE(validate_job(jax(), jax_job().role("Worker", 2).build(), {}).empty());
  const std::vector<Cause> causes = validate_job(jax(), jax_job().role("Master", 1).build(), {});
  ASSERT_FALSE(causes.empty());
  EXPECT_EQ(causes[0].field, "spec.jaxReplicaSpecs[Master]");
}

TEST(JaxMaster, IsTheFirstWorker) {
  const json::value root = jax_job().role("Worker", 2).build();
  const Job read = read_job(jax(), root);
  EXPECT_TRUE(jax().is_master(read, read.roles[0], 0));
  EXPECT_FALSE(jax().is_master(read, read.roles[0], 1));
}

}  // namespace
}  // namespace skiff::training
