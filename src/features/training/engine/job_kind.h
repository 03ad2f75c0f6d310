// What distinguishes one framework's job from another's: data and a few pure functions.
//
// Everything else (restarts, limits, clean-up, conditions) is the engine's and the same for all. A
// new framework is one folder under kinds/ that fills in this struct, and one line in
// kinds/kinds.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/kind.h"
#include "base/json.h"
#include "base/result.h"
#include "features/training/engine/job.h"
#include "features/training/engine/replicas.h"
#include "schema/schema.h"

namespace skiff::training {

struct EnvVar {
  std::string name = {};
  std::string value = {};
  std::string field = {};  // path of a field of the pod that gives the value: status.podIP
  bool yields = false;     // to a variable of that name which the template has

  bool operator==(const EnvVar&) const = default;
};

// The environment of one replica. Made once per plan, so that what all replicas share (the list of
// hosts) is put together once and not once for each of them.
using Environment = std::function<std::vector<EnvVar>(const Role&, std::int64_t index)>;

// How many replicas of a role are where; what a kind judges a job by.
struct RoleState {
  const Role* role = nullptr;
  std::int64_t running = 0;
  std::int64_t ready = 0;        // counted only for kinds that hold replicas back
  std::int64_t failed = 0;       // for good
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
  bool deprecated = true;  // writers are told to use the kept one
  // The rules for objects written in this version, which are seen as they are kept. Null: those of
  // the kept one.
  std::vector<Cause> (*validate)(const json::value& object,
                                 const api::Admission& context) = nullptr;
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
  CleanPodPolicy clean_pods = CleanPodPolicy::kNone;  // where the job does not say
  std::optional<std::int64_t> backoff_limit = {};     // likewise
  std::string_view manager = {};          // a managedBy that means us, beside the shared one
  std::string_view unnumbered_role = {};  // has one replica, named after the role alone
  std::string_view kept_role = {};  // no clean-up takes its ended pods: they hold the job's log
  std::string_view evictable_role = {};  // one evicted pod of it ends the job, whatever else
  bool any_container = false;            // where none is named `container`, the first trains
  bool replica_services = true;          // each replica has a service of its own
  bool env_in_every_container = false;   // else only in `container`
  bool roles_in_any_case = false;        // validation admits `worker` for Worker
  bool scales = false;  // has a scale endpoint for its workers, and tells their selector

  std::vector<OldVersion> old_versions = {};
  // What its jobs have beside pods and services (companions.h).
  std::vector<api::Resource> companion_kinds = {};

  schema::Schema (*spec_schema)() = nullptr;
  Environment (*environment)(const Job& job) = nullptr;
  // Whether this replica carries the label job-role=master.
  bool (*is_master)(const Job& job, const Role& role, std::int64_t index) = nullptr;
  Verdict (*judge)(const Job& job, std::span<const RoleState> roles) = nullptr;
  // Whether a replica of this role may fail for good without failing the job. Null: none may.
  bool (*tolerates_failure)(const Job& job, const Role& role) = nullptr;
  // A role's restart policy where it does not say. Null: `restart`.
  RestartPolicy (*default_restart)(const json::value& root, std::string_view role) = nullptr;
  // The objects this job should have beside its pods, without owners. Null: none.
  std::vector<json::value> (*companions)(const Job& job, const Replicas& replicas) = nullptr;
  // The last word on a replica's pod. Null: the template and the environment are all.
  void (*finish_pod)(const Job& job, const Role& role, json::object& pod) = nullptr;
  // Whether replicas of this role must not start yet. Null: all start at once.
  bool (*holds_back)(const Job& job, const Role& role, std::span<const RoleState> roles) = nullptr;
  // Rules of this kind alone, after the shared ones. Null: there are none.
  void (*validate)(const json::value& object, std::vector<Cause>& causes) = nullptr;
  // What a user should be told about a good object. Null: nothing.
  std::vector<std::string> (*warnings)(const json::value& object) = nullptr;
};

}  // namespace skiff::training
