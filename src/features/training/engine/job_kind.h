// What distinguishes one framework's job from another's: data and a few pure functions.
//
// Everything else (restarts, limits, clean-up, conditions) is the engine's and the same for all. A
// new framework is one folder under kinds/ that fills in this struct, and one line in
// kinds/kinds.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/kind.h"
#include "base/json.h"
#include "base/result.h"
#include "features/training/engine/job.h"
#include "schema/schema.h"

namespace skiff::training {

struct EnvVar {
  std::string name = {};
  std::string value = {};
  std::string field = {};  // path of a field of the pod that gives the value: status.podIP

  bool operator==(const EnvVar&) const = default;
};

// The environment of one replica. Made once per plan, so that what all replicas share (the list of
// hosts) is put together once and not once for each of them.
using Environment = std::function<std::vector<EnvVar>(const Role&, std::int64_t index)>;

// How many replicas of a role are where; what a kind judges a job by.
struct RoleState {
  const Role* role = nullptr;
  std::int64_t running = 0;
  std::int64_t succeeded = 0;    // now or earlier: a success is remembered when its pod is gone
  bool first_succeeded = false;  // the replica with index 0
};

struct Verdict {
  bool succeeded = false;
  bool running = false;

  bool operator==(const Verdict&) const = default;
};

// A version of the API from before the one that is kept: a view, which loses nothing either way.
struct OldVersion {
  std::string version = {};
  schema::Schema (*spec_schema)() = nullptr;
  void (*to_kept)(json::value& object) = nullptr;
  void (*from_kept)(json::value& object) = nullptr;
};

struct JobKind {
  api::Resource resource = {};
  std::string singular = {};
  std::string controller = {};               // component of events, and the operator-name label
  std::string replicas_field = {};           // key of the replica map in spec
  std::vector<std::string_view> roles = {};  // pods are made in this order
  std::string container = {};                // the container that trains
  std::string port_name = {};
  std::int64_t port = 0;
  RestartPolicy restart = RestartPolicy::kNever;
  bool env_in_every_container = false;  // else only in `container`
  bool roles_in_any_case = false;       // validation admits `worker` for Worker
  bool scales = false;  // has a scale endpoint for its workers, and tells their selector

  std::vector<OldVersion> old_versions = {};

  schema::Schema (*spec_schema)() = nullptr;
  Environment (*environment)(const Job& job) = nullptr;
  // Whether this replica carries the label job-role=master.
  bool (*is_master)(const Job& job, const Role& role, std::int64_t index) = nullptr;
  Verdict (*judge)(const Job& job, std::span<const RoleState> roles) = nullptr;
  // Whether a replica of this role may fail for good without failing the job. Null: none may.
  bool (*tolerates_failure)(const Job& job, const Role& role) = nullptr;
  // Rules of this kind alone, after the shared ones. Null: there are none.
  void (*validate)(const json::value& object, std::vector<Cause>& causes) = nullptr;
};

}  // namespace skiff::training
