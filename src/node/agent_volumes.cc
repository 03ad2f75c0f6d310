// How the agent keeps the volumes of running pods: they follow what they are made of, and one that
// outgrows its limit costs the pod its place.
#include <fmt/format.h>

#include "api/meta.h"
#include "base/limits.h"
#include "node/agent_impl.h"

namespace skiff::node {
namespace {

// Limits are looked at in every round, as often as the kubelet does; what files are made of in
// every sixth, for the sake of tokens and of changes that nobody told.
constexpr unsigned kRefreshRounds = 6;

bool told_differently(const json::value& before, const json::value& after) {
  for (const std::string_view field : {"labels", "annotations"}) {
    if (json::get_object(before, {"metadata", field}) !=
        json::get_object(after, {"metadata", field})) {
      return true;
    }
  }
  return false;
}

bool forget_missing(std::map<std::string, Obstacle, std::less<>>& obstacles) {
  return std::erase_if(obstacles, [](const auto& entry) {
           return entry.second.reason == "ContainerCreating" ||
                  entry.second.reason == "CreateContainerConfigError";
         }) > 0;
}

}  // namespace

api::Resource source_resource(SourceKind kind) {
  api::Resource out{.group = "", .version = "v1"};
  switch (kind) {
    case SourceKind::kConfigMap:
      out.plural = "configmaps", out.kind = "ConfigMap";
      break;
    case SourceKind::kSecret:
      out.plural = "secrets", out.kind = "Secret";
      break;
    case SourceKind::kClaim:
      out.plural = "persistentvolumeclaims", out.kind = "PersistentVolumeClaim";
      break;
    case SourceKind::kVolume:
      out.plural = "persistentvolumes", out.kind = "PersistentVolume", out.namespaced = false;
      break;
  }
  return out;
}

// Labels and annotations are the part of a pod that its own files may show.
void Agent::Impl::take_object(Pod& pod, Object object) {
  if (pod.object && told_differently(*pod.object, *object)) pod.refresh = true;
  pod.object = std::move(object);
}

bool Agent::Impl::poll_sources(Mirror& mirror, SourceKind kind) {
  const bool well =
      poll(mirror, [this, kind](const client::Event& event) { source_event(kind, event); });
  if (!mirror.take_gap()) return well;
  // Any of them may have changed.
  for (auto& [uid, pod] : pods_) {
    if (!pod.object || finished(*pod.object)) continue;
    forget_missing(pod.obstacles);
    pod.refresh = true;
    post([key = uid](Impl& agent) { agent.visit(key); });
  }
  return well;
}

void Agent::Impl::source_event(SourceKind kind, const client::Event& event) {
  const std::string_view ns = api::ns(*event.object);
  const std::string_view name = api::name(*event.object);
  for (auto& [uid, pod] : pods_) {
    if (!pod.object || api::ns(*pod.object) != ns) continue;
    // It may be the one that a container could not start without.
    const bool awaited = event.type != client::EventType::kDeleted && forget_missing(pod.obstacles);
    const bool part = made_of(*pod.object, kind, name);
    pod.refresh = pod.refresh || part;
    if (awaited || part) post([key = uid](Impl& agent) { agent.visit(key); });
  }
}

void Agent::Impl::check_volumes() {
  const bool refresh = ++volume_rounds_ % kRefreshRounds == 0;
  for (auto& [uid, pod] : pods_) {
    if (!pod.object || finished(*pod.object)) continue;
    const bool measure = !volume_limits(*pod.object).empty();
    pod.refresh = pod.refresh || refresh;
    pod.measure = pod.measure || measure;
    if (refresh || measure) post([key = uid](Impl& agent) { agent.visit(key); });
  }
  if (refresh) reclaim_volumes();
  post_after(options_.volumes_every, [](Impl& agent) { agent.check_volumes(); });
}

void Agent::Impl::tend_volumes(Pod& pod) {
  const bool full = *held_ > limits::kStartingBytes;
  if (full && pod.refresh) wake_pod(pod, kStartingPause);
  const bool refresh = !full && std::exchange(pod.refresh, false);
  const bool measure = std::exchange(pod.measure, false);
  // One that has not begun gets everything anew when it does.
  const bool begun = pod.sandbox && pod.sandbox->alive && !pod.sandbox->containers.empty();
  if (!begun || finished(*pod.object) || pod.eviction) return;
  std::vector<Volume> volumes;
  if (refresh) {
    json::value object = *pod.object;
    if (!pod.sandbox->ip.empty()) json::make_object(object, {"status"})["podIP"] = pod.sandbox->ip;
    Refresh plan = plan_refresh(environment(object, json::value()));
    for (const std::string& problem : plan.problems) {
      events_.record(*pod.object, {true, "FailedMount", problem, ""}, clock_.now());
    }
    volumes = std::move(plan.volumes);
  }
  std::vector<VolumeLimit> limits;
  if (measure) limits = volume_limits(*pod.object);
  if (volumes.empty() && limits.empty()) return;
  std::shared_ptr<void> held = hold(held_, bytes_of(volumes));
  run_job(
      pod,
      [uid = pod.uid, held = std::move(held), volumes = std::move(volumes),
       limits = std::move(limits)](Runtime& runtime) -> Outcome {
        const Result<std::string> folder = runtime.pod_folder(uid);
        if (!folder) return [](Impl&, Pod&) {};
        std::string problem;
        for (const Volume& volume : volumes) {
          const Result<std::string> made = make_volume(*folder, volume, {});
          if (!made) problem = made.error().message;
        }
        return [problem, over = exceeded(*folder, limits)](Impl& agent, Pod& at) {
          if (!problem.empty()) {
            agent.log(fmt::format("cannot refresh a volume of pod {}: {}", at.uid, problem));
          }
          if (!over || !at.object) return;
          at.eviction = fmt::format("Usage of EmptyDir volume \"{}\" exceeds the limit \"{}\". ",
                                    over->volume, over->text);
          agent.events_.record(*at.object, {true, "Evicted", *at.eviction, ""}, agent.clock_.now());
        };
      });
}

}  // namespace skiff::node
