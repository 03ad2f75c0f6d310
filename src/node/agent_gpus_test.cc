// GPUs of an agent whose runtime runs nothing.
#include "node/testing/agent_fixture.h"

namespace skiff::node {
namespace {

class GpuAgent : public AgentTest {
 protected:
  GpuAgent() {
    for (int i = 0; i < 2; ++i) {
      options_.gpus.push_back({.uuid = "GPU-" + std::to_string(i),
                               .name = "Fake GPU",
                               .minor = i + 4,
                               .memory_bytes = std::int64_t{16} << 30});
    }
    options_.gpu_loads = [] {
      return Result<std::vector<GpuLoad>>({{.busy_percent = 40, .memory_bytes = 1 << 20}});
    };
  }

  void gpu_pod(const std::string& name, const std::string& uid, int count,
               const std::string& more = "") {
    create_pod(
        name, uid, "",
        R"(,"resources":{"limits":{"nvidia.com/gpu":")" + std::to_string(count) + "\"}}" + more);
  }
  // What the container of this pod was started with.
  std::optional<ContainerSpec> started(const std::string& name) {
    for (const ContainerSpec& spec : runtime_->started()) {
      for (const std::string& variable : spec.env) {
        if (variable == "HOSTNAME=" + name) return spec;
      }
    }
    return std::nullopt;
  }
  static std::string variable(const ContainerSpec& spec, const std::string& name) {
    for (const std::string& pair : spec.env) {
      if (pair.starts_with(name + "=")) return pair.substr(name.size() + 1);
    }
    return "(not set)";
  }
};

TEST_F(GpuAgent, TheNodeTellsHowManyItHas) {
  start();
  ASSERT_TRUE(eventually([&] {
    const auto node = client_.get(kNodes, "", "n1");
    return node && !json::get_string(*node, {"status", "capacity", "nvidia.com/gpu"}).empty();
  }));
  const auto node = client_.get(kNodes, "", "n1");
  EXPECT_EQ(json::get_string(*node, {"status", "capacity", "nvidia.com/gpu"}), "2");
  EXPECT_EQ(json::get_string(*node, {"status", "allocatable", "nvidia.com/gpu"}), "2");
  EXPECT_EQ(json::get_string(*node, {"metadata", "labels", "nvidia.com/gpu.product"}), "Fake-GPU");
  EXPECT_EQ(json::get_string(*node, {"metadata", "labels", "nvidia.com/gpu.memory"}), "16384");
}

TEST_F(GpuAgent, WhoAsksGetsThemAndWhoDoesNotSeesNone) {
  start();
  gpu_pod("asks", "u1", 1);
  ASSERT_TRUE(eventually([&] { return started("asks").has_value(); }));
  create_pod("plain", "u2");
  ASSERT_TRUE(eventually([&] { return started("plain").has_value(); }));
  const ContainerSpec asks = *started("asks"), plain = *started("plain");
  EXPECT_EQ(variable(asks, "NVIDIA_VISIBLE_DEVICES"), "GPU-0");
  EXPECT_EQ(variable(asks, "CUDA_VISIBLE_DEVICES"), "GPU-0");
  EXPECT_EQ(asks.gpus, std::vector<int>{4});
  EXPECT_EQ(variable(plain, "NVIDIA_VISIBLE_DEVICES"), "void");
  EXPECT_EQ(plain.gpus, std::vector<int>{});
}

TEST_F(GpuAgent, WhatThePodSaysItselfCounts) {
  start();
  gpu_pod("asks", "u1", 1, R"(,"env":[{"name":"CUDA_VISIBLE_DEVICES","value":"mine"}])");
  ASSERT_TRUE(eventually([&] { return started("asks").has_value(); }));
  EXPECT_EQ(variable(*started("asks"), "CUDA_VISIBLE_DEVICES"), "mine");
}

TEST_F(GpuAgent, ThoseOfAPodThatEndedGoToTheNext) {
  script("first", {{.runs_for = std::chrono::milliseconds(1)}});
  start();
  gpu_pod("first", "u1", 2);
  ASSERT_TRUE(eventually([&] { return phase("first") == "Succeeded"; }));
  gpu_pod("second", "u2", 2);
  ASSERT_TRUE(eventually([&] { return started("second").has_value(); }));
  EXPECT_EQ(variable(*started("second"), "CUDA_VISIBLE_DEVICES"), "GPU-0,GPU-1");
}

TEST_F(GpuAgent, WhereNoneIsFreeThePodSaysSoAndWaits) {
  start();
  gpu_pod("first", "u1", 2);
  ASSERT_TRUE(eventually([&] { return phase("first") == "Running"; }));
  gpu_pod("second", "u2", 1);
  ASSERT_TRUE(eventually([&] { return waiting("second") == "CreateContainerError"; }));
  EXPECT_NE(waiting("second", "message").find("0 of the 2 on this node are free"),
            std::string::npos);
}

TEST_F(GpuAgent, ANewAgentKnowsWhoHasThem) {
  start();
  gpu_pod("first", "u1", 1);
  ASSERT_TRUE(eventually([&] { return phase("first") == "Running"; }));
  agent_.reset();
  start();
  gpu_pod("second", "u2", 1);
  ASSERT_TRUE(eventually([&] { return started("second").has_value(); }));
  EXPECT_EQ(variable(*started("second"), "CUDA_VISIBLE_DEVICES"), "GPU-1");
}

TEST_F(GpuAgent, ThoseOfAPodWhoseSandboxWasLostGoToTheNext) {
  start();
  gpu_pod("first", "u1", 2);
  ASSERT_TRUE(eventually([&] { return phase("first") == "Running"; }));
  const std::string kept = *runtime_->pod_folder("u1") + "/gpus.json";
  EXPECT_TRUE(std::filesystem::exists(kept));
  runtime_->lose_sandbox("u1");
  ASSERT_TRUE(eventually([&] { return phase("first") == "Failed"; }));
  gpu_pod("second", "u2", 2);
  ASSERT_TRUE(eventually([&] { return started("second").has_value(); }));
  EXPECT_FALSE(std::filesystem::exists(kept)) << "the next agent would believe it";
}

// As after a reboot that came between the pod's end and the end of its sandbox.
TEST_F(GpuAgent, ANewAgentFreesThoseOfAPodThatIsOver) {
  start();
  gpu_pod("first", "u1", 2);
  ASSERT_TRUE(eventually([&] { return phase("first") == "Running"; }));
  agent_.reset();
  runtime_->lose_sandbox("u1");
  patch(kPods, "first", R"({"status":{"phase":"Failed"}})");
  start();
  gpu_pod("second", "u2", 2);
  ASSERT_TRUE(eventually([&] { return started("second").has_value(); }));
  EXPECT_EQ(variable(*started("second"), "CUDA_VISIBLE_DEVICES"), "GPU-0,GPU-1");
}

TEST_F(GpuAgent, WhoLooksIntoAPodGetsNone) {
  start();
  create_pod("p", "u1", R"(,"ephemeralContainers":[{"name":"debug","image":"img",
      "command":["look"],"resources":{"limits":{"nvidia.com/gpu":"1"}}}])");
  const auto debugger = [&]() -> std::optional<ContainerSpec> {
    for (const ContainerSpec& spec : runtime_->started()) {
      if (spec.name == "debug") return spec;
    }
    return std::nullopt;
  };
  ASSERT_TRUE(eventually([&] { return debugger().has_value(); }));
  EXPECT_EQ(debugger()->gpus, std::vector<int>{});
}

TEST_F(GpuAgent, AMachineThatLostItsGpusSaysSo) {
  start();
  const auto amount = [&] {
    const auto node = client_.get(kNodes, "", "n1");
    return node ? std::string(json::get_string(*node, {"status", "capacity", "nvidia.com/gpu"}))
                : "";
  };
  ASSERT_TRUE(eventually([&] { return amount() == "2"; }));
  agent_.reset();
  options_.gpus.clear();
  start();
  ASSERT_TRUE(eventually([&] { return amount() == "0"; }));
  EXPECT_EQ(
      json::find(*client_.get(kNodes, "", "n1"), {"metadata", "labels", "nvidia.com/gpu.present"}),
      nullptr);
}

TEST_F(GpuAgent, UseOfGpusIsTheNodes) {
  start();
  apiserver::Usage usage;
  ASSERT_TRUE(eventually([&] {
    usage = agent_->usage();
    return !usage.nodes.empty();
  }));
  EXPECT_EQ(usage.nodes[0].more.at("nvidia.com/gpu"), "400m");
  EXPECT_EQ(usage.nodes[0].more.at("nvidia.com/gpu.memory"), "1024Ki");
}

}  // namespace
}  // namespace skiff::node
