#include "features/training/kinds/mpi/mpi.h"

#include <algorithm>

#include "features/training/engine/validation.h"
#include "features/training/engine/verdict.h"
#include "features/training/kinds/mpi/mpi_companions.h"
#include "features/training/kinds/mpi/mpi_env.h"
#include "features/training/kinds/mpi/mpi_pod.h"
#include "features/training/kinds/mpi/mpi_schema.h"
#include "features/training/kinds/mpi/mpi_settings.h"
#include "features/training/kinds/mpi/mpi_units.h"
#include "features/training/kinds/mpi/mpi_versions.h"
#include "schema/causes.h"

namespace skiff::training {
namespace {

using schema::invalid;
using schema::required;
using schema::unsupported;

// Upstream's number for the launcher, where the job does not say.
constexpr std::int64_t kBackoffLimit = 6;

RestartPolicy default_restart(const json::value& root, std::string_view role) {
  return role == kLauncher && !written_as_v1(root) ? RestartPolicy::kOnFailure
                                                   : RestartPolicy::kNever;
}

// v1's label for the pod whose log is the job's. Later ones call it by its role (mpi_pod.cc).
bool is_mpi_master(const Job& job, const Role& role, std::int64_t) {
  return role.name == kLauncher && written_as_v1(*job.root);
}

const RoleState* state_of(std::span<const RoleState> roles, std::string_view name) {
  const auto found =
      std::ranges::find_if(roles, [&](const RoleState& state) { return state.role->name == name; });
  return found == roles.end() ? nullptr : &*found;
}

// The launcher alone says how it goes; later versions say that a job runs when its workers do, too.
Verdict judge_mpi(const Job& job, std::span<const RoleState> roles) {
  Verdict verdict = judge_by(job.role(kLauncher), roles);
  const RoleState* workers = state_of(roles, kWorker);
  if (workers != nullptr && !written_as_v1(*job.root)) {
    verdict.running = verdict.running && workers->running + workers->succeeded + workers->failed >=
                                             workers->role->replicas;
  }
  return verdict;
}

// mpirun notices that a worker is gone, and a program that can do without one goes on. In v1 a
// worker's failure is the job's.
bool mpi_tolerates_failure(const Job& job, const Role& role) {
  return role.name == kWorker && !written_as_v1(*job.root);
}

// A worker that has ended already will not get ready: waiting for it would be for ever.
bool holds_back(const Job& job, const Role& role, std::span<const RoleState> roles) {
  if (role.name != kLauncher || !read_mpi_settings(job).waits_for_workers) return false;
  const RoleState* workers = state_of(roles, kWorker);
  return workers != nullptr &&
         workers->ready + workers->succeeded + workers->failed < workers->role->replicas;
}

void validate_role(const json::value& role, const std::string& path, std::vector<Cause>& causes) {
  const std::string_view restart = json::get_string(role, {"restartPolicy"});
  if (restart.empty() || restart == "Never" || restart == "OnFailure") return;
  causes.push_back(
      unsupported(path + ".restartPolicy", json::string(restart), {"Never", "OnFailure"}));
}

void validate_mpi(const json::value& object, std::vector<Cause>& causes) {
  const json::object& roles = json::get_object(object, {"spec", mpi().replicas_field});
  const std::string version = written_version(object);
  const bool as_v1 = version == "v1";
  if (version == kUnitsVersion) validate_units(object, causes);
  if (version == mpi().resource.version) {
    for (const auto& [key, role] : roles) validate_role(role, role_path(mpi(), key), causes);
  }
  const json::value* launcher = roles.if_contains(kLauncher);
  if (launcher == nullptr) {
    causes.push_back(required(role_path(mpi(), kLauncher), "must have Launcher replica spec"));
  } else if (const auto n = json::get_int(*launcher, {"replicas"}); n && *n != 1) {
    causes.push_back(invalid(role_path(mpi(), kLauncher) + ".replicas", *n, "must be 1"));
  }
  const json::value* worker = roles.if_contains(kWorker);
  if (worker == nullptr || as_v1) return;
  if (const auto n = json::get_int(*worker, {"replicas"}); n && *n < 1) {
    causes.push_back(
        invalid(role_path(mpi(), kWorker) + ".replicas", *n, "must be greater than or equal to 1"));
  }
}

}  // namespace

const JobKind& mpi() {
  static const JobKind kKind{.resource = {.group = "kubeflow.org",
                                          .version = "v2beta1",
                                          .plural = "mpijobs",
                                          .kind = "MPIJob"},
                             .singular = "mpijob",
                             .controller = "mpijob-controller",
                             .replicas_field = "mpiReplicaSpecs",
                             .roles = {kWorker, kLauncher},
                             .container = "mpi",
                             .port_name = "mpi-port",
                             // Sleeping workers would hold their places for ever.
                             .clean_pods = CleanPodPolicy::kRunning,
                             .backoff_limit = kBackoffLimit,
                             .manager = "kubeflow.org/mpi-operator",
                             .unnumbered_role = kLauncher,
                             .kept_role = kLauncher,
                             .evictable_role = kWorker,
                             .any_container = true,
                             .replica_services = false,
                             .old_versions = old_mpijob_versions(),
                             .companion_kinds = mpi_companion_kinds(),
                             .spec_schema = schema::build<MPIJobSpec>,
                             .environment = mpi_environment,
                             .is_master = is_mpi_master,
                             .judge = judge_mpi,
                             .tolerates_failure = mpi_tolerates_failure,
                             .default_restart = default_restart,
                             .companions = mpi_companions,
                             .finish_pod = finish_mpi_pod,
                             .holds_back = holds_back,
                             .validate = validate_mpi};
  return kKind;
}

}  // namespace skiff::training
