// Cases that only generated mutants (tools/mutants) asked for: what becomes of a runtime's parts,
// looked at closely.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "api/meta.h"
#include "features/trainer/builtin_runtimes.h"
#include "features/trainer/gang.h"
#include "features/trainer/jobset_of.h"
#include "features/trainer/merge.h"
#include "features/trainer/mpi.h"
#include "features/trainer/policies.h"
#include "features/trainer/testing/objects.h"
#include "features/trainer/trainjob.h"
#include "features/trainer/tune.h"

namespace skiff::trainer {
namespace {

using testing::must_parse;
using testing::runtime;
using testing::trainjob;
using Strings = std::vector<std::string>;

json::array& edge_parts_of(json::value& from) {
  return json::make_object(from, {"spec", "template", "spec"})["replicatedJobs"].as_array();
}

const json::value& edge_part(const json::value& jobset, std::string_view name) {
  static const json::value kNone;
  for (const json::value& each : json::get_array(jobset, {"spec", "replicatedJobs"})) {
    if (json::get_string(each, {"name"}) == name) return each;
  }
  return kNone;
}

const json::value& edge_pod(const json::value& jobset, std::string_view name) {
  return *json::find(edge_part(jobset, name), {"template", "spec", "template"});
}

json::value container(const json::value& jobset, std::string_view in, std::string_view name) {
  for (const json::value& each : json::get_array(edge_pod(jobset, in), {"spec", "containers"})) {
    if (json::get_string(each, {"name"}) == name) return each;
  }
  return {};
}

std::string edge_variable(const json::value& container, std::string_view name) {
  for (const json::value& entry : json::get_array(container, {"env"})) {
    if (json::get_string(entry, {"name"}) == name) {
      return std::string(json::get_string(entry, {"value"}));
    }
  }
  return "(absent)";
}

json::value edge_mpi() {
  for (const client::Write& write : builtin_objects()) {
    if (api::name(write.body) == "deepspeed-distributed") return write.body;
  }
  return {};
}

// A part that is no step, of two jobs of three pods.
json::value plain_part(std::string_view name) {
  json::value out = must_parse(R"({"replicas": 2, "template": {"spec": {"parallelism": 3,
      "template": {"spec": {"containers": [{"name": "side", "image": "x"}]}}}}})");
  json::set(out, {"name"}, json::string(name));
  return out;
}

std::int64_t pods_of(const json::value& jobset, std::string_view name) {
  const auto pods = json::get_int(edge_part(jobset, name), {"template", "spec", "parallelism"});
  EXPECT_EQ(pods, json::get_int(edge_part(jobset, name), {"template", "spec", "completions"}));
  return pods.value_or(-1);
}

TEST(PartsOfAJobSet, have_as_many_pods_as_the_job_the_policy_or_they_themselves_say) {
  struct Case {
    std::string_view job;
    std::string_view policy;  // none where empty
    std::int64_t own;
    std::int64_t pods;
  };
  for (const Case& each :
       {Case{R"({"trainer": {"numNodes": 4}})", R"({"numNodes": 3})", 2, 4},
        Case{"{}", R"({"numNodes": 3})", 2, 3}, Case{"{}", "{}", 2, 1}, Case{"{}", "", 2, 2},
        Case{R"({"trainer": {"numNodes": 0}})", "", 2, 1}}) {
    json::value from = runtime(each.policy.empty() ? "{}" : each.policy);
    if (each.policy.empty()) json::make_object(from, {"spec"}).erase("mlPolicy");
    json::set(edge_parts_of(from)[0], {"template", "spec", "parallelism"}, each.own);
    EXPECT_EQ(pods_of(jobset_of(trainjob(each.job), from), "node"), each.pods)
        << each.job << each.policy;
  }
}

TEST(PartsOfAJobSet, that_do_not_train_are_left_as_they_are) {
  for (json::value from : {runtime(), edge_mpi()}) {
    for (const std::string_view name : {"beside", "launcher"}) {
      if (name == "launcher" && runs_mpi(from)) continue;
      edge_parts_of(from).push_back(plain_part(name));
    }
    const json::value jobset = jobset_of(trainjob(R"({"trainer": {"numNodes": 2}})"), from);
    for (const std::string_view name : {"beside", "launcher"}) {
      if (name == "launcher" && runs_mpi(from)) continue;
      EXPECT_EQ(pods_of(jobset, name), 3) << name;
      EXPECT_EQ(json::get_int(edge_part(jobset, name), {"replicas"}), 2) << name;
      EXPECT_EQ(json::find(edge_pod(jobset, name), {"metadata"}), nullptr) << name;
    }
  }
  json::value none = runtime();
  edge_parts_of(none).push_back(plain_part("none"));
  json::set(edge_parts_of(none)[1], {"template", "spec", "parallelism"}, 0);
  EXPECT_EQ(pods_of(jobset_of(trainjob(), none), "none"), 1);
}

TEST(PartsOfAJobSet, that_are_steps_or_nodes_have_one_job_whatever_is_stored) {
  json::value from = testing::runtime_with_initializer();
  json::value model = edge_parts_of(from)[0];
  json::set(model, {"name"}, "model");
  json::set(model, {"template", "metadata", "labels", kStepLabel}, "model-initializer");
  edge_parts_of(from).push_back(std::move(model));
  json::value nodes = edge_mpi();
  for (json::value* each : {&from, &nodes}) {
    for (json::value& stored : edge_parts_of(*each)) json::set(stored, {"replicas"}, 3);
    const json::value jobset = jobset_of(trainjob(), *each);
    for (const json::value& made : json::get_array(jobset, {"spec", "replicatedJobs"})) {
      EXPECT_EQ(json::get_int(made, {"replicas"}), 1) << json::get_string(made, {"name"});
    }
  }
}

TEST(PartsOfAJobSet, called_node_are_no_nodes_of_an_mpi_where_there_is_none) {
  json::value from = runtime();
  json::make_object(edge_parts_of(from)[0], {"template"}).erase("metadata");
  const json::value jobset = jobset_of(trainjob(R"({"trainer": {"image": "mine"}})"), from);
  EXPECT_EQ(json::get_string(container(jobset, "node", "node"), {"image"}), "base");
}

TEST(PartsOfAJobSet, that_train_may_lack_the_container_that_does) {
  json::value from = runtime();
  json::set(edge_parts_of(from)[0], {"template", "spec", "template", "spec", "containers"},
            must_parse(R"([{"name": "other"}])"));
  EXPECT_EQ(*json::find(edge_pod(jobset_of(trainjob(), from), "node"), {"spec"}),
            must_parse(R"({"containers": [{"name": "other"}]})"));
}

TEST(PartsOfAJobSet, open_the_port_once) {
  for (const auto& [ports, open] :
       {std::pair(R"([{"containerPort": 29500}])", 1U), {R"([{"containerPort": 8080}])", 2U}}) {
    json::value from = runtime();
    json::make_object(edge_parts_of(from)[0],
                      {"template", "spec", "template", "spec"})["containers"]
        .as_array()[0]
        .as_object()["ports"] = must_parse(ports);
    const json::value node = container(jobset_of(trainjob(), from), "node", "node");
    EXPECT_EQ(json::get_array(node, {"ports"}).size(), open) << ports;
  }
}

TEST(PartsOfAJobSet, join_the_resources_of_runtime_and_job) {
  json::value from = runtime();
  json::make_object(edge_parts_of(from)[0], {"template", "spec", "template", "spec"})["containers"]
      .as_array()[0]
      .as_object()["resources"] = must_parse(R"({"limits": {"nvidia.com/gpu": 2}})");
  const auto resources = [&](std::string_view given) {
    json::value job = trainjob();
    json::set(job, {"spec", "trainer", "resourcesPerNode"}, must_parse(given));
    return *json::find(container(jobset_of(job, from), "node", "node"), {"resources"});
  };
  EXPECT_EQ(resources(R"({"requests": {"cpu": 1}})"),
            must_parse(R"({"limits": {"nvidia.com/gpu": 2}, "requests": {"cpu": 1}})"));
  EXPECT_EQ(resources("null"), must_parse(R"({"limits": {"nvidia.com/gpu": 2}})"));
  const json::value none =
      jobset_of(trainjob(R"({"trainer": {"resourcesPerNode": null}})"), runtime());
  EXPECT_EQ(json::find(container(none, "node", "node"), {"resources"}), nullptr);
}

TEST(PartsOfAJobSet, are_told_where_to_meet_only_where_the_runtime_says_so) {
  json::value from = runtime(R"({"numNodes": 2, "torch": {"envInjection": {"targets": [
      {"jobName": "node", "containerNames": ["side"]}]}}})");
  edge_parts_of(from).push_back(plain_part("beside"));
  const json::value jobset = jobset_of(trainjob(), from);
  EXPECT_EQ(edge_variable(container(jobset, "node", "side"), "PET_NNODES"), "2");
  EXPECT_EQ(edge_variable(container(jobset, "beside", "side"), "PET_NNODES"), "(absent)");
}

TEST(Initializers, of_the_model_are_told_what_to_fetch) {
  json::value from = testing::runtime_with_initializer();
  json::array& parts = edge_parts_of(from);
  json::set(parts[0], {"name"}, "model-initializer");
  json::set(parts[0], {"template", "metadata", "labels", kStepLabel}, "model-initializer");
  json::set(parts[0], {"template", "spec", "template", "spec", "containers"},
            must_parse(R"([{"name": "model-initializer"}])"));
  const json::value jobset =
      jobset_of(trainjob(R"({"initializer": {"model": {"storageUri": "hf://m"}}})"), from);
  EXPECT_EQ(container(jobset, "model-initializer", "model-initializer"),
            must_parse(R"({"name": "model-initializer",
                           "env": [{"name": "STORAGE_URI", "value": "hf://m"}]})"))
      << "and of no secret where there is none";
}

TEST(PatchesOfAJobSet, that_say_nothing_change_nothing) {
  const json::value plain = jobset_of(trainjob(), runtime());
  for (const std::string_view given :
       {R"({"manager": "m"})",
        R"({"trainingRuntimeSpec": {"template": {"metadata": {"labels": "x"}}}})",
        R"({"trainingRuntimeSpec": {"template": {"metadata": {"labels": {}}}}})"}) {
    json::value job = trainjob();
    json::set(job, {"spec", "runtimePatches"}, json::array{must_parse(given)});
    EXPECT_EQ(jobset_of(job, runtime()), plain) << given;
  }
}

TEST(PatchesOfAJobSet, of_older_versions_leave_no_trace_of_their_targets) {
  const json::value jobset =
      jobset_of(trainjob(R"({"podTemplateOverrides": [{"targetJobs": [{"name": "node"}],
          "metadata": {"labels": {"pod": "yes"}}}]})"),
                runtime());
  EXPECT_EQ(json::find(edge_pod(jobset, "node"), {"targetJobs"}), nullptr);
}

TEST(MergeEdges, replace_variables_as_wholes_and_add_new_ones) {
  json::value base = must_parse(R"({"env": [{"name": "A", "value": "1"}, {"name": "B"}],
      "containers": [{"name": "c", "image": "x"}]})");
  merge(base, must_parse(R"({"env": [{"name": "A", "valueFrom": {}}, {"name": "C"}],
      "containers": [{"name": "c", "tty": true}]})"));
  EXPECT_EQ(base, must_parse(R"({"env": [{"name": "A", "valueFrom": {}}, {"name": "B"},
                                         {"name": "C"}],
      "containers": [{"name": "c", "image": "x", "tty": true}]})"));
}

TEST(Processes, are_counted_by_the_first_amount_that_is_one) {
  const auto processes = [](std::string_view trainer) {
    const json::value jobset =
        jobset_of(trainjob(fmt::format(R"({{"trainer": {}}})", trainer)), runtime());
    return edge_variable(container(jobset, "node", "node"), "PET_NPROC_PER_NODE");
  };
  EXPECT_EQ(processes(R"({"resourcesPerNode": {"limits": {"nvidia.com/gpu": 1}}})"), "auto");
  EXPECT_EQ(processes(R"({"numProcPerNode": "gpu",
      "resourcesPerNode": {"limits": {"nvidia.com/gpu": 1}}})"),
            "1");
  EXPECT_EQ(processes(R"({"numProcPerNode": "gpu"})"), "1");
  EXPECT_EQ(processes(R"({"numProcPerNode": "gpu", "resourcesPerNode": {
      "requests": {"nvidia.com/gpu": 0}, "limits": {"nvidia.com/gpu": 4}}})"),
            "4");
}

TEST(Processes, are_whole_numbers_and_nothing_else) {
  EXPECT_EQ(whole_number("12"), 12);
  for (const std::string_view text : {"", "x", "1x", "99999999999999999999"}) {
    EXPECT_EQ(whole_number(text), std::nullopt) << text;
  }
}

TEST(XgboostWorkers, are_one_a_node_without_gpus_and_bounded) {
  const auto workers = [](std::string_view nodes) {
    const json::value jobset =
        jobset_of(trainjob(fmt::format(R"({{"trainer": {{"numNodes": {}}}}})", nodes)),
                  runtime(R"({"xgboost": {}})"));
    return edge_variable(container(jobset, "node", "node"), "DMLC_NUM_WORKER");
  };
  EXPECT_EQ(workers("3"), "3");
  EXPECT_EQ(workers("9000000000"), "2147483648");
}

json::value edge_tune_job(std::string_view name, std::string_view trainer) {
  json::value out = trainjob();
  json::set(out, {"spec", "runtimeRef", "name"}, json::string(name));
  json::set(out, {"spec", "trainer"}, must_parse(trainer));
  json::set(out, {"spec", "trainer", "command"}, json::array{"tune", "run"});
  return out;
}

Strings tune_complaints(const json::value& job, const json::value& from) {
  std::vector<Cause> causes;
  check_torchtune(job, from, causes);
  Strings out;
  for (const Cause& cause : causes) out.push_back(cause.field);
  return out;
}

TEST(TuneEdges, models_are_written_large_from_a_to_z) {
  std::vector<Cause> causes;
  check_torchtune(edge_tune_job("torchtune-x-1az", "{}"), runtime(), causes);
  ASSERT_EQ(causes.size(), 1U);
  EXPECT_TRUE(causes[0].message.ends_with("configured: x/1AZ")) << causes[0].message;
}

TEST(TuneEdges, quantized_models_run_on_one_device_where_they_are_small) {
  constexpr std::string_view kSeveral =
      R"({"numProcPerNode": 2, "args": ["model.quantize_base=True"]})";
  const Strings both{"spec.trainer.numProcPerNode", "spec.trainer.resourcesPerNode"};
  EXPECT_EQ(tune_complaints(edge_tune_job("torchtune-llama3.2-1b", kSeveral), runtime()), both);
  EXPECT_EQ(tune_complaints(edge_tune_job("torchtune-llama3.2-3b", kSeveral), runtime()), both);
  EXPECT_EQ(tune_complaints(edge_tune_job("torchtune-llama3.3-70b", kSeveral), runtime()),
            Strings{});
}

TEST(TuneEdges, resources_that_do_not_fit_are_shown) {
  std::vector<Cause> causes;
  check_torchtune(edge_tune_job("torchtune-llama3.2-1b", R"({"args": ["model.quantize_base=True"],
      "resourcesPerNode": {"limits": {"nvidia.com/gpu": 2}}})"),
                  runtime(), causes);
  ASSERT_EQ(causes.size(), 2U);
  EXPECT_TRUE(causes[1].message.starts_with(
      R"(Invalid value: {"limits":{"nvidia.com/gpu":2}}: must have gpu resource)"))
      << causes[1].message;
}

TEST(TuneEdges, devices_are_those_of_the_job_else_of_the_runtime) {
  json::value from = runtime(R"({"torch": {}})");
  json::make_object(edge_parts_of(from)[0], {"template", "spec", "template", "spec"})["containers"]
      .as_array()[0]
      .as_object()["resources"] = must_parse(R"({"limits": {"nvidia.com/gpu": 1}})");
  constexpr std::string_view kQuantized = R"({"args": ["model.quantize_base=True"]})";
  EXPECT_EQ(tune_complaints(edge_tune_job("torchtune-llama3.2-1b", kQuantized), from), Strings{});
  EXPECT_EQ(tune_complaints(edge_tune_job("torchtune-llama3.2-1b",
                                          R"({"args": ["model.quantize_base=True"],
                                         "resourcesPerNode": {"limits": {"nvidia.com/gpu": 2}}})"),
                            from)
                .size(),
            2U);
}

TEST(TuneEdges, nodes_meet_however_few_devices_they_have) {
  const json::value jobset = jobset_of(
      edge_tune_job("torchtune-llama3.3-70b",
                    R"({"numNodes": 2, "resourcesPerNode": {"limits": {"nvidia.com/gpu": 1}}})"),
      runtime());
  const json::value node = container(jobset, "node", "node");
  EXPECT_EQ(json::get_array(node, {"command"}).at(2), "--rdzv_endpoint=mnist-node-0-0.mnist:29500");
}

TEST(TuneEdges, places_are_those_of_the_part_that_trains) {
  json::value from = runtime(R"({"torch": {}})");
  json::value other = plain_part("other");
  json::set(other, {"template", "spec", "template", "spec", "containers"},
            must_parse(R"([{"name": "node", "command": ["output_dir=/elsewhere"]}])"));
  edge_parts_of(from).insert(edge_parts_of(from).begin(), std::move(other));
  json::make_object(edge_parts_of(from)[1], {"template", "spec", "template", "spec"})["containers"]
      .as_array()[0]
      .as_object()["command"] = json::array{"output_dir=/here", "seed=1"};
  const json::value node =
      container(jobset_of(edge_tune_job("torchtune-llama3.2-1b", "{}"), from), "node", "node");
  EXPECT_EQ(json::get_array(node, {"command"}).back(), "output_dir=/here");
}

json::value mpi_objects_of(const json::value& job, const json::value& from,
                           const json::value& jobset, std::string_view kind,
                           const std::vector<Object>& pods = {}) {
  for (const json::value& object : mpi_objects(job, from, jobset, pods)) {
    if (json::get_string(object, {"kind"}) == kind) return object;
  }
  return {};
}

TEST(MpiEdges, slots_are_asked_for_or_usual_or_gpus_and_one_at_least) {
  struct Case {
    std::string_view trainer;
    std::string_view policy;
    std::int64_t slots;
  };
  for (const Case& each : {Case{R"({"numProcPerNode": 1})", R"({"numProcPerNode": 4})", 1},
                           Case{R"({"numProcPerNode": 0})", R"({"numProcPerNode": 4})", 1},
                           Case{"{}", R"({"numProcPerNode": 2})", 2}, Case{"{}", "{}", 1}}) {
    const json::value job = trainjob(fmt::format(R"({{"trainer": {}}})", each.trainer));
    json::value from = edge_mpi();
    json::set(from, {"spec", "mlPolicy", "mpi"}, must_parse(each.policy));
    EXPECT_EQ(mpi_slots(from, job, {}), each.slots) << each.trainer << each.policy;
  }
}

TEST(MpiEdges, launchers_train_only_where_the_runtime_says_so) {
  EXPECT_FALSE(launcher_trains(runtime(R"({"mpi": {}})")));
  EXPECT_TRUE(launcher_trains(runtime(R"({"mpi": {"runLauncherAsNode": true}})")));
}

TEST(MpiEdges, launchers_have_an_account_of_their_own_where_none_is_named) {
  for (const auto& [given, account] : {std::pair(json::value(""), "mnist-launcher"),
                                       {json::value("bot"), "bot"},
                                       {json::value(5), "mnist-launcher"}}) {
    json::value from = edge_mpi();
    json::set(edge_parts_of(from)[1],
              {"template", "spec", "template", "spec", "serviceAccountName"}, given);
    const json::value jobset = jobset_of(trainjob(), from);
    EXPECT_EQ(json::get_string(edge_pod(jobset, "launcher"), {"spec", "serviceAccountName"}),
              account);
  }
}

TEST(MpiEdges, containers_beside_the_one_that_trains_are_left_alone) {
  json::value from = edge_mpi();
  for (json::value& each : edge_parts_of(from)) {
    json::make_object(each, {"template", "spec", "template", "spec"})["containers"]
        .as_array()
        .push_back(must_parse(R"({"name": "side"})"));
  }
  const json::value jobset = jobset_of(trainjob(), from);
  for (const std::string_view name : {"node", "launcher"}) {
    EXPECT_EQ(container(jobset, name, "side"), must_parse(R"({"name": "side"})")) << name;
  }
}

TEST(MpiEdges, hosts_are_the_nodes_of_the_jobset_as_it_is) {
  json::value from = edge_mpi();
  json::set(from, {"spec", "mlPolicy", "mpi", "runLauncherAsNode"}, false);
  json::value jobset = jobset_of(trainjob(), from);
  json::array& made = json::make_object(jobset, {"spec"})["replicatedJobs"].as_array();
  json::make_object(made[0], {"template", "spec"}).erase("parallelism");
  EXPECT_EQ(
      json::get_string(mpi_objects_of(trainjob(), from, jobset, "ConfigMap"), {"data", "hostfile"}),
      "mnist-node-0-0.mnist slots=1\n");
}

TEST(MpiEdges, pods_that_are_going_are_no_hosts) {
  const json::value jobset = jobset_of(trainjob(), edge_mpi());
  const auto known = [&](std::string_view more) {
    json::value pod = must_parse(R"({"metadata": {"name": "p"}, "spec": {"hostname": "h"},
        "status": {"phase": "Running"}})");
    json::set(pod, {"metadata", "annotations", kHostAnnotation}, "node");
    if (!more.empty()) json::set(pod, {"metadata", more}, "2026-11-15T12:00:00Z");
    return std::string(
        json::get_string(mpi_objects_of(trainjob(), edge_mpi(), jobset, "ConfigMap",
                                        {std::make_shared<const json::value>(std::move(pod))}),
                         {"data", "pods"}));
  };
  EXPECT_EQ(known(""), "h=p\n");
  EXPECT_EQ(known("deletionTimestamp"), "");
}

TEST(MpiEdges, bindings_name_the_role_of_the_job) {
  const json::value jobset = jobset_of(trainjob(), edge_mpi());
  EXPECT_EQ(mpi_objects_of(trainjob(), edge_mpi(), jobset, "RoleBinding").at("roleRef"),
            must_parse(R"({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role",
                           "name": "mnist-launcher"})"));
}

// Each part with the number that its pods are told, those in no gang without one; then what the
// launcher waits for.
std::string edge_gangs(const json::value& from, json::object spec) {
  json::value job = trainjob();
  json::set(job, {"metadata", "uid"}, "u-1");
  form_gang(job, from, spec);
  std::string out;
  for (const json::value& each : json::get_array(spec, {"replicatedJobs"})) {
    const std::string_view min =
        json::get_string(each, {"template", "spec", "template", "metadata", "annotations",
                                "scheduling.skiff.dev/gang-min"});
    out += fmt::format("{}{}{} ", json::get_string(each, {"name"}), min.empty() ? "" : "=", min);
    for (const json::value& wanted : json::get_array(each, {"dependsOn"})) {
      out += fmt::format("<{} ", json::get_string(wanted, {"name"}));
    }
  }
  return out;
}

json::object spec_of(std::string_view parts) { return {{"replicatedJobs", must_parse(parts)}}; }

constexpr std::string_view kTrains =
    R"("template": {"metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step":
       "trainer"}}})";

TEST(GangEdges, parts_that_say_nothing_have_one_pod) {
  EXPECT_EQ(edge_gangs(runtime(), spec_of(fmt::format(R"([{{"name": "a", {}}}])", kTrains))),
            "a=1 ");
}

TEST(GangEdges, nothing_that_trains_is_no_gang) {
  EXPECT_EQ(edge_gangs(runtime(), spec_of(R"([{"name": "a"}, {"name": "b"}])")), "a b ");
  EXPECT_EQ(edge_gangs(runtime(), {}), "");
  json::value grouped = runtime();
  json::set(grouped, {"spec", "podGroupPolicy"}, must_parse(R"({"coscheduling": {}})"));
  EXPECT_EQ(edge_gangs(grouped, spec_of(R"([{"name": "a"}, {"name": "b"}])")), "a b ");
}

TEST(GangEdges, all_parts_that_train_are_one_and_names_mean_nothing_without_an_mpi) {
  EXPECT_EQ(
      edge_gangs(runtime(), spec_of(fmt::format(R"([{{"name": "node"}}, {{"name": "launcher"}},
      {{"name": "a", {0}}}, {{"name": "b", {0}}}])",
                                                kTrains))),
      "node launcher a=2 b=2 ");
}

TEST(GangEdges, of_an_mpi_names_mean_what_they_say) {
  EXPECT_EQ(
      edge_gangs(edge_mpi(), spec_of(R"([{"name": "node"}, {"name": "launcher"}, {"name": "x"}])")),
      "node=2 launcher=2 x ");
  EXPECT_EQ(edge_gangs(edge_mpi(), spec_of(R"([{"name": "node"}, {"name": "x"}])")), "node=1 x ");
  EXPECT_EQ(
      edge_gangs(edge_mpi(), spec_of(fmt::format(R"([{{"name": "launcher", {}}}])", kTrains))),
      "launcher=1 ");
}

TEST(GangEdges, launchers_that_wait_for_nodes_wait_for_what_these_wait_for) {
  struct Case {
    std::string_view node;      // dependsOn
    std::string_view launcher;  // dependsOn
    std::string_view made;
  };
  for (const auto& [node, launcher, made] :
       {Case{"", R"({"name": "node", "status": "Ready"})", "node=2 launcher=2 "},
        Case{R"({"name": "f"})", "", "node=2 <f launcher=2 "},
        Case{"", R"({"name": "node", "status": "Ready"}, {"name": "f"})", "node=2 launcher=2 <f "},
        Case{R"({"name": "f"})", R"({"name": "node", "status": "Ready"}, {"name": "f"})",
             "node=2 <f launcher=2 <f "}}) {
    EXPECT_EQ(edge_gangs(edge_mpi(), spec_of(fmt::format(R"([{{"name": "f"}},
        {{"name": "node", "dependsOn": [{}]}}, {{"name": "launcher", "dependsOn": [{}]}}])",
                                                         node, launcher))),
              "f " + std::string(made))
        << node << launcher;
  }
}

TEST(GangEdges, launchers_wait_for_nodes_where_else_they_would_wait_for_more_than_five) {
  const auto launcher_waits = [](int others) {
    std::string parts;
    std::string wanted = R"({"name": "node", "status": "Ready"})";
    for (int i = 0; i < others; ++i) {
      parts += fmt::format(R"({{"name": "f{}"}},)", i);
      wanted += fmt::format(R"(, {{"name": "f{}", "status": "Ready"}})", i);
    }
    const std::string made = edge_gangs(
        edge_mpi(),
        spec_of(fmt::format(R"([{} {{"name": "node"}}, {{"name": "launcher", "dependsOn": [{}]}}])",
                            parts, wanted)));
    return made.substr(made.find("launcher"));
  };
  EXPECT_EQ(launcher_waits(5), "launcher=2 <f0 <f1 <f2 <f3 <f4 ");
  EXPECT_EQ(launcher_waits(6), "launcher <node <f0 <f1 <f2 <f3 <f4 <f5 ");
}

TEST(GangEdges, nodes_that_say_when_they_are_ready_are_waited_for) {
  for (const std::string_view pod :
       {R"("readinessGates": [{"conditionType": "x"}])",
        R"("containers": [{"name": "node", "startupProbe": {}}])",
        R"("initContainers": [{"name": "i", "readinessProbe": {}}])"}) {
    EXPECT_EQ(edge_gangs(edge_mpi(), spec_of(fmt::format(R"([{{"name": "node", "template": {{"spec":
        {{"template": {{"spec": {{{}}}}}}}}}}}, {{"name": "launcher", "dependsOn":
        [{{"name": "node", "status": "Ready"}}]}}])",
                                                         pod))),
              "node=1 launcher <node ")
        << pod;
  }
}

TEST(BuiltinRuntimes, are_one_node_where_the_job_does_not_say) {
  for (const client::Write& write : builtin_objects()) {
    if (write.resource != cluster_runtime_resource()) continue;
    EXPECT_EQ(json::get_int(write.body, {"spec", "mlPolicy", "numNodes"}), 1)
        << api::name(write.body);
  }
}

TEST(BuiltinRuntimes, of_an_mpi_are_as_upstream_has_them) {
  EXPECT_EQ(*json::find(edge_mpi(), {"spec"}), must_parse(R"({
    "mlPolicy": {"numNodes": 1, "mpi": {"numProcPerNode": 1, "mpiImplementation": "OpenMPI",
      "sshAuthMountPath": "/home/mpiuser/.ssh", "runLauncherAsNode": true}},
    "template": {"spec": {"network": {"publishNotReadyAddresses": true},
      "successPolicy": {"operator": "All", "targetReplicatedJobs": ["launcher"]},
      "replicatedJobs": [
        {"name": "node", "template": {"spec": {"template": {"spec": {
          "securityContext": {"fsGroup": 1000}, "containers": [{"name": "node",
            "image": "ghcr.io/kubeflow/trainer/deepspeed-runtime",
            "securityContext": {"runAsUser": 1000}, "command": ["/usr/sbin/sshd"],
            "args": ["-De", "-f", "/home/mpiuser/.sshd_config"]}]}}}}},
        {"name": "launcher", "dependsOn": [{"name": "node", "status": "Ready"}],
         "template": {"metadata": {"labels":
           {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
          "spec": {"template": {"spec": {"securityContext": {"fsGroup": 1000}, "containers": [
            {"name": "node", "image": "ghcr.io/kubeflow/trainer/deepspeed-runtime",
             "securityContext": {"runAsUser": 1000}}]}}}}}]}}})"));
}

}  // namespace
}  // namespace skiff::trainer
