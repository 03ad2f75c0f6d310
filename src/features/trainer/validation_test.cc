#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <span>

#include "api/builtin.h"
#include "api/meta.h"
#include "features/trainer/feature.h"
#include "features/trainer/testing/objects.h"
#include "features/trainer/trainjob.h"
#include "schema/check.h"
#include "schema/defaults.h"
#include "schema/registry.h"

namespace skiff::trainer {
namespace {

using testing::must_parse;
using testing::runtime;
using testing::trainjob;
using Strings = std::vector<std::string>;

struct Admitted {
  Feature feature = make();
  schema::Registry registry{api::builtin_definitions()};

  Admitted() {
    for (auto& [name, schema] : feature.schemas) registry.add(name, schema);
  }
  // As the server does it: schema, defaults, rules.
  Strings complaints(const json::value& given, const json::value* old = nullptr,
                     std::string_view subresource = {}) {
    json::value object = given;
    const auto kind = std::ranges::find_if(
        feature.kinds, [&](const api::Kind& k) { return k.resource.kind == api::kind(object); });
    const schema::SchemaPtr schema = registry.find(kind->schema);
    schema::apply_defaults(registry, *schema, object);
    Strings out;
    for (const Cause& cause : schema::check(registry, *schema, object)) {
      out.push_back(cause.field + ": " + cause.message);
    }
    const api::Admission context{.old = old, .subresource = subresource};
    for (const Cause& cause : kind->validate(object, context)) {
      out.push_back(cause.field + ": " + cause.message);
    }
    return out;
  }
};

struct BadCase {
  std::string_view name = {};
  std::vector<std::string> path = {};
  std::string_view value = {};
  std::string_view complaint = {};
};

std::ostream& operator<<(std::ostream& out, const BadCase& bad) { return out << bad.name; }

// Numbers are places in lists.
void put(json::value& at, std::span<const std::string> path, json::value leaf) {
  if (path.empty()) {
    at = std::move(leaf);
    return;
  }
  if (at.is_array()) {
    return put(at.as_array()[std::stoul(path[0])], path.subspan(1), std::move(leaf));
  }
  if (!at.is_object()) at.emplace_object();
  put(at.as_object()[path[0]], path.subspan(1), std::move(leaf));
}

void expect(const Strings& said, std::string_view complaint) {
  const auto is = [&](const std::string& text) { return text.starts_with(complaint); };
  EXPECT_TRUE(std::ranges::any_of(said, is)) << (said.empty() ? "nothing was said" : said[0]);
}

struct BadTrainJob : ::testing::TestWithParam<BadCase> {};

TEST_P(BadTrainJob, is_refused_with_the_field_and_a_sentence) {
  json::value object = trainjob();
  put(object, GetParam().path, must_parse(GetParam().value));
  expect(Admitted().complaints(object), GetParam().complaint);
}

INSTANTIATE_TEST_SUITE_P(
    All, BadTrainJob,
    ::testing::Values(
        BadCase{"name_with_a_digit_first",
                {"metadata", "name"},
                R"("3d")",
                "metadata.name: Invalid value: \"3d\": metadata.name must match RFC 1035 DNS label "
                "format"},
        BadCase{"long_name",
                {"metadata", "name"},
                R"("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")",
                "metadata.name: Invalid value: "
                "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\": "
                "metadata.name must be no more than 63 characters"},
        BadCase{"no_runtime", {"spec"}, "{}", "spec.runtimeRef: Required value"},
        BadCase{"runtime_without_name",
                {"spec", "runtimeRef"},
                "{}",
                "spec.runtimeRef.name: Required value"},
        BadCase{"kind_of_runtime",
                {"spec", "runtimeRef", "kind"},
                R"("Runtime")",
                "spec.runtimeRef: Invalid value: "
                "{\"name\":\"torch\",\"apiGroup\":\"trainer.kubeflow.org\",\"kind\":\"Runtime\"}: "
                "unsupported runtime: Runtime.trainer.kubeflow.org"},
        BadCase{"manager",
                {"spec", "managedBy"},
                R"("me")",
                "spec.managedBy: Invalid value: \"me\": ManagedBy must be "
                "trainer.kubeflow.org/trainjob-controller or kueue.x-k8s.io/multikueue if set"},
        BadCase{"deadline",
                {"spec", "activeDeadlineSeconds"},
                "0",
                "spec.activeDeadlineSeconds: Invalid value: 0"},
        BadCase{"uri",
                {"spec", "initializer", "model", "storageUri"},
                R"("a/b")",
                "spec.initializer.model.storageUri: Invalid value: \"a/b\": storageUri may be "
                "empty, or it must be a valid URI (scheme://...)"},
        BadCase{"env_without_name",
                {"spec", "trainer", "env"},
                R"([{"value": "1"}])",
                "spec.trainer.env[0].name: Required value"},
        BadCase{"fewer_nodes_than_none",
                {"spec", "trainer", "numNodes"},
                "-1",
                "spec.trainer.numNodes: Invalid value: -1: spec.trainer.numNodes in body should be "
                "greater than or equal to 0"},
        BadCase{"processes_as_a_word",
                {"spec", "trainer", "numProcPerNode"},
                R"("many")",
                "spec.trainer.numProcPerNode: Invalid value: \"many\": must have an int value or "
                "auto, cpu, gpu"},
        BadCase{"dataset_uri",
                {"spec", "initializer", "dataset", "storageUri"},
                R"("://x")",
                "spec.initializer.dataset.storageUri: Invalid value: \"://x\": storageUri may be "
                "empty, or it must be a valid URI (scheme://...)"},
        BadCase{"variable_twice",
                {"spec", "trainer", "env"},
                R"([{"name": "A"}, {"name": "A"}])",
                "spec.trainer.env[1]: Duplicate value: {\"name\":\"A\"}"},
        BadCase{"variable_of_an_initializer_twice",
                {"spec", "initializer", "model", "env"},
                R"([{"name": "A"}, {"name": "A"}])",
                "spec.initializer.model.env[1]: Duplicate value: {\"name\":\"A\"}"},
        BadCase{"patch_manager_twice",
                {"spec", "runtimePatches"},
                R"([{"manager": "a.b/c"}, {"manager": "a.b/c"}])",
                "spec.runtimePatches[1]: Duplicate value: {\"manager\":\"a.b/c\"}"},
        BadCase{"patch_without_manager",
                {"spec", "runtimePatches"},
                "[{}]",
                "spec.runtimePatches[0].manager: Required value"},
        BadCase{"suspend_as_text",
                {"spec", "suspend"},
                R"("yes")",
                "spec.suspend: Invalid value: \"string\""},
        BadCase{"group_of_runtime",
                {"spec", "runtimeRef", "apiGroup"},
                R"("kubeflow.org")",
                "spec.runtimeRef: Invalid value: "},
        BadCase{"nodes_as_text",
                {"spec", "trainer", "numNodes"},
                R"("two")",
                "spec.trainer.numNodes: Invalid value: \"string\""},
        BadCase{"patch_manager",
                {"spec", "runtimePatches"},
                R"([{"manager": "me"}])",
                "spec.runtimePatches[0].manager: Invalid value: \"me\": must be a domain-prefixed "
                "path"},
        BadCase{"patch_without_job",
                {"spec", "runtimePatches"},
                R"([{"manager": "a.b/c", "trainingRuntimeSpec": {"template": {"spec":
                    {"replicatedJobs": [{}]}}}}])",
                "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0].name: "
                "Required value"},
        BadCase{"patch_of_what_is_fixed",
                {"spec", "runtimePatches"},
                R"([{"manager": "a.b/c", "trainingRuntimeSpec": {"template": {"spec":
                    {"replicatedJobs": [{"name": "node", "template": {"spec": {"template":
                      {"spec": {"hostNetwork": true}}}}}]}}}}])",
                "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0]."
                "template.spec.template.spec.hostNetwork: Forbidden: a runtime patch may not set "
                "this field of a pod"},
        BadCase{"patch_of_an_image",
                {"spec", "runtimePatches"},
                R"([{"manager": "a.b/c", "trainingRuntimeSpec": {"template": {"spec":
                    {"replicatedJobs": [{"name": "node", "template": {"spec": {"template":
                      {"spec": {"containers": [{"name": "side", "image": "x"}]}}}}}]}}}}])",
                "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0]."
                "template.spec.template.spec.containers[0].image: Forbidden: a runtime patch may "
                "not set this field of a container"},
        BadCase{"patch_that_is_text",
                {"spec", "runtimePatches"},
                R"([{"manager": "a.b/c", "trainingRuntimeSpec": {"template": "x"}}])",
                "spec.runtimePatches[0].trainingRuntimeSpec.template: Invalid value: \"string\": "},
        BadCase{"patch_whose_spec_is_text",
                {"spec", "runtimePatches"},
                R"([{"manager": "a.b/c", "trainingRuntimeSpec": {"template": {"spec": "x"}}}])",
                "spec.runtimePatches[0].trainingRuntimeSpec.template.spec: Invalid value: "
                "\"string\": spec.runtimePatches[0].trainingRuntimeSpec.template.spec in body must "
                "be of type object: \"string\""},
        BadCase{
            "patch_whose_spec_is_null",
            {"spec", "runtimePatches"},
            R"([{"manager": "a.b/c", "trainingRuntimeSpec": {"template": {"spec": null}}}])",
            "spec.runtimePatches[0].trainingRuntimeSpec.template.spec: Invalid value: \"null\""},
        BadCase{"patch_whose_labels_are_text",
                {"spec", "runtimePatches"},
                R"([{"manager": "a.b/c", "trainingRuntimeSpec": {"template": {"metadata": 1}}}])",
                "spec.runtimePatches[0].trainingRuntimeSpec.template.metadata: Invalid value: "},
        BadCase{"patch_whose_jobs_are_no_list",
                {"spec", "runtimePatches"},
                R"([{"manager": "a.b/c", "trainingRuntimeSpec": {"template": {"spec":
                    {"replicatedJobs": "x"}}}}])",
                "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs: Invalid "
                "value: \"string\""},
        BadCase{"patch_whose_job_is_text",
                {"spec", "runtimePatches"},
                R"([{"manager": "a.b/c", "trainingRuntimeSpec": {"template": {"spec":
                    {"replicatedJobs": ["node"]}}}}])",
                "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0]: "
                "Invalid value: \"node\""},
        BadCase{"patch_whose_template_is_text",
                {"spec", "runtimePatches"},
                R"([{"manager": "a.b/c", "trainingRuntimeSpec": {"template": {"spec":
                    {"replicatedJobs": [{"name": "node", "template": "x"}]}}}}])",
                "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0]."
                "template: Invalid value: \"string\""},
        BadCase{"patch_whose_pod_is_text",
                {"spec", "runtimePatches"},
                R"([{"manager": "a.b/c", "trainingRuntimeSpec": {"template": {"spec":
                    {"replicatedJobs": [{"name": "node", "template": {"spec":
                      {"template": {"spec": []}}}}]}}}}])",
                "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0]."
                "template.spec.template.spec: Invalid value: \"array\""},
        BadCase{"patch_whose_containers_are_no_list",
                {"spec", "runtimePatches"},
                R"([{"manager": "a.b/c", "trainingRuntimeSpec": {"template": {"spec":
                    {"replicatedJobs": [{"name": "node", "template": {"spec":
                      {"template": {"spec": {"containers": {}}}}}}]}}}}])",
                "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0]."
                "template.spec.template.spec.containers: Invalid value: \"object\""},
        BadCase{"override_of_a_command",
                {"spec", "podSpecOverrides"},
                R"([{"targetJobs": [{"name": "node"}],
                     "containers": [{"name": "side", "command": ["x"]}]}])",
                "spec.podSpecOverrides[0].containers[0].command: Forbidden: an override may not "
                "set this field of a container"},
        BadCase{"override_of_restarts",
                {"spec", "podTemplateOverrides"},
                R"([{"targetJobs": [{"name": "node"}], "spec": {"restartPolicy": "Never"}}])",
                "spec.podTemplateOverrides[0].spec.restartPolicy: Forbidden: an override may not "
                "set this field of a pod"},
        BadCase{"override_outside_of_the_spec",
                {"spec", "podTemplateOverrides"},
                R"([{"targetJobs": [{"name": "node"}], "nodeSelector": {"a": "b"}}])",
                "spec.podTemplateOverrides[0].nodeSelector: Forbidden: an override may not set "
                "this field of a job"},
        BadCase{"override_of_a_container_without_name",
                {"spec", "podTemplateOverrides"},
                R"([{"targetJobs": [{"name": "node"}], "spec": {"initContainers": [{}]}}])",
                "spec.podTemplateOverrides[0].spec.initContainers[0].name: Required value"},
        BadCase{"override_of_nothing",
                {"spec", "podSpecOverrides"},
                R"([{"serviceAccountName": "x"}])",
                "spec.podSpecOverrides[0].targetJobs: Required value"}),
    [](const auto& info) { return std::string(info.param.name); });

// What may not be longer, or more, than so. At the bound it is good.
struct Bound {
  std::string_view name = {};
  std::vector<std::string> path = {};
  std::size_t most = 0;
  std::function<json::value(std::size_t)> of = {};  // of that length or number
  std::string_view complaint = {};
};

std::ostream& operator<<(std::ostream& out, const Bound& bound) { return out << bound.name; }

json::value text_of(std::size_t length) { return json::string(std::string(length, 'a')); }
json::value uri_of(std::size_t length) {
  return json::string("hf://" + std::string(length - 5, 'a'));
}
json::value words_of(std::size_t n) { return json::array(n, json::value("a")); }
json::value list_of(std::size_t n, std::string_view key, std::string_view before) {
  json::array out;
  for (std::size_t i = 0; i < n; ++i) {
    out.push_back(json::object{{key, json::string(std::string(before) + std::to_string(i))}});
  }
  return out;
}
json::value variables_of(std::size_t n) { return list_of(n, "name", "V"); }
json::value patches_of(std::size_t n) { return list_of(n, "manager", "a.b/c"); }

struct BoundOfTrainJob : ::testing::TestWithParam<Bound> {};

TEST_P(BoundOfTrainJob, is_kept) {
  const Bound& bound = GetParam();
  json::value object = trainjob();
  put(object, bound.path, bound.of(bound.most));
  EXPECT_EQ(Admitted().complaints(object), Strings{});
  put(object, bound.path, bound.of(bound.most + 1));
  expect(Admitted().complaints(object), bound.complaint);
}

INSTANTIATE_TEST_SUITE_P(
    All, BoundOfTrainJob,
    ::testing::Values(
        Bound{"name_of_runtime",
              {"spec", "runtimeRef", "name"},
              253,
              text_of,
              "spec.runtimeRef.name: Too long: may not be more than 253 bytes"},
        Bound{"image",
              {"spec", "trainer", "image"},
              500,
              text_of,
              "spec.trainer.image: Too long: may not be more than 500 bytes"},
        Bound{"command",
              {"spec", "trainer", "command"},
              128,
              words_of,
              "spec.trainer.command: Too many: 129: must have at most 128 items"},
        Bound{"args",
              {"spec", "trainer", "args"},
              128,
              words_of,
              "spec.trainer.args: Too many: 129: must have at most 128 items"},
        Bound{"env",
              {"spec", "trainer", "env"},
              128,
              variables_of,
              "spec.trainer.env: Too many: 129: must have at most 128 items"},
        Bound{"env_of_dataset",
              {"spec", "initializer", "dataset", "env"},
              128,
              variables_of,
              "spec.initializer.dataset.env: Too many: 129: must have at most 128 items"},
        Bound{"env_of_model",
              {"spec", "initializer", "model", "env"},
              128,
              variables_of,
              "spec.initializer.model.env: Too many: 129: must have at most 128 items"},
        Bound{"uri",
              {"spec", "initializer", "dataset", "storageUri"},
              2048,
              uri_of,
              "spec.initializer.dataset.storageUri: Too long: may not be more than 2048 bytes"},
        Bound{"patches",
              {"spec", "runtimePatches"},
              16,
              patches_of,
              "spec.runtimePatches: Too many: 17: must have at most 16 items"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(TrainerAdmission, knows_numbers_of_processes_in_every_form) {
  for (const char* good : {"4", R"("4")", R"("auto")", R"("cpu")", R"("gpu")"}) {
    json::value object = trainjob();
    put(object, std::vector<std::string>{"spec", "trainer", "numProcPerNode"}, must_parse(good));
    EXPECT_EQ(Admitted().complaints(object), Strings{}) << good;
  }
}

TEST(TrainerAdmission, leaves_a_word_alone_that_was_stored_before_it_was_judged) {
  const json::value before = trainjob(R"({"trainer": {"numProcPerNode": "many"},
      "managedBy": "trainer.kubeflow.org/trainjob-controller"})");
  json::value after = before;
  json::set(after, {"metadata", "labels"}, must_parse(R"({"a": "b"})"));
  EXPECT_EQ(Admitted().complaints(after, &before), Strings{});
}

TEST(TrainerAdmission, lets_an_empty_source_pass) {
  EXPECT_EQ(Admitted().complaints(trainjob(R"({"initializer": {"model": {"storageUri": ""},
      "dataset": {"storageUri": "s3://bucket/a"}}})")),
            Strings{});
}

struct BadRuntime : ::testing::TestWithParam<BadCase> {};

TEST_P(BadRuntime, is_refused_with_the_field_and_a_sentence) {
  json::value object = runtime();
  put(object, GetParam().path, must_parse(GetParam().value));
  expect(Admitted().complaints(object), GetParam().complaint);
}

const std::vector<std::string> kPart = {"spec", "template", "spec", "replicatedJobs", "0"};

std::vector<std::string> in_part(std::vector<std::string> more) {
  std::vector<std::string> out = kPart;
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

INSTANTIATE_TEST_SUITE_P(
    All, BadRuntime,
    ::testing::Values(
        BadCase{
            "two_frameworks",
            {"spec", "mlPolicy"},
            R"({"torch": {}, "jax": {}})",
            "spec.mlPolicy: Invalid value: {\"torch\":{},\"jax\":{}}: Only one of the policy can "
            "be configured"},
        BadCase{"flux",
                {"spec", "mlPolicy"},
                R"({"flux": {}})",
                "spec.mlPolicy.flux: Forbidden: Skiff does not run Flux"},
        BadCase{"mpi_of_another_make",
                {"spec", "mlPolicy"},
                R"({"mpi": {"mpiImplementation": "MPICH"}})",
                "spec.mlPolicy.mpi.mpiImplementation: Unsupported value: \"MPICH\""},
        BadCase{"fewer_nodes_than_none",
                {"spec", "mlPolicy"},
                R"({"numNodes": -1})",
                "spec.mlPolicy.numNodes: Invalid value: -1"},
        BadCase{"injection_into_no_job",
                {"spec", "mlPolicy", "torch", "envInjection"},
                R"({"targets": [{"containerNames": ["side"]}]})",
                "spec.mlPolicy.torch.envInjection.targets[0].jobName: Required value"},
        BadCase{"injection_into_a_job_twice",
                {"spec", "mlPolicy", "torch", "envInjection"},
                R"({"targets": [{"jobName": "node", "containerNames": ["side"]},
                                {"jobName": "node", "containerNames": ["side"]}]})",
                "spec.mlPolicy.torch.envInjection.targets[1]: Duplicate value"},
        BadCase{"injection_into_nine",
                {"spec", "mlPolicy", "torch", "envInjection"},
                R"({"targets": [{"jobName": "node",
                    "containerNames": ["a", "b", "c", "d", "e", "f", "g", "h", "i"]}]})",
                "spec.mlPolicy.torch.envInjection.targets[0].containerNames: Too many: 9: must "
                "have at most 8 items"},
        BadCase{"injection_into_node",
                {"spec", "mlPolicy", "torch", "envInjection"},
                R"({"targets": [{"jobName": "node", "containerNames": ["node"]}]})",
                "spec.mlPolicy.torch.envInjection.targets[0].containerNames: Invalid value: "
                "[\"node\"]: containerNames must not include the main node container"},
        BadCase{"injection_into_nothing",
                {"spec", "mlPolicy", "torch", "envInjection"},
                R"({"targets": [{"jobName": "node", "containerNames": []}]})",
                "spec.mlPolicy.torch.envInjection.targets[0].containerNames: Invalid value: 0"},
        BadCase{
            "replicas", in_part({"replicas"}), "2",
            "spec.template.spec.replicatedJobs[0].replicas: Invalid value: 2: always must be 1"},
        BadCase{"no_container",
                in_part({"template", "spec", "template", "spec", "containers", "0", "name"}),
                R"("main")",
                "spec.template.spec.replicatedJobs[0].template.spec.template.spec.containers: "
                "Invalid value: "}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(TrainerAdmission, takes_what_is_good) {
  Admitted admitted;
  EXPECT_EQ(admitted.complaints(runtime()), Strings{});
  EXPECT_EQ(admitted.complaints(testing::runtime_with_initializer()), Strings{});
  EXPECT_EQ(admitted.complaints(trainjob()), Strings{});
  EXPECT_EQ(admitted.complaints(trainjob(R"({"trainer": {"numNodes": 2, "numProcPerNode": "auto",
      "command": ["torchrun"], "env": [{"name": "A", "valueFrom": {"secretKeyRef":
      {"name": "s", "key": "k"}}}], "resourcesPerNode": {"limits": {"cpu": 2}}},
      "initializer": {"dataset": {"storageUri": "hf://a/b"}}, "activeDeadlineSeconds": 60,
      "labels": {"a": "b"}, "podTemplateOverrides": [{"targetJobs": [{"name": "node"}]}],
      "runtimePatches": [{"manager": "a.b/c", "trainingRuntimeSpec": {"template": {"spec":
        {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec":
          {"nodeSelector": {"a": "b"}, "containers": [{"name": "side", "env":
            [{"name": "X", "value": "1"}]}]}}}}}]}}}}]})")),
            Strings{});
}

TEST(TrainerAdmission, lets_nobody_change_what_the_job_is) {
  Admitted admitted;
  const json::value before = trainjob(R"({"trainer": {"numNodes": 2}, "activeDeadlineSeconds": 9,
      "managedBy": "trainer.kubeflow.org/trainjob-controller"})");
  const auto said = [&](std::initializer_list<std::string_view> path, std::string_view value) {
    json::value after = before;
    json::set(after, path, must_parse(value));
    const Strings all = admitted.complaints(after, &before);
    return all.size() == 1 ? all[0].substr(0, all[0].find(':')) : std::to_string(all.size());
  };
  EXPECT_EQ(said({"spec", "trainer", "numNodes"}, "3"), "spec.trainer");
  EXPECT_EQ(said({"spec", "runtimeRef", "name"}, R"("other")"), "spec.runtimeRef");
  EXPECT_EQ(said({"spec", "initializer"}, R"({"model": {}})"), "spec.initializer");
  EXPECT_EQ(said({"spec", "activeDeadlineSeconds"}, "10"), "spec.activeDeadlineSeconds");
  EXPECT_EQ(said({"spec", "managedBy"}, R"("kueue.x-k8s.io/multikueue")"), "spec.managedBy");
  EXPECT_EQ(said({"spec", "runtimePatches"}, R"([{"manager": "a.b/c"}])"), "spec.runtimePatches");
  EXPECT_EQ(said({"spec", "suspend"}, "true"), "0");
  EXPECT_EQ(said({"metadata", "labels"}, R"({"a": "b"})"), "0");
}

TEST(TrainerAdmission, judges_overrides_only_where_they_are_new_or_changed) {
  Admitted admitted;
  const json::value before = trainjob(R"({"suspend": true,
      "managedBy": "trainer.kubeflow.org/trainjob-controller",
      "podSpecOverrides": [{"serviceAccountName": "x"}],
      "podTemplateOverrides": [{"targetJobs": [{"name": "node"}], "spec": {"hostPID": true}}]})");
  json::value after = before;
  json::set(after, {"metadata", "labels"}, must_parse(R"({"a": "b"})"));
  EXPECT_EQ(admitted.complaints(after, &before), Strings{}) << "it is older than the rules";
  json::set(after, {"spec", "podSpecOverrides"}, must_parse(R"([{"serviceAccountName": "y"}])"));
  EXPECT_EQ(admitted.complaints(after, &before),
            Strings{"spec.podSpecOverrides[0].targetJobs: Required value"})
      << "of the form that has changed alone";
  EXPECT_EQ(admitted.complaints(before).size(), 2u);
}

constexpr std::string_view kPatched = R"({"suspend": true,
    "managedBy": "trainer.kubeflow.org/trainjob-controller", "runtimePatches": [{"manager": "a.b/c",
    "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [{"name": "node",
      "template": {"spec": {"template": {"spec": {"nodeSelector": {"zone": "a"},
        "serviceAccountName": "one"}}}}}]}}}}]})";

TEST(TrainerAdmission, lets_patches_change_while_suspended_but_for_what_is_fixed) {
  Admitted admitted;
  json::value before = trainjob(kPatched);
  const auto with = [&](std::string_view field, json::value value) {
    json::value after = before;
    put(after,
        std::vector<std::string>{"spec", "runtimePatches", "0", "trainingRuntimeSpec", "template",
                                 "spec", "replicatedJobs", "0", "template", "spec", "template",
                                 "spec", std::string(field)},
        std::move(value));
    return after;
  };
  const json::value moved = with("nodeSelector", {{"zone", "b"}});
  EXPECT_EQ(admitted.complaints(moved, &before), Strings{});
  const Strings said = admitted.complaints(with("serviceAccountName", "two"), &before);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0],
            "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0].template."
            "spec.template.spec.serviceAccountName: Invalid value: \"two\": field is immutable");
  json::set(before, {"status", "jobsStatus"},
            must_parse(R"([{"name": "node", "ready": 0, "succeeded": 0, "failed": 0, "active": 1,
                            "suspended": 0}])"));
  expect(admitted.complaints(moved, &before),
         "spec.runtimePatches: Forbidden: RuntimePatches cannot be modified when the JobSet's "
         "ReplicatedJob node is still active");
}

// The job of kPatched with the patches given instead.
json::value patched_with(std::string_view patches) {
  json::value out = trainjob(kPatched);
  json::set(out, {"spec", "runtimePatches"}, must_parse(patches));
  return out;
}

// A patch of the pods of `node`.
std::string pod_patch(std::string_view manager, std::string_view spec) {
  std::string out = R"({"manager": ")";
  out += manager;
  out += R"(", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [)";
  out += R"({"name": "node", "template": {"spec": {"template": {"spec": )";
  out += spec;
  return out + "}}}}]}}}}";
}

TEST(TrainerAdmission, lets_nothing_that_is_fixed_come_or_go_while_suspended) {
  Admitted admitted;
  json::value before = trainjob(kPatched);
  const std::string first =
      pod_patch("a.b/c", R"({"nodeSelector": {"zone": "a"}, "serviceAccountName": "one"})");
  const auto said = [&](const std::string& patches) {
    const Strings all = admitted.complaints(patched_with(patches), &before);
    return all.size() == 1 ? all[0] : std::to_string(all.size());
  };
  const std::string at =
      "trainingRuntimeSpec.template.spec.replicatedJobs[0].template.spec.template.spec.";
  EXPECT_EQ(said("[" + first + "]"), "0");
  EXPECT_EQ(said("[" + first + "," + pod_patch("d.e/f", R"({"volumes": [{"name": "v"}]})") + "]"),
            "spec.runtimePatches[1]." + at +
                "volumes: Invalid value: [{\"name\":\"v\"}]: field is immutable");
  EXPECT_EQ(
      said("[" + first + "," + pod_patch("d.e/f", R"({"affinity": {"nodeAffinity": {}}})") + "]"),
      "0");
  EXPECT_TRUE(said("[" + first + "," +
                   pod_patch("d.e/f", R"({"affinity": {"podAffinity": {"x": 1}}})") + "]")
                  .starts_with("spec.runtimePatches[1]." + at + "affinity.podAffinity: "));
  const std::string gone = "spec.runtimePatches[0]." + at +
                           "serviceAccountName: Invalid value: null: field is immutable";
  EXPECT_EQ(said("[" + pod_patch("a.b/c", "{}") + "]"), gone);
  EXPECT_EQ(said("[]"), gone);
  json::set(before, {"status", "conditions"},
            must_parse(R"([{"type": "Failed", "status": "True", "reason": "Invalid"}])"));
  EXPECT_EQ(said("[]"), "0") << "what does not fit the runtime can be put right";
}

TEST(TrainerAdmission, stamps_patches_that_are_new_or_have_changed) {
  const auto time = [](const json::value& job) {
    return json::get_string(json::get_array(job, {"spec", "runtimePatches"})[0], {"time"});
  };
  json::value first = trainjob(kPatched);
  stamp_patches(first, {.now = "2026-01-01T00:00:00Z"});
  EXPECT_EQ(time(first), "2026-01-01T00:00:00Z");
  json::value same = trainjob(kPatched);
  stamp_patches(same, {.old = &first, .now = "2026-02-02T00:00:00Z"});
  EXPECT_EQ(time(same), "2026-01-01T00:00:00Z");
  json::value other = same;
  put(other, std::vector<std::string>{"spec", "runtimePatches", "0", "trainingRuntimeSpec"},
      json::object{});
  stamp_patches(other, {.old = &first, .now = "2026-02-02T00:00:00Z"});
  EXPECT_EQ(time(other), "2026-02-02T00:00:00Z");
}

TEST(TrainerAdmission, leaves_the_status_to_the_controller) {
  Admitted admitted;
  const json::value before = trainjob();
  EXPECT_EQ(admitted.complaints(trainjob(R"({"trainer": {"numNodes": 3}})"), &before, "status"),
            Strings{});
}

struct ValidationMisfit {
  std::string_view name = {};
  std::string_view spec = {};
  std::string_view policy = {};
  std::string_view complaint = {};
};

std::ostream& operator<<(std::ostream& out, const ValidationMisfit& misfit) {
  return out << misfit.name;
}

struct MisfitJob : ::testing::TestWithParam<ValidationMisfit> {};

TEST_P(MisfitJob, is_told_what_does_not_fit_its_runtime) {
  const auto causes = check_against(trainjob(GetParam().spec), runtime(GetParam().policy));
  ASSERT_EQ(causes.size(), 1U);
  const std::string said = causes[0].field + ": " + causes[0].message;
  EXPECT_NE(said.find(GetParam().complaint), std::string::npos) << said;
}

constexpr std::string_view kTorch = R"({"torch": {}})";

INSTANTIATE_TEST_SUITE_P(
    All, MisfitJob,
    ::testing::Values(
        ValidationMisfit{"torch_variable", R"({"trainer": {"env": [{"name": "PET_NNODES"}]}})",
                         kTorch,
                         "must not have reserved envs, invalid envs configured: [PET_NNODES]"},
        ValidationMisfit{
            "xgboost_variable", R"({"trainer": {"env": [{"name": "A"}, {"name":
               "DMLC_TASK_ID"}]}})",
            R"({"xgboost": {}})",
            "spec.trainer.env[1]: Forbidden: DMLC_TASK_ID is reserved for the XGBoost runtime"},
        ValidationMisfit{"every_torch_variable",
                         R"({"trainer": {"env": [{"name": "PET_NPROC_PER_NODE"},
               {"name": "PET_MASTER_PORT"}, {"name": "PET_NODE_RANK"},
               {"name": "PET_MASTER_ADDR"}]}})",
                         kTorch,
                         "invalid envs configured: [PET_MASTER_ADDR PET_MASTER_PORT PET_NODE_RANK "
                         "PET_NPROC_PER_NODE]"},
        ValidationMisfit{
            "xgboost_tracker", R"({"trainer": {"env": [{"name": "DMLC_TRACKER_URI"}]}})",
            R"({"xgboost": {}})",
            "spec.trainer.env[0]: Forbidden: DMLC_TRACKER_URI is reserved for the XGBoost "
            "runtime"},
        ValidationMisfit{"no_model_initializer", R"({"initializer": {"model": {}}})", kTorch,
                         "must have model-initializer job when trainJob is configured with input "
                         "modelConfig"},
        ValidationMisfit{"patch_of_no_init_container", R"({"runtimePatches": [{"manager": "a.b/c",
               "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [{"name": "node",
               "template": {"spec": {"template": {"spec": {"initContainers": [
                 {"name": "ghost"}]}}}}}]}}}}]})",
                         kTorch,
                         "must not have initContainer that doesn't exist in the runtime job node"},
        ValidationMisfit{"no_initializer", R"({"initializer": {"dataset": {}}})", kTorch,
                         "must have dataset-initializer job when trainJob is configured with input "
                         "datasetConfig"},
        ValidationMisfit{
            "patch_of_no_job", R"({"runtimePatches": [{"manager": "a.b/c",
               "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [
                 {"name": "ghost"}]}}}}]})",
            kTorch, "must not have replicated job that doesn't exist in the runtime job template"},
        ValidationMisfit{"patch_of_no_container", R"({"runtimePatches": [{"manager": "a.b/c",
               "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [{"name": "node",
               "template": {"spec": {"template": {"spec": {"containers": [
                 {"name": "ghost"}]}}}}}]}}}}]})",
                         kTorch,
                         "must not have container that doesn't exist in the runtime job node"},
        ValidationMisfit{"patch_of_env", R"({"runtimePatches": [{"manager": "a.b/c",
               "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [{"name": "node",
               "template": {"spec": {"template": {"spec": {"containers": [{"name": "node",
                 "env": [{"name": "A"}]}]}}}}}]}}}}]})",
                         kTorch,
                         "must not have envs for the dataset-initializer, model-initializer, node "
                         "containers"},
        ValidationMisfit{
            "injection_into_no_container", "{}", R"({"torch": {"envInjection": {"targets": [
               {"jobName": "node", "containerNames": ["ghost"]}]}}})",
            "envInjection target podSet \"node\" container \"ghost\" not found in runtime "
            "template"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(FittingJob, may_use_variables_of_other_frameworks) {
  const json::value job = trainjob(R"({"trainer": {"env": [{"name": "PET_NNODES"},
      {"name": "DMLC_TASK_ID"}, {"name": "OMPI_MCA_orte_default_hostfile"}]}})");
  EXPECT_EQ(check_against(job, runtime(R"({"jax": {}})")), std::vector<Cause>{});
  EXPECT_EQ(check_against(job, runtime(R"({"numNodes": 1})")), std::vector<Cause>{}) << "PlainML";
}

TEST(FittingJob, may_patch_variables_of_a_side_container) {
  const json::value job = patched_with(
      "[" + pod_patch("a.b/c", R"({"containers": [{"name": "side", "env": [{"name": "A"}]}]})") +
      "]");
  EXPECT_EQ(check_against(job, runtime(kTorch)), std::vector<Cause>{});
}

TEST(RuntimeWithAnInitializer, has_one_replica_and_a_container_of_its_name) {
  const auto said = [](std::vector<std::string> more, std::string_view value) {
    json::value object = testing::runtime_with_initializer();
    put(object, in_part(std::move(more)), must_parse(value));
    const Strings all = Admitted().complaints(object);
    return all.size() == 1 ? all[0] : std::to_string(all.size());
  };
  EXPECT_EQ(said({"replicas"}, "3"),
            "spec.template.spec.replicatedJobs[0].replicas: Invalid value: 3: always must be 1");
  EXPECT_TRUE(
      said({"template", "spec", "template", "spec", "containers", "0", "name"}, R"("fetch")")
          .ends_with("must contain the required container for the ancestor: "
                     "dataset-initializer"));
  EXPECT_EQ(said({"template", "metadata", "labels"}, "{}"), "0") << "then it is no initializer";
}

TEST(MisfitInitializer, needs_a_container_with_the_volume) {
  json::value from = testing::runtime_with_initializer();
  const json::value job = trainjob(R"({"initializer": {"dataset": {}}})");
  EXPECT_EQ(check_against(job, from), std::vector<Cause>{});
  put(from,
      std::vector<std::string>{"spec", "template", "spec", "replicatedJobs", "0", "template",
                               "spec", "template", "spec", "containers", "0", "volumeMounts"},
      json::array{});
  const auto causes = check_against(job, from);
  ASSERT_EQ(causes.size(), 1U);
  EXPECT_TRUE(causes[0].message.ends_with(
      "must have volumeMount with name - initializer in container dataset-initializer of the "
      "dataset-initializer job"))
      << causes[0].message;
}

}  // namespace
}  // namespace skiff::trainer
