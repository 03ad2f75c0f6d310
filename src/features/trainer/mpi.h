// Runtimes with the policy `mpi`: a part `launcher`, whose container `node` runs mpirun, and a part
// `node`, whose pods wait for what mpirun starts in them.
//
// Hosts are <job>-node-0-<n>.<subdomain>; their pods have names that nobody knows before they are
// there. So the job has a ConfigMap that tells which pod is which host while it runs, and a role
// that lets the launcher start programs in these pods and in no others.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/kind.h"
#include "base/json.h"
#include "client/client.h"

namespace skiff::trainer {

inline constexpr std::string_view kLauncher = "launcher";
// On pods of such jobs, all of which the job looks at.
inline constexpr std::string_view kHostAnnotation = "trainer.skiff.dev/mpi";
// Each has a line in the host file.
inline constexpr std::int64_t kMostHosts = 10'000;

bool runs_mpi(const json::value& runtime);
// Whether the launcher is one of the nodes that train.
bool launcher_trains(const json::value& runtime);
// How many pods a part has, where the policy says it: `nodes` are wanted in all.
std::int64_t mpi_count(const json::value& runtime, std::string_view part, std::int64_t nodes);
// Processes of each node. `resources` are those that the container `node` will have.
std::int64_t mpi_slots(const json::value& runtime, const json::value& trainjob,
                       const json::value& resources);

// Files, variables and the account of a part, once it has all else.
void finish_mpi_part(const json::value& trainjob, std::int64_t slots, json::value& part);

// What a job has beside its JobSet, of which there may be none yet. `pods` are those of the JobSet.
std::vector<json::value> mpi_objects(const json::value& trainjob, const json::value& runtime,
                                     const json::value& jobset, std::span<const Object> pods);
// Kinds of these that nothing else of a TrainJob is: accounts, roles, role bindings.
std::vector<api::Resource> mpi_kinds();

}  // namespace skiff::trainer
