#include "features/workloads/adoption.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "control/testing/laws.h"
#include "features/workloads/deployment.h"
#include "features/workloads/job.h"
#include "features/workloads/replica_set.h"
#include "features/workloads/revisions.h"
#include "features/workloads/stateful_set.h"
#include "features/workloads/testing/cluster.h"

namespace skiff::workloads {
namespace {

using testing::Cluster;

json::value named(json::value object, std::string_view name) {
  json::set(object, {"metadata", "name"}, json::string(name));
  return object;
}

json::value workload(std::int64_t replicas) {
  return {{"metadata", {{"name", "web"}}},
          {"spec",
           {{"replicas", replicas},
            {"selector", {{"matchLabels", {{"app", "web"}}}}},
            {"template", testing::pod_template()}}}};
}

void orphan(Cluster& cluster, const api::Resource& resource, std::string_view name) {
  cluster.patch(resource, name, {{"metadata", {{"ownerReferences", nullptr}}}});
}

bool owned(const json::value& object, std::string_view kind) {
  const json::object* owner = api::controller_of(object);
  return owner != nullptr && json::view(owner->at("kind").as_string()) == kind;
}

TEST(Adoption, of_a_pod_that_was_there_before_the_set) {
  Cluster cluster({replica_set_controller()});
  testing::create(cluster.client(), pod_resource(), named(testing::pod_template(), "early"));
  testing::create(cluster.client(), replica_set_resource(), workload(1));
  cluster.settle();
  ASSERT_EQ(cluster.pods().size(), 1U);
  EXPECT_TRUE(owned(*cluster.pods()[0], "ReplicaSet"));
  EXPECT_EQ(int_at(cluster.get(replica_set_resource(), "web"), {"status", "replicas"}), 1);
}

TEST(Adoption, passes_over_what_has_ended_is_another_s_or_does_not_match) {
  Cluster cluster({replica_set_controller()});
  testing::create(cluster.client(), pod_resource(), named(testing::pod_template(), "over"));
  cluster.end_pod("over", 0);
  testing::create(cluster.client(), job_resource(), named(json::object{}, "owner"));
  json::value taken = named(testing::pod_template(), "taken");
  json::set(taken, {"metadata", "ownerReferences"},
            json::array{api::owner_reference(cluster.get(job_resource(), "owner"))});
  testing::create(cluster.client(), pod_resource(), taken);
  json::value other = named(testing::pod_template(), "other");
  json::set(other, {"metadata", "labels", "app"}, "db");
  testing::create(cluster.client(), pod_resource(), other);
  testing::create(cluster.client(), replica_set_resource(), workload(1));
  cluster.settle();
  EXPECT_EQ(cluster.pods().size(), 4U);
  EXPECT_EQ(api::controller_of(cluster.get(pod_resource(), "over")), nullptr);
  EXPECT_TRUE(owned(cluster.get(pod_resource(), "taken"), "Job"));
  EXPECT_EQ(api::controller_of(cluster.get(pod_resource(), "other")), nullptr);
}

TEST(Adoption, by_two_sets_that_want_the_same_gives_each_pod_to_one) {
  Cluster cluster({replica_set_controller()});
  for (const std::string_view name : {"a", "b", "c"}) {
    testing::create(cluster.client(), pod_resource(), named(testing::pod_template(), name));
  }
  testing::create(cluster.client(), replica_set_resource(), workload(2));
  testing::create(cluster.client(), replica_set_resource(), named(workload(2), "twin"));
  cluster.settle();
  cluster.pass(std::chrono::seconds(5));
  EXPECT_EQ(cluster.pods().size(), 4U);
  for (const Object& pod : cluster.pods()) EXPECT_TRUE(owned(*pod, "ReplicaSet"));
  for (const std::string_view set : {"web", "twin"}) {
    EXPECT_EQ(int_at(cluster.get(replica_set_resource(), set), {"status", "replicas"}), 2);
  }
}

TEST(Adoption, keeps_the_owners_that_control_nothing) {
  const json::value root = {{"apiVersion", "apps/v1"},
                            {"kind", "ReplicaSet"},
                            {"metadata", {{"name", "web"}, {"uid", "u"}}}};
  json::value pod = named(testing::pod_template(), "p");
  json::set(pod, {"metadata", "ownerReferences"},
            json::array{json::object{{"kind", "ConfigMap"}, {"uid", "c"}},
                        json::object{{"kind", "ReplicaSet"}, {"uid", "u"}}});
  const client::Write write = adoption(pod_resource(), pod, root);
  const json::array& owners = json::get_array(write.body, {"metadata", "ownerReferences"});
  ASSERT_EQ(owners.size(), 2U);
  EXPECT_EQ(json::get_string(owners[0], {"uid"}), "c");
  EXPECT_EQ(json::get_bool(owners[1], {"controller"}), true);
}

TEST(Adoption, is_not_for_a_root_that_is_deleted) {
  json::value root = workload(1);
  const control::Related related = orphans(pod_resource());
  EXPECT_EQ(related.wants(root).size(), 2U);
  json::set(root, {"metadata", "deletionTimestamp"}, "2026-11-15T12:00:00Z");
  EXPECT_TRUE(related.wants(root).empty());
  control::Plan plan;
  const auto pod = std::make_shared<const json::value>(testing::pod_template());
  EXPECT_FALSE(adopt(pod_resource(), root, *selector_of(root), {pod}, plan));
  EXPECT_TRUE(plan.empty());
}

TEST(Adoption, looks_at_every_orphan_for_a_selector_of_expressions_only) {
  json::value root = workload(1);
  json::set(
      root, {"spec", "selector"},
      {{"matchExpressions", json::array{json::object{{"key", "app"}, {"operator", "Exists"}}}}});
  EXPECT_EQ(orphans(pod_resource()).wants(root).size(), 1U);
  Cluster cluster({replica_set_controller()});
  testing::create(cluster.client(), replica_set_resource(), root);
  testing::create(cluster.client(), pod_resource(), named(testing::pod_template(), "early"));
  cluster.settle();
  EXPECT_TRUE(owned(cluster.get(pod_resource(), "early"), "ReplicaSet"));
}

TEST(Adoption, by_a_replication_controller_whose_selector_is_a_map) {
  Cluster cluster({replication_controller()});
  json::value root = workload(1);
  json::set(root, {"spec", "selector"}, {{"app", "web"}});
  testing::create(cluster.client(), pod_resource(), named(testing::pod_template(), "early"));
  testing::create(cluster.client(), replication_controller_resource(), root);
  cluster.settle();
  ASSERT_EQ(cluster.pods().size(), 1U);
  EXPECT_TRUE(owned(*cluster.pods()[0], "ReplicationController"));
  cluster.patch(pod_resource(), "early", {{"metadata", {{"labels", {{"app", "debug"}}}}}});
  EXPECT_EQ(api::controller_of(cluster.get(pod_resource(), "early")), nullptr);
  EXPECT_EQ(cluster.pods().size(), 2U);
  const json::value after = cluster.get(replication_controller_resource(), "web");
  EXPECT_EQ(int_at(after, {"status", "replicas"}), 1);
  EXPECT_EQ(json::find(after, {"status", "terminatingReplicas"}), nullptr);
}

TEST(Adoption, of_the_sets_that_a_deployment_finds_again) {
  Cluster cluster({deployment_controller(), replica_set_controller()});
  testing::create(cluster.client(), deployment_resource(), workload(2));
  cluster.settle();
  cluster.start_pods();
  const std::string name(api::name(*cluster.of(replica_set_resource())[0]));
  orphan(cluster, replica_set_resource(), name);
  EXPECT_TRUE(owned(cluster.get(replica_set_resource(), name), "Deployment"));
  EXPECT_EQ(cluster.of(replica_set_resource()).size(), 1U) << "no second set was made";
  cluster.patch(replica_set_resource(), name, {{"metadata", {{"labels", {{"app", "x"}}}}}});
  EXPECT_EQ(api::controller_of(cluster.get(replica_set_resource(), name)), nullptr);
}

TEST(Adoption, of_a_job_s_pod_and_its_release) {
  Cluster cluster({job_controller()});
  json::value job = workload(1);
  for (const std::string_view field : {"parallelism", "completions"}) {
    json::set(job, {"spec", field}, 2);
  }
  testing::create(cluster.client(), job_resource(), job);
  cluster.settle();
  ASSERT_EQ(cluster.pods().size(), 2U);
  const std::string name(api::name(*cluster.pods()[0]));
  orphan(cluster, pod_resource(), name);
  EXPECT_TRUE(owned(cluster.get(pod_resource(), name), "Job"));
  EXPECT_EQ(cluster.pods().size(), 2U);
  cluster.patch(pod_resource(), name, {{"metadata", {{"labels", nullptr}}}});
  EXPECT_EQ(api::controller_of(cluster.get(pod_resource(), name)), nullptr);
  EXPECT_EQ(cluster.pods().size(), 3U);
}

TEST(Adoption, by_a_stateful_set_of_pods_and_revisions_that_its_predecessor_left) {
  Cluster cluster({stateful_set_controller()});
  testing::create(cluster.client(), stateful_set_resource(), workload(2));
  cluster.settle();
  while (cluster.start_pods() > 0) {
  }
  const std::string revision(api::name(*cluster.of(revision_resource())[0]));
  json::value again = cluster.get(stateful_set_resource(), "web");
  // As `kubectl delete --cascade=orphan` does it.
  for (const std::string_view pod : {"web-0", "web-1"}) {
    testing::change(cluster.client(), pod_resource(), pod,
                    {{"metadata", {{"ownerReferences", nullptr}}}});
  }
  testing::change(cluster.client(), revision_resource(), revision,
                  {{"metadata", {{"ownerReferences", nullptr}}}});
  testing::remove(cluster.client(), stateful_set_resource(), "web");
  testing::create(cluster.client(), stateful_set_resource(), workload(2));
  cluster.settle();
  const std::string uid(api::uid(cluster.get(stateful_set_resource(), "web")));
  EXPECT_NE(uid, api::uid(again));
  EXPECT_EQ(cluster.of(revision_resource()).size(), 1U);
  EXPECT_TRUE(api::controlled_by(cluster.get(revision_resource(), revision), uid));
  EXPECT_TRUE(api::controlled_by(cluster.get(pod_resource(), "web-0"), uid));
  EXPECT_TRUE(api::controlled_by(cluster.get(pod_resource(), "web-1"), uid));
  EXPECT_EQ(int_at(cluster.get(stateful_set_resource(), "web"), {"status", "readyReplicas"}), 2);
}

struct Refusals : ::testing::Test {
  // At most two pods, as a quota has it.
  static void limit(Cluster& cluster) {
    cluster.server().refuse = [&](const client::Write& write) -> std::optional<Error> {
      if (write.verb != client::Verb::kCreate || write.resource.kind != "Pod") return std::nullopt;
      if (cluster.pods().size() < 2) return std::nullopt;
      return Error{.code = Code::kForbidden,
                   .message = "pods are forbidden: exceeded quota",
                   .name = std::string(api::name(write.body))};
    };
  }
};

TEST_F(Refusals, are_told_as_a_condition_and_what_is_allowed_is_done) {
  Cluster cluster({replica_set_controller()});
  limit(cluster);
  testing::create(cluster.client(), replica_set_resource(), workload(3));
  cluster.settle();
  EXPECT_EQ(cluster.pods().size(), 2U);
  json::value set = cluster.get(replica_set_resource(), "web");
  ASSERT_TRUE(api::condition_true(set, "ReplicaFailure"));
  EXPECT_EQ(json::get_string(json::value(*api::condition(set, "ReplicaFailure")), {"message"}),
            "pods are forbidden: exceeded quota");
  EXPECT_GE(cluster.told("FailedCreate", "Error creating: pods are forbidden"), 1);
  cluster.patch(replica_set_resource(), "web", {{"spec", {{"replicas", 2}}}});
  cluster.pass(std::chrono::seconds(70));
  set = cluster.get(replica_set_resource(), "web");
  EXPECT_EQ(api::condition(set, "ReplicaFailure"), nullptr);
  EXPECT_EQ(int_at(set, {"status", "replicas"}), 2);
}

TEST_F(Refusals, of_a_set_are_told_by_its_deployment) {
  Cluster cluster({deployment_controller(), replica_set_controller()});
  limit(cluster);
  testing::create(cluster.client(), deployment_resource(), workload(3));
  cluster.settle();
  EXPECT_TRUE(api::condition_true(cluster.get(deployment_resource(), "web"), "ReplicaFailure"));
  cluster.server().refuse = {};
  cluster.pass(std::chrono::seconds(70));
  EXPECT_EQ(api::condition(cluster.get(deployment_resource(), "web"), "ReplicaFailure"), nullptr);
}

TEST_F(Refusals, do_not_keep_a_parallel_stateful_set_from_telling_how_it_is) {
  Cluster cluster({stateful_set_controller()});
  limit(cluster);
  json::value set = workload(4);
  json::set(set, {"spec", "podManagementPolicy"}, "Parallel");
  testing::create(cluster.client(), stateful_set_resource(), set);
  cluster.settle();
  cluster.pass(std::chrono::seconds(1));
  EXPECT_EQ(cluster.pods().size(), 2U);
  set = cluster.get(stateful_set_resource(), "web");
  EXPECT_EQ(int_at(set, {"status", "observedGeneration"}), int_at(set, {"metadata", "generation"}));
  EXPECT_EQ(int_at(set, {"status", "replicas"}), 2);
  EXPECT_GE(cluster.told("FailedCreate", "create Pod web-2 in StatefulSet web failed error: pods"),
            1);
}

// Pods lose their owner, find it again, lose their labels.
TEST(Adoption, keeps_the_five_laws) {
  int meddled = 0;
  control::testing::LawCase laws;
  laws.controller = replica_set_controller();
  laws.arrange = [&](client::Client& client, Random& random) {
    meddled = 0;
    for (int i = 0; i < 3; ++i) {
      testing::create(client, pod_resource(),
                      named(testing::pod_template(), fmt::format("early-{}", i)));
    }
    const auto replicas = static_cast<std::int64_t>(random.below(4));
    testing::create(client, replica_set_resource(), workload(replicas));
  };
  laws.step = [&](client::Client& client, Time, Random& random) {
    const std::vector<Object> pods = testing::all(client, pod_resource());
    if (++meddled > 6 || pods.empty()) return false;
    const Object& pod = pods[random.below(pods.size())];
    testing::change(client, pod_resource(), api::name(*pod),
                    random.chance(50)
                        ? json::value{{"metadata", {{"ownerReferences", nullptr}}}}
                        : json::value{{"metadata", {{"labels", {{"app", "debug"}}}}}});
    return true;
  };
  laws.wrong = [](client::Client& client) -> std::optional<std::string> {
    for (const Object& set : testing::all(client, replica_set_resource())) {
      std::int64_t mine = 0;
      for (const Object& pod : testing::all(client, pod_resource())) {
        const bool fits = api::label(*pod, "app") == "web";
        if (api::controlled_by(*pod, api::uid(*set))) {
          ++mine;
          if (!fits) return "a pod that is not selected is still owned";
        }
        if (fits && api::controller_of(*pod) == nullptr) return "a pod that fits is nobody's";
      }
      if (mine != int_at(*set, {"spec", "replicas"})) return "the number of pods is wrong";
      if (mine != int_at(*set, {"status", "replicas"})) return "the status miscounts";
    }
    return std::nullopt;
  };
  laws.settle_rounds = 8;
  for (const std::string& sentence : control::testing::check_laws(laws)) ADD_FAILURE() << sentence;
}

}  // namespace
}  // namespace skiff::workloads
