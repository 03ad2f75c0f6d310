// The events that tell a job's story, with upstream's reasons.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "control/controller.h"
#include "features/training/engine/job.h"

namespace skiff::training {

// What a plan creates or deletes, told as one event an object while that is readable and as one
// event in all beyond it: a job of ten thousand replicas must not write forty thousand events.
inline constexpr std::size_t kSingleNotes = 20;
void note_objects(std::string_view reason, std::string_view verb, std::string_view noun,
                  const std::vector<std::string>& names, std::vector<control::Note>& notes);

control::Note exit_note(const Job& job, std::string_view pod, std::int64_t code);
// The job itself goes: its time after the end is over.
control::Note deletion_note(const Job& job);
// A template that sets a restart policy of its own, which the role's replaces.
void note_template_policies(const Job& job, std::vector<control::Note>& notes);

}  // namespace skiff::training
