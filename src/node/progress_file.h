// The file of JSON lines in which a training program may tell how far it is.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "base/json.h"
#include "node/image.h"
#include "node/runtime.h"

namespace skiff::node {

// A replica of a training job, by its labels.
bool trains(const json::value& pod);
// The replica whose progress is taken for that of its job.
bool leads_training(const json::value& pod);

// worker-1 of a training job; empty for other pods.
std::string replica_shown(const json::value& pod);

// Where the file of a container lies on this machine.
std::string progress_file(const std::string& pod_folder, std::string_view container);
// Before each attempt: gives the container its file, which is not there yet, and tells it where;
// nothing where it says itself where it is.
std::expected<ContainerSpec, Refusal> mount_progress(ContainerSpec spec,
                                                     const std::string& pod_folder);

}  // namespace skiff::node
