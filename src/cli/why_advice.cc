#include "cli/why_advice.h"

#include <fmt/format.h>

#include "api/meta.h"
#include "cli/progress_text.h"

namespace skiff::cli {
namespace {

struct Rule {
  std::string_view says = {};  // the reason holds these words
  std::string_view advice = {};
};

// The first that fits.
constexpr Rule kRules[] = {
    {"exceeded quota",
     "The namespace has used up its quota. See: skiff get resourcequota; raise it, ask for less, "
     "or "
     "wait until other pods end"},
    {"Insufficient nvidia.com/gpu",
     "Ask for fewer GPUs or fewer replicas, or wait until others end. See: skiff top nodes"},
    {"Insufficient",
     "Ask for less (resources.requests) or for fewer replicas, or wait until other pods end. See: "
     "skiff top nodes; skiff get pods -A"},
    {"persistentvolumeclaim",
     "Make the claim, or see why it waits: skiff get pvc; skiff describe pvc NAME"},
    {"PersistentVolumeClaims",
     "Make the claim, or see why it waits: skiff get pvc; skiff describe pvc NAME"},
    {"untolerated taint", "Tolerate the taint in the pod's template, or take it off the node"},
    {"didn't match", "Loosen nodeSelector or affinity of the template, or label a node"},
    {"pods together and",
     "The others are being made; look again in a moment. Where none come, minAvailable asks for "
     "more than there are"},
    {"ErrImagePull",
     "Fetch it (skiff image pull NAME), load it (skiff image load FILE), or say what it means on "
     "this machine (skiff image map NAME --host)"},
    {"ImagePullBackOff",
     "Fetch it (skiff image pull NAME), load it (skiff image load FILE), or say what it means on "
     "this machine (skiff image map NAME --host)"},
    {"ErrImageNeverPull", "imagePullPolicy is Never: load it first (skiff image load FILE)"},
    {"CreateContainerConfigError",
     "Make the ConfigMap or Secret that is named, or correct its key"},
    {"CrashLoopBackOff", "It is started again after a pause that doubles, up to five minutes"},
    {"reached the specified backoff limit",
     "spec.runPolicy.backoffLimit says how many replicas may be replaced; mend what ends them, or "
     "raise it"},
    {"active longer than specified deadline",
     "spec.runPolicy.activeDeadlineSeconds was over; raise it, or resume from a checkpoint"},
};

constexpr std::chrono::minutes kLogSilence{10};

}  // namespace

std::string advice(std::string_view reason) {
  for (const Rule& rule : kRules) {
    if (reason.contains(rule.says)) return std::string(rule.advice);
  }
  return {};
}

std::vector<std::string> job_remarks(const json::value& job, Time now) {
  std::vector<std::string> out;
  const std::string_view manager = json::get_string(job, {"spec", "runPolicy", "managedBy"});
  if (!manager.empty() && manager != "kubeflow.org/training-operator") {
    out.push_back(fmt::format(
        "spec.runPolicy.managedBy says that {} runs it: this Skiff leaves it alone", manager));
  }
  const auto limit = json::get_int(job, {"spec", "runPolicy", "activeDeadlineSeconds"});
  const auto start = parse_time(json::get_string(job, {"status", "startTime"}));
  if (limit && start && *limit < 1'000'000'000) {
    const Time end = *start + std::chrono::seconds(*limit);
    if (end > now) {
      out.push_back(fmt::format("It has {} left until its deadline (activeDeadlineSeconds {})",
                                age(end - now), *limit));
    }
  }
  const std::string progress = progress_text(job, now);
  if (!progress.empty()) out.push_back("It is at " + progress);
  const auto heard = parse_time(json::get_string(job, {"status", "progress", "lastUpdateTime"}));
  if (heard && now - *heard > kLogSilence) {
    out.push_back(
        fmt::format("Its programs have said nothing about their progress for {}; see: skiff logs "
                    "{}/{} --all --tail 5 -n {}",
                    age(now - *heard), api::kind(job), api::name(job), api::ns(job)));
  }
  return out;
}

}  // namespace skiff::cli
