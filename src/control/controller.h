// The shape of every controller: observe, plan, apply.
//
// plan() is pure: no client, clock, log or random. The runtime (control/runtime.h) builds Observed
// from its cache, calls plan(), and applies the answer with preconditions, status last.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/kind.h"
#include "base/json.h"
#include "base/time.h"
#include "client/client.h"

namespace skiff::control {

// What became of the plan just made: the server did not allow one of its creations (a quota).
struct Refusal {
  std::string message = {};
  std::size_t allowed = 0;  // creations of the plan that came before it and would have been allowed

  bool operator==(const Refusal&) const = default;
};

// A root object and what it controls, as the cache saw them at one moment.
struct Observed {
  Object root = {};
  // One list for each resource of Controller::owned, in that order: objects in the root's namespace
  // whose controlling owner is the root (by uid), ordered by name.
  std::vector<std::vector<Object>> owned = {};
  // One list for each of Controller::seen, in that order, each ordered by name.
  std::vector<std::vector<Object>> seen = {};
  // Set for a controller that hears refusals, right after one: what it plans now may do less and
  // say why. The next plan, after the back-off, is not told of it and tries again.
  std::optional<Refusal> refused = {};
};

// Something worth telling the user, kept as a Kubernetes Event on the root.
struct Note {
  bool warning = false;
  std::string reason = {};
  std::string message = {};

  bool operator==(const Note&) const = default;
};

struct Plan {
  // Each names what it acts on with uid and, for updates, resourceVersion. The runtime orders them:
  // deletes, creates, patches.
  std::vector<client::Write> writes = {};
  // The root's whole new status, where it differs from the one observed. Written last, with the
  // root's uid and resourceVersion as precondition.
  std::optional<json::value> status = {};
  // Nothing at all is written unless the root is as it was observed. A status says that too, but
  // comes last: a server without transactions would have done the rest by then.
  bool only_if_unchanged = false;
  // Delete the root itself (TTL). Done after everything else.
  bool delete_root = false;
  std::vector<Note> notes = {};  // recorded only if everything above succeeded
  std::optional<Duration> requeue_after = {};

  bool empty() const { return writes.empty() && !status && !delete_root; }
};

// What a controller looks at without controlling it: the pods that a service selects, the claims of
// a stateful set. A root looks at those objects of its namespace that have every word it wants; a
// root that wants none looks at nothing. What has no namespace (nodes) is seen from every one. Both
// functions are pure.
struct Related {
  api::Resource resource = {};
  std::function<std::vector<std::string>(const json::value& root)> wants = {};
  std::function<std::vector<std::string>(const json::value& object)> has = {};
  bool writes = false;  // it makes and changes them too, beside others who may
  // Where set: a change between two that are alike (a heartbeat) is no reason to plan.
  std::function<bool(const json::value& before, const json::value& after)> alike = {};
};

struct Controller {
  std::string name = {};  // component of its events: tfjob-controller
  api::Resource root = {};
  std::vector<api::Resource> owned = {};
  std::vector<Related> seen = {};
  bool hears_refusals = false;
  std::function<Plan(const Observed&, Time now)> plan = {};
};

// One object and something to tell about it.
struct ObjectNote {
  Object object = {};
  Note note = {};
};

// Writes that belong together: one submit, so all or none on the embedded server.
struct Batch {
  std::vector<client::Write> writes = {};
  std::vector<ObjectNote> notes = {};  // recorded only if every write succeeded
};

struct GlobalPlan {
  std::vector<Batch> batches = {};  // independent of each other: one that fails stops no other
  std::optional<Duration> requeue_after = {};
};

// A plan to be made on another thread, of values that no later change touches.
struct PlanApart {
  std::function<GlobalPlan()> plan = {};
  // Where set: asked on the loop, of what each batch writes, when the plan is back: is it still
  // right by what is known now? Those that are not are dropped, and all is planned once more, here.
  std::function<bool(const std::vector<client::Write>& writes)> holds = {};
};

// Looks at whole collections instead of one root: the scheduler. It keeps its own books from the
// changes it is told, so that a plan costs what is waiting and not all that was ever finished.
struct GlobalController {
  std::string name = {};
  std::vector<api::Resource> watched = {};
  // Called for each change of resource number `which` of `watched`, before any plan that may see
  // it: `before` is null for an object that appears, `after` for one that is gone.
  std::function<void(std::size_t which, const Object& before, const Object& after)> changed = {};
  std::function<GlobalPlan(Time now)> plan = {};
  // Where set: what plan() would do now. Without a plan where it is so short that taking the values
  // it is made of would cost more.
  std::function<PlanApart(Time now)> plan_apart = {};
};

}  // namespace skiff::control
