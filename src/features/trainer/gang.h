// Which pods of a TrainJob are placed as one: those that run at the same time.
#pragma once

#include "base/json.h"

namespace skiff::trainer {

// Marks pods of the JobSet's parts as a gang: of the part that trains; of an MPI's nodes and its
// launcher; with a podGroupPolicy of all parts that run beside them. A part that another waits for
// is not one of its gang, nor is one that starts later: waiting for both would be for ever.
// An MPI's launcher no longer waits for its nodes to be Ready where they have no probes, but for
// what they wait for: it is in their gang.
// The number is of all that the JobSet makes. Their Jobs tell their pods a smaller one when some
// are done or are scaled away (features/workloads/job_gang.h), for which each learns its share
// here. `spec` is the JobSet's, with all else in it.
void form_gang(const json::value& trainjob, const json::value& runtime, json::object& spec);

}  // namespace skiff::trainer
