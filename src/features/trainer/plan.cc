#include "features/trainer/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/meta.h"
#include "api/rules.h"
#include "base/sha256.h"
#include "base/yaml.h"
#include "features/trainer/jobset_of.h"
#include "features/trainer/mpi.h"
#include "features/trainer/progress.h"
#include "features/trainer/trainjob.h"

namespace skiff::trainer {
namespace {

constexpr std::string_view kDeadlineExceeded = "DeadlineExceeded";
constexpr std::string_view kNotSupported = "TrainingRuntimeNotSupported";
constexpr std::string_view kInvalid = "Invalid";
constexpr std::string_view kSetNameLabel = "jobset.sigs.k8s.io/jobset-name";
constexpr std::string_view kSetUidLabel = "jobset.sigs.k8s.io/jobset-uid";
constexpr std::string_view kPartLabel = "jobset.sigs.k8s.io/replicatedjob-name";
constexpr std::string_view kIndexLabel = "batch.kubernetes.io/job-completion-index";
constexpr std::size_t kReasonBytes = 950;
// Of a deadline: a sum of more with a time would overflow.
constexpr std::int64_t kMostWaitSeconds = 1LL << 31;

std::string snapshot_name(const json::value& job) {
  return fmt::format("{}-runtime-snapshot", api::name(job));
}

bool suspended(const json::value& object) {
  return json::get_bool(object, {"spec", "suspend"}).value_or(false);
}

std::string digest(const json::value& value) {
  std::string out;
  for (const char c : sha256(json::serialize(value)).substr(0, 8)) {
    out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  }
  return out;
}

std::vector<api::Resource> owned_kinds() {
  std::vector<api::Resource> out{jobset_resource(), config_map_resource()};
  for (api::Resource& kind : mpi_kinds()) out.push_back(std::move(kind));
  return out;
}

client::Write write_on(client::Verb verb, const api::Resource& resource,
                       const json::value& object) {
  return {.verb = verb,
          .resource = resource,
          .ns = std::string(api::ns(object)),
          .name = std::string(api::name(object)),
          .uid = std::string(api::uid(object))};
}

// A merge patch takes nothing away: what others have added to a map stays there, and is no reason
// to write again.
bool has_all_of(const json::value* there, const json::value& wanted) {
  if (!wanted.is_object()) return api::same_value(there, &wanted);
  return std::ranges::all_of(wanted.get_object(), [&](const auto& member) {
    const std::string_view key(member.key());
    return has_all_of(there == nullptr ? nullptr : json::find(*there, {key}), member.value());
  });
}

class TrainJobPlan {
 public:
  TrainJobPlan(const control::Observed& observed, Time now)
      : observed_(observed),
        job_(*observed.root),
        now_(now),
        status_(json::get_object(*observed.root, {"status"})) {
    for (const Object& object : observed.owned[0]) {
      if (api::name(*object) == api::name(job_)) jobset_ = object;
    }
  }

  control::Plan make() {
    // What may have been put right meanwhile is judged anew. All else that failed stays so,
    // whatever becomes of the JobSet.
    if (reason("Failed") == kInvalid || reason("Failed") == kNotSupported) {
      remove_condition("Failed");
    }
    if (runtime_kind(job_) == nullptr) {
      set_condition("Failed", true, kNotSupported,
                    "unsupported runtime: " + runtime_kind_text(job_));
    } else if (!finished()) {
      make_objects();
    }
    tell_suspension();
    tell_jobset();
    tell_progress();
    watch_deadline();
    json::value after = std::move(status_);
    const json::value* before = json::find(job_, {"status"});
    const bool bare = before == nullptr && after.get_object().empty();
    if (!bare && (before == nullptr || *before != after)) plan_.status = std::move(after);
    plan_.only_if_unchanged = !plan_.writes.empty();
    return std::move(plan_);
  }

 private:
  bool finished() const { return holds("Complete") || holds("Failed"); }

  // The runtime as it was when the job was taken up: who edits it means later jobs.
  Result<json::value> snapshot() const {
    for (const Object& map : observed_.owned[1]) {
      if (api::name(*map) != snapshot_name(job_)) continue;
      return yaml::parse(json::get_string(*map, {"data", "runtime"}));
    }
    return fail(Code::kNotFound, "no snapshot");
  }

  const json::value* named_runtime() const {
    const bool whole_cluster = runtime_kind(job_) == &cluster_runtime_resource();
    const std::vector<Object>& found = observed_.seen[whole_cluster ? 0 : 1];
    return found.empty() ? nullptr : found.front().get();
  }

  void make_objects() {
    Result<json::value> runtime = snapshot();
    const bool kept = runtime.has_value();
    if (!runtime && runtime.error().code == Code::kNotFound) {
      const json::value* named = named_runtime();
      if (named == nullptr) {
        return tell_trouble(fmt::format(
            "TrainingRuntime specified in TrainJob is not found: {} \"{}\" not found",
            runtime_kind(job_)->key(), json::get_string(job_, {"spec", "runtimeRef", "name"})));
      }
      runtime = *named;
    }
    if (!runtime) return tell_trouble(runtime.error().message);
    // A job that has its JobSet was good when it got it: rules that came later are not for it.
    if (jobset_ == nullptr && !fits(*runtime)) return;
    // Only one that fits: who puts the runtime right would else be too late for this job.
    if (!kept) keep(*runtime);
    write_jobset(*runtime);
    if (runs_mpi(*runtime)) write_mpi_objects(*runtime);
  }

  bool fits(const json::value& runtime) {
    const std::vector<Cause> causes = check_against(job_, runtime);
    if (causes.empty()) return true;
    const std::string why = fmt::format("{}: {}", causes[0].field, causes[0].message);
    set_condition("Failed", true, kInvalid, why);
    tell_trouble(why);
    return false;
  }

  std::vector<Object> pods() const {
    std::vector<Object> out;
    if (jobset_ == nullptr) return out;
    for (const Object& pod : observed_.seen[2]) {
      if (api::label(*pod, kSetUidLabel) == api::uid(*jobset_)) out.push_back(pod);
    }
    return out;
  }

  const json::value* owned_object(std::size_t list, std::string_view name) const {
    for (const Object& object : observed_.owned[list]) {
      if (api::name(*object) == name) return object.get();
    }
    return nullptr;
  }

  // They are mended when somebody changes them.
  void write_mpi_objects(const json::value& runtime) {
    const json::value made = jobset_ == nullptr ? jobset_of(job_, runtime) : *jobset_;
    const std::vector<api::Resource> kinds = owned_kinds();
    for (json::value& wanted : mpi_objects(job_, runtime, made, pods())) {
      const std::string_view kind = json::get_string(wanted, {"kind"});
      const auto found = std::ranges::find(kinds, kind, &api::Resource::kind);
      const api::Resource& resource = *found;
      const json::value* there =
          owned_object(static_cast<std::size_t>(found - kinds.begin()), api::name(wanted));
      if (there == nullptr) {
        plan_.writes.push_back(
            {.resource = resource, .ns = std::string(api::ns(job_)), .body = std::move(wanted)});
        continue;
      }
      if (api::deleting(*there)) continue;
      json::object patch;
      for (const std::string_view field : {"data", "rules", "subjects"}) {
        const json::value* value = json::find(wanted, {field});
        if (value != nullptr && !has_all_of(json::find(*there, {field}), *value)) {
          patch[field] = *value;
        }
      }
      if (patch.empty()) continue;
      client::Write write = write_on(client::Verb::kMergePatch, resource, *there);
      write.resource_version = api::resource_version(*there);
      write.body = std::move(patch);
      plan_.writes.push_back(std::move(write));
    }
  }

  void keep(const json::value& runtime) {
    json::value kept = runtime;
    json::make_object(kept, {}).erase("status");
    json::make_object(kept, {"metadata"}).erase("managedFields");
    plan_.writes.push_back(
        {.resource = config_map_resource(),
         .ns = std::string(api::ns(job_)),
         .body = {{"apiVersion", "v1"},
                  {"kind", "ConfigMap"},
                  {"metadata",
                   {{"name", snapshot_name(job_)},
                    {"namespace", json::string(api::ns(job_))},
                    {"ownerReferences", json::array{api::owner_reference(job_)}}}},
                  {"data", {{"runtime", yaml::serialize(kept)}}}}});
  }

  // One that runs is never changed.
  void write_jobset(const json::value& runtime) {
    if (jobset_ != nullptr &&
        (api::deleting(*jobset_) || !(suspended(job_) || suspended(*jobset_)))) {
      return;
    }
    json::value wanted = jobset_of(job_, runtime);
    const json::value* parts = json::find(wanted, {"spec", "replicatedJobs"});
    const std::string source = digest(parts == nullptr ? json::value() : *parts);
    json::make_object(wanted, {"metadata", "annotations"})[kSourceAnnotation] = source;
    if (jobset_ == nullptr) {
      plan_.writes.push_back({.resource = jobset_resource(),
                              .ns = std::string(api::ns(job_)),
                              .body = std::move(wanted)});
      return;
    }
    json::object patch;
    if (api::annotation(*jobset_, kSourceAnnotation) != source) {
      json::make_object(patch, {"spec"})["replicatedJobs"] = *parts;
      for (const std::string_view kind : {"labels", "annotations"}) {
        json::make_object(patch, {"metadata"})[kind] = json::get_object(wanted, {"metadata", kind});
      }
    }
    if (suspended(job_) != suspended(*jobset_)) {
      json::make_object(patch, {"spec"})["suspend"] = suspended(job_);
    }
    if (patch.empty()) return;
    client::Write write = write_on(client::Verb::kMergePatch, jobset_resource(), *jobset_);
    write.resource_version = api::resource_version(*jobset_);
    write.body = std::move(patch);
    plan_.writes.push_back(std::move(write));
  }

  void tell_trouble(std::string_view why) {
    std::string message =
        fmt::format("TrainJob resources reconciliation failed: {}", why.substr(0, kReasonBytes));
    if (why.size() > kReasonBytes) message += " ...";
    plan_.notes.push_back({.warning = true,
                           .reason = "TrainJobResourcesCreationFailed",
                           .message = std::move(message)});
  }

  void tell_suspension() {
    if (suspended(job_)) {
      set_condition("Suspended", true, "Suspended", "TrainJob is suspended");
    } else if (holds("Suspended")) {
      set_condition("Suspended", false, "Resumed", "TrainJob is resumed");
    }
  }

  void tell_jobset() {
    if (jobset_ == nullptr) return;
    for (const auto& [theirs, ours] : {std::pair("Completed", "Complete"), {"Failed", "Failed"}}) {
      if (!api::condition_true(*jobset_, theirs) || reason("Failed") == kDeadlineExceeded) continue;
      const json::value found = *api::condition(*jobset_, theirs);
      set_condition(ours, true, json::get_string(found, {"reason"}),
                    json::get_string(found, {"message"}),
                    json::get_string(found, {"lastTransitionTime"}));
    }
    json::array parts;
    for (const json::value& part : json::get_array(*jobset_, {"status", "replicatedJobsStatus"})) {
      json::object shown;
      for (const std::string_view field :
           {"name", "ready", "succeeded", "failed", "active", "suspended"}) {
        if (const json::value* value = json::find(part, {field})) shown[field] = *value;
      }
      parts.push_back(std::move(shown));
    }
    if (!parts.empty()) status_["jobsStatus"] = std::move(parts);
  }

  // The first pod of the part that trains speaks for the job.
  void tell_progress() {
    for (const Object& pod : pods()) {
      if (api::label(*pod, kIndexLabel) != "0") continue;
      const std::string_view name = api::label(*pod, kPartLabel);
      const json::array& all = json::get_array(*jobset_, {"spec", "replicatedJobs"});
      const bool trains = std::ranges::any_of(all, [&](const json::value& part) {
        return json::get_string(part, {"name"}) == name && step_of(part) == kTrainerStep;
      });
      if (!trains) continue;
      json::object told = trainer_status(*pod);
      if (is_news(json::find(status_, {"trainerStatus"}), told)) {
        status_["trainerStatus"] = std::move(told);
      }
    }
  }

  void watch_deadline() {
    const auto deadline = json::get_int(job_, {"spec", "activeDeadlineSeconds"});
    if (!deadline || *deadline <= 0 || finished() || suspended(job_)) return;
    std::optional<Time> start = api::created_at(job_);
    if (const json::value* resumed = find_condition("Suspended")) {
      if (json::get_string(*resumed, {"status"}) == "False") {
        start = api::time_at(*resumed, {"lastTransitionTime"});
      }
    }
    if (!start) return;
    const auto most = std::chrono::seconds(std::min(*deadline, kMostWaitSeconds));
    const Duration left = *start + most - now_;
    if (left > Duration(0)) {
      plan_.requeue_after = left;
      return;
    }
    set_condition("Failed", true, kDeadlineExceeded, "TrainJob exceeded its active deadline");
    // Whatever else was planned for it is not to be any more.
    std::erase_if(plan_.writes,
                  [](const client::Write& write) { return write.resource == jobset_resource(); });
    if (jobset_ == nullptr || api::deleting(*jobset_)) return;
    client::Write removal = write_on(client::Verb::kDelete, jobset_resource(), *jobset_);
    removal.body = json::object{
        {"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"propagationPolicy", "Background"}};
    plan_.writes.push_back(std::move(removal));
  }

  json::array& conditions() {
    json::value& list = status_["conditions"];
    return list.is_array() ? list.get_array() : list.emplace_array();
  }

  const json::value* find_condition(std::string_view type) const {
    const json::value* list = json::find(status_, {"conditions"});
    if (list == nullptr || !list->is_array()) return nullptr;
    for (const json::value& condition : list->get_array()) {
      if (json::get_string(condition, {"type"}) == type) return &condition;
    }
    return nullptr;
  }

  bool holds(std::string_view type) const {
    const json::value* found = find_condition(type);
    return found != nullptr && json::get_string(*found, {"status"}) == "True";
  }

  std::string_view reason(std::string_view type) const {
    const json::value* found = find_condition(type);
    return found == nullptr ? std::string_view() : json::get_string(*found, {"reason"});
  }

  void remove_condition(std::string_view type) {
    if (const json::value* found = find_condition(type)) {
      removed_ = *found;
      json::array& list = conditions();
      list.erase(list.begin() + (found - list.data()));
      if (list.empty()) status_.erase("conditions");
    }
  }

  // The time is that of the change of its status, which `at` knows where the JobSet does.
  void set_condition(std::string_view type, bool is, std::string_view reason,
                     std::string_view message, std::string_view at = {}) {
    json::object fresh{{"type", json::string(type)},
                       {"status", is ? "True" : "False"},
                       {"reason", json::string(reason)},
                       {"message", json::string(message)},
                       {"lastTransitionTime", at.empty() ? rfc3339(now_) : std::string(at)}};
    const json::value* known = find_condition(type);
    if (known == nullptr && json::get_string(removed_, {"type"}) == type) known = &removed_;
    if (known != nullptr && json::get_string(*known, {"status"}) == (is ? "True" : "False")) {
      fresh["lastTransitionTime"] = json::string(json::get_string(*known, {"lastTransitionTime"}));
    }
    for (json::value& condition : conditions()) {
      if (json::get_string(condition, {"type"}) != type) continue;
      condition = std::move(fresh);
      return;
    }
    conditions().push_back(std::move(fresh));
  }

  const control::Observed& observed_;
  const json::value& job_;
  const Time now_;
  control::Plan plan_ = {};
  json::object status_ = {};
  Object jobset_ = {};
  json::value removed_ = {};
};

// A job looks at the runtime of the kind and name that it gives.
std::vector<std::string> wanted_name(const json::value& job, const api::Resource& kind) {
  const api::Resource* named = runtime_kind(job);
  if (named == nullptr || named->kind != kind.kind) return {};
  return {std::string(json::get_string(job, {"spec", "runtimeRef", "name"}))};
}

control::Related runtimes(const api::Resource& kind) {
  return {.resource = kind,
          .wants = [&kind](const json::value& job) { return wanted_name(job, kind); },
          .has = [](const json::value& runtime) -> std::vector<std::string> {
            return {std::string(api::name(runtime))};
          }};
}

// Of its pods a job looks at the first of each part, for its progress, and at all of an MPI. Of
// others the JobSet tells.
control::Related own_pods() {
  return {.resource = {.version = "v1", .plural = "pods", .kind = "Pod"},
          .wants = [](const json::value& job) -> std::vector<std::string> {
            return {std::string(api::name(job))};
          },
          .has = [](const json::value& pod) -> std::vector<std::string> {
            const std::string_view set = api::label(pod, kSetNameLabel);
            const bool looked_at = api::label(pod, kIndexLabel) == "0" ||
                                   !api::annotation(pod, kHostAnnotation).empty();
            if (set.empty() || !looked_at) return {};
            return {std::string(set)};
          },
          .alike =
              [](const json::value& before, const json::value& after) {
                return api::deleting(before) == api::deleting(after) &&
                       api::annotation(before, kProgressAnnotation) ==
                           api::annotation(after, kProgressAnnotation) &&
                       json::get_string(before, {"status", "phase"}) ==
                           json::get_string(after, {"status", "phase"});
              }};
}

}  // namespace

control::Plan plan_trainjob(const control::Observed& observed, Time now) {
  const json::value& job = *observed.root;
  const std::string_view manager = json::get_string(job, {"spec", "managedBy"}, kOwnManager);
  if (api::deleting(job) || manager != kOwnManager) return {};
  return TrainJobPlan(observed, now).make();
}

control::Controller trainjob_controller() {
  return {.name = "trainjob-controller",
          .root = trainjob_resource(),
          .owned = owned_kinds(),
          .seen = {runtimes(cluster_runtime_resource()), runtimes(runtime_resource()), own_pods()},
          .plan = plan_trainjob};
}

}  // namespace skiff::trainer
