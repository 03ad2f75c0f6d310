#include "features/workloads/disruption.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "control/testing/laws.h"
#include "features/workloads/deployment.h"
#include "features/workloads/replica_set.h"
#include "features/workloads/testing/cluster.h"

namespace skiff::workloads {
namespace {

using testing::Cluster;

json::value budget(std::string_view field, json::value amount) {
  return {{"metadata", {{"name", "b"}}},
          {"spec", json::object{{"selector", {{"matchLabels", {{"app", "web"}}}}},
                                {json::string(field), std::move(amount)}}}};
}

json::value surging_deployment(std::int64_t replicas) {
  return {{"metadata", {{"name", "web"}}},
          {"spec",
           {{"replicas", replicas},
            {"selector", {{"matchLabels", {{"app", "web"}}}}},
            {"strategy", {{"type", "RollingUpdate"}, {"rollingUpdate", {{"maxSurge", 1}}}}},
            {"template", testing::pod_template()}}}};
}

json::value lone_pod(std::string_view name) {
  json::value out = testing::pod_template();
  json::set(out, {"metadata", "name"}, json::string(name));
  return out;
}

struct Budgets : ::testing::Test {
  Cluster cluster{{budget_controller(), deployment_controller(), replica_set_controller()}};

  void make(const api::Resource& resource, json::value object) {
    testing::create(cluster.client(), resource, std::move(object));
    cluster.settle();
  }
  json::value object() { return cluster.get(budget_resource(), "b"); }
  std::int64_t status(std::string_view field) {
    return json::get_int(object(), {"status", field}).value_or(-1);
  }
  std::string reason() {
    const json::value now = object();
    const json::object* condition = api::condition(now, "DisruptionAllowed");
    return condition == nullptr ? "" : std::string(json::view(condition->at("reason").as_string()));
  }
};

TEST_F(Budgets, count_what_may_go_by_the_number_that_must_stay) {
  make(budget_resource(), budget("minAvailable", 2));
  EXPECT_EQ(status("disruptionsAllowed"), 0);
  EXPECT_EQ(cluster.told("NoPods", "No matching pods found"), 1);
  make(deployment_resource(), surging_deployment(3));
  EXPECT_EQ(status("expectedPods"), 3);
  EXPECT_EQ(status("currentHealthy"), 0);
  EXPECT_EQ(reason(), "InsufficientPods");
  cluster.start_pods();
  EXPECT_EQ(status("currentHealthy"), 3);
  EXPECT_EQ(status("desiredHealthy"), 2);
  EXPECT_EQ(status("disruptionsAllowed"), 1);
  EXPECT_EQ(status("observedGeneration"), 1);
  EXPECT_EQ(reason(), "SufficientPods");
}

TEST_F(Budgets, count_by_the_size_of_what_controls_the_pods) {
  make(deployment_resource(), surging_deployment(4));
  make(budget_resource(), budget("maxUnavailable", "30%"));
  EXPECT_EQ(status("expectedPods"), 4);
  EXPECT_EQ(status("desiredHealthy"), 2) << "a share is rounded up";
  cluster.start_pods(3);
  EXPECT_EQ(status("disruptionsAllowed"), 1);
  cluster.patch(deployment_resource(), "web", {{"spec", {{"replicas", 6}}}});
  EXPECT_EQ(status("expectedPods"), 6);
  EXPECT_EQ(status("disruptionsAllowed"), 0);
}

TEST_F(Budgets, take_a_share_that_must_stay) {
  make(deployment_resource(), surging_deployment(4));
  cluster.start_pods();
  make(budget_resource(), budget("minAvailable", "50%"));
  EXPECT_EQ(status("desiredHealthy"), 2);
  EXPECT_EQ(status("disruptionsAllowed"), 2);
}

TEST_F(Budgets, warn_of_pods_that_nobody_controls) {
  make(pod_resource(), lone_pod("alone"));
  make(budget_resource(), budget("maxUnavailable", 1));
  EXPECT_EQ(cluster.told("UnmanagedPods"), 1);
  EXPECT_EQ(status("disruptionsAllowed"), 0);
}

TEST_F(Budgets, allow_nothing_where_the_size_of_a_controller_is_not_known) {
  json::value pod = lone_pod("odd");
  json::set(pod, {"metadata", "ownerReferences"},
            json::array{json::object{{"kind", "Boss"},
                                     {"apiVersion", "v1"},
                                     {"name", "b"},
                                     {"uid", "nobody"},
                                     {"controller", true}}});
  control::Observed observed{
      .root = std::make_shared<const json::value>(budget("maxUnavailable", 1)),
      .seen = {{std::make_shared<const json::value>(pod)}, {}, {}, {}}};
  const control::Plan plan = plan_budget(observed, Time{});
  ASSERT_TRUE(plan.status);
  EXPECT_EQ(plan.status->at("disruptionsAllowed"), 0);
  EXPECT_EQ(plan.status->at("conditions").at(0).at("reason"), "SyncFailed");
  EXPECT_EQ(plan.status->at("conditions").at(0).at("message"),
            "found no controllers for pod \"odd\"");
}

TEST_F(Budgets, believe_in_an_eviction_for_two_minutes) {
  make(pod_resource(), lone_pod("a"));
  make(pod_resource(), lone_pod("c"));
  cluster.start_pods();
  make(budget_resource(), budget("minAvailable", 1));
  EXPECT_EQ(status("disruptionsAllowed"), 1);
  testing::change(cluster.client(), budget_resource(), "b",
                  {{"status", {{"disruptedPods", {{"a", rfc3339(cluster.now())}}}}}}, "status");
  cluster.settle();
  EXPECT_EQ(status("disruptionsAllowed"), 0);
  cluster.pass(std::chrono::seconds(119));
  EXPECT_EQ(status("disruptionsAllowed"), 0);
  cluster.pass(std::chrono::seconds(3));
  EXPECT_EQ(status("disruptionsAllowed"), 1) << "the pod is still there, so it counts again";
  EXPECT_EQ(json::find(object(), {"status", "disruptedPods"}), nullptr);
}

TEST_F(Budgets, without_a_selector_are_about_nothing_and_with_an_empty_one_about_all) {
  make(pod_resource(), lone_pod("a"));
  json::value none = budget("minAvailable", 0);
  none.at("spec").as_object().erase("selector");
  make(budget_resource(), std::move(none));
  EXPECT_EQ(status("expectedPods"), 0);
  cluster.patch(budget_resource(), "b", {{"spec", {{"selector", json::object()}}}});
  EXPECT_EQ(status("expectedPods"), 1);
}

bool disruption_step(client::Client& client, Time now, Random& random, int& steps) {
  if (++steps > 20) return false;
  const std::string name = fmt::format("p{}", random.below(4));
  if (!client.get(pod_resource(), testing::kNamespace, name)) {
    testing::create(client, pod_resource(), lone_pod(name));
  } else if (random.chance(30)) {
    testing::remove(client, pod_resource(), name);
  } else if (random.chance(30)) {
    testing::change(client, budget_resource(), "b",
                    {{"status", {{"disruptedPods", json::object{{name, rfc3339(now)}}}}}},
                    "status");
  } else {
    testing::change(client, pod_resource(), name, testing::ready_status(now), "status");
  }
  return true;
}

std::optional<std::string> wrong_budget(client::Client& client) {
  std::int64_t healthy = 0;
  const std::vector<Object> pods = testing::all(client, pod_resource());
  for (const Object& pod : pods) healthy += ready(*pod) ? 1 : 0;
  const json::value b = *client.get(budget_resource(), testing::kNamespace, "b");
  if (int_at(b, {"status", "currentHealthy"}) != healthy) return "healthy pods are miscounted";
  const std::int64_t allowed = pods.empty() ? 0 : std::max<std::int64_t>(0, healthy - 1);
  if (int_at(b, {"status", "disruptionsAllowed"}) != allowed) return "too many or too few may go";
  if (json::find(b, {"status", "disruptedPods"}) != nullptr) return "an eviction is not forgotten";
  return std::nullopt;
}

TEST(Budget, keeps_the_five_laws) {
  int steps = 0;
  control::testing::LawCase laws;
  laws.controller = budget_controller();
  laws.arrange = [&](client::Client& client, Random&) {
    steps = 0;
    testing::create(client, budget_resource(), budget("minAvailable", 1));
  };
  laws.step = [&](client::Client& client, Time now, Random& random) {
    return disruption_step(client, now, random, steps);
  };
  laws.wrong = wrong_budget;
  laws.cuts_max = 10;
  for (const std::string& sentence : control::testing::check_laws(laws)) ADD_FAILURE() << sentence;
}

}  // namespace
}  // namespace skiff::workloads
