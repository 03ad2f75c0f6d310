// A whole platform in one thread: API server, controllers, scheduler and nodes, in virtual time,
// from one seed, with faults.
//
// The same seed gives the same run. The faults last for a while; after that everything must come to
// its end within bounded time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "control/runtime.h"
#include "env/sim/clock.h"
#include "sim/backend.h"
#include "sim/checker.h"
#include "sim/fault.h"
#include "sim/gate.h"
#include "sim/nodes.h"
#include "sim/trace.h"
#include "sim/workload.h"

namespace skiff::sim {

// How a run goes, all of it chosen by the seed.
struct Options {
  std::uint64_t seed = 1;
  unsigned nodes = 1;
  unsigned cpus = 4;
  std::vector<const Fault*> faults = {};
  Duration faults_last = std::chrono::minutes(5);
  Duration strike_every = std::chrono::seconds(20);
  unsigned flush_percent = 50;  // of the rounds end with a write to disk
  // So long after the last fault everything must be settled: long enough for every back-off,
  // restart and hang of a script to pass several times.
  Duration patience = std::chrono::hours(24);
  // Every plan is made apart, of what is known when it begins, and comes back after up to this
  // long. Zero: none is.
  Duration apart = {};

  static Options from_seed(std::uint64_t seed);
  std::string describe() const;
};

class World {
 public:
  using Log = std::function<void(std::string_view line)>;
  using MakeBackend =
      std::function<std::unique_ptr<Backend>(const Workload&, const env::Clock&, std::uint64_t)>;
  // `log` hears everything that happens; for --verbose.
  World(Options options, Workload& workload, Log log = {}, const MakeBackend& make = make_backend);
  ~World();

  // What went wrong, or nothing.
  std::optional<std::string> run();

  // For faults.
  Gate& gate() { return gate_; }
  Nodes& nodes() { return nodes_; }
  void restart(bool power_cut);

  // For whoever counts.
  std::uint64_t rounds() const { return rounds_; }
  std::uint64_t restarts() const { return restarts_; }
  std::uint64_t plans_apart() const { return plans_apart_; }

 private:
  void start_controllers();
  void make_apart(const control::RuntimeOptions::Fn& work, control::RuntimeOptions::Fn then);
  void bring_back();
  void strike();
  void round(bool calm);
  void act(bool calm);
  void check();
  void complain(const Checker& checker, std::string_view what);
  // Runs until nothing is unsettled any more.
  void settle();
  void advance(Duration at_most);
  const View& view();
  void say(std::string_view line);
  Trace traced(std::string who);
  void people();

  const Options options_;
  Workload& workload_;
  const Log log_;
  Random random_;
  env::sim::Clock clock_ = env::sim::Clock();
  std::vector<api::Resource> resources_ = {};
  std::vector<std::string> roots_ = {};
  std::unique_ptr<Backend> backend_;
  // Each writes to the server under its own name.
  Trace for_people_;
  Trace for_nodes_;
  Trace for_controllers_;
  Gate gate_;
  Nodes nodes_;
  std::vector<std::unique_ptr<Checker>> checkers_ = all_checkers();
  // What was seen last. To hold it saves most of the parsing: an object that has not changed since
  // is still there in memory.
  View view_ = {};
  std::optional<std::pair<std::uint64_t, std::uint64_t>> checked_ = {};  // revision, promised
  bool calm_ = false;
  std::unique_ptr<control::Runtime> runtime_ = {};
  std::multimap<Duration, control::RuntimeOptions::Fn> returning_ = {};  // plans, by when
  bool woken_ = false;
  Duration runtime_next_ = {};
  Duration nodes_next_ = {};
  std::uint64_t rounds_ = 0;
  std::uint64_t restarts_ = 0;
  std::uint64_t plans_apart_ = 0;
  std::optional<std::string> failure_ = {};
};

}  // namespace skiff::sim
