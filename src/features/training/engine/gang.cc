#include "features/training/engine/gang.h"

#include <algorithm>
#include <string>

#include "api/meta.h"
#include "features/training/engine/labels.h"
#include "features/training/engine/plan.h"

namespace skiff::training {
namespace {

// The least number of pods that the job can train with.
std::int64_t least_replicas(const Job& job) {
  const Role* workers = job.role("Worker");
  const auto least = json::get_int(job.spec(), {"elasticPolicy", "minReplicas"});
  if (workers == nullptr || !least || *least >= workers->replicas) return job.replicas();
  return job.replicas() - workers->replicas + std::max<std::int64_t>(*least, 0);
}

client::Write told(const json::value& pod, const std::string& number) {
  return {.verb = client::Verb::kMergePatch,
          .resource = pod_resource(),
          .ns = std::string(api::ns(pod)),
          .name = std::string(api::name(pod)),
          .body = json::object{{"metadata",
                                {{"annotations", json::object{{kGangMinAnnotation, number}}}}}},
          .uid = std::string(api::uid(pod))};
}

}  // namespace

std::int64_t gang_min(const Job& job, std::int64_t absent) {
  const std::int64_t wanted = job.run.min_available.value_or(least_replicas(job));
  if (wanted > job.replicas()) return wanted;
  // A replica that is done takes no place any more: were it counted, the replacement of another
  // would wait for it for ever.
  return std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(job.replicas() - absent, 1));
}

void refresh_gang(Draft& draft, std::int64_t absent,
                  const std::vector<const json::value*>& waiting) {
  const std::string number = std::to_string(gang_min(draft.job, absent));
  for (const json::value* pod : waiting) {
    if (api::annotation(*pod, kGangMinAnnotation) == number) continue;
    draft.plan.writes.push_back(told(*pod, number));
  }
}

}  // namespace skiff::training
