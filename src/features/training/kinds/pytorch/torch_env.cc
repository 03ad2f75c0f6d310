#include "features/training/kinds/pytorch/torch_env.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "base/strings.h"

namespace skiff::training {
namespace {

// auto, cpu, gpu or a number; nothing where only the deprecated field of the elastic policy is set.
std::optional<std::string> processes_per_node(const Job& job) {
  const std::string_view given = json::get_string(job.spec(), {"nprocPerNode"});
  if (!given.empty()) return std::string(given);
  if (json::get_int(job.spec(), {"elasticPolicy", "nProcPerNode"})) return {};
  return "auto";
}

// How many processes the controller can know of: words such as `auto` are resolved in the pod.
std::int64_t known_processes(const std::optional<std::string>& per_node) {
  std::int64_t n = 0;
  if (!per_node) return 1;
  const auto [end, error] =
      std::from_chars(per_node->data(), per_node->data() + per_node->size(), n);
  return error == std::errc{} && end == per_node->data() + per_node->size() ? n : 1;
}

std::string rendezvous_conf(const json::value& policy) {
  std::vector<std::string> pairs;
  for (const json::value& entry : json::get_array(policy, {"rdzvConf"})) {
    pairs.push_back(
        fmt::format("{}={}", json::get_string(entry, {"key"}), json::get_string(entry, {"value"})));
  }
  return join(pairs, ",");
}

// min:max nodes; a bound that is not given follows the other, both follow the number of workers.
std::string node_range(const Job& job, const json::value& policy) {
  const std::optional<std::int64_t> least = json::get_int(policy, {"minReplicas"});
  const std::optional<std::int64_t> most = json::get_int(policy, {"maxReplicas"});
  const Role* workers = job.role("Worker");
  const std::int64_t count = workers == nullptr ? 1 : workers->replicas;
  return fmt::format("{}:{}", least.value_or(most.value_or(count)),
                     most.value_or(least.value_or(count)));
}

std::vector<EnvVar> elastic(const Job& job, const json::value& policy) {
  const Role* workers = job.role("Worker");
  const std::string first = fmt::format("{}-worker-0", job.name);
  const std::string_view rendezvous = json::get_string(policy, {"rdzvHost"}, first);
  const std::int64_t port = json::get_int(policy, {"rdzvPort"})
                                .value_or(workers == nullptr ? job.kind->port : workers->port);
  std::vector<EnvVar> env{
      {"PET_RDZV_ENDPOINT", fmt::format("{}:{}", rendezvous, port)},
      {"PET_RDZV_BACKEND", std::string(json::get_string(policy, {"rdzvBackend"}, "c10d"))},
      {"PET_NNODES", node_range(job, policy)}};
  if (const auto restarts = json::get_int(policy, {"maxRestarts"})) {
    env.push_back({"PET_MAX_RESTARTS", std::to_string(*restarts)});
  }
  if (const auto processes = json::get_int(policy, {"nProcPerNode"})) {
    env.push_back({"PET_NPROC_PER_NODE", std::to_string(*processes)});
  }
  if (const std::string_view id = json::get_string(policy, {"rdzvId"}); !id.empty()) {
    env.push_back({"PET_RDZV_ID", std::string(id)});
  }
  if (const std::string conf = rendezvous_conf(policy); !conf.empty()) {
    env.push_back({"PET_RDZV_CONF", conf});
  }
  // torchrun reads flags from the environment: being there is what counts.
  if (json::get_bool(policy, {"standalone"}).value_or(false)) env.push_back({"PET_STANDALONE", ""});
  return env;
}

// What comes before and after the rank is the same for every replica.
struct Shared {
  std::vector<EnvVar> before = {};
  std::vector<EnvVar> after = {};
  bool ranked = false;
};

Shared shared_environment(const Job& job) {
  Shared shared{.before = {{"PYTHONUNBUFFERED", "1"}}};
  const std::optional<std::string> per_node = processes_per_node(job);
  if (const Role* master = job.role("Master")) {
    const std::string port = std::to_string(master->port);
    const std::string address = replica_name(job, *master, 0);
    const std::int64_t world = job.replicas() * known_processes(per_node);
    shared.ranked = true;
    for (EnvVar& var : std::vector<EnvVar>{{"MASTER_PORT", port},
                                           {"PET_MASTER_PORT", port},
                                           {"MASTER_ADDR", address},
                                           {"PET_MASTER_ADDR", address},
                                           {"WORLD_SIZE", std::to_string(world)}}) {
      shared.before.push_back(std::move(var));
    }
  }
  if (per_node) shared.after.push_back({"PET_NPROC_PER_NODE", *per_node});
  const json::value* policy = json::find(job.spec(), {"elasticPolicy"});
  if (policy != nullptr && policy->is_object()) {
    for (EnvVar& var : elastic(job, *policy)) shared.after.push_back(std::move(var));
  } else {
    shared.after.push_back({"PET_NNODES", std::to_string(job.replicas())});
  }
  return shared;
}

}  // namespace

Environment torch_environment(const Job& job) {
  return [shared = shared_environment(job)](const Role& role, std::int64_t index) {
    std::vector<EnvVar> env = shared.before;
    if (shared.ranked) {
      const std::string rank = std::to_string(role.name == "Master" ? 0 : index + 1);
      env.push_back({"RANK", rank});
      env.push_back({"PET_NODE_RANK", rank});
    }
    env.insert(env.end(), shared.after.begin(), shared.after.end());
    return env;
  };
}

}  // namespace skiff::training
