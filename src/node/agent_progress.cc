// How far training programs are: read from what they say, told by an annotation of their pod.
#include <fmt/format.h>

#include <algorithm>

#include "api/meta.h"
#include "node/agent_impl.h"
#include "node/pod_status.h"
#include "node/progress_file.h"

namespace skiff::node {
namespace {

constexpr std::chrono::seconds kProgressLookEvery{2};
// Runs looked at in one go. Where there are more, each waits for its turn.
constexpr std::size_t kLooks = 512;
// A pod that ended longer ago than this has told what it had to tell.
constexpr std::chrono::seconds kLate{60};

// The runs of one pod that may have news.
void add_targets(Runtime& runtime, Time now, AgentPod& pod, std::vector<ProgressTarget>& out) {
  if (!pod.object || !pod.sandbox || pod.gone || pod.progress_told) return;
  const bool ended = finished(*pod.object);
  if (pod.folder.empty() && !ended) pod.folder = runtime.pod_folder(pod.uid).value_or("");
  const bool leads = leads_training(*pod.object);
  for (const json::value& container : json::get_array(*pod.object, {"spec", "containers"})) {
    const std::string_view name = json::get_string(container, {"name"});
    const auto& records = pod.sandbox->containers;
    const auto record = std::ranges::find(records, name, &ContainerRecord::name);
    if (record == records.end() || record->state == ContainerState::kFailedToStart) continue;
    if (ended && now - record->finished_at > kLate) continue;
    out.push_back({.uid = pod.uid,
                   .container = std::string(name),
                   .attempt = record->attempt,
                   .log = runtime.log_path(pod.uid, name, record->attempt),
                   .file = pod.folder.empty() ? "" : progress_file(pod.folder, name),
                   .leads = leads,
                   .ended = ended});
  }
  pod.progress_told = ended;
}

}  // namespace

void Agent::Impl::look_at_progress(std::size_t round) {
  std::vector<Pod*> leaders, others;
  for (auto& [uid, pod] : pods_) {
    if (!pod.object || !pod.sandbox || pod.progress_told || !trains(*pod.object)) continue;
    (leads_training(*pod.object) ? leaders : others).push_back(&pod);
  }
  std::vector<ProgressTarget> targets;
  // Each round goes on where the last one stopped.
  for (std::vector<Pod*>* group : {&leaders, &others}) {
    const std::size_t count = std::min(group->size(), kLooks / 2);
    for (std::size_t i = 0; i < count; ++i) {
      Pod& pod = *(*group)[(round * (kLooks / 2) + i) % group->size()];
      add_targets(runtime_, clock_.now(), pod, targets);
    }
  }
  if (targets.empty()) {
    return post_after(kProgressLookEvery,
                      [round](Impl& agent) { agent.look_at_progress(round + 1); });
  }
  // Beside the agent: the disk may take its time. The next look waits for this one.
  probers_.run(
      [this, targets = std::move(targets), many = others.size(), round](const std::stop_token&) {
        auto news = progress_.look(targets, many, clock_.elapsed(), clock_.now());
        post([news = std::move(news), round](Impl& agent) {
          for (const ProgressNews& one : news) agent.tell_progress(one);
          agent.post_after(kProgressLookEvery,
                           [round](Impl& next) { next.look_at_progress(round + 1); });
        });
      });
}

void Agent::Impl::tell_progress(const ProgressNews& news) {
  const auto found = pods_.find(news.uid);
  if (found == pods_.end() || !found->second.object || found->second.gone) return;
  const json::value& pod = *found->second.object;
  client::Write write;
  write.verb = client::Verb::kMergePatch;
  write.resource = {.group = "", .version = "v1", .plural = "pods", .kind = "Pod"};
  write.ns = api::ns(pod);
  write.name = api::name(pod);
  write.uid = news.uid;
  write.synced = false;
  write.body = json::object{
      {"metadata", {{"annotations", {{kProgressAnnotation, json::serialize(news.told)}}}}}};
  const Result<json::value> done = client_.write(write);
  if (done || done.error().code == Code::kNotFound || done.error().code == Code::kConflict) return;
  log(fmt::format("cannot tell the progress of pod {}: {}", write.name, done.error().message));
}

}  // namespace skiff::node
