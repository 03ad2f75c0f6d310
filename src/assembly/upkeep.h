// Keeps the API server in order: garbage, soon after each change, and watches whose time is over.
// On a thread of its own, because a large change is much to look through and jobs must not wait.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "assembly/loop.h"
#include "base/time.h"
#include "env/env.h"
#include "store/store.h"

namespace skiff::assembly {

class Upkeep {
 public:
  // Changes that follow each other closely are looked at together.
  static constexpr Duration kPace = std::chrono::milliseconds(10);

  // `collect` does one pass and says whether it changed anything; `tick` is called every second.
  // Both on the thread of the upkeep. What they throw is logged; the next turn calls them again.
  Upkeep(store::Store& store, const env::Clock& clock, std::function<bool()> collect,
         std::function<void()> tick);
  ~Upkeep();
  Upkeep(const Upkeep&) = delete;
  Upkeep& operator=(const Upkeep&) = delete;

  // CPU seconds that its thread has taken so far.
  double cpu_seconds() { return loop_.cpu_seconds(); }

 private:
  Duration turn();
  bool collect();
  void tick();
  // The same at most once a minute: a mistake may be met in every turn.
  void complain(std::string_view about, std::string_view message);

  const env::Clock& clock_;
  const std::function<bool()> collect_;
  const std::function<void()> tick_;
  std::atomic<bool> due_ = true;
  Duration next_pass_ = {};
  Duration next_tick_ = {};
  std::string complaint_ = {};  // the last one; not repeated before next_complaint_
  Duration next_complaint_ = {};
  Loop loop_;
  std::unique_ptr<store::Subscription> watch_;
};

}  // namespace skiff::assembly
