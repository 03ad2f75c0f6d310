// Random training jobs that validation admits, with every policy.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "base/random.h"
#include "features/training/kinds/xgboost/xgboost.h"
#include "features/training/testing/builders.h"

namespace skiff::training::testing {

inline std::string_view pick(Random& random, std::initializer_list<std::string_view> from) {
  return from.begin()[random.below(from.size())];
}

inline std::int64_t between(Random& random, std::int64_t least, std::int64_t most) {
  return least +
         static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most - least + 1)));
}

inline json::value random_job(const JobKind& kind, std::string_view name, Random& random) {
  JobBuilder job(kind, name);
  const bool is_mpi = &kind == &mpi();
  const auto restart = [&] {
    if (is_mpi) return pick(random, {"", "Never", "OnFailure"});
    return pick(random, {"", "Never", "OnFailure", "Always", "ExitCode", "OnFailure"});
  };
  const bool is_tf = &kind == &tensorflow();
  if (is_mpi) {
    job.role("Launcher", 1, restart());
    if (random.chance(30)) job.spec("runLauncherAsWorker", true);
    if (random.chance(40)) job.spec("launcherCreationPolicy", "WaitForWorkersReady");
    job.spec("mpiImplementation", json::string(pick(random, {"OpenMPI", "Intel", "MPICH"})));
  }
  const bool has_master = std::ranges::find(kind.roles, "Master") != kind.roles.end();
  if (has_master && (&kind == &xgboost() || random.chance(50))) {
    job.role(is_tf ? pick(random, {"Chief", "Master"}) : "Master", 1, restart());
  }
  job.role("Worker", between(random, 1, 3), restart());
  if (is_tf && random.chance(50)) job.role("PS", between(random, 1, 2), restart());
  if (is_tf && random.chance(20)) job.role("Evaluator", 1, restart());
  if (is_tf && random.chance(30)) job.spec("successPolicy", "AllWorkers");
  if (&kind == &pytorch() && random.chance(30)) job.spec("elasticPolicy", {{"minReplicas", 1}});
  job.run("cleanPodPolicy", json::string(pick(random, {"None", "Running", "All"})));
  if (random.chance(60)) job.run("backoffLimit", between(random, 0, 4));
  if (random.chance(20)) job.run("suspend", true);
  if (random.chance(20)) job.run("schedulingPolicy", {{"minAvailable", between(random, 1, 2)}});
  json::value root = job.build();
  if (random.chance(25)) json::set(root, {"metadata", "annotations", kRestartAnnotation}, "gang");
  // The server gives these.
  for (const char* key : {"uid", "resourceVersion", "creationTimestamp"}) {
    root.at("metadata").as_object().erase(key);
  }
  return root;
}

}  // namespace skiff::training::testing
