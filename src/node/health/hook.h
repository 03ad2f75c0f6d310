// Lifecycle hooks: what runs when a container starts and before it ends.
#pragma once

#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "node/runtime.h"

namespace skiff::node {

enum class HookKind { kPostStart, kPreStop };
std::string_view hook_field(HookKind kind);                                 // "postStart"
const json::value* find_hook(const json::value& container, HookKind kind);  // null: none

// A hook of one run of a container, as far as it has come.
struct HookRun {
  int attempt = -1;
  std::optional<bool> ended_well = {};  // nothing: it is under way
};
using HookRuns = std::map<std::pair<std::string, HookKind>, HookRun>;

// Nothing where this run of the container has none.
const HookRun* hook_run(const HookRuns& runs, const std::string& container, HookKind kind,
                        int attempt);

// kNone: nothing to wait for, the container counts as running.
enum class StartHook { kNone, kDue, kUnderWay, kFailed };

// How far the hook of a running container's start is. `status` is what the API says of the
// container (null: nothing): a run that was told as running has its hook behind it, so a new Skiff
// does not run it again.
StartHook start_hook(const json::value& container, const json::value* status, int attempt,
                     const HookRuns& runs);

struct HookRequest {
  std::string pod_uid = {};
  std::string pod_ip = {};
  json::value container = {};  // its specification: name and named ports
  json::value handler = {};    // exec, httpGet or sleep
};

// Blocks until the hook has ended, however long that is, or the stop is asked for. The error is for
// the log of who looks for it: Kubernetes keeps it out of events, where it may tell secrets.
Result<void> run_hook(Runtime& runtime, const HookRequest& request, const std::stop_token& stop);

}  // namespace skiff::node
