#include "features/training/engine/notes.h"

#include <fmt/format.h>

#include "features/training/engine/job_kind.h"

namespace skiff::training {

void note_objects(std::string_view reason, std::string_view verb, std::string_view noun,
                  const std::vector<std::string>& names, std::vector<control::Note>& notes) {
  if (names.size() > kSingleNotes) {
    notes.push_back({.reason = std::string(reason),
                     .message = fmt::format("{} {} {}s: {} to {}", verb, names.size(), noun,
                                            names.front(), names.back())});
    return;
  }
  for (const std::string& name : names) {
    notes.push_back(
        {.reason = std::string(reason), .message = fmt::format("{} {}: {}", verb, noun, name)});
  }
}

control::Note exit_note(const Job& job, std::string_view pod, std::int64_t code) {
  return {.reason = "ExitedWithCode",
          .message = fmt::format("Pod: {}.{} exited with code {}", job.ns, pod, code)};
}

control::Note deletion_note(const Job& job) {
  return {.reason = "SuccessfulDeleteJob", .message = fmt::format("Deleted job: {}", job.name)};
}

void note_template_policies(const Job& job, std::vector<control::Note>& notes) {
  for (const Role& role : job.roles) {
    const json::value* policy = json::find(*role.pod_template, {"spec", "restartPolicy"});
    if (policy == nullptr) continue;
    notes.push_back(
        {.warning = true,
         .reason = "SetPodTemplateRestartPolicy",
         .message = fmt::format("The restartPolicy in the pod template of {} is replaced by the "
                                "role's own: {}",
                                role.name, to_string(role.restart))});
  }
}

}  // namespace skiff::training
