// The schema of a JobSet's spec, as jobset.x-k8s.io/v1alpha2 has it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schema/describe.h"

namespace skiff::jobsets {

struct DependsOn {
  std::string name = {};
  std::string status = {};
};

struct ReplicatedJob {
  std::string name = {};
  std::string group = {};
  json::value job_template = {};
  std::int32_t replicas = 1;
  std::vector<DependsOn> depends_on = {};
};

struct Network {
  std::optional<bool> hostnames = {};
  std::string subdomain = {};
  std::optional<bool> not_ready = {};
};

struct SuccessPolicy {
  std::string op = {};
  std::vector<std::string> targets = {};
};

struct FailureRule {
  std::string name = {};
  std::string action = {};
  std::vector<std::string> reasons = {};
  std::vector<std::string> patterns = {};
  std::vector<std::string> targets = {};
};

struct FailurePolicy {
  std::int32_t max_restarts = 0;
  std::string strategy = {};
  std::vector<FailureRule> rules = {};
};

struct StartupPolicy {
  std::string order = {};
};

struct Coordinator {
  std::string job = {};
  std::int64_t job_index = 0;
  std::int64_t pod_index = 0;
};

struct ClaimRetention {
  std::string when_deleted = {};
};

struct ClaimPolicy {
  std::vector<json::value> templates = {};
  ClaimRetention retention = {};
};

struct JobSetSpec {
  std::vector<ReplicatedJob> jobs = {};
  Network network = {};
  SuccessPolicy success = {};
  FailurePolicy failure = {};
  StartupPolicy startup = {};
  bool suspend = false;
  Coordinator coordinator = {};
  std::string managed_by = {};
  std::optional<std::int32_t> ttl = {};
  std::vector<ClaimPolicy> claims = {};
};

template <class V>
void describe(V& v, DependsOn& x) {
  v.field("name", x.name).required().doc("A replicated job that is listed before this one.");
  v.field("status", x.status)
      .required()
      .one_of({"Ready", "Complete"})
      .doc("What it must have reached before this one starts.");
}

template <class V>
void describe(V& v, ReplicatedJob& x) {
  v.field("name", x.name).required().doc("The name of this part; its jobs are called after it.");
  v.field("groupName", x.group).fallback("default").doc("The group that its jobs are counted in.");
  v.field("template", x.job_template)
      .required()
      .definition("io.k8s.api.batch.v1.JobTemplateSpec")
      .doc("The Job of each replica.");
  v.field("replicas", x.replicas).min(0).fallback(1).doc("How many Jobs are made of the template.");
  v.field("dependsOn", x.depends_on)
      .items(0, 5)
      .list_map({"name"})
      .doc("What must have been reached before these jobs start.");
}

template <class V>
void describe(V& v, Network& x) {
  v.field("enableDNSHostnames", x.hostnames)
      .doc("Whether pods have names: <jobset>-<job>-<index>-<pod>.<subdomain>. True where absent.");
  v.field("subdomain", x.subdomain).doc("The set's headless service; the set's name where absent.");
  v.field("publishNotReadyAddresses", x.not_ready)
      .doc("Whether names are there before pods are ready. True where absent.");
}

template <class V>
void describe(V& v, SuccessPolicy& x) {
  v.field("operator", x.op)
      .required()
      .one_of({"All", "Any"})
      .doc("Whether all jobs must succeed, or one of them.");
  v.field("targetReplicatedJobs", x.targets).doc("The parts that count; all of them where empty.");
}

template <class V>
void describe(V& v, FailureRule& x) {
  v.field("name", x.name).doc("Told when the rule is applied; failurePolicyRule<n> where absent.");
  v.field("action", x.action)
      .required()
      .one_of({"FailJobSet", "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts", "RestartJob",
               "RestartJobAndIgnoreMaxRestarts"})
      .doc("What is done when the rule fits.");
  v.field("onJobFailureReasons", x.reasons).doc("Reasons of failed jobs; any where empty.");
  v.field("onJobFailureMessagePatterns", x.patterns)
      .doc("Patterns (RE2) of messages of failed jobs; any where empty.");
  v.field("targetReplicatedJobs", x.targets).doc("The parts it is about; all where empty.");
}

template <class V>
void describe(V& v, FailurePolicy& x) {
  v.field("maxRestarts", x.max_restarts).doc("How often the set is started anew before it fails.");
  v.field("restartStrategy", x.strategy)
      .one_of({"Recreate", "BlockingRecreate", "InPlaceRestart"})
      .fallback("Recreate")
      .doc("BlockingRecreate: no job is made before all of the last attempt are gone.");
  v.field("rules", x.rules).doc("The first that fits a failed job counts; else RestartJobSet.");
}

template <class V>
void describe(V& v, StartupPolicy& x) {
  v.field("startupPolicyOrder", x.order)
      .required()
      .one_of({"AnyOrder", "InOrder"})
      .doc("InOrder: a part starts when those before it are ready.");
}

template <class V>
void describe(V& v, Coordinator& x) {
  v.field("replicatedJob", x.job).required().doc("The part that the coordinator belongs to.");
  v.field("jobIndex", x.job_index).doc("Which of its jobs.");
  v.field("podIndex", x.pod_index).doc("Which pod of that job.");
}

template <class V>
void describe(V& v, ClaimRetention& x) {
  v.field("whenDeleted", x.when_deleted)
      .one_of({"Delete", "Retain"})
      .fallback("Delete")
      .doc("What becomes of the claims when the set is deleted.");
}

template <class V>
void describe(V& v, ClaimPolicy& x) {
  v.field("templates", x.templates).items(0, 50).doc("Claims that the set's pods share.");
  v.field("retentionPolicy", x.retention).doc("How long they are kept.");
}

template <class V>
void describe(V& v, JobSetSpec& x) {
  v.field("replicatedJobs", x.jobs).list_map({"name"}).doc("The parts of the set.");
  v.field("network", x.network).doc("How its pods find each other.");
  v.field("successPolicy", x.success).doc("When the set is complete: All jobs where absent.");
  v.field("failurePolicy", x.failure)
      .doc("What happens when a job fails. Where absent the set fails with it.");
  v.field("startupPolicy", x.startup).doc("In what order the parts start. See also dependsOn.");
  v.field("suspend", x.suspend).doc("While true its jobs have no pods.");
  v.field("coordinator", x.coordinator).doc("A pod that all others are told the name of.");
  v.field("managedBy", x.managed_by).doc("Who runs the set; Skiff does where absent.");
  v.field("ttlSecondsAfterFinished", x.ttl)
      .min(0)
      .doc("How long the set is kept after its end. For ever where absent.");
  v.field("volumeClaimPolicies", x.claims).items(0, 50).doc("Volumes that its pods share.");
}

}  // namespace skiff::jobsets
