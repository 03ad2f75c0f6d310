#include "apiserver/usage.h"

#include <gtest/gtest.h>

#include "api/meta.h"
#include "api/metrics/metrics.h"
#include "apiserver/test_world.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kTableOnly = "application/json;as=Table;v=v1;g=meta.k8s.io";

class UsageWorld : public ::testing::Test {
 protected:
  UsageWorld() : world_({.usage = [this] { return now_; }}, kinds()) {
    for (auto& [name, schema] : api::metrics_schemas()) world_.registry.add(name, schema);
    node("n1");
    now_.nodes = {{.name = "n1",
                   .measured = {.at = world_.clock.now(), .window = std::chrono::seconds(10)},
                   .used = {.cpu_nano = 250'000'000, .memory_bytes = 3 << 20}}};
  }

  static std::vector<api::Kind> kinds() {
    std::vector<api::Kind> out = api::builtin_kinds();
    out.push_back(api::node_metrics_kind());
    out.push_back(api::pod_metrics_kind());
    return out;
  }

  void node(const std::string& name) {
    EXPECT_EQ(world_
                  .call("POST", "/api/v1/nodes",
                        R"({"metadata":{"name":")" + name + R"(","labels":{"disk":"fast"}}})")
                  .first,
              201);
  }
  void pod(const std::string& name, const std::string& app, const std::string& ns = "default") {
    if (ns != "default") {
      world_.call("POST", "/api/v1/namespaces", R"({"metadata":{"name":")" + ns + R"("}})");
    }
    const auto [code, made] =
        world_.call("POST", "/api/v1/namespaces/" + ns + "/pods",
                    world_.pod(name, R"(,"labels":{"app":")" + app + R"("})"));
    ASSERT_EQ(code, 201) << json::serialize(made);
    now_.pods.push_back(
        {.ns = ns,
         .name = name,
         .uid = std::string(api::uid(made)),
         .measured = {.at = world_.clock.now(), .window = std::chrono::milliseconds(10250)},
         .containers = {{.name = "c", .used = {.cpu_nano = 1'500'000, .memory_bytes = 2048}}}});
  }
  std::vector<std::string> names(const std::string& path) {
    const auto [code, list] = world_.call("GET", kRoot + path);
    EXPECT_EQ(code, 200) << json::serialize(list);
    std::vector<std::string> out;
    for (const json::value& item : json::get_array(list, {"items"})) {
      out.push_back(std::string(api::ns(item)) + "/" + std::string(api::name(item)));
    }
    return out;
  }

  using Names = std::vector<std::string>;
  const std::string kRoot = "/apis/metrics.k8s.io/v1beta1";
  Usage now_ = {};
  World world_;
};

TEST_F(UsageWorld, APodIsShownAsMetricsServerShowsIt) {
  pod("web", "a");
  const auto [code, one] = world_.call("GET", kRoot + "/namespaces/default/pods/web");
  EXPECT_EQ(code, 200);
  EXPECT_EQ(json::serialize(one),
            R"({"kind":"PodMetrics","apiVersion":"metrics.k8s.io/v1beta1","metadata":)"
            R"({"name":"web","namespace":"default","creationTimestamp":"2026-01-01T00:00:00Z",)"
            R"("labels":{"app":"a"}},"timestamp":"2026-01-01T00:00:00Z","window":"10.25s",)"
            R"("containers":[{"name":"c","usage":{"cpu":"1500000n","memory":"2Ki"}}]})");
}

TEST_F(UsageWorld, ANodeIsShownWithItsLabels) {
  const auto [code, one] = world_.call("GET", kRoot + "/nodes/n1");
  EXPECT_EQ(code, 200);
  EXPECT_EQ(json::serialize(one),
            R"({"kind":"NodeMetrics","apiVersion":"metrics.k8s.io/v1beta1","metadata":)"
            R"({"name":"n1","creationTimestamp":"2026-01-01T00:00:00Z","labels":{"disk":"fast"}},)"
            R"("timestamp":"2026-01-01T00:00:00Z","window":"10s",)"
            R"("usage":{"cpu":"250000000n","memory":"3072Ki"}})");
  EXPECT_EQ(names("/nodes"), Names{"/n1"});
  EXPECT_EQ(names("/nodes?labelSelector=disk%3Dslow"), Names{});
}

TEST_F(UsageWorld, ANodesOtherResourcesStandBesideCpuAndMemory) {
  now_.nodes[0].more = {{"nvidia.com/gpu", "1500m"}};
  const auto one = world_.call("GET", kRoot + "/nodes/n1").second;
  EXPECT_EQ(json::get_string(one, {"usage", "nvidia.com/gpu"}), "1500m");
}

TEST_F(UsageWorld, ListsAreSortedAndSelected) {
  pod("web-1", "web");
  pod("db", "db");
  pod("web-0", "web", "team");
  EXPECT_EQ(names("/pods"), (Names{"default/db", "default/web-1", "team/web-0"}));
  EXPECT_EQ(names("/namespaces/default/pods"), (Names{"default/db", "default/web-1"}));
  EXPECT_EQ(names("/pods?labelSelector=app%3Dweb"), (Names{"default/web-1", "team/web-0"}));
  EXPECT_EQ(names("/pods?fieldSelector=metadata.name%3Ddb"), Names{"default/db"});
  EXPECT_EQ(names("/pods?fieldSelector=metadata.namespace%3Dteam"), Names{"team/web-0"});
  EXPECT_EQ(world_.call("GET", kRoot + "/pods?fieldSelector=spec.nodeName%3Dx").first, 400);
  EXPECT_EQ(world_.call("GET", kRoot + "/pods?labelSelector=%3D%3D").first, 400);
  EXPECT_EQ(json::get_string(world_.call("GET", kRoot + "/pods").second, {"kind"}),
            "PodMetricsList");
}

TEST_F(UsageWorld, WhatIsNotMeasuredIsNotFoundInMetricsServersWords) {
  pod("web", "a");
  now_.pods.clear();
  auto [code, answer] = world_.call("GET", kRoot + "/namespaces/default/pods/web");
  EXPECT_EQ(code, 404);
  EXPECT_EQ(json::get_string(answer, {"message"}),
            "podmetrics.metrics.k8s.io \"default/web\" not found");
  answer = world_.call("GET", kRoot + "/namespaces/default/pods/none").second;
  EXPECT_EQ(json::get_string(answer, {"message"}), "pods \"default/none\" not found");
  now_.nodes.clear();
  answer = world_.call("GET", kRoot + "/nodes/n1").second;
  EXPECT_EQ(json::get_string(answer, {"message"}), "nodemetrics.metrics.k8s.io \"n1\" not found");
}

TEST_F(UsageWorld, AMeasurementOfAnEarlierPodOfTheNameIsNotShown) {
  pod("web", "a");
  now_.pods[0].uid = "of-the-one-before";
  EXPECT_EQ(names("/pods"), Names{});
}

TEST_F(UsageWorld, ItCanBeReadAndNothingElse) {
  pod("web", "a");
  const std::string one = kRoot + "/namespaces/default/pods/web";
  EXPECT_EQ(world_.call("DELETE", one).first, 405);
  EXPECT_EQ(world_.call("PUT", one, "{}").first, 405);
  EXPECT_EQ(world_.call("POST", kRoot + "/namespaces/default/pods", "{}").first, 405);
  EXPECT_EQ(world_.call("GET", kRoot + "/pods?watch=1").first, 405);
}

TEST_F(UsageWorld, DiscoveryAndExplanationsKnowIt) {
  const auto list = world_.call("GET", kRoot).second;
  ASSERT_EQ(json::get_array(list, {"resources"}).size(), 2u);
  const json::value& nodes = json::get_array(list, {"resources"})[0];
  EXPECT_EQ(json::serialize(nodes), R"({"name":"nodes","singularName":"","namespaced":false,)"
                                    R"("kind":"NodeMetrics","verbs":["get","list"]})");
  const auto document = world_.call("GET", "/openapi/v3/apis/metrics.k8s.io/v1beta1").second;
  EXPECT_NE(json::serialize(document).find("What each running container uses."), std::string::npos);
}

TEST_F(UsageWorld, TablesAreForPeople) {
  pod("web", "a");
  const auto [code, table] =
      world_.call("GET", kRoot + "/pods", "", "application/json", std::string(kTableOnly));
  EXPECT_EQ(code, 200);
  EXPECT_EQ(json::get_string(table, {"kind"}), "Table");
  EXPECT_EQ(json::serialize(json::get_array(table, {"rows"})[0].at("cells")),
            R"(["web","1500000n","2Ki","10.25s"])");
  const auto one = world_.call("GET", kRoot + "/namespaces/default/pods/web", "",
                               "application/json", std::string(kTableOnly));
  EXPECT_EQ(json::get_array(one.second, {"rows"}).size(), 1u);
}

TEST_F(UsageWorld, AServerWithoutNodesSaysSo) {
  world_.server->set_usage({});
  const auto [code, answer] = world_.call("GET", kRoot + "/pods");
  EXPECT_EQ(code, 503);
  EXPECT_EQ(json::get_string(answer, {"message"}), "nobody measures here: this Skiff runs no pods");
}

TEST_F(UsageWorld, WhoMayViewMayAlsoSeeWhatIsUsed) {
  const auto [made, role] = world_.call("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles",
                                        json::serialize(api::metrics_reader_role()));
  EXPECT_EQ(made, 201) << json::serialize(role);
  world_.collect();
  const auto view =
      world_.call("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/view").second;
  EXPECT_NE(json::serialize(view).find(
                R"({"verbs":["get","list","watch"],"apiGroups":["metrics.k8s.io"],)"
                R"("resources":["pods","nodes"]})"),
            std::string::npos)
      << json::serialize(view);
}

TEST(GoDuration, IsWrittenAsGoWritesIt) {
  using namespace std::chrono_literals;
  EXPECT_EQ(go_duration(0s), "0s");
  EXPECT_EQ(go_duration(10s), "10s");
  EXPECT_EQ(go_duration(10001us), "0.010001s");
  EXPECT_EQ(go_duration(90s + 500ms), "1m30.5s");
  EXPECT_EQ(go_duration(3600s), "1h0m0s");
}

}  // namespace
}  // namespace skiff::apiserver
