#include "features/training/kinds/xgboost/xgboost.h"

#include <fmt/format.h>

#include "base/strings.h"
#include "features/training/engine/validation.h"
#include "features/training/engine/verdict.h"
#include "features/training/kinds/xgboost/xgboost_schema.h"
#include "schema/causes.h"

namespace skiff::training {
namespace {

// XGBoost's rabit and LightGBM's socket learner find each other by these. Upstream's examples read
// them by name, so that the order and the spelling are part of the API.
Environment xgboost_environment(const Job& job) {
  const Role* master = job.role("Master");
  const Role* workers = job.role("Worker");
  const std::int64_t masters = master == nullptr ? 0 : master->replicas;
  std::vector<EnvVar> before{
      {"MASTER_PORT", std::to_string(master == nullptr ? job.kind->port : master->port)},
      {"MASTER_ADDR", fmt::format("{}-master-0", job.name)},
      {"WORLD_SIZE", std::to_string(job.replicas())}};
  std::vector<EnvVar> after{{"PYTHONUNBUFFERED", "1"}};
  if (workers != nullptr && job.replicas() > 1) {
    std::vector<std::string> names;
    for (std::int64_t i = 0; i < workers->replicas; ++i) {
      names.push_back(replica_name(job, *workers, i));
    }
    after.push_back({"WORKER_PORT", std::to_string(workers->port)});
    after.push_back({"WORKER_ADDRS", join(names, ",")});
  }
  return [before = std::move(before), after = std::move(after), masters](const Role& role,
                                                                         std::int64_t index) {
    std::vector<EnvVar> env = before;
    env.push_back({"RANK", std::to_string(role.name == "Master" ? index : index + masters)});
    env.insert(env.end(), after.begin(), after.end());
    return env;
  };
}

bool is_xgboost_master(const Job&, const Role& role, std::int64_t) { return role.name == "Master"; }

Verdict judge_xgboost(const Job& job, std::span<const RoleState> roles) {
  return judge_by(job.role("Master"), roles);
}

void validate_xgboost(const json::value& object, std::vector<Cause>& causes) {
  if (!json::get_object(object, {"spec", "xgbReplicaSpecs"}).contains("Master")) {
    causes.push_back(schema::required(role_path(xgboost(), "Master"),
                                      "the tracker that workers meet at runs in the master"));
  }
  check_single_master(xgboost(), object, causes);
}

}  // namespace

const JobKind& xgboost() {
  static const JobKind kKind{.resource = {.group = "kubeflow.org",
                                          .version = "v1",
                                          .plural = "xgboostjobs",
                                          .kind = "XGBoostJob"},
                             .singular = "xgboostjob",
                             .controller = "xgboostjob-controller",
                             .replicas_field = "xgbReplicaSpecs",
                             .roles = {"Master", "Worker"},
                             .container = "xgboost",
                             .port_name = "xgboostjob-port",
                             .port = 9999,
                             .restart = RestartPolicy::kNever,
                             .env_in_every_container = true,
                             .spec_schema = schema::build<XGBoostJobSpec>,
                             .environment = xgboost_environment,
                             .is_master = is_xgboost_master,
                             .judge = judge_xgboost,
                             .validate = validate_xgboost};
  return kKind;
}

}  // namespace skiff::training
