#include "features/workloads/daemon_set.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "control/testing/laws.h"
#include "features/workloads/daemon_nodes.h"
#include "features/workloads/revisions.h"
#include "features/workloads/testing/cluster.h"

namespace skiff::workloads {
namespace {

using testing::image;
using testing::image_of;

using testing::Cluster;
using Bag = std::multiset<std::string>;

json::value daemon_set(std::string_view strategy = "RollingUpdate", json::value unavailable = 1,
                       json::value surge = 0) {
  json::value out = {{"metadata", {{"name", "web"}}},
                     {"spec",
                      {{"revisionHistoryLimit", 10},
                       {"selector", {{"matchLabels", {{"app", "web"}}}}},
                       {"updateStrategy", {{"type", json::string(strategy)}}},
                       {"template", testing::pod_template()}}}};
  if (strategy == "RollingUpdate") {
    json::set(out, {"spec", "updateStrategy", "rollingUpdate"},
              {{"maxUnavailable", std::move(unavailable)}, {"maxSurge", std::move(surge)}});
  }
  return out;
}

void write_node(client::Client& client, std::string_view name, json::value body,
                client::Verb verb = client::Verb::kMergePatch) {
  json::set(body, {"metadata", "name"}, json::string(name));
  testing::must_write(client, {.verb = verb,
                               .resource = node_resource(),
                               .name = std::string(name),
                               .body = std::move(body)});
}

void make_nodes(client::Client& client, int count) {
  for (int i = 0; i < count; ++i) {
    const std::string name = fmt::format("n{}", i);
    write_node(client, name, {{"metadata", {{"labels", {{"disk", i == 0 ? "ssd" : "hdd"}}}}}},
               client::Verb::kCreate);
  }
}

json::value taint(std::string_view key, std::string_view effect) {
  return {{"spec",
           {{"taints", json::array{json::object{{"key", json::string(key)},
                                                {"effect", json::string(effect)}}}}}}};
}

struct DaemonSets : ::testing::Test {
  Cluster cluster{{daemon_set_controller()}};

  void make(json::value set, int nodes = 3) {
    make_nodes(cluster.client(), nodes);
    testing::create(cluster.client(), daemon_set_resource(), std::move(set));
    cluster.settle();
  }
  void node(std::string_view name, json::value body) {
    write_node(cluster.client(), name, std::move(body));
    cluster.settle();
  }
  void change(json::value body) { cluster.patch(daemon_set_resource(), "web", std::move(body)); }
  json::value object() { return cluster.get(daemon_set_resource(), "web"); }
  std::int64_t count(std::string_view field) { return int_at(object(), {"status", field}); }
  Bag places() {
    Bag out;
    for (const Object& pod : cluster.pods()) out.insert(target_node(*pod));
    return out;
  }
  Bag images() {
    Bag out;
    for (const Object& pod : cluster.pods()) out.emplace(image_of(*pod));
    return out;
  }
};

TEST_F(DaemonSets, make_one_pod_for_each_node_and_pin_it_there) {
  make(daemon_set());
  EXPECT_EQ(places(), (Bag{"n0", "n1", "n2"}));
  EXPECT_EQ(count("desiredNumberScheduled"), 3);
  EXPECT_EQ(count("currentNumberScheduled"), 3);
  EXPECT_EQ(count("updatedNumberScheduled"), 3);
  EXPECT_EQ(count("numberReady"), 0);
  EXPECT_EQ(count("numberUnavailable"), 3);
  cluster.start_pods();
  EXPECT_EQ(count("numberReady"), 3);
  EXPECT_EQ(count("numberAvailable"), 3);
  EXPECT_EQ(json::find(object(), {"status", "numberUnavailable"}), nullptr);
  EXPECT_EQ(cluster.told("SuccessfulCreate", "Created pod: web-"), 3);
  const Object revision = cluster.of(revision_resource())[0];
  EXPECT_EQ(api::label(*cluster.pods()[0], "controller-revision-hash"),
            api::label(*revision, "controller-revision-hash"));
}

TEST_F(DaemonSets, follow_the_nodes_that_come_and_change) {
  json::value set = daemon_set();
  json::set(set, {"spec", "template", "spec", "nodeSelector"}, {{"disk", "ssd"}});
  make(std::move(set));
  EXPECT_EQ(places(), Bag{"n0"});
  node("n1", {{"metadata", {{"labels", {{"disk", "ssd"}}}}}});
  EXPECT_EQ(places(), (Bag{"n0", "n1"}));
  node("n0", {{"metadata", {{"labels", {{"disk", "hdd"}}}}}});
  EXPECT_EQ(places(), Bag{"n1"});
  EXPECT_EQ(count("desiredNumberScheduled"), 1);
  write_node(cluster.client(), "n9", {{"metadata", {{"labels", {{"disk", "ssd"}}}}}},
             client::Verb::kCreate);
  cluster.settle();
  EXPECT_EQ(places(), (Bag{"n1", "n9"}));
}

TEST_F(DaemonSets, stay_off_tainted_nodes_unless_only_the_node_is_in_trouble) {
  make_nodes(cluster.client(), 1);
  node("n0", taint("node.kubernetes.io/unschedulable", "NoSchedule"));
  testing::create(cluster.client(), daemon_set_resource(), daemon_set());
  cluster.settle();
  EXPECT_EQ(places(), Bag{"n0"}) << "a cordoned node has its daemons";
  node("n0", taint("gpu", "NoSchedule"));
  EXPECT_EQ(places(), Bag{"n0"}) << "what is there stays";
  EXPECT_EQ(count("desiredNumberScheduled"), 0);
  EXPECT_EQ(count("numberMisscheduled"), 1);
  node("n0", taint("node.kubernetes.io/unreachable", "NoExecute"));
  EXPECT_EQ(places(), Bag{"n0"});
  node("n0", taint("gpu", "NoExecute"));
  EXPECT_EQ(places(), Bag{});
}

TEST_F(DaemonSets, collect_what_waits_for_a_node_that_is_gone) {
  make(daemon_set());
  testing::must_write(cluster.client(), {.verb = client::Verb::kDelete,
                                         .resource = node_resource(),
                                         .name = "n1",
                                         .body = json::object{}});
  cluster.settle();
  EXPECT_EQ(places(), (Bag{"n0", "n2"}));
}

TEST_F(DaemonSets, replace_a_failed_pod_but_not_without_pause) {
  make(daemon_set(), 1);
  const std::string name(api::name(*cluster.pods()[0]));
  cluster.end_pod(name, 1);
  EXPECT_EQ(api::name(*cluster.pods()[0]), name);
  cluster.pass(std::chrono::seconds(11));
  ASSERT_EQ(cluster.pods().size(), 1U);
  EXPECT_NE(api::name(*cluster.pods()[0]), name);
  EXPECT_EQ(cluster.told("FailedDaemonPod", "Found failed daemon pod team/" + name + " on node n0"),
            1);
}

TEST_F(DaemonSets, roll_by_deleting_no_more_than_may_be_missing) {
  make(daemon_set("RollingUpdate", 1, 0));
  cluster.start_pods();
  change(image("web:2"));
  EXPECT_EQ(images(), (Bag{"web:1", "web:1", "web:2"}));
  EXPECT_EQ(count("updatedNumberScheduled"), 1);
  cluster.pass(std::chrono::minutes(1));
  EXPECT_EQ(images(), (Bag{"web:1", "web:1", "web:2"})) << "it waits for the new pod";
  cluster.start_pods();
  cluster.start_pods();
  cluster.start_pods();
  EXPECT_EQ(images(), (Bag{"web:2", "web:2", "web:2"}));
  EXPECT_EQ(count("numberAvailable"), 3);
  EXPECT_EQ(cluster.of(revision_resource()).size(), 2U);
}

TEST_F(DaemonSets, roll_by_percent_and_first_what_does_not_work) {
  make(daemon_set("RollingUpdate", "50%", 0), 4);
  cluster.start_pods(1);
  change(image("web:2"));
  // The three that do not work go at once, whatever the limit.
  EXPECT_EQ(images(), (Bag{"web:1", "web:2", "web:2", "web:2"}));
  EXPECT_EQ(count("numberAvailable"), 1);
}

TEST_F(DaemonSets, surge_before_the_old_pod_goes) {
  make(daemon_set("RollingUpdate", 0, 1), 2);
  cluster.start_pods();
  cluster.pass(std::chrono::seconds(2));
  change(image("web:2"));
  EXPECT_EQ(images(), (Bag{"web:1", "web:1", "web:2"}));
  EXPECT_EQ(count("numberAvailable"), 2) << "all work while it rolls";
  cluster.start_pods();
  EXPECT_EQ(images(), (Bag{"web:1", "web:2", "web:2"}));
  cluster.start_pods();
  EXPECT_EQ(images(), (Bag{"web:2", "web:2"}));
  EXPECT_EQ(places(), (Bag{"n0", "n1"}));
}

TEST_F(DaemonSets, renew_on_delete_only_what_is_deleted) {
  make(daemon_set("OnDelete"), 2);
  cluster.start_pods();
  change(image("web:2"));
  EXPECT_EQ(images(), (Bag{"web:1", "web:1"}));
  testing::remove(cluster.client(), pod_resource(), api::name(*cluster.pods()[0]));
  cluster.settle();
  EXPECT_EQ(images(), (Bag{"web:1", "web:2"}));
}

// As pods that were adopted from another set of this name, which counted its templates, too.
TEST_F(DaemonSets, renew_a_pod_of_another_template_that_bears_the_same_generation) {
  json::value set = daemon_set();
  json::set(set, {"metadata", "annotations", "deprecated.daemonset.template.generation"}, "2");
  make(std::move(set), 1);
  cluster.start_pods();
  ASSERT_EQ(api::label(*cluster.pods()[0], "pod-template-generation"), "2");
  change(image("web:2"));
  EXPECT_EQ(images(), (Bag{"web:2"}));
}

TEST_F(DaemonSets, know_a_pod_from_before_there_were_revisions_by_its_generation) {
  json::value set = daemon_set();
  json::set(set, {"metadata", "annotations", "deprecated.daemonset.template.generation"}, "2");
  make(std::move(set), 1);
  cluster.start_pods();
  const std::string name(api::name(*cluster.pods()[0]));
  cluster.patch(pod_resource(), name,
                {{"metadata", {{"labels", {{"controller-revision-hash", nullptr}}}}}});
  ASSERT_EQ(cluster.pods().size(), 1U);
  EXPECT_EQ(api::name(*cluster.pods()[0]), name);
  EXPECT_EQ(count("updatedNumberScheduled"), 1);
}

TEST_F(DaemonSets, go_back_to_an_older_revision_without_touching_pods_that_have_it) {
  make(daemon_set("RollingUpdate", 1, 0), 3);
  cluster.start_pods();
  change(image("web:broken"));
  std::set<std::string> kept;
  for (const Object& pod : cluster.pods()) {
    if (image_of(*pod) == "web:1") kept.emplace(api::name(*pod));
  }
  ASSERT_EQ(kept.size(), 2U);
  change(image("web:1"));
  EXPECT_EQ(images(), (Bag{"web:1", "web:1", "web:1"}));
  for (const Object& pod : cluster.pods()) kept.erase(std::string(api::name(*pod)));
  EXPECT_TRUE(kept.empty());
  EXPECT_EQ(cluster.of(revision_resource()).size(), 2U);
}

TEST_F(DaemonSets, keep_revisions_in_the_words_that_clients_compare_byte_by_byte) {
  json::value set = daemon_set();
  json::set(set, {"spec", "template"}, testing::must_parse(R"({"spec":{"restartPolicy":"Always",
      "containers":[{"name":"main","image":"a"}]},"metadata":{"labels":{"b":"1","app":"web"}}})"));
  make(std::move(set), 1);
  const Object revision = cluster.of(revision_resource())[0];
  EXPECT_EQ(
      json::serialize(revision->at("data")),
      R"({"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"web","b":"1"}},)"
      R"("spec":{"containers":[{"image":"a","name":"main"}],"restartPolicy":"Always"}}}})");
}

TEST_F(DaemonSets, forget_revisions_beyond_the_limit) {
  json::value set = daemon_set("RollingUpdate", "100%", 0);
  json::set(set, {"spec", "revisionHistoryLimit"}, 1);
  make(std::move(set), 1);
  for (const std::string_view name : {"web:2", "web:3", "web:4"}) {
    cluster.start_pods();
    change(image(name));
  }
  cluster.start_pods();
  EXPECT_EQ(cluster.of(revision_resource()).size(), 2U);
}

TEST(DaemonSetController, does_not_mind_the_heartbeat_of_a_node) {
  control::Controller controller = daemon_set_controller();
  int plans = 0;
  controller.plan = [&](const control::Observed& observed, Time now) {
    ++plans;
    return plan_daemon_set(observed, now);
  };
  Cluster cluster{{controller}};
  make_nodes(cluster.client(), 1);
  testing::create(cluster.client(), daemon_set_resource(), daemon_set());
  cluster.settle();
  const auto planned_by = [&](json::value body) {
    cluster.pass(std::chrono::seconds(1));
    const int before = plans;
    write_node(cluster.client(), "n0", std::move(body));
    cluster.settle();
    return plans > before;
  };
  EXPECT_FALSE(planned_by({{"status", {{"conditions", json::array{}}}}}));
  EXPECT_TRUE(planned_by({{"metadata", {{"labels", {{"disk", "tape"}}}}}}));
  EXPECT_TRUE(planned_by(taint("gpu", "PreferNoSchedule")));
  EXPECT_TRUE(planned_by({{"spec", {{"unschedulable", true}}}}));
  EXPECT_FALSE(planned_by({{"metadata", {{"annotations", {{"a", "b"}}}}}}));
}

TEST_F(DaemonSets, leave_a_pod_alone_that_has_no_node) {
  json::value set = daemon_set();
  json::set(set, {"spec", "revisionHistoryLimit"}, 0);
  make(std::move(set), 1);
  json::value stray = testing::pod_template();
  json::set(stray, {"metadata", "name"}, "stray");
  json::set(stray, {"metadata", "labels", "controller-revision-hash"},
            json::string(api::label(*cluster.pods()[0], "controller-revision-hash")));
  testing::create(cluster.client(), pod_resource(), std::move(stray));
  cluster.settle();
  const json::value adopted = cluster.get(pod_resource(), "stray");
  ASSERT_TRUE(adopted.is_object());
  EXPECT_TRUE(api::controlled_by(adopted, api::uid(object())));
  cluster.start_pods();
  change(image("web:2"));
  cluster.start_pods();
  EXPECT_EQ(places(), (Bag{"", "n0"}));
  EXPECT_EQ(count("updatedNumberScheduled"), 1) << "it holds up no rollout";
  EXPECT_EQ(cluster.of(revision_resource()).size(), 2U) << "its revision is in use";
}

TEST_F(DaemonSets, replace_a_pod_that_has_ended_and_is_kept_by_a_finalizer_only) {
  make(daemon_set(), 1);
  cluster.start_pods();
  const std::string name(api::name(*cluster.pods()[0]));
  cluster.patch(pod_resource(), name, {{"metadata", {{"finalizers", json::array{"a.b/c"}}}}});
  testing::remove(cluster.client(), pod_resource(), name);
  cluster.settle();
  EXPECT_EQ(cluster.pods().size(), 1U) << "it still runs";
  cluster.end_pod(name, 0);
  EXPECT_EQ(places(), (Bag{"n0", "n0"}));
  cluster.start_pods();
  EXPECT_EQ(count("currentNumberScheduled"), 1);
  EXPECT_EQ(count("numberAvailable"), 1) << "the new one counts";
}

TEST_F(DaemonSets, tell_of_pods_that_may_not_be_made) {
  cluster.server().refuse = [](const client::Write& write) -> std::optional<Error> {
    if (write.verb != client::Verb::kCreate || write.resource.kind != "Pod") return std::nullopt;
    return Error{.code = Code::kForbidden, .message = "no room", .name = "x"};
  };
  make(daemon_set(), 2);
  EXPECT_EQ(count("desiredNumberScheduled"), 2);
  EXPECT_EQ(cluster.told("FailedCreate", "Error creating: no room"), 1);
  cluster.server().refuse = {};
  cluster.pass(std::chrono::minutes(2));
  EXPECT_EQ(places(), (Bag{"n0", "n1"}));
}

TEST(DaemonTemplate, tolerates_what_may_befall_a_node) {
  json::value set = daemon_set();
  json::set(set, {"spec", "template", "spec", "tolerations"},
            json::array{json::object{{"key", "node.kubernetes.io/not-ready"},
                                     {"operator", "Exists"},
                                     {"effect", "NoExecute"},
                                     {"tolerationSeconds", 5}}});
  json::value made = daemon_template(set);
  EXPECT_EQ(json::get_array(made, {"spec", "tolerations"}).size(), 6U);
  EXPECT_EQ(json::find(json::get_array(made, {"spec", "tolerations"})[0], {"tolerationSeconds"}),
            nullptr);
  json::set(set, {"spec", "template", "spec", "hostNetwork"}, true);
  made = daemon_template(set);
  EXPECT_EQ(json::get_array(made, {"spec", "tolerations"}).size(), 7U);
}

TEST(DaemonSet, keeps_the_five_laws) {
  int meddled = 0;
  control::testing::LawCase laws;
  laws.controller = daemon_set_controller();
  laws.arrange = [&](client::Client& client, Random& random) {
    meddled = 0;
    make_nodes(client, 3);
    const bool surges = random.chance(50);
    testing::create(client, daemon_set_resource(),
                    daemon_set("RollingUpdate", surges ? 0 : 2, surges ? 1 : 0));
    json::value stranger = testing::pod_template();
    json::set(stranger, {"metadata", "name"}, "stranger");
    json::set(stranger, {"metadata", "labels", "app"}, "other");
    testing::create(client, pod_resource(), std::move(stranger));
  };
  laws.step = [&](client::Client& client, Time now, Random& random) {
    const std::vector<Object> pods = testing::all(client, pod_resource());
    if (meddled < 6 && random.chance(30)) {
      ++meddled;
      const Object& any = pods[random.below(pods.size())];
      if (random.chance(40)) {
        testing::change(client, daemon_set_resource(), "web",
                        image(fmt::format("web:{}", random.below(3))));
      } else if (random.chance(50)) {
        write_node(client, fmt::format("n{}", random.below(3)),
                   taint("gpu", random.chance(50) ? "NoExecute" : "PreferNoSchedule"));
      } else if (api::controller_of(*any) != nullptr) {
        testing::remove(client, pod_resource(), api::name(*any));
      }
      return true;
    }
    for (const Object& pod : pods) {
      if (ready(*pod) || ended(*pod) || api::controller_of(*pod) == nullptr) continue;
      const bool fails = meddled < 6 && random.chance(20);
      testing::change(client, pod_resource(), api::name(*pod),
                      fails ? testing::ended_status(1, now) : testing::ready_status(now), "status");
      return true;
    }
    return false;
  };
  laws.wrong = [](client::Client& client) -> std::optional<std::string> {
    const json::value set = *client.get(daemon_set_resource(), testing::kNamespace, "web");
    const json::value wanted = daemon_template(set);
    Bag nodes, places;
    for (const Object& node : testing::all(client, node_resource())) {
      if (welcome(wanted, *node).runs) nodes.emplace(api::name(*node));
    }
    bool stranger = false;
    for (const Object& pod : testing::all(client, pod_resource())) {
      stranger = stranger || api::name(*pod) == "stranger";
      if (!api::controlled_by(*pod, api::uid(set))) continue;
      places.insert(target_node(*pod));
      if (image_of(*pod) != image_of({{"spec", json::get_object(wanted, {"spec"})}})) {
        return "a pod has an old template";
      }
    }
    if (!stranger) return "the pod of somebody else is gone";
    if (places != nodes) return "the pods are not where they are wanted";
    if (int_at(set, {"status", "numberAvailable"}) != static_cast<std::int64_t>(nodes.size())) {
      return "the status miscounts";
    }
    return std::nullopt;
  };
  laws.cuts_max = 20;
  laws.settle_rounds = 8;
  for (const std::string& sentence : control::testing::check_laws(laws)) ADD_FAILURE() << sentence;
}

}  // namespace
}  // namespace skiff::workloads
