#include "features/training/kinds/mpi/mpi_pod.h"

#include <gtest/gtest.h>

#include "features/training/engine/defaults.h"
#include "features/training/engine/pod_template.h"
#include "features/training/kinds/legacy/kept_fields.h"
#include "features/training/testing/builders.h"

namespace skiff::training {
namespace {

using testing::mpijob;
using testing::must_parse;

json::value mpi_pod_job() { return mpijob().role("Launcher", 1).role("Worker", 2).build(); }

json::value mpi_pod_render(const json::value& root, std::string_view role, std::int64_t index = 0) {
  const Job read = read_job(mpi(), root);
  return render_pod(pod_context(read, 0), *read.role(role), index, 0);
}

const json::value& mpi_pod_container(const json::value& pod, std::size_t i = 0) {
  return json::get_array(pod, {"spec", "containers"}).at(i);
}

json::value& first_container(json::value& root, const std::string& role) {
  return root.at_pointer("/spec/mpiReplicaSpecs/" + role + "/template/spec/containers/0");
}

TEST(MpiPod, IsFoundByItsOwnName) {
  const json::value worker = mpi_pod_render(mpi_pod_job(), "Worker", 1);
  EXPECT_EQ(json::get_string(worker, {"spec", "hostname"}), "mnist-worker-1");
  EXPECT_EQ(json::get_string(worker, {"spec", "subdomain"}), "mnist");
  EXPECT_EQ(worker.at("spec").at("dnsConfig"),
            must_parse(R"({"searches": ["mnist.team.svc.cluster.local"]})"));
  EXPECT_EQ(json::get_string(mpi_pod_render(mpi_pod_job(), "Launcher"), {"spec", "hostname"}),
            "mnist-launcher");
  EXPECT_EQ(json::find(worker, {"spec", "dnsPolicy"}), nullptr);
}

TEST(MpiPod, OnTheMachinesNetworkStillAsksTheCluster) {
  json::value root = mpi_pod_job();
  json::set(root, {"spec", "mpiReplicaSpecs", "Worker", "template", "spec", "hostNetwork"}, true);
  EXPECT_EQ(json::get_string(mpi_pod_render(root, "Worker"), {"spec", "dnsPolicy"}),
            "ClusterFirstWithHostNet");
}

TEST(MpiPod, HasTheLabelsOfItsVersion) {
  EXPECT_EQ(api::label(mpi_pod_render(mpi_pod_job(), "Launcher"), kJobRoleLabel), "launcher");
  EXPECT_EQ(api::label(mpi_pod_render(mpi_pod_job(), "Worker"), kJobRoleLabel), "worker");
  json::value first = mpi_pod_job();
  json::make_object(first, {"metadata", "annotations"})[kOlderFields] = R"({"writtenAs":"v1"})";
  EXPECT_EQ(api::label(mpi_pod_render(first, "Launcher"), kJobRoleLabel), "master");
  EXPECT_EQ(api::label(mpi_pod_render(first, "Worker"), kJobRoleLabel), "");
  EXPECT_EQ(api::label(mpi_pod_render(first, "Launcher"), kRoleLabel), "launcher");
  EXPECT_EQ(api::label(mpi_pod_render(first, "Launcher"), kJobLabel), "mnist");
  EXPECT_EQ(api::label(mpi_pod_render(first, "Launcher"), "mpi_job_name"), "");
  for (const char* version : {"v1alpha1", "v1alpha2"}) {
    json::value alpha = mpi_pod_job();
    json::make_object(alpha, {"metadata", "annotations"})[kOlderFields] =
        fmt::format(R"({{"writtenAs":"{}"}})", version);
    const json::value worker = mpi_pod_render(alpha, "Worker");
    EXPECT_EQ(api::label(worker, kJobRoleLabel), "worker") << version;
    EXPECT_EQ(api::label(worker, "group_name"), "kubeflow.org") << version;
    EXPECT_EQ(api::label(worker, "mpi_job_name"), "mnist") << version;
    EXPECT_EQ(api::label(worker, "mpi_role_type"), "worker") << version;
    EXPECT_EQ(api::label(mpi_pod_render(alpha, "Launcher"), "mpi_role_type"), "launcher")
        << version;
  }
}

TEST(MpiLauncher, GetsFilesAnAccountAndTheRemoteShell) {
  const json::value pod = mpi_pod_render(mpi_pod_job(), "Launcher");
  EXPECT_EQ(api::annotation(pod, "skiff.dev/remote-shell"), "true");
  EXPECT_EQ(json::get_string(pod, {"spec", "serviceAccountName"}), "mnist-launcher");
  EXPECT_EQ(pod.at("spec").at("volumes"), must_parse(R"([{"name": "mpi-job-config", "configMap": {
    "name": "mnist-config", "items": [
      {"key": "kubexec.sh", "path": "kubexec.sh", "mode": 365},
      {"key": "hostfile", "path": "hostfile", "mode": 292},
      {"key": "discover_hosts.sh", "path": "discover_hosts.sh", "mode": 365}]}}])"));
  EXPECT_EQ(mpi_pod_container(pod).at("volumeMounts"),
            must_parse(R"([{"name": "mpi-job-config", "mountPath": "/etc/mpi"}])"));
  EXPECT_EQ(json::find(mpi_pod_container(pod), {"command"}), nullptr)
      << "its command is the user's";
  EXPECT_EQ(json::find(mpi_pod_container(pod), {"ports"}), nullptr);
}

TEST(MpiLauncher, HasItsVariablesInTheFirstContainerWhereNoneIsCalledMpi) {
  json::value root = mpi_pod_job();
  first_container(root, "Launcher").at("name") = "tensorflow";
  root.at_pointer("/spec/mpiReplicaSpecs/Launcher/template/spec/containers")
      .as_array()
      .push_back({{"name", "sidecar"}, {"image", "s"}});
  const json::value pod = mpi_pod_render(root, "Launcher");
  EXPECT_FALSE(json::get_array(mpi_pod_container(pod, 0), {"env"}).empty());
  EXPECT_FALSE(json::get_array(mpi_pod_container(pod, 0), {"volumeMounts"}).empty());
  EXPECT_EQ(json::find(mpi_pod_container(pod, 1), {"env"}), nullptr);
  EXPECT_EQ(json::find(mpi_pod_container(pod, 1), {"volumeMounts"}), nullptr);
}

TEST(MpiLauncher, KeepsTheVolumesOfItsTemplate) {
  json::value root = mpi_pod_job();
  json::set(root, {"spec", "mpiReplicaSpecs", "Launcher", "template", "spec", "volumes"},
            must_parse(R"([{"name": "data", "emptyDir": {}}])"));
  json::set(first_container(root, "Launcher"), {"volumeMounts"},
            must_parse(R"([{"name": "data", "mountPath": "/data"}])"));
  const json::value pod = mpi_pod_render(root, "Launcher");
  EXPECT_EQ(json::get_array(pod, {"spec", "volumes"}).size(), 2u);
  EXPECT_EQ(json::get_array(mpi_pod_container(pod), {"volumeMounts"}).size(), 2u);
}

TEST(MpiWorker, WaitsWhereItHasNothingToDo) {
  const json::value pod = mpi_pod_render(mpi_pod_job(), "Worker");
  const json::array& command = json::get_array(mpi_pod_container(pod), {"command"});
  ASSERT_EQ(command.size(), 3u);
  EXPECT_EQ(command[0], "/bin/sh");
  EXPECT_NE(json::view(command[2].as_string()).find("TERM"), std::string_view::npos);
  EXPECT_EQ(api::annotation(pod, "skiff.dev/remote-shell"), "") << "it starts nothing elsewhere";
  EXPECT_EQ(json::find(pod, {"spec", "serviceAccountName"}), nullptr);
  EXPECT_EQ(mpi_pod_container(pod).at("volumeMounts"),
            must_parse(R"([{"name": "mpi-job-config", "mountPath": "/etc/mpi"}])"))
      << "Open MPI's daemons look whether the remote shell is there";
}

TEST(MpiWorker, RunsWhatItIsToldTo) {
  json::value root = mpi_pod_job();
  json::set(first_container(root, "Worker"), {"command"}, must_parse(R"(["run"])"));
  EXPECT_EQ(mpi_pod_container(mpi_pod_render(root, "Worker")).at("command"),
            must_parse(R"(["run"])"));
  json::value with_args = mpi_pod_job();
  json::set(first_container(with_args, "Worker"), {"args"}, must_parse(R"(["run"])"));
  EXPECT_EQ(json::find(mpi_pod_container(mpi_pod_render(with_args, "Worker")), {"command"}),
            nullptr)
      << "the image's own program with these arguments";
}

TEST(MpiWorker, WaitsInsteadOfServingSsh) {
  for (const char* program : {"/usr/sbin/sshd", "sshd"}) {
    json::value root = mpi_pod_job();
    json::set(first_container(root, "Worker"), {"command"}, json::array{program});
    json::set(first_container(root, "Worker"), {"args"}, json::array{"-De"});
    const json::value pod = mpi_pod_render(root, "Worker");
    EXPECT_EQ(json::get_array(mpi_pod_container(pod), {"command"}).at(0), "/bin/sh");
    EXPECT_EQ(json::find(mpi_pod_container(pod), {"args"}), nullptr);
  }
  json::value other = mpi_pod_job();
  json::set(first_container(other, "Worker"), {"command"}, json::array{"notsshd"});
  EXPECT_EQ(json::get_array(mpi_pod_container(mpi_pod_render(other, "Worker")), {"command"}).at(0),
            "notsshd");
}

TEST(MpiWorker, WhoseCommandIsNoneWaitsToo) {
  for (const char* command : {"[]", "null", "{}"}) {
    json::value root = mpi_pod_job();
    first_container(root, "Worker").as_object()["command"] = must_parse(command);
    first_container(root, "Worker").as_object()["args"] = must_parse(command);
    EXPECT_EQ(mpi_pod_container(mpi_pod_render(root, "Worker")).at("command").at(0),
              json::value("/bin/sh"))
        << command;
    EXPECT_EQ(json::find(mpi_pod_container(mpi_pod_render(root, "Worker")), {"args"}), nullptr)
        << command;
  }
  json::value root = mpi_pod_job();
  first_container(root, "Worker").as_object()["args"] = must_parse(R"(["serve"])");
  EXPECT_EQ(json::find(mpi_pod_container(mpi_pod_render(root, "Worker")), {"command"}), nullptr)
      << "arguments alone are for the image's own program";
}

TEST(MpiWorker, WaitsAlsoWhereTheServerIsGivenToTheEntrypointAndIsNotProbedForIt) {
  for (const bool sshd : {true, false}) {
    json::value root = mpi_pod_job();
    json::set(first_container(root, "Worker"), {"args"},
              json::array{sshd ? "/usr/sbin/sshd" : "serve", "-De"});
    for (const char* probe : {"readinessProbe", "livenessProbe", "startupProbe"}) {
      json::set(first_container(root, "Worker"), {probe, "tcpSocket", "port"}, 2222);
    }
    const json::value pod = mpi_pod_render(root, "Worker");
    EXPECT_EQ(json::find(mpi_pod_container(pod), {"args"}) == nullptr, sshd);
    EXPECT_EQ(json::get_array(mpi_pod_container(pod), {"command"}).size(), sshd ? 3u : 0u);
    for (const char* probe : {"readinessProbe", "livenessProbe", "startupProbe"}) {
      EXPECT_EQ(json::find(mpi_pod_container(pod), {probe}) == nullptr, sshd) << probe;
    }
  }
}

}  // namespace
}  // namespace skiff::training
