#include "features/training/engine/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/time.h"
#include "features/training/engine/job_kind.h"

namespace skiff::training {
namespace {

// Anybody may write an annotation: of what it says only what has the right form is taken.
json::object checked(const json::value& told) {
  json::object out;
  for (const std::string_view field : {"step", "totalSteps", "epoch", "totalEpochs", "percent"}) {
    if (const auto value = json::get_int(told, {field}); value && *value >= 0) out[field] = *value;
  }
  json::object metrics;
  for (const auto& [name, value] : json::get_object(told, {"metrics"})) {
    if (value.is_string()) metrics[name] = value;
  }
  if (!metrics.empty()) out["metrics"] = std::move(metrics);
  for (const std::string_view field :
       {"firstStepTime", "lastUpdateTime", "estimatedCompletionTime"}) {
    const std::string_view text = json::get_string(told, {field});
    if (parse_time(text)) out[field] = json::string(text);
  }
  return out;
}

json::object progress_of(const Job& job, const RoleSlots& role, std::size_t index) {
  const json::value* pod = role.slots[index].pod.object;
  if (pod == nullptr) return {};
  const std::string_view text =
      json::get_string(*pod, {"metadata", "annotations", kProgressAnnotation});
  if (text.empty()) return {};
  const auto parsed = json::parse(text);
  if (!parsed || !parsed->is_object()) return {};
  const json::object& all = parsed->get_object();
  const json::value* told = all.if_contains(job.kind->container);
  if (told == nullptr && !all.empty()) told = &all.begin()->value();
  if (told == nullptr) return {};
  json::object out = checked(*told);
  if (!out.empty()) out["replica"] = fmt::format("{}-{}", role.role->lower, index);
  return out;
}

// A program that is started again makes a first step again; the job made its first one only once.
void keep_first_step(const json::object& status, json::object& told) {
  const json::value* kept = json::find(status, {"progress", "firstStepTime"});
  if (kept == nullptr || !kept->is_string()) return;
  const auto before = parse_time(json::view(kept->get_string()));
  if (!before) return;
  const json::value* said = told.if_contains("firstStepTime");
  const auto now =
      said == nullptr ? std::optional<Time>() : parse_time(json::view(said->get_string()));
  if (!now || *before < *now) told["firstStepTime"] = *kept;
}

// Lower speaks first.
int turn(const Job& job, const Role& role) {
  if (job.kind->is_master != nullptr && job.kind->is_master(job, role, 0)) return 0;
  if (role.name == "Launcher") return 0;  // of an MPIJob: what its workers print comes out there
  return role.name == "Worker" ? 1 : 2;
}

}  // namespace

void take_progress(Draft& draft) {
  for (int now = 0; now <= 2; ++now) {
    for (const RoleSlots& role : draft.replicas.roles) {
      if (turn(draft.job, *role.role) != now) continue;
      const std::size_t asked = std::min(role.slots.size(), kProgressReplicas);
      for (std::size_t i = 0; i < asked; ++i) {
        json::object told = progress_of(draft.job, role, i);
        if (told.empty()) continue;
        keep_first_step(draft.status, told);
        draft.status["progress"] = std::move(told);
        return;
      }
    }
  }
}

}  // namespace skiff::training
