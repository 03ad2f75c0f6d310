#include "features/training/kinds/tensorflow/tf_config.h"

#include <gtest/gtest.h>

#include "features/training/engine/defaults.h"
#include "features/training/testing/builders.h"

namespace skiff::training {
namespace {

using testing::tfjob;

struct TFConfigCase {
  const char* sentence;
  json::value job;
  std::string_view role;
  std::int64_t index;
  const char* expected;  // null: no variable at all
};

class TfConfig : public ::testing::TestWithParam<TFConfigCase> {};

TEST_P(TfConfig, Says) {
  const Job job = read_job(tensorflow(), GetParam().job);
  const std::vector<EnvVar> env = tf_environment(job)(*job.role(GetParam().role), GetParam().index);
  if (GetParam().expected == nullptr) {
    EXPECT_TRUE(env.empty()) << GetParam().sentence;
    return;
  }
  ASSERT_EQ(env.size(), 1u) << GetParam().sentence;
  EXPECT_EQ(env[0].name, "TF_CONFIG");
  EXPECT_EQ(env[0].value, GetParam().expected) << GetParam().sentence;
  EXPECT_TRUE(json::parse(env[0].value).has_value()) << GetParam().sentence;
}

json::value with_port(json::value job, std::string_view role, std::int64_t port) {
  json::set(
      job.at("spec").at("tfReplicaSpecs").at(role).at("template").at("spec").at("containers").at(0),
      {"ports"}, json::array{json::object{{"name", "tfjob-port"}, {"containerPort", port}}});
  return job;
}

const auto kDynamic = [](testing::JobBuilder builder) {
  return builder.spec("enableDynamicWorker", true).build();
};

INSTANTIATE_TEST_SUITE_P(
    All, TfConfig,
    ::testing::Values(
        TFConfigCase{"a job of one replica has none", tfjob().role("Worker", 1).build(), "Worker",
                     0, nullptr},
        TFConfigCase{"all roles are listed in the order of their names",
                     tfjob().role("Worker", 2).role("PS", 1).role("Chief", 1).build(), "Worker", 1,
                     R"({"cluster":{"chief":["mnist-chief-0.team.svc:2222"],)"
                     R"("ps":["mnist-ps-0.team.svc:2222"],)"
                     R"("worker":["mnist-worker-0.team.svc:2222","mnist-worker-1.team.svc:2222"]},)"
                     R"("task":{"type":"worker","index":1},"environment":"cloud"})"},
        TFConfigCase{"a parameter server sees the same cluster",
                     tfjob().role("Worker", 1).role("PS", 1).build(), "PS", 0,
                     R"({"cluster":{"ps":["mnist-ps-0.team.svc:2222"],)"
                     R"("worker":["mnist-worker-0.team.svc:2222"]},)"
                     R"("task":{"type":"ps","index":0},"environment":"cloud"})"},
        TFConfigCase{"evaluators and masters are listed too",
                     tfjob().role("Master", 1).role("Evaluator", 1).build(), "Evaluator", 0,
                     R"({"cluster":{"evaluator":["mnist-evaluator-0.team.svc:2222"],)"
                     R"("master":["mnist-master-0.team.svc:2222"]},)"
                     R"("task":{"type":"evaluator","index":0},"environment":"cloud"})"},
        TFConfigCase{"each role has its own port",
                     with_port(tfjob().role("Worker", 1).role("PS", 1).build(), "PS", 5000),
                     "Worker", 0,
                     R"({"cluster":{"ps":["mnist-ps-0.team.svc:5000"],)"
                     R"("worker":["mnist-worker-0.team.svc:2222"]},)"
                     R"("task":{"type":"worker","index":0},"environment":"cloud"})"},
        TFConfigCase{"a dynamic worker knows itself and the servers",
                     kDynamic(tfjob().role("Worker", 3).role("PS", 2)), "Worker", 2,
                     R"({"cluster":{"worker":{"2":"mnist-worker-2.team.svc:2222"},)"
                     R"("ps":["mnist-ps-0.team.svc:2222","mnist-ps-1.team.svc:2222"]},)"
                     R"("task":{"type":"worker","index":2}})"},
        TFConfigCase{"a dynamic worker without servers says so",
                     kDynamic(tfjob().role("Worker", 2)), "Worker", 0,
                     R"({"cluster":{"worker":{"0":"mnist-worker-0.team.svc:2222"},"ps":null},)"
                     R"("task":{"type":"worker","index":0}})"},
        TFConfigCase{"a server of dynamic workers knows itself",
                     kDynamic(tfjob().role("Worker", 3).role("PS", 2)), "PS", 1,
                     R"({"cluster":{"worker":{},"ps":["mnist-ps-1.team.svc:2222"]},)"
                     R"("task":{"type":"ps","index":1}})"},
        TFConfigCase{"everybody else knows nobody",
                     kDynamic(tfjob().role("Worker", 3).role("Chief", 1)), "Chief", 0,
                     R"({"cluster":{"worker":{},"ps":[]},"task":{"type":"chief","index":0}})"}));

}  // namespace
}  // namespace skiff::training
