// The status a node writes for a pod: one value for each container, then phase and conditions.
// Pure; used by the plan only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/time.h"
#include "node/pod_plan.h"

namespace skiff::node {

enum class Life { kNeverRan, kRunning, kStopped };

// How a container ended.
struct End {
  int exit_code = 0;
  int signal = 0;
  std::string reason = {};
  std::string message = {};
  std::optional<Time> started_at = {};
  std::optional<Time> finished_at = {};
};

// A container as the plan sees it: the specification, where it is in its life, and why it waits.
struct ContainerFacts {
  const json::value* spec = nullptr;
  const json::value* old_status = nullptr;  // null: none yet
  std::string name = {};
  bool init = false;
  bool sidecar = false;    // an init container that is kept running beside the others
  bool ephemeral = false;  // put into the running pod to look at it
  Life life = Life::kNeverRan;
  int attempt = 0;  // of the newest run; 0 where it never ran
  Time started_at = {};
  End end = {};  // where stopped
  // Where it runs: as its probes have it.
  bool started = false;
  bool ready = false;
  std::optional<ProbeKind> failed = {};
  StartHook hook = StartHook::kNone;
  // Shown instead of the end, or before the first run.
  std::string waiting_reason = {};
  std::string waiting_message = {};
  std::string image_id = {};  // empty: not known

  // Its program runs, but it counts as running only when the hook of its start has ended.
  bool starting() const { return life == Life::kRunning && hook != StartHook::kNone; }
  bool succeeded() const { return life == Life::kStopped && end.exit_code == 0; }
};

std::vector<ContainerFacts> container_facts(const PodView& view, Time now);
// Those that were put into the running pod. They count for nothing that the pod is or does.
std::vector<ContainerFacts> ephemeral_facts(const PodView& view, Time now);

// Once a main container ran, what a sidecar does holds up nothing any more.
bool main_began(const std::vector<ContainerFacts>& containers);

// Whether a stopped container is run again by the pod's own rules.
bool restarts(const ContainerFacts& container, std::string_view pod_policy);

enum class Phase { kPending, kRunning, kSucceeded, kFailed };
std::string_view phase_name(Phase phase);

// `ending`: the pod is being deleted or is past its deadline, so nothing runs again.
Phase decide_phase(const std::vector<ContainerFacts>& containers, std::string_view pod_policy,
                   bool ending);

struct StatusInput {
  const PodView& view;
  const std::vector<ContainerFacts>& containers;
  Phase phase = Phase::kPending;
  std::string reason = {};
  std::string message = {};
  std::vector<ContainerFacts> ephemeral = {};
};
json::value build_status(const StatusInput& input, Time now);

// A merge patch of `status` that turns the old one into the new one.
json::value status_patch(const json::value& old_status, const json::value& new_status);

}  // namespace skiff::node
