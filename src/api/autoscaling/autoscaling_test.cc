#include "api/autoscaling/autoscaling.h"

#include <gtest/gtest.h>

#include "api/test_kind.h"

namespace skiff::api {
namespace {

using testing::cells;
using testing::complaints;
using testing::defaulted;
using testing::Lines;
using testing::parsed;

Kind kept() { return autoscaling_kinds()[0]; }
Kind view() { return autoscaling_kinds()[1]; }

std::string autoscaler(std::string_view more = "") {
  return R"({"metadata":{"name":"a"},"spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":)"
         R"("Deployment","name":"web"},"maxReplicas":5)" +
         std::string(more) + "}}";
}

TEST(Autoscaler, Defaults) {
  const json::value v = defaulted(kept(), autoscaler(R"(,"behavior":{"scaleUp":{"policies":[]}})"));
  EXPECT_EQ(json::get_int(v, {"spec", "minReplicas"}), 1);
  EXPECT_EQ(json::serialize(*json::find(v, {"spec", "metrics"})),
            R"([{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization",)"
            R"("averageUtilization":80}}}])");
  EXPECT_EQ(json::serialize(*json::find(v, {"spec", "behavior", "scaleDown"})),
            R"({"selectPolicy":"Max","policies":[{"type":"Percent","value":100,)"
            R"("periodSeconds":15}]})");
  EXPECT_EQ(json::get_int(v, {"spec", "behavior", "scaleUp", "stabilizationWindowSeconds"}), 0);
}

TEST(Autoscaler, Rules) {
  EXPECT_EQ(complaints(kept(), autoscaler()), Lines{});
  EXPECT_EQ(
      complaints(kept(), R"({"spec":{"minReplicas":0}})"),
      (Lines{"spec.minReplicas: Invalid value: 0: must be greater than or equal to 1",
             "spec.maxReplicas: Invalid value: 0: must be greater than 0",
             "spec.scaleTargetRef.kind: Required value", "spec.scaleTargetRef.name: Required value",
             R"(spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify )"
             "API group",
             "spec.metrics: Forbidden: must specify at least one Object or External metric "
             "to support scaling to zero replicas"}));
  EXPECT_EQ(complaints(kept(), autoscaler(R"(,"minReplicas":9)")),
            Lines{"spec.maxReplicas: Invalid value: 5: must be greater than or equal to "
                  "`minReplicas`"});
}

TEST(Autoscaler, Metrics) {
  const auto with = [](std::string_view metric) {
    return complaints(kept(), autoscaler(R"(,"metrics":[)" + std::string(metric) + "]"));
  };
  EXPECT_EQ(with(R"({"type":"Pods","pods":{"metric":{"name":"m"},"target":{"type":"AverageValue",)"
                 R"("averageValue":"5"}}})"),
            Lines{});
  EXPECT_EQ(with(R"({"type":"Resource"})"),
            Lines{"spec.metrics[0].resource: Required value: must populate information for the "
                  "given metric source"});
  EXPECT_EQ(
      with(R"({"type":"External","external":{"metric":{},"target":{"type":"Value"}}})"),
      (Lines{"spec.metrics[0].external.metric.name: Required value: must specify a metric "
             "name",
             "spec.metrics[0].external.target.averageValue: Required value: must set either a "
             "target value for metric or a per-pod target"}));
  EXPECT_EQ(with(R"({"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization",)"
                 R"("averageUtilization":0}},"pods":{"metric":{"name":"m"},"target":{"type":)"
                 R"("AverageValue","averageValue":"-1"}}})"),
            (Lines{R"(spec.metrics[0].pods.target.averageValue: Invalid value: "-1": must be )"
                   "positive",
                   "spec.metrics[0].pods: Forbidden: must populate the given metric source only"}));
}

TEST(Autoscaler, Behavior) {
  EXPECT_EQ(
      complaints(kept(), autoscaler(R"(,"behavior":{"scaleDown":{"selectPolicy":"Any",)"
                                    R"("stabilizationWindowSeconds":3601,"policies":[)"
                                    R"({"type":"Pods","value":0,"periodSeconds":1801}]}})")),
      (Lines{"spec.behavior.scaleDown.stabilizationWindowSeconds: Invalid value: 3601: must "
             "be less than or equal to 3600",
             R"(spec.behavior.scaleDown.selectPolicy: Unsupported value: "Any": supported )"
             R"(values: "Disabled", "Max", "Min")",
             "spec.behavior.scaleDown.policies[0].value: Invalid value: 0: must be greater "
             "than zero",
             "spec.behavior.scaleDown.policies[0].periodSeconds: Invalid value: 1801: must be "
             "less than or equal to 1800"}));
}

TEST(Autoscaler, Cells) {
  EXPECT_EQ(cells(kept(), autoscaler(R"(,"minReplicas":1,"metrics":[{"type":"Resource","resource":)"
                                     R"({"name":"cpu","target":{"averageUtilization":80}}},)"
                                     R"({"type":"Pods","pods":{"target":{"averageValue":"5"}}},)"
                                     R"({"type":"Pods"}]},"status":{"currentReplicas":2,)"
                                     R"("currentMetrics":[{"resource":{"current":)"
                                     R"({"averageUtilization":40}}}])")),
            R"(["Deployment/web","cpu: 40%/80%, <unknown>/5 + 1 more...","1",5,2,"<unknown>"])");
}

TEST(Autoscaler, V1IsAViewOfTheSame) {
  json::value v1 = parsed(autoscaler(R"(,"minReplicas":2,"targetCPUUtilizationPercentage":50)"));
  const json::value before = v1;
  view().to_storage(v1);
  EXPECT_EQ(json::serialize(*json::find(v1, {"spec", "metrics"})),
            R"([{"type":"Resource","resource":{"name":"cpu","target":{"averageUtilization":50,)"
            R"("type":"Utilization"}}}])");
  EXPECT_EQ(json::find(v1, {"spec", "targetCPUUtilizationPercentage"}), nullptr);
  view().from_storage(v1);
  EXPECT_EQ(v1, before);
}

TEST(Autoscaler, V1AsksForEightyPercentWhereNothingIsAsked) {
  constexpr std::string_view kTarget = "targetCPUUtilizationPercentage";
  EXPECT_EQ(json::get_int(defaulted(view(), autoscaler()), {"spec", kTarget}), 80);
  json::value noted = parsed(autoscaler());
  json::set(noted, {"metadata", "annotations", "autoscaling.alpha.kubernetes.io/metrics"}, "[]");
  EXPECT_EQ(json::get_int(defaulted(view(), json::serialize(noted)), {"spec", kTarget}),
            std::nullopt);
}

TEST(Autoscaler, NothingIsLostThroughV1) {
  const json::value full = parsed(autoscaler(
      R"(,"minReplicas":1,"behavior":{"scaleUp":{"selectPolicy":"Max","policies":[{"type":"Pods",)"
      R"("value":4,"periodSeconds":15}]}},"metrics":[{"type":"Object","object":{"describedObject":)"
      R"({"kind":"Service","name":"s"},"metric":{"name":"hits"},"target":{"type":"Value","value":)"
      R"("10"}}},{"type":"External","external":{"metric":{"name":"q","selector":{"matchLabels":)"
      R"({"a":"b"}}},"target":{"type":"AverageValue","averageValue":"3"}}},{"type":)"
      R"("ContainerResource","containerResource":{"name":"memory","container":"c","target":)"
      R"({"type":"Utilization","averageUtilization":60}}},{"type":"Resource","resource":{"name":)"
      R"("cpu","target":{"type":"Utilization","averageUtilization":70}}}]},"status":{)"
      R"("currentReplicas":1,"desiredReplicas":1,"conditions":[{"type":"AbleToScale","status":)"
      R"("True"}],"currentMetrics":[{"type":"Resource","resource":{"name":"cpu","current":)"
      R"({"averageUtilization":33,"averageValue":"1"}}}])"));
  json::value v = full;
  view().from_storage(v);
  EXPECT_EQ(json::get_int(v, {"spec", "targetCPUUtilizationPercentage"}), 70);
  EXPECT_EQ(json::get_int(v, {"status", "currentCPUUtilizationPercentage"}), 33);
  EXPECT_EQ(json::find(v, {"spec", "metrics"}), nullptr);
  EXPECT_NE(json::find(v, {"metadata", "annotations", "autoscaling.alpha.kubernetes.io/behavior"}),
            nullptr);
  view().to_storage(v);
  EXPECT_EQ(v, full);
}

}  // namespace
}  // namespace skiff::api
