// What kubectl shows of a pod in a line.
#include <fmt/format.h>

#include "api/cells.h"
#include "api/core/pod.h"
#include "api/meta.h"

namespace skiff::api {
namespace {

struct Summary {
  std::string status = {};
  std::size_t containers = 0;
  std::size_t ready = 0;
  std::int64_t restarts = 0;
  std::optional<Time> last_restart = {};
};

bool sidecar(const json::value& pod, std::string_view name) {
  for (const json::value& c : json::get_array(pod, {"spec", "initContainers"})) {
    if (json::get_string(c, {"name"}) == name) {
      return json::get_string(c, {"restartPolicy"}) == "Always";
    }
  }
  return false;
}

// Signal:9 or ExitCode:1, for a state without a word of its own.
std::string exit_text(const json::value& terminated) {
  const std::int64_t signal = json::get_int(terminated, {"signal"}).value_or(0);
  if (signal != 0) return fmt::format("Signal:{}", signal);
  return fmt::format("ExitCode:{}", json::get_int(terminated, {"exitCode"}).value_or(0));
}

void count_restarts(const json::value& status, Summary& out) {
  out.restarts += json::get_int(status, {"restartCount"}).value_or(0);
  const std::optional<Time> at =
      parse_time(json::get_string(status, {"lastState", "terminated", "finishedAt"}));
  if (at && (!out.last_restart || *at > *out.last_restart)) out.last_restart = at;
}

// The word for the first init container that is not done; nothing where all are.
std::optional<std::string> init_text(const json::value& pod, Summary& out, Summary& sidecars) {
  const json::array& statuses = json::get_array(pod, {"status", "initContainerStatuses"});
  const std::size_t total = json::get_array(pod, {"spec", "initContainers"}).size();
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    const json::value& s = statuses[i];
    const bool stays = sidecar(pod, json::get_string(s, {"name"}));
    count_restarts(s, out);
    if (stays) count_restarts(s, sidecars);
    const json::value* terminated = json::find(s, {"state", "terminated"});
    if (terminated != nullptr && json::get_int(*terminated, {"exitCode"}) == 0) continue;
    if (stays && json::get_bool(s, {"started"}).value_or(false)) {
      if (json::get_bool(s, {"ready"}).value_or(false)) ++out.ready;
      continue;
    }
    if (terminated != nullptr) {
      const std::string_view reason = json::get_string(*terminated, {"reason"});
      return "Init:" + (reason.empty() ? exit_text(*terminated) : std::string(reason));
    }
    const std::string_view waiting = json::get_string(s, {"state", "waiting", "reason"});
    if (!waiting.empty() && waiting != "PodInitializing") return "Init:" + std::string(waiting);
    return fmt::format("Init:{}/{}", i, total);
  }
  return std::nullopt;
}

// From the last container to the first, so that the first one's word is what stays.
void read_containers(const json::value& pod, Summary& out) {
  bool running = false;
  std::string failure;
  const json::array& statuses = json::get_array(pod, {"status", "containerStatuses"});
  for (std::size_t i = statuses.size(); i-- > 0;) {
    const json::value& s = statuses[i];
    count_restarts(s, out);
    const json::value* terminated = json::find(s, {"state", "terminated"});
    const std::string_view waiting = json::get_string(s, {"state", "waiting", "reason"});
    if (!waiting.empty()) {
      out.status = waiting;
    } else if (terminated != nullptr) {
      const std::string_view reason = json::get_string(*terminated, {"reason"});
      out.status = reason.empty() ? exit_text(*terminated) : std::string(reason);
      if (json::get_int(*terminated, {"exitCode"}).value_or(0) != 0) failure = out.status;
    } else if (json::get_bool(s, {"ready"}).value_or(false) &&
               json::find(s, {"state", "running"}) != nullptr) {
      running = true;
      ++out.ready;
    }
  }
  if (out.status != "Completed") return;
  if (running) {
    out.status = condition_true(pod, "Ready") ? "Running" : "NotReady";
  } else if (!failure.empty()) {
    out.status = failure;
  }
}

Summary summarize(const json::value& pod) {
  Summary out;
  const std::string_view phase = json::get_string(pod, {"status", "phase"});
  const std::string_view reason = json::get_string(pod, {"status", "reason"});
  out.status = reason.empty() ? phase : reason;
  out.containers = json::get_array(pod, {"spec", "containers"}).size();
  for (const json::value& c : json::get_array(pod, {"spec", "initContainers"})) {
    if (json::get_string(c, {"restartPolicy"}) == "Always") ++out.containers;
  }
  for (const json::value& c : json::get_array(pod, {"status", "conditions"})) {
    if (json::get_string(c, {"type"}) == "PodScheduled" &&
        json::get_string(c, {"reason"}) == "SchedulingGated") {
      out.status = "SchedulingGated";
    }
  }
  Summary sidecars;
  const std::optional<std::string> init = init_text(pod, out, sidecars);
  if (init) out.status = *init;
  if (!init || condition_true(pod, "Initialized")) {
    if (init) out.status = reason.empty() ? phase : reason;
    // Restarts of finished init containers are history; those of sidecars still count.
    out.restarts = sidecars.restarts;
    out.last_restart = sidecars.last_restart;
    read_containers(pod, out);
  }
  const bool over = phase == "Succeeded" || phase == "Failed";
  if (deleting(pod) && reason == "NodeLost") {
    out.status = "Unknown";
  } else if (deleting(pod) && !over) {
    out.status = "Terminating";
  }
  return out;
}

}  // namespace

std::string pod_status_text(const json::value& pod) { return summarize(pod).status; }

json::array pod_cells(const json::value& pod, std::int64_t now_s) {
  const Summary s = summarize(pod);
  std::string restarts = std::to_string(s.restarts);
  if (s.restarts > 0 && s.last_restart) {
    restarts += fmt::format(" ({} ago)", age_cell(s.last_restart, now_s));
  }
  const json::array& gates = json::get_array(pod, {"spec", "readinessGates"});
  std::size_t open = 0;
  for (const json::value& gate : gates) {
    open += condition_true(pod, json::get_string(gate, {"conditionType"})) ? 1 : 0;
  }
  json::array out;
  for (const std::string& text :
       {fmt::format("{}/{}", s.ready, s.containers), s.status, restarts, age_cell(pod, now_s),
        or_none(json::get_string(pod, {"status", "podIP"})),
        or_none(json::get_string(pod, {"spec", "nodeName"})),
        or_none(json::get_string(pod, {"status", "nominatedNodeName"})),
        gates.empty() ? std::string("<none>") : fmt::format("{}/{}", open, gates.size())}) {
    out.emplace_back(json::string(text));
  }
  return out;
}

}  // namespace skiff::api
