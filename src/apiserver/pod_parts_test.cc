#include "apiserver/admission/test_admission.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kBudgets = "poddisruptionbudgets.policy";

class Eviction : public ::testing::Test {
 protected:
  Eviction() {
    EXPECT_EQ(
        world
            .run("p", std::string(kOneContainer) + R"(,"nodeName":"n")", R"(,"labels":{"app":"x"})")
            .first,
        201);
    status(R"({"phase":"Running","conditions":[{"type":"Ready","status":"True"}]})");
  }
  void status(std::string_view value) {
    EXPECT_EQ(world
                  .call("PATCH", World::pods("/p/status"),
                        R"({"status":)" + std::string(value) + "}", "application/merge-patch+json")
                  .first,
              200);
  }
  void budget(std::string_view status, std::string name = "b", std::string_view more = "") {
    world.put(std::string(kBudgets), "default", std::move(name),
              R"({"metadata":{"generation":1},"spec":{"selector":{"matchLabels":{"app":"x"}})" +
                  std::string(more) + R"(},"status":)" + std::string(status) + "}");
  }
  std::pair<int, json::value> evict(std::string_view body = R"({"metadata":{"name":"p"}})") {
    return world.call("POST", World::pods("/p/eviction"), std::string(body));
  }
  bool leaving() { return api::deleting(world.get("pods", "default", "p")); }
  AdmissionWorld world;
};

TEST_F(Eviction, A_pod_without_a_budget_is_told_why_and_leaves) {
  const auto [code, answer] = evict();
  EXPECT_EQ(code, 201) << json::serialize(answer);
  EXPECT_EQ(json::get_string(answer, {"status"}), "Success");
  EXPECT_TRUE(leaving());
  const json::value pod = world.get("pods", "default", "p");
  EXPECT_TRUE(api::condition_true(pod, "DisruptionTarget"));
}

TEST_F(Eviction, A_budget_that_is_spent_refuses_with_its_numbers) {
  budget(R"({"observedGeneration":1,"disruptionsAllowed":0,"desiredHealthy":2,
             "currentHealthy":2})");
  const auto [code, answer] = evict();
  EXPECT_EQ(code, 429);
  EXPECT_EQ(json::get_string(answer, {"message"}),
            "Cannot evict pod as it would violate the pod's disruption budget.");
  const json::value& cause = json::get_array(answer, {"details", "causes"})[0];
  EXPECT_EQ(json::get_string(cause, {"reason"}), "DisruptionBudget");
  EXPECT_EQ(json::get_string(cause, {"message"}),
            "The disruption budget b needs 2 healthy pods and has 2 currently");
  EXPECT_FALSE(leaving());
}

TEST_F(Eviction, A_budget_that_nobody_has_counted_yet_asks_for_patience) {
  budget(R"({"disruptionsAllowed":5})");
  const auto [code, answer] = evict();
  EXPECT_EQ(code, 429);
  EXPECT_EQ(json::get_int(answer, {"details", "retryAfterSeconds"}), 10);
}

TEST_F(Eviction, A_budget_is_spent_in_the_same_transaction) {
  budget(R"({"observedGeneration":1,"disruptionsAllowed":1,"desiredHealthy":1,
             "currentHealthy":2})");
  EXPECT_EQ(evict().first, 201);
  const json::value b = world.get(std::string(kBudgets), "default", "b");
  EXPECT_EQ(json::get_int(b, {"status", "disruptionsAllowed"}), 0);
  EXPECT_NE(json::find(b, {"status", "disruptedPods", "p"}), nullptr);
  EXPECT_TRUE(leaving());
}

TEST_F(Eviction, A_dry_run_spends_nothing) {
  budget(R"({"observedGeneration":1,"disruptionsAllowed":1})");
  EXPECT_EQ(world.call("POST", World::pods("/p/eviction?dryRun=All"), "{}").first, 201);
  EXPECT_EQ(json::get_int(world.get(std::string(kBudgets), "default", "b"),
                          {"status", "disruptionsAllowed"}),
            1);
  EXPECT_FALSE(leaving());
}

TEST_F(Eviction, A_pod_that_is_not_ready_may_go_while_enough_others_are) {
  status(R"({"conditions":[{"type":"Ready","status":"False"}]})");
  budget(R"({"observedGeneration":1,"disruptionsAllowed":0,"desiredHealthy":2,
             "currentHealthy":2})");
  EXPECT_EQ(evict().first, 201);
}

TEST_F(Eviction, Two_budgets_are_one_too_many) {
  budget(R"({"observedGeneration":1,"disruptionsAllowed":1})", "a");
  budget(R"({"observedGeneration":1,"disruptionsAllowed":1})", "b");
  const auto [code, answer] = evict();
  EXPECT_EQ(code, 500);
  EXPECT_FALSE(leaving());
}

TEST_F(Eviction, A_pod_that_has_ended_needs_no_budget) {
  status(R"({"phase":"Succeeded"})");
  budget(R"({"observedGeneration":1,"disruptionsAllowed":0})");
  EXPECT_EQ(evict().first, 201);
  EXPECT_TRUE(world.get("pods", "default", "p").is_null());
}

TEST_F(Eviction, Preconditions_and_names_are_minded) {
  EXPECT_EQ(evict(R"({"metadata":{"name":"q"}})").first, 400);
  EXPECT_EQ(evict(R"({"deleteOptions":{"preconditions":{"uid":"other"}}})").first, 409);
  EXPECT_EQ(world.call("POST", World::pods("/none/eviction"), "{}").first, 404);
}

class PodParts : public ::testing::Test {
 protected:
  PodParts() { EXPECT_EQ(world.run("p", kOneContainer).first, 201); }
  std::pair<int, json::value> patch(std::string_view part, std::string_view body) {
    return world.call("PATCH", World::pods("/p/" + std::string(part)), std::string(body),
                      "application/strategic-merge-patch+json");
  }
  AdmissionWorld world;
};

TEST_F(PodParts, Ephemeral_containers_are_added_and_stay) {
  const auto [code, pod] = patch("ephemeralcontainers",
                                 R"({"metadata":{"labels":{"ignored":"yes"}},
          "spec":{"ephemeralContainers":[{"name":"debug","image":"busybox:1"}]}})");
  ASSERT_EQ(code, 200) << json::serialize(pod);
  EXPECT_EQ(json::get_array(pod, {"spec", "ephemeralContainers"}).size(), 1u);
  EXPECT_EQ(json::find(pod, {"metadata", "labels", "ignored"}), nullptr);
  const auto [code2, changed] =
      patch("ephemeralcontainers",
            R"({"spec":{"ephemeralContainers":[{"name":"debug","image":"busybox:2"}]}})");
  EXPECT_EQ(code2, 422);
  EXPECT_NE(json::get_string(changed, {"message"})
                .find("existing ephemeral containers \"debug\" may not be changed"),
            std::string_view::npos);
}

TEST_F(PodParts, Ephemeral_containers_are_checked) {
  const auto [code, answer] =
      patch("ephemeralcontainers", R"({"spec":{"ephemeralContainers":[{"name":"c","image":"x:1",
                "resources":{"limits":{"nvidia.com/gpu":"1"}}}]}})");
  EXPECT_EQ(code, 422);
  const std::string_view message = json::get_string(answer, {"message"});
  EXPECT_NE(message.find("ephemeralContainers[0].name: Duplicate value"), message.npos);
  EXPECT_NE(message.find("cannot be set for an Ephemeral Container"), message.npos);
}

TEST_F(PodParts, A_resize_changes_resources_and_nothing_else) {
  const auto [code, pod] = patch("resize", R"({"spec":{"containers":[{"name":"c","image":"other:1",
                    "resources":{"requests":{"cpu":"2"}}}]}})");
  ASSERT_EQ(code, 200) << json::serialize(pod);
  const json::value& container = json::get_array(pod, {"spec", "containers"})[0];
  EXPECT_EQ(json::get_string(container, {"image"}), "x:y");
  EXPECT_EQ(json::get_string(container, {"resources", "requests", "cpu"}), "2");
}

TEST_F(PodParts, A_resize_is_charged_to_the_quota) {
  world.put("resourcequotas", "default", "q", R"({"spec":{"hard":{"requests.cpu":"1"}}})");
  world.collect();
  const auto [code, answer] = patch(
      "resize", R"({"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"2"}}}]}})");
  EXPECT_EQ(code, 403);
  EXPECT_NE(json::get_string(answer, {"message"})
                .find("exceeded quota: q, requested: "
                      "requests.cpu=2, used: requests.cpu=0"),
            std::string_view::npos);
}

}  // namespace
}  // namespace skiff::apiserver
