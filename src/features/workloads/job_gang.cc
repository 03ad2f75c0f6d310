#include "features/workloads/job_gang.h"

#include <algorithm>
#include <charconv>

#include "api/meta.h"
#include "features/workloads/index_list.h"
#include "features/workloads/pods.h"

namespace skiff::workloads {
namespace {

constexpr std::string_view kGang = "scheduling.skiff.dev/gang";
constexpr std::string_view kPodGroup = "scheduling.x-k8s.io/pod-group";

std::string_view of_template(const json::value& job, std::string_view kind, std::string_view key) {
  return json::get_string(job, {"spec", "template", "metadata", kind, key});
}

// As the scheduler reads it: 0 where the text is not wholly a number.
std::int64_t gang_number(const json::value& job, std::string_view annotation) {
  const std::string_view text = of_template(job, "annotations", annotation);
  const char* const last = text.data() + text.size();
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), last, out);
  return error == std::errc{} && end == last ? out : 0;
}

std::int64_t asked(const json::value& job) { return gang_number(job, kGangMin); }

std::string_view gang_name(const json::value& job) {
  const std::string_view name = of_template(job, "annotations", kGang);
  return name.empty() ? of_template(job, "labels", kPodGroup) : name;
}

std::string_view gang_name_of_pod(const json::value& pod) {
  const std::string_view name = api::annotation(pod, kGang);
  return name.empty() ? api::label(pod, kPodGroup) : name;
}

std::vector<std::string> gang_of(const json::value& job) {
  const std::string_view name = gang_name(job);
  if (name.empty() || asked(job) <= 0) return {};
  return {std::string(name)};
}

// A set makes those of its jobs that are not there, and starts anew when one fails.
bool is_of_set(const json::value& job) {
  const json::object* owner = api::controller_of(job);
  return owner != nullptr && json::get_string(*owner, {"kind"}) == "JobSet";
}

// How many pods the job has at a time before any of them is done.
std::int64_t members(const json::value& job) { return left_to_run(job, {}); }

// How many of the gang's pods its maker counted as this job's, whatever has become of it since.
std::int64_t share(const json::value& job) {
  const std::int64_t told = gang_number(job, kGangShare);
  return told > 0 ? told : members(job);
}

// Whether it brings pods or has brought them. Of a set that starts anew it will be made again.
bool is_there(const json::value& job) {
  return !api::condition_true(job, "Failed") && !api::deleting(job);
}

// How many pods another job still brings, as its status tells.
std::int64_t to_come(const json::value& job) {
  if (!is_there(job) || api::condition_true(job, "Complete")) return 0;
  const std::int64_t completions = int_at(job, {"spec", "completions"});
  const Indexes lost =
      parse_indexes(json::get_string(job, {"status", "failedIndexes"}), completions);
  return left_to_run(job, {.succeeded = int_at(job, {"status", "succeeded"}),
                           .lost = static_cast<std::int64_t>(lost.size()),
                           .active = int_at(job, {"status", "active"})});
}

}  // namespace

std::int64_t left_to_run(const json::value& job, const Counts& counts) {
  const std::int64_t parallelism = int_at(job, {"spec", "parallelism"}, 1);
  const auto completions = json::get_int(job, {"spec", "completions"});
  if (!completions) return counts.succeeded > 0 ? counts.active : parallelism;
  return std::clamp<std::int64_t>(*completions - counts.succeeded - counts.lost, 0, parallelism);
}

control::Related jobs_of_gang() {
  return {.resource = job_resource(),
          .wants = [](const json::value& job) -> std::vector<std::string> {
            if (asked(job) <= members(job)) return {};
            return gang_of(job);
          },
          .has = gang_of,
          .alike =
              [](const json::value& before, const json::value& after) {
                return is_there(before) == is_there(after) && to_come(before) == to_come(after);
              }};
}

std::string gang_min(const json::value& job, std::int64_t left, const std::vector<Object>& jobs) {
  const std::int64_t all = asked(job);
  if (all <= 0) return {};
  std::int64_t to_run = left;
  std::int64_t accounted = share(job);
  for (const Object& other : jobs) {
    if (api::uid(*other) == api::uid(job) || !is_there(*other)) continue;
    to_run += to_come(*other);
    accounted += share(*other);
  }
  // A set makes those that are not there; nobody makes up for what a job was scaled down by.
  if (is_of_set(job)) to_run += std::max<std::int64_t>(all - accounted, 0);
  return std::to_string(std::clamp<std::int64_t>(to_run, 1, all));
}

bool is_told_otherwise(const json::value& job, const json::value& pod, std::string_view gang_min) {
  if (gang_min.empty() || !json::get_string(pod, {"spec", "nodeName"}).empty()) return false;
  // One that was adopted may be in another gang.
  if (gang_name_of_pod(pod) != gang_name(job)) return false;
  const std::string_view told = api::annotation(pod, kGangMin);
  return !told.empty() && told != gang_min;
}

client::Write tell(const json::value& pod, std::string_view gang_min) {
  client::Write out = patch(
      pod_resource(), pod, {{"metadata", {{"annotations", {{kGangMin, json::string(gang_min)}}}}}});
  out.resource_version = {};
  return out;
}

}  // namespace skiff::workloads
