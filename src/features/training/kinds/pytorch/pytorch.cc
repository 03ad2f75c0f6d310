#include "features/training/kinds/pytorch/pytorch.h"

#include <algorithm>

#include "features/training/engine/validation.h"
#include "features/training/engine/verdict.h"
#include "features/training/kinds/pytorch/torch_env.h"
#include "features/training/kinds/pytorch/torch_schema.h"
#include "features/training/kinds/pytorch/torch_versions.h"
#include "schema/causes.h"

namespace skiff::training {
namespace {

using schema::forbidden;
using schema::invalid;

bool is_elastic(const Job& job) {
  const json::value* policy = json::find(job.spec(), {"elasticPolicy"});
  return policy != nullptr && policy->is_object();
}

bool is_pytorch_master(const Job& job, const Role& role, std::int64_t index) {
  if (job.role("Master") != nullptr) return role.name == "Master";
  return index == 0;
}

Verdict judge_pytorch(const Job& job, std::span<const RoleState> roles) {
  Verdict verdict = judge_by(master_or_workers(job), roles);
  if (job.role("Master") != nullptr || !is_elastic(job)) return verdict;
  // Elastic workers end together: the first to end says that the training has.
  verdict.succeeded =
      std::ranges::any_of(roles, [](const RoleState& state) { return state.succeeded > 0; });
  return verdict;
}

void validate_elastic(const json::value& object, std::vector<Cause>& causes) {
  check_elastic(pytorch(), object, causes);
  if (json::get_int(object, {"spec", "elasticPolicy", "nProcPerNode"}) &&
      json::find(object, {"spec", "nprocPerNode"}) != nullptr) {
    causes.push_back(forbidden("spec.elasticPolicy.nProcPerNode",
                               "must not be used together with spec.nprocPerNode"));
  }
}

void validate_pytorch(const json::value& object, std::vector<Cause>& causes) {
  const json::object& roles = json::get_object(object, {"spec", "pytorchReplicaSpecs"});
  check_single_master(pytorch(), object, causes);
  if (const json::value* worker = roles.if_contains("Worker")) {
    const auto replicas = json::get_int(*worker, {"replicas"});
    if (replicas && *replicas == 0) {
      causes.push_back(invalid(role_path(pytorch(), "Worker") + ".replicas", 0,
                               "must be greater than or equal to 1"));
    }
  }
  validate_elastic(object, causes);
}

std::vector<std::string> warnings(const json::value& object) {
  if (!json::get_int(object, {"spec", "elasticPolicy", "nProcPerNode"})) return {};
  return {"spec.elasticPolicy.nProcPerNode is deprecated, use spec.nprocPerNode instead"};
}

}  // namespace

const JobKind& pytorch() {
  static const JobKind kKind{.resource = {.group = "kubeflow.org",
                                          .version = "v1",
                                          .plural = "pytorchjobs",
                                          .kind = "PyTorchJob"},
                             .singular = "pytorchjob",
                             .controller = "pytorchjob-controller",
                             .replicas_field = "pytorchReplicaSpecs",
                             .roles = {"Master", "Worker"},
                             .container = "pytorch",
                             .port_name = "pytorchjob-port",
                             .port = 23456,
                             .restart = RestartPolicy::kOnFailure,
                             .env_in_every_container = true,
                             .scales = true,
                             .old_versions = old_pytorchjob_versions(),
                             .spec_schema = schema::build<PyTorchJobSpec>,
                             .environment = torch_environment,
                             .is_master = is_pytorch_master,
                             .judge = judge_pytorch,
                             .validate = validate_pytorch,
                             .warnings = warnings};
  return kKind;
}

}  // namespace skiff::training
