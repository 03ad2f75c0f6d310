// The labels and annotations that tie pods and services to a replica of a job.
#pragma once

#include <string_view>

namespace skiff::training {

// Upstream's labels: clients and scripts select by them.
inline constexpr std::string_view kOperatorLabel = "training.kubeflow.org/operator-name";
inline constexpr std::string_view kJobLabel = "training.kubeflow.org/job-name";
inline constexpr std::string_view kRoleLabel = "training.kubeflow.org/replica-type";
inline constexpr std::string_view kIndexLabel = "training.kubeflow.org/replica-index";
inline constexpr std::string_view kJobRoleLabel = "training.kubeflow.org/job-role";

// How often the replica had been replaced before this pod; absent on the first.
inline constexpr std::string_view kAttemptAnnotation = "training.skiff.dev/attempt";

// Read by the scheduler: pods of one gang are placed together or not at all.
inline constexpr std::string_view kGangAnnotation = "scheduling.skiff.dev/gang";
inline constexpr std::string_view kGangMinAnnotation = "scheduling.skiff.dev/gang-min";
// The queue that the job names; Volcano's word for it, which tools know.
inline constexpr std::string_view kQueueAnnotation = "scheduling.volcano.sh/queue-name";

// On a job, by its user: what a replica that fails takes with it. See restart_policy.h.
inline constexpr std::string_view kRestartAnnotation = "training.skiff.dev/restart";
inline constexpr std::string_view kRestartGang = "gang";        // all replicas start again
inline constexpr std::string_view kRestartReplica = "replica";  // it alone does, as where absent

}  // namespace skiff::training
