// What a framework adds to the pods that train: variables by which the nodes find each other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace skiff::trainer {

inline constexpr std::int64_t kPort = 29500;

struct Placement {
  std::string job = {};   // the TrainJob
  std::string part = {};  // the part of the runtime that trains: node
  std::string subdomain = {};
  std::int64_t nodes = 1;
};

// A framework that the runtime names in its mlPolicy: torch, jax, xgboost, mpi; empty: none.
std::string_view framework_of(const json::value& runtime);

// The variables for the container `node`, or for others that the runtime names. `resources` are
// those that the container will have.
json::array environment(const json::value& runtime, const json::value& trainjob,
                        const Placement& placement, const json::value& resources);

// How many processes torchrun starts in each node: a number, or auto, where it counts the GPUs.
std::string processes_of(const json::value& runtime, const json::value& trainjob,
                         const json::value& resources);
// How many the job itself asks for, as a number or as text; none where it leaves that open (auto).
std::optional<std::int64_t> asked_processes(const json::value& trainjob,
                                            const json::value& resources);
// What is a whole number and nothing else.
std::optional<std::int64_t> whole_number(std::string_view text);
// The name by which others find the first node.
std::string first_node(const Placement& placement);

// How many GPUs these resources of a container ask for.
std::int64_t gpus_of(const json::value& resources);

// Names of variables that a job may not set itself.
bool reserved(std::string_view framework, std::string_view variable);

}  // namespace skiff::trainer
