// The API server of a simulated world, which can die and come back.
#pragma once

#include <cstdint>
#include <memory>

#include "client/client.h"
#include "env/env.h"
#include "sim/workload.h"

namespace skiff::sim {

class Backend {
 public:
  virtual ~Backend() = default;

  virtual client::Client& client() = 0;
  // Garbage collection and everything else the server does by itself, until nothing is left.
  virtual void work() = 0;
  // Writes to disk what is waiting.
  virtual void flush() = 0;
  // Everything committed has been flushed, so people and nodes may hear of it.
  virtual bool safe() = 0;
  // Whoever wrote up to this revision was told that no power cut will undo it.
  virtual std::uint64_t promised() = 0;
  // The process dies and starts again from what is on disk; after a power cut, from what is synced.
  // Ends every watch: none may be left open.
  virtual void restart(bool power_cut) = 0;
};

// The real store and API server on a simulated disk, with the built-in kinds and the workload's.
std::unique_ptr<Backend> make_backend(const Workload& workload, const env::Clock& clock,
                                      std::uint64_t seed);

}  // namespace skiff::sim
