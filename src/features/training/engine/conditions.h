// The conditions of a job's status: in what order they stand and how one displaces another.
//
// The newest stands last, which is what `kubectl get` shows as the state.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/time.h"
#include "features/training/engine/job.h"

namespace skiff::training {

inline constexpr std::string_view kCreated = "Created";
inline constexpr std::string_view kRunning = "Running";
inline constexpr std::string_view kRestarting = "Restarting";
inline constexpr std::string_view kSucceeded = "Succeeded";
inline constexpr std::string_view kFailed = "Failed";
inline constexpr std::string_view kSuspended = "Suspended";

struct Condition {
  std::string_view type = {};
  bool status = true;
  std::string reason = {};
  std::string message = {};
};

// Does nothing once the job has failed, and nothing where status and reason stay the same.
void set_condition(json::object& status, const Condition& condition, Time now);
bool has_condition(const json::object& status, std::string_view type, bool value = true);
bool finished(const json::object& status);
// The reason a condition of this kind carries: TFJobRunning.
std::string condition_reason(const Job& job, std::string_view word);

}  // namespace skiff::training
