// The five laws that every controller is held to, checked by its own test through one call:
//
//   idempotent   when nothing else changes, planning soon has nothing left to do, and planning
//   twice
//                from the same observation gives the same plan
//   convergent   the world goes on as scripted and the end state is reached in bounded rounds
//   crash-safe   cut after any of its writes and restarted, it reaches an end state just the same
//   stale-safe   acting on any earlier observation deletes nothing that should live, and the end
//                state is still reached
//   ownership    it writes only the root, what the root controls (by uid), new children that name
//                the root as their controller, and what it says it writes (Related::writes)
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "client/client.h"
#include "control/controller.h"
#include "env/env.h"

namespace skiff::control::testing {

struct LawCase {
  Controller controller = {};
  // Makes the roots, and objects of others that look like children.
  std::function<void(client::Client&, Random&)> arrange = {};
  // One thing happens that is not the controller's doing: a pod starts, ends, a person edits. False
  // when nothing is left to happen.
  std::function<bool(client::Client&, Time now, Random&)> step = {};
  // What is wrong with the end state; nothing when all is well.
  std::function<std::optional<std::string>(client::Client&)> wrong = {};
  // What must never be seen, asked after every round. May be left out.
  std::function<std::optional<std::string>(client::Client&)> never = {};
  // The server to run on; left out: MemoryServer.
  std::function<std::unique_ptr<client::Client>(const env::Clock&, std::uint64_t seed)> server = {};
  unsigned settle_rounds = 5;  // plans in a row until there is nothing left to do
  unsigned steps_max = 500;
  unsigned cuts_max = 100;  // crash points tried for each seed
};

// The same for a controller that looks at whole collections. It owns nothing by uid, so the case
// says what it may write, and what it may delete as things are: that is asked of each deletion that
// succeeds, however old the observation behind it was.
struct GlobalLawCase {
  std::function<GlobalController()> make = {};  // each call begins a life without memory
  std::function<void(client::Client&, Random&)> arrange = {};
  std::function<bool(client::Client&, Time now, Random&)> step = {};
  std::function<std::optional<std::string>(client::Client&)> wrong = {};
  std::function<bool(const client::Write&)> may_write = {};
  std::function<bool(client::Client&, const json::value& object)> may_delete = {};
  Duration step_takes = std::chrono::seconds(1);
  unsigned settle_rounds = 5;
  unsigned steps_max = 500;
  unsigned cuts_max = 100;
};

// Sentences about broken laws, each with the seed that shows it; empty when all hold.
std::vector<std::string> check_laws(const LawCase& law_case, std::uint64_t seeds = 20);
std::vector<std::string> check_laws(const GlobalLawCase& law_case, std::uint64_t seeds = 20);

}  // namespace skiff::control::testing
