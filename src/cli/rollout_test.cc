#include "cli/rollout.h"

#include <gtest/gtest.h>

#include "base/yaml.h"
#include "cli/testing/objects.h"

namespace skiff::cli {
namespace {

using testing::doc;

std::string said(std::string_view text, std::int64_t revision = 0) {
  const auto status = rollout_status(doc(text), revision);
  if (!status) return "error: " + status.error().message;
  return status->text + (status->done ? " DONE" : "");
}

TEST(RolloutStatus, OfADeployment) {
  const auto web = [](const std::string& status, int generation = 2) {
    return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, generation: " +
           std::to_string(generation) +
           ", annotations: {deployment.kubernetes.io/revision: '4'}}, spec: {replicas: 3}, status: "
           "{observedGeneration: 2, " +
           status + "}}";
  };
  EXPECT_EQ(said(web("", 3)), "Waiting for deployment spec update to be observed...");
  EXPECT_EQ(said(web("replicas: 3, updatedReplicas: 1")),
            "Waiting for deployment \"web\" rollout to finish: 1 out of 3 new replicas have been "
            "updated...");
  EXPECT_EQ(said(web("replicas: 4, updatedReplicas: 3")),
            "Waiting for deployment \"web\" rollout to finish: 1 old replicas are pending "
            "termination...");
  EXPECT_EQ(said(web("replicas: 3, updatedReplicas: 3, availableReplicas: 2")),
            "Waiting for deployment \"web\" rollout to finish: 2 of 3 updated replicas are "
            "available...");
  const std::string done = web("replicas: 3, updatedReplicas: 3, availableReplicas: 3");
  EXPECT_EQ(said(done), "deployment \"web\" successfully rolled out DONE");
  EXPECT_EQ(said(done, 4), "deployment \"web\" successfully rolled out DONE");
  EXPECT_EQ(said(done, 3),
            "error: desired revision (3) is different from the running revision (4)");
  EXPECT_EQ(said(web("conditions: [{type: Progressing, reason: ProgressDeadlineExceeded}]")),
            "error: deployment \"web\" exceeded its progress deadline");
}

TEST(RolloutStatus, OfAStatefulSet) {
  const auto db = [](const std::string& status, const std::string& strategy) {
    return "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, generation: 1}, spec: "
           "{replicas: 3, updateStrategy: {" +
           strategy + "}}, status: {" + status + "}}";
  };
  const std::string rolling = "type: RollingUpdate";
  const std::string parted = "type: RollingUpdate, rollingUpdate: {partition: 1}";
  EXPECT_EQ(said(db("observedGeneration: 0", rolling)),
            "Waiting for statefulset spec update to be observed...");
  EXPECT_EQ(said(db("observedGeneration: 1, readyReplicas: 1", rolling)),
            "Waiting for 2 pods to be ready...");
  EXPECT_EQ(said(db("observedGeneration: 1, readyReplicas: 3, updatedReplicas: 1", parted)),
            "Waiting for partitioned roll out to finish: 1 out of 2 new pods have been updated...");
  EXPECT_EQ(said(db("observedGeneration: 1, readyReplicas: 3, updatedReplicas: 2", parted)),
            "partitioned roll out complete: 2 new pods have been updated... DONE");
  EXPECT_EQ(said(db("observedGeneration: 1, readyReplicas: 3, updatedReplicas: 2, "
                    "updateRevision: b, currentRevision: a",
                    rolling)),
            "waiting for statefulset rolling update to complete 2 pods at revision b...");
  EXPECT_EQ(said(db("observedGeneration: 1, readyReplicas: 3, currentReplicas: 3, "
                    "updateRevision: b, currentRevision: b",
                    rolling)),
            "statefulset rolling update complete 3 pods at revision b... DONE");
  EXPECT_EQ(said(db("", "type: OnDelete")),
            "error: rollout status is only available for RollingUpdate strategy type");
}

TEST(RolloutStatus, OfADaemonSetAndOfNothingElse) {
  const auto ds = [](const std::string& status) {
    return "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: d, generation: 1}, spec: "
           "{updateStrategy: {type: RollingUpdate}}, status: {observedGeneration: 1, "
           "desiredNumberScheduled: 2, " +
           status + "}}";
  };
  EXPECT_EQ(said(ds("updatedNumberScheduled: 1")),
            "Waiting for daemon set \"d\" rollout to finish: 1 out of 2 new pods have been "
            "updated...");
  EXPECT_EQ(said(ds("updatedNumberScheduled: 2, numberAvailable: 1")),
            "Waiting for daemon set \"d\" rollout to finish: 1 of 2 updated pods are available...");
  EXPECT_EQ(said(ds("updatedNumberScheduled: 2, numberAvailable: 2")),
            "daemon set \"d\" successfully rolled out DONE");
  EXPECT_EQ(said("{apiVersion: v1, kind: Pod}"),
            "error: no status viewer has been implemented for Pod");
}

const json::value kWeb = doc(R"(
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  uid: u
  annotations: {deployment.kubernetes.io/revision: "3", note: new}
spec:
  template: {metadata: {labels: {app: web}}, spec: {image: c}}
)");

Object set(int revision, std::string_view image, std::string_view uid,
           std::string_view cause = "") {
  std::string text = R"(
metadata:
  annotations: {deployment.kubernetes.io/revision: "REV", note: old)";
  if (!cause.empty()) text += ", kubernetes.io/change-cause: '" + std::string(cause) + "'";
  text += R"(}
  ownerReferences: [{controller: true, uid: UID}]
spec:
  template: {metadata: {labels: {app: web, pod-template-hash: abc}}, spec: {image: IMAGE}}
)";
  const auto put = [&](std::string_view what, std::string_view with) {
    text.replace(text.find(what), what.size(), with);
  };
  put("REV", std::to_string(revision));
  put("UID", uid);
  put("IMAGE", image);
  return std::make_shared<const json::value>(doc(text));
}

TEST(RolloutHistory, OfADeploymentIsItsReplicaSets) {
  EXPECT_EQ(revision_keeper(kWeb).plural, "replicasets");
  const auto revisions = revisions_of(
      kWeb, {set(3, "c", "u"), set(1, "a", "u", "first"), set(2, "x", "other"), set(2, "b", "u")});
  EXPECT_EQ(history_table(revisions),
            "REVISION  CHANGE-CAUSE\n"
            "1         first\n"
            "2         <none>\n"
            "3         <none>\n");
  EXPECT_EQ(find_revision(kWeb, revisions, 0)->number, 2);
  EXPECT_EQ(find_revision(kWeb, revisions, 1)->number, 1);
  EXPECT_EQ(find_revision(kWeb, revisions, 9).error().message,
            "unable to find specified revision 9 in history");
  EXPECT_EQ(find_revision(kWeb, {}, 0).error().message,
            "no rollout history found for deployment \"web\"");
  EXPECT_EQ(history_table({}), "No rollout history found.\n");
}

TEST(RolloutUndo, GivesADeploymentTheTemplateAndItsOwnAnnotationsBack) {
  const auto revisions = revisions_of(kWeb, {set(2, "b", "u"), set(3, "c", "u")});
  const json::array patch = undo_patch(kWeb, revisions[0]);
  ASSERT_EQ(patch.size(), 2U);
  EXPECT_EQ(patch[0], doc(R"({op: replace, path: /spec/template, value:
      {metadata: {labels: {app: web}}, spec: {image: b}}})"));
  EXPECT_EQ(patch[1], doc(R"({op: add, path: /metadata/annotations, value:
      {deployment.kubernetes.io/revision: "3", note: old}})"));
  EXPECT_TRUE(undo_patch(kWeb, revisions[1]).empty()) << "it is as it was then";
}

TEST(RolloutUndo, GivesAStatefulSetTheTemplateOfItsRevision) {
  const json::value db = doc(R"(
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, uid: u}
spec: {template: {spec: {image: b}}}
)");
  const auto kept = std::make_shared<const json::value>(doc(R"(
metadata: {ownerReferences: [{controller: true, uid: u}]}
revision: 1
data: {spec: {template: {$patch: replace, spec: {image: a}}}}
)"));
  EXPECT_EQ(revision_keeper(db).plural, "controllerrevisions");
  const auto revisions = revisions_of(db, {kept});
  ASSERT_EQ(revisions.size(), 1U);
  EXPECT_EQ(json::value(undo_patch(db, revisions[0])),
            doc("[{op: replace, path: /spec/template, value: {spec: {image: a}}}]"));
  EXPECT_EQ(find_revision(db, revisions, 0).error().message, "no last revision to roll back to");
}

TEST(RolloutPause, OnlyWhatIsNotAndOnlyDeployments) {
  EXPECT_EQ(json::value(*pause_patch(kWeb, true)), doc("{spec: {paused: true}}"));
  EXPECT_EQ(pause_patch(kWeb, false).error().message, "is not paused");
  json::value paused = kWeb;
  json::set(paused, {"spec", "paused"}, true);
  EXPECT_EQ(pause_patch(paused, true).error().message, "is already paused");
  EXPECT_EQ(json::value(*pause_patch(paused, false)), doc("{spec: {paused: false}}"));
  EXPECT_EQ(pause_patch(doc("{kind: StatefulSet}"), true).error().message,
            "pausing is not supported");
  EXPECT_EQ(restart_patch(paused, "now").error().message,
            "can't restart paused deployment (run rollout resume first)");
}

TEST(RolloutRestart, StampsTheTemplate) {
  const auto patch = restart_patch(kWeb, "2026-11-16T08:00:00Z");
  ASSERT_TRUE(patch);
  EXPECT_EQ(json::value(*patch), doc(R"(
spec: {template: {metadata: {annotations:
  {kubectl.kubernetes.io/restartedAt: "2026-11-16T08:00:00Z"}}}})"));
  json::value again = kWeb;
  json::set(again,
            {"spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt"},
            "now");
  EXPECT_FALSE(restart_patch(again, "now"));
  EXPECT_EQ(restart_patch(doc("{apiVersion: v1, kind: Pod}"), "now").error().message,
            "restarting is not supported");
}

}  // namespace
}  // namespace skiff::cli
