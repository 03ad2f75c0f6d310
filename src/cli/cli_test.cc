#include <gtest/gtest.h>

#include "api/meta.h"
#include "base/yaml.h"
#include "cli/context.h"
#include "cli/describe.h"
#include "cli/manifests.h"
#include "cli/printer.h"
#include "cli/testing/objects.h"
#include "cli/train/manifest.h"
#include "cli/why.h"

namespace skiff::cli {
namespace {

using testing::doc;
using testing::object;

TEST(Printer, ColumnsAlign) {
  EXPECT_EQ(columns({{"NAME", "AGE"}, {"a", "1s"}, {"longer", "20m"}}),
            "NAME     AGE\na        1s\nlonger   20m\n");
}

TEST(Printer, TableHidesWideColumnsUnlessAsked) {
  const json::value table = doc(R"(
columnDefinitions: [{name: Name, priority: 0}, {name: Node, priority: 1}]
rows: [{cells: [p, n1], object: {metadata: {namespace: ns}}}]
)");
  EXPECT_EQ(table_text(table, false, false, true), "NAME\np\n");
  EXPECT_EQ(table_text(table, true, true, true),
            "NAMESPACE   NAME   NODE\nns          p      n1\n");
}

TEST(Printer, TerminalCodesFromOutsideAreHarmless) {
  EXPECT_EQ(printable("a\033[2Jb"), "a?[2Jb");
  EXPECT_EQ(printable("a\xc2\x9b"
                      "2Jb\xc2\x80\x7f"),
            "a?2Jb??")
      << "C1 in UTF-8";
  EXPECT_EQ(printable("\t\n\xc2\xa0\xc3\x9b\xe2\x82\x9b\xc2"),
            "\t\n\xc2\xa0\xc3\x9b\xe2\x82\x9b\xc2")
      << "other letters, and half of one, stay";
}

TEST(Targets, AsKubectlTakesThem) {
  const auto slash = parse_targets({"pod/a", "tfjob/b"});
  ASSERT_TRUE(slash);
  EXPECT_EQ((*slash)[1].kind, "tfjob");
  const auto spaced = parse_targets({"pods", "a", "b"});
  ASSERT_TRUE(spaced);
  EXPECT_EQ(spaced->size(), 2u);
  const auto several = parse_targets({"pods,tfjobs"});
  ASSERT_TRUE(several);
  EXPECT_EQ(several->size(), 2u);
  EXPECT_FALSE(parse_targets({"pod/"}));
  EXPECT_FALSE(parse_targets({}));
}

TEST(Kinds, FoundByEveryNameAndMissedWithAHint) {
  const std::vector<api::Kind> kinds = {
      {.resource = {.group = "kubeflow.org", .version = "v1", .plural = "tfjobs", .kind = "TFJob"},
       .singular = "tfjob",
       .short_names = {"tf"}}};
  for (const char* word : {"tfjob", "tfjobs", "TFJob", "tf", "tfjobs.kubeflow.org"}) {
    EXPECT_TRUE(find_kind(kinds, word)) << word;
  }
  const auto missing = find_kind(kinds, "tfjbs");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("did you mean tfjobs"), std::string::npos);
}

TEST(Apply, SetsWhatChangedRemovesWhatWentKeepsTheRest) {
  const json::value first =
      doc("{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: '1', b: '2'}}");
  json::value live = with_last_applied(first);
  json::set(live, {"data", "added-by-other"}, "x");
  const json::value second =
      doc("{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: '3'}}");
  const json::object patch = three_way_patch(live, second);
  EXPECT_EQ(json::serialize(json::get_object(patch, {"data"})), R"({"a":"3","b":null})");
  EXPECT_TRUE(three_way_patch(with_last_applied(second), second).empty());
}

TEST(Apply, SaysWhichFileAndWhere) {
  const auto missing = read_manifests("/no/such/file.yaml");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("/no/such/file.yaml"), std::string::npos);
}

TEST(Train, ScriptNameBecomesAJobName) {
  EXPECT_EQ(job_name_from("/a/Train_MNIST v2.py"), "train-mnist-v2");
  EXPECT_EQ(job_name_from("7zip.py"), "zip");
  EXPECT_EQ(job_name_from("...py"), "train");
}

TEST(Train, TensorFlowWithParameterServers) {
  const auto job = train_manifest({.name = "t",
                                   .ns = "d",
                                   .framework = "tensorflow",
                                   .script = "/s.py",
                                   .workers = 2,
                                   .ps = 1});
  ASSERT_TRUE(job);
  EXPECT_EQ(api::kind(*job), "TFJob");
  EXPECT_EQ(json::get_int(*job, {"spec", "tfReplicaSpecs", "Worker", "replicas"}), 2);
  EXPECT_EQ(json::get_int(*job, {"spec", "tfReplicaSpecs", "PS", "replicas"}), 1);
}

TEST(Train, OnePyTorchWorkerIsTheMasterAlone) {
  const auto job = train_manifest(
      {.name = "t", .ns = "d", .framework = "pytorch", .script = "/s.py", .workers = 1});
  ASSERT_TRUE(job);
  EXPECT_EQ(json::find(*job, {"spec", "pytorchReplicaSpecs", "Worker"}), nullptr);
}

TEST(Train, FoldersAreMountedSoThatResultsStay) {
  const auto job = train_manifest({.name = "t",
                                   .framework = "pytorch",
                                   .script = "/tmp/a/s.py",
                                   .working_dir = "/tmp/b",
                                   .workers = 1});
  ASSERT_TRUE(job);
  const json::value* pod =
      json::find(*job, {"spec", "pytorchReplicaSpecs", "Master", "template", "spec"});
  ASSERT_NE(pod, nullptr);
  EXPECT_EQ(json::get_array(*pod, {"volumes"}).size(), 2u);
  const json::value& program = json::get_array(*pod, {"containers"}).front();
  EXPECT_EQ(json::get_string(json::get_array(program, {"volumeMounts"}).front(), {"mountPath"}),
            "/tmp/b");
}

TEST(Train, WrongOptionsAreSaid) {
  EXPECT_FALSE(train_manifest({.framework = "pytorch", .workers = 2, .ps = 1}));
  EXPECT_FALSE(train_manifest({.framework = "tensorflow", .workers = 0}));
  EXPECT_FALSE(train_manifest({.framework = "caffe", .workers = 1}));
  EXPECT_FALSE(train_manifest({.framework = "pytorch", .workers = 1, .env = {"NOVALUE"}}));
}

struct WhyCase {
  const char* sentence;
  const char* object;
  const char* pod;
  const char* says;
};

class Why : public ::testing::TestWithParam<WhyCase> {};

TEST_P(Why, SaysIt) {
  Situation situation{.object = object(GetParam().object)};
  if (*GetParam().pod != 0) situation.pods.push_back(object(GetParam().pod));
  std::string all;
  for (const std::string& line : explain(situation, Time{})) all += line + "\n";
  EXPECT_NE(all.find(GetParam().says), std::string::npos) << GetParam().sentence << "\n" << all;
}

INSTANTIATE_TEST_SUITE_P(
    All, Why,
    ::testing::Values(
        WhyCase{"a pod that does not fit says what is short",
                "{kind: Pod, metadata: {name: p}, status: {conditions: [{type: PodScheduled, "
                "status: 'False', "
                "message: '0/1 nodes are available: 1 Insufficient cpu'}]}}",
                "", "Insufficient cpu"},
        WhyCase{
            "an image nobody mapped",
            "{kind: Pod, metadata: {name: p}, spec: {nodeName: node-1}, status: {phase: Pending, "
            "containerStatuses: "
            "[{name: c, state: {waiting: {reason: ErrImagePull, message: 'map it'}}}]}}",
            "", "ErrImagePull (map it)"},
        WhyCase{
            "out of memory names the remedy",
            "{kind: Pod, metadata: {name: p}, spec: {nodeName: node-1}, status: {phase: Failed, "
            "containerStatuses: "
            "[{name: c, state: {terminated: {exitCode: 137, reason: OOMKilled}}}]}}",
            "", "resources.limits.memory"},
        WhyCase{
            "a failed job shows its failed container",
            "{kind: TFJob, metadata: {name: j}, status: {conditions: [{type: Failed, status: "
            "'True', message: "
            "'1 Worker replica(s) failed'}]}}",
            "{kind: Pod, metadata: {name: j-worker-0, namespace: d}, spec: {nodeName: node-1}, "
            "status: "
            "{phase: Failed, "
            "containerStatuses: [{name: c, state: {terminated: {exitCode: 3, reason: Error}}}]}}",
            "exit code 3"},
        WhyCase{
            "a program that is not there",
            "{kind: Pod, metadata: {name: p}, spec: {nodeName: node-1}, status: {phase: Failed, "
            "containerStatuses: [{name: c, state: {terminated: {exitCode: 128, reason: "
            "StartError, message: 'cannot run /x: there is no such file'}}}]}}",
            "", "could not be started: cannot run /x: there is no such file"},
        WhyCase{
            "last words are told",
            "{kind: Pod, metadata: {name: p}, spec: {nodeName: node-1}, status: {phase: Failed, "
            "containerStatuses: [{name: c, state: {terminated: {exitCode: 1, reason: Error, "
            "message: 'Address already in use'}}}]}}",
            "", "exit code 1 (Address already in use)"},
        WhyCase{"a job without pods", "{kind: TFJob, metadata: {name: j}}", "", "no pods yet"},
        WhyCase{"a suspended job says how to go on",
                "{kind: TFJob, metadata: {name: j}, status: {conditions: [{type: Suspended, "
                "status: 'True'}]}}",
                "", "set it to false"},
        WhyCase{
            "a healthy pod",
            "{kind: Pod, metadata: {name: p}, spec: {nodeName: node-1}, status: {phase: Running}}",
            "", "nothing stands in its way"}),
    [](const auto& info) { return "case_" + std::to_string(info.index); });

TEST(Describe, ShowsReplicasPodsAndEvents) {
  const std::string text = describe_text(
      doc("{apiVersion: kubeflow.org/v1, kind: TFJob, metadata: {name: j, namespace: d}, spec: {a: "
          "1}, status: "
          "{replicaStatuses: {Worker: {active: 2}}, conditions: [{type: Running, status: "
          "'True'}]}}"),
      {object(
          "{kind: Pod, metadata: {name: j-worker-0}, status: {phase: Running, podIP: 10.0.0.2}}")},
      {object("{reason: SuccessfulCreatePod, type: Normal, message: made, count: 3, "
              "involvedObject: {kind: TFJob, "
              "name: j}}")},
      Time{});
  for (const char* part :
       {"j-worker-0", "10.0.0.2", "ACTIVE", "SuccessfulCreatePod", "(x3)", "Running"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(Describe, ShowsWhateverAKindHas) {
  const std::string map = describe_text(
      doc("{kind: ConfigMap, apiVersion: v1, metadata: {name: m}, data: {key: value}}"), {}, {},
      Time());
  EXPECT_TRUE(map.contains("Data:\n  key: value\n")) << map;
  const std::string secret = describe_text(doc("{kind: Secret, apiVersion: v1, metadata: {name: "
                                               "s}, type: Opaque, data: {key: c2VjcmV0}}"),
                                           {}, {}, Time());
  EXPECT_TRUE(secret.contains("key: 6 bytes")) << secret;
  EXPECT_FALSE(secret.contains("c2VjcmV0")) << secret;
  EXPECT_TRUE(secret.contains("Type: Opaque")) << secret;
  const std::string node = describe_text(doc("{kind: Node, metadata: {name: n}, status: {capacity: "
                                             "{cpu: '2'}, conditions: [{type: Ready}]}}"),
                                         {}, {}, Time());
  EXPECT_TRUE(node.contains("Status:\n  capacity:\n")) << node;
  EXPECT_TRUE(node.contains("Conditions:\n")) << node;
}

}  // namespace
}  // namespace skiff::cli
