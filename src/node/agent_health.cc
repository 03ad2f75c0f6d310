// How the agent watches over containers that run: probes, by their own plan and on their own
// threads.
#include <fmt/format.h>

#include "api/meta.h"
#include "node/agent_impl.h"

namespace skiff::node {
namespace {

// Probes that learnt nothing are repeated at once, as kubelet does, before that is told.
constexpr int kTries = 3;

const json::value* health_status_of(const json::value& pod, std::string_view container) {
  for (const std::string_view list : {"initContainerStatuses", "containerStatuses"}) {
    for (const json::value& status : json::get_array(pod, {"status", list})) {
      if (json::get_string(status, {"name"}) == container) return &status;
    }
  }
  return nullptr;
}

// What the API already says about this very run, perhaps in the words of an earlier Skiff.
KnownHealth known_health(const json::value* status, int attempt) {
  if (status == nullptr || json::get_int(*status, {"restartCount"}) != attempt) return {};
  if (json::find(*status, {"state", "running"}) == nullptr) return {};
  return {.started = json::get_bool(*status, {"started"}).value_or(false),
          .ready = json::get_bool(*status, {"ready"}).value_or(false)};
}

bool has_probes(const json::value& container) {
  for (const ProbeKind kind : {ProbeKind::kStartup, ProbeKind::kLiveness, ProbeKind::kReadiness}) {
    if (json::find(container, {probe_field(kind)}) != nullptr) return true;
  }
  return false;
}

}  // namespace

// Begins every probe whose time has come, and says how the containers are.
std::map<std::string, Verdict, std::less<>> Agent::Impl::look_after(Pod& pod) {
  std::map<std::string, Verdict, std::less<>> verdicts;
  std::map<std::string, RunHealth, std::less<>> kept;
  if (!pod.sandbox || !pod.sandbox->alive) {
    pod.health.clear();
    return verdicts;
  }
  const Time now = clock_.now();
  for (const std::string_view list : {"initContainers", "containers"}) {
    for (const json::value& container : json::get_array(*pod.object, {"spec", list})) {
      if (!has_probes(container)) continue;
      const std::string name(json::get_string(container, {"name"}));
      for (const ContainerRecord& record : pod.sandbox->containers) {
        if (record.name != name || record.state != ContainerState::kRunning) continue;
        const json::value* status = health_status_of(*pod.object, name);
        if (start_hook(container, status, record.attempt, pod.hooks) != StartHook::kNone) continue;
        RunHealth& run = pod.health[name];
        if (run.attempt != record.attempt) {
          run = begin_run(container, record.attempt, record.started_at,
                          known_health(status, record.attempt), now);
        }
        const ProbeRound round = probes_due(run, api::deleting(*pod.object), now);
        for (const ProbeKind kind : round.due) {
          run.probes[kind].busy = true;
          probe(pod, container, kind);
        }
        if (round.next) wake_pod(pod, *round.next - now);
        verdicts[name] = judge(run);
        kept[name] = run;
      }
    }
  }
  pod.health = std::move(kept);
  return verdicts;
}

void Agent::Impl::probe(Pod& pod, const json::value& container, ProbeKind kind) {
  const std::string name(json::get_string(container, {"name"}));
  const RunHealth& run = pod.health[name];
  const bool host = json::get_bool(*pod.object, {"spec", "hostNetwork"}).value_or(false);
  ProbeRequest request{.pod_uid = pod.uid,
                       .pod_ip = host ? options_.node_address : pod.sandbox->ip,
                       .container = container,
                       .handler = *json::find(container, {probe_field(kind)}),
                       .timeout = run.probes.at(kind).rules.timeout};
  probers_.run([this, kind, name, attempt = run.attempt, began = clock_.now(),
                request = std::move(request)](const std::stop_token& stop) {
    ProbeAnswer answer;
    for (int i = 0; i < kTries && !stop.stop_requested(); ++i) {
      answer = run_probe(runtime_, request, stop);
      if (answer.outcome != ProbeOutcome::kError) break;
    }
    post([uid = request.pod_uid, name, kind, attempt, began, answer](Impl& agent) {
      agent.probed(uid, name, kind, attempt, began, answer);
    });
  });
}

void Agent::Impl::probed(const std::string& uid, const std::string& container, ProbeKind kind,
                         int attempt, Time began, const ProbeAnswer& answer) {
  const auto found = pods_.find(uid);
  if (found == pods_.end() || !found->second.object) return;
  Pod& pod = found->second;
  const auto run = pod.health.find(container);
  // The container may have ended while it was asked.
  if (run == pod.health.end() || run->second.attempt != attempt) return;
  const Time now = clock_.now();
  take_answer(run->second, kind, answer.outcome, began, now);
  PodNote note{true, "Unhealthy", "", container};
  if (answer.outcome == ProbeOutcome::kFailure) {
    note.message = fmt::format("{} probe failed: {}", probe_name(kind), answer.text);
  } else if (answer.outcome == ProbeOutcome::kError) {
    note.message = fmt::format("{} probe errored and resulted in unknown state: {}",
                               probe_name(kind), answer.text);
  } else if (answer.warning) {
    note.reason = "ProbeWarning";
    note.message = fmt::format("{} probe warning: {}", probe_name(kind), answer.text);
  }
  if (!note.message.empty()) events_.record(*pod.object, note, now);
  visit(uid);
}

}  // namespace skiff::node
