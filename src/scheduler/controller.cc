#include "scheduler/controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "api/meta.h"
#include "scheduler/ground.h"
#include "scheduler/schedule.h"
#include "scheduler/snapshot.h"

namespace skiff::scheduler {
namespace {

const api::Resource kPods = {.version = "v1", .plural = "pods", .kind = "Pod"};
const api::Resource kNodes = {
    .version = "v1", .plural = "nodes", .kind = "Node", .namespaced = false};

const api::Resource kClaims = {
    .version = "v1", .plural = "persistentvolumeclaims", .kind = "PersistentVolumeClaim"};
const api::Resource kVolumes = {.version = "v1",
                                .plural = "persistentvolumes",
                                .kind = "PersistentVolume",
                                .namespaced = false};
const api::Resource kClasses = {.group = "storage.k8s.io",
                                .version = "v1",
                                .plural = "storageclasses",
                                .kind = "StorageClass",
                                .namespaced = false};

// Free amounts change with every pod that comes or goes; rewriting ten thousand conditions for each
// would cost more than the placement. A reason that differs only in its numbers is brought up to
// date for the pods next in line, and not more often than this.
constexpr Duration kNumbersAge = std::chrono::seconds(30);
constexpr std::size_t kNumbersFor = 100;

bool same_but_numbers(std::string_view a, std::string_view b) {
  const auto strip = [](std::string_view text) {
    std::string out;
    std::ranges::copy_if(text, std::back_inserter(out),
                         [](char c) { return !(c >= '0' && c <= '9') && c != '.'; });
    return out;
  };
  return strip(a) == strip(b);
}

// `position`: among all that wait; `in_gang`: among those of its gang.
bool worth_writing(const Waiting& waiting, std::size_t position, std::size_t in_gang, Time now) {
  // A gang waits as one: telling each of ten thousand pods so would cost more than placing them.
  if (in_gang >= kNumbersFor) return false;
  // A large gang is made in several steps; most that are incomplete will soon be whole.
  if (waiting.incomplete && position >= kNumbersFor) return false;
  const json::object* known = api::condition(*waiting.pod->object, "PodScheduled");
  if (known == nullptr) return true;
  const json::value condition(*known);
  if (json::get_string(condition, {"status"}) != "False") return true;
  const std::string_view said = json::get_string(condition, {"message"});
  if (said == waiting.message) return false;
  if (!same_but_numbers(said, waiting.message)) return true;
  if (position >= kNumbersFor) return false;
  const auto probed = api::time_at(condition, {"lastProbeTime"});
  return !probed || now - *probed >= kNumbersAge;
}

control::Batch say_why(const Waiting& waiting, Time now) {
  const json::value& pod = *waiting.pod->object;
  json::object mine{{"type", "PodScheduled"},        {"status", "False"},
                    {"reason", "Unschedulable"},     {"message", waiting.message},
                    {"lastProbeTime", rfc3339(now)}, {"lastTransitionTime", rfc3339(now)}};
  json::array conditions;
  for (const json::value& condition : json::get_array(pod, {"status", "conditions"})) {
    if (json::get_string(condition, {"type"}) != "PodScheduled") {
      conditions.push_back(condition);
    } else if (json::get_string(condition, {"status"}) == "False") {
      mine["lastTransitionTime"] =
          json::string(json::get_string(condition, {"lastTransitionTime"}, rfc3339(now)));
    }
  }
  conditions.push_back(std::move(mine));
  client::Write write{.verb = client::Verb::kMergePatch,
                      .resource = kPods,
                      .ns = waiting.pod->key.ns,
                      .name = waiting.pod->key.name,
                      .subresource = "status",
                      .uid = std::string(api::uid(pod)),
                      .resource_version = std::string(api::resource_version(pod)),
                      .synced = false};
  // A merge patch replaces the list as a whole, hence the precondition on the revision it is from.
  write.body =
      json::object{{"status", {{"phase", "Pending"}, {"conditions", std::move(conditions)}}}};
  return {
      .writes = {std::move(write)},
      .notes = {
          {.object = waiting.pod->object,
           .note = {.warning = true, .reason = "FailedScheduling", .message = waiting.message}}}};
}

void say_why_all(const std::vector<Waiting>& all, Time now, control::GlobalPlan& plan) {
  std::unordered_map<std::string_view, std::size_t> told;  // by gang
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string& gang = all[i].pod->gang;
    const std::size_t in_gang = gang.empty() ? 0 : told[gang]++;
    if (worth_writing(all[i], i, in_gang, now)) plan.batches.push_back(say_why(all[i], now));
  }
}

// Changes nothing, and fails where the member is no longer as it was seen.
client::Write still_there(const Member& member) {
  return {.verb = client::Verb::kMergePatch,
          .resource = kPods,
          .ns = member.key.ns,
          .name = member.key.name,
          .body = json::object{},
          .uid = member.uid,
          .resource_version = member.resource_version};
}

// What a scheduler may do that sees the world late is decided here, by preconditions:
//  - every pod is bound as it was when it was looked at (uid and revision), so a pod that has been
//    replaced, changed, bound or marked for deletion since then is not bound;
//  - where a gang is whole only with members placed earlier, these must be unchanged as well, or a
//    successor would start alone after the rest has gone;
//  - all of it is one submit: the embedded server takes all or nothing. A remote server takes the
//    writes one by one and would keep those before the first failure; there this scheduler is off
//    and the cluster's own gang scheduler does the work.
// Room on nodes needs none: only this scheduler takes it, and it waits to see its own bindings. Of
// nodes that change while a plan is made apart, holds() asks. One that is cordoned in the moment
// before that is seen still gets what was planned for it, as from any scheduler: pods stay on a
// cordoned node, and from one that is gone they are collected (features/nodes).
control::Batch bind(const Placement& gang) {
  control::Batch batch;
  for (const MemberPtr& member : gang.counted) batch.writes.push_back(still_there(*member));
  for (const auto& [pod, node] : gang.bindings) {
    client::Write write{.verb = client::Verb::kCreate,
                        .resource = kPods,
                        .ns = pod->key.ns,
                        .name = pod->key.name,
                        .subresource = "binding",
                        .uid = std::string(api::uid(*pod->object)),
                        .resource_version = std::string(api::resource_version(*pod->object))};
    write.body = json::object{{"apiVersion", "v1"},
                              {"kind", "Binding"},
                              {"metadata",
                               {{"name", pod->key.name},
                                {"namespace", pod->key.ns},
                                {"uid", write.uid},
                                {"resourceVersion", write.resource_version}}},
                              {"target", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}}}};
    batch.writes.push_back(std::move(write));
    batch.notes.push_back({.object = pod->object,
                           .note = {.reason = "Scheduled",
                                    .message = fmt::format("Successfully assigned {}/{} to {}",
                                                           pod->key.ns, pod->key.name, node)}});
  }
  return batch;
}

// Who makes the volume reads the node off the claim; the pod is bound when both are.
control::Batch select(const Selection& selection) {
  const json::value& claim = *selection.claim;
  return {
      .writes = {{.verb = client::Verb::kMergePatch,
                  .resource = kClaims,
                  .ns = std::string(api::ns(claim)),
                  .name = std::string(api::name(claim)),
                  .body = json::object{{"metadata",
                                        {{"annotations",
                                          {{api::kSelectedNode, json::string(selection.node)}}}}}},
                  .uid = std::string(api::uid(claim)),
                  .resource_version = std::string(api::resource_version(claim))}}};
}

control::GlobalPlan plan_of(const Snapshot& snapshot, Time now) {
  const Decisions decisions = schedule(snapshot, now);
  control::GlobalPlan plan{.requeue_after = decisions.look_again_after};
  for (const auto& gang : decisions.gangs) plan.batches.push_back(bind(gang));
  for (const auto& selection : decisions.selections) plan.batches.push_back(select(selection));
  say_why_all(decisions.waiting, now, plan);
  return plan;
}

// The node that a write gives its pod or its claim to; empty: none.
std::string_view node_of(const client::Write& write) {
  if (write.subresource == "binding") return json::get_string(write.body, {"target", "name"});
  if (write.resource.key() != kClaims.key()) return {};
  return json::get_string(write.body, {"metadata", "annotations", api::kSelectedNode});
}

// Whether that node takes it still. A pod that waits no more is refused anyway.
bool holds(const Ground& then, const Snapshot& now, const client::Write& write,
           const std::string& node) {
  if (write.subresource == "binding") {
    const auto pod = now.pending.find({.ns = write.ns, .name = write.name});
    return pod != now.pending.end() && then.takes(now, *pod->second, node);
  }
  const auto there = now.nodes.find(node);
  return there != now.nodes.end() && there->second->ready && !there->second->unschedulable;
}

control::PlanApart plan_apart(const std::shared_ptr<const Books>& books, Time now) {
  auto taken = std::make_shared<const Snapshot>(books->snapshot());
  // The whole of it is freed where the plan is made.
  Ground ground(*taken);
  return {.plan = [taken = std::move(taken), now] { return plan_of(*taken, now); },
          .holds =
              [books, ground = std::move(ground),
               moved = std::optional<std::set<std::string, std::less<>>>()](
                  const std::vector<client::Write>& writes) mutable {
                const Snapshot& current = books->snapshot();
                if (!moved) moved = ground.moved(current);
                return std::ranges::all_of(writes, [&](const client::Write& write) {
                  const std::string_view node = node_of(write);
                  return !moved->contains(node) || holds(ground, current, write, std::string(node));
                });
              }};
}

}  // namespace

control::GlobalController make_scheduler(std::size_t many) {
  auto books = std::make_shared<Books>();
  return {.name = "skiff-scheduler",
          .watched = {kPods, kNodes, kClaims, kVolumes, kClasses},
          .changed =
              [books](std::size_t which, const Object& before, const Object& after) {
                using Change = void (Books::*)(const Object&, const Object&);
                static constexpr Change kChanges[] = {&Books::pod_changed, &Books::node_changed,
                                                      &Books::claim_changed, &Books::volume_changed,
                                                      &Books::class_changed};
                ((*books).*kChanges[which])(before, after);
              },
          .plan = [books](Time now) { return plan_of(books->snapshot(), now); },
          .plan_apart = [books, many](Time now) -> control::PlanApart {
            if (books->snapshot().pending.size() < many) return {};
            return plan_apart(books, now);
          }};
}

}  // namespace skiff::scheduler
