#include "features/training/kinds/tensorflow/tensorflow.h"

#include <algorithm>

#include "features/training/engine/defaults.h"
#include "features/training/kinds/tensorflow/tf_config.h"
#include "features/training/kinds/tensorflow/tf_schema.h"
#include "features/training/kinds/tensorflow/tf_versions.h"
#include "schema/causes.h"

namespace skiff::training {
namespace {

const Role* chief_of(const Job& job) {
  const Role* chief = job.role("Chief");
  return chief == nullptr ? job.role("Master") : chief;
}

bool is_tensorflow_master(const Job& job, const Role& role, std::int64_t index) {
  const Role* chief = chief_of(job);
  if (chief != nullptr) return role.name == chief->name;
  return role.name == "Worker" && index == 0;
}

bool all_succeeded(const RoleState& state) {
  return state.role->replicas > 0 && state.succeeded >= state.role->replicas;
}

// Without a chief and without workers there is nobody to ask: the job is done when all are.
Verdict judge_rest(std::span<const RoleState> roles) {
  return {.succeeded = !roles.empty() && std::ranges::all_of(roles, all_succeeded),
          .running =
              std::ranges::any_of(roles, [](const RoleState& state) { return state.running > 0; })};
}

Verdict judge_tensorflow(const Job& job, std::span<const RoleState> roles) {
  const Role* chief = chief_of(job);
  const Role* decisive = chief == nullptr ? job.role("Worker") : chief;
  if (decisive == nullptr) return judge_rest(roles);
  const RoleState& state = *std::ranges::find(roles, decisive, &RoleState::role);
  const bool everyone = json::get_string(job.spec(), {"successPolicy"}) == "AllWorkers";
  const bool first_suffices = chief == nullptr && !everyone;
  return {.succeeded = all_succeeded(state) || (first_suffices && state.first_succeeded),
          .running = state.running > 0};
}

bool tensorflow_tolerates_failure(const Job& job, const Role& role) {
  return role.name == "Worker" &&
         json::get_bool(job.spec(), {"enableDynamicWorker"}).value_or(false);
}

void validate_tensorflow(const json::value& object, std::vector<Cause>& causes) {
  const json::object& roles = json::get_object(object, {"spec", "tfReplicaSpecs"});
  const auto is_chief = [](const auto& entry) {
    const std::string_view role = canonical_role(tensorflow(), entry.key());
    return role == "Chief" || role == "Master";
  };
  if (std::ranges::count_if(roles, is_chief) < 2) return;
  causes.push_back(
      schema::forbidden("spec.tfReplicaSpecs", "a job may have a Chief or a Master, not both"));
}

}  // namespace

const JobKind& tensorflow() {
  static const JobKind kKind{
      .resource = {.group = "kubeflow.org", .version = "v1", .plural = "tfjobs", .kind = "TFJob"},
      .singular = "tfjob",
      .controller = "tfjob-controller",
      .replicas_field = "tfReplicaSpecs",
      .roles = {"Chief", "Master", "PS", "Worker", "Evaluator"},
      .container = "tensorflow",
      .port_name = "tfjob-port",
      .port = 2222,
      .restart = RestartPolicy::kNever,
      .roles_in_any_case = true,
      .old_versions = old_tfjob_versions(),
      .spec_schema = schema::build<TFJobSpec>,
      .environment = tf_environment,
      .is_master = is_tensorflow_master,
      .judge = judge_tensorflow,
      .tolerates_failure = tensorflow_tolerates_failure,
      .validate = validate_tensorflow};
  return kKind;
}

}  // namespace skiff::training
