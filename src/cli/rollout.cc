#include "cli/rollout.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "api/meta.h"

namespace skiff::cli {
namespace {

constexpr std::string_view kRevision = "deployment.kubernetes.io/revision";
constexpr std::string_view kChangeCause = "kubernetes.io/change-cause";
constexpr std::string_view kRestartedAt = "kubectl.kubernetes.io/restartedAt";
constexpr std::string_view kTemplateHash = "pod-template-hash";

std::int64_t revision_number(std::string_view text) {
  std::int64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

// A count of the status, or of the spec where that is set.
struct Counts {
  const json::value& object;

  std::int64_t operator()(std::initializer_list<std::string_view> path,
                          std::int64_t none = 0) const {
    return json::get_int(object, path).value_or(none);
  }
  bool observed() const {
    return (*this)({"metadata", "generation"}) <= (*this)({"status", "observedGeneration"});
  }
};

std::unexpected<Error> say_problem(std::string message) {
  return fail(Code::kBadRequest, std::move(message));
}

Result<RolloutStatus> deployment_status(const json::value& object, std::int64_t revision) {
  const Counts count{object};
  const std::string_view name = api::name(object);
  const std::int64_t running = revision_number(api::annotation(object, kRevision));
  if (revision > 0 && revision != running) {
    return say_problem(fmt::format(
        "desired revision ({}) is different from the running revision ({})", revision, running));
  }
  if (!count.observed()) {
    return RolloutStatus{"Waiting for deployment spec update to be observed..."};
  }
  const json::object* progressing = api::condition(object, "Progressing");
  if (progressing != nullptr &&
      json::get_string(json::value(*progressing), {"reason"}) == "ProgressDeadlineExceeded") {
    return say_problem(fmt::format("deployment \"{}\" exceeded its progress deadline", name));
  }
  const std::int64_t wanted = count({"spec", "replicas"}, 1);
  const std::int64_t updated = count({"status", "updatedReplicas"});
  const std::int64_t total = count({"status", "replicas"});
  const std::int64_t available = count({"status", "availableReplicas"});
  const std::string waiting =
      fmt::format("Waiting for deployment \"{}\" rollout to finish: ", name);
  if (updated < wanted) {
    return RolloutStatus{
        waiting + fmt::format("{} out of {} new replicas have been updated...", updated, wanted)};
  }
  if (total > updated) {
    return RolloutStatus{
        waiting + fmt::format("{} old replicas are pending termination...", total - updated)};
  }
  if (available < updated) {
    return RolloutStatus{
        waiting + fmt::format("{} of {} updated replicas are available...", available, updated)};
  }
  return RolloutStatus{fmt::format("deployment \"{}\" successfully rolled out", name), true};
}

Result<RolloutStatus> stateful_set_status(const json::value& object) {
  const Counts count{object};
  if (!count.observed() || count({"status", "observedGeneration"}) == 0) {
    return RolloutStatus{"Waiting for statefulset spec update to be observed..."};
  }
  const std::int64_t wanted = count({"spec", "replicas"}, 1);
  const std::int64_t ready = count({"status", "readyReplicas"});
  const std::int64_t updated = count({"status", "updatedReplicas"});
  if (ready < wanted) {
    return RolloutStatus{fmt::format("Waiting for {} pods to be ready...", wanted - ready)};
  }
  if (json::find(object, {"spec", "updateStrategy", "rollingUpdate"}) != nullptr) {
    const std::int64_t to_update =
        wanted - count({"spec", "updateStrategy", "rollingUpdate", "partition"});
    if (updated < to_update) {
      return RolloutStatus{
          fmt::format("Waiting for partitioned roll out to finish: {} out of {} "
                      "new pods have been updated...",
                      updated, to_update)};
    }
    return RolloutStatus{
        fmt::format("partitioned roll out complete: {} new pods have been updated...", updated),
        true};
  }
  const std::string_view revision = json::get_string(object, {"status", "updateRevision"});
  if (revision != json::get_string(object, {"status", "currentRevision"})) {
    return RolloutStatus{
        fmt::format("waiting for statefulset rolling update to complete {} pods at revision {}...",
                    updated, revision)};
  }
  return RolloutStatus{fmt::format("statefulset rolling update complete {} pods at revision {}...",
                                   count({"status", "currentReplicas"}), revision),
                       true};
}

RolloutStatus daemon_set_status(const json::value& object) {
  const Counts count{object};
  if (!count.observed()) {
    return {"Waiting for daemon set spec update to be observed..."};
  }
  const std::int64_t wanted = count({"status", "desiredNumberScheduled"});
  const std::int64_t updated = count({"status", "updatedNumberScheduled"});
  const std::int64_t available = count({"status", "numberAvailable"});
  const std::string waiting =
      fmt::format("Waiting for daemon set \"{}\" rollout to finish: ", api::name(object));
  if (updated < wanted) {
    return {waiting + fmt::format("{} out of {} new pods have been updated...", updated, wanted)};
  }
  if (available < wanted) {
    return {waiting + fmt::format("{} of {} updated pods are available...", available, wanted)};
  }
  return {fmt::format("daemon set \"{}\" successfully rolled out", api::name(object)), true};
}

// What a Deployment keeps when it goes back to the template of an older ReplicaSet.
bool stays(std::string_view annotation) {
  static const std::set<std::string_view> kStay{"kubectl.kubernetes.io/last-applied-configuration",
                                                kRevision,
                                                "deployment.kubernetes.io/revision-history",
                                                "deployment.kubernetes.io/desired-replicas",
                                                "deployment.kubernetes.io/max-replicas",
                                                "deprecated.deployment.rollback.to"};
  return kStay.contains(annotation);
}

bool is_deployment(const json::value& object) { return api::kind(object) == "Deployment"; }

Revision read_revision(const json::value& object, const json::value& kept) {
  Revision out;
  out.cause = api::annotation(kept, kChangeCause);
  if (!is_deployment(object)) {
    out.number = json::get_int(kept, {"revision"}).value_or(0);
    json::object pod_template = json::get_object(kept, {"data", "spec", "template"});
    pod_template.erase("$patch");
    out.pod_template = std::move(pod_template);
    return out;
  }
  out.number = revision_number(api::annotation(kept, kRevision));
  out.pod_template = json::get_object(kept, {"spec", "template"});
  json::make_object(out.pod_template, {"metadata", "labels"}).erase(kTemplateHash);
  for (const auto& [key, value] : json::get_object(object, {"metadata", "annotations"})) {
    if (stays(key)) out.annotations[key] = value;
  }
  for (const auto& [key, value] : json::get_object(kept, {"metadata", "annotations"})) {
    if (!stays(key)) out.annotations[key] = value;
  }
  return out;
}

}  // namespace

bool rolls_out(const json::value& object) {
  const std::string_view kind = api::kind(object);
  return api::api_version(object).starts_with("apps/") &&
         (kind == "Deployment" || kind == "StatefulSet" || kind == "DaemonSet");
}

Result<RolloutStatus> rollout_status(const json::value& object, std::int64_t revision) {
  if (!rolls_out(object)) {
    return say_problem(
        fmt::format("no status viewer has been implemented for {}", api::kind(object)));
  }
  if (is_deployment(object)) return deployment_status(object, revision);
  if (json::get_string(object, {"spec", "updateStrategy", "type"}) != "RollingUpdate") {
    return say_problem("rollout status is only available for RollingUpdate strategy type");
  }
  if (api::kind(object) == "StatefulSet") return stateful_set_status(object);
  return daemon_set_status(object);
}

api::Resource revision_keeper(const json::value& object) {
  if (is_deployment(object)) {
    return {.group = "apps", .version = "v1", .plural = "replicasets", .kind = "ReplicaSet"};
  }
  return {.group = "apps",
          .version = "v1",
          .plural = "controllerrevisions",
          .kind = "ControllerRevision"};
}

std::vector<Revision> revisions_of(const json::value& object, const std::vector<Object>& kept) {
  std::vector<Revision> out;
  for (const Object& one : kept) {
    if (!api::controlled_by(*one, api::uid(object))) continue;
    out.push_back(read_revision(object, *one));
  }
  std::erase_if(out, [](const Revision& revision) { return revision.number == 0; });
  std::ranges::sort(out, {}, &Revision::number);
  return out;
}

std::string history_table(const std::vector<Revision>& revisions) {
  if (revisions.empty()) return "No rollout history found.\n";
  std::string out = "REVISION  CHANGE-CAUSE\n";
  for (const Revision& revision : revisions) {
    out += fmt::format("{:<10}{}\n", revision.number,
                       revision.cause.empty() ? "<none>" : revision.cause);
  }
  return out;
}

Result<Revision> find_revision(const json::value& object, const std::vector<Revision>& revisions,
                               std::int64_t number) {
  if (number == 0) {
    if (revisions.size() >= 2) return revisions[revisions.size() - 2];
    if (is_deployment(object)) {
      return say_problem(
          fmt::format("no rollout history found for deployment \"{}\"", api::name(object)));
    }
    return say_problem("no last revision to roll back to");
  }
  const auto found = std::ranges::find(revisions, number, &Revision::number);
  if (found != revisions.end()) return *found;
  return say_problem(fmt::format("unable to find specified revision {} in history", number));
}

json::array undo_patch(const json::value& object, const Revision& revision) {
  if (json::get_object(object, {"spec", "template"}) == revision.pod_template) return {};
  json::array out{
      {{"op", "replace"}, {"path", "/spec/template"}, {"value", revision.pod_template}}};
  if (is_deployment(object)) {
    out.push_back(
        {{"op", "add"}, {"path", "/metadata/annotations"}, {"value", revision.annotations}});
  }
  return out;
}

Result<json::object> pause_patch(const json::value& object, bool pause) {
  if (!is_deployment(object)) {
    return say_problem(pause ? "pausing is not supported" : "resuming is not supported");
  }
  if (json::get_bool(object, {"spec", "paused"}).value_or(false) == pause) {
    return say_problem(pause ? "is already paused" : "is not paused");
  }
  return json::object{{"spec", {{"paused", pause}}}};
}

Result<json::object> restart_patch(const json::value& object, std::string_view now) {
  if (!rolls_out(object)) return say_problem("restarting is not supported");
  if (json::get_bool(object, {"spec", "paused"}).value_or(false)) {
    return say_problem("can't restart paused deployment (run rollout resume first)");
  }
  if (json::get_string(object, {"spec", "template", "metadata", "annotations", kRestartedAt}) ==
      now) {
    return say_problem(
        "if restart has already been triggered within the past second, please wait before "
        "attempting to trigger another");
  }
  json::object annotations{{kRestartedAt, json::string(now)}};
  return json::object{
      {"spec", {{"template", {{"metadata", {{"annotations", std::move(annotations)}}}}}}}};
}

}  // namespace skiff::cli
