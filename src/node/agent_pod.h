// What the agent knows of one pod.
#pragma once

#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "node/health/hook.h"
#include "node/health/probe.h"
#include "node/image_fetch.h"
#include "node/mailbox.h"
#include "node/pod_plan.h"

namespace skiff::node {

// Kept from the moment the API or the runtime tells of it until neither does.
struct AgentPod {
  std::string uid = {};
  Object object = {};    // null: the API has no such pod
  bool gone = false;     // it had one, or it is an orphan of an earlier life: remove everything
  bool known = false;    // the runtime has been asked about it
  bool busy = false;     // a worker is at it
  bool changed = false;  // the runtime told of a change meanwhile
  bool safe = false;     // its binding is on disk: programs may start
  bool safe_asked = false;
  bool refresh = false;        // what its volumes are made of may have changed
  bool measure = false;        // its volumes may have outgrown their limits
  bool progress_told = false;  // its programs have ended and had their last look
  std::string folder = {};     // of the runtime's; empty: not asked for yet
  std::optional<std::string> eviction = {};
  std::optional<SandboxRecord> sandbox = {};
  std::map<std::string, Obstacle, std::less<>> obstacles = {};
  std::optional<Obstacle> sandbox_obstacle = {};
  int sandbox_failures = 0;
  PodMemory memory = {};
  std::map<std::string, RunHealth, std::less<>> health = {};  // running containers with probes
  // Of running containers; each can be given up.
  HookRuns hooks = {};
  std::map<std::pair<std::string, HookKind>, std::stop_source> hook_stops = {};
  Mailbox::When wake = Mailbox::When::max();
  std::map<std::string, FetchState, std::less<>> images = {};  // by container
};

}  // namespace skiff::node
