#include "features/training/kinds/jax/jax.h"

#include <fmt/format.h>

#include "features/training/engine/verdict.h"
#include "features/training/kinds/jax/jax_schema.h"

namespace skiff::training {
namespace {

// The arguments of jax.distributed.initialize().
Environment jax_environment(const Job& job) {
  const Role* workers = job.role("Worker");
  std::vector<EnvVar> shared{
      {"PYTHONUNBUFFERED", "1"},
      {"COORDINATOR_PORT", std::to_string(workers == nullptr ? job.kind->port : workers->port)},
      {"COORDINATOR_ADDRESS", fmt::format("{}-worker-0", job.name)},
      {"NUM_PROCESSES", std::to_string(job.replicas())}};
  return [shared = std::move(shared)](const Role&, std::int64_t index) {
    std::vector<EnvVar> env = shared;
    env.push_back({"PROCESS_ID", std::to_string(index)});
    return env;
  };
}

bool is_jax_master(const Job&, const Role&, std::int64_t index) { return index == 0; }

Verdict judge_jax(const Job& job, std::span<const RoleState> roles) {
  return judge_by(job.role("Worker"), roles);
}

}  // namespace

const JobKind& jax() {
  static const JobKind kKind{
      .resource = {.group = "kubeflow.org", .version = "v1", .plural = "jaxjobs", .kind = "JAXJob"},
      .singular = "jaxjob",
      .controller = "jaxjob-controller",
      .replicas_field = "jaxReplicaSpecs",
      .roles = {"Worker"},
      .container = "jax",
      .port_name = "jaxjob-port",
      .port = 6666,
      .restart = RestartPolicy::kNever,
      .env_in_every_container = true,
      .scales = true,
      .spec_schema = schema::build<JAXJobSpec>,
      .environment = jax_environment,
      .is_master = is_jax_master,
      .judge = judge_jax};
  return kKind;
}

}  // namespace skiff::training
