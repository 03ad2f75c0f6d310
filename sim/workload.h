// What runs in a simulated world: kinds, controllers, the people who use them, and how their pods
// behave. A feature that wants to be simulated supplies one of these.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/kind.h"
#include "base/json.h"
#include "base/random.h"
#include "base/time.h"
#include "client/client.h"
#include "control/controller.h"
#include "schema/schema.h"

namespace skiff::sim {

// Faults last for a minute at least, and people are asked once more after that: whoever suspends a
// job only before this resumes it in time.
inline constexpr Duration kSuspendsUntil = std::chrono::seconds(50);

// Any of the numbers from `least` to `most`.
inline std::int64_t between(Random& random, std::int64_t least, std::int64_t most) {
  return least +
         static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most - least + 1)));
}

struct View;  // sim/checker.h

// How one run of a pod's containers goes.
struct PodScript {
  Duration start_after = std::chrono::seconds(1);
  Duration run_for = std::chrono::seconds(10);
  int exit_code = 0;
  bool oom = false;
};

class Workload {
 public:
  virtual ~Workload() = default;

  virtual std::string_view name() const = 0;
  virtual std::vector<api::Kind> kinds() const = 0;  // to be served besides the built-in ones
  // By the name that api::Kind::schema gives.
  virtual std::vector<std::pair<std::string, schema::Schema>> schemas() const { return {}; }
  virtual std::vector<control::Controller> controllers() const = 0;
  // Those that look at whole collections, besides the scheduler.
  virtual std::vector<control::GlobalController> global_controllers() const { return {}; }
  // Nodes renew a lease and are silent while they are lost, for a controller that watches them.
  // Otherwise a lost node says itself that it is not ready.
  virtual bool heartbeats() const { return false; }

  // People act: they create, change and delete roots in namespace "default". Called now and then
  // while faults last. What they write is safe before anything else happens.
  virtual void people(client::Client& client, Time now, Random& random) = 0;
  // The faults have stopped: people leave everything as they want to have it.
  virtual void finish(client::Client& client, Time now, Random& random) {
    people(client, now, random);
  }
  // All is settled: people may want something else, now without any fault. False: they do not.
  virtual bool again(client::Client& client, Random& random) {
    (void)client, (void)random;
    return false;
  }
  // `run` counts the restarts of this pod's containers. Every script must end: a hang is a very
  // long run. When `calm`, faults have stopped and jobs are expected to come to their end.
  virtual PodScript script(const json::value& pod, unsigned run, bool calm, Random& random) = 0;

  // Has this root reached its final state?
  virtual bool finished(const json::value& root) const = 0;
  // What has not come to its end yet, as a sentence. Here: a root that is not finished.
  virtual std::optional<std::string> unsettled(const View& view) const;
  // For so long nothing may become unsettled again before all counts as settled.
  virtual Duration rest() const { return {}; }
  // The place that this child fills, of which its root has only one: "worker-3". Empty: no such.
  virtual std::string slot(const json::value& child) const = 0;
};

}  // namespace skiff::sim
