// For tests of the simulator: an API server with a known mistake, to show that somebody notices.
#pragma once

#include <memory>

#include "sim/backend.h"

namespace skiff::sim {

enum class Flaw {
  kNone,
  kNoGarbageCollection,  // children of what is gone stay
  kHalfTransactions,     // of several bindings only the first is made, and all are acknowledged
  kCrowdedNode,          // every pod is bound to the same node
  kRevisionsGoBack,      // lists tell of earlier revisions now and then
  kLostEvents,           // watches leave out an event now and then
  kNeverWrites,          // says that everything is on disk and writes nothing
  kLazySync,             // writes everything and syncs nothing
};

std::unique_ptr<Backend> make_broken_backend(Flaw flaw, const Workload& workload,
                                             const env::Clock& clock, std::uint64_t seed);

}  // namespace skiff::sim
