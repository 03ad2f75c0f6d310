#include "features/trainer/mpi.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "api/meta.h"
#include "features/trainer/builtin_runtimes.h"
#include "features/trainer/jobset_of.h"
#include "features/trainer/plan.h"
#include "features/trainer/testing/objects.h"
#include "features/trainer/trainjob.h"

namespace skiff::trainer {
namespace {

using testing::must_parse;
using testing::trainjob;

json::value deepspeed(bool launcher_is_node = true) {
  for (const client::Write& write : builtin_objects()) {
    if (json::get_string(write.body, {"metadata", "name"}) != "deepspeed-distributed") continue;
    json::value out = write.body;
    json::set(out, {"spec", "mlPolicy", "mpi", "runLauncherAsNode"}, launcher_is_node);
    return out;
  }
  return {};
}

json::value mpi_job(
    std::string_view trainer = R"({"numNodes": 3, "command": ["mpirun", "train"]})") {
  json::value out = trainjob();
  json::set(out, {"spec", "trainer"}, must_parse(trainer));
  json::set(out, {"metadata", "uid"}, "u1");
  return out;
}

const json::value& mpi_part(const json::value& jobset, std::string_view name) {
  static const json::value kNone;
  for (const json::value& found : json::get_array(jobset, {"spec", "replicatedJobs"})) {
    if (json::get_string(found, {"name"}) == name) return found;
  }
  return kNone;
}

const json::value& mpi_pod(const json::value& jobset, std::string_view name) {
  return *json::find(mpi_part(jobset, name), {"template", "spec", "template"});
}

const json::value& mpi_node(const json::value& jobset, std::string_view name) {
  return json::get_array(mpi_pod(jobset, name), {"spec", "containers"}).at(0);
}

std::string mpi_variable(const json::value& container, std::string_view name) {
  for (const json::value& entry : json::get_array(container, {"env"})) {
    if (json::get_string(entry, {"name"}) == name) {
      return std::string(json::get_string(entry, {"value"}));
    }
  }
  return "(absent)";
}

std::string text(const json::value& object, std::initializer_list<std::string_view> path) {
  return std::string(json::get_string(object, path));
}

json::value object_of(const std::vector<json::value>& objects, std::string_view kind) {
  for (const json::value& object : objects) {
    if (json::get_string(object, {"kind"}) == kind) return object;
  }
  return {};
}

Object running(std::string_view name, std::string_view host, std::string_view phase = "Running") {
  json::value out = must_parse(R"({"metadata": {"namespace": "team", "labels":
      {"jobset.sigs.k8s.io/jobset-name": "mnist", "jobset.sigs.k8s.io/jobset-uid": "s1"}}})");
  json::set(out, {"metadata", "name"}, json::string(name));
  json::set(out, {"metadata", "annotations", kHostAnnotation}, "node");
  json::set(out, {"spec", "hostname"}, json::string(host));
  json::set(out, {"status", "phase"}, json::string(phase));
  return std::make_shared<const json::value>(std::move(out));
}

TEST(MpiRuntime, CountsTheLauncherAmongTheNodesWhereItIsOne) {
  for (const auto& [asked, launcher_is_node, nodes] :
       {std::tuple(3, true, 2), {3, false, 3}, {1, true, 1}, {1, false, 1}}) {
    json::value wanted = mpi_job();
    json::set(wanted, {"spec", "trainer", "numNodes"}, asked);
    const json::value jobset = jobset_of(wanted, deepspeed(launcher_is_node));
    EXPECT_EQ(json::get_int(mpi_part(jobset, "node"), {"template", "spec", "parallelism"}), nodes);
    EXPECT_EQ(json::get_int(mpi_part(jobset, "node"), {"template", "spec", "completions"}), nodes);
    EXPECT_EQ(json::get_int(mpi_part(jobset, "launcher"), {"template", "spec", "parallelism"}), 1);
  }
}

TEST(MpiRuntime, RunsTheCommandInTheLauncherAndLetsNodesWait) {
  const json::value jobset =
      jobset_of(mpi_job(R"({"numNodes": 2, "command": ["mpirun", "train"], "image": "mine",
              "env": [{"name": "LR", "value": "1"}],
              "resourcesPerNode": {"limits": {"cpu": "2"}}})"),
                deepspeed());
  EXPECT_EQ(mpi_node(jobset, "launcher").at("command"),
            json::value(json::array{"mpirun", "train"}));
  EXPECT_EQ(mpi_node(jobset, "node").at("command").as_array().at(0), "/bin/sh");
  EXPECT_EQ(json::find(mpi_node(jobset, "node"), {"args"}), nullptr);
  for (const std::string_view name : {"launcher", "node"}) {
    EXPECT_EQ(text(mpi_node(jobset, name), {"image"}), "mine");
    EXPECT_EQ(mpi_variable(mpi_node(jobset, name), "LR"), "1");
    EXPECT_EQ(text(mpi_node(jobset, name), {"resources", "limits", "cpu"}), "2");
    EXPECT_EQ(json::find(mpi_node(jobset, name), {"ports"}), nullptr);
    EXPECT_EQ(mpi_node(jobset, name).at("volumeMounts"),
              must_parse(R"([{"name": "mpi-hostfile", "mountPath": "/etc/mpi"}])"));
    EXPECT_EQ(mpi_pod(jobset, name).at("spec").at("volumes"),
              must_parse(R"([{"name": "mpi-hostfile",
        "configMap": {"name": "mnist-mpi-hostfile", "items": [
          {"key": "hostfile", "path": "hostfile", "mode": 292},
          {"key": "kubexec.sh", "path": "kubexec.sh", "mode": 365}]}}])"));
    EXPECT_EQ(text(mpi_pod(jobset, name), {"metadata", "annotations", kHostAnnotation}), name);
  }
  EXPECT_EQ(
      text(mpi_pod(jobset, "launcher"), {"metadata", "annotations", "skiff.dev/remote-shell"}),
      "true");
  EXPECT_EQ(text(mpi_pod(jobset, "node"), {"metadata", "annotations", "skiff.dev/remote-shell"}),
            "");
}

TEST(MpiRuntime, TellsTheLauncherWhatOpenMpiReads) {
  const json::value jobset = jobset_of(mpi_job(), deepspeed());
  const json::value& launcher = mpi_node(jobset, "launcher");
  EXPECT_EQ(mpi_variable(launcher, "OMPI_MCA_orte_default_hostfile"), "/etc/mpi/hostfile");
  EXPECT_EQ(mpi_variable(launcher, "OMPI_MCA_orte_keep_fqdn_hostnames"), "true");
  EXPECT_EQ(mpi_variable(launcher, "OMPI_MCA_orte_set_default_slots"), "1");
  EXPECT_EQ(mpi_variable(launcher, "OMPI_MCA_plm_rsh_args"), "-o ConnectionAttempts=10");
  EXPECT_EQ(mpi_variable(launcher, "OMPI_MCA_plm_rsh_agent"), "/etc/mpi/kubexec.sh");
  EXPECT_EQ(mpi_variable(mpi_node(jobset, "node"), "OMPI_MCA_plm_rsh_agent"), "(absent)");
}

TEST(MpiRuntime, HasAProcessForEachGpuUnlessToldOtherwise) {
  struct Case {
    const char* trainer;
    int usual;
    std::int64_t slots;
  };
  for (const Case& each : {Case{R"({})", 1, 1},
                           {R"({})", 4, 4},
                           {R"({"numProcPerNode": 2})", 4, 2},
                           {R"({"numProcPerNode": "2"})", 4, 2},
                           {R"({"numProcPerNode": "auto"})", 4, 4},
                           {R"({"resourcesPerNode": {"limits": {"nvidia.com/gpu": 8}}})", 1, 8},
                           {R"({"resourcesPerNode": {"limits": {"nvidia.com/gpu": 8}}})", 4, 4}}) {
    json::value runtime = deepspeed();
    json::set(runtime, {"spec", "mlPolicy", "mpi", "numProcPerNode"}, each.usual);
    const json::value jobset = jobset_of(mpi_job(each.trainer), runtime);
    EXPECT_EQ(mpi_variable(mpi_node(jobset, "launcher"), "OMPI_MCA_orte_set_default_slots"),
              std::to_string(each.slots))
        << each.trainer;
    const json::value map = object_of(mpi_objects(mpi_job(), runtime, jobset, {}), "ConfigMap");
    EXPECT_NE(text(map, {"data", "hostfile"}).find("slots=" + std::to_string(each.slots) + "\n"),
              std::string::npos);
  }
}

TEST(MpiObjects, NameTheHostsInTheOrderOfTheRuntime) {
  const json::value runtime = deepspeed();
  const json::value map =
      object_of(mpi_objects(mpi_job(), runtime, jobset_of(mpi_job(), runtime), {}), "ConfigMap");
  EXPECT_EQ(api::name(map), "mnist-mpi-hostfile");
  EXPECT_EQ(text(map, {"data", "hostfile"}),
            "mnist-node-0-0.mnist slots=1\nmnist-node-0-1.mnist slots=1\n"
            "mnist-launcher-0-0.mnist slots=1\n");
  const json::value alone = deepspeed(false);
  EXPECT_EQ(
      text(object_of(mpi_objects(mpi_job(), alone, jobset_of(mpi_job(), alone), {}), "ConfigMap"),
           {"data", "hostfile"}),
      "mnist-node-0-0.mnist slots=1\nmnist-node-0-1.mnist slots=1\n"
      "mnist-node-0-2.mnist slots=1\n");
}

TEST(MpiObjects, NameNoMoreHostsThanThereMayBe) {
  const json::value runtime = deepspeed();
  const json::value jobset = jobset_of(mpi_job(R"({"numNodes": 2000000000})"), runtime);
  const json::value map = object_of(mpi_objects(mpi_job(), runtime, jobset, {}), "ConfigMap");
  EXPECT_EQ(std::ranges::count(text(map, {"data", "hostfile"}), '\n'), kMostHosts);
}

TEST(MpiObjects, LetTheLauncherStartProgramsInPodsThatRunAndNowhereElse) {
  const json::value runtime = deepspeed();
  const json::value jobset = jobset_of(mpi_job(), runtime);
  const json::value none = object_of(mpi_objects(mpi_job(), runtime, jobset, {}), "Role");
  EXPECT_EQ(json::get_array(none, {"rules"}).size(), 1u) << "no name would mean every pod";
  json::value other = *running("mnist-fetch-0-0-abc", "mnist-fetch-0-0");
  json::make_object(other, {"metadata"}).erase("annotations");
  const std::vector<Object> pods{std::make_shared<const json::value>(std::move(other)),
                                 running("mnist-node-0-0-abc", "mnist-node-0-0"),
                                 running("mnist-node-0-1-old", "mnist-node-0-1", "Failed"),
                                 running("mnist-node-0-1-new", "mnist-node-0-1")};
  const std::vector<json::value> objects = mpi_objects(mpi_job(), runtime, jobset, pods);
  EXPECT_EQ(text(object_of(objects, "ConfigMap"), {"data", "pods"}),
            "mnist-node-0-0=mnist-node-0-0-abc\nmnist-node-0-1=mnist-node-0-1-new\n");
  EXPECT_EQ(object_of(objects, "Role").at("rules").as_array().at(1), must_parse(R"({
      "apiGroups": [""], "resources": ["pods"], "verbs": ["get"],
      "resourceNames": ["mnist-node-0-0-abc", "mnist-node-0-1-new"]})"));
  EXPECT_EQ(object_of(objects, "Role").at("rules").as_array().at(2), must_parse(R"({
      "apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create", "get"],
      "resourceNames": ["mnist-node-0-0-abc", "mnist-node-0-1-new"]})"));
  EXPECT_EQ(object_of(objects, "RoleBinding").at("subjects"), must_parse(R"([
      {"kind": "ServiceAccount", "name": "mnist-launcher", "namespace": "team"}])"));
  EXPECT_EQ(text(mpi_pod(jobset, "launcher"), {"spec", "serviceAccountName"}), "mnist-launcher");
  for (const json::value& object : objects) {
    EXPECT_EQ(json::get_array(object, {"metadata", "ownerReferences"}).size(), 1u);
  }
}

TEST(MpiObjects, GiveTheRoleToTheAccountThatTheRuntimeNames) {
  json::value runtime = deepspeed();
  json::array& parts =
      json::make_object(runtime, {"spec", "template", "spec"})["replicatedJobs"].as_array();
  json::set(parts.at(1), {"template", "spec", "template", "spec", "serviceAccountName"}, "bot");
  const std::vector<json::value> objects =
      mpi_objects(mpi_job(), runtime, jobset_of(mpi_job(), runtime), {});
  EXPECT_EQ(object_of(objects, "ServiceAccount"), json::value());
  EXPECT_EQ(text(object_of(objects, "RoleBinding").at("subjects").as_array().at(0), {"name"}),
            "bot");
}

Object mpi_shared(json::value value) {
  return std::make_shared<const json::value>(std::move(value));
}

TEST(MpiPlan, MakesItsObjectsAndFollowsThePods) {
  control::Observed seen{.root = mpi_shared(mpi_job())};
  seen.owned.resize(5);
  seen.seen = {{mpi_shared(deepspeed())}, {}, {}};
  control::Plan first = plan_trainjob(seen, Time());
  std::vector<std::string> kinds;
  for (const client::Write& write : first.writes) {
    kinds.emplace_back(json::get_string(write.body, {"kind"}));
  }
  EXPECT_EQ(kinds, (std::vector<std::string>{"ConfigMap", "JobSet", "ServiceAccount", "Role",
                                             "RoleBinding", "ConfigMap"}));
  json::value jobset = first.writes[1].body;
  json::set(jobset, {"metadata", "uid"}, "s1");
  seen.owned = {{mpi_shared(jobset)},
                {mpi_shared(first.writes[5].body), mpi_shared(first.writes[0].body)},
                {mpi_shared(first.writes[2].body)},
                {mpi_shared(first.writes[3].body)},
                {mpi_shared(first.writes[4].body)}};
  EXPECT_TRUE(plan_trainjob(seen, Time()).writes.empty()) << "all is there";
  json::value map = first.writes[5].body;
  json::set(map, {"data", "note"}, "somebody's own");
  seen.owned[1][0] = mpi_shared(map);
  EXPECT_TRUE(plan_trainjob(seen, Time()).writes.empty()) << "what a patch would not remove";
  seen.seen[2] = {running("mnist-node-0-0-abc", "mnist-node-0-0")};
  const control::Plan second = plan_trainjob(seen, Time());
  ASSERT_EQ(second.writes.size(), 2u);
  EXPECT_EQ(second.writes[0].name, "mnist-launcher");
  EXPECT_EQ(second.writes[0].resource.kind, "Role");
  EXPECT_EQ(text(second.writes[1].body, {"data", "pods"}), "mnist-node-0-0=mnist-node-0-0-abc\n");
  // A pod of a set of that name which was there before.
  json::set(jobset, {"metadata", "uid"}, "s2");
  seen.owned[0] = {mpi_shared(jobset)};
  EXPECT_TRUE(plan_trainjob(seen, Time()).writes.empty());
}

TEST(MpiRules, BoundTheNumberOfNodes) {
  const auto said = [](std::string_view trainer, std::int64_t usual, bool launcher_is_node) {
    json::value runtime = deepspeed(launcher_is_node);
    json::set(runtime, {"spec", "mlPolicy", "numNodes"}, usual);
    const std::vector<Cause> causes = check_against(mpi_job(trainer), runtime);
    return causes.empty() ? std::string() : causes[0].field + ": " + causes[0].message;
  };
  for (const bool launcher_is_node : {true, false}) {
    EXPECT_EQ(said(R"({"numNodes": 10000})", 20000, launcher_is_node), "");
    EXPECT_EQ(said(R"({"numNodes": 10001})", 1, launcher_is_node),
              "spec.trainer.numNodes: Invalid value: 10001: must be no more than 10000 under an "
              "MPI runtime");
    EXPECT_EQ(said("{}", 10001, launcher_is_node),
              "spec.mlPolicy.numNodes: Invalid value: 10001: must be no more than 10000 under an "
              "MPI runtime");
  }
}

TEST(MpiRules, KeepReservedVariablesAndWantBothPartsForMoreNodes) {
  const auto said = [](const json::value& trainjob, const json::value& runtime) {
    const std::vector<Cause> causes = check_against(trainjob, runtime);
    return causes.empty() ? std::string() : causes[0].field + ": " + causes[0].message;
  };
  EXPECT_EQ(said(mpi_job(), deepspeed()), "");
  EXPECT_NE(
      said(mpi_job(R"({"env": [{"name": "OMPI_MCA_plm_rsh_args", "value": "-v"}]})"), deepspeed())
          .find("must not have reserved envs, invalid envs configured: "
                "[OMPI_MCA_plm_rsh_args]"),
      std::string::npos);
  json::value alone = deepspeed();
  json::array& parts =
      json::make_object(alone, {"spec", "template", "spec"})["replicatedJobs"].as_array();
  parts.erase(parts.begin());
  parts.at(0).as_object().erase("dependsOn");
  EXPECT_NE(said(mpi_job(), alone)
                .find("spec.trainer.numNodes: Invalid value: 3: must have 1 when MPI "
                      "trainingRuntime with enabled runLauncherAsNode"),
            std::string::npos)
      << said(mpi_job(), alone);
  EXPECT_EQ(said(mpi_job(R"({"numNodes": 1})"), alone), "");
}

}  // namespace
}  // namespace skiff::trainer
