// What a node does next for one pod, decided by a pure function.
//
// The agent shows what the API says, what the runtime says and what it remembers; the plan answers
// with the actions of this round. It is called again whenever one of the three changes, so it never
// looks further ahead than one step.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/time.h"
#include "node/health/hook.h"
#include "node/health/probe_plan.h"
#include "node/runtime.h"

namespace skiff::node {

// Why a container cannot be started at the moment: no image, a missing secret, a refusing runtime.
struct Obstacle {
  std::string reason = {};  // ErrImagePull, CreateContainerConfigError, CreateContainerError, ...
  std::string message = {};
  Time since = {};
  Time retry_at = {};
};

// What must be remembered between two plans. It may be lost by a restart: the plan then starts from
// what the pod's status says, and at worst sends a signal or counts a back-off a second time.
struct PodMemory {
  struct Restarts {
    int counted = -1;  // the attempt whose end `streak` includes
    int streak = 0;    // ends in a row, each after less than kBackoffReset of running
  };
  std::map<std::string, Restarts, std::less<>> restarts = {};
  // A run that is brought down: by a probe, a failed hook or the end of its pod.
  struct Stop {
    int attempt = -1;
    Time since = {};                   // the grace counts from here
    std::optional<Time> term_at = {};  // when it was sent SIGTERM
  };
  std::map<std::string, Stop, std::less<>> stops = {};  // by container
};

struct PodView {
  Object pod = {};
  std::optional<SandboxRecord> sandbox = {};                    // nothing: the runtime has none
  std::map<std::string, Obstacle, std::less<>> obstacles = {};  // by container
  std::optional<Obstacle> sandbox_obstacle = {};
  std::optional<std::string> eviction = {};    // why the pod must leave this node
  std::optional<std::string> port_clash = {};  // why it must not start: another has its host port
  PodMemory memory = {};
  std::map<std::string, Verdict, std::less<>> health = {};  // of containers with probes
  HookRuns hooks = {};
  std::string host_ip = {};
  std::map<std::string, std::string, std::less<>> image_ids = {};  // by container, where known
};

struct PodNote {
  bool warning = false;
  std::string reason = {};
  std::string message = {};
  std::string container = {};  // empty: about the pod

  bool operator==(const PodNote&) const = default;
};

struct PodActions {
  struct Start {
    std::string container = {};
    int attempt = 0;
    bool operator==(const Start&) const = default;
  };
  struct Signal {
    std::string container = {};
    int signal = 0;
    bool operator==(const Signal&) const = default;
  };

  struct Hook {
    std::string container = {};
    int attempt = 0;
    HookKind kind = HookKind::kPostStart;
    bool operator==(const Hook&) const = default;
  };

  bool start_sandbox = false;
  std::vector<Start> start = {};
  std::vector<Signal> signals = {};
  std::vector<Hook> hooks = {};  // to be begun
  bool stop_sandbox = false;
  // The whole new status, where it differs from the pod's.
  std::optional<json::value> status = {};
  bool terminal = false;         // `status` is the last one: it must be on disk before it is told
  bool finalise_delete = false;  // nothing of the pod is left here: the object may go
  std::optional<Duration> wake_after = {};
  std::vector<PodNote> notes = {};
  PodMemory memory = {};
};

// Kubernetes' own numbers. The first restart comes at once.
inline constexpr std::chrono::seconds kBackoffFirst{10};
inline constexpr std::chrono::seconds kBackoffMax{300};
inline constexpr std::chrono::minutes kBackoffReset{10};

// How long to wait, from its end, before a container is started that ended `streak` times in a row.
Duration restart_delay(int streak);

PodActions plan_pod(const PodView& view, Time now);

// Guaranteed, Burstable or BestEffort, from requests and limits.
std::string_view qos_class(const json::value& pod);
// The specification of a container of any kind; null: there is none of this name.
const json::value* find_container(const json::value& pod, std::string_view name);
bool finished(const json::value& pod);  // its phase is Succeeded or Failed
std::string container_id(std::string_view pod_uid, std::string_view container, int attempt);

}  // namespace skiff::node
