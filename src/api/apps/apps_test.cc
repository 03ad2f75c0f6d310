#include "api/apps/apps.h"

#include <gtest/gtest.h>

#include "api/test_kind.h"

namespace skiff::api {
namespace {

using testing::cells;
using testing::complaints;
using testing::defaulted;
using testing::Lines;
using testing::parsed;
using testing::warned;

// Objects of the group differ little: spec with labels, selector and a pod.
std::string workload(std::string_view more = "", std::string_view pod_more = "",
                     std::string_view labels = R"({"app":"web"})") {
  return R"({"metadata":{"name":"web","namespace":"default"},"spec":{"selector":{"matchLabels":)"
         R"({"app":"web"}},"template":{"metadata":{"labels":)" +
         std::string(labels) + R"(},"spec":{"containers":[{"name":"c","image":"i:1"}])" +
         std::string(pod_more) + "}}" + std::string(more) + "}}";
}

TEST(Deployment, Defaults) {
  const json::value d = defaulted(deployment_kind(), workload());
  EXPECT_EQ(json::get_int(d, {"spec", "replicas"}), 1);
  EXPECT_EQ(
      json::serialize(*json::find(d, {"spec", "strategy"})),
      R"({"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"25%","maxSurge":"25%"}})");
  EXPECT_EQ(json::get_int(d, {"spec", "revisionHistoryLimit"}), 10);
  EXPECT_EQ(json::get_int(d, {"spec", "progressDeadlineSeconds"}), 600);
  EXPECT_EQ(json::get_string(d, {"spec", "template", "spec", "restartPolicy"}), "Always");
  const json::value zero = defaulted(deployment_kind(), workload(R"(,"replicas":0)"));
  EXPECT_EQ(json::get_int(zero, {"spec", "replicas"}), 0);
  const json::value recreate =
      defaulted(deployment_kind(), workload(R"(,"strategy":{"type":"Recreate"})"));
  EXPECT_EQ(json::find(recreate, {"spec", "strategy", "rollingUpdate"}), nullptr);
  const json::value wrong = defaulted(deployment_kind(), R"({"spec":{"template":5}})");
  EXPECT_EQ(json::serialize(*json::find(wrong, {"spec", "template"})), "5");
}

TEST(Deployment, Rules) {
  EXPECT_EQ(complaints(deployment_kind(), workload()), Lines{});
  EXPECT_EQ(complaints(deployment_kind(), R"({"spec":{"replicas":-1}})"),
            (Lines{"spec.replicas: Invalid value: -1: must be greater than or equal to 0",
                   "spec.selector: Required value",
                   "spec.template.metadata.labels: Invalid value: null: `selector` does not match "
                   "template `labels`",
                   "spec.template.spec.containers: Required value"}));
  EXPECT_EQ(complaints(deployment_kind(), workload("", "", R"({"app":"other"})")),
            Lines{R"(spec.template.metadata.labels: Invalid value: {"app":"other"}: `selector` )"
                  "does not match template `labels`"});
  EXPECT_EQ(complaints(deployment_kind(),
                       workload("", R"(,"restartPolicy":"Never","activeDeadlineSeconds":5)")),
            (Lines{R"(spec.template.spec.restartPolicy: Unsupported value: "Never": supported )"
                   R"(values: "Always")",
                   "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in "
                   "ReplicaSet is not Supported"}));
  EXPECT_EQ(complaints(deployment_kind(),
                       workload(R"(,"progressDeadlineSeconds":5,"minReadySeconds":9)")),
            Lines{"spec.progressDeadlineSeconds: Invalid value: 5: must be greater than "
                  "minReadySeconds"});
}

TEST(Deployment, Selectors) {
  const auto with = [](std::string_view selector) {
    return complaints(deployment_kind(),
                      R"({"spec":{"selector":)" + std::string(selector) +
                          R"(,"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[)"
                          R"({"name":"c","image":"i"}]}}}})");
  };
  EXPECT_EQ(with(R"({"matchLabels":{"a":"b"}})"), Lines{});
  EXPECT_EQ(with("{}"),
            Lines{"spec.selector: Invalid value: {}: empty selector is invalid for deployment"});
  EXPECT_EQ(with(R"({"matchExpressions":[{"key":"a","operator":"In"}]})"),
            (Lines{"spec.selector.matchExpressions[0].values: Required value: must be specified "
                   "when `operator` is 'In' or 'NotIn'",
                   R"(spec.selector: Invalid value: {"matchExpressions":[{"key":"a","operator":)"
                   R"("In"}]}: invalid label selector)"}));
  EXPECT_EQ(with(R"({"matchExpressions":[{"key":"a","operator":"Exists","values":["x"]}]})")[0],
            "spec.selector.matchExpressions[0].values: Forbidden: may not be specified when "
            "`operator` is 'Exists' or 'DoesNotExist'");
  EXPECT_EQ(with(R"({"matchExpressions":[{"key":"a","operator":"Is"}]})")[0],
            R"(spec.selector.matchExpressions[0].operator: Invalid value: "Is": not a valid )"
            "selector operator");
}

TEST(Deployment, Strategies) {
  const auto with = [](std::string_view strategy) {
    return complaints(deployment_kind(), workload(R"(,"strategy":)" + std::string(strategy)));
  };
  EXPECT_EQ(with(R"({"type":"RollingUpdate","rollingUpdate":{"maxSurge":1,"maxUnavailable":0}})"),
            Lines{});
  EXPECT_EQ(with(R"({"rollingUpdate":{"maxSurge":0,"maxUnavailable":"0%"}})"),
            Lines{"spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"0%\": may not be 0 "
                  "when `maxSurge` is 0"});
  EXPECT_EQ(with(R"({"rollingUpdate":{"maxSurge":-1,"maxUnavailable":"101%"}})"),
            (Lines{"spec.strategy.rollingUpdate.maxSurge: Invalid value: -1: must be greater than "
                   "or equal to 0",
                   "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"101%\": must not "
                   "be greater than 100%"}));
  EXPECT_EQ(with(R"({"rollingUpdate":{"maxSurge":"x","maxUnavailable":1}})"),
            Lines{"spec.strategy.rollingUpdate.maxSurge: Invalid value: \"x\": a valid percent "
                  "string must be a numeric string followed by an ending '%' (e.g. '1%',  or "
                  "'93%', regex used for validation is '[0-9]+%')"});
  EXPECT_EQ(with(R"({"type":"Recreate","rollingUpdate":{}})"),
            Lines{"spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy "
                  "`type` is 'Recreate'"});
  EXPECT_EQ(with(R"({"type":"Blue"})"),
            Lines{R"(spec.strategy: Unsupported value: {"Type":"Blue","RollingUpdate":null}: )"
                  R"(supported values: "Recreate", "RollingUpdate")"});
}

TEST(Deployment, SelectorNeverChanges) {
  const json::value old = defaulted(deployment_kind(), workload());
  const std::string next =
      R"({"spec":{"selector":{"matchLabels":{"app":"x"}},"template":{"metadata":{"labels":)"
      R"({"app":"x"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})";
  EXPECT_EQ(complaints(deployment_kind(), next, &old),
            Lines{R"(spec.selector: Invalid value: {"matchLabels":{"app":"x"}}: field is )"
                  "immutable"});
}

TEST(Deployment, Status) {
  const json::value old = parsed(R"({"status":{"collisionCount":2}})");
  EXPECT_EQ(complaints(deployment_kind(),
                       R"({"status":{"replicas":1,"readyReplicas":1,"availableReplicas":2,)"
                       R"("unavailableReplicas":-1}})",
                       &old, "status"),
            (Lines{"status.unavailableReplicas: Invalid value: -1: must be greater than or equal "
                   "to 0",
                   "status.availableReplicas: Invalid value: 2: cannot be greater than "
                   "status.replicas",
                   "status.availableReplicas: Invalid value: 2: cannot be greater than "
                   "readyReplicas",
                   "status.collisionCount: Invalid value: 0: cannot be decremented"}));
}

TEST(Deployment, Cells) {
  EXPECT_EQ(cells(deployment_kind(), workload(R"(,"replicas":3},"status":{"readyReplicas":2,)"
                                              R"("updatedReplicas":3,"availableReplicas":1)")),
            R"(["2/3",3,1,"<unknown>","c","i:1","app=web"])");
  EXPECT_EQ(cells(deployment_kind(), "{}"), R"(["0/0",0,0,"<unknown>","","","<none>"])");
}

TEST(Deployment, WarnsOfNamesThatPodsCannotHave) {
  EXPECT_EQ(warned(deployment_kind(), R"({"metadata":{"name":"web"}})"), Lines{});
  const Lines lines = warned(deployment_kind(), R"({"metadata":{"name":"web.example"}})");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0].starts_with("metadata.name: this is used in Pod names and hostnames"));
  EXPECT_TRUE(lines[0].ends_with("a DNS label is recommended: [must not contain dots]"));
}

TEST(ReplicaSet, DefaultsRulesAndCells) {
  const json::value rs = defaulted(replica_set_kind(), workload());
  EXPECT_EQ(json::get_int(rs, {"spec", "replicas"}), 1);
  EXPECT_EQ(json::serialize(*json::find(rs, {"status"})), R"({"replicas":0})");
  EXPECT_EQ(complaints(replica_set_kind(), workload(R"(,"minReadySeconds":-2)")),
            Lines{"spec.minReadySeconds: Invalid value: -2: must be greater than or equal to 0"});
  EXPECT_EQ(complaints(replica_set_kind(), R"({"status":{"replicas":1,"fullyLabeledReplicas":2}})",
                       &rs, "status"),
            Lines{"status.fullyLabeledReplicas: Invalid value: 2: cannot be greater than "
                  "status.replicas"});
  EXPECT_EQ(cells(replica_set_kind(), workload(R"(,"replicas":3},"status":{"replicas":2)")),
            R"([3,2,0,"<unknown>","c","i:1","app=web"])");
}

TEST(StatefulSet, Defaults) {
  const json::value set = defaulted(
      stateful_set_kind(),
      workload(R"(,"volumeClaimTemplates":[{"metadata":{"name":"d"},"spec":{"accessModes":)"
               R"(["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}])"));
  EXPECT_EQ(json::get_string(set, {"spec", "podManagementPolicy"}), "OrderedReady");
  EXPECT_EQ(json::serialize(*json::find(set, {"spec", "updateStrategy"})),
            R"({"type":"RollingUpdate","rollingUpdate":{"partition":0}})");
  EXPECT_EQ(json::serialize(*json::find(set, {"spec", "persistentVolumeClaimRetentionPolicy"})),
            R"({"whenDeleted":"Retain","whenScaled":"Retain"})");
  const json::value& claim = json::get_array(set, {"spec", "volumeClaimTemplates"})[0];
  EXPECT_EQ(json::get_string(claim, {"kind"}), "PersistentVolumeClaim");
  EXPECT_EQ(json::get_string(claim, {"spec", "volumeMode"}), "Filesystem");
  EXPECT_EQ(json::get_string(claim, {"status", "phase"}), "Pending");
  EXPECT_EQ(json::find(defaulted(stateful_set_kind(),
                                 workload(R"(,"updateStrategy":{"type":"OnDelete"})")),
                       {"spec", "updateStrategy", "rollingUpdate"}),
            nullptr);
}

TEST(StatefulSet, Rules) {
  EXPECT_EQ(complaints(stateful_set_kind(), workload()), Lines{});
  EXPECT_EQ(complaints(stateful_set_kind(),
                       workload(R"(,"podManagementPolicy":"Any","updateStrategy":{"type":"X"},)"
                                R"("persistentVolumeClaimRetentionPolicy":{"whenScaled":"Keep"},)"
                                R"("ordinals":{"start":-1},"serviceName":"A_B",)"
                                R"("volumeClaimTemplates":[{"metadata":{"name":"d"}}])"))
                .size(),
            7u);
  EXPECT_EQ(complaints(stateful_set_kind(), workload(R"(,"updateStrategy":{"type":"X"})")),
            Lines{R"(spec.updateStrategy: Invalid value: {"Type":"X","RollingUpdate":null}: must )"
                  "be 'RollingUpdate' or 'OnDelete'"});
  EXPECT_EQ(complaints(stateful_set_kind(),
                       workload(R"(,"updateStrategy":{"type":"OnDelete","rollingUpdate":{}})")),
            Lines{R"(spec.updateStrategy.rollingUpdate: Invalid value: {"Partition":0,)"
                  R"("MaxUnavailable":null}: only allowed for updateStrategy 'RollingUpdate')"});
}

TEST(StatefulSet, ClaimsCountAsVolumes) {
  const std::string mount =
      R"({"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":)"
      R"({"a":"b"}},"spec":{"containers":[{"name":"c","image":"i","volumeMounts":[{"name":"d",)"
      R"("mountPath":"/d"}]}]}})";
  EXPECT_EQ(complaints(stateful_set_kind(), mount + "}}"),
            Lines{R"(spec.template.spec.containers[0].volumeMounts[0].name: Not found: "d")"});
  EXPECT_EQ(complaints(stateful_set_kind(),
                       mount + R"(,"volumeClaimTemplates":[{"metadata":{"name":"d"},"spec":{)"
                               R"("accessModes":["ReadWriteOnce"],"resources":{"requests":{)"
                               R"("storage":"1Gi"}}}}]}})"),
            Lines{});
}

TEST(StatefulSet, LittleMayChange) {
  const json::value old = defaulted(stateful_set_kind(), workload(R"(,"serviceName":"a")"));
  EXPECT_EQ(complaints(stateful_set_kind(), workload(R"(,"serviceName":"a","replicas":9)"), &old),
            Lines{});
  EXPECT_EQ(complaints(stateful_set_kind(), workload(R"(,"serviceName":"b")"), &old),
            Lines{"spec: Forbidden: updates to statefulset spec for fields other than 'replicas', "
                  "'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', "
                  "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"});
  EXPECT_EQ(warned(stateful_set_kind(), workload(R"(,"revisionHistoryLimit":-1)")),
            Lines{"spec.revisionHistoryLimit: a negative value retains all historical revisions; a "
                  "value >= 0 is recommended"});
}

TEST(DaemonSet, DefaultsAndRules) {
  const json::value set = defaulted(daemon_set_kind(), workload());
  EXPECT_EQ(json::serialize(*json::find(set, {"spec", "updateStrategy"})),
            R"({"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":1,"maxSurge":0}})");
  EXPECT_EQ(complaints(daemon_set_kind(), workload()), Lines{});
  const auto with = [](std::string_view rolling) {
    return complaints(daemon_set_kind(), workload(R"(,"updateStrategy":{"rollingUpdate":)" +
                                                  std::string(rolling) + "}"));
  };
  EXPECT_EQ(with(R"({"maxUnavailable":1,"maxSurge":"5%"})"),
            Lines{"spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: \"5%\": may not be "
                  "set when maxUnavailable is non-zero"});
  EXPECT_EQ(with(R"({"maxUnavailable":0})"),
            Lines{"spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 "
                  "when maxSurge is 0"});
  EXPECT_EQ(complaints(daemon_set_kind(), workload(R"(,"updateStrategy":{"type":"X"})")),
            Lines{R"(spec.updateStrategy: Unsupported value: {"Type":"X","RollingUpdate":null}: )"
                  R"(supported values: "RollingUpdate", "OnDelete")"});
}

TEST(DaemonSet, CountsChangesOfItsTemplate) {
  const auto generation = [](const json::value& set) {
    return json::get_string(
        set, {"metadata", "annotations", "deprecated.daemonset.template.generation"});
  };
  json::value first = defaulted(daemon_set_kind(), workload());
  daemon_set_kind().prepare(first, {});
  EXPECT_EQ(generation(first), "1");
  json::value same = defaulted(daemon_set_kind(), workload(R"(,"minReadySeconds":5)"));
  daemon_set_kind().prepare(same, {.old = &first});
  EXPECT_EQ(generation(same), "1");
  json::value other = defaulted(daemon_set_kind(), workload("", R"(,"hostPID":true)"));
  daemon_set_kind().prepare(other, {.old = &first});
  EXPECT_EQ(generation(other), "2");
}

TEST(DaemonSet, Cells) {
  EXPECT_EQ(
      cells(daemon_set_kind(), workload(R"(},"status":{"desiredNumberScheduled":4,"numberReady":2)",
                                        R"(,"nodeSelector":{"b":"2","a":"1"})")),
      R"([4,0,2,0,0,"a=1,b=2","<unknown>","c","i:1","app=web"])");
}

TEST(ControllerRevision, Rules) {
  EXPECT_EQ(complaints(controller_revision_kind(), R"({"revision":1,"data":{}})"), Lines{});
  EXPECT_EQ(complaints(controller_revision_kind(), R"({"revision":-1})"),
            (Lines{"revision: Invalid value: -1: must be greater than or equal to 0",
                   "data: Required value: data is mandatory"}));
  EXPECT_EQ(complaints(controller_revision_kind(), R"({"data":5})"),
            Lines{"data: Required value: data must be a valid JSON object"});
  const json::value old = parsed(R"({"data":{"a":1}})");
  EXPECT_EQ(complaints(controller_revision_kind(), R"({"data":{"a":2}})", &old),
            Lines{R"(data: Invalid value: {"a":2}: field is immutable)"});
  EXPECT_EQ(cells(controller_revision_kind(),
                  R"({"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"StatefulSet",)"
                  R"("name":"web","controller":true}]},"revision":3})"),
            R"(["statefulset.apps/web",3,"<unknown>"])");
}

}  // namespace
}  // namespace skiff::api
