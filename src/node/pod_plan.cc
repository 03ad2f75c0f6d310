#include "node/pod_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "api/meta.h"
#include "base/quantity.h"
#include "node/pod_status.h"
#include "node/security.h"

namespace skiff::node {
namespace {

// What kubelet gives a container at least from its SIGTERM on, however late that comes.
constexpr std::chrono::seconds kGraceMin{2};

// One round of planning. The steps run in the order of plan_pod below; each reads what the ones
// before it found.
class Round {
 public:
  Round(const PodView& view, Time now)
      : view_(view),
        pod_(*view.pod),
        now_(now),
        policy_(json::get_string(pod_, {"spec", "restartPolicy"}, "Always")),
        deleting_(api::deleting(pod_)),
        containers_(container_facts(view, now)),
        ephemeral_(ephemeral_facts(view, now)) {
    actions_.memory = view.memory;
  }

  PodActions run() {
    if (finished(pod_)) return clean_up();
    check_deadline();
    const bool over = settled();
    if (ending_ || over) {
      end_containers();
    } else {
      run_containers();
      run_ephemeral();
    }
    write_status();
    return std::move(actions_);
  }

 private:
  bool alive() const { return view_.sandbox && view_.sandbox->alive; }

  static bool runs(const ContainerFacts& c) { return c.life == Life::kRunning; }
  bool any_running() const {
    return std::ranges::any_of(containers_, runs) || std::ranges::any_of(ephemeral_, runs);
  }

  void wake_at(Time when) {
    const Duration wait = std::max<Duration>(when - now_, std::chrono::milliseconds(1));
    if (!actions_.wake_after || wait < *actions_.wake_after) actions_.wake_after = wait;
  }

  // A finished pod never runs again; what is left of it goes.
  PodActions clean_up() {
    if (alive()) {
      actions_.stop_sandbox = true;
    } else if (deleting_) {
      actions_.finalise_delete = true;
    }
    return std::move(actions_);
  }

  void check_deadline() {
    ending_ = deleting_;
    if (const auto forbidden = forbidden_sysctl(pod_)) {
      ending_ = true;
      reason_ = "SysctlForbidden";
      message_ = "Pod was rejected: " + *forbidden;
      return;
    }
    if (view_.port_clash) {
      ending_ = true;
      reason_ = "NodePorts";
      message_ = *view_.port_clash;
      return;
    }
    if (view_.eviction) {
      ending_ = true;
      reason_ = "Evicted";
      message_ = *view_.eviction;
      return;
    }
    const auto seconds = json::get_int(pod_, {"spec", "activeDeadlineSeconds"});
    const auto start = api::time_at(pod_, {"status", "startTime"});
    if (!seconds || !start) return;
    const Time deadline = *start + std::chrono::seconds(*seconds);
    if (now_ < deadline) return wake_at(deadline);
    ending_ = true;
    reason_ = "DeadlineExceeded";
    message_ = "Pod was active on the node longer than the specified deadline";
  }

  // Nothing but sidecars has anything left to do.
  bool settled() const {
    for (const ContainerFacts& c : containers_) {
      if (c.sidecar) continue;
      if (c.init) {
        // A failure here ends the pod, whatever the containers after it are.
        if (c.life == Life::kStopped && c.end.exit_code != 0 && !restarts(c, policy_)) return true;
        continue;
      }
      if (c.life != Life::kStopped || restarts(c, policy_)) return false;
    }
    return true;
  }

  std::chrono::seconds grace() const {
    if (view_.eviction) return kGraceMin;
    auto seconds = json::get_int(pod_, {"metadata", "deletionGracePeriodSeconds"});
    if (!deleting_ || !seconds) {
      seconds = json::get_int(pod_, {"spec", "terminationGracePeriodSeconds"});
    }
    return std::chrono::seconds(std::max<std::int64_t>(0, seconds.value_or(30)));
  }

  void end_containers() {
    if (!any_running()) {
      // A container that waited to be started again has had its last run.
      if (alive()) {
        actions_.stop_sandbox = true;
      } else if (deleting_) {
        actions_.finalise_delete = true;
      }
      return;
    }
    // Sidecars serve the others to their end, and those that started before them: they go last, in
    // the reverse order.
    for (const ContainerFacts& c : ephemeral_) {
      if (runs(c)) end_run(c, grace(), true, "Stopping container " + c.name);
    }
    bool others = false;
    for (auto c = containers_.rbegin(); c != containers_.rend(); ++c) {
      if (c->life != Life::kRunning) continue;
      end_run(*c, grace(), !c->sidecar || !others, "Stopping container " + c->name);
      others = others || !c->init || c->sidecar;
    }
  }

  // One step on the way down of a run: the hook before its end, its turn, SIGTERM, SIGKILL.
  void end_run(const ContainerFacts& c, std::chrono::seconds patience, bool its_turn,
               std::string why) {
    PodMemory::Stop& stop = actions_.memory.stops[c.name];
    if (stop.attempt != c.attempt) {
      stop = {.attempt = c.attempt, .since = now_};
      actions_.notes.push_back({false, "Killing", std::move(why), c.name});
    }
    const Time deadline = stop.since + patience;
    if (!stop.term_at && now_ < deadline) {
      const bool held = hook_holds(c);
      if (held || !its_turn) return wake_at(deadline);
    }
    if (!stop.term_at) {
      stop.term_at = now_;
      actions_.signals.push_back({c.name, SIGTERM});
    }
    const Time kill_at = std::max(deadline, *stop.term_at + kGraceMin);
    if (now_ < kill_at) return wake_at(kill_at);
    actions_.signals.push_back({c.name, SIGKILL});
    // It is repeated: a process may have been started between two looks.
    wake_at(now_ + std::chrono::seconds(1));
  }

  // Whether the hook before the container's end is still to be waited for; begins it.
  bool hook_holds(const ContainerFacts& c) {
    if (find_hook(*c.spec, HookKind::kPreStop) == nullptr) return false;
    const HookRun* run = hook_run(view_.hooks, c.name, HookKind::kPreStop, c.attempt);
    if (run == nullptr) actions_.hooks.push_back({c.name, c.attempt, HookKind::kPreStop});
    return run == nullptr || !run->ended_well;
  }

  // What every container of the pod waits for before its first start, those of a failed pod too.
  const char* before_start() const {
    const bool init = std::any_of(containers_.begin(), containers_.end(),
                                  [](const ContainerFacts& c) { return c.init; });
    return init ? "PodInitializing" : "ContainerCreating";
  }

  void run_containers() {
    const bool began = main_began(containers_);
    bool blocked = false;  // by an init container that is not done
    for (ContainerFacts& c : containers_) {
      if (c.life == Life::kNeverRan || c.starting()) {
        c.waiting_reason = before_start();
      }
      if (blocked) continue;
      const std::size_t starts = actions_.start.size();
      consider(c);
      if (c.init) {
        blocked = c.sidecar ? !c.started && !began : !c.succeeded();
      } else {
        // Containers start one after another, and a hook is part of a start.
        const bool begins = actions_.start.size() > starts;
        blocked = (begins && find_hook(*c.spec, HookKind::kPostStart) != nullptr) ||
                  (c.starting() && c.hook != StartHook::kFailed);
      }
    }
    if (alive() || actions_.start.empty()) return;
    // The address of the pod is part of what its containers are told: sandbox first.
    actions_.start.clear();
    if (view_.sandbox_obstacle && now_ < view_.sandbox_obstacle->retry_at) {
      wake_at(view_.sandbox_obstacle->retry_at);
      for (ContainerFacts& c : containers_) {
        if (c.life == Life::kNeverRan) c.waiting_message = view_.sandbox_obstacle->message;
      }
      return;
    }
    actions_.start_sandbox = true;
  }

  // A probe wants this run ended; the pod's restart policy decides what comes after it.
  void bring_down(const ContainerFacts& c) {
    auto patience =
        json::get_int(*c.spec, {probe_field(*c.failed), "terminationGracePeriodSeconds"});
    if (!patience) patience = grace().count();
    end_run(c, std::chrono::seconds(*patience), true,
            fmt::format("Container {} failed {} probe{}", c.name,
                        *c.failed == ProbeKind::kStartup ? "startup" : "liveness",
                        policy_ == "Never" && !c.sidecar ? "" : ", will be restarted"));
  }

  void consider(ContainerFacts& c) {
    if (c.life == Life::kRunning) {
      if (c.hook == StartHook::kDue) {
        actions_.hooks.push_back({c.name, c.attempt, HookKind::kPostStart});
      } else if (c.hook == StartHook::kFailed) {
        end_run(c, grace(), true, "FailedPostStartHook");
      } else if (c.failed) {
        bring_down(c);
      }
      return;
    }
    if (c.life == Life::kStopped) {
      if (!restarts(c, policy_)) return;
      if (c.init && !c.sidecar && c.succeeded()) return;
      if (!may_restart(c)) return;
    }
    if (obstructed(c)) return;
    actions_.start.push_back({c.name, c.life == Life::kStopped ? c.attempt + 1 : c.attempt});
  }

  // Somebody looks into the pod: started once, whatever the pod's own containers are at.
  void run_ephemeral() {
    for (ContainerFacts& c : ephemeral_) {
      if (c.life != Life::kNeverRan || !alive() || obstructed(c)) continue;
      actions_.start.push_back({c.name, 0});
    }
  }

  // Whether what was in its way the last time must be waited for.
  bool obstructed(ContainerFacts& c) {
    const auto obstacle = view_.obstacles.find(c.name);
    if (obstacle == view_.obstacles.end()) return false;
    show_obstacle(c, obstacle->second);
    if (now_ >= obstacle->second.retry_at) return false;
    wake_at(obstacle->second.retry_at);
    return true;
  }

  // Pull failures are told twice over, as kubectl's readers know them: the failure, then the wait.
  void show_obstacle(ContainerFacts& c, const Obstacle& obstacle) {
    c.waiting_reason = obstacle.reason;
    c.waiting_message = obstacle.message;
    // The wait is told as such for at least its second half.
    const Duration half = (obstacle.retry_at - obstacle.since) / 2;
    const Time settles = obstacle.since + std::min<Duration>(kBackoffFirst, half);
    if (obstacle.reason != "ErrImagePull") return;
    if (now_ < settles) return wake_at(settles);
    c.waiting_reason = "ImagePullBackOff";
    c.waiting_message = fmt::format("Back-off pulling image \"{}\": {}",
                                    json::get_string(*c.spec, {"image"}), obstacle.message);
    const bool told =
        c.old_status != nullptr &&
        json::get_string(*c.old_status, {"state", "waiting", "reason"}) == c.waiting_reason;
    if (told) return;
    actions_.notes.push_back(
        {false, "BackOff",
         fmt::format("Back-off pulling image \"{}\"", json::get_string(*c.spec, {"image"})),
         c.name});
    actions_.notes.push_back({true, "Failed", "Error: ImagePullBackOff", c.name});
  }

  // Counts this end once, and says whether the wait after it is over.
  bool may_restart(ContainerFacts& c) {
    PodMemory::Restarts& memory = actions_.memory.restarts[c.name];
    if (memory.counted != c.attempt) {
      const int before = memory.counted < 0 ? c.attempt : memory.streak;
      const bool lasted = c.end.started_at && c.end.finished_at &&
                          *c.end.finished_at - *c.end.started_at >= kBackoffReset;
      memory = {.counted = c.attempt, .streak = lasted ? 1 : before + 1};
    }
    const Duration delay = restart_delay(memory.streak);
    const Time at = c.end.finished_at.value_or(now_) + delay;
    if (now_ >= at) return true;
    wake_at(at);
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(delay).count();
    c.waiting_reason = "CrashLoopBackOff";
    c.waiting_message = fmt::format("back-off {}s restarting failed container={} pod={}_{}({})",
                                    whole, c.name, api::name(pod_), api::ns(pod_), api::uid(pod_));
    const bool told =
        c.old_status != nullptr &&
        json::get_string(*c.old_status, {"state", "waiting", "reason"}) == "CrashLoopBackOff";
    if (!told) {
      actions_.notes.push_back({true, "BackOff",
                                fmt::format("Back-off restarting failed container {} in pod "
                                            "{}_{}({})",
                                            c.name, api::name(pod_), api::ns(pod_), api::uid(pod_)),
                                c.name});
    }
    return false;
  }

  Phase phase() const {
    if (!reason_.empty()) {
      if (!any_running()) return Phase::kFailed;
      return main_began(containers_) ? Phase::kRunning : Phase::kPending;
    }
    const Phase own = decide_phase(containers_, policy_, ending_);
    // A pod that is over has nothing left running.
    const bool over = own == Phase::kSucceeded || own == Phase::kFailed;
    return over && std::ranges::any_of(ephemeral_, runs) ? Phase::kRunning : own;
  }

  void write_status() {
    const Phase now_is = phase();
    const bool over = now_is == Phase::kSucceeded || now_is == Phase::kFailed;
    for (ContainerFacts& c : containers_) {
      if ((c.life != Life::kNeverRan && !c.starting()) || !c.waiting_reason.empty()) continue;
      c.waiting_reason = before_start();
    }
    for (ContainerFacts& c : ephemeral_) {
      if (c.life == Life::kNeverRan && c.waiting_reason.empty()) {
        c.waiting_reason = "ContainerCreating";
      }
    }
    // The reason of the pod is told with its end, not while its containers still run.
    const StatusInput input{view_,
                            containers_,
                            now_is,
                            over ? reason_ : std::string(),
                            over ? message_ : std::string(),
                            ephemeral_};
    json::value status = build_status(input, now_);
    const json::value* old = json::find(pod_, {"status"});
    if (old != nullptr && *old == status) return;
    actions_.status = std::move(status);
    actions_.terminal = over;
  }

  const PodView& view_;
  const json::value& pod_;
  const Time now_;
  const std::string policy_;
  const bool deleting_;
  std::vector<ContainerFacts> containers_;
  std::vector<ContainerFacts> ephemeral_;
  bool ending_ = false;  // nothing is started any more
  std::string reason_ = {};
  std::string message_ = {};
  PodActions actions_ = {};
};

// Zero where it is not given or is no quantity: neither asks for anything.
Quantity amount(const json::value& container, std::string_view list, std::string_view resource) {
  const json::value* given = json::find(container, {"resources", list, resource});
  return given == nullptr ? Quantity() : Quantity::from_json(*given).value_or(Quantity());
}

}  // namespace

Duration restart_delay(int streak) {
  if (streak <= 1) return Duration(0);
  Duration delay = kBackoffFirst;
  for (int i = 2; i < streak && delay < kBackoffMax; ++i) delay *= 2;
  return std::min<Duration>(delay, kBackoffMax);
}

PodActions plan_pod(const PodView& view, Time now) { return Round(view, now).run(); }

const json::value* find_container(const json::value& pod, std::string_view name) {
  for (const std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
    for (const json::value& container : json::get_array(pod, {"spec", list})) {
      if (json::get_string(container, {"name"}) == name) return &container;
    }
  }
  return nullptr;
}

bool finished(const json::value& pod) {
  const std::string_view phase = json::get_string(pod, {"status", "phase"});
  return phase == "Succeeded" || phase == "Failed";
}

std::string_view qos_class(const json::value& pod) {
  bool any = false;
  bool guaranteed = true;
  for (const std::string_view list : {"initContainers", "containers"}) {
    for (const json::value& c : json::get_array(pod, {"spec", list})) {
      for (const std::string_view resource : {"cpu", "memory"}) {
        const Quantity limit = amount(c, "limits", resource);
        const Quantity request = amount(c, "requests", resource);
        any = any || !limit.zero() || !request.zero();
        // A request that is not given is the limit.
        if (limit.zero() || (!request.zero() && request != limit)) guaranteed = false;
      }
    }
  }
  if (!any) return "BestEffort";
  return guaranteed ? "Guaranteed" : "Burstable";
}

}  // namespace skiff::node
