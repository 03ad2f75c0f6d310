#include "features/workloads/stateful_set.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "control/testing/laws.h"
#include "features/workloads/revisions.h"
#include "features/workloads/set_claims.h"
#include "features/workloads/testing/cluster.h"

namespace skiff::workloads {
namespace {

using testing::image;
using testing::image_of;

using testing::Cluster;
using Strings = std::vector<std::string>;

constexpr std::string_view kRevisionLabel = "controller-revision-hash";

json::value stateful_set(std::int64_t replicas) {
  return {{"metadata", {{"name", "web"}}},
          {"spec",
           {{"replicas", replicas},
            {"serviceName", "nodes"},
            {"revisionHistoryLimit", 10},
            {"selector", {{"matchLabels", {{"app", "web"}}}}},
            {"updateStrategy", {{"type", "RollingUpdate"}, {"rollingUpdate", {{"partition", 0}}}}},
            {"template", testing::pod_template()}}}};
}

json::value with_claims(json::value set, std::string_view deleted = "Retain",
                        std::string_view scaled = "Retain") {
  json::set(set, {"spec", "volumeClaimTemplates"},
            json::array{json::object{{"metadata", {{"name", "data"}}},
                                     {"spec", {{"accessModes", json::array{"ReadWriteOnce"}}}},
                                     {"status", {{"phase", "Pending"}}}}});
  json::set(set, {"spec", "persistentVolumeClaimRetentionPolicy"},
            {{"whenDeleted", json::string(deleted)}, {"whenScaled", json::string(scaled)}});
  return set;
}

struct StatefulSets : ::testing::Test {
  Cluster cluster{{stateful_set_controller()}};

  void make(json::value set) {
    testing::create(cluster.client(), stateful_set_resource(), std::move(set));
    cluster.settle();
  }
  void change(json::value body) { cluster.patch(stateful_set_resource(), "web", std::move(body)); }
  void scale(std::int64_t replicas) { change({{"spec", {{"replicas", replicas}}}}); }
  json::value object() { return cluster.get(stateful_set_resource(), "web"); }
  json::value status(std::string_view field) {
    const json::value set = object();
    const json::value* found = json::find(set, {"status", field});
    return found == nullptr ? json::value() : *found;
  }
  json::value pod(std::string_view name) { return cluster.get(pod_resource(), name); }
  Strings names(const api::Resource& resource) {
    Strings out;
    for (const Object& o : cluster.of(resource)) out.emplace_back(api::name(*o));
    return out;
  }
  Strings images() {
    Strings out;
    for (const Object& o : cluster.pods()) out.emplace_back(image_of(*o));
    return out;
  }
  // Starts pods until none waits.
  void run_up() {
    for (int i = 0; i < 50 && cluster.start_pods(1) > 0; ++i) {
    }
  }
  std::string owner_of_claim(std::string_view name) {
    const json::value claim = cluster.get(claim_resource(), name);
    const json::object* owner = api::controller_of(claim);
    return owner == nullptr ? "" : std::string(json::view(owner->at("kind").as_string()));
  }
};

TEST_F(StatefulSets, start_one_pod_after_the_other) {
  make(stateful_set(3));
  EXPECT_EQ(names(pod_resource()), Strings{"web-0"});
  cluster.start_pods();
  EXPECT_EQ(names(pod_resource()), (Strings{"web-0", "web-1"}));
  EXPECT_EQ(status("replicas"), 2);
  EXPECT_EQ(status("readyReplicas"), 1);
  cluster.start_pods();
  cluster.start_pods();
  EXPECT_EQ(status("replicas"), 3);
  EXPECT_EQ(status("readyReplicas"), 3);
  EXPECT_EQ(status("availableReplicas"), 3);
  EXPECT_EQ(status("currentReplicas"), 3);
  EXPECT_EQ(status("updatedReplicas"), 3);
  EXPECT_EQ(status("collisionCount"), 0);
  EXPECT_EQ(status("currentRevision"), status("updateRevision"));
  EXPECT_EQ(cluster.told("SuccessfulCreate", "create Pod web-2 in StatefulSet web successful"), 1);
}

TEST_F(StatefulSets, give_each_pod_its_identity) {
  make(stateful_set(1));
  const json::value p = pod("web-0");
  EXPECT_EQ(api::label(p, "statefulset.kubernetes.io/pod-name"), "web-0");
  EXPECT_EQ(api::label(p, "apps.kubernetes.io/pod-index"), "0");
  EXPECT_EQ(json::value(json::string(api::label(p, kRevisionLabel))), status("updateRevision"));
  EXPECT_EQ(json::get_string(p, {"metadata", "generateName"}), "web-");
  EXPECT_EQ(json::get_string(p, {"spec", "hostname"}), "web-0");
  EXPECT_EQ(json::get_string(p, {"spec", "subdomain"}), "nodes");
  cluster.patch(pod_resource(), "web-0",
                {{"metadata", {{"labels", {{"statefulset.kubernetes.io/pod-name", nullptr}}}}}});
  cluster.start_pods();
  EXPECT_EQ(api::label(pod("web-0"), "statefulset.kubernetes.io/pod-name"), "web-0");
}

TEST_F(StatefulSets, that_are_parallel_start_all_at_once_and_count_from_where_they_are_told) {
  json::value set = stateful_set(3);
  json::set(set, {"spec", "podManagementPolicy"}, "Parallel");
  json::set(set, {"spec", "ordinals"}, {{"start", 5}});
  make(std::move(set));
  EXPECT_EQ(names(pod_resource()), (Strings{"web-5", "web-6", "web-7"}));
  scale(1);
  EXPECT_EQ(names(pod_resource()), Strings{"web-5"});
}

TEST_F(StatefulSets, replace_a_pod_that_ended_under_its_own_name) {
  make(stateful_set(2));
  run_up();
  const std::string uid(api::uid(pod("web-0")));
  cluster.end_pod("web-0", 1);
  EXPECT_EQ(names(pod_resource()), (Strings{"web-0", "web-1"}));
  EXPECT_NE(api::uid(pod("web-0")), uid);
  EXPECT_EQ(cluster.told("SuccessfulDelete", "delete Pod web-0 in StatefulSet web successful"), 1);
}

TEST_F(StatefulSets, shrink_from_the_top_and_only_while_all_others_are_well) {
  make(stateful_set(3));
  run_up();
  cluster.end_pod("web-0", 1);
  scale(1);
  EXPECT_EQ(cluster.pods().size(), 3U) << "web-0 is not back yet";
  cluster.start_pods();
  EXPECT_EQ(names(pod_resource()), Strings{"web-0"});
}

TEST_F(StatefulSets, wait_for_a_pod_that_is_going_before_the_next_goes) {
  make(stateful_set(3));
  run_up();
  for (const std::string_view name : {"web-1", "web-2"}) {
    cluster.patch(pod_resource(), name, {{"spec", {{"nodeName", "n"}}}});
  }
  scale(1);
  EXPECT_TRUE(api::deleting(pod("web-2")));
  EXPECT_FALSE(api::deleting(pod("web-1")));
}

TEST_F(StatefulSets, wait_min_ready_seconds_between_pods) {
  json::value set = stateful_set(2);
  json::set(set, {"spec", "minReadySeconds"}, 10);
  make(std::move(set));
  cluster.start_pods();
  cluster.pass(std::chrono::seconds(9));
  EXPECT_EQ(cluster.pods().size(), 1U);
  EXPECT_EQ(status("availableReplicas"), 0);
  cluster.pass(std::chrono::seconds(2));
  EXPECT_EQ(cluster.pods().size(), 2U);
  EXPECT_EQ(status("availableReplicas"), 1);
}

TEST_F(StatefulSets, renew_pods_from_the_top_one_by_one) {
  make(stateful_set(3));
  run_up();
  const json::value before = status("currentRevision");
  change(image("web:2"));
  EXPECT_EQ(images(), (Strings{"web:1", "web:1", "web:2"}));
  EXPECT_EQ(status("currentRevision"), before);
  EXPECT_NE(status("updateRevision"), before);
  EXPECT_EQ(status("currentReplicas"), 2);
  EXPECT_EQ(status("updatedReplicas"), 1);
  cluster.start_pods();
  EXPECT_EQ(images(), (Strings{"web:1", "web:2", "web:2"}));
  run_up();
  EXPECT_EQ(images(), (Strings{"web:2", "web:2", "web:2"}));
  EXPECT_EQ(status("currentRevision"), status("updateRevision"));
  EXPECT_EQ(cluster.of(revision_resource()).size(), 2U);
}

TEST_F(StatefulSets, leave_pods_below_the_partition_as_they_were) {
  make(stateful_set(3));
  run_up();
  change({{"spec", {{"updateStrategy", {{"rollingUpdate", {{"partition", 2}}}}}}}});
  change(image("web:2"));
  run_up();
  EXPECT_EQ(images(), (Strings{"web:1", "web:1", "web:2"}));
  cluster.end_pod("web-0", 1);
  EXPECT_EQ(images()[0], "web:1") << "made anew from the revision it had";
  run_up();
  EXPECT_NE(status("currentRevision"), status("updateRevision"));
  change({{"spec", {{"updateStrategy", {{"rollingUpdate", {{"partition", 0}}}}}}}});
  run_up();
  EXPECT_EQ(images(), (Strings{"web:2", "web:2", "web:2"}));
}

TEST_F(StatefulSets, that_update_on_delete_renew_nothing_themselves) {
  json::value set = stateful_set(2);
  json::set(set, {"spec", "updateStrategy"}, {{"type", "OnDelete"}});
  make(std::move(set));
  run_up();
  change(image("web:2"));
  EXPECT_EQ(images(), (Strings{"web:1", "web:1"}));
  testing::remove(cluster.client(), pod_resource(), "web-1");
  cluster.settle();
  run_up();
  EXPECT_EQ(images(), (Strings{"web:1", "web:2"}));
}

TEST_F(StatefulSets, keep_revisions_that_can_be_taken_back) {
  json::value set = stateful_set(1);
  json::set(set, {"spec", "revisionHistoryLimit"}, 1);
  make(std::move(set));
  run_up();
  const json::value first = status("updateRevision");
  const Object revision = cluster.of(revision_resource())[0];
  EXPECT_EQ(int_at(*revision, {"revision"}), 1);
  EXPECT_EQ(json::get_string(*revision, {"data", "spec", "template", "$patch"}), "replace");
  EXPECT_EQ(fmt::format("web-{}", api::label(*revision, "controller.kubernetes.io/hash")),
            api::name(*revision));
  change(image("web:2"));
  run_up();
  change(image("web:1"));
  run_up();
  EXPECT_EQ(status("updateRevision"), first);
  EXPECT_EQ(cluster.of(revision_resource()).size(), 2U);
  EXPECT_EQ(int_at(cluster.get(revision_resource(), first.as_string().c_str()), {"revision"}), 3);
  for (const std::string_view name : {"web:3", "web:4", "web:5"}) {
    change(image(name));
    run_up();
  }
  EXPECT_EQ(cluster.of(revision_resource()).size(), 2U) << "the live one and one more";
}

TEST_F(StatefulSets, make_a_claim_for_each_pod_and_leave_it_behind) {
  make(with_claims(stateful_set(2)));
  run_up();
  EXPECT_EQ(names(claim_resource()), (Strings{"data-web-0", "data-web-1"}));
  const json::value claim = cluster.get(claim_resource(), "data-web-0");
  EXPECT_EQ(api::label(claim, "app"), "web");
  EXPECT_EQ(json::find(claim, {"status"}), nullptr);
  EXPECT_EQ(api::controller_of(claim), nullptr);
  EXPECT_EQ(
      json::get_array(pod("web-1"), {"spec", "volumes"})[0],
      (json::object{{"name", "data"}, {"persistentVolumeClaim", {{"claimName", "data-web-1"}}}}));
  EXPECT_EQ(
      cluster.told("SuccessfulCreate", "create Claim data-web-0 Pod web-0 in StatefulSet web"), 1);
  scale(1);
  EXPECT_EQ(names(claim_resource()).size(), 2U);
  scale(2);
  run_up();
  EXPECT_EQ(names(claim_resource()).size(), 2U) << "it is used again";
}

TEST_F(StatefulSets, make_a_lost_claim_again_while_its_pod_waits) {
  make(with_claims(stateful_set(1)));
  testing::change(cluster.client(), pod_resource(), "web-0", {{"status", {{"phase", "Pending"}}}},
                  "status");
  testing::remove(cluster.client(), claim_resource(), "data-web-0");
  cluster.settle();
  EXPECT_EQ(names(claim_resource()), Strings{"data-web-0"});
}

TEST_F(StatefulSets, wait_while_a_claim_is_on_its_way_out) {
  json::value claim = {{"metadata", {{"name", "data-web-0"}, {"finalizers", json::array{"x/y"}}}}};
  testing::create(cluster.client(), claim_resource(), std::move(claim));
  testing::remove(cluster.client(), claim_resource(), "data-web-0");
  make(with_claims(stateful_set(1)));
  EXPECT_TRUE(cluster.pods().empty());
  EXPECT_EQ(cluster.told("FailedCreate",
                         "create Pod web-0 in StatefulSet web failed error: pvc data-web-0 is "
                         "being deleted"),
            1);
  cluster.patch(claim_resource(), "data-web-0", {{"metadata", {{"finalizers", nullptr}}}});
  EXPECT_EQ(cluster.pods().size(), 1U);
}

TEST_F(StatefulSets, hand_claims_to_whom_they_are_to_go_with) {
  make(with_claims(stateful_set(2), "Delete", "Delete"));
  run_up();
  EXPECT_EQ(owner_of_claim("data-web-0"), "StatefulSet");
  EXPECT_EQ(owner_of_claim("data-web-1"), "StatefulSet");
  cluster.patch(pod_resource(), "web-1", {{"spec", {{"nodeName", "n"}}}});
  scale(1);
  EXPECT_TRUE(api::deleting(pod("web-1")));
  EXPECT_EQ(owner_of_claim("data-web-1"), "Pod");
  EXPECT_EQ(owner_of_claim("data-web-0"), "StatefulSet");
  change({{"spec", {{"persistentVolumeClaimRetentionPolicy", {{"whenDeleted", "Retain"}}}}}});
  EXPECT_EQ(owner_of_claim("data-web-0"), "");
}

TEST_F(StatefulSets, take_claims_along_when_they_shrink_where_they_are_told_to) {
  make(with_claims(stateful_set(2), "Retain", "Delete"));
  run_up();
  EXPECT_EQ(owner_of_claim("data-web-1"), "");
  scale(1);
  EXPECT_EQ(names(claim_resource()), Strings{"data-web-0"});
}

TEST_F(StatefulSets, leave_claims_of_another_controller_alone) {
  const json::object other{
      {"apiVersion", "v1"}, {"kind", "Boss"}, {"name", "b"}, {"uid", "u"}, {"controller", true}};
  const json::value set = with_claims(stateful_set(1), "Delete", "Retain");
  const json::value claim = {
      {"metadata", {{"name", "data-web-0"}, {"ownerReferences", json::array{other}}}}};
  const json::value member = {{"metadata", {{"name", "web-0"}, {"uid", "p"}}}};
  control::Plan plan;
  EXPECT_FALSE(
      SetClaims(set, {std::make_shared<const json::value>(claim)}).retain(member, 0, false, plan));
  ASSERT_EQ(plan.notes.size(), 1U);
  EXPECT_EQ(plan.notes[0].reason, "ConflictingController");
}

TEST_F(StatefulSets, let_go_of_pods_that_no_longer_fit) {
  make(stateful_set(1));
  run_up();
  cluster.patch(pod_resource(), "web-0", {{"metadata", {{"labels", {{"app", "other"}}}}}});
  EXPECT_EQ(api::controller_of(pod("web-0")), nullptr);
  EXPECT_EQ(cluster.told("FailedCreate", "create Pod web-0 in StatefulSet web failed error: pods"),
            1);
  testing::remove(cluster.client(), pod_resource(), "web-0");
  cluster.settle();
  EXPECT_NE(api::controller_of(pod("web-0")), nullptr);
}

TEST_F(StatefulSets, that_are_parallel_go_on_around_a_name_that_is_taken) {
  json::value stranger = testing::pod_template();
  json::set(stranger, {"metadata", "name"}, "web-1");
  json::set(stranger, {"metadata", "labels", "app"}, "other");
  testing::create(cluster.client(), pod_resource(), std::move(stranger));
  json::value set = stateful_set(3);
  json::set(set, {"spec", "podManagementPolicy"}, "Parallel");
  make(std::move(set));
  EXPECT_EQ(names(pod_resource()), (Strings{"web-0", "web-1", "web-2"}));
  EXPECT_EQ(status("replicas"), 2);
}

TEST(ClaimsOfSets, are_found_by_the_name_of_the_set_however_many_dashes_there_are) {
  const control::Related related = claims_of_sets();
  const auto has = [&](std::string_view name) {
    return related.has({{"metadata", {{"name", json::string(name)}}}});
  };
  EXPECT_EQ(has("data-web-0"), Strings{"web"});
  EXPECT_EQ(has("data-my-web-12"), (Strings{"my-web", "web"}));
  EXPECT_EQ(has("plain"), Strings{});
  EXPECT_TRUE(related.wants(stateful_set(1)).empty()) << "it has no claims";
  EXPECT_EQ(related.wants(with_claims(stateful_set(1))), Strings{"web"});
}

bool stateful_set_step(client::Client& client, Time now, Random& random, int& meddled) {
  for (const Object& p : testing::all(client, pod_resource())) {
    if (api::controller_of(*p) == nullptr || !phase(*p).empty()) continue;
    if (random.chance(30)) continue;
    testing::change(client, pod_resource(), api::name(*p),
                    random.chance(15) ? testing::ended_status(1, now) : testing::ready_status(now),
                    "status");
    return true;
  }
  if (meddled < 6) {
    ++meddled;
    const auto pick = static_cast<std::int64_t>(1 + random.below(4));
    const json::value news[] = {image("web:" + std::to_string(pick)),
                                {{"spec", {{"replicas", pick}}}}};
    testing::change(client, stateful_set_resource(), "web", news[random.below(2)]);
    return true;
  }
  return std::ranges::any_of(testing::all(client, pod_resource()), [](const Object& p) {
    return api::controller_of(*p) != nullptr && phase(*p).empty();
  });
}

std::optional<std::string> wrong_stateful_set(client::Client& client) {
  const json::value set = *client.get(stateful_set_resource(), testing::kNamespace, "web");
  const std::int64_t replicas = int_at(set, {"spec", "replicas"});
  std::int64_t mine = 0;
  bool stranger = false;
  for (const Object& p : testing::all(client, pod_resource())) {
    stranger = stranger || api::name(*p) == "web-stranger";
    if (!api::controlled_by(*p, api::uid(set))) continue;
    ++mine;
    if (api::label(*p, kRevisionLabel) != json::get_string(set, {"status", "updateRevision"})) {
      return "a pod is not renewed";
    }
    const std::string claim = fmt::format("data-{}", api::name(*p));
    if (!client.get(claim_resource(), testing::kNamespace, claim)) return claim + " is missing";
  }
  const auto claims = static_cast<std::int64_t>(testing::all(client, claim_resource()).size());
  if (!stranger) return "the pod of somebody else is gone";
  if (mine != replicas) return fmt::format("{} pods instead of {}", mine, replicas);
  if (claims != replicas) return fmt::format("{} claims are left", claims);
  if (int_at(set, {"status", "readyReplicas"}) != replicas) return "the status miscounts";
  if (json::get_string(set, {"status", "currentRevision"}) !=
      json::get_string(set, {"status", "updateRevision"})) {
    return "the rollout does not end";
  }
  return std::nullopt;
}

TEST(StatefulSet, keeps_the_five_laws) {
  int meddled = 0;
  control::testing::LawCase laws;
  laws.controller = stateful_set_controller();
  laws.arrange = [&](client::Client& client, Random& random) {
    meddled = 0;
    json::value set = with_claims(stateful_set(static_cast<std::int64_t>(1 + random.below(3))),
                                  "Delete", "Delete");
    if (random.chance(50)) json::set(set, {"spec", "podManagementPolicy"}, "Parallel");
    testing::create(client, stateful_set_resource(), std::move(set));
    json::value stranger = testing::pod_template();
    json::set(stranger, {"metadata", "name"}, "web-stranger");
    testing::create(client, pod_resource(), std::move(stranger));
  };
  laws.step = [&](client::Client& client, Time now, Random& random) {
    return stateful_set_step(client, now, random, meddled);
  };
  laws.wrong = wrong_stateful_set;
  laws.cuts_max = 10;
  laws.settle_rounds = 8;
  for (const std::string& sentence : control::testing::check_laws(laws)) ADD_FAILURE() << sentence;
}

}  // namespace
}  // namespace skiff::workloads
