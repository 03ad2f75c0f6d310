#include "features/workloads/replica_set.h"

#include <gtest/gtest.h>

#include "control/testing/laws.h"
#include "features/workloads/testing/cluster.h"

namespace skiff::workloads {
namespace {

using testing::Cluster;

json::value replica_set(std::int64_t replicas, std::int64_t min_ready_s = 0) {
  return {{"metadata", {{"name", "web"}}},
          {"spec",
           {{"replicas", replicas},
            {"minReadySeconds", min_ready_s},
            {"selector", {{"matchLabels", {{"app", "web"}}}}},
            {"template", testing::pod_template()}}}};
}

struct ReplicaSets : ::testing::Test {
  Cluster cluster{{replica_set_controller()}};

  void make(json::value set) {
    testing::create(cluster.client(), replica_set_resource(), std::move(set));
    cluster.settle();
  }
  std::int64_t count(std::string_view field) {
    return int_at(cluster.get(replica_set_resource(), "web"), {"status", field});
  }
};

TEST_F(ReplicaSets, make_as_many_pods_as_asked_for_and_name_them_after_themselves) {
  make(replica_set(3));
  ASSERT_EQ(cluster.pods().size(), 3U);
  const json::value& pod = *cluster.pods().front();
  EXPECT_TRUE(api::name(pod).starts_with("web-"));
  EXPECT_EQ(api::name(pod).size(), 9U);
  EXPECT_EQ(api::label(pod, "app"), "web");
  EXPECT_EQ(cluster.told("SuccessfulCreate", "Created pod: web-"), 3);
  EXPECT_EQ(count("replicas"), 3);
  EXPECT_EQ(count("fullyLabeledReplicas"), 3);
  EXPECT_EQ(count("readyReplicas"), 0);
}

TEST_F(ReplicaSets, replace_pods_that_end_or_are_deleted) {
  make(replica_set(2));
  cluster.start_pods();
  const std::string first(api::name(*cluster.pods()[0]));
  cluster.end_pod(first, 1);
  EXPECT_EQ(cluster.pods().size(), 3U);
  testing::remove(cluster.client(), pod_resource(), api::name(*cluster.pods()[1]));
  cluster.settle();
  EXPECT_EQ(std::ranges::count_if(cluster.pods(), [](const Object& p) { return active(*p); }), 2);
}

TEST_F(ReplicaSets, count_pods_as_available_only_after_min_ready_seconds) {
  make(replica_set(1, 10));
  cluster.start_pods();
  EXPECT_EQ(count("readyReplicas"), 1);
  EXPECT_EQ(count("availableReplicas"), 0);
  cluster.pass(std::chrono::seconds(5));
  EXPECT_EQ(count("availableReplicas"), 0);
  cluster.pass(std::chrono::seconds(6));
  EXPECT_EQ(count("availableReplicas"), 1);
}

TEST_F(ReplicaSets, shrink_by_the_pods_that_are_not_ready) {
  make(replica_set(3));
  cluster.start_pods(2);
  cluster.patch(replica_set_resource(), "web", {{"spec", {{"replicas", 2}}}});
  ASSERT_EQ(cluster.pods().size(), 2U);
  for (const Object& pod : cluster.pods()) EXPECT_TRUE(ready(*pod));
  EXPECT_EQ(cluster.told("SuccessfulDelete", "Deleted pod: web-"), 1);
}

TEST_F(ReplicaSets, let_go_of_a_pod_whose_labels_no_longer_fit) {
  make(replica_set(1));
  const std::string name(api::name(*cluster.pods()[0]));
  cluster.patch(pod_resource(), name, {{"metadata", {{"labels", {{"app", "debug"}}}}}});
  EXPECT_EQ(api::controller_of(cluster.get(pod_resource(), name)), nullptr);
  EXPECT_EQ(cluster.pods().size(), 2U);
}

TEST_F(ReplicaSets, tell_of_pods_that_are_on_their_way_out) {
  make(replica_set(1));
  const std::string name(api::name(*cluster.pods()[0]));
  cluster.patch(pod_resource(), name, {{"spec", {{"nodeName", "n"}}}});
  testing::remove(cluster.client(), pod_resource(), name);
  cluster.settle();
  EXPECT_EQ(count("terminatingReplicas"), 1);
  EXPECT_EQ(count("replicas"), 1);
}

TEST(ReplicaSet, makes_no_pods_while_it_is_deleted) {
  json::value root = replica_set(3);
  json::set(root, {"metadata", "deletionTimestamp"}, "2026-11-15T12:00:00Z");
  const control::Plan plan =
      plan_replica_set({.root = std::make_shared<const json::value>(root), .owned = {{}}}, Time{});
  EXPECT_TRUE(plan.writes.empty());
}

TEST(ReplicaSet, makes_no_more_than_five_hundred_pods_at_once) {
  const auto root = std::make_shared<const json::value>(replica_set(2'000));
  EXPECT_EQ(plan_replica_set({.root = root, .owned = {{}}}, Time{}).writes.size(), 500U);
}

json::value set_pod(std::string_view node, std::string_view its_phase, bool is_ready) {
  json::value out = is_ready ? testing::ready_status({}) : json::value(json::object{});
  json::set(out, {"status", "phase"}, json::string(its_phase));
  json::set(out, {"spec", "nodeName"}, json::string(node));
  json::set(out, {"metadata", "creationTimestamp"}, "2026-11-15T12:00:00Z");
  return out;
}

TEST(ReplicaSet, removes_first_what_does_least_good) {
  json::value cheap = set_pod("a", "Running", true);
  json::set(cheap, {"metadata", "annotations", "controller.kubernetes.io/pod-deletion-cost"}, "-5");
  json::value younger = set_pod("a", "Running", true);
  json::set(younger, {"metadata", "creationTimestamp"}, "2026-11-15T12:00:09Z");
  json::value restarted = set_pod("a", "Running", true);
  json::set(restarted, {"status", "containerStatuses"},
            json::array{json::object{{"restartCount", 3}}});
  const json::value plain = set_pod("a", "Running", true);
  const std::pair<json::value, json::value> pairs[] = {
      {set_pod("", "Pending", false), set_pod("a", "Pending", false)},
      {set_pod("a", "Pending", false), set_pod("a", "Running", false)},
      {set_pod("a", "Running", false), plain},
      {cheap, plain},
      {restarted, plain},
      {younger, plain},
  };
  for (const auto& [first, second] : pairs) {
    EXPECT_TRUE(goes_first({.pod = &first}, {.pod = &second})) << json::serialize(first);
    EXPECT_FALSE(goes_first({.pod = &second}, {.pod = &first})) << json::serialize(first);
  }
  EXPECT_TRUE(goes_first({.pod = &plain, .neighbours = 2}, {.pod = &plain, .neighbours = 1}));
}

bool replica_set_step(client::Client& client, const api::Resource& kind, Time now, Random& random,
                      int& meddled) {
  const std::vector<Object> pods = testing::all(client, pod_resource());
  if (meddled < 6 && random.chance(30)) {
    ++meddled;
    const Object& any = pods[random.below(pods.size())];
    const auto replicas = static_cast<std::int64_t>(random.below(5));
    if (random.chance(50)) {
      testing::change(client, kind, "web", {{"spec", {{"replicas", replicas}}}});
    } else if (api::controller_of(*any) != nullptr) {
      testing::remove(client, pod_resource(), api::name(*any));
    }
    return true;
  }
  for (const Object& p : pods) {
    if (ready(*p) || ended(*p) || api::controller_of(*p) == nullptr) continue;
    const bool fails = meddled < 6 && random.chance(20);
    testing::change(client, pod_resource(), api::name(*p),
                    fails ? testing::ended_status(1, now) : testing::ready_status(now), "status");
    return true;
  }
  return false;
}

std::optional<std::string> wrong_replica_set(client::Client& client, const api::Resource& kind) {
  const json::value set = *client.get(kind, testing::kNamespace, "web");
  std::int64_t mine = 0;
  bool stranger = false;
  for (const Object& p : testing::all(client, pod_resource())) {
    stranger = stranger || api::name(*p) == "stranger";
    if (api::controlled_by(*p, api::uid(set)) && active(*p)) ++mine;
  }
  if (!stranger) return "the pod of somebody else is gone";
  if (mine != int_at(set, {"spec", "replicas"})) return "the number of pods is wrong";
  if (int_at(set, {"status", "replicas"}) != mine) return "the status miscounts pods";
  if (int_at(set, {"status", "availableReplicas"}) != mine) return "not all pods are available";
  return std::nullopt;
}

// `selector`: as the kind writes it.
void expect_laws(control::Controller controller, const json::object& selector) {
  int meddled = 0;
  control::testing::LawCase laws;
  laws.controller = std::move(controller);
  const api::Resource kind = laws.controller.root;
  laws.arrange = [&](client::Client& client, Random& random) {
    meddled = 0;
    json::value set =
        replica_set(static_cast<std::int64_t>(1 + random.below(4)), random.chance(50) ? 7 : 0);
    json::set(set, {"spec", "selector"}, selector);
    testing::create(client, kind, std::move(set));
    json::value stranger = testing::pod_template();
    json::set(stranger, {"metadata", "name"}, "stranger");
    json::set(stranger, {"metadata", "labels", "app"}, "other");
    testing::create(client, pod_resource(), std::move(stranger));
  };
  laws.step = [&](client::Client& client, Time now, Random& random) {
    return replica_set_step(client, kind, now, random, meddled);
  };
  laws.wrong = [&](client::Client& client) { return wrong_replica_set(client, kind); };
  laws.cuts_max = 20;
  for (const std::string& sentence : control::testing::check_laws(laws)) ADD_FAILURE() << sentence;
}

TEST(ReplicaSet, keeps_the_five_laws) {
  expect_laws(replica_set_controller(), {{"matchLabels", {{"app", "web"}}}});
}

TEST(ReplicationController, keeps_the_five_laws) {
  expect_laws(replication_controller(), {{"app", "web"}});
}

}  // namespace
}  // namespace skiff::workloads
