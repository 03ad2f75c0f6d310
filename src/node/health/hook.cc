#include "node/health/hook.h"

#include <fmt/format.h>

#include <condition_variable>
#include <mutex>

#include "node/health/probe.h"

namespace skiff::node {
namespace {

// Kubernetes gives a request of a hook no limit; this is as good as none.
constexpr std::chrono::hours kRequestMax{24};

Result<void> sleep_for(std::chrono::seconds wait, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any woken;
  std::unique_lock lock(mutex);
  woken.wait_for(lock, stop, wait, [] { return false; });
  if (stop.stop_requested()) {
    return fail(Code::kTimeout, "container terminated before sleep hook finished");
  }
  return {};
}

}  // namespace

std::string_view hook_field(HookKind kind) {
  return kind == HookKind::kPostStart ? "postStart" : "preStop";
}

const json::value* find_hook(const json::value& container, HookKind kind) {
  return json::find(container, {"lifecycle", hook_field(kind)});
}

const HookRun* hook_run(const HookRuns& runs, const std::string& container, HookKind kind,
                        int attempt) {
  const auto found = runs.find({container, kind});
  return found == runs.end() || found->second.attempt != attempt ? nullptr : &found->second;
}

StartHook start_hook(const json::value& container, const json::value* status, int attempt,
                     const HookRuns& runs) {
  if (find_hook(container, HookKind::kPostStart) == nullptr) return StartHook::kNone;
  const bool told = status != nullptr && json::get_int(*status, {"restartCount"}) == attempt &&
                    json::find(*status, {"state", "running"}) != nullptr;
  if (told) return StartHook::kNone;
  const std::string name(json::get_string(container, {"name"}));
  const HookRun* run = hook_run(runs, name, HookKind::kPostStart, attempt);
  if (run == nullptr) return StartHook::kDue;
  if (!run->ended_well) return StartHook::kUnderWay;
  return *run->ended_well ? StartHook::kNone : StartHook::kFailed;
}

Result<void> run_hook(Runtime& runtime, const HookRequest& request, const std::stop_token& stop) {
  if (const auto seconds = json::get_int(request.handler, {"sleep", "seconds"})) {
    return sleep_for(std::chrono::seconds(*seconds), stop);
  }
  const bool http = json::find(request.handler, {"httpGet"}) != nullptr;
  if (!http && json::find(request.handler, {"exec"}) == nullptr) {
    // The API takes a tcpSocket here, and says itself that it fails when it is run.
    return fail(Code::kInvalid, "invalid handler: " + json::serialize(request.handler));
  }
  ProbeRequest ask{.pod_uid = request.pod_uid,
                   .pod_ip = request.pod_ip,
                   .container = request.container,
                   .handler = request.handler,
                   .timeout = http ? kRequestMax : std::chrono::milliseconds(0),
                   .purpose = "lifecycle",
                   .any_status = true};
  const ProbeAnswer answer = run_probe(runtime, ask, stop);
  if (answer.outcome == ProbeOutcome::kSuccess) return {};
  return fail(Code::kInternal, answer.text);
}

}  // namespace skiff::node
