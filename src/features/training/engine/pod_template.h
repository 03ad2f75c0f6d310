// Makes a replica's pod from the role's template.
#pragma once

#include <cstdint>

#include "base/json.h"
#include "features/training/engine/job.h"
#include "features/training/engine/job_kind.h"

namespace skiff::training {

// The list under the key, made where absent.
json::array& array_at(json::object& object, std::string_view key);

// What the pods of one plan share.
struct PodContext {
  const Job* job = nullptr;
  Environment environment = {};
  json::object owner = {};
  std::int64_t gang_min = 1;  // how many of the gang must fit before any starts
};

// `absent` replicas are done, or not to start yet: the gang does not wait for them.
PodContext pod_context(const Job& job, std::int64_t absent);

// The user's labels, annotations and finalizers stay; where a name of ours is already there, ours
// holds. The environment is appended, so that it wins over the user's.
json::value render_pod(const PodContext& context, const Role& role, std::int64_t index,
                       std::int64_t attempt);

}  // namespace skiff::training
