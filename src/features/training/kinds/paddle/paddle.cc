#include "features/training/kinds/paddle/paddle.h"

#include <fmt/format.h>

#include "features/training/engine/validation.h"
#include "features/training/engine/verdict.h"
#include "features/training/kinds/paddle/paddle_schema.h"

namespace skiff::training {
namespace {

// With a master its pods are servers and the others train; without one all are equal, and the first
// says its own address because it cannot yet be found under its name.
Environment paddle_environment(const Job& job) {
  const Role* master = job.role("Master");
  const Role* workers = job.role("Worker");
  const Role* meeting = master != nullptr ? master : workers;
  const std::int64_t port = meeting == nullptr ? job.kind->port : meeting->port;
  std::vector<EnvVar> shared{{"PYTHONUNBUFFERED", "1"},
                             {"PADDLE_JOB_ID", std::string(job.name)},
                             {"PADDLE_NNODES", std::to_string(job.replicas())}};
  const bool collective = master == nullptr;
  const std::string address =
      fmt::format("{}-{}-0:{}", job.name, collective ? "worker" : "master", port);
  return [=, shared = std::move(shared)](const Role& role, std::int64_t index) {
    std::vector<EnvVar> env = shared;
    if (collective && index == 0) {
      env.push_back({.name = "POD_IP_DUMMY", .field = "status.podIP"});
      env.push_back({"PADDLE_MASTER", fmt::format("$(POD_IP_DUMMY):{}", port)});
    } else {
      env.push_back({"PADDLE_MASTER", address});
    }
    if (!collective) {
      env.push_back({role.name == "Master" ? "PADDLE_SERVER_NUM" : "PADDLE_TRAINER_NUM", "1"});
    }
    return env;
  };
}

bool is_paddle_master(const Job&, const Role& role, std::int64_t) { return role.name == "Master"; }

Verdict judge_paddle(const Job& job, std::span<const RoleState> roles) {
  return judge_by(master_or_workers(job), roles);
}

void validate_paddle(const json::value& object, std::vector<Cause>& causes) {
  check_elastic(paddle(), object, causes);
}

}  // namespace

const JobKind& paddle() {
  static const JobKind kKind{.resource = {.group = "kubeflow.org",
                                          .version = "v1",
                                          .plural = "paddlejobs",
                                          .kind = "PaddleJob"},
                             .singular = "paddlejob",
                             .controller = "paddlejob-controller",
                             .replicas_field = "paddleReplicaSpecs",
                             .roles = {"Master", "Worker"},
                             .container = "paddle",
                             .port_name = "master",
                             .port = 36543,
                             .restart = RestartPolicy::kOnFailure,
                             .env_in_every_container = true,
                             .scales = true,
                             .spec_schema = schema::build<PaddleJobSpec>,
                             .environment = paddle_environment,
                             .is_master = is_paddle_master,
                             .judge = judge_paddle,
                             .validate = validate_paddle};
  return kKind;
}

}  // namespace skiff::training
