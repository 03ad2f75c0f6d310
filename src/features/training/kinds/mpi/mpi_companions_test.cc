#include "features/training/kinds/mpi/mpi_companions.h"

#include <gtest/gtest.h>

#include "features/training/engine/defaults.h"
#include "features/training/kinds/legacy/kept_fields.h"
#include "features/training/testing/builders.h"

namespace skiff::training {
namespace {

using testing::mpijob;
using testing::must_parse;
using testing::share;

json::value companions_mpijob(std::int64_t workers = 2) {
  return mpijob().role("Launcher", 1).role("Worker", workers).spec("slotsPerWorker", 4).build();
}

json::value companions_as_v1(json::value root, std::string_view main = {}) {
  json::object older{{"writtenAs", "v1"}};
  if (!main.empty()) older["mainContainer"] = json::string(main);
  json::make_object(root, {"metadata", "annotations"})[kOlderFields] = json::serialize(older);
  return root;
}

json::value companion(const json::value& root, std::string_view kind,
                      const std::vector<Object>& pods = {}) {
  const Job read = read_job(mpi(), root);
  const Replicas replicas = sort_replicas(read, pods, {});
  for (json::value& object : mpi_companions(read, replicas)) {
    if (api::kind(object) == kind) return object;
  }
  return {};
}

std::string file(const json::value& root, std::string_view name,
                 const std::vector<Object>& pods = {}) {
  return std::string(json::get_string(companion(root, "ConfigMap", pods), {"data", name}));
}

TEST(HostFile, ListsTheWorkersForEachImplementation) {
  EXPECT_EQ(file(companions_mpijob(), "hostfile"),
            "mnist-worker-0.mnist.team.svc slots=4\nmnist-worker-1.mnist.team.svc slots=4\n");
  for (const char* name : {"Intel", "MPICH"}) {
    json::value root = companions_mpijob();
    json::set(root, {"spec", "mpiImplementation"}, name);
    EXPECT_EQ(file(root, "hostfile"),
              "mnist-worker-0.mnist.team.svc:4\nmnist-worker-1.mnist.team.svc:4\n");
  }
  EXPECT_EQ(file(companions_as_v1(companions_mpijob()), "hostfile"),
            "mnist-worker-0 slots=4\nmnist-worker-1 slots=4\n");
}

TEST(HostFile, BeginsWithALauncherThatWorks) {
  json::value root = companions_mpijob(1);
  json::set(root, {"spec", "runLauncherAsWorker"}, true);
  EXPECT_EQ(file(root, "hostfile"),
            "mnist-launcher.mnist.team.svc slots=4\nmnist-worker-0.mnist.team.svc slots=4\n");
  json::value first = companions_as_v1(companions_mpijob(1));
  json::set(first.at_pointer("/spec/mpiReplicaSpecs/Launcher/template/spec/containers/0"),
            {"resources", "limits", "amd.com/gpu"}, 1);
  EXPECT_EQ(file(first, "hostfile"), "mnist-launcher slots=4\nmnist-worker-0 slots=4\n");
}

TEST(HostFile, HasOneSlotEachWhereNobodySays) {
  const json::value root = mpijob().role("Launcher", 1).role("Worker", 1).build();
  EXPECT_EQ(file(root, "hostfile"), "mnist-worker-0.mnist.team.svc slots=1\n");
}

TEST(DiscoverHosts, ListsTheWorkersThatRun) {
  json::value going = testing::replica_pod("worker", 0, "Running");
  json::set(going, {"metadata", "deletionTimestamp"}, "2026-11-15T12:00:00Z");
  const std::vector<Object> pods{share(going), share(testing::replica_pod("worker", 1, "Running")),
                                 share(testing::replica_pod("worker", 2, "Pending")),
                                 share(testing::replica_pod("worker", 3, "Failed")),
                                 share(testing::replica_pod("launcher", 0, "Running"))};
  EXPECT_EQ(file(companions_mpijob(4), "discover_hosts.sh"), "#!/bin/sh\n");
  EXPECT_EQ(file(companions_mpijob(4), "discover_hosts.sh", pods),
            "#!/bin/sh\necho mnist-worker-1.mnist.team.svc\n");
  EXPECT_EQ(file(companions_as_v1(companions_mpijob(4)), "discover_hosts.sh", pods),
            "#!/bin/sh\necho mnist-worker-1:4\n");
}

TEST(DiscoverHosts, BeginsWithALauncherThatWorks) {
  json::value root = companions_mpijob(1);
  json::set(root, {"spec", "runLauncherAsWorker"}, true);
  EXPECT_EQ(file(root, "discover_hosts.sh", {share(testing::replica_pod("worker", 0, "Running"))}),
            "#!/bin/sh\necho mnist-launcher.mnist.team.svc\necho mnist-worker-0.mnist.team.svc\n");
  EXPECT_EQ(file(root, "discover_hosts.sh"), "#!/bin/sh\necho mnist-launcher.mnist.team.svc\n")
      << "whoever reads the file is the launcher itself";
}

TEST(Kubexec, NamesTheMainContainerOfV1) {
  EXPECT_NE(file(companions_as_v1(companions_mpijob(), "trainer"), "kubexec.sh")
                .find("exec \"$pod\" -c trainer -- "),
            std::string::npos);
  EXPECT_NE(file(companions_mpijob(), "kubexec.sh").find("exec \"$pod\" -- /bin/sh -c \"$*\""),
            std::string::npos);
}

TEST(Kubexec, TakesNoNameThatIsMoreThanAName) {
  const std::string script =
      file(companions_as_v1(companions_mpijob(), "x; rm -rf /"), "kubexec.sh");
  EXPECT_EQ(script.find("rm -rf"), std::string::npos);
}

TEST(LauncherRole, AllowsProgramsInThisJobsWorkersOnly) {
  EXPECT_EQ(companion(companions_mpijob(), "Role").at("rules"), must_parse(R"([
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create", "get"],
     "resourceNames": ["mnist-worker-0", "mnist-worker-1"]}])"));
}

TEST(LauncherRole, WithoutWorkersAllowsNoPrograms) {
  const json::value root = mpijob().role("Launcher", 1).build();
  EXPECT_EQ(companion(root, "Role").at("rules").as_array().size(), 1u)
      << "a rule without names would mean every pod";
}

TEST(LauncherRole, NamesALauncherThatWorks) {
  json::value root = companions_mpijob(1);
  json::set(root, {"spec", "runLauncherAsWorker"}, true);
  EXPECT_EQ(companion(root, "Role").at_pointer("/rules/1/resourceNames"),
            must_parse(R"(["mnist-worker-0", "mnist-launcher"])"));
}

TEST(LauncherAccount, IsTheJobsOwn) {
  EXPECT_EQ(api::name(companion(companions_mpijob(), "ServiceAccount")), "mnist-launcher");
  const json::value binding = companion(companions_mpijob(), "RoleBinding");
  EXPECT_EQ(binding.at("roleRef"), must_parse(R"({"apiGroup": "rbac.authorization.k8s.io",
    "kind": "Role", "name": "mnist-launcher"})"));
  EXPECT_EQ(binding.at("subjects"), must_parse(R"([{"kind": "ServiceAccount",
    "name": "mnist-launcher", "namespace": "team"}])"));
}

TEST(LauncherAccount, IsTheOneThatTheTemplateNames) {
  json::value root = companions_mpijob();
  json::set(root, {"spec", "mpiReplicaSpecs", "Launcher", "template", "spec", "serviceAccountName"},
            "mine");
  EXPECT_TRUE(companion(root, "ServiceAccount").is_null()) << "it is somebody else's";
  EXPECT_EQ(companion(root, "RoleBinding").at_pointer("/subjects/0/name"), "mine");
}

TEST(JobService, GivesNamesBeforePodsAreReady) {
  const json::value service = companion(companions_mpijob(), "Service");
  EXPECT_EQ(api::name(service), "mnist");
  EXPECT_EQ(service.at("spec"), must_parse(R"({"clusterIP": "None",
    "publishNotReadyAddresses": true, "selector": {
      "training.kubeflow.org/job-name": "mnist",
      "training.kubeflow.org/operator-name": "mpijob-controller"}})"));
}

TEST(Companions, CarryTheLabelsThatPeopleSelectBy) {
  for (const char* kind : {"Service", "ConfigMap", "ServiceAccount", "Role", "RoleBinding"}) {
    const json::value object = companion(companions_mpijob(), kind);
    EXPECT_EQ(api::label(object, "app"), "mnist") << kind;
    EXPECT_EQ(api::ns(object), "team") << kind;
  }
}

}  // namespace
}  // namespace skiff::training
