#include "features/training/engine/abnormal_pods.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "api/meta.h"
#include "features/training/engine/notes.h"

namespace skiff::training {
namespace {

// Every pod goes through these; they are no trouble.
bool is_starting(std::string_view reason) {
  return reason.empty() || reason == "ContainerCreating" || reason == "PodInitializing";
}

bool note_container(std::string_view pod, const json::value& status,
                    std::vector<control::Note>& notes) {
  const std::string_view container = json::get_string(status, {"name"});
  const std::string_view waits = json::get_string(status, {"state", "waiting", "reason"});
  if (!is_starting(waits)) {
    notes.push_back(
        {.warning = true,
         .reason = std::string(waits),
         .message = fmt::format("Error pod {} container {} waiting message: {}", pod, container,
                                json::get_string(status, {"state", "waiting", "message"}))});
    return true;
  }
  const std::int64_t code = json::get_int(status, {"state", "terminated", "exitCode"}).value_or(0);
  if (code == 0) return false;
  notes.push_back(
      {.warning = true,
       .reason = std::string(json::get_string(status, {"state", "terminated", "reason"}, "Error")),
       .message = fmt::format("Error pod {} container {} exitCode: {} terminated message: {}", pod,
                              container, code,
                              json::get_string(status, {"state", "terminated", "message"}))});
  return true;
}

void note_unplaced(std::string_view name, const json::value& pod,
                   std::vector<control::Note>& notes) {
  for (const json::value& condition : json::get_array(pod, {"status", "conditions"})) {
    if (json::get_string(condition, {"type"}) != "PodScheduled") continue;
    if (json::get_string(condition, {"status"}) != "False") continue;
    notes.push_back({.warning = true,
                     .reason = std::string(json::get_string(condition, {"reason"})),
                     .message = fmt::format("Error pod {} condition message: {}", name,
                                            json::get_string(condition, {"message"}))});
  }
}

void note_pod(const json::value& pod, std::vector<control::Note>& notes) {
  const std::string_view name = api::name(pod);
  bool noted = false;
  for (const std::string_view list : {"initContainerStatuses", "containerStatuses"}) {
    for (const json::value& status : json::get_array(pod, {"status", list})) {
      noted = note_container(name, status, notes) || noted;
    }
  }
  if (!noted) note_unplaced(name, pod, notes);
}

}  // namespace

std::vector<control::Note> abnormal_notes(const Replicas& replicas) {
  std::size_t pods = 0;
  for (const RoleSlots& role : replicas.roles) pods += role.slots.size();
  std::vector<control::Note> notes;
  for (const RoleSlots& role : replicas.roles) {
    for (const Slot& slot : role.slots) {
      if (notes.size() >= kSingleNotes) return notes;
      if (slot.pod.object == nullptr || slot.pod.deleting) continue;
      const bool looks = slot.pod.phase == Phase::kPending ||
                         (slot.pod.phase == Phase::kRunning && pods <= kClosePods);
      if (looks) note_pod(*slot.pod.object, notes);
    }
  }
  return notes;
}

}  // namespace skiff::training
