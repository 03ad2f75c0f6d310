// The kinds of apps, batch, autoscaling and networking through the whole write path.
#include <gtest/gtest.h>

#include "api/meta.h"
#include "apiserver/test_world.h"

namespace skiff::apiserver {
namespace {

struct Sample {
  std::string api;  // apps/v1
  std::string plural;
  std::string kind;
  std::string rest;  // members besides metadata
  bool namespaced = true;

  std::string path(std::string_view name = "") const {
    return "/apis/" + api + (namespaced ? "/namespaces/default/" : "/") + plural +
           (name.empty() ? "" : "/" + std::string(name));
  }
  std::string body() const {
    return R"({"apiVersion":")" + api + R"(","kind":")" + kind + R"(","metadata":{"name":"web"},)" +
           rest + "}";
  }
};

const std::string kOwned =
    R"("selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":)"
    R"({"containers":[{"name":"c","image":"i:1"}]}})";
const std::string kOnce =
    R"("template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i:1"}]}})";
const std::string kTarget =
    R"("spec":{"maxReplicas":3,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment",)"
    R"("name":"web"}})";

std::vector<Sample> samples() {
  return {
      {"apps/v1", "deployments", "Deployment", R"("spec":{)" + kOwned + "}"},
      {"apps/v1", "replicasets", "ReplicaSet", R"("spec":{)" + kOwned + "}"},
      {"apps/v1", "statefulsets", "StatefulSet",
       R"("spec":{"serviceName":"s","volumeClaimTemplates":[{"metadata":{"name":"d"},"spec":{)"
       R"("accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}],)" +
           kOwned + "}"},
      {"apps/v1", "daemonsets", "DaemonSet", R"("spec":{)" + kOwned + "}"},
      {"apps/v1", "controllerrevisions", "ControllerRevision", R"("revision":1,"data":{"a":1})"},
      {"batch/v1", "jobs", "Job", R"("spec":{)" + kOnce + "}"},
      {"batch/v1", "cronjobs", "CronJob",
       R"("spec":{"schedule":"@daily","jobTemplate":{"spec":{)" + kOnce + "}}}"},
      {"autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", kTarget},
      {"networking.k8s.io/v1", "ingresses", "Ingress",
       R"("spec":{"defaultBackend":{"service":{"name":"s","port":{"number":80}}}})"},
      {"networking.k8s.io/v1", "ingressclasses", "IngressClass",
       R"("spec":{"controller":"a.org/b"})", false},
      {"networking.k8s.io/v1", "networkpolicies", "NetworkPolicy", R"("spec":{"podSelector":{}})"},
  };
}

TEST(Workloads, WhatIsReadCanBeWrittenBackWithoutAChange) {
  World w;
  for (const Sample& s : samples()) {
    const auto [code, made] = w.call("POST", s.path(), s.body());
    ASSERT_EQ(code, 201) << s.kind << json::serialize(made);
    const auto read = w.call("GET", s.path("web")).second;
    EXPECT_EQ(read, made) << s.kind;
    const auto [again, same] = w.call("PUT", s.path("web"), json::serialize(read));
    EXPECT_EQ(again, 200) << s.kind << json::serialize(same);
    EXPECT_EQ(same, read) << s.kind;
    // And what the user wrote says the same as what was made of it, whatever the server added.
    const auto [third, plain] =
        w.call("PATCH", s.path("web"), s.body(), "application/strategic-merge-patch+json");
    EXPECT_EQ(third, 200) << s.kind << json::serialize(plain);
    EXPECT_EQ(plain, read) << s.kind;
    const auto table = w.call("GET", s.path(), "", "application/json",
                              "application/json;as=Table;v=v1;g=meta.k8s.io");
    EXPECT_EQ(json::get_array(table.second, {"rows"}).size(), 1u) << s.kind;
    const auto& cells = json::get_array(json::get_array(table.second, {"rows"})[0], {"cells"});
    EXPECT_EQ(cells.size(), json::get_array(table.second, {"columnDefinitions"}).size()) << s.kind;
    EXPECT_EQ(w.call("DELETE", s.path("web")).first, 200) << s.kind;
    w.collect();
    EXPECT_EQ(w.call("GET", s.path("web")).first, 404) << s.kind;
  }
}

TEST(Workloads, DeploymentsCountAnnotationsToo) {
  World w;
  const Sample d = samples()[0];
  ASSERT_EQ(w.call("POST", d.path(), d.body()).first, 201);
  const auto patch = [&](const std::string& text) {
    return w.call("PATCH", d.path("web"), text, "application/merge-patch+json").second;
  };
  EXPECT_EQ(
      json::get_int(patch(R"({"metadata":{"labels":{"x":"y"}}})"), {"metadata", "generation"}), 1);
  EXPECT_EQ(
      json::get_int(patch(R"({"metadata":{"annotations":{"x":"y"}}})"), {"metadata", "generation"}),
      2);
  EXPECT_EQ(json::get_int(patch(R"({"spec":{"replicas":4}})"), {"metadata", "generation"}), 3);
}

TEST(Workloads, AJobIsDeletedWithoutItsPodsUnlessAsked) {
  World w;
  const Sample job = samples()[5];
  ASSERT_EQ(w.call("POST", job.path(), job.body()).first, 201);
  const auto made = w.call("GET", job.path("web")).second;
  EXPECT_EQ(json::get_string(
                made, {"spec", "selector", "matchLabels", "batch.kubernetes.io/controller-uid"}),
            api::uid(made));
  ASSERT_EQ(w.call("DELETE", job.path("web")).first, 200);
  EXPECT_NE(http::header(w.last.headers, "Warning").find("child pods are preserved by default"),
            std::string_view::npos);
}

TEST(Workloads, AStatefulSetsNameIsALabel) {
  World w;
  Sample s = samples()[2];
  std::string body = s.body();
  body.replace(body.find("\"web\""), 5, "\"we.b\"");
  EXPECT_EQ(w.call("POST", s.path(), body).first, 422);
}

TEST(Workloads, AutoscalersAreServedInTwoVersions) {
  World w;
  Sample v1{"autoscaling/v1", "horizontalpodautoscalers", "HorizontalPodAutoscaler",
            R"("spec":{"maxReplicas":3,"targetCPUUtilizationPercentage":60,"scaleTargetRef":)"
            R"({"apiVersion":"apps/v1","kind":"Deployment","name":"web"}})"};
  const auto [code, made] = w.call("POST", v1.path(), v1.body());
  ASSERT_EQ(code, 201) << json::serialize(made);
  EXPECT_EQ(json::get_string(made, {"apiVersion"}), "autoscaling/v1");
  EXPECT_EQ(json::get_int(made, {"spec", "targetCPUUtilizationPercentage"}), 60);
  const auto v2 =
      w.call("GET", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/web").second;
  EXPECT_EQ(json::get_string(v2, {"apiVersion"}), "autoscaling/v2");
  EXPECT_EQ(json::get_int(json::get_array(v2, {"spec", "metrics"})[0],
                          {"resource", "target", "averageUtilization"}),
            60);
  const auto [again, same] = w.call("PUT", v1.path("web"), json::serialize(made));
  EXPECT_EQ(again, 200) << json::serialize(same);
  EXPECT_EQ(same, made);
}

TEST(Workloads, JobsAreFoundByHowManyPodsSucceeded) {
  World w;
  const Sample job = samples()[5];
  ASSERT_EQ(w.call("POST", job.path(), job.body()).first, 201);
  const auto found = [&](const std::string& count) {
    return json::get_array(
               w.call("GET", job.path() + "?fieldSelector=status.successful%3D" + count).second,
               {"items"})
        .size();
  };
  EXPECT_EQ(found("0"), 1u);
  EXPECT_EQ(found("1"), 0u);
}

}  // namespace
}  // namespace skiff::apiserver
