// The embedded platform without network and node agent: store, API server, controllers and
// scheduler on one loop, the garbage collector beside it, as assembly/platform.cc puts them
// together. Its folder is fresh, its disk is real.
#pragma once

#include <memory>
#include <string>

#include "apiserver/server.h"
#include "assembly/controller_metrics.h"
#include "assembly/features.h"
#include "assembly/loop.h"
#include "assembly/upkeep.h"
#include "client/local/local_client.h"
#include "control/runtime.h"
#include "env/posix/clock.h"
#include "schema/registry.h"
#include "store/store.h"

namespace skiff::bench {

class EmbeddedWorld {
 public:
  explicit EmbeddedWorld(const std::string& folder);
  ~EmbeddedWorld();
  EmbeddedWorld(const EmbeddedWorld&) = delete;
  EmbeddedWorld& operator=(const EmbeddedWorld&) = delete;

  // One for each thread of the bench.
  std::unique_ptr<client::LocalClient> client();
  const env::Clock& clock() const { return clock_; }
  store::Store& store() { return *store_; }
  // CPU seconds that threads have taken so far: the loop's, and those of the work it gives away.
  struct Cpu {
    double loop = 0;
    double writer = 0;   // long submits
    double planner = 0;  // long plans
    double upkeep = 0;   // garbage
  };
  Cpu cpu_seconds();

 private:
  const env::posix::Clock clock_ = {};
  schema::Registry registry_;
  assembly::Features features_;
  assembly::ControllerMetrics metrics_{clock_};
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<apiserver::Server> server_;
  assembly::Loop loop_;
  assembly::Loop writer_;
  assembly::Loop planner_;
  std::unique_ptr<client::LocalClient> control_client_;
  std::unique_ptr<control::Runtime> control_;
  std::unique_ptr<assembly::Upkeep> upkeep_;
};

}  // namespace skiff::bench
