#include "features/training/kinds/mpi/mpi_env.h"

#include <gtest/gtest.h>

#include "features/training/engine/pod_template.h"
#include "features/training/kinds/legacy/kept_fields.h"
#include "features/training/testing/builders.h"

namespace skiff::training {
namespace {

using testing::environment;
using testing::mpijob;

json::value mpi_env_job(std::string_view implementation = {}, bool works = false) {
  testing::JobBuilder builder = mpijob().role("Launcher", 1).role("Worker", 2);
  builder.spec("slotsPerWorker", 4);
  if (!implementation.empty()) builder.spec("mpiImplementation", json::string(implementation));
  if (works) builder.spec("runLauncherAsWorker", true);
  return builder.build();
}

const std::vector<std::string> kOpenMpi{"K_MPI_JOB_ROLE=launcher",
                                        "OMPI_MCA_plm_rsh_agent=/etc/mpi/kubexec.sh",
                                        "OMPI_MCA_plm_rsh_no_tree_spawn=true",
                                        "OMPI_MCA_orte_default_hostfile=/etc/mpi/hostfile",
                                        "OMPI_MCA_orte_keep_fqdn_hostnames=true",
                                        "PRTE_MCA_plm_ssh_agent=/etc/mpi/kubexec.sh",
                                        "PRTE_MCA_plm_ssh_no_tree_spawn=true",
                                        "PRTE_MCA_prte_default_hostfile=/etc/mpi/hostfile",
                                        "PRTE_MCA_prte_keep_fqdn_hostnames=true",
                                        "OMPI_ALLOW_RUN_AS_ROOT=1",
                                        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                                        "PRTE_ALLOW_RUN_AS_ROOT=1",
                                        "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1"};

std::vector<std::string> and_then(std::vector<std::string> list, std::vector<std::string> more) {
  list.insert(list.end(), more.begin(), more.end());
  return list;
}

const std::vector<std::string> kNoGpus{"NVIDIA_VISIBLE_DEVICES=", "NVIDIA_DRIVER_CAPABILITIES="};

TEST(MpiEnvironment, OfOpenMpi) {
  EXPECT_EQ(environment(mpi(), mpi_env_job(), "Launcher", 0),
            and_then(and_then(kOpenMpi, {"OMPI_MCA_orte_set_default_slots=4"}), kNoGpus));
}

TEST(MpiEnvironment, OfALauncherThatWorksLeavesItsAcceleratorsAlone) {
  EXPECT_EQ(environment(mpi(), mpi_env_job("OpenMPI", true), "Launcher", 0),
            and_then(kOpenMpi, {"OMPI_MCA_orte_set_default_slots=4"}));
}

TEST(MpiEnvironment, OfIntel) {
  EXPECT_EQ(environment(mpi(), mpi_env_job("Intel"), "Launcher", 0),
            and_then({"K_MPI_JOB_ROLE=launcher", "I_MPI_HYDRA_BOOTSTRAP=rsh",
                      "I_MPI_HYDRA_BOOTSTRAP_EXEC=/etc/mpi/kubexec.sh",
                      "I_MPI_HYDRA_HOST_FILE=/etc/mpi/hostfile", "I_MPI_PERHOST=4"},
                     kNoGpus));
}

TEST(MpiEnvironment, OfMpich) {
  EXPECT_EQ(environment(mpi(), mpi_env_job("MPICH"), "Launcher", 0),
            and_then({"K_MPI_JOB_ROLE=launcher", "HYDRA_HOST_FILE=/etc/mpi/hostfile",
                      "HYDRA_LAUNCHER=rsh", "HYDRA_LAUNCHER_EXEC=/etc/mpi/kubexec.sh"},
                     kNoGpus));
}

TEST(MpiEnvironment, OfAWorkerSaysWhatItIs) {
  EXPECT_EQ(environment(mpi(), mpi_env_job(), "Worker", 1),
            (std::vector<std::string>{"K_MPI_JOB_ROLE=worker"}));
}

TEST(MpiEnvironment, OfV1IsForBothImplementationsItKnew) {
  json::value root = mpi_env_job();
  json::make_object(root, {"metadata", "annotations"})[kOlderFields] = R"({"writtenAs":"v1"})";
  EXPECT_EQ(environment(mpi(), root, "Launcher", 0),
            and_then(and_then(kOpenMpi, {"I_MPI_HYDRA_BOOTSTRAP=rsh",
                                         "I_MPI_HYDRA_BOOTSTRAP_EXEC=/etc/mpi/kubexec.sh"}),
                     kNoGpus));
  json::set(root.at_pointer("/spec/mpiReplicaSpecs/Launcher/template/spec/containers/0"),
            {"resources", "limits", "nvidia.com/gpu"}, 1);
  EXPECT_EQ(environment(mpi(), root, "Launcher", 0).back(),
            "I_MPI_HYDRA_BOOTSTRAP_EXEC=/etc/mpi/kubexec.sh")
      << "a launcher with accelerators may use them";
}

// What the first container of the launcher gets for a name, in order.
std::vector<std::string> given(const json::value& root, std::string_view name) {
  const Job read = read_job(mpi(), root);
  const json::value pod = render_pod(pod_context(read, 0), *read.role("Launcher"), 0, 0);
  std::vector<std::string> out;
  for (const json::value& var : json::get_array(pod.at_pointer("/spec/containers/0"), {"env"})) {
    if (json::get_string(var, {"name"}) != name) continue;
    out.emplace_back(json::get_string(var, {"value"}));
  }
  return out;
}

TEST(MpiEnvironment, OfV1LeavesIntelsRemoteShellToWhoHasSetIt) {
  json::value root = mpi_env_job();
  json::set(root.at_pointer("/spec/mpiReplicaSpecs/Launcher/template/spec/containers/0"), {"env"},
            testing::must_parse(R"([{"name":"I_MPI_HYDRA_BOOTSTRAP","value":"ssh"},
                                    {"name":"OMPI_MCA_plm_rsh_agent","value":"mine"}])"));
  json::make_object(root, {"metadata", "annotations"})[kOlderFields] = R"({"writtenAs":"v1"})";
  using Values = std::vector<std::string>;
  EXPECT_EQ(given(root, "I_MPI_HYDRA_BOOTSTRAP"), Values{"ssh"});
  EXPECT_EQ(given(root, "I_MPI_HYDRA_BOOTSTRAP_EXEC"), Values{"/etc/mpi/kubexec.sh"});
  EXPECT_EQ(given(root, "OMPI_MCA_plm_rsh_agent"), (Values{"mine", "/etc/mpi/kubexec.sh"}))
      << "the later one holds";
  json::set(root, {"spec", "mpiImplementation"}, "Intel");
  root.at("metadata").as_object().erase("annotations");
  EXPECT_EQ(given(root, "I_MPI_HYDRA_BOOTSTRAP"), (Values{"ssh", "rsh"}))
      << "in v2beta1 there is no other way to a worker";
}

}  // namespace
}  // namespace skiff::training
