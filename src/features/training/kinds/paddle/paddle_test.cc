#include "features/training/kinds/paddle/paddle.h"

#include <gtest/gtest.h>

#include "features/training/engine/pod_template.h"
#include "features/training/testing/builders.h"

namespace skiff::training {
namespace {

using testing::environment;
using testing::JobBuilder;
using testing::verdict;

JobBuilder paddle_job() { return JobBuilder(paddle()); }

TEST(PaddleEnvironment, OfWorkersAloneMeetsAtTheFirstWhichKnowsItselfByAddress) {
  const json::value root = paddle_job().role("Worker", 2).build();
  EXPECT_EQ(environment(paddle(), root, "Worker", 0),
            (std::vector<std::string>{"PYTHONUNBUFFERED=1", "PADDLE_JOB_ID=mnist",
                                      "PADDLE_NNODES=2", "POD_IP_DUMMY=@status.podIP",
                                      "PADDLE_MASTER=$(POD_IP_DUMMY):36543"}));
  EXPECT_EQ(environment(paddle(), root, "Worker", 1),
            (std::vector<std::string>{"PYTHONUNBUFFERED=1", "PADDLE_JOB_ID=mnist",
                                      "PADDLE_NNODES=2", "PADDLE_MASTER=mnist-worker-0:36543"}));
}

TEST(PaddleEnvironment, OfServersTellsWhoServesAndWhoTrains) {
  const json::value root = paddle_job().role("Master", 1).role("Worker", 2).build();
  EXPECT_EQ(
      environment(paddle(), root, "Master", 0),
      (std::vector<std::string>{"PYTHONUNBUFFERED=1", "PADDLE_JOB_ID=mnist", "PADDLE_NNODES=3",
                                "PADDLE_MASTER=mnist-master-0:36543", "PADDLE_SERVER_NUM=1"}));
  EXPECT_EQ(environment(paddle(), root, "Worker", 0).back(), "PADDLE_TRAINER_NUM=1");
}

TEST(PaddleEnvironment, AsksThePodForItsAddress) {
  const json::value root = paddle_job().role("Worker", 2).build();
  const Job read = read_job(paddle(), root);
  const json::value pod = render_pod(pod_context(read, 0), read.roles[0], 0, 0);
  const json::value& asked = pod.at_pointer("/spec/containers/0/env/3");
  EXPECT_EQ(json::get_string(asked, {"valueFrom", "fieldRef", "fieldPath"}), "status.podIP");
  EXPECT_FALSE(asked.as_object().contains("value"));
}

TEST(PaddleVerdict, IsTheMastersWhereThereIsOne) {
  const json::value served = paddle_job().role("Master", 1).role("Worker", 2).build();
  EXPECT_EQ(verdict(paddle(), served, {{.role = "Worker", .succeeded = 2}}), Verdict{});
  EXPECT_EQ(verdict(paddle(), served, {{.role = "Master", .succeeded = 1}}),
            (Verdict{.succeeded = true}));
  const json::value equal = paddle_job().role("Worker", 2).build();
  EXPECT_EQ(verdict(paddle(), equal, {{.role = "Worker", .running = 1, .succeeded = 1}}),
            (Verdict{.running = true}));
  EXPECT_EQ(verdict(paddle(), equal, {{.role = "Worker", .succeeded = 2}}),
            (Verdict{.succeeded = true}));
}

}  // namespace
}  // namespace skiff::training
