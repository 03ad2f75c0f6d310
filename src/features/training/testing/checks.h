// What must hold of a training job and its pods at any time, as sentences about what does not.
// Shared by the tests of the laws and the simulator.
#pragma once

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/meta.h"
#include "base/strings.h"
#include "features/training/engine/history.h"
#include "features/training/engine/labels.h"
#include "features/training/kinds/kinds.h"

namespace skiff::training::testing {

using Complaint = std::optional<std::string>;

// The replica that a pod or service stands for: worker-3.
inline std::string slot_of(const json::value& child) {
  const std::string_view role = api::label(child, kRoleLabel);
  if (role.empty()) return {};
  return fmt::format("{}-{}", role, api::label(child, kIndexLabel));
}

inline const JobKind* kind_of(const json::value& job) {
  for (const JobKind* kind : job_kinds()) {
    if (kind->resource.kind == api::kind(job)) return kind;
  }
  return nullptr;
}

inline bool job_finished(const json::value& job) {
  return api::condition_true(job, "Succeeded") || api::condition_true(job, "Failed");
}

// One pod for each index.
inline Complaint doubled_slot(const json::value& job, const std::vector<Object>& pods) {
  std::set<std::string> seen;
  for (const Object& pod : pods) {
    if (!api::controlled_by(*pod, api::uid(job))) continue;
    const std::string slot = slot_of(*pod);
    if (!seen.insert(slot).second) {
      return fmt::format("job {} has two pods for {}", api::name(job), slot);
    }
  }
  return {};
}

// A replica that the job has written down as done does not run again.
inline Complaint rerun_success(const json::value& job, const std::vector<Object>& pods) {
  const JobKind* kind = kind_of(job);
  const json::value* status = json::find(job, {"status"});
  if (kind == nullptr || status == nullptr) return {};
  History history = read_history(*status);
  std::set<std::string> done;
  for (const std::string_view role : kind->roles) {
    for (std::int64_t i = 0; i < 64; ++i) {
      if (!history.role(role).succeeded.contains(i)) continue;
      done.insert(fmt::format("{}-{}", lower(role), i));
    }
  }
  for (const Object& pod : pods) {
    if (!api::controlled_by(*pod, api::uid(job)) || !done.contains(slot_of(*pod))) continue;
    const std::string_view phase = json::get_string(*pod, {"status", "phase"});
    if (phase == "Succeeded") continue;
    return fmt::format("job {}: {} has succeeded and its pod is {}", api::name(job), slot_of(*pod),
                       phase);
  }
  return {};
}

// No more pods were replaced than the limit allows.
inline Complaint over_limit(const json::value& job) {
  const auto limit = json::get_int(job, {"spec", "runPolicy", "backoffLimit"});
  const std::int64_t restarts = json::get_int(job, {"status", "restarts"}).value_or(0);
  if (!limit || restarts <= *limit) return {};
  return fmt::format("job {} has replaced {} pods, and its limit is {}", api::name(job), restarts,
                     *limit);
}

// Pods made from the same replica counts see the same cluster.
inline Complaint torn_cluster(const json::value& job, const std::vector<Object>& pods) {
  if (json::get_bool(job, {"spec", "enableDynamicWorker"}).value_or(false)) return {};
  std::map<std::string, std::string> by_size;  // hosts in the cluster -> the cluster
  for (const Object& pod : pods) {
    if (!api::controlled_by(*pod, api::uid(job))) continue;
    for (const json::value& container : json::get_array(*pod, {"spec", "containers"})) {
      for (const json::value& var : json::get_array(container, {"env"})) {
        if (json::get_string(var, {"name"}) != "TF_CONFIG") continue;
        const std::string_view text = json::get_string(var, {"value"});
        const std::string cluster(text.substr(0, text.find(",\"task\"")));
        std::string size;
        const Result<json::value> parsed = json::parse(text);
        if (!parsed) return fmt::format("TF_CONFIG of {} is no JSON", api::name(*pod));
        for (const auto& [role, hosts] : json::get_object(*parsed, {"cluster"})) {
          size += fmt::format("{}:{} ", std::string(role),
                              hosts.is_array() ? hosts.get_array().size() : 0);
        }
        const auto [known, fresh] = by_size.emplace(size, cluster);
        if (fresh || known->second == cluster) continue;
        return fmt::format("pods of job {} see different clusters of the same size",
                           api::name(job));
      }
    }
  }
  return {};
}

inline Complaint any_complaint(const json::value& job, const std::vector<Object>& pods) {
  for (Complaint& complaint :
       std::vector<Complaint>{doubled_slot(job, pods), rerun_success(job, pods), over_limit(job),
                              torn_cluster(job, pods)}) {
    if (complaint) return std::move(complaint);
  }
  return {};
}

}  // namespace skiff::training::testing
