// The schema of a JobSet's status.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schema/describe.h"

namespace skiff::jobsets {

struct Condition {
  std::string type = {};
  std::string status = {};
  std::string reason = {};
  std::string message = {};
  std::optional<Time> last_transition = {};
  std::optional<std::int64_t> observed_generation = {};
};

struct ReplicatedJobStatus {
  std::string name = {};
  std::int32_t ready = 0;
  std::int32_t succeeded = 0;
  std::int32_t failed = 0;
  std::int32_t active = 0;
  std::int32_t suspended = 0;
};

struct JobSetStatus {
  std::vector<Condition> conditions = {};
  std::int32_t restarts = 0;
  std::int32_t restarts_counted = 0;
  std::string terminal_state = {};
  std::vector<ReplicatedJobStatus> jobs = {};
};

template <class V>
void describe(V& v, Condition& x) {
  v.field("type", x.type).required().doc("Completed, Failed, Suspended, RestartingJobSet, ...");
  v.field("status", x.status)
      .required()
      .one_of({"True", "False", "Unknown"})
      .doc("Whether the condition holds.");
  v.field("reason", x.reason).doc("One word for programs.");
  v.field("message", x.message).doc("One sentence for people.");
  v.field("lastTransitionTime", x.last_transition).doc("When its status last changed.");
  v.field("observedGeneration", x.observed_generation).doc("Of the spec that it was set for.");
}

template <class V>
void describe(V& v, ReplicatedJobStatus& x) {
  v.field("name", x.name).required().doc("The part.");
  v.field("ready", x.ready).required().doc("Jobs whose pods are all ready or done.");
  v.field("succeeded", x.succeeded).required().doc("Jobs that are done.");
  v.field("failed", x.failed).required().doc("Jobs that have failed.");
  v.field("active", x.active).required().doc("Jobs that have pods.");
  v.field("suspended", x.suspended).required().doc("Jobs that are suspended.");
}

template <class V>
void describe(V& v, JobSetStatus& x) {
  v.field("conditions", x.conditions).list_map({"type"}).doc("What has happened.");
  v.field("restarts", x.restarts).doc("How often the set was started anew.");
  v.field("restartsCountTowardsMax", x.restarts_counted)
      .doc("How many of these count for maxRestarts.");
  v.field("terminalState", x.terminal_state).doc("Completed or Failed, once it has ended.");
  v.field("replicatedJobsStatus", x.jobs)
      .list_map({"name"})
      .doc("How many jobs of each part are where.");
}

}  // namespace skiff::jobsets
