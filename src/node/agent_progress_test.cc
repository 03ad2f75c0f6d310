// What the agent tells of the progress of training pods.
#include <csignal>

#include "node/progress/progress_desk.h"
#include "node/progress_file.h"
#include "node/testing/agent_fixture.h"

namespace skiff::node {
namespace {

class AgentProgressTest : public AgentTest {
 protected:
  void create_replica(const std::string& name, const std::string& uid,
                      const std::string& env = "") {
    create(kPods, R"({"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default","name":")" +
                      name + R"(","uid":")" + uid +
                      R"(","labels":{"training.kubeflow.org/job-name":"j",)"
                      R"("training.kubeflow.org/replica-index":"0"}},)"
                      R"("spec":{"nodeName":"n1","restartPolicy":"Never","containers":)"
                      R"([{"name":"main","image":"img","command":["run"])" +
                      env + "}]}}");
  }
  void say(const std::string& uid, const std::string& line) {
    const std::string path = runtime_->log_path(uid, "main", 0);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::app) << "2026-11-15T12:00:00Z stdout F " << line << "\n";
  }
  std::string told(const std::string& name) {
    const auto pod = client_.get(kPods, "default", name);
    if (!pod) return "gone";
    return std::string(json::get_string(*pod, {"metadata", "annotations", kProgressAnnotation}));
  }
  std::string variable(std::string_view name) {
    const auto started = runtime_->started();
    for (const std::string& one : started.empty() ? std::vector<std::string>() : started[0].env) {
      if (one.starts_with(std::string(name) + "=")) return one.substr(name.size() + 1);
    }
    return "";
  }
};

TEST_F(AgentProgressTest, WhatATrainingPodSaysBecomesAnAnnotation) {
  start();
  create_replica("p", "u1");
  create_pod("plain", "u2");
  ASSERT_TRUE(eventually([&] { return phase("p") == "Running" && phase("plain") == "Running"; }));
  say("u1", "step 3/9 loss=0.5");
  say("u2", "step 3/9 loss=0.5");
  ASSERT_TRUE(eventually([&] { return told("p").contains(R"("main":{"step":3,"totalSteps":9)"); }));
  EXPECT_EQ(told("plain"), "") << "it trains nothing";
}

TEST_F(AgentProgressTest, TheLastWordOfAPodThatEndsSoonIsTold) {
  start();
  create_replica("short", "u1");
  ASSERT_TRUE(eventually([&] { return phase("short") == "Running"; }));
  say("u1", "step 9/9");
  ASSERT_TRUE(runtime_->signal("u1", "main", SIGKILL));
  ASSERT_TRUE(eventually([&] { return phase("short") == "Failed"; }));
  ASSERT_TRUE(eventually([&] { return told("short").contains(R"("step":9)"); }));
}

TEST_F(AgentProgressTest, ATrainingContainerIsToldWhereToWriteItsProgress) {
  start();
  create_replica("p", "u1");
  ASSERT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  EXPECT_EQ(variable(kProgressVariable), "/var/run/skiff/progress/main.jsonl");
  const std::string file = progress_file(*runtime_->pod_folder("u1"), "main");
  std::ofstream(file) << R"({"step": 7, "total_steps": 70})" << "\n";
  ASSERT_TRUE(eventually([&] { return told("p").contains(R"("step":7,"totalSteps":70)"); }));
}

TEST_F(AgentProgressTest, WhoSaysWhereItsFileIsKeepsIt) {
  start();
  create_replica("p", "u1", R"(,"env":[{"name":"SKIFF_PROGRESS_FILE","value":"/data/p.jsonl"}])");
  ASSERT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  EXPECT_EQ(variable(kProgressVariable), "/data/p.jsonl");
}

TEST_F(AgentProgressTest, OtherPodsAreNotToldOfAFile) {
  start();
  create_pod("plain", "u2");
  ASSERT_TRUE(eventually([&] { return phase("plain") == "Running"; }));
  EXPECT_EQ(variable(kProgressVariable), "");
}

}  // namespace
}  // namespace skiff::node
