#include "features/jobsets/jobset.h"

#include <fmt/format.h>

#include "api/meta.h"
#include "api/rules.h"

namespace skiff::jobsets {

const api::Resource& jobset_resource() {
  static const api::Resource kResource{
      .group = "jobset.x-k8s.io", .version = "v1alpha2", .plural = "jobsets", .kind = "JobSet"};
  return kResource;
}

const api::Resource& job_resource() {
  static const api::Resource kResource{
      .group = "batch", .version = "v1", .plural = "jobs", .kind = "Job"};
  return kResource;
}

const api::Resource& service_resource() {
  static const api::Resource kResource{.version = "v1", .plural = "services", .kind = "Service"};
  return kResource;
}

void set_defaults(json::value& jobset) {
  if (!jobset.is_object()) return;
  json::object& spec = json::make_object(jobset, {"spec"});
  api::put(json::make_object(spec, {"successPolicy"}), "operator", "All");
  api::put(json::make_object(spec, {"startupPolicy"}), "startupPolicyOrder", "AnyOrder");
  json::object& network = json::make_object(spec, {"network"});
  api::put(network, "enableDNSHostnames", true);
  api::put(network, "publishNotReadyAddresses", true);
  api::each(spec, "replicatedJobs", [](json::object& part) {
    api::put(part, "replicas", 1);
    api::put(part, "groupName", "default");
    json::object& job = json::make_object(part, {"template", "spec"});
    api::put(job, "completionMode", "Indexed");
    api::put(json::make_object(job, {"template", "spec"}), "restartPolicy", "OnFailure");
  });
  api::each(spec, "volumeClaimPolicies", [](json::object& policy) {
    api::put(json::make_object(policy, {"retentionPolicy"}), "whenDeleted", "Delete");
  });
  json::object* failure = api::find_object(spec, "failurePolicy");
  if (failure == nullptr) return;
  int index = 0;
  api::each(*failure, "rules", [&](json::object& rule) {
    api::put(rule, "name", json::string(fmt::format("failurePolicyRule{}", index++)));
  });
}

std::string_view part_name(const json::value& part) { return json::get_string(part, {"name"}); }

std::int64_t replicas(const json::value& part) {
  return json::get_int(part, {"replicas"}).value_or(1);
}

const json::array& parts(const json::value& jobset) {
  return json::get_array(jobset, {"spec", "replicatedJobs"});
}

bool suspended(const json::value& jobset_or_job) {
  return json::get_bool(jobset_or_job, {"spec", "suspend"}).value_or(false);
}

std::string_view subdomain(const json::value& jobset) {
  const std::string_view given = json::get_string(jobset, {"spec", "network", "subdomain"});
  return given.empty() ? api::name(jobset) : given;
}

bool has_hostnames(const json::value& jobset) {
  return json::get_bool(jobset, {"spec", "network", "enableDNSHostnames"}).value_or(true);
}

std::string job_name(std::string_view jobset, std::string_view part, std::int64_t index) {
  return fmt::format("{}-{}-{}", jobset, part, index);
}

std::string coordinator(const json::value& jobset) {
  const json::value* found = json::find(jobset, {"spec", "coordinator"});
  if (found == nullptr || !found->is_object()) return {};
  return fmt::format("{}-{}.{}",
                     job_name(api::name(jobset), json::get_string(*found, {"replicatedJob"}),
                              json::get_int(*found, {"jobIndex"}).value_or(0)),
                     json::get_int(*found, {"podIndex"}).value_or(0), subdomain(jobset));
}

}  // namespace skiff::jobsets
