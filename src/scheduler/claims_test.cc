#include "scheduler/claims.h"

#include <gtest/gtest.h>

#include "api/meta.h"
#include "control/runtime.h"
#include "control/testing/memory_server.h"
#include "control/testing/resources.h"
#include "env/sim/clock.h"
#include "scheduler/controller.h"

namespace skiff::scheduler {
namespace {

using control::testing::kNodes;
using control::testing::kPods;

const api::Resource kClaims = {
    .version = "v1", .plural = "persistentvolumeclaims", .kind = "PersistentVolumeClaim"};
const api::Resource kVolumes = {.version = "v1",
                                .plural = "persistentvolumes",
                                .kind = "PersistentVolume",
                                .namespaced = false};
const api::Resource kClasses = {.group = "storage.k8s.io",
                                .version = "v1",
                                .plural = "storageclasses",
                                .kind = "StorageClass",
                                .namespaced = false};

class ClaimsTest : public ::testing::Test {
 protected:
  ClaimsTest() {
    runtime_.add(make_scheduler());
    for (const char* node : {"n1", "n2"}) {
      make(kNodes, std::string(R"({"metadata":{"name":")") + node +
                       R"(","labels":{"kubernetes.io/hostname":")" + node +
                       R"("}},"status":{"allocatable":{"cpu":"2"}}})");
    }
    make(kClasses, R"({"metadata":{"name":"later"},"provisioner":"skiff.dev/local-path",
                       "volumeBindingMode":"WaitForFirstConsumer"})");
    make(kClasses, R"({"metadata":{"name":"manual"},"provisioner":"kubernetes.io/no-provisioner",
                       "volumeBindingMode":"WaitForFirstConsumer"})");
  }
  void make(const api::Resource& resource, const std::string& text) {
    const auto body = json::parse(text);
    ASSERT_TRUE(body) << text;
    const auto done =
        server_.write({.resource = resource, .ns = resource.namespaced ? "ns" : "", .body = *body});
    ASSERT_TRUE(done) << done.error().message;
  }
  void pod(const std::string& name, const std::string& claim, const std::string& metadata = "") {
    make(kPods, R"({"metadata":{"name":")" + name + "\"" + metadata +
                    R"(},"spec":{"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":")" +
                    claim + R"("}}]}})");
  }
  void claim(const std::string& name, const std::string& storage_class,
             const std::string& metadata = "") {
    make(kClaims, R"({"metadata":{"name":")" + name + "\"" + metadata +
                      R"(},"spec":{"storageClassName":")" + storage_class + R"("}})");
  }
  void change(const api::Resource& resource, const std::string& name, const std::string& text) {
    ASSERT_TRUE(server_.write({.verb = client::Verb::kMergePatch,
                               .resource = resource,
                               .ns = resource.namespaced ? "ns" : "",
                               .name = name,
                               .body = *json::parse(text)}));
  }
  // As the storage controller does it.
  void bind(const std::string& name, const std::string& volume) {
    change(kClaims, name,
           R"({"metadata":{"annotations":{"pv.kubernetes.io/bind-completed":"yes"}},
        "spec":{"volumeName":")" +
               volume + R"("},"status":{"phase":"Bound"}})");
  }
  void settle() {
    for (int i = 0; i < 50; ++i) {
      const std::uint64_t before = server_.revision();
      runtime_.pump();
      if (server_.revision() == before) return;
      clock_.advance(std::chrono::milliseconds(1));
    }
    FAIL() << "does not settle";
  }
  std::string node_of(const std::string& name) {
    return std::string(json::get_string(*server_.get(kPods, "ns", name), {"spec", "nodeName"}));
  }
  std::string why(const std::string& name) {
    const json::value pod = *server_.get(kPods, "ns", name);
    const json::object* condition = api::condition(pod, "PodScheduled");
    return condition == nullptr
               ? ""
               : std::string(json::get_string(json::value(*condition), {"message"}));
  }
  std::string selected(const std::string& name) {
    return std::string(api::annotation(*server_.get(kClaims, "ns", name), api::kSelectedNode));
  }

  env::sim::Clock clock_ = env::sim::Clock();
  control::testing::MemoryServer server_{clock_};
  control::Runtime runtime_{server_, clock_};
};

TEST_F(ClaimsTest, APodSaysWhatIsWrongWithItsClaim) {
  pod("a", "absent");
  claim("now", "none");
  pod("b", "now");
  claim("lost", "later");
  change(kClaims, "lost", R"({"spec":{"volumeName":"pv"},"status":{"phase":"Lost"}})");
  pod("c", "lost");
  claim("going", "later", R"(,"deletionTimestamp":"2026-01-01T00:00:00Z")");
  pod("d", "going");
  make(kPods, R"({"metadata":{"name":"e"},"spec":{"volumes":[{"name":"v","ephemeral":
      {"volumeClaimTemplate":{"spec":{}}}}]}})");
  claim("f-v", "later");
  make(kPods, R"({"metadata":{"name":"f"},"spec":{"volumes":[{"name":"v","ephemeral":
      {"volumeClaimTemplate":{"spec":{}}}}]}})");
  settle();
  const std::string head = "0/2 nodes are available: ";
  EXPECT_EQ(why("a"), head + "persistentvolumeclaim \"absent\" not found");
  EXPECT_EQ(why("b"), head + "pod has unbound immediate PersistentVolumeClaims");
  EXPECT_EQ(why("c"),
            head + "persistentvolumeclaim \"lost\" bound to non-existent persistentvolume \"pv\"");
  EXPECT_EQ(why("d"), head + "persistentvolumeclaim \"going\" is being deleted");
  EXPECT_EQ(why("e"), head +
                          "waiting for ephemeral volume controller to create the "
                          "persistentvolumeclaim \"e-v\"");
  EXPECT_EQ(why("f"), head + "PVC ns/f-v was not created for pod ns/f (pod is not owner)");
}

TEST_F(ClaimsTest, TheNodeIsChosenFirstAndThePodFollowsItsVolume) {
  claim("c", "later");
  pod("p", "c");
  pod("q", "c");
  settle();
  const std::string node = selected("c");
  ASSERT_FALSE(node.empty());
  EXPECT_EQ(node_of("p"), "");
  EXPECT_EQ(why("p"), "");  // nothing is wrong
  make(kVolumes, R"({"metadata":{"name":"pv"},"spec":{"nodeAffinity":{"required":{
      "nodeSelectorTerms":[{"matchExpressions":[{"key":"kubernetes.io/hostname","operator":"In",
      "values":[")" + node +
                     R"("]}]}]}}}})");
  bind("c", "pv");
  settle();
  EXPECT_EQ(node_of("p"), node);
  EXPECT_EQ(node_of("q"), node);
}

TEST_F(ClaimsTest, AVolumeThatReachesNoNodeKeepsThePodAway) {
  claim("c", "later");
  make(kVolumes, R"({"metadata":{"name":"pv"},"spec":{"nodeAffinity":{"required":{
      "nodeSelectorTerms":[{"matchExpressions":[{"key":"kubernetes.io/hostname","operator":"In",
      "values":["elsewhere"]}]}]}}}})");
  bind("c", "pv");
  pod("p", "c");
  settle();
  EXPECT_EQ(why("p"),
            "0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity");
}

TEST_F(ClaimsTest, WhatCannotBeMadeIsToldAndHoldsNoRoom) {
  make(kClaims, R"({"metadata":{"name":"block"},
      "spec":{"storageClassName":"later","volumeMode":"Block"}})");
  pod("p", "block");
  settle();
  EXPECT_EQ(why("p"),
            "0/2 nodes are available: node(s) didn't find available persistent volumes to bind");
}

TEST_F(ClaimsTest, WhileAVolumeIsMadeNobodyTakesThePlaceOfItsPod) {
  claim("c", "later");
  const auto big = [&](const std::string& name, const std::string& more) {
    make(kPods, R"({"metadata":{"name":")" + name + R"("},"spec":{)" + more +
                    R"("containers":[{"name":"c","resources":{"requests":{"cpu":"2"}}}]}})");
  };
  big("other", "");
  settle();
  big("first", R"("volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"c"}}],)");
  settle();
  ASSERT_FALSE(selected("c").empty());
  clock_.advance(std::chrono::seconds(1));
  big("second", "");
  settle();
  EXPECT_EQ(node_of("second"), "");
}

TEST_F(ClaimsTest, WithoutAProvisionerTheWaitIsTold) {
  claim("c", "manual");
  pod("p", "c");
  settle();
  EXPECT_FALSE(selected("c").empty());
  EXPECT_EQ(why("p"),
            "0/2 nodes are available: node(s) didn't find available persistent volumes to bind");
}

TEST_F(ClaimsTest, AClaimForOnePodIsHadByOnePodAtATime) {
  claim("c", "later");
  change(kClaims, "c", R"({"spec":{"accessModes":["ReadWriteOncePod"]}})");
  make(kVolumes, R"({"metadata":{"name":"pv"},"spec":{}})");
  bind("c", "pv");
  pod("a", "c");
  pod("b", "c");
  settle();
  const bool first = !node_of("a").empty();
  const std::string has = first ? "a" : "b";
  const std::string waits = first ? "b" : "a";
  EXPECT_NE(node_of(has), "");
  EXPECT_EQ(node_of(waits), "");
  EXPECT_EQ(why(waits), "0/2 nodes are available: " + std::string(kExclusiveConflict));
  change(kPods, has, R"({"status":{"phase":"Succeeded"}})");
  settle();
  EXPECT_NE(node_of(waits), "");
}

TEST_F(ClaimsTest, AGangStartsWhenAllItsVolumesAreThere) {
  const std::string gang = R"(,"annotations":{"scheduling.skiff.dev/gang":"g",
                               "scheduling.skiff.dev/gang-min":"2"})";
  claim("c", "later");
  make(kPods, R"({"metadata":{"name":"a")" + gang + R"(},"spec":{}})");
  pod("b", "c", gang);
  settle();
  EXPECT_FALSE(selected("c").empty());
  EXPECT_EQ(node_of("a"), "");
  make(kVolumes, R"({"metadata":{"name":"pv"},"spec":{}})");
  bind("c", "pv");
  settle();
  EXPECT_NE(node_of("a"), "");
  EXPECT_NE(node_of("b"), "");
}

}  // namespace
}  // namespace skiff::scheduler
