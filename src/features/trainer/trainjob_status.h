// The schema of a TrainJob's status.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schema/describe.h"

namespace skiff::trainer {

struct Condition {
  std::string type = {};
  std::string status = {};
  std::string reason = {};
  std::string message = {};
  std::optional<Time> last_transition = {};
  std::optional<std::int64_t> observed_generation = {};
};

struct PartStatus {
  std::string name = {};
  std::int32_t ready = 0;
  std::int32_t succeeded = 0;
  std::int32_t failed = 0;
  std::int32_t active = 0;
  std::int32_t suspended = 0;
};

struct Metric {
  std::string name = {};
  std::string value = {};
};

struct TrainerStatus {
  std::optional<std::int32_t> progress = {};
  std::optional<std::int32_t> remaining = {};
  std::vector<Metric> metrics = {};
  std::optional<Time> updated = {};
};

struct TrainJobStatus {
  std::vector<Condition> conditions = {};
  std::vector<PartStatus> jobs = {};
  TrainerStatus trainer = {};
};

template <class V>
void describe(V& v, Condition& x) {
  v.field("type", x.type).required().doc("Suspended, Complete or Failed.");
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
void describe(V& v, PartStatus& x) {
  v.field("name", x.name).required().length(1, 253).doc("The part: node, dataset-initializer, ...");
  v.field("ready", x.ready).required().min(0).doc("Jobs whose pods are all ready or done.");
  v.field("succeeded", x.succeeded).required().min(0).doc("Jobs that are done.");
  v.field("failed", x.failed).required().min(0).doc("Jobs that have failed.");
  v.field("active", x.active).required().min(0).doc("Jobs that have pods.");
  v.field("suspended", x.suspended).required().min(0).doc("Jobs that are suspended.");
}

template <class V>
void describe(V& v, Metric& x) {
  v.field("name", x.name).required().length(1, 64).doc("loss, accuracy, ...");
  v.field("value", x.value).required().length(1, 64).doc("A number, as text.");
}

template <class V>
void describe(V& v, TrainerStatus& x) {
  v.field("progressPercentage", x.progress).min(0).max(100).doc("How far the training is.");
  v.field("estimatedRemainingSeconds", x.remaining).min(0).doc("How long it still takes.");
  v.field("metrics", x.metrics).items(0, 256).doc("What the training measures of itself.");
  v.field("lastUpdatedTime", x.updated).required().doc("When this was told.");
}

template <class V>
void describe(V& v, TrainJobStatus& x) {
  v.field("conditions", x.conditions).items(0, 8).list_map({"type"}).doc("What has happened.");
  v.field("jobsStatus", x.jobs).items(0, 100).list_map({"name"}).doc("The parts of its JobSet.");
  v.field("trainerStatus", x.trainer).doc("What the training tells of itself.");
}

}  // namespace skiff::trainer
