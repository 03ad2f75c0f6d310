// What pods mount, and how it follows what it is made of.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>

#include "node/testing/agent_fixture.h"

namespace skiff::node {
namespace {

TEST_F(AgentTest, VolumesAndTheirMountsReachTheRuntime) {
  create(kSecrets, R"({"metadata":{"name":"s","namespace":"default"},"data":{"k":"dmFsdWU="}})");
  start();
  create_pod("p", "u1", R"(,"volumes":[{"name":"v","secret":{"secretName":"s"}}])",
             R"(,"volumeMounts":[{"name":"v","mountPath":"/etc/s","readOnly":true}])");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  const ContainerSpec spec = runtime_->started().at(0);
  ASSERT_EQ(spec.mounts.size(), 1U);
  EXPECT_EQ(spec.mounts[0].target, "/etc/s");
  EXPECT_TRUE(std::filesystem::exists(spec.mounts[0].source + "/k"));
}

TEST_F(AgentTest, ASubPathThatLeavesItsVolumeIsAFaultOfTheConfiguration) {
  start();
  create_pod("p", "u1", R"(,"volumes":[{"name":"v","emptyDir":{}}])",
             R"x(,"env":[{"name":"UP","value":".."}],
                 "volumeMounts":[{"name":"v","mountPath":"/m","subPathExpr":"$(UP)"}])x");
  EXPECT_TRUE(eventually([&] { return waiting("p") == "CreateContainerConfigError"; }));
  EXPECT_TRUE(runtime_->started().empty());
}

TEST_F(AgentTest, WhatAPodWaitsForStartsItWhenItComes) {
  // While time stands still nothing is tried again for its own sake.
  struct Still final : env::Clock {
    Time now() const override { return Time(std::chrono::hours(24)); }
    Duration elapsed() const override { return Duration(0); }
  };
  const Still still;
  agent_ = std::make_unique<Agent>(client_, *runtime_, still, options_);
  agent_->start();
  create_pod("p", "u1", R"(,"volumes":[{"name":"v","secret":{"secretName":"s"}}])");
  EXPECT_TRUE(eventually([&] { return noted("FailedMount"); }));
  create(kSecrets, R"({"metadata":{"name":"s","namespace":"default"},"data":{}})");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  agent_.reset();  // before its clock
}

TEST_F(AgentTest, VolumesFollowAlsoWhatChangedWhileNobodyLooked) {
  create(kMaps, R"({"metadata":{"name":"m","namespace":"default"},"data":{"k":"one"}})");
  start();
  create_pod("p", "u1", R"(,"volumes":[{"name":"v","configMap":{"name":"m"}}])");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  for (const std::string text : {"two", "three", "four"}) {
    // Whichever comes first at the agent, the change or the news that there is no history.
    patch(kMaps, "m", R"({"data":{"k":")" + text + R"("}})");
    client_.forget_history();
    EXPECT_TRUE(eventually([&] { return in_volume("u1", "v/k") == text; })) << text;
  }
}

TEST_F(AgentTest, VolumesFollowWhatTheyAreMadeOf) {
  create(kMaps, R"({"metadata":{"name":"m","namespace":"default"},"data":{"k":"one"}})");
  start();
  create_pod("p", "u1",
             R"(,"volumes":[{"name":"v","configMap":{"name":"m"}},
                {"name":"o","secret":{"secretName":"later","optional":true}},
                {"name":"d","downwardAPI":{"items":[{"path":"labels",
                  "fieldRef":{"fieldPath":"metadata.labels"}}]}}])");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  EXPECT_EQ(in_volume("u1", "v/k"), "one");
  patch(kMaps, "m", R"({"data":{"k":"two"}})");
  EXPECT_TRUE(eventually([&] { return in_volume("u1", "v/k") == "two"; }));
  create(kSecrets, R"({"metadata":{"name":"later","namespace":"default"},"data":{"k":"eA=="}})");
  EXPECT_TRUE(eventually([&] { return in_volume("u1", "o/k") == "x"; }));
  EXPECT_EQ(in_volume("u1", "d/labels"), "app=\"x\"");
  patch(kPods, "p", R"({"metadata":{"labels":{"app":"y"}}})");
  EXPECT_TRUE(eventually([&] { return in_volume("u1", "d/labels") == "app=\"y\""; }));
  // What a source once gave stays when the source goes, and the user is told.
  remove(kMaps, "m");
  EXPECT_TRUE(eventually([&] { return noted("FailedMount"); }));
  EXPECT_EQ(in_volume("u1", "v/k"), "two");
}

TEST_F(AgentTest, AChangeOfLabelsBesideAStatusWriteReachesTheFiles) {
  bool changed = false;
  client_.before_write([&](const client::Write& write) {
    const bool running = json::get_string(write.body, {"status", "phase"}) == "Running";
    if (write.subresource == "status" && running && !std::exchange(changed, true)) {
      patch(kPods, "p", R"({"metadata":{"labels":{"app":"y"}}})");
    }
  });
  start();
  create_pod("p", "u1",
             R"(,"volumes":[{"name":"d","downwardAPI":{"items":[{"path":"labels",
                  "fieldRef":{"fieldPath":"metadata.labels"}}]}}])");
  EXPECT_TRUE(eventually([&] { return in_volume("u1", "d/labels") == "app=\"y\""; }));
}

TEST_F(AgentTest, TokensOfRunningPodsAreRenewedInTime) {
  options_.volumes_every = std::chrono::milliseconds(2);
  options_.tokens = [n = 0](const TokenWish& wish) mutable -> Result<std::string> {
    return wish.pod + std::to_string(++n);
  };
  start();
  create_pod("p", "u1", R"(,"volumes":[{"name":"t","projected":{"sources":[
      {"serviceAccountToken":{"path":"token","expirationSeconds":1}}]}}])");
  EXPECT_TRUE(eventually([&] { return in_volume("u1", "t/token").starts_with("p"); }));
  const std::string first = in_volume("u1", "t/token");
  EXPECT_TRUE(eventually([&] {
    const std::string now = in_volume("u1", "t/token");
    return !now.empty() && now != first;
  }));
}

TEST_F(AgentTest, APodWhoseVolumeOutgrowsItsLimitIsEvicted) {
  options_.volumes_every = std::chrono::milliseconds(2);
  start();
  create_pod("p", "u1", R"(,"volumes":[{"name":"v","emptyDir":{"sizeLimit":"64Ki"}}])");
  create_pod("q", "u2", R"(,"volumes":[{"name":"v","emptyDir":{"sizeLimit":"64Ki"}}])");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running" && phase("q") == "Running"; }));
  std::ofstream(*runtime_->pod_folder("u1") + "/volumes/v/big") << std::string(100 << 10, 'x');
  EXPECT_TRUE(eventually([&] { return phase("p") == "Failed"; }));
  const auto pod = client_.get(kPods, "default", "p");
  EXPECT_EQ(json::get_string(*pod, {"status", "reason"}), "Evicted");
  EXPECT_EQ(json::get_string(*pod, {"status", "message"}),
            "Usage of EmptyDir volume \"v\" exceeds the limit \"64Ki\". ");
  EXPECT_TRUE(noted("Evicted"));
  EXPECT_EQ(phase("q"), "Running");
}

TEST_F(AgentTest, TheFolderOfAReleasedVolumeGoesOnlyWhenItsClaimIsGone) {
  options_.volumes_folder = folder_ + "/volumes";
  std::filesystem::create_directories(folder_ + "/volumes/pv/deep");
  create(kClaims, R"({"metadata":{"name":"c","namespace":"default","uid":"c1"}})");
  create(kVolumes, R"({"metadata":{"name":"pv","uid":"v1","finalizers":["skiff.dev/volume-folder"],
      "annotations":{"pv.kubernetes.io/provisioned-by":"skiff.dev/local-path"}},
      "spec":{"persistentVolumeReclaimPolicy":"Delete","hostPath":{"path":")" +
                       folder_ + R"(/volumes/pv"},
      "claimRef":{"namespace":"default","name":"c","uid":"c1"}},"status":{"phase":"Released"}})");
  start();
  // When this pod runs, the volume has been looked at.
  create_pod("p", "u1");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/volumes/pv/deep"));
  remove(kClaims, "c");
  client::Write touch;
  touch.verb = client::Verb::kMergePatch;
  touch.resource = kVolumes;
  touch.name = "pv";
  touch.body = parse(R"({"metadata":{"labels":{"a":"b"}}})");
  ASSERT_TRUE(client_.write(touch));
  EXPECT_TRUE(eventually([&] { return !client_.get(kVolumes, "", "pv"); }));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/volumes/pv"));
}

}  // namespace
}  // namespace skiff::node
