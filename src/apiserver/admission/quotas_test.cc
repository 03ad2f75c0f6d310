#include "apiserver/admission/quota_usage.h"
#include "apiserver/admission/test_admission.h"

namespace skiff::apiserver {
namespace {

class Quotas : public ::testing::Test {
 protected:
  void quota(std::string_view spec, std::string name = "q", std::string ns = "default") {
    world.put("resourcequotas", std::move(ns), std::move(name),
              R"({"kind":"ResourceQuota","apiVersion":"v1","spec":)" + std::string(spec) + "}");
    world.collect();
  }
  std::string used(std::string name = "q") {
    const json::value quota = world.get("resourcequotas", "default", std::move(name));
    return json::serialize(json::get_object(quota, {"status", "used"}));
  }
  std::string refusal(const std::pair<int, json::value>& answer) {
    EXPECT_EQ(answer.first, 403) << json::serialize(answer.second);
    const std::string text = world.message(answer);
    const std::size_t at = text.find(" is forbidden: ");
    return at == std::string::npos ? text : text.substr(at + 15);
  }
  void set_phase(std::string name, std::string phase) {
    const auto answer =
        world.call("PATCH", World::pods("/" + name + "/status"),
                   R"({"status":{"phase":")" + phase + R"("}})", "application/merge-patch+json");
    ASSERT_EQ(answer.first, 200);
  }
  AdmissionWorld world;
};

TEST_F(Quotas, A_new_quota_counts_what_is_there) {
  ASSERT_EQ(world.run("a", container_with(R"({"requests":{"cpu":"250m"}})")).first, 201);
  ASSERT_EQ(world.run("b", container_with(R"({"requests":{"cpu":"500m"}})")).first, 201);
  quota(R"({"hard":{"pods":"5","requests.cpu":"2","count/configmaps":"3","count/boats.sea":"1"}})");
  EXPECT_EQ(used(), R"({"count/configmaps":"0","pods":"2","requests.cpu":"750m"})");
  const json::value status = world.get("resourcequotas", "default", "q").at("status");
  EXPECT_EQ(json::get_string(status, {"hard", "count/boats.sea"}), "1");
}

TEST_F(Quotas, The_last_of_it_is_given_once_and_the_refusal_says_all_three_numbers) {
  quota(R"({"hard":{"pods":"2"}})");
  ASSERT_EQ(world.run("a", kOneContainer).first, 201);
  EXPECT_EQ(used(), R"({"pods":"1"})");
  ASSERT_EQ(world.run("b", kOneContainer).first, 201);
  const auto answer = world.run("d", kOneContainer);
  EXPECT_EQ(world.message(answer),
            "pods \"d\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: "
            "pods=2");
  EXPECT_EQ(used(), R"({"pods":"2"})");
}

TEST_F(Quotas, What_goes_is_given_back_and_so_is_what_ended) {
  quota(R"({"hard":{"pods":"2","count/pods":"3"}})");
  ASSERT_EQ(world.run("a", kOneContainer).first, 201);
  ASSERT_EQ(world.run("b", kOneContainer).first, 201);
  set_phase("a", "Succeeded");
  world.collect();
  EXPECT_EQ(used(), R"({"count/pods":"2","pods":"1"})");
  ASSERT_EQ(world.call("DELETE", World::pods("/b")).first, 200);
  world.collect();
  EXPECT_EQ(used(), R"({"count/pods":"1","pods":"0"})");
}

TEST_F(Quotas, Computing_resources_must_be_said_and_are_added_up) {
  quota(R"({"hard":{"limits.cpu":"2","limits.memory":"1Gi","requests.memory":"1Gi"}})");
  EXPECT_EQ(refusal(world.run("a", kOneContainer)),
            "failed quota: q: must specify limits.cpu for: c; limits.memory for: c; "
            "requests.memory for: c");
  ASSERT_EQ(world.run("a", container_with(R"({"limits":{"cpu":"1500m","memory":"600Mi"}})")).first,
            201);
  EXPECT_EQ(used(), R"({"limits.cpu":"1500m","limits.memory":"600Mi","requests.memory":"600Mi"})");
  EXPECT_EQ(refusal(world.run("b", container_with(R"({"limits":{"cpu":"1","memory":"600Mi"}})"))),
            "exceeded quota: q, requested: limits.cpu=1,limits.memory=600Mi,requests.memory=600Mi, "
            "used: limits.cpu=1500m,limits.memory=600Mi,requests.memory=600Mi, limited: "
            "limits.cpu=2,limits.memory=1Gi,requests.memory=1Gi");
}

TEST_F(Quotas, Every_object_can_be_counted_by_its_name) {
  quota(
      R"({"hard":{"count/configmaps":"1","secrets":"1","services":"1","services.nodeports":"0"}})");
  const auto make = [&](std::string kind, std::string body) {
    return world.call("POST", "/api/v1/namespaces/default/" + kind, body);
  };
  EXPECT_EQ(make("configmaps", R"({"metadata":{"name":"a"}})").first, 201);
  EXPECT_EQ(refusal(make("configmaps", R"({"metadata":{"name":"b"}})")),
            "exceeded quota: q, requested: count/configmaps=1, used: count/configmaps=1, limited: "
            "count/configmaps=1");
  EXPECT_EQ(make("secrets", R"({"metadata":{"name":"a"}})").first, 201);
  EXPECT_EQ(refusal(make("secrets", R"({"metadata":{"name":"b"}})")),
            "exceeded quota: q, requested: secrets=1, used: secrets=1, limited: secrets=1");
  EXPECT_EQ(refusal(make("services", R"({"metadata":{"name":"s"},"spec":{"type":"NodePort",
                                         "ports":[{"port":80}]}})")),
            "exceeded quota: q, requested: services=1,services.nodeports=1, used: "
            "services=1,services.nodeports=0, limited: services=1,services.nodeports=0");
}

TEST_F(Quotas, All_of_several_quotas_must_allow_it_and_none_is_charged_if_one_does_not) {
  quota(R"({"hard":{"pods":"5"}})", "a");
  quota(R"({"hard":{"pods":"0"}})", "b");
  EXPECT_EQ(refusal(world.run("p", kOneContainer)),
            "exceeded quota: b, requested: pods=1, used: pods=0, limited: pods=0");
  EXPECT_EQ(used("a"), R"({"pods":"0"})");
}

struct ScopeCase {
  std::string_view scope, matching, other;
};

TEST_F(Quotas, A_scope_says_which_pods_a_quota_is_about) {
  const std::string busy = container_with(R"({"requests":{"cpu":"1m"}})");
  const std::string idle(kOneContainer);
  const std::string bounded = idle + R"(,"activeDeadlineSeconds":5)";
  const std::string high = idle + R"(,"priorityClassName":"high")";
  const std::string far =
      idle + R"(,"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[
                {"topologyKey":"k","namespaces":["other"]}]}})";
  const ScopeCase kCases[] = {
      {R"("scopes":["BestEffort"])", idle, busy},
      {R"("scopes":["NotBestEffort"])", busy, idle},
      {R"("scopes":["Terminating"])", bounded, idle},
      {R"("scopes":["NotTerminating"])", idle, bounded},
      {R"("scopes":["PriorityClass"])", high, idle},
      {R"("scopes":["CrossNamespacePodAffinity"])", far, idle},
      {R"("scopeSelector":{"matchExpressions":[{"scopeName":"PriorityClass","operator":"In",
          "values":["high"]}]})",
       high, idle},
      {R"("scopeSelector":{"matchExpressions":[{"scopeName":"PriorityClass","operator":"NotIn",
          "values":["high"]}]})",
       idle, high},
      {R"("scopeSelector":{"matchExpressions":[{"scopeName":"PriorityClass",
          "operator":"DoesNotExist"}]})",
       idle, high}};
  for (const ScopeCase& c : kCases) {
    AdmissionWorld fresh;
    fresh.put("priorityclasses.scheduling.k8s.io", "", "high", R"({"value":1})");
    fresh.put("resourcequotas", "default", "q",
              R"({"spec":{"hard":{"pods":"0"},)" + std::string(c.scope) + "}}");
    fresh.collect();
    EXPECT_EQ(fresh.run("other", c.other).first, 201) << c.scope;
    EXPECT_EQ(fresh.run("match", c.matching).first, 403) << c.scope;
  }
}

TEST_F(Quotas, A_dry_run_is_judged_but_not_charged) {
  quota(R"({"hard":{"pods":"1"}})");
  EXPECT_EQ(world.call("POST", World::pods("?dryRun=All"), world.pod("p")).first, 201);
  EXPECT_EQ(used(), R"({"pods":"0"})");
}

TEST_F(Quotas, A_changed_limit_is_followed) {
  quota(R"({"hard":{"pods":"0"}})");
  EXPECT_EQ(world.run("p", kOneContainer).first, 403);
  quota(R"({"hard":{"pods":"1","count/secrets":"4"}})");
  EXPECT_EQ(used(), R"({"count/secrets":"0","pods":"0"})");
  EXPECT_EQ(world.run("p", kOneContainer).first, 201);
}

TEST_F(Quotas, A_quota_whose_use_is_not_known_yet_lets_nothing_in) {
  world.put("resourcequotas", "default", "q",
            R"({"spec":{"hard":{"pods":"1"}},"status":{"hard":{"pods":"1"}}})");
  EXPECT_EQ(refusal(world.run("p", kOneContainer)), "status unknown for quota: q, resources: pods");
}

TEST_F(Quotas, A_whole_plan_is_refused_where_its_last_pod_exceeds) {
  quota(R"({"hard":{"pods":"2"}})");
  std::vector<client::Write> writes;
  for (std::string_view name : {"a", "b", "d"}) {
    writes.push_back({.verb = client::Verb::kCreate,
                      .resource = {.version = "v1", .plural = "pods", .kind = "Pod"},
                      .ns = "default",
                      .body = text_to_json(world.pod(name))});
  }
  const auto results = world.server->transact(writes);
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results.back().error().message,
            "pods \"d\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: "
            "pods=2");
  EXPECT_EQ(used(), R"({"pods":"0"})");
}

TEST_F(Quotas, A_pod_that_should_have_stopped_long_ago_costs_nothing) {
  quota(R"({"hard":{"pods":"1"}})");
  ASSERT_EQ(world.run("p", std::string(kOneContainer) + R"(,"nodeName":"n")").first, 201);
  ASSERT_EQ(world.call("DELETE", World::pods("/p")).first, 200);
  world.collect();
  EXPECT_EQ(used(), R"({"pods":"1"})");
  world.clock.advance(std::chrono::minutes(10));
  world.collect();
  EXPECT_EQ(used(), R"({"pods":"0"})");
}

TEST(QuotaUsage, Claims_cost_storage_also_under_the_name_of_their_class) {
  const json::value claim = text_to_json(
      R"({"spec":{"storageClassName":"gold","resources":{"requests":{"storage":"5Gi"}}}})");
  EXPECT_EQ(json::serialize(write_amounts(quota::usage("persistentvolumeclaims", claim, Time()))),
            R"({"count/persistentvolumeclaims":"1",)"
            R"("gold.storageclass.storage.k8s.io/persistentvolumeclaims":"1",)"
            R"("gold.storageclass.storage.k8s.io/requests.storage":"5Gi",)"
            R"("persistentvolumeclaims":"1","requests.storage":"5Gi"})");
}

TEST(QuotaUsage, Extended_resources_are_counted_as_requests) {
  const json::value pod = text_to_json(
      R"({"spec":{"containers":[{"resources":{"requests":{"nvidia.com/gpu":"2"}}}]}})");
  const Amounts usage = quota::usage("pods", pod, Time());
  EXPECT_EQ(usage.at("requests.nvidia.com/gpu").value(), 2);
  EXPECT_EQ(quota::resources_for("requests.nvidia.com/gpu"), std::vector<std::string>{"pods"});
  EXPECT_EQ(quota::resources_for("count/jobs.batch"), std::vector<std::string>{"jobs.batch"});
  EXPECT_TRUE(quota::resources_for("unheard.of").empty());
}

}  // namespace
}  // namespace skiff::apiserver
