// Which pods belong to a job, where jobs of several kinds may have the same name.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/meta.h"
#include "base/json.h"
#include "base/result.h"

namespace skiff::cli {

inline std::string owner_kind(const json::value& pod) {
  const json::object* owner = api::controller_of(pod);
  return owner == nullptr ? "" : std::string(json::get_string(json::value(*owner), {"kind"}));
}

// Pods that carry a job's name: `named` by the training engine's label, `in_set` by the one of a
// JobSet, which a TrainJob's pods have. `kind` is the job's; where it is empty and pods of several
// kinds are there, the error asks for it.
inline Result<std::vector<Object>> job_pods(std::vector<Object> named, std::vector<Object> in_set,
                                            std::string_view kind, std::string_view name) {
  if (kind == "TrainJob" || kind == "JobSet") return in_set;
  if (!kind.empty()) {
    std::erase_if(named, [&](const Object& pod) { return owner_kind(*pod) != kind; });
    return named;
  }
  std::set<std::string> kinds;
  for (const Object& pod : named) {
    // Of a job that was deleted without its pods.
    if (std::string owner = owner_kind(*pod); !owner.empty()) kinds.insert(std::move(owner));
  }
  if (!in_set.empty()) kinds.insert("JobSet");
  if (kinds.size() > 1) {
    return fail(Code::kBadRequest, fmt::format("{} is the name of jobs of several kinds ({}); "
                                               "name one of them as KIND/{}",
                                               name, fmt::join(kinds, ", "), name));
  }
  return named.empty() ? std::move(in_set) : std::move(named);
}

}  // namespace skiff::cli
