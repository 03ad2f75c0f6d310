// How the agent treats pods: asks the plan, then the API and the runtime.
#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "api/meta.h"
#include "base/limits.h"
#include "base/quantity.h"
#include "node/agent_impl.h"
#include "node/host_ports.h"
#include "node/pod_status.h"
#include "node/progress_file.h"
#include "node/security.h"

namespace skiff::node {
namespace {

constexpr std::chrono::seconds kWriteRetry{1};
constexpr std::chrono::seconds kRemoveRetry{5};
// A missing config map or a missing volume is looked for again this often.
constexpr std::chrono::seconds kObstacleRetry{2};
// An image does not come by waiting: a new mapping wakes its pods at once.
constexpr std::chrono::seconds kImageRetry{300};
constexpr int kRoundsMax = 8;

api::Resource pods() { return {.group = "", .version = "v1", .plural = "pods", .kind = "Pod"}; }

// What a plan depends on and the agent itself never writes.
bool changed_by_others(const json::value& before, const json::value& after) {
  const auto deletion = [](const json::value& pod) {
    return json::get_string(pod, {"metadata", "deletionTimestamp"});
  };
  const auto spec = [](const json::value& pod) -> const json::object& {
    return json::get_object(pod, {"spec"});
  };
  return deletion(before) != deletion(after) || spec(before) != spec(after);
}

const std::vector<ContainerRecord> kNoRecords = {};

struct StartReport {
  std::vector<std::pair<std::string, Refusal>> failures = {};  // by container
  std::vector<std::string> started = {};
};

// How the start of a container went, which its record says.
PodNote start_note(const std::optional<SandboxRecord>& sandbox, const std::string& name) {
  for (const ContainerRecord& record : sandbox ? sandbox->containers : kNoRecords) {
    if (record.name == name && record.state == ContainerState::kFailedToStart) {
      return {true, "Failed", "Error: " + record.message, name};
    }
  }
  return {false, "Started", "Started container " + name, name};
}

// On a worker: everything about starting that touches the disk or the runtime.
StartReport start_all(Runtime& runtime, const std::string& uid, std::vector<Setup> setups,
                      const std::string& hosts, const std::vector<std::string>& hidden,
                      const image::Images* images) {
  StartReport report;
  const Result<std::string> folder = runtime.pod_folder(uid);
  for (Setup& setup : setups) {
    const std::string name = setup.spec.name;
    if (!folder) {
      report.failures.push_back({name, {"CreateContainerError", folder.error().message}});
      continue;
    }
    const auto stored = setup.stored;
    const bool trains = setup.trains;
    auto spec = mount_volumes(std::move(setup), *folder, hidden);
    if (spec && stored) spec = lay_layers(std::move(*spec), *images, uid, *stored);
    if (spec) spec = mount_hosts(std::move(*spec), *folder, hosts);
    if (spec && trains) spec = mount_progress(std::move(*spec), *folder);
    if (!spec) {
      report.failures.push_back({name, spec.error()});
      continue;
    }
    if (const auto done = runtime.start_container(uid, *spec); !done) {
      report.failures.push_back({name, {"RunContainerError", done.error().message}});
      continue;
    }
    report.started.push_back(name);
  }
  return report;
}

// What a run is measured against: its GPUs and its share of the CPUs.
void note_limits(const json::value& pod, const GpuBook& gpus, const std::string& uid,
                 RunningPod::Run& run) {
  const json::object kept = gpus.kept(uid);
  if (const json::value* claim = kept.if_contains(run.container)) {
    run.gpus = json::strings(json::get_array(*claim, {"gpus"}));
  }
  const json::value* container = find_container(pod, run.container);
  const json::value* limit =
      container == nullptr ? nullptr : json::find(*container, {"resources", "limits", "cpu"});
  if (limit == nullptr) return;
  run.cpu_limit_milli = Quantity::from_json(*limit).value_or(Quantity()).milli();
}

}  // namespace

void Agent::Impl::pod_event(const client::Event& event) {
  const json::value& object = *event.object;
  const std::string uid(api::uid(object));
  const bool mine = json::get_string(object, {"spec", "nodeName"}) == options_.node_name;
  if (event.type == client::EventType::kDeleted) {
    if (strangers_.erase(uid) > 0) return clear_away(uid);
    const auto found = pods_.find(uid);
    if (found == pods_.end()) return;
    found->second.gone = true;
    return visit(uid);
  }
  if (!mine) return;
  const bool stranger = strangers_.erase(uid) > 0;
  const auto [found, first] = pods_.try_emplace(uid);
  Pod& pod = found->second;
  // The folders of an earlier life were looked at once; a pod that comes later has none.
  if (first) pod.known = adopted_ && !stranger;
  pod.uid = uid;
  // Our own writes come back late: never step behind what the last one answered.
  if (pod.object && api::revision(*pod.object) >= api::revision(object)) return;
  take_object(pod, event.object);
  visit(uid);
}

// What an earlier Skiff left: pods that still exist are asked about when they are visited. One that
// the API has under another node's name may be somebody's work and stays as long as its object; the
// rest is of no use to anybody.
void Agent::Impl::adopt(const std::vector<std::string>& uids) {
  std::set<std::string, std::less<>> existing;
  for (const auto& [key, object] : pods_mirror_.objects()) existing.emplace(api::uid(*object));
  forget_images(existing);
  for (const std::string& uid : uids) {
    hold_gpus(uid);
    if (pods_.contains(uid)) continue;
    if (!existing.contains(uid)) {
      clear_away(uid);
      continue;
    }
    strangers_.insert(uid);
    log(fmt::format("pod {} runs here but is bound to another node: it is left alone", uid));
  }
}

void Agent::Impl::clear_away(const std::string& uid) {
  Pod& pod = pods_[uid];
  pod.uid = uid;
  pod.gone = true;
  visit(uid);
}

// Notifications can be lost with the process that sends them; looking now and then cannot.
void Agent::Impl::resync() {
  for (auto& [uid, pod] : pods_) {
    if (!pod.object || finished(*pod.object)) continue;
    post([key = uid](Impl& agent) {
      const auto found = agent.pods_.find(key);
      if (found == agent.pods_.end()) return;
      found->second.known = false;
      agent.visit(key);
    });
  }
  services_checked();
  post_after(options_.resync_every, [](Impl& agent) { agent.resync(); });
}

void Agent::Impl::images_changed() {
  for (auto& [uid, pod] : pods_) {
    if (std::erase_if(pod.obstacles, [](const auto& entry) {
          return about_image(entry.second.reason) || entry.second.reason == "CreateContainerError";
        }) > 0) {
      post([key = uid](Impl& agent) { agent.visit(key); });
    }
  }
}

void Agent::Impl::wake_pod(Pod& pod, Duration wait) {
  const auto when = std::chrono::steady_clock::now() + wait;
  // An earlier timer comes anyway, and plans again.
  if (pod.wake <= when && pod.wake > std::chrono::steady_clock::now()) return;
  pod.wake = when;
  mailbox_.post_at(when, [this, uid = pod.uid, when] {
    const auto found = pods_.find(uid);
    if (found == pods_.end()) return;
    if (found->second.wake == when) found->second.wake = Mailbox::When::max();
    visit(uid);
  });
}

void Agent::Impl::visit(const std::string& uid) {
  const auto found = pods_.find(uid);
  if (found == pods_.end()) return;
  Pod& pod = found->second;
  if (pod.busy) return;  // its outcome visits again
  if (pod.gone) return remove(pod);
  if (!pod.known) return ask_runtime(pod);
  if (!pod.safe) {
    if (pod.safe_asked) return;
    pod.safe_asked = true;
    const std::weak_ptr<Impl> self = weak_from_this();
    client_.when_safe([self, uid] {
      if (const auto impl = self.lock()) {
        impl->post([uid](Impl& agent) {
          const auto safe = agent.pods_.find(uid);
          if (safe == agent.pods_.end()) return;
          safe->second.safe = true;
          agent.visit(uid);
        });
      }
    });
    return;
  }
  for (int round = 0; round < kRoundsMax && !pod.busy && !pod.gone; ++round) {
    give_up_hooks(pod);
    PodView view{.pod = pod.object,
                 .sandbox = pod.sandbox,
                 .obstacles = pod.obstacles,
                 .sandbox_obstacle = pod.sandbox_obstacle,
                 .eviction = pod.eviction,
                 .port_clash = find_port_clash(pod),
                 .memory = pod.memory,
                 .health = look_after(pod),
                 .hooks = pod.hooks,
                 .host_ip = options_.node_address};
    for (const auto& [name, state] : pod.images) {
      if (!state.id.empty()) view.image_ids[name] = state.id;
    }
    PodActions actions = plan_pod(view, clock_.now());
    const std::vector<PodActions::Start> starts = actions.start;
    act(pod, std::move(actions));
    // Its sandbox may have been lost rather than stopped: with its shim, or with the machine.
    const bool alive = pod.sandbox && pod.sandbox->alive;
    if (!alive && finished(*pod.object)) let_go_gpus(pod.uid);
    if (pod.busy || pod.gone || starts.empty()) break;
    if (start_containers(pod, starts)) break;
  }
  if (!pod.busy && !pod.gone) tend_volumes(pod);
}

// Only before it was taken: afterwards its ports are its own.
std::optional<std::string> Agent::Impl::find_port_clash(const Pod& pod) const {
  const auto taken = [](const Pod& one) {
    return one.sandbox || json::find(*one.object, {"status", "startTime"}) != nullptr;
  };
  if (taken(pod) || !wants_host_ports(*pod.object)) return {};
  std::vector<Object> others;
  for (const auto& [uid, other] : pods_) {
    // One that the API has let go holds nothing, whatever is still to be cleared away of it.
    if (uid == pod.uid || other.gone || finished(*other.object)) continue;
    if (taken(other)) others.push_back(other.object);
  }
  return port_clash(*pod.object, others);
}

void Agent::Impl::ask_runtime(Pod& pod) {
  pod.changed = false;
  run_job(pod, [uid = pod.uid](Runtime& runtime) -> Outcome {
    Result<SandboxRecord> record = runtime.inspect(uid);
    return [record = std::move(record)](Impl& agent, Pod& at) mutable {
      if (!record && record.error().code != Code::kNotFound) {
        // It may well be running: not to know is no reason to start it anew.
        agent.log(fmt::format("cannot look at pod {}: {}", at.uid, record.error().message));
        return agent.rest(at, kWriteRetry);
      }
      at.known = !at.changed;  // a change after the look asks for another
      if (record) {
        at.sandbox = std::move(*record);
      } else {
        at.sandbox.reset();
      }
    };
  });
}

void Agent::Impl::remove(Pod& pod) {
  for (auto& [hook, stop] : pod.hook_stops) stop.request_stop();
  run_job(pod, [uid = pod.uid, images = options_.images](Runtime& runtime) -> Outcome {
    Result<void> done = runtime.stop_sandbox(uid);
    if (done || done.error().code == Code::kNotFound) done = runtime.remove_sandbox(uid);
    const bool removed = done || done.error().code == Code::kNotFound;
    if (removed && images != nullptr) images->store().forget(uid);
    return [removed, why = done ? std::string() : done.error().message](Impl& agent, Pod& at) {
      if (removed) {
        agent.events_.forget(at.uid);
        agent.tokens_.forget(at.uid);
        agent.gpus_.release(at.uid);
        agent.progress_.forget(at.uid);
        agent.pods_.erase(at.uid);  // `at` is gone after this
        return;
      }
      agent.log(fmt::format("cannot remove pod {}: {}", at.uid, why));
      agent.rest(at, kRemoveRetry);
    };
  });
}

void Agent::Impl::rest(Pod& pod, Duration wait) {
  pod.busy = true;  // until the next try
  post_after(wait, [uid = pod.uid](Impl& agent) {
    const auto found = agent.pods_.find(uid);
    if (found == agent.pods_.end()) return;
    found->second.busy = false;
    agent.visit(uid);
  });
}

void Agent::Impl::act(Pod& pod, PodActions actions) {
  // What could not be written is planned again from the start: nothing of this round is remembered.
  if (actions.status && !write_status(pod, *actions.status, actions.terminal)) {
    wake_pod(pod, kWriteRetry);
    // The room that a full disk lacks may be what this pod is to give back: its end goes on.
    if (!pod.eviction) return;
  }
  pod.memory = std::move(actions.memory);
  for (const PodNote& note : actions.notes) events_.record(*pod.object, note, clock_.now());
  for (const PodActions::Hook& hook : actions.hooks) begin_hook(pod, hook);
  if (actions.wake_after) wake_pod(pod, *actions.wake_after);
  if (actions.finalise_delete) return finalise(pod);
  if (!actions.signals.empty()) return send_signals(pod, std::move(actions.signals));
  if (actions.stop_sandbox) {
    return run_job(pod, [uid = pod.uid](Runtime& runtime) -> Outcome {
      const Result<void> done = runtime.stop_sandbox(uid);
      return [why = done ? std::string() : done.error().message](Impl& agent, Pod& at) {
        at.known = false;
        if (why.empty()) {
          // Whatever the record still says, this node runs nothing of it any more.
          if (at.sandbox) at.sandbox->alive = false;
          at.known = true;
          agent.let_go_gpus(at.uid);
          return;
        }
        agent.log(fmt::format("cannot stop pod {}: {}", at.uid, why));
      };
    });
  }
  if (actions.start_sandbox) start_sandbox(pod);
}

bool Agent::Impl::write_status(Pod& pod, const json::value& status, bool terminal) {
  const json::value* old = json::find(*pod.object, {"status"});
  client::Write write;
  write.verb = client::Verb::kMergePatch;
  write.resource = pods();
  write.ns = api::ns(*pod.object);
  write.name = api::name(*pod.object);
  write.subresource = "status";
  write.body = status_patch(old == nullptr ? json::value(json::object()) : *old, status);
  write.uid = pod.uid;
  write.synced = terminal;
  Result<json::value> done = client_.write(write);
  if (done) {
    // Somebody may have been quicker, and the event that tells so is older than this answer.
    const bool news = changed_by_others(*pod.object, *done);
    take_object(pod, std::make_shared<const json::value>(std::move(*done)));
    if (news || pod.refresh) post([uid = pod.uid](Impl& agent) { agent.visit(uid); });
    return true;
  }
  const bool gone = done.error().code == Code::kNotFound || done.error().code == Code::kConflict;
  if (!gone)
    log(fmt::format("cannot write the status of pod {}: {}", write.name, done.error().message));
  return false;
}

void Agent::Impl::finalise(Pod& pod) {
  client::Write write;
  write.verb = client::Verb::kDelete;
  write.resource = pods();
  write.ns = api::ns(*pod.object);
  write.name = api::name(*pod.object);
  write.uid = pod.uid;
  write.body = json::object{{"gracePeriodSeconds", 0}};
  const Result<json::value> done = client_.write(write);
  if (done || done.error().code == Code::kNotFound || done.error().code == Code::kConflict) {
    // A finalizer may keep the object; its removal is told by the watch.
    return;
  }
  log(fmt::format("cannot remove pod {}: {}", write.name, done.error().message));
  wake_pod(pod, kWriteRetry);
}

void Agent::Impl::start_sandbox(Pod& pod) {
  const json::value& object = *pod.object;
  SandboxSpec spec;
  spec.pod_uid = pod.uid;
  spec.pod_ns = api::ns(object);
  spec.pod_name = api::name(object);
  spec.hostname = pod_hostname(object);
  spec.host_network = json::get_bool(object, {"spec", "hostNetwork"}).value_or(false);
  spec.resolv_conf = resolv_conf_for(object, options_.dns_address);
  if (!spec.host_network) {
    const auto records = dns_records();
    spec.hosts = hosts_for(object, options_.dns_address.empty() ? records.get() : nullptr);
  } else {
    std::ifstream machine("/etc/hosts", std::ios::binary);
    spec.hosts =
        host_network_hosts(object, std::string(std::istreambuf_iterator<char>(machine), {}));
  }
  spec.masked = options_.hidden;
  spec.sysctls = pod_sysctls(object);
  run_job(pod, [spec = std::move(spec)](Runtime& runtime) -> Outcome {
    Result<SandboxRecord> record = runtime.start_sandbox(spec);
    return [record = std::move(record)](Impl& agent, Pod& at) mutable {
      if (record) {
        at.sandbox = std::move(*record);
        at.sandbox_obstacle.reset();
        at.sandbox_failures = 0;
        return;
      }
      const Time now = agent.clock_.now();
      const std::chrono::seconds wait(1 << std::min(at.sandbox_failures++, 5));
      at.sandbox_obstacle = Obstacle{.reason = "FailedCreatePodSandBox",
                                     .message = record.error().message,
                                     .since = now,
                                     .retry_at = now + wait};
      agent.events_.record(*at.object,
                           {true, "FailedCreatePodSandBox",
                            "Failed to create pod sandbox: " + record.error().message, ""},
                           now);
    };
  });
}

EnvironmentInput Agent::Impl::environment(const json::value& pod, const json::value& container) {
  return {.pod = pod,
          .container = container,
          .lookup =
              [this, ns = std::string(api::ns(pod))](SourceKind kind, std::string_view name) {
                const api::Resource resource = source_resource(kind);
                return client_.get(resource, resource.namespaced ? ns : std::string(), name);
              },
          .tokens = options_.tokens
                        ? TokenSource([this](const TokenWish& wish) { return tokens_.get(wish); })
                        : TokenSource(),
          .machine = options_.machine_env,
          .api_host = api_.host,
          .api_port = api_.port,
          .node_cpu_milli = node_.machine.cpus * 1000,
          .node_memory_bytes = node_.machine.memory_bytes,
          .volumes_folder = options_.volumes_folder};
}

void Agent::Impl::obstruct(Pod& pod, const std::string& container, const Refusal& refusal) {
  const Time now = clock_.now();
  Obstacle& obstacle = pod.obstacles[container];
  const bool same = obstacle.reason == refusal.reason && obstacle.message == refusal.message;
  const bool image = refusal.reason == "ErrImagePull";
  obstacle = {.reason = refusal.reason,
              .message = refusal.message,
              .since = same ? obstacle.since : now,
              .retry_at = now + (image ? kImageRetry : kObstacleRetry)};
  const json::value* spec = find_container(*pod.object, container);
  PodNote note{true, "Failed", "Error: " + refusal.message, container};
  if (image) {
    note.message =
        fmt::format("Failed to pull image \"{}\": {}",
                    spec == nullptr ? "" : json::get_string(*spec, {"image"}), refusal.message);
  } else if (about_image(refusal.reason)) {
    note = {true, "InspectFailed", refusal.message, container};
  } else if (refusal.reason == "ContainerCreating") {
    note = {true, "FailedMount", refusal.message, ""};
  }
  if (!same) events_.record(*pod.object, note, now);
}

bool Agent::Impl::start_containers(Pod& pod, const std::vector<PodActions::Start>& starts) {
  if (*held_ > limits::kStartingBytes) {
    wake_pod(pod, kStartingPause);
    return true;
  }
  json::value object = *pod.object;
  if (pod.sandbox && !pod.sandbox->ip.empty()) {
    json::make_object(object, {"status"})["podIP"] = pod.sandbox->ip;
  }
  std::vector<Setup> setups;
  std::size_t bytes = 0;
  bool obstructed = false;
  for (const PodActions::Start& start : starts) {
    // The others are planned again when these have started.
    if (setups.size() >= limits::kStartingContainers || bytes > limits::kStartingBytes / 4) break;
    const json::value* container = find_container(object, start.container);
    if (container == nullptr) continue;
    const auto image = image_for(pod, *container, start.attempt);
    if (!image) continue;
    auto setup = !*image ? std::unexpected(image->error())
                         : set_up(pod, object, *container, start.attempt, **image);
    if (setup) {
      pod.obstacles.erase(start.container);
      setup->trains = trains(object);
      bytes += bytes_of(*setup);
      setups.push_back(std::move(*setup));
    } else {
      obstruct(pod, start.container, setup.error());
      obstructed = true;
    }
  }
  if (setups.empty()) return !obstructed;
  const bool own_hosts = !options_.dns_address.empty() &&
                         !json::get_bool(object, {"spec", "hostNetwork"}).value_or(false);
  run_job(pod,
          [uid = pod.uid, held = hold(held_, bytes), setups = std::move(setups),
           hidden = options_.hidden, images = options_.images,
           hosts = own_hosts ? hosts_for(object, nullptr)
                             : std::string()](Runtime& runtime) mutable -> Outcome {
            StartReport report = start_all(runtime, uid, std::move(setups), hosts, hidden, images);
            Result<SandboxRecord> record = runtime.inspect(uid);
            return [report = std::move(report), record = std::move(record)](Impl& agent,
                                                                            Pod& at) mutable {
              if (record) at.sandbox = std::move(*record);
              for (const auto& [name, refusal] : report.failures) {
                agent.obstruct(at, name, refusal);
                // It may be the image that has gone: the next try looks for it again.
                if (const auto known = at.images.find(name); known != at.images.end()) {
                  known->second.image.reset();
                }
              }
              for (const std::string& name : report.started) {
                const Time now = agent.clock_.now();
                agent.events_.record(*at.object,
                                     {false, "Created", "Created container: " + name, name}, now);
                agent.events_.record(*at.object, start_note(at.sandbox, name), now);
              }
            };
          });
  return true;
}

void Agent::Impl::send_signals(Pod& pod, std::vector<PodActions::Signal> signals) {
  run_job(pod, [uid = pod.uid, signals = std::move(signals)](Runtime& runtime) -> Outcome {
    for (const PodActions::Signal& signal : signals) {
      // A container that ended meanwhile needs none: the record says so.
      (void)runtime.signal(uid, signal.container, signal.signal);
    }
    Result<SandboxRecord> record = runtime.inspect(uid);
    return [record = std::move(record)](Impl&, Pod& at) mutable {
      if (record) at.sandbox = std::move(*record);
    };
  });
}

void Agent::Impl::publish_running(const std::string& uid) {
  RunningPod running{.uid = uid};
  const auto found = pods_.find(uid);
  if (found != pods_.end() && found->second.sandbox && found->second.sandbox->alive) {
    running.ns = found->second.sandbox->pod_ns;
    running.name = found->second.sandbox->pod_name;
    running.shown = found->second.object ? replica_shown(*found->second.object) : "";
    for (const ContainerRecord& record : found->second.sandbox->containers) {
      if (record.state != ContainerState::kRunning) continue;
      running.runs.push_back({.container = record.name,
                              .attempt = record.attempt,
                              .pid = record.pid,
                              .started_at = record.started_at});
      if (found->second.object) note_limits(*found->second.object, gpus_, uid, running.runs.back());
    }
  }
  const std::lock_guard lock(shared_mutex_);
  if (found == pods_.end() || found->second.known) unseen_.erase(uid);
  if (running.runs.empty()) {
    running_.erase(uid);
  } else {
    running_[uid] = std::move(running);
  }
}

void Agent::Impl::run_job(Pod& pod, std::function<Outcome(Runtime&)> job) {
  pod.busy = true;
  // A pod that has begun is finished before another begins: of a thousand new pods the first runs
  // after one sandbox, not after a thousand.
  const auto queue = pod.sandbox ? &Mailbox::post_urgent : &Mailbox::post;
  (jobs_.*queue)([this, uid = pod.uid, job = std::move(job)] {
    Outcome outcome = job(runtime_);
    post([uid, outcome = std::move(outcome)](Impl& agent) {
      const auto found = agent.pods_.find(uid);
      if (found == agent.pods_.end()) return;
      found->second.busy = false;
      outcome(agent, found->second);
      agent.publish_running(uid);
      agent.visit(uid);
    });
  });
}

}  // namespace skiff::node
