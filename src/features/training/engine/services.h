// The service that gives a replica its DNS name.
#pragma once

#include <cstdint>

#include "base/json.h"
#include "features/training/engine/job.h"

namespace skiff::training {

// The four labels that tie an object to its replica; also the service's selector.
json::object replica_labels(const Job& job, const Role& role, std::int64_t index);

// Headless, one per replica. It publishes addresses before the pod is ready: replicas look each
// other up while all of them start, and none may wait for the readiness of another.
json::value render_service(const Job& job, const Role& role, std::int64_t index);

}  // namespace skiff::training
