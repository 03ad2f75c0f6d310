#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>

#include "node/node_object.h"
#include "node/testing/agent_fixture.h"

namespace skiff::node {
namespace {

TEST_F(AgentTest, RegistersTheNodeWithItsCapacityAndALease) {
  options_.capacity = {{"nvidia.com/gpu", "4"}};
  start();
  EXPECT_TRUE(
      eventually([&] { return client_.get(kLeases, "kube-node-lease", "n1").has_value(); }));
  const auto node = client_.get(kNodes, "", "n1");
  ASSERT_TRUE(node);
  EXPECT_TRUE(api::condition_true(*node, "Ready"));
  EXPECT_EQ(json::get_string(*node, {"status", "capacity", "pods"}), "1000");
  EXPECT_EQ(json::get_string(*node, {"status", "allocatable", "nvidia.com/gpu"}), "4");
}

TEST_F(AgentTest, RunsAPodToItsEndAndTellsItsStory) {
  script("p", {{.exit_code = 0}});
  start();
  create_pod("p", "u1");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Succeeded"; }));
  EXPECT_TRUE(eventually([&] { return journal_count("stop u1") == 1; }));
  EXPECT_EQ(journal_count("start u1/main/0"), 1);
  const auto pod = client_.get(kPods, "default", "p");
  EXPECT_FALSE(json::get_string(*pod, {"status", "podIP"}).empty());
  const auto events = client_.list(kEvents, "", {});
  std::vector<std::string> reasons;
  for (const Object& event : events->items) {
    reasons.emplace_back(json::get_string(*event, {"reason"}));
  }
  std::sort(reasons.begin(), reasons.end());
  EXPECT_EQ(reasons, (std::vector<std::string>{"Created", "Started"}));
}

TEST_F(AgentTest, LeavesPodsOfOtherNodesAlone) {
  start();
  create(kPods, R"({"metadata":{"namespace":"default","name":"q","uid":"u2"},
                    "spec":{"nodeName":"n2","containers":[{"name":"main","command":["x"]}]}})");
  create_pod("p", "u1");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  EXPECT_EQ(journal_count("sandbox u2"), 0);
}

TEST_F(AgentTest, StartsNothingBeforeTheBindingIsOnDisk) {
  client_.hold_safe(true);
  start();
  create_pod("p", "u1");
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(runtime_->journal().empty());
  client_.hold_safe(false);
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
}

TEST_F(AgentTest, RestartsAFailingContainerByItsPolicy) {
  script("p", {{.exit_code = 1}, {.forever = true}});
  start();
  create(kPods, R"({"metadata":{"namespace":"default","name":"p","uid":"u1"},
      "spec":{"nodeName":"n1","restartPolicy":"OnFailure",
              "containers":[{"name":"main","image":"i","command":["x"]}]}})");
  EXPECT_TRUE(eventually([&] {
    const auto pod = client_.get(kPods, "default", "p");
    const json::array& all = json::get_array(*pod, {"status", "containerStatuses"});
    return !all.empty() && json::get_int(all[0], {"restartCount"}) == 1 &&
           json::get_bool(all[0], {"ready"}) == true;
  }));
}

TEST_F(AgentTest, DeletesWithGraceAndRemovesEveryTrace) {
  start();
  create_pod("p", "u1");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  remove_pod("p", 30);
  EXPECT_TRUE(eventually([&] { return phase("p") == "gone"; }));
  EXPECT_TRUE(eventually([&] { return runtime_->list().empty(); }));
  EXPECT_EQ(journal_count("signal u1/main/15"), 1);
  EXPECT_EQ(journal_count("signal u1/main/9"), 0);
}

TEST_F(AgentTest, KillsWhatIgnoresTheRequestToEnd) {
  script("p", {{.forever = true, .ignores_term = true}});
  start();
  create_pod("p", "u1");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  remove_pod("p", 1);
  EXPECT_TRUE(eventually([&] { return phase("p") == "gone"; }));
  EXPECT_EQ(journal_count("signal u1/main/9"), 1);
}

TEST_F(AgentTest, StopsAPodWhoseObjectWasRemovedByForce) {
  start();
  create_pod("p", "u1");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  remove_pod("p", 0);
  EXPECT_TRUE(eventually([&] { return runtime_->list().empty(); }));
}

TEST_F(AgentTest, AdoptsWhatRunsAndClearsWhatNobodyKnowsAfterARestart) {
  start();
  create_pod("p", "u1");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  agent_.reset();
  ASSERT_TRUE(runtime_->start_sandbox({.pod_uid = "orphan"}));
  start();
  EXPECT_TRUE(eventually([&] { return journal_count("remove orphan") == 1; }));
  remove_pod("p", 30);
  EXPECT_TRUE(eventually([&] { return phase("p") == "gone"; }));
  EXPECT_EQ(journal_count("start u1/main/0"), 1);
  EXPECT_EQ(journal_count("sandbox u1"), 1);
}

TEST_F(AgentTest, LeavesAPodOfAnotherNameAloneUntilItsObjectGoes) {
  start();
  create_pod("p", "u1");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  agent_.reset();
  ASSERT_TRUE(runtime_->start_sandbox({.pod_uid = "z-orphan"}));
  options_.node_name = "renamed";
  options_.workers = 1;  // one removal after another, in the order of the uids
  start();
  EXPECT_TRUE(eventually([&] { return journal_count("remove z-orphan") == 1; }));
  EXPECT_EQ(journal_count("stop u1") + journal_count("remove u1"), 0);
  remove_pod("p", 0);
  EXPECT_TRUE(eventually([&] { return journal_count("remove u1") == 1; }));
}

TEST(NodeName, IsMadeFromAnyHostName) {
  struct Case {
    const char* host;
    const char* name;
  };
  for (const Case& c : {Case{"box", "box"}, Case{"Box-7.Lab.Example", "box-7.lab.example"},
                        Case{"my_box", "my-box"}, Case{"-odd-.-name-", "odd.name"},
                        Case{"a..b", "a.b"}, Case{"", "skiff"}, Case{"___", "skiff"}}) {
    EXPECT_EQ(valid_node_name(c.host), c.name) << c.host;
  }
  EXPECT_LE(valid_node_name(std::string(400, 'x')).size(), 63U) << "it is a label's value too";
}

TEST_F(AgentTest, ListsAgainWhenHistoryIsGone) {
  start();
  create_pod("p", "u1");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  client_.forget_history();
  create_pod("q", "u2");
  EXPECT_TRUE(eventually([&] { return phase("q") == "Running"; }));
  EXPECT_EQ(journal_count("start u1/main/0"), 1);
}

TEST_F(AgentTest, AnUnmappedImageWaitsWithTheRemediesUntilItIsMapped) {
  options_.images_host = false;
  start();
  create_pod("p", "u1");
  EXPECT_TRUE(eventually([&] { return waiting("p") == "ErrImagePull"; }));
  const std::string message = waiting("p", "message");
  EXPECT_NE(message.find("skiff image map img --host"), std::string::npos) << message;
  EXPECT_NE(message.find("skiff up --images=host"), std::string::npos) << message;
  create(kMappings, R"({"metadata":{"name":"m"},"spec":{"pattern":"img","host":true}})");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
}

// With a store that has the image "img", whose configuration names a program.
TEST_F(AgentTest, AMissingSecretIsWaitedFor) {
  start();
  create_pod("p", "u1", "",
             R"(,"env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}])");
  EXPECT_TRUE(eventually([&] { return waiting("p") == "CreateContainerConfigError"; }));
  create(kSecrets, R"({"metadata":{"name":"s","namespace":"default"},"data":{"k":"dmFsdWU="}})");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  const auto env = runtime_->started().at(0).env;
  EXPECT_NE(std::find(env.begin(), env.end(), "A=value"), env.end());
}

TEST_F(AgentTest, ARefusingRuntimeIsTriedAgain) {
  script("p", {{.refuses_start = "no room"}});
  start();
  create_pod("p", "u1");
  EXPECT_TRUE(eventually([&] { return waiting("p") == "RunContainerError"; }));
  EXPECT_EQ(waiting("p", "message"), "no room");
  script("p", {{.forever = true}});
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
}

TEST_F(AgentTest, ASandboxThatCannotBeMadeIsTriedAgain) {
  runtime_->fail_sandboxes("no bridge");
  start();
  create_pod("p", "u1");
  EXPECT_TRUE(eventually([&] { return waiting("p", "message") == "no bridge"; }));
  runtime_->fail_sandboxes("");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
}

TEST_F(AgentTest, ALostSandboxFailsAPodThatMayNotRestart) {
  start();
  create_pod("p", "u1");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  runtime_->lose_sandbox("u1");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Failed"; }));
}

TEST_F(AgentTest, APodOnTheBridgeHasItsOwnNameInItsHosts) {
  options_.dns_address = "10.0.0.1";
  start();
  create_pod("p", "u1");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  const ContainerSpec spec = runtime_->started().at(0);
  ASSERT_EQ(spec.mounts.size(), 1U);
  EXPECT_EQ(spec.mounts[0].target, "/etc/hosts");
  std::ifstream in(spec.mounts[0].source);
  const std::string hosts((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  EXPECT_NE(hosts.find("10.64.0.2\tp\n"), std::string::npos) << hosts;
}

TEST_F(AgentTest, TellsWhichRunsAreUnderWay) {
  start();
  create_pod("p", "u1");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  EXPECT_TRUE(agent_->running("u1", "main", 0));
  EXPECT_FALSE(agent_->running("u1", "main", 1));
  EXPECT_FALSE(agent_->running("u2", "main", 0));
  remove_pod("p", 30);
  EXPECT_TRUE(eventually([&] { return !agent_->running("u1", "main", 0); }));
}

TEST_F(AgentTest, SaysOfNoRunThatItIsOverBeforeItHasLooked) {
  agent_ = std::make_unique<Agent>(client_, *runtime_, clock_, options_);
  EXPECT_TRUE(agent_->running("u1", "main", 0));
  agent_->start();
  EXPECT_TRUE(eventually([&] { return !agent_->running("u1", "main", 0); }));
}

TEST_F(AgentTest, ARunOfAnEarlierLifeIsUnderWayTheWholeTime) {
  start();
  create_pod("p", "u1");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  agent_.reset();
  start();
  create_pod("q", "u2");
  while (phase("q") != "Running") ASSERT_TRUE(agent_->running("u1", "main", 0));
  EXPECT_TRUE(agent_->running("u1", "main", 0));
}

TEST_F(AgentTest, SeesADeletionThatCameJustBeforeItsOwnWrite) {
  bool deleted = false;
  client_.before_write([&](const client::Write& write) {
    const bool running = json::get_string(write.body, {"status", "phase"}) == "Running";
    if (write.subresource == "status" && running && !std::exchange(deleted, true)) {
      remove_pod("p", 30);
    }
  });
  start();
  create_pod("p", "u1");
  EXPECT_TRUE(eventually([&] { return phase("p") == "gone"; }));
}

TEST_F(AgentTest, NamesOfReadyPodsAreServed) {
  start();
  create(kServices, R"({"metadata":{"name":"svc","namespace":"default"},
                        "spec":{"clusterIP":"None","selector":{"app":"x"}}})");
  create_pod("p", "u1", R"(,"hostname":"h","subdomain":"svc")");
  EXPECT_TRUE(eventually([&] {
    const auto records = agent_->dns_records();
    const auto found = records->names.find("h.svc.default.svc.cluster.local");
    return found != records->names.end() && found->second.addresses.size() == 1;
  }));
}

TEST_F(AgentTest, HundredsOfPodsAllFinishAndEachRunsOnce) {
  constexpr int kCount = 300;
  for (int i = 0; i < kCount; ++i) script("p" + std::to_string(i), {{.exit_code = 0}});
  start();
  for (int i = 0; i < kCount; ++i) create_pod("p" + std::to_string(i), "u" + std::to_string(i));
  EXPECT_TRUE(eventually([&] {
    for (int i = 0; i < kCount; ++i) {
      if (phase("p" + std::to_string(i)) != "Succeeded") return false;
    }
    return true;
  }));
  EXPECT_EQ(runtime_->started().size(), static_cast<std::size_t>(kCount));
}

class ServiceLinksAgent : public AgentTest {
 protected:
  ServiceLinksAgent() {
    create(kServices, R"({"metadata":{"namespace":"default","name":"kubernetes"},
        "spec":{"clusterIP":"10.96.0.1","ports":[{"port":443}]}})");
    create(kServices, R"({"metadata":{"namespace":"default","name":"db"},
        "spec":{"clusterIP":"10.96.0.7","ports":[{"port":80}]}})");
  }

  // What a new pod is told.
  std::string told(std::string_view variable) {
    const std::string name = "p" + std::to_string(++pods_);
    create_pod(name, "u" + name);
    EXPECT_TRUE(eventually([&] { return runtime_->started().size() == pods_; }));
    const std::vector<ContainerSpec> all = runtime_->started();
    for (const std::string& pair : all.empty() ? std::vector<std::string>() : all.back().env) {
      if (pair.starts_with(std::string(variable) + "=")) return pair.substr(variable.size() + 1);
    }
    return "(not set)";
  }

 private:
  std::size_t pods_ = 0;
};

TEST_F(ServiceLinksAgent, AreGivenWithTheApiWhereItReallyIs) {
  agent_ = std::make_unique<Agent>(client_, *runtime_, clock_, options_);
  agent_->start({.host = "10.0.0.1", .port = 7443});
  EXPECT_EQ(told("DB_SERVICE_HOST"), "10.96.0.7");
  EXPECT_EQ(told("KUBERNETES_SERVICE_HOST"), "10.0.0.1");
  EXPECT_EQ(told("KUBERNETES_SERVICE_PORT"), "7443");
}

TEST_F(ServiceLinksAgent, AreNotGivenWhereServicesLeadNowhere) {
  runtime_->refuse_services();
  start();
  EXPECT_TRUE(eventually([&] { return told("DB_SERVICE_HOST") == "(not set)"; }));
}

}  // namespace
}  // namespace skiff::node
