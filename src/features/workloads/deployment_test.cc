#include "features/workloads/deployment.h"

#include <gtest/gtest.h>

#include "control/testing/laws.h"
#include "features/workloads/replica_set.h"
#include "features/workloads/rollout.h"
#include "features/workloads/testing/cluster.h"

namespace skiff::workloads {
namespace {

using testing::image;

using testing::Cluster;

json::value rolling_deployment(std::int64_t replicas, json::value surge = 1,
                               json::value unavailable = 0) {
  return {{"metadata", {{"name", "web"}, {"annotations", {{"note", "first"}}}}},
          {"spec",
           {{"replicas", replicas},
            {"revisionHistoryLimit", 10},
            {"progressDeadlineSeconds", 600},
            {"selector", {{"matchLabels", {{"app", "web"}}}}},
            {"strategy",
             {{"type", "RollingUpdate"},
              {"rollingUpdate",
               {{"maxSurge", std::move(surge)}, {"maxUnavailable", std::move(unavailable)}}}}},
            {"template", testing::pod_template()}}}};
}

struct Deployments : ::testing::Test {
  Cluster cluster{{deployment_controller(), replica_set_controller()}};

  void make(json::value object) {
    testing::create(cluster.client(), deployment_resource(), std::move(object));
    cluster.settle();
  }
  void change(json::value body) { cluster.patch(deployment_resource(), "web", std::move(body)); }
  json::value object() { return cluster.get(deployment_resource(), "web"); }
  std::int64_t count(std::string_view field) { return int_at(object(), {"status", field}); }
  std::string_view reason(const json::value& of, std::string_view type) {
    const json::object* found = api::condition(of, type);
    return found == nullptr ? "" : json::view(found->at("reason").as_string());
  }
  json::value set_of(std::string_view image_name) {
    for (const Object& set : cluster.of(replica_set_resource())) {
      const json::array& containers =
          json::get_array(*set, {"spec", "template", "spec", "containers"});
      if (json::get_string(containers[0], {"image"}) == image_name) return *set;
    }
    return {};
  }
  std::int64_t pods_of(std::string_view image_name) {
    return std::ranges::count_if(cluster.pods(), [&](const Object& pod) {
      return active(*pod) && json::get_string(json::get_array(*pod, {"spec", "containers"})[0],
                                              {"image"}) == image_name;
    });
  }
  // Until no pod waits any more; what holds after every step is asked of `always`.
  void roll_out(const std::function<void()>& always = [] {}) {
    for (int i = 0; i < 50 && cluster.start_pods(1) > 0; ++i) always();
  }
};

TEST_F(Deployments, make_one_set_that_carries_the_hash_of_the_template) {
  make(rolling_deployment(3));
  ASSERT_EQ(cluster.of(replica_set_resource()).size(), 1U);
  const json::value set = set_of("web:1");
  const std::string hash(api::label(set, kTemplateHashLabel));
  EXPECT_EQ(api::name(set), "web-" + hash);
  EXPECT_EQ(json::get_string(set, {"spec", "selector", "matchLabels", kTemplateHashLabel}), hash);
  EXPECT_EQ(api::label(*cluster.pods()[0], kTemplateHashLabel), hash);
  EXPECT_EQ(api::annotation(set, kRevision), "1");
  EXPECT_EQ(api::annotation(set, kDesiredReplicas), "3");
  EXPECT_EQ(api::annotation(set, kMaxReplicas), "4");
  EXPECT_EQ(api::annotation(set, "note"), "first");
  EXPECT_EQ(api::annotation(object(), kRevision), "1");
  EXPECT_EQ(cluster.told("ScalingReplicaSet", "Scaled up replica set web-"), 1);
}

TEST_F(Deployments, say_when_they_are_available_and_done) {
  make(rolling_deployment(2));
  EXPECT_EQ(reason(object(), "Available"), "MinimumReplicasUnavailable");
  EXPECT_EQ(reason(object(), "Progressing"), "ReplicaSetUpdated");
  EXPECT_EQ(count("unavailableReplicas"), 2);
  cluster.start_pods();
  EXPECT_EQ(reason(object(), "Available"), "MinimumReplicasAvailable");
  EXPECT_EQ(reason(object(), "Progressing"), "NewReplicaSetAvailable");
  EXPECT_EQ(count("availableReplicas"), 2);
  EXPECT_EQ(count("unavailableReplicas"), 0);
  EXPECT_EQ(count("updatedReplicas"), 2);
}

TEST_F(Deployments, roll_within_surge_and_unavailability) {
  make(rolling_deployment(4, "25%", "25%"));
  cluster.start_pods();
  change(image("web:2"));
  roll_out([&] {
    EXPECT_LE(pods_of("web:1") + pods_of("web:2"), 5);
    EXPECT_GE(count("availableReplicas"), 3);
  });
  EXPECT_EQ(pods_of("web:1"), 0);
  EXPECT_EQ(pods_of("web:2"), 4);
  EXPECT_EQ(api::annotation(object(), kRevision), "2");
  EXPECT_EQ(reason(object(), "Progressing"), "NewReplicaSetAvailable");
  EXPECT_EQ(int_at(set_of("web:1"), {"spec", "replicas"}), 0);
}

TEST_F(Deployments, keep_the_old_pods_while_the_new_ones_do_not_come_up) {
  make(rolling_deployment(3));
  cluster.start_pods();
  change(image("broken:1"));
  EXPECT_EQ(pods_of("web:1"), 3);
  EXPECT_EQ(pods_of("broken:1"), 1);
  cluster.pass(std::chrono::seconds(590));
  EXPECT_EQ(reason(object(), "Progressing"), "ReplicaSetUpdated");
  cluster.pass(std::chrono::seconds(15));
  EXPECT_EQ(reason(object(), "Progressing"), "ProgressDeadlineExceeded");
  EXPECT_FALSE(api::condition_true(object(), "Progressing"));
  EXPECT_EQ(pods_of("web:1"), 3);
}

TEST_F(Deployments, take_an_old_template_back_with_its_set_and_a_new_revision) {
  make(rolling_deployment(2));
  cluster.start_pods();
  change(image("web:2"));
  roll_out();
  change(image("web:1"));
  roll_out();
  EXPECT_EQ(cluster.of(replica_set_resource()).size(), 2U);
  EXPECT_EQ(api::annotation(set_of("web:1"), kRevision), "3");
  EXPECT_EQ(api::annotation(set_of("web:1"), kRevisionHistory), "1");
  EXPECT_EQ(api::annotation(object(), kRevision), "3");
  EXPECT_EQ(pods_of("web:1"), 2);
}

TEST_F(Deployments, forget_the_oldest_revisions_beyond_the_limit) {
  json::value small = rolling_deployment(1);
  json::set(small, {"spec", "revisionHistoryLimit"}, 1);
  make(std::move(small));
  cluster.start_pods();
  for (const std::string_view name : {"web:2", "web:3"}) {
    change(image(name));
    roll_out();
  }
  EXPECT_EQ(cluster.of(replica_set_resource()).size(), 2U);
  EXPECT_TRUE(set_of("web:1").is_null());
  EXPECT_FALSE(set_of("web:2").is_null());
}

TEST_F(Deployments, that_recreate_wait_until_the_last_old_pod_is_gone) {
  json::value recreating = rolling_deployment(2);
  json::set(recreating, {"spec", "strategy"}, json::object{{"type", "Recreate"}});
  make(std::move(recreating));
  cluster.start_pods();
  const std::vector<Object> old = cluster.pods();
  for (const Object& pod : old) {
    cluster.patch(pod_resource(), api::name(*pod), {{"spec", {{"nodeName", "n"}}}});
  }
  change(image("web:2"));
  EXPECT_EQ(cluster.pods().size(), 2U) << "they are on their way out";
  EXPECT_TRUE(set_of("web:2").is_null());
  for (const Object& pod : old) {
    testing::must_write(cluster.client(), {.verb = client::Verb::kDelete,
                                           .resource = pod_resource(),
                                           .ns = std::string(testing::kNamespace),
                                           .name = std::string(api::name(*pod)),
                                           .body = json::object{{"gracePeriodSeconds", 0}}});
  }
  cluster.settle();
  EXPECT_EQ(pods_of("web:2"), 2);
}

TEST_F(Deployments, that_recreate_from_the_middle_of_a_rollout_are_done_in_their_new_size) {
  make(rolling_deployment(4));
  cluster.start_pods();
  change(image("web:2"));
  EXPECT_GT(pods_of("web:1"), 0);
  EXPECT_GT(pods_of("web:2"), 0);
  change({{"spec",
           {{"replicas", 5}, {"strategy", {{"type", "Recreate"}, {"rollingUpdate", nullptr}}}}}});
  roll_out();
  EXPECT_EQ(pods_of("web:2"), 5);
  EXPECT_EQ(pods_of("web:1"), 0);
}

TEST_F(Deployments, that_are_paused_scale_but_roll_nothing_out) {
  make(rolling_deployment(2));
  cluster.start_pods();
  change({{"spec", {{"paused", true}}}});
  EXPECT_EQ(reason(object(), "Progressing"), "DeploymentPaused");
  change(image("web:2"));
  change({{"spec", {{"replicas", 3}}}});
  EXPECT_EQ(pods_of("web:1"), 3);
  EXPECT_EQ(pods_of("web:2"), 0);
  cluster.start_pods();
  change({{"spec", {{"paused", false}}}});
  EXPECT_EQ(reason(object(), "Progressing"), "ReplicaSetUpdated");
  roll_out();
  EXPECT_EQ(pods_of("web:2"), 3);
  EXPECT_EQ(pods_of("web:1"), 0);
}

TEST_F(Deployments, spread_a_change_of_size_over_a_rollout_under_way) {
  make(rolling_deployment(10, 3, 2));
  cluster.start_pods();
  change(image("web:2"));
  EXPECT_EQ(pods_of("web:1"), 8);
  EXPECT_EQ(pods_of("web:2"), 5);
  change({{"spec", {{"replicas", 15}}}});
  EXPECT_EQ(pods_of("web:1"), 11);
  EXPECT_EQ(pods_of("web:2"), 7);
  roll_out();
  EXPECT_EQ(pods_of("web:2"), 15);
  EXPECT_EQ(pods_of("web:1"), 0);
}

// No ReplicaSet controller: the old set still counts pods that it is about to delete.
TEST(Deployment, does_not_count_on_pods_beyond_the_size_of_their_set) {
  Cluster cluster{{deployment_controller()}};
  testing::create(cluster.client(), deployment_resource(), rolling_deployment(4, 0, 1));
  cluster.settle();
  const std::string old(api::name(*cluster.of(replica_set_resource())[0]));
  testing::change(cluster.client(), replica_set_resource(), old,
                  {{"status",
                    {{"observedGeneration", 1},
                     {"replicas", 4},
                     {"readyReplicas", 4},
                     {"availableReplicas", 4}}}},
                  "status");
  json::value smaller = image("web:2");
  json::set(smaller, {"spec", "replicas"}, 2);
  cluster.patch(deployment_resource(), "web", std::move(smaller));
  EXPECT_EQ(cluster.of(replica_set_resource()).size(), 2U);
  EXPECT_EQ(int_at(cluster.get(replica_set_resource(), old), {"spec", "replicas"}), 1)
      << "one of two may be missing";
}

TEST_F(Deployments, scale_to_nothing_and_back) {
  make(rolling_deployment(2));
  cluster.start_pods();
  change({{"spec", {{"replicas", 0}}}});
  EXPECT_EQ(cluster.pods().size(), 0U);
  change({{"spec", {{"replicas", 1}}}});
  EXPECT_EQ(cluster.pods().size(), 1U);
}

TEST_F(Deployments, count_a_collision_where_the_name_of_the_next_set_is_taken) {
  make(rolling_deployment(1));
  const std::string name(api::name(set_of("web:1")));
  cluster.patch(replica_set_resource(), name,
                {{"spec", {{"template", testing::pod_template("meddled:1")}}}});
  EXPECT_EQ(count("collisionCount"), 1);
  EXPECT_EQ(cluster.of(replica_set_resource()).size(), 2U);
}

TEST(Rollout, keeps_the_list_of_revisions_short) {
  json::value root = rolling_deployment(1);
  json::value set = {{"metadata", {{"name", "a"}, {"annotations", json::object{}}}},
                     {"spec", {{"replicas", 1}, {"template", testing::pod_template()}}}};
  json::value other = set;
  json::set(other, {"spec", "template"}, testing::pod_template("old"));
  json::set(set, {"metadata", "annotations", kRevision}, "7");
  json::set(set, {"metadata", "annotations", kRevisionHistory},
            json::string("123," + std::string(1995, '4')));
  json::set(other, {"metadata", "annotations", kRevision}, "8");
  const auto share = [](const json::value& v) { return std::make_shared<const json::value>(v); };
  const control::Observed observed{.root = share(root), .owned = {{share(set), share(other)}}};
  Rollout rollout(observed, Time{});
  rollout.renew_current();
  EXPECT_EQ(api::annotation(rollout.current()->now, kRevision), "9");
  EXPECT_EQ(api::annotation(rollout.current()->now, kRevisionHistory),
            std::string(1995, '4') + ",7");
}

// One ReplicaSet does what it is told.
bool obey(client::Client& client) {
  for (const Object& set : testing::all(client, replica_set_resource())) {
    if (api::controller_of(*set) == nullptr) continue;
    const std::int64_t generation = int_at(*set, {"metadata", "generation"});
    if (int_at(*set, {"status", "observedGeneration"}) == generation) continue;
    const std::int64_t replicas = int_at(*set, {"spec", "replicas"});
    testing::change(client, replica_set_resource(), api::name(*set),
                    {{"status",
                      {{"replicas", replicas},
                       {"readyReplicas", replicas},
                       {"availableReplicas", replicas},
                       {"observedGeneration", generation}}}},
                    "status");
    return true;
  }
  return false;
}

bool deployment_step(client::Client& client, Random& random, int& meddled) {
  if (meddled < 8 && random.chance(40)) {
    ++meddled;
    const auto pick = static_cast<std::int64_t>(random.below(5));
    const json::value news[] = {image("web:" + std::to_string(pick)),
                                {{"spec", {{"replicas", pick}}}},
                                {{"spec", {{"paused", meddled < 8 && random.chance(50)}}}}};
    testing::change(client, deployment_resource(), "web", news[random.below(3)]);
    if (meddled == 8) {
      testing::change(client, deployment_resource(), "web", {{"spec", {{"paused", false}}}});
    }
    return true;
  }
  return obey(client) || meddled < 8;
}

std::optional<std::string> wrong_deployment(client::Client& client) {
  const json::value d = *client.get(deployment_resource(), testing::kNamespace, "web");
  const std::int64_t replicas = int_at(d, {"spec", "replicas"});
  std::int64_t total = 0;
  bool stranger = false;
  for (const Object& set : testing::all(client, replica_set_resource())) {
    stranger = stranger || api::name(*set) == "stranger";
    if (!api::controlled_by(*set, api::uid(d))) continue;
    const std::int64_t size = int_at(*set, {"spec", "replicas"});
    total += size;
    if (size > 0 && api::annotation(*set, kRevision) != api::annotation(d, kRevision)) {
      return "an old set still has pods";
    }
  }
  if (!stranger) return "the set of somebody else is gone";
  if (total != replicas) return "the sets have not the size of the deployment";
  if (int_at(d, {"status", "updatedReplicas"}) != replicas) return "the status is out of date";
  if (!api::condition_true(d, "Progressing")) return "it does not say that it is done";
  return std::nullopt;
}

TEST(Deployment, keeps_the_five_laws) {
  int meddled = 0;
  control::testing::LawCase laws;
  laws.controller = deployment_controller();
  laws.arrange = [&](client::Client& client, Random& random) {
    meddled = 0;
    json::value root = rolling_deployment(3, static_cast<std::int64_t>(random.below(3)),
                                          static_cast<std::int64_t>(random.below(2)));
    if (random.chance(30)) json::set(root, {"spec", "strategy"}, {{"type", "Recreate"}});
    testing::create(client, deployment_resource(), std::move(root));
    testing::create(client, replica_set_resource(),
                    {{"metadata", {{"name", "stranger"}}},
                     {"spec", {{"replicas", 1}, {"template", testing::pod_template()}}}});
  };
  laws.step = [&](client::Client& client, Time, Random& random) {
    return deployment_step(client, random, meddled);
  };
  laws.wrong = wrong_deployment;
  laws.settle_rounds = 6;
  laws.cuts_max = 20;
  for (const std::string& sentence : control::testing::check_laws(laws)) ADD_FAILURE() << sentence;
}

}  // namespace
}  // namespace skiff::workloads
