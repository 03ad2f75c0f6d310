// A training job as the engine reads it: one typed view of the spec, defaults filled in, made once
// per plan.
//
// The view points into the JSON it was made from and must not outlive it. It is total: whatever a
// stored object holds, reading gives something sensible, because validation may have been weaker
// when the object was written.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/time.h"

namespace skiff::training {

struct JobKind;

enum class RestartPolicy { kAlways, kOnFailure, kNever, kExitCode };
enum class CleanPodPolicy { kNone, kRunning, kAll };

std::string_view to_string(RestartPolicy policy);

// What spec.runPolicy says. Absent members mean "no such limit".
struct RunPolicy {
  CleanPodPolicy clean_pods = CleanPodPolicy::kNone;
  std::optional<std::chrono::seconds> ttl = {};
  std::optional<std::chrono::seconds> active_deadline = {};
  std::optional<std::int64_t> backoff_limit = {};
  bool suspend = false;
  std::string_view managed_by = {};
  std::optional<std::int64_t> min_available = {};
  std::string_view queue = {};
  std::string_view priority_class = {};
  bool restart_gang = false;  // one replica's failure starts all of them again
};

// One entry of the replica map: Worker, PS, Master.
struct Role {
  std::string name = {};   // as the API spells it: Worker
  std::string lower = {};  // as names and labels spell it: worker
  std::int64_t replicas = 1;
  RestartPolicy restart = RestartPolicy::kNever;
  const json::object* pod_template = nullptr;  // never null: an empty object where absent
  std::int64_t port = 0;                       // the port the framework listens on
};

struct Job {
  const JobKind* kind = nullptr;
  const json::value* root = nullptr;
  std::string_view name = {};
  std::string_view ns = {};
  std::string_view uid = {};
  RunPolicy run = {};
  std::vector<Role> roles = {};  // in the order of JobKind::roles

  const json::value& spec() const;
  const Role* role(std::string_view role_name) const;  // null where the job has none
  std::int64_t replicas() const;                       // of all roles together
};

// Pod and service of a replica share this name, so that the pod's DNS name is known beforehand.
std::string replica_name(const Job& job, const Role& role, std::int64_t index);
// <kind> <namespace>/<name>, the subject of condition messages.
std::string subject(const Job& job);

}  // namespace skiff::training
