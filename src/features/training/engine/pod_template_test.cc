#include "features/training/engine/pod_template.h"

#include <gtest/gtest.h>

#include "features/training/engine/defaults.h"
#include "features/training/testing/builders.h"

namespace skiff::training {
namespace {

json::value pod_template_render(const JobKind& kind, const json::value& root, std::string_view role,
                                std::int64_t index, std::int64_t attempt = 0,
                                std::int64_t succeeded = 0) {
  const Job job = read_job(kind, root);
  return render_pod(pod_context(job, succeeded), *job.role(role), index, attempt);
}

const json::value& pod_template_container(const json::value& pod, std::size_t i) {
  return json::get_array(pod, {"spec", "containers"}).at(i);
}

TEST(Pod, IsNamedLabelledAndOwned) {
  const json::value root = testing::tfjob().role("Worker", 1).build();
  EXPECT_EQ(pod_template_render(tensorflow(), root, "Worker", 0), testing::must_parse(R"({
    "apiVersion": "v1", "kind": "Pod",
    "metadata": {
      "name": "mnist-worker-0", "namespace": "team",
      "labels": {"training.kubeflow.org/job-name": "mnist",
                 "training.kubeflow.org/operator-name": "tfjob-controller",
                 "training.kubeflow.org/replica-type": "worker",
                 "training.kubeflow.org/replica-index": "0",
                 "training.kubeflow.org/job-role": "master"},
      "annotations": {"scheduling.skiff.dev/gang": "uid-mnist",
                      "scheduling.skiff.dev/gang-min": "1"},
      "ownerReferences": [{"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "mnist",
        "uid": "uid-mnist", "controller": true, "blockOwnerDeletion": true}]},
    "spec": {
      "restartPolicy": "Never",
      "containers": [{"name": "tensorflow", "image": "train:1",
        "ports": [{"name": "tfjob-port", "containerPort": 2222, "protocol": "TCP"}]}]}})"));
}

TEST(Pod, KeepsWhatTheTemplateSays) {
  const json::value root = testing::tfjob()
                               .role("Worker", 1)
                               .role_field("Worker", "template", testing::must_parse(R"({
      "metadata": {"name": "mine", "generateName": "mine-", "finalizers": ["example.com/keep"],
        "labels": {"team": "a", "training.kubeflow.org/job-name": "other"},
        "annotations": {"sidecar.istio.io/inject": "false"}},
      "spec": {"restartPolicy": "Always", "nodeSelector": {"gpu": "yes"},
        "containers": [{"name": "tensorflow", "image": "i", "command": ["run"]}]}})"))
                               .build();
  const json::value pod = pod_template_render(tensorflow(), root, "Worker", 0);
  EXPECT_EQ(api::name(pod), "mnist-worker-0");
  EXPECT_EQ(json::find(pod, {"metadata", "generateName"}), nullptr);
  EXPECT_EQ(json::get_array(pod, {"metadata", "finalizers"}).size(), 1u);
  EXPECT_EQ(api::label(pod, "team"), "a");
  EXPECT_EQ(api::label(pod, kJobLabel), "mnist") << "our labels hold over the user's";
  EXPECT_EQ(api::annotation(pod, "sidecar.istio.io/inject"), "false");
  EXPECT_EQ(json::get_string(pod, {"spec", "nodeSelector", "gpu"}), "yes");
  EXPECT_EQ(json::get_string(pod, {"spec", "restartPolicy"}), "Never");
  EXPECT_EQ(pod_template_container(pod, 0).at("command").at(0), "run");
}

TEST(Pod, SaysWhichAttemptItIs) {
  const json::value root = testing::tfjob().role("Worker", 1).build();
  EXPECT_EQ(
      api::annotation(pod_template_render(tensorflow(), root, "Worker", 0), kAttemptAnnotation),
      "");
  EXPECT_EQ(
      api::annotation(pod_template_render(tensorflow(), root, "Worker", 0, 3), kAttemptAnnotation),
      "3");
}

TEST(Pod, EndsByItselfUnderExitCode) {
  const json::value root = testing::tfjob().role("Worker", 1, "ExitCode").build();
  EXPECT_EQ(json::get_string(pod_template_render(tensorflow(), root, "Worker", 0),
                             {"spec", "restartPolicy"}),
            "Never");
}

TEST(Pod, HasTheEnvironmentAfterTheUsers) {
  json::value root = testing::torchjob().role("Master", 1).role("Worker", 1).build();
  json::set(root.at("spec")
                .at("pytorchReplicaSpecs")
                .at("Worker")
                .at("template")
                .at("spec")
                .at("containers")
                .at(0),
            {"env"}, testing::must_parse(R"([{"name":"RANK","value":"mine"}])"));
  const json::value pod = pod_template_render(pytorch(), root, "Worker", 0);
  const json::array& env = json::get_array(pod_template_container(pod, 0), {"env"});
  EXPECT_EQ(json::get_string(env.at(0), {"value"}), "mine");
  std::string last;
  for (const json::value& var : env) {
    if (json::get_string(var, {"name"}) == "RANK") last = json::get_string(var, {"value"});
  }
  EXPECT_EQ(last, "1");
}

TEST(Pod, HasTheEnvironmentOnlyWhereItBelongs) {
  json::value tf = testing::tfjob().role("Worker", 2).build();
  json::value torch = testing::torchjob().role("Worker", 2).build();
  const auto add_sidecar = [](json::value& root, std::string_view field) {
    json::value* spec = &root.at("spec").at(field).at("Worker").at("template").at("spec");
    spec->at("containers").as_array().push_back({{"name", "sidecar"}, {"image", "s"}});
    json::set(*spec, {"initContainers"}, testing::must_parse(R"([{"name":"init"}])"));
  };
  add_sidecar(tf, "tfReplicaSpecs");
  add_sidecar(torch, "pytorchReplicaSpecs");
  const json::value tf_pod = pod_template_render(tensorflow(), tf, "Worker", 0);
  EXPECT_EQ(json::get_array(pod_template_container(tf_pod, 0), {"env"}).size(), 1u);
  EXPECT_EQ(json::find(pod_template_container(tf_pod, 1), {"env"}), nullptr);
  const json::value torch_pod = pod_template_render(pytorch(), torch, "Worker", 0);
  EXPECT_FALSE(json::get_array(pod_template_container(torch_pod, 0), {"env"}).empty());
  EXPECT_FALSE(json::get_array(pod_template_container(torch_pod, 1), {"env"}).empty());
  EXPECT_EQ(json::find(pod_template_container(torch_pod, 1), {"ports"}), nullptr);
  const json::array& init = json::get_array(torch_pod, {"spec", "initContainers"});
  ASSERT_EQ(init.size(), 1u) << "no container of ours is added";
  EXPECT_EQ(json::find(init[0], {"env"}), nullptr);
}

TEST(Pod, GetsItsPortOnTheFirstContainerWhereNoneIsNamed) {
  const json::value root =
      testing::tfjob()
          .role("Worker", 1)
          .role_field("Worker", "template",
                      testing::must_parse(R"({"spec":{"containers":[{"name":"a"},{"name":"b"}]}})"))
          .build();
  const json::value pod = pod_template_render(tensorflow(), root, "Worker", 0);
  EXPECT_EQ(json::get_array(pod_template_container(pod, 0), {"ports"}).size(), 1u);
  EXPECT_EQ(json::find(pod_template_container(pod, 1), {"ports"}), nullptr);
}

TEST(Pod, NamesTheQueueAndTheClassOfItsJob) {
  const json::value root =
      testing::tfjob()
          .role("Worker", 1)
          .run("schedulingPolicy", {{"queue", "research"}, {"priorityClass", "high"}})
          .build();
  const json::value pod = pod_template_render(tensorflow(), root, "Worker", 0);
  EXPECT_EQ(api::annotation(pod, "scheduling.volcano.sh/queue-name"), "research");
  EXPECT_EQ(json::get_string(pod, {"spec", "priorityClassName"}), "high");
  const json::value plain =
      pod_template_render(tensorflow(), testing::tfjob().role("Worker", 1).build(), "Worker", 0);
  EXPECT_EQ(json::find(plain, {"metadata", "annotations", kQueueAnnotation}), nullptr);
  EXPECT_EQ(json::find(plain, {"spec", "priorityClassName"}), nullptr);
}

TEST(Pod, KeepsTheClassOfItsTemplate) {
  json::value root = testing::tfjob()
                         .role("Worker", 1)
                         .run("schedulingPolicy", json::object{{"priorityClass", "high"}})
                         .build();
  json::set(root, {"spec", "tfReplicaSpecs", "Worker", "template", "spec", "priorityClassName"},
            "low");
  EXPECT_EQ(json::get_string(pod_template_render(tensorflow(), root, "Worker", 0),
                             {"spec", "priorityClassName"}),
            "low");
}

}  // namespace
}  // namespace skiff::training
