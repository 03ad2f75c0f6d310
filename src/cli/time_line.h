// The life of a training job as a time line, and where its time went. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/time.h"

namespace skiff::cli {

struct Milestone {
  Time at = {};
  std::string what = {};
};

// In the order of time. Of what happened often (restarts) the first and the latest few are told.
std::vector<Milestone> time_line(const json::value& job, const std::vector<Object>& pods,
                                 const std::vector<Object>& events);

struct Span {
  std::string what = {};
  Duration took = {};
  bool open = false;  // it is not over
};

// From its creation to its end, or until now, without gaps.
std::vector<Span> time_spent(const json::value& job, const std::vector<Object>& pods, Time now);

// Both as text; empty where the job has no time of creation.
std::string time_line_text(const json::value& job, const std::vector<Object>& pods,
                           const std::vector<Object>& events, Time now);

}  // namespace skiff::cli
