#include "features/trainer/jobset_of.h"

#include <gtest/gtest.h>

#include <map>

#include "api/meta.h"
#include "features/trainer/merge.h"
#include "features/trainer/testing/objects.h"

namespace skiff::trainer {
namespace {

using testing::must_parse;
using testing::runtime;
using testing::trainjob;
using Env = std::map<std::string, std::string>;

struct Made {
  json::value jobset = {};

  Made(const json::value& job, const json::value& from) : jobset(jobset_of(job, from)) {}

  const json::value& part(std::string_view name) const {
    for (const json::value& p : json::get_array(jobset, {"spec", "replicatedJobs"})) {
      if (json::get_string(p, {"name"}) == name) return p;
    }
    static const json::value kNone;
    return kNone;
  }
  const json::value& pod(std::string_view name = "node") const {
    return *json::find(part(name), {"template", "spec", "template"});
  }
  json::value container(std::string_view name = "node", std::string_view in = "node") const {
    for (const std::string_view list : {"containers", "initContainers"}) {
      for (const json::value& c : json::get_array(pod(in), {"spec", list})) {
        if (json::get_string(c, {"name"}) == name) return c;
      }
    }
    return {};
  }
  // Values; what comes from a field in brackets.
  Env env(std::string_view name = "node", std::string_view in = "node") const {
    Env out;
    const json::value found = container(name, in);
    for (const json::value& v : json::get_array(found, {"env"})) {
      const std::string_view field = json::get_string(v, {"valueFrom", "fieldRef", "fieldPath"});
      out[std::string(json::get_string(v, {"name"}))] =
          field.empty() ? std::string(json::get_string(v, {"value"}))
                        : "[" + std::string(field) + "]";
    }
    return out;
  }
};

constexpr std::string_view kIndex =
    "[metadata.annotations['batch.kubernetes.io/job-completion-index']]";

TEST(JobSetOf, a_torch_job_tells_each_node_where_the_first_is) {
  json::value job = trainjob(R"({"trainer": {"image": "mine", "command": ["torchrun", "t.py"],
      "args": ["--fast"], "numNodes": 3, "env": [{"name": "LR", "value": "0.1"}],
      "resourcesPerNode": {"requests": {"cpu": "2500m", "memory": "1Gi"}}}})");
  json::set(job, {"metadata", "uid"}, "u-1");
  const Made made(job, runtime());
  EXPECT_EQ(api::name(made.jobset), "mnist");
  EXPECT_TRUE(api::controlled_by(made.jobset, "u-1"));
  EXPECT_EQ(json::get_int(made.part("node"), {"replicas"}), 1);
  EXPECT_EQ(json::get_int(made.part("node"), {"template", "spec", "parallelism"}), 3);
  EXPECT_EQ(json::get_int(made.part("node"), {"template", "spec", "completions"}), 3);
  EXPECT_EQ(made.env(), (Env{{"LOG", "info"},
                             {"LR", "0.1"},
                             {"PET_NNODES", "3"},
                             {"PET_NPROC_PER_NODE", "3"},  // processors, rounded up
                             {"PET_NODE_RANK", std::string(kIndex)},
                             {"PET_MASTER_ADDR", "mnist-node-0-0.mnist"},
                             {"PET_MASTER_PORT", "29500"}}));
  const json::value node = made.container();
  EXPECT_EQ(json::get_string(node, {"image"}), "mine");
  EXPECT_EQ(json::get_array(node, {"command"}), (json::array{"torchrun", "t.py"}));
  EXPECT_EQ(json::get_array(node, {"args"}), json::array{"--fast"});
  EXPECT_EQ(json::get_string(node, {"resources", "requests", "memory"}), "1Gi");
  EXPECT_EQ(json::get_array(node, {"ports"}), (json::array{{{"containerPort", 29500}}}));
  EXPECT_EQ(made.env("side"), Env{}) << "others are left alone";
  EXPECT_EQ(json::find(made.pod(), {"spec", "initContainers"}), nullptr);
}

TEST(JobSetOf, pods_that_train_are_one_gang) {
  json::value job = trainjob();
  json::set(job, {"metadata", "uid"}, "u-1");
  const Made made(job, testing::runtime_with_initializer());
  const auto mark = [&](std::string_view part, std::string_view key) {
    return json::get_string(made.pod(part), {"metadata", "annotations", key});
  };
  EXPECT_EQ(mark("node", "scheduling.skiff.dev/gang"), "u-1");
  EXPECT_EQ(mark("node", "scheduling.skiff.dev/gang-min"), "2");
  EXPECT_EQ(mark("dataset-initializer", "scheduling.skiff.dev/gang"), "")
      << "it runs before them: waiting for both would be for ever";
}

TEST(JobSetOf, processes_are_counted_by_gpus_or_processors_or_given) {
  const auto processes = [](std::string_view trainer,
                            std::string_view policy = R"({"torch": {}})") {
    const Made made(trainjob(trainer), runtime(policy));
    return made.env().at("PET_NPROC_PER_NODE");
  };
  EXPECT_EQ(processes(R"({"trainer": {}})"), "1");
  EXPECT_EQ(processes(R"({"trainer": {"numProcPerNode": 4}})"), "4");
  EXPECT_EQ(processes(R"({"trainer": {"resourcesPerNode": {"limits": {"cpu": 6}}}})"), "6");
  EXPECT_EQ(processes(R"({"trainer": {"resourcesPerNode": {"limits": {"nvidia.com/gpu": 2}}}})"),
            "auto");
  EXPECT_EQ(processes(R"({"trainer": {"numProcPerNode": "gpu",
                          "resourcesPerNode": {"limits": {"nvidia.com/gpu": 2}}}})"),
            "2");
  EXPECT_EQ(processes("{}", R"({"torch": {"numProcPerNode": 8}})"), "8") << "as of 2.0";
}

TEST(JobSetOf, the_runtime_says_how_many_nodes_where_the_job_does_not) {
  const Made made(trainjob(), runtime(R"({"numNodes": 5, "torch": {}})"));
  EXPECT_EQ(json::get_int(made.part("node"), {"template", "spec", "parallelism"}), 5);
  EXPECT_EQ(made.env().at("PET_NNODES"), "5");
}

TEST(JobSetOf, jax_and_xgboost_have_their_own_variables_and_plain_has_none) {
  const json::value job = trainjob(R"({"trainer": {"numNodes": 3,
      "resourcesPerNode": {"limits": {"nvidia.com/gpu": 2}}}})");
  EXPECT_EQ(Made(job, runtime(R"({"jax": {}})")).env(),
            (Env{{"LOG", "info"},
                 {"JAX_NUM_PROCESSES", "3"},
                 {"JAX_PROCESS_ID", std::string(kIndex)},
                 {"JAX_COORDINATOR_ADDRESS", "mnist-node-0-0.mnist:29500"}}));
  EXPECT_EQ(Made(job, runtime(R"({"xgboost": {}})")).env(),
            (Env{{"LOG", "info"},
                 {"DMLC_TRACKER_URI", "mnist-node-0-0.mnist"},
                 {"DMLC_TRACKER_PORT", "29500"},
                 {"DMLC_TASK_ID", std::string(kIndex)},
                 {"DMLC_NUM_WORKER", "6"}}));
  const json::value huge = trainjob(R"({"trainer": {"numNodes": 3,
      "resourcesPerNode": {"limits": {"nvidia.com/gpu": "8E"}}}})");
  EXPECT_EQ(Made(huge, runtime(R"({"xgboost": {}})")).env().at("DMLC_NUM_WORKER"), "6442450944");
  const Made plain(job, runtime(R"({"numNodes": 1})"));
  EXPECT_EQ(plain.env(), (Env{{"LOG", "info"}}));
  EXPECT_EQ(json::find(plain.container(), {"ports"}), nullptr);
}

TEST(JobSetOf, a_variable_of_the_job_takes_the_place_of_the_runtimes) {
  const Made made(trainjob(R"({"trainer": {"env": [{"name": "LOG", "value": "debug"}]}})"),
                  runtime());
  EXPECT_EQ(made.env().at("LOG"), "debug");
}

TEST(JobSetOf, other_containers_get_torchs_variables_where_the_runtime_says_so) {
  const Made made(trainjob(), runtime(R"({"numNodes": 2, "torch": {"envInjection": {"targets": [
      {"jobName": "node", "containerNames": ["side"]}]}}})"));
  EXPECT_EQ(made.env("side").at("PET_NNODES"), "2");
  EXPECT_EQ(made.env("side").at("PET_MASTER_ADDR"), "mnist-node-0-0.mnist");
}

TEST(JobSetOf, an_initializer_is_told_what_to_fetch) {
  const Made made(trainjob(R"({"initializer": {"dataset": {"storageUri": "hf://a/b",
      "env": [{"name": "SPLIT", "value": "train"}], "secretRef": {"name": "token"}}}})"),
                  testing::runtime_with_initializer());
  EXPECT_EQ(made.env("dataset-initializer", "dataset-initializer"),
            (Env{{"STORAGE_URI", "hf://a/b"}, {"SPLIT", "train"}}));
  const json::value found = made.container("dataset-initializer", "dataset-initializer");
  EXPECT_EQ(json::get_array(found, {"envFrom"}),
            (json::array{{{"secretRef", {{"name", "token"}}}}}));
  EXPECT_EQ(json::get_int(made.part("dataset-initializer"), {"template", "spec", "completions"}),
            1);
  EXPECT_EQ(json::get_array(made.part("node"), {"dependsOn"}).size(), 1U);
}

TEST(JobSetOf, patches_are_merged_in_their_order) {
  const Made made(trainjob(R"({"runtimePatches": [
    {"manager": "a.b/one", "trainingRuntimeSpec": {"template": {
      "metadata": {"labels": {"queue": "q"}, "annotations": {"note": "x"}},
      "spec": {"replicatedJobs": [{"name": "node", "template": {
        "metadata": {"labels": {"job": "yes"}},
        "spec": {"template": {"metadata": {"labels": {"pod": "yes"}}, "spec": {
          "nodeSelector": {"zone": "a", "pool": "gpu"},
          "tolerations": [{"key": "one"}],
          "volumes": [{"name": "data", "emptyDir": {}}],
          "containers": [{"name": "node", "volumeMounts": [
            {"name": "data", "mountPath": "/data"}]}]}}}}}]}}}},
    {"manager": "a.b/two", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [
      {"name": "node", "template": {"spec": {"template": {"spec": {
        "nodeSelector": {"zone": "b"}, "tolerations": [{"key": "two"}],
        "volumes": [{"name": "data", "hostPath": {"path": "/d"}}]}}}}}]}}}}]})"),
                  runtime());
  EXPECT_EQ(api::label(made.jobset, "queue"), "q");
  EXPECT_EQ(api::annotation(made.jobset, "note"), "x");
  EXPECT_EQ(json::get_string(made.part("node"), {"template", "metadata", "labels", "job"}), "yes");
  const json::value& pod = made.pod();
  EXPECT_EQ(json::get_string(pod, {"metadata", "labels", "pod"}), "yes");
  EXPECT_EQ(json::get_object(pod, {"spec", "nodeSelector"}),
            (json::object{{"zone", "b"}, {"pool", "gpu"}}));
  EXPECT_EQ(json::get_array(pod, {"spec", "tolerations"}), (json::array{{{"key", "two"}}}));
  EXPECT_EQ(json::get_array(pod, {"spec", "volumes"}),
            (json::array{{{"name", "data"}, {"hostPath", {{"path", "/d"}}}}}))
      << "a volume has one source";
  EXPECT_EQ(json::get_array(made.container(), {"volumeMounts"}).size(), 1U);
  EXPECT_EQ(json::get_string(made.container(), {"image"}), "base");
  EXPECT_EQ(json::get_array(pod, {"spec", "containers"}).size(), 2U);
}

TEST(JobSetOf, the_overrides_of_older_versions_do_the_same) {
  const Made made(trainjob(R"({"labels": {"queue": "q"}, "annotations": {"note": "x"},
    "podSpecOverrides": [{"targetJobs": [{"name": "node"}], "serviceAccountName": "trains"}],
    "podTemplateOverrides": [{"targetJobs": [{"name": "node"}],
      "metadata": {"labels": {"pod": "yes"}}, "spec": {"nodeSelector": {"zone": "a"}}}]})"),
                  runtime());
  EXPECT_EQ(api::label(made.jobset, "queue"), "q");
  EXPECT_EQ(api::annotation(made.jobset, "note"), "x");
  EXPECT_EQ(json::get_string(made.pod(), {"spec", "serviceAccountName"}), "trains");
  EXPECT_EQ(json::get_string(made.pod(), {"spec", "nodeSelector", "zone"}), "a");
  EXPECT_EQ(json::get_string(made.pod(), {"metadata", "labels", "pod"}), "yes");
  EXPECT_EQ(json::find(made.pod(), {"spec", "targetJobs"}), nullptr);
}

TEST(JobSetOf, takes_suspension_and_what_else_the_template_says) {
  json::value from = runtime();
  json::set(from, {"spec", "template", "metadata"}, must_parse(R"({"labels": {"team": "ml"}})"));
  json::set(from, {"spec", "template", "spec", "failurePolicy"},
            must_parse(R"({"maxRestarts": 2})"));
  json::set(from, {"spec", "template", "spec", "network"}, must_parse(R"({"subdomain": "mesh"})"));
  const Made made(trainjob(R"({"suspend": true})"), from);
  EXPECT_EQ(json::get_bool(made.jobset, {"spec", "suspend"}), true);
  EXPECT_EQ(api::label(made.jobset, "team"), "ml");
  EXPECT_EQ(json::get_int(made.jobset, {"spec", "failurePolicy", "maxRestarts"}), 2);
  EXPECT_EQ(made.env().at("PET_MASTER_ADDR"), "mnist-node-0-0.mesh");
}

TEST(JobSetOf, a_patch_that_is_no_map_changes_nothing) {
  const json::value plain = Made(trainjob(), runtime()).jobset;
  for (const std::string_view bad :
       {R"("x")", "null", R"({"spec": "x"})", R"({"spec": null})", R"({"spec": []})",
        R"({"metadata": "x"})", R"({"spec": {"replicatedJobs": "x"}})",
        R"({"spec": {"replicatedJobs": null}})", R"({"spec": {"replicatedJobs": ["x", 1, null]}})",
        R"({"spec": {"replicatedJobs": [{"name": "node", "template": "x"}]}})",
        R"({"spec": {"replicatedJobs": [{"name": "node", "template": {"spec": null}}]}})",
        R"({"spec": {"replicatedJobs": [{"name": "node", "template": {"spec":
             {"template": {"spec": {"containers": "x"}}}}}]}})"}) {
    json::value job = trainjob(R"({"runtimePatches": [{"manager": "a.b/c"}]})");
    json::make_object(job, {"spec"})["runtimePatches"]
        .as_array()[0]
        .as_object()["trainingRuntimeSpec"] = json::object{{"template", must_parse(bad)}};
    EXPECT_EQ(Made(job, runtime()).jobset, plain) << bad;
  }
}

TEST(JobSetOf, overrides_that_are_no_maps_change_nothing) {
  const json::value job = trainjob(R"({"podSpecOverrides": ["x", null],
      "podTemplateOverrides": [1]})");
  EXPECT_EQ(Made(job, runtime()).jobset, Made(trainjob(), runtime()).jobset);
}

TEST(JobSetOf, is_made_of_a_runtime_that_says_nothing) {
  for (const std::string_view bad :
       {R"("x")", "null", R"({"spec": {"template": {"spec": "x"}}})",
        R"({"spec": {"template": {"spec": {"replicatedJobs": ["x"]}}}})"}) {
    const Made made(trainjob(), must_parse(bad));
    EXPECT_EQ(api::name(made.jobset), "mnist") << bad;
  }
}

TEST(JobSetOf, does_not_go_by_itself) {
  json::value from = runtime();
  json::set(from, {"spec", "template", "spec", "ttlSecondsAfterFinished"}, 5);
  const Made made(trainjob(), from);
  EXPECT_EQ(json::find(made.jobset, {"spec", "ttlSecondsAfterFinished"}), nullptr);
}

TEST(Merge, leaves_maps_and_lists_what_they_are) {
  json::value base = must_parse(R"({"a": {"b": 1}, "c": [1], "d": "x"})");
  merge(base, must_parse(R"({"a": "x", "c": {"e": 1}, "d": null, "f": 2})"));
  EXPECT_EQ(base, must_parse(R"({"a": {"b": 1}, "c": [1], "d": "x", "f": 2})"));
}

TEST(Merge, replaces_what_is_no_map_and_no_list_by_name) {
  json::value base = must_parse(R"({"a": {"b": 1, "c": [1, 2]}, "d": "x"})");
  merge(base, must_parse(R"({"a": {"c": [3], "e": true}, "d": {"f": 1}})"));
  EXPECT_EQ(base, must_parse(R"({"a": {"b": 1, "c": [3], "e": true}, "d": {"f": 1}})"));
}

}  // namespace
}  // namespace skiff::trainer
