// The parts of a training job's schema that all kinds share.
//
// These structs say what may stand where, for the API server, `explain` and generated clients. The
// engine reads specs through Job (job.h), which points at templates instead of copying them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "schema/describe.h"

namespace skiff::training {

struct SchedulingPolicySpec {
  std::optional<std::int32_t> min_available = {};
  std::string queue = {};
  json::object min_resources = {};
  std::string priority_class = {};
  std::optional<std::int32_t> schedule_timeout = {};
};

struct RunPolicySpec {
  std::string clean_pods = {};
  std::optional<std::int32_t> ttl = {};
  std::optional<std::int64_t> active_deadline = {};
  std::optional<std::int32_t> backoff_limit = {};
  SchedulingPolicySpec scheduling = {};
  bool suspend = false;
  std::string managed_by = {};
};

struct ReplicaSpec {
  std::optional<std::int32_t> replicas = {};
  json::value pod_template = {};
  std::string restart = {};
};

struct ReplicaStatus {
  std::int32_t active = 0;
  std::int32_t succeeded = 0;
  std::int32_t failed = 0;
  json::object label_selector = {};
  std::string selector = {};
};

struct ReplicaHistoryStatus {
  std::string started = {};
  std::string succeeded = {};
  std::map<std::string, std::int64_t> attempts = {};
};

struct ConditionStatus {
  std::string type = {};
  std::string status = {};
  std::string reason = {};
  std::string message = {};
  std::optional<Time> last_update = {};
  std::optional<Time> last_transition = {};
};

struct ProgressStatus {
  std::optional<std::int64_t> step = {};
  std::optional<std::int64_t> total_steps = {};
  std::optional<std::int64_t> epoch = {};
  std::optional<std::int64_t> total_epochs = {};
  std::optional<std::int64_t> percent = {};
  std::map<std::string, std::string> metrics = {};
  std::string replica = {};
  std::optional<Time> first_step = {};
  std::optional<Time> last_update = {};
  std::optional<Time> estimated_completion = {};
};

struct JobStatus {
  std::vector<ConditionStatus> conditions = {};
  std::map<std::string, ReplicaStatus> replicas = {};
  std::optional<Time> start = {};
  std::optional<Time> completion = {};
  std::optional<Time> last_reconcile = {};
  std::int64_t restarts = 0;
  std::map<std::string, ReplicaHistoryStatus> history = {};
  ProgressStatus progress = {};
};

template <class V>
void describe(V& v, SchedulingPolicySpec& x) {
  v.field("minAvailable", x.min_available)
      .min(0)
      .doc("How many replicas must fit before any of them starts. All of them where absent.");
  v.field("queue", x.queue).doc("The queue the job waits in. It cannot change once set.");
  v.field("minResources", x.min_resources)
      .doc("Accepted, and not acted upon: what the pods ask for counts.");
  v.field("priorityClass", x.priority_class)
      .doc("The priority class of pods whose template names none.");
  v.field("scheduleTimeoutSeconds", x.schedule_timeout)
      .min(0)
      .doc("Accepted, and not acted upon: a group is placed at once or waits.");
}

template <class V>
void describe(V& v, RunPolicySpec& x) {
  v.field("cleanPodPolicy", x.clean_pods)
      .one_of({"None", "Running", "All"})
      .doc("Which pods are deleted when the job has ended. None where absent.");
  v.field("ttlSecondsAfterFinished", x.ttl)
      .min(0)
      .doc("How long the job is kept after its end. For ever where absent.");
  v.field("activeDeadlineSeconds", x.active_deadline)
      .min(0)
      .doc("How long the job may run, from its start or from when it was last resumed.");
  v.field("backoffLimit", x.backoff_limit)
      .min(0)
      .doc("How many replicas may be replaced before the job fails. Any number where absent.");
  v.field("schedulingPolicy", x.scheduling).doc("How the job's pods are placed together.");
  v.field("suspend", x.suspend)
      .fallback(false)
      .doc("While true the job has no pods. It starts anew when this turns false.");
  v.field("managedBy", x.managed_by)
      .doc("Who runs the job: kubeflow.org/training-operator or kueue.x-k8s.io/multikueue.");
}

template <class V>
void describe(V& v, ReplicaSpec& x) {
  v.field("replicas", x.replicas).min(0).doc("How many replicas the role has. 1 where absent.");
  v.field("template", x.pod_template)
      .definition("io.k8s.api.core.v1.PodTemplateSpec")
      .doc("The pod of each replica. Its restartPolicy is replaced by the role's.");
  v.field("restartPolicy", x.restart)
      .one_of({"Always", "OnFailure", "Never", "ExitCode"})
      .doc("What happens when a replica fails. Under ExitCode it is replaced from code 128 on.");
}

template <class V>
void describe(V& v, ReplicaStatus& x) {
  v.field("active", x.active).doc("Replicas that run.");
  v.field("succeeded", x.succeeded).doc("Replicas that are done.");
  v.field("failed", x.failed).doc("Replicas whose pod has failed.");
  v.field("labelSelector", x.label_selector).doc("No longer written; see selector.");
  v.field("selector", x.selector).doc("Selects the role's pods.");
}

template <class V>
void describe(V& v, ReplicaHistoryStatus& x) {
  v.field("started", x.started).doc("Indices whose present attempt has or had a pod: 0-3,7.");
  v.field("succeeded", x.succeeded).doc("Indices that are done and never run again.");
  v.field("attempts", x.attempts).doc("How often each index was replaced.");
}

template <class V>
void describe(V& v, ConditionStatus& x) {
  v.field("type", x.type)
      .required()
      .doc(
          "Created, Running, Restarting, Succeeded, Failed or "
          "Suspended.");
  v.field("status", x.status)
      .required()
      .one_of({"True", "False", "Unknown"})
      .doc("Whether the condition holds.");
  v.field("reason", x.reason).doc("One word for programs.");
  v.field("message", x.message).doc("One sentence for people.");
  v.field("lastUpdateTime", x.last_update).doc("When it was last written.");
  v.field("lastTransitionTime", x.last_transition).doc("When its status last changed.");
}

template <class V>
void describe(V& v, ProgressStatus& x) {
  v.field("step", x.step).doc("The step it is at; with epochs, that of the epoch or of all.");
  v.field("totalSteps", x.total_steps).doc("How many steps there are.");
  v.field("epoch", x.epoch).doc("The epoch it is at.");
  v.field("totalEpochs", x.total_epochs).doc("How many epochs there are.");
  v.field("percent", x.percent).doc("How much is done, where totals are known.");
  v.field("metrics", x.metrics).doc("The newest value of each metric, as the program wrote it.");
  v.field("replica", x.replica).doc("Who says so: worker-0.");
  v.field("firstStepTime", x.first_step).doc("When it first told a step or an epoch.");
  v.field("lastUpdateTime", x.last_update).doc("When it last told anything.");
  v.field("estimatedCompletionTime", x.estimated_completion)
      .doc("When it will be done at the present pace.");
}

template <class V>
void describe(V& v, JobStatus& x) {
  v.field("conditions", x.conditions).doc("What has happened, the newest last.");
  v.field("replicaStatuses", x.replicas).doc("How many replicas of each role are where.");
  v.field("startTime", x.start).doc("When the job was first taken up, or last resumed.");
  v.field("completionTime", x.completion).doc("When the job ended.");
  v.field("lastReconcileTime", x.last_reconcile).doc("No longer written.");
  v.field("restarts", x.restarts)
      .doc("How many replicas have been replaced so far; all of them together count once.");
  v.field("replicaHistory", x.history)
      .doc("What the job remembers of replicas whose pods may be gone.");
  v.field("progress", x.progress).doc("How far it is, as its programs tell it.");
}

}  // namespace skiff::training
