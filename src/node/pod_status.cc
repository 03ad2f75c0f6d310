#include "node/pod_status.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/meta.h"

namespace skiff::node {
namespace {

const json::value* listed_status_of(const json::value& pod, std::string_view list,
                                    std::string_view name) {
  for (const json::value& status : json::get_array(pod, {"status", list})) {
    if (json::get_string(status, {"name"}) == name) return &status;
  }
  return nullptr;
}

const ContainerRecord* record_of(const PodView& view, std::string_view name) {
  if (!view.sandbox) return nullptr;
  for (const ContainerRecord& record : view.sandbox->containers) {
    if (record.name == name) return &record;
  }
  return nullptr;
}

// The container was running when its sandbox went: a reboot, or somebody killed the shim.
End lost_end(Time now) {
  return {.exit_code = 137,
          .reason = "ContainerStatusUnknown",
          .message = "The container was running when the pod's sandbox was lost",
          .finished_at = now};
}

End end_from_status(const json::value& terminated) {
  return {.exit_code = static_cast<int>(json::get_int(terminated, {"exitCode"}).value_or(0)),
          .signal = static_cast<int>(json::get_int(terminated, {"signal"}).value_or(0)),
          .reason = std::string(json::get_string(terminated, {"reason"})),
          .message = std::string(json::get_string(terminated, {"message"})),
          .started_at = api::time_at(terminated, {"startedAt"}),
          .finished_at = api::time_at(terminated, {"finishedAt"})};
}

End end_from_record(const ContainerRecord& record) {
  if (record.state == ContainerState::kFailedToStart) {
    return {.exit_code = 128,
            .reason = "StartError",
            .message = record.message,
            .started_at = record.started_at,
            .finished_at = record.finished_at};
  }
  const char* reason = record.oom_killed       ? "OOMKilled"
                       : record.exit_code == 0 ? "Completed"
                                               : "Error";
  return {.exit_code = record.exit_code,
          .signal = record.signal,
          .reason = reason,
          .message = record.message,
          .started_at = record.started_at,
          .finished_at = record.finished_at};
}

// Only the API remembers this container: the sandbox was removed, or the machine restarted.
void read_old_status(ContainerFacts& facts, Time now) {
  const json::value& old = *facts.old_status;
  facts.attempt = static_cast<int>(json::get_int(old, {"restartCount"}).value_or(0));
  if (const json::value* ended = json::find(old, {"state", "terminated"})) {
    facts.life = Life::kStopped;
    facts.end = end_from_status(*ended);
  } else if (json::find(old, {"state", "running"}) != nullptr) {
    facts.life = Life::kStopped;
    facts.end = lost_end(now);
    facts.end.started_at = api::time_at(old, {"state", "running", "startedAt"});
  } else if (const json::value* last = json::find(old, {"lastState", "terminated"})) {
    facts.life = Life::kStopped;
    facts.end = end_from_status(*last);
  }
}

void read_record(ContainerFacts& facts, const ContainerRecord& record, bool alive, Time now) {
  facts.attempt = record.attempt;
  facts.started_at = record.started_at;
  if (record.state == ContainerState::kRunning && alive) {
    facts.life = Life::kRunning;
    return;
  }
  facts.life = Life::kStopped;
  if (record.state != ContainerState::kRunning) {
    facts.end = end_from_record(record);
    return;
  }
  // The end is stamped when it is first noticed, and keeps that stamp.
  const bool known = facts.old_status != nullptr &&
                     json::find(*facts.old_status, {"state", "terminated"}) != nullptr &&
                     json::get_int(*facts.old_status, {"restartCount"}) == record.attempt;
  facts.end = known ? end_from_status(*json::find(*facts.old_status, {"state", "terminated"}))
                    : lost_end(now);
  facts.end.started_at = record.started_at;
}

// A probe that has not been asked yet has not been passed; none is asked before the hook has ended.
void read_health(ContainerFacts& facts, const PodView& view) {
  if (facts.life != Life::kRunning) return;
  facts.hook = start_hook(*facts.spec, facts.old_status, facts.attempt, view.hooks);
  if (facts.starting()) return;
  const auto found = view.health.find(facts.name);
  if (found != view.health.end() && found->second.attempt == facts.attempt) {
    facts.started = found->second.started;
    facts.ready = found->second.ready;
    facts.failed = found->second.failed;
    return;
  }
  const auto probed = [&](ProbeKind kind) {
    return json::find(*facts.spec, {probe_field(kind)}) != nullptr;
  };
  facts.started = !probed(ProbeKind::kStartup);
  facts.ready = facts.started && !probed(ProbeKind::kReadiness);
}

ContainerFacts facts_of(const PodView& view, const json::value& spec, std::string_view statuses,
                        Time now) {
  ContainerFacts facts;
  facts.spec = &spec;
  facts.name = std::string(json::get_string(spec, {"name"}));
  facts.old_status = listed_status_of(*view.pod, statuses, facts.name);
  if (const ContainerRecord* record = record_of(view, facts.name)) {
    read_record(facts, *record, view.sandbox->alive, now);
  } else if (facts.old_status != nullptr) {
    read_old_status(facts, now);
  }
  read_health(facts, view);
  if (const auto id = view.image_ids.find(facts.name); id != view.image_ids.end()) {
    facts.image_id = id->second;
  } else if (facts.old_status != nullptr) {
    // In the words of an earlier Skiff.
    facts.image_id = json::get_string(*facts.old_status, {"imageID"});
  }
  return facts;
}

json::object terminated_state(const ContainerFacts& facts, std::string_view pod_uid) {
  json::object out;
  out["exitCode"] = facts.end.exit_code;
  if (facts.end.signal != 0) out["signal"] = facts.end.signal;
  out["reason"] = facts.end.reason;
  if (!facts.end.message.empty()) out["message"] = facts.end.message;
  if (facts.end.started_at) out["startedAt"] = rfc3339(*facts.end.started_at);
  if (facts.end.finished_at) out["finishedAt"] = rfc3339(*facts.end.finished_at);
  out["containerID"] = container_id(pod_uid, facts.name, facts.attempt);
  return {{"terminated", std::move(out)}};
}

// What the container's run before this one left.
json::object last_state(const ContainerFacts& facts) {
  if (facts.old_status == nullptr) return {};
  const auto old_attempt = json::get_int(*facts.old_status, {"restartCount"}).value_or(0);
  if (old_attempt < facts.attempt &&
      json::find(*facts.old_status, {"state", "terminated"}) != nullptr) {
    return json::get_object(*facts.old_status, {"state"});
  }
  return json::get_object(*facts.old_status, {"lastState"});
}

json::value container_status(const ContainerFacts& facts, std::string_view pod_uid) {
  json::object state;
  json::object last = last_state(facts);
  if (facts.life == Life::kRunning && !facts.starting()) {
    state["running"] = json::object{{"startedAt", rfc3339(facts.started_at)}};
  } else if (!facts.waiting_reason.empty()) {
    json::object waiting{{"reason", facts.waiting_reason}};
    if (!facts.waiting_message.empty()) waiting["message"] = facts.waiting_message;
    state["waiting"] = std::move(waiting);
    if (facts.life == Life::kStopped) last = terminated_state(facts, pod_uid);
  } else {
    state = terminated_state(facts, pod_uid);
  }
  const std::string_view image = json::get_string(*facts.spec, {"image"});
  json::object out;
  out["name"] = facts.name;
  out["state"] = std::move(state);
  out["lastState"] = std::move(last);
  // An ordinary init container is ready once it has done its work.
  out["ready"] = facts.init && !facts.sidecar ? facts.succeeded() : facts.ready && !facts.ephemeral;
  out["restartCount"] = facts.attempt;
  out["image"] = json::string(image);
  out["imageID"] = facts.life == Life::kNeverRan ? json::string()
                   : facts.image_id.empty()      ? json::string(image)
                                                 : json::string(facts.image_id);
  if (facts.life != Life::kNeverRan) {
    out["containerID"] = container_id(pod_uid, facts.name, facts.attempt);
  }
  if (!facts.ephemeral) out["started"] = facts.started;
  return out;
}

struct Condition {
  std::string_view type = {};
  bool on = false;
  std::string reason = {};
  std::string message = {};
};

json::value condition_json(const Condition& condition, const json::value& pod, Time now) {
  const json::object* old = api::condition(pod, condition.type);
  const std::string_view status = condition.on ? "True" : "False";
  json::object out;
  out["type"] = json::string(condition.type);
  out["status"] = json::string(status);
  const bool same = old != nullptr && json::get_string(json::value(*old), {"status"}) == status;
  out["lastTransitionTime"] = same && old->contains("lastTransitionTime")
                                  ? old->at("lastTransitionTime")
                                  : json::value(rfc3339(now));
  if (!condition.reason.empty()) out["reason"] = condition.reason;
  if (!condition.message.empty()) out["message"] = condition.message;
  return out;
}

std::string name_list(const std::vector<std::string_view>& names) {
  return fmt::format("[{}]", fmt::join(names, " "));
}

Condition initialized(const StatusInput& input) {
  std::vector<std::string_view> missing;
  const bool began = main_began(input.containers);
  for (const ContainerFacts& c : input.containers) {
    if (!c.init) continue;
    if (c.sidecar ? !c.started && !began : !c.succeeded()) missing.push_back(c.name);
  }
  if (input.phase == Phase::kSucceeded) return {"Initialized", true, "PodCompleted", ""};
  if (missing.empty()) return {"Initialized", true, "", ""};
  return {"Initialized", false, "ContainersNotInitialized",
          "containers with incomplete status: " + name_list(missing)};
}

Condition containers_ready(const StatusInput& input) {
  if (input.phase == Phase::kSucceeded) return {"ContainersReady", false, "PodCompleted", ""};
  if (input.phase == Phase::kFailed) return {"ContainersReady", false, "PodFailed", ""};
  std::vector<std::string_view> missing;
  for (const ContainerFacts& c : input.containers) {
    if ((!c.init || c.sidecar) && !c.ready) missing.push_back(c.name);
  }
  if (missing.empty()) return {"ContainersReady", true, "", ""};
  return {"ContainersReady", false, "ContainersNotReady",
          "containers with unready status: " + name_list(missing)};
}

Condition ready(const StatusInput& input, Condition containers) {
  containers.type = "Ready";
  if (!containers.on) return containers;
  for (const json::value& gate : json::get_array(*input.view.pod, {"spec", "readinessGates"})) {
    const std::string_view type = json::get_string(gate, {"conditionType"});
    if (!api::condition_true(*input.view.pod, type)) {
      return {
          "Ready", false, "ReadinessGatesNotReady",
          fmt::format("corresponding condition of pod readiness gate \"{}\" is not True", type)};
    }
  }
  return containers;
}

json::array conditions(const StatusInput& input, Time now) {
  const json::value& pod = *input.view.pod;
  const bool sandbox = input.view.sandbox && input.view.sandbox->alive;
  const Condition containers = containers_ready(input);
  const Condition own[] = {{"PodReadyToStartContainers", sandbox, "", ""},
                           initialized(input),
                           ready(input, containers),
                           containers};
  json::array out;
  for (const Condition& condition : own) out.push_back(condition_json(condition, pod, now));
  for (const json::value& old : json::get_array(pod, {"status", "conditions"})) {
    const std::string_view type = json::get_string(old, {"type"});
    const bool ours =
        std::any_of(std::begin(own), std::end(own), [&](const auto& c) { return c.type == type; });
    if (!ours) out.push_back(old);
  }
  return out;
}

void set_addresses(const StatusInput& input, json::object& status) {
  const PodView& view = input.view;
  if (!view.host_ip.empty()) {
    status["hostIP"] = view.host_ip;
    status["hostIPs"] = json::array{json::object{{"ip", view.host_ip}}};
  }
  std::string ip = view.sandbox ? view.sandbox->ip : std::string();
  const bool host = json::get_bool(*view.pod, {"spec", "hostNetwork"}).value_or(false);
  if (view.sandbox && host) ip = view.host_ip;
  if (ip.empty()) return;  // an address once told stays, as the log of where the pod was
  status["podIP"] = ip;
  status["podIPs"] = json::array{json::object{{"ip", ip}}};
}

}  // namespace

std::string container_id(std::string_view pod_uid, std::string_view container, int attempt) {
  return fmt::format("skiff://{}.{}.{}", pod_uid, container, attempt);
}

std::vector<ContainerFacts> container_facts(const PodView& view, Time now) {
  std::vector<ContainerFacts> out;
  for (const json::value& spec : json::get_array(*view.pod, {"spec", "initContainers"})) {
    ContainerFacts& facts = out.emplace_back(facts_of(view, spec, "initContainerStatuses", now));
    facts.init = true;
    facts.sidecar = json::get_string(spec, {"restartPolicy"}) == "Always";
  }
  for (const json::value& spec : json::get_array(*view.pod, {"spec", "containers"})) {
    out.push_back(facts_of(view, spec, "containerStatuses", now));
  }
  return out;
}

std::vector<ContainerFacts> ephemeral_facts(const PodView& view, Time now) {
  std::vector<ContainerFacts> out;
  for (const json::value& spec : json::get_array(*view.pod, {"spec", "ephemeralContainers"})) {
    ContainerFacts& facts =
        out.emplace_back(facts_of(view, spec, "ephemeralContainerStatuses", now));
    facts.ephemeral = true;
  }
  return out;
}

bool main_began(const std::vector<ContainerFacts>& containers) {
  return std::any_of(containers.begin(), containers.end(),
                     [](const ContainerFacts& c) { return !c.init && c.life != Life::kNeverRan; });
}

bool restarts(const ContainerFacts& c, std::string_view pod_policy) {
  if (c.sidecar) return true;
  if (c.init) return c.end.exit_code != 0 && pod_policy != "Never";
  if (pod_policy == "Never") return false;
  return pod_policy != "OnFailure" || c.end.exit_code != 0;
}

std::string_view phase_name(Phase phase) {
  switch (phase) {
    case Phase::kPending:
      return "Pending";
    case Phase::kRunning:
      return "Running";
    case Phase::kSucceeded:
      return "Succeeded";
    case Phase::kFailed:
      return "Failed";
  }
  return "Unknown";
}

Phase decide_phase(const std::vector<ContainerFacts>& containers, std::string_view pod_policy,
                   bool ending) {
  int pending_init = 0, failed_init = 0, running = 0, waiting = 0, stopped = 0, succeeded = 0;
  bool any_running = false;
  for (const ContainerFacts& c : containers) {
    any_running = any_running || c.life == Life::kRunning;
    if (c.sidecar) {
      if (c.life == Life::kNeverRan) ++pending_init;
    } else if (c.init) {
      if (c.life == Life::kStopped && c.end.exit_code != 0) {
        ++(restarts(c, pod_policy) && !ending ? pending_init : failed_init);
      } else if (!c.succeeded()) {
        ++pending_init;
      }
    } else {
      const bool first_start = c.starting() && c.attempt == 0;
      if (c.life == Life::kNeverRan || first_start) {
        ++waiting;
      } else if (c.life == Life::kRunning) {
        ++running;
      }
      if (c.life == Life::kStopped) ++stopped;
      if (c.succeeded()) ++succeeded;
    }
  }
  // Others rely on it: a pod that is over has nothing left running, not even a sidecar.
  const Phase over = any_running ? Phase::kRunning : Phase::kFailed;
  const Phase well = any_running ? Phase::kRunning : Phase::kSucceeded;
  if (failed_init > 0) return any_running ? Phase::kPending : Phase::kFailed;
  if (pending_init > 0) return Phase::kPending;
  if (waiting > 0) return Phase::kPending;
  if (running > 0) return Phase::kRunning;
  if (stopped == 0) return Phase::kPending;
  if (ending) return stopped == succeeded ? well : over;
  if (pod_policy == "Always") return Phase::kRunning;
  if (stopped == succeeded) return well;
  return pod_policy == "Never" ? over : Phase::kRunning;
}

json::value build_status(const StatusInput& input, Time now) {
  const json::value& pod = *input.view.pod;
  json::object status = json::get_object(pod, {"status"});
  status["phase"] = json::string(phase_name(input.phase));
  status["conditions"] = conditions(input, now);
  for (const auto& [key, text] :
       {std::pair{"reason", &input.reason}, std::pair{"message", &input.message}}) {
    if (!text->empty()) status[key] = *text;
  }
  set_addresses(input, status);
  if (!status.contains("startTime")) status["startTime"] = rfc3339(now);
  if (!status.contains("qosClass")) status["qosClass"] = json::string(qos_class(pod));
  json::array init, main;
  for (const ContainerFacts& c : input.containers) {
    (c.init ? init : main).push_back(container_status(c, api::uid(pod)));
  }
  if (!init.empty()) status["initContainerStatuses"] = std::move(init);
  json::array ephemeral;
  for (const ContainerFacts& c : input.ephemeral) {
    ephemeral.push_back(container_status(c, api::uid(pod)));
  }
  if (!ephemeral.empty()) status["ephemeralContainerStatuses"] = std::move(ephemeral);
  status["containerStatuses"] = std::move(main);
  return status;
}

json::value status_patch(const json::value& old_status, const json::value& new_status) {
  json::object changes;
  const json::object& before = json::get_object(old_status, {});
  const json::object& after = json::get_object(new_status, {});
  for (const auto& [key, value] : after) {
    const json::value* old = before.if_contains(key);
    if (old == nullptr || *old != value) changes[key] = value;
  }
  for (const auto& [key, value] : before) {
    if (!after.contains(key)) changes[key] = nullptr;
  }
  return json::object{{"status", std::move(changes)}};
}

}  // namespace skiff::node
