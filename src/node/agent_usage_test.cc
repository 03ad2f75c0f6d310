// What the agent tells of its pods' use, with a runtime whose containers use half a CPU each.
#include <csignal>

#include "node/testing/agent_fixture.h"

namespace skiff::node {
namespace {

TEST_F(AgentTest, TellsWhatItsNodeAndPodsUse) {
  start();
  create_pod("p", "u1");
  apiserver::Usage usage;
  ASSERT_TRUE(eventually([&] {
    usage = agent_->usage();
    return !usage.pods.empty() && !usage.nodes.empty();
  }));
  EXPECT_EQ(usage.nodes[0].name, "n1");
  EXPECT_GT(usage.nodes[0].used.memory_bytes, 0);
  EXPECT_EQ(usage.pods[0].ns, "default");
  EXPECT_EQ(usage.pods[0].name, "p");
  EXPECT_EQ(usage.pods[0].uid, "u1");
  ASSERT_EQ(usage.pods[0].containers.size(), 1u);
  EXPECT_EQ(usage.pods[0].containers[0].name, "main");
  EXPECT_EQ(usage.pods[0].containers[0].used.memory_bytes, 10'000'000);
  EXPECT_GT(usage.pods[0].containers[0].used.cpu_nano, 100'000'000);
}

TEST_F(AgentTest, APodThatHasEndedUsesNothing) {
  start();
  create_pod("short", "u1");
  ASSERT_TRUE(eventually([&] { return !agent_->usage().pods.empty(); }));
  ASSERT_TRUE(runtime_->signal("u1", "main", SIGKILL));
  ASSERT_TRUE(eventually([&] { return phase("short") == "Failed"; }));
  EXPECT_TRUE(agent_->usage().pods.empty());
}

TEST_F(AgentTest, AGpuThatIdlesBesideAFullCpuIsToldOfThePodAndOfItsJob) {
  options_.gpus = {{.uuid = "GPU-1", .name = "fake"}};
  options_.gpu_loads = [] {
    return Result<std::vector<GpuLoad>>(std::vector<GpuLoad>{{.busy_percent = 12}});
  };
  options_.measure_every = std::chrono::milliseconds(20);
  start();
  create(kPods,
         R"({"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default","name":"j-worker-1",
    "uid":"u1","labels":{"training.kubeflow.org/replica-type":"worker",
    "training.kubeflow.org/replica-index":"1"},"ownerReferences":[{"apiVersion":"kubeflow.org/v1",
    "kind":"PyTorchJob","name":"j","uid":"uid-j","controller":true}]},"spec":{"nodeName":"n1",
    "restartPolicy":"Never","containers":[{"name":"main","image":"img","command":["run"],
    "resources":{"limits":{"cpu":"500m","nvidia.com/gpu":"1"}}}]}})");
  std::vector<std::string> about;
  ASSERT_TRUE(eventually([&] {
    about.clear();
    for (const Object& one : client_.list(kEvents, "", {})->items) {
      if (json::get_string(*one, {"reason"}) != "AcceleratorIdle") continue;
      about.emplace_back(json::get_string(*one, {"involvedObject", "kind"}));
      EXPECT_TRUE(json::get_string(*one, {"message"}).starts_with("GPU 0 of worker-1 was 12 %"));
      EXPECT_EQ(json::get_string(*one, {"type"}), "Warning");
    }
    return about.size() == 2;
  }));
  std::ranges::sort(about);
  EXPECT_EQ(about, (std::vector<std::string>{"Pod", "PyTorchJob"}));
  const apiserver::Usage usage = agent_->usage();
  ASSERT_EQ(usage.pods.size(), 1u);
  EXPECT_EQ(usage.pods[0].containers[0].more.at("nvidia.com/gpu"), "120m");
}

}  // namespace
}  // namespace skiff::node
