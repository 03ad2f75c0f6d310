// When a container is probed and what the answers mean: state, result and time in, next state out.
// Pure. The rules are kubelet's.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/time.h"

namespace skiff::node {

enum class ProbeKind { kStartup, kLiveness, kReadiness };
std::string_view probe_name(ProbeKind kind);   // "Startup", as events say it
std::string_view probe_field(ProbeKind kind);  // "startupProbe"

struct ProbeRules {
  std::chrono::seconds initial_delay{0};
  std::chrono::seconds period{10};
  std::chrono::seconds timeout{1};
  int success_threshold = 1;
  int failure_threshold = 3;
};
ProbeRules probe_rules(const json::value& probe);

// kError: nothing was learnt about the container (no such command, no such port); it counts for
// nothing.
enum class ProbeOutcome { kSuccess, kFailure, kError };

struct ProbeState {
  ProbeRules rules = {};
  bool passing = false;
  std::optional<bool> last = {};  // of the newest answers ...
  int row = 0;                    // ... how many were the same
  bool held = false;              // has said its last word about this run
  bool busy = false;              // one is under way
  Time due = {};
};

// All probes of one run of a container.
struct RunHealth {
  int attempt = -1;
  std::map<ProbeKind, ProbeState> probes = {};
};

// What an earlier Skiff has already written about this very run.
struct KnownHealth {
  bool started = false;
  bool ready = false;
};
RunHealth begin_run(const json::value& container, int attempt, Time started_at, KnownHealth known,
                    Time now);

struct ProbeRound {
  std::vector<ProbeKind> due = {};
  std::optional<Time> next = {};  // when to look again, unless an answer comes first
};
// `ending`: the pod is being deleted, and only readiness is still of interest.
ProbeRound probes_due(const RunHealth& run, bool ending, Time now);

// `began` is when the probe that ended now was started.
void take_answer(RunHealth& run, ProbeKind kind, ProbeOutcome outcome, Time began, Time now);

// What the probes of a run say together.
struct Verdict {
  int attempt = -1;
  bool started = true;
  bool ready = true;
  std::optional<ProbeKind> failed = {};  // this one asks for the container's end
};
Verdict judge(const RunHealth& run);

}  // namespace skiff::node
