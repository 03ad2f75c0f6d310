#include "sim/workloads/app_bodies.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace skiff::sim {
namespace {

std::int64_t from_to(Random& random, std::int64_t least, std::int64_t most) {
  return least +
         static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most - least + 1)));
}

// Small enough for all of them on the smallest node there is.
json::object app_container() {
  return {{"name", "main"},
          {"image", "app"},
          {"ports", json::array{json::object{{"containerPort", 80}}}},
          {"resources", {{"requests", {{"cpu", "20m"}}}}}};
}

json::object app_template(std::string_view name) {
  return {{"metadata",
           {{"labels", {{"app", json::string(name)}}}, {"annotations", {{kVersion, "v1"}}}}},
          {"spec", {{"containers", json::array{app_container()}}}}};
}

json::object app_selector(std::string_view name) {
  return {{"matchLabels", {{"app", json::string(name)}}}};
}

json::value app_object(std::string_view api_version, std::string_view kind, std::string_view name,
                       json::object spec) {
  return json::object{{"apiVersion", json::string(api_version)},
                      {"kind", json::string(kind)},
                      {"metadata", {{"name", json::string(name)}}},
                      {"spec", std::move(spec)}};
}

}  // namespace

json::value deployment_body(std::string_view name, Random& random) {
  json::object strategy{{"type", "Recreate"}};
  if (random.chance(75)) {
    json::object limits{{"maxSurge", from_to(random, 0, 2)},
                        {"maxUnavailable", from_to(random, 0, 2)}};
    if (limits["maxSurge"] == 0 && limits["maxUnavailable"] == 0) limits["maxSurge"] = "25%";
    strategy = {{"type", "RollingUpdate"}, {"rollingUpdate", std::move(limits)}};
  }
  json::object spec{{"replicas", from_to(random, 0, 4)},
                    {"selector", app_selector(name)},
                    {"strategy", std::move(strategy)},
                    {"revisionHistoryLimit", from_to(random, 0, 3)},
                    {"template", app_template(name)}};
  if (random.chance(30)) spec["minReadySeconds"] = from_to(random, 1, 20);
  return app_object("apps/v1", "Deployment", name, std::move(spec));
}

json::value stateful_set_body(std::string_view name, Random& random) {
  json::object spec{{"replicas", from_to(random, 0, 4)},
                    {"selector", app_selector(name)},
                    {"serviceName", json::string(name)},
                    {"template", app_template(name)}};
  if (random.chance(30)) spec["podManagementPolicy"] = "Parallel";
  if (random.chance(10)) spec["updateStrategy"] = {{"type", "OnDelete"}};
  if (random.chance(20)) spec["ordinals"] = {{"start", from_to(random, 1, 3)}};
  if (random.chance(20)) spec["minReadySeconds"] = from_to(random, 1, 10);
  if (random.chance(50)) {
    spec["volumeClaimTemplates"] =
        json::array{json::object{{"metadata", {{"name", "data"}}},
                                 {"spec",
                                  {{"accessModes", json::array{"ReadWriteOnce"}},
                                   {"resources", {{"requests", {{"storage", "1Gi"}}}}}}}}};
    const auto kept = [&] { return random.chance(50) ? "Retain" : "Delete"; };
    json::object policy{{"whenScaled", kept()}};
    policy["whenDeleted"] = kept();
    spec["persistentVolumeClaimRetentionPolicy"] = std::move(policy);
  }
  return app_object("apps/v1", "StatefulSet", name, std::move(spec));
}

json::value daemon_set_body(std::string_view name, Random& random) {
  json::object pod = app_template(name);
  if (random.chance(50)) {
    json::make_object(pod, {"spec"})["nodeSelector"] = json::object{{kPoolLabel, kPool}};
  }
  json::object limits{{"maxUnavailable", from_to(random, 1, 2)}};
  if (random.chance(40)) limits = {{"maxSurge", from_to(random, 1, 2)}, {"maxUnavailable", 0}};
  return app_object(
      "apps/v1", "DaemonSet", name,
      {{"selector", app_selector(name)},
       {"updateStrategy", {{"type", "RollingUpdate"}, {"rollingUpdate", std::move(limits)}}},
       {"revisionHistoryLimit", from_to(random, 0, 2)},
       {"template", std::move(pod)}});
}

json::value replica_set_body(std::string_view name, Random& random) {
  return app_object("apps/v1", "ReplicaSet", name,
                    {{"replicas", from_to(random, 0, 4)},
                     {"selector", app_selector(name)},
                     {"template", app_template(name)}});
}

json::value replication_controller_body(std::string_view name, Random& random) {
  return app_object("v1", "ReplicationController", name,
                    {{"replicas", from_to(random, 0, 4)},
                     {"selector", {{"app", json::string(name)}}},
                     {"template", app_template(name)}});
}

json::value cron_job_body(std::string_view name, Random& random) {
  constexpr std::array<std::string_view, 3> kPolicies = {"Allow", "Forbid", "Replace"};
  constexpr std::array<std::string_view, 3> kSchedules = {"* * * * *", "*/2 * * * *", "@every 90s"};
  json::object job{
      {"backoffLimit", from_to(random, 0, 2)},
      {"activeDeadlineSeconds", from_to(random, 20, 300)},
      {"completions", from_to(random, 1, 2)},
      {"template",
       {{"spec", {{"restartPolicy", "Never"}, {"containers", json::array{app_container()}}}}}}};
  json::object spec{{"schedule", json::string(kSchedules[random.below(kSchedules.size())])},
                    {"concurrencyPolicy", json::string(kPolicies[random.below(kPolicies.size())])},
                    {"successfulJobsHistoryLimit", from_to(random, 0, 3)},
                    {"failedJobsHistoryLimit", from_to(random, 0, 2)},
                    {"jobTemplate", {{"spec", std::move(job)}}}};
  if (random.chance(30)) spec["startingDeadlineSeconds"] = from_to(random, 10, 90);
  return app_object("batch/v1", "CronJob", name, std::move(spec));
}

json::value budget_body(std::string_view name, Random& random) {
  json::object spec{{"selector", app_selector(name)}};
  const std::string_view field = random.chance(50) ? "minAvailable" : "maxUnavailable";
  spec[field] = random.chance(50) ? json::value(from_to(random, 0, 2)) : json::value("50%");
  return app_object("policy/v1", "PodDisruptionBudget", name, std::move(spec));
}

json::value service_body(std::string_view name) {
  json::object spec{{"selector", {{"app", json::string(name)}}},
                    {"ports", json::array{json::object{{"port", 80}}}}};
  if (name == "db") spec["clusterIP"] = "None";
  return app_object("v1", "Service", name, std::move(spec));
}

}  // namespace skiff::sim
