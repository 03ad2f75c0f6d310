#include "node/health/probe_plan.h"

#include <algorithm>

namespace skiff::node {
namespace {

constexpr ProbeKind kKinds[] = {ProbeKind::kStartup, ProbeKind::kLiveness, ProbeKind::kReadiness};

bool passing_at_first(ProbeKind kind, KnownHealth known) {
  switch (kind) {
    case ProbeKind::kStartup:
      return known.started;
    case ProbeKind::kLiveness:
      return true;
    case ProbeKind::kReadiness:
      return known.ready;
  }
  return false;
}

bool started(const RunHealth& run) {
  const auto startup = run.probes.find(ProbeKind::kStartup);
  return startup == run.probes.end() || startup->second.passing;
}

}  // namespace

std::string_view probe_name(ProbeKind kind) {
  switch (kind) {
    case ProbeKind::kStartup:
      return "Startup";
    case ProbeKind::kLiveness:
      return "Liveness";
    case ProbeKind::kReadiness:
      return "Readiness";
  }
  return "";
}

std::string_view probe_field(ProbeKind kind) {
  switch (kind) {
    case ProbeKind::kStartup:
      return "startupProbe";
    case ProbeKind::kLiveness:
      return "livenessProbe";
    case ProbeKind::kReadiness:
      return "readinessProbe";
  }
  return "";
}

ProbeRules probe_rules(const json::value& probe) {
  // Zero is what the API's defaults replace.
  const auto number = [&](std::string_view field, std::int64_t absent) {
    const auto given = json::get_int(probe, {field}).value_or(0);
    return given > 0 ? given : absent;
  };
  return {.initial_delay = std::chrono::seconds(number("initialDelaySeconds", 0)),
          .period = std::chrono::seconds(number("periodSeconds", 10)),
          .timeout = std::chrono::seconds(number("timeoutSeconds", 1)),
          .success_threshold = static_cast<int>(number("successThreshold", 1)),
          .failure_threshold = static_cast<int>(number("failureThreshold", 3))};
}

RunHealth begin_run(const json::value& container, int attempt, Time started_at, KnownHealth known,
                    Time now) {
  RunHealth run{.attempt = attempt};
  for (const ProbeKind kind : kKinds) {
    const json::value* probe = json::find(container, {probe_field(kind)});
    if (probe == nullptr || !probe->is_object()) continue;
    ProbeState state{.rules = probe_rules(*probe)};
    state.passing = passing_at_first(kind, known);
    state.held = kind == ProbeKind::kStartup && state.passing;
    state.due = std::max(now, started_at + state.rules.initial_delay);
    run.probes[kind] = state;
  }
  return run;
}

ProbeRound probes_due(const RunHealth& run, bool ending, Time now) {
  ProbeRound round;
  for (const auto& [kind, state] : run.probes) {
    if (state.held || state.busy) continue;
    if (ending && kind != ProbeKind::kReadiness) continue;
    // Until the container has started the others are off; its start looks here again.
    if (kind != ProbeKind::kStartup && !started(run)) continue;
    if (state.due <= now) {
      round.due.push_back(kind);
    } else if (!round.next || state.due < *round.next) {
      round.next = state.due;
    }
  }
  return round;
}

void take_answer(RunHealth& run, ProbeKind kind, ProbeOutcome outcome, Time began, Time now) {
  const auto found = run.probes.find(kind);
  if (found == run.probes.end()) return;
  ProbeState& state = found->second;
  state.busy = false;
  // A probe that takes longer than its period is followed by the next one at once.
  state.due = std::max(now, began + state.rules.period);
  if (outcome == ProbeOutcome::kError) return;
  const bool well = outcome == ProbeOutcome::kSuccess;
  state.row = state.last == well ? state.row + 1 : 1;
  state.last = well;
  if (state.row < (well ? state.rules.success_threshold : state.rules.failure_threshold)) return;
  state.passing = well;
  if (kind == ProbeKind::kStartup || (kind == ProbeKind::kLiveness && !well)) state.held = true;
}

Verdict judge(const RunHealth& run) {
  Verdict out{.attempt = run.attempt, .started = started(run)};
  for (const auto& [kind, state] : run.probes) {
    if (kind == ProbeKind::kReadiness) out.ready = state.passing;
    const bool fatal = kind != ProbeKind::kReadiness && state.held && !state.passing;
    if (fatal && !out.failed) out.failed = kind;
  }
  out.ready = out.ready && out.started;
  return out;
}

}  // namespace skiff::node
