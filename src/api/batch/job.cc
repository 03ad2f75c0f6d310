#include <fmt/format.h>

#include "api/apps/apps.h"
#include "api/batch/batch.h"
#include "api/cells.h"
#include "api/core/pod_template.h"
#include "api/core/pod_warnings.h"
#include "api/help.h"
#include "api/meta.h"
#include "api/rules.h"
#include "base/names.h"
#include "base/time.h"
#include "schema/causes.h"

namespace skiff::api {
namespace {

using schema::child;
using schema::entry;

constexpr std::string_view kUidLabel = "batch.kubernetes.io/controller-uid";
constexpr std::string_view kJobNameLabel = "batch.kubernetes.io/job-name";
// What they were called before labels had prefixes.
constexpr std::string_view kOldUidLabel = "controller-uid";
constexpr std::string_view kOldNameLabel = "job-name";

void default_labels(json::object& root, const json::value& object) {
  const json::object labels = json::get_object(object, {"spec", "template", "metadata", "labels"});
  json::object* metadata = object_in(root, "metadata");
  if (labels.empty() || metadata == nullptr) return;
  json::object* own = object_in(*metadata, "labels");
  if (own != nullptr && own->empty()) *own = labels;
}

void set_job_defaults(json::value& object) {
  json::object* root = object.if_object();
  json::object* spec = root == nullptr ? nullptr : object_in(*root, "spec");
  if (spec == nullptr) return;
  if (!present(object, {"spec", "completions"}) && !present(object, {"spec", "parallelism"})) {
    default_int(*spec, "completions", 1);
  }
  default_int(*spec, "parallelism", 1);
  default_int(*spec, "backoffLimit",
              present(object, {"spec", "backoffLimitPerIndex"}) ? INT32_MAX : 6);
  default_text(*spec, "completionMode", "NonIndexed");
  json::value& suspend = (*spec)["suspend"];
  if (suspend.is_null()) suspend = false;
  json::value& manual = (*spec)["manualSelector"];
  if (manual.is_null()) manual = false;
  json::value& replacement = (*spec)["podReplacementPolicy"];
  if (replacement.is_null()) {
    replacement = present(object, {"spec", "podFailurePolicy"}) ? "Failed" : "TerminatingOrFailed";
  }
  default_job_spec(*spec);
  default_labels(*root, object);
  object_in(*root, "status");
}

// Pods are found by the job's uid, unless the user chose a selector.
void generate_selector(json::value& object) {
  json::object* root = object.if_object();
  json::object* spec = root == nullptr ? nullptr : object_in(*root, "spec");
  json::object* pod = spec == nullptr ? nullptr : object_in(*spec, "template");
  json::object* metadata = pod == nullptr ? nullptr : object_in(*pod, "metadata");
  json::object* labels = metadata == nullptr ? nullptr : object_in(*metadata, "labels");
  json::object* selector = spec == nullptr ? nullptr : object_in(*spec, "selector");
  json::object* wanted = selector == nullptr ? nullptr : object_in(*selector, "matchLabels");
  if (labels == nullptr || wanted == nullptr) return;
  const json::string uid(api::uid(object)), own_name(api::name(object));
  for (const std::string_view key : {kOldNameLabel, kJobNameLabel}) labels->emplace(key, own_name);
  for (const std::string_view key : {kOldUidLabel, kUidLabel}) labels->emplace(key, uid);
  wanted->emplace(kUidLabel, uid);
}

void prepare_job(json::value& object, const Admission& context) {
  if (context.old != nullptr) return;
  if (json::get_bool(object, {"spec", "manualSelector"}).value_or(false)) return;
  generate_selector(object);
  if (json::object* root = object.if_object()) default_labels(*root, object);
}

void check_has_label(const json::object& labels, std::string_view key, std::string_view value,
                     Causes& out) {
  const std::string path = entry("spec.template.metadata.labels", key);
  const std::string sentence = fmt::format("must be '{}'", value);
  if (!labels.contains(key)) {
    out.push_back(schema::required(path, sentence));
  } else if (text_in(labels, key) != value) {
    out.push_back(schema::invalid(path, shown_map(labels), sentence));
  }
}

void check_generated(const json::value& job, bool prefixed, Causes& out) {
  const json::value* selector = json::find(job, {"spec", "selector"});
  if (json::get_bool(job, {"spec", "manualSelector"}).value_or(false) || selector == nullptr) {
    return;
  }
  const json::object& labels = json::get_object(job, {"spec", "template", "metadata", "labels"});
  const json::string uid(api::uid(job)), own_name(api::name(job));
  check_has_label(labels, kOldUidLabel, json::view(uid), out);
  check_has_label(labels, kOldNameLabel, json::view(own_name), out);
  json::object expected{{kOldUidLabel, uid}, {kOldNameLabel, own_name}};
  if (prefixed) {
    check_has_label(labels, kUidLabel, json::view(uid), out);
    check_has_label(labels, kJobNameLabel, json::view(own_name), out);
    expected[kUidLabel] = uid;
    expected[kJobNameLabel] = own_name;
  }
  if (const auto fits = selects(selector, expected); fits && !*fits) {
    out.push_back(schema::invalid("spec.selector", shown_selector(selector),
                                  "`selector` not auto-generated"));
  }
}

void check_whole_spec(const json::value& job, Causes& out) {
  const json::value& spec = value_at(job, {"spec"});
  check_job_spec(spec, "spec", out);
  const json::value* selector = json::find(spec, {"selector"});
  if (selector == nullptr || selector->is_null()) {
    out.push_back(schema::required("spec.selector"));
  } else {
    check_label_selector(selector, "spec.selector", out);
  }
  const json::object& labels = json::get_object(spec, {"template", "metadata", "labels"});
  if (const auto fits = selects(selector, labels); fits && !*fits) {
    out.push_back(schema::invalid("spec.template.metadata.labels", shown_map(labels),
                                  "`selector` does not match template `labels`"));
  }
}

// The last pod of an indexed job has the longest name.
void check_indexed_pod_names(const json::value& job, Causes& out) {
  const std::int64_t completions = count(job, {"spec", "completions"});
  if (json::get_string(job, {"spec", "completionMode"}) != "Indexed" || completions < 1) return;
  const std::string longest = fmt::format("{}-{}", name(job), completions - 1);
  if (!names::check_dns1123_label(longest).empty()) {
    out.push_back(schema::invalid(
        "metadata.name", json::string(name(job)),
        fmt::format("will not able to create pod with invalid DNS label: {}", longest)));
  }
}

void check_completions(const json::value& spec, const json::value& old, Causes& out) {
  const json::value* now = json::find(spec, {"completions"});
  const json::value* before = json::find(old, {"completions"});
  if (json::get_string(spec, {"completionMode"}) != "Indexed") {
    check_immutable(now, before, "spec.completions", out);
    return;
  }
  if (now == nullptr || (before != nullptr && *now == *before)) return;
  if (count(spec, {"completions"}) != count(spec, {"parallelism"})) {
    out.push_back(schema::invalid("spec.completions", *now,
                                  "can only be modified in tandem with spec.parallelism"));
  }
}

// Where the pods may go can still be changed while none was made.
void allow_scheduling(const json::value& pod, json::value& old) {
  if (!old.is_object() || !pod.is_object()) return;
  const auto take = [&](json::object& to, const json::value& from, std::string_view key) {
    to.erase(key);
    if (const json::value* v = json::find(from, {key})) to[key] = *v;
  };
  json::object& spec = json::make_object(old, {"spec"});
  const json::value& now = value_at(pod, {"spec"});
  for (const std::string_view key : {"nodeSelector", "tolerations", "schedulingGates"}) {
    take(spec, now, key);
  }
  json::object& affinity = json::make_object(spec, {"affinity"});
  take(affinity, value_at(now, {"affinity"}), "nodeAffinity");
  if (affinity.empty() && json::find(now, {"affinity"}) == nullptr) spec.erase("affinity");
  json::object& metadata = json::make_object(old, {"metadata"});
  for (const std::string_view key : {"labels", "annotations"})
    take(metadata, value_at(pod, {"metadata"}), key);
}

void check_job_update(const json::value& job, const json::value& old, Causes& out) {
  const json::value& spec = value_at(job, {"spec"});
  const json::value& before = value_at(old, {"spec"});
  check_whole_spec(job, out);
  check_completions(spec, before, out);
  const auto unchanged = [&](std::string_view field) {
    check_immutable(json::find(spec, {field}), json::find(before, {field}), child("spec", field),
                    out);
  };
  unchanged("selector");
  json::value old_template = value_at(before, {"template"});
  if (json::get_bool(before, {"suspend"}).value_or(false) &&
      !present(old, {"status", "startTime"})) {
    allow_scheduling(value_at(spec, {"template"}), old_template);
  }
  check_immutable(json::find(spec, {"template"}), &old_template, "spec.template", out);
  for (const std::string_view field : {"completionMode", "podFailurePolicy", "backoffLimitPerIndex",
                                       "managedBy", "successPolicy"}) {
    unchanged(field);
  }
}

std::vector<Cause> validate_job(const json::value& object, const Admission& context) {
  Causes out;
  if (context.old != nullptr && context.subresource == "status") {
    check_job_status(object, *context.old, out);
    return out;
  }
  bool prefixed = true;
  if (context.old != nullptr) {
    const json::object& labels =
        json::get_object(*context.old, {"spec", "template", "metadata", "labels"});
    prefixed = labels.contains(kJobNameLabel) && labels.contains(kUidLabel);
  }
  check_generated(object, prefixed, out);
  check_whole_spec(object, out);
  check_indexed_pod_names(object, out);
  // The real server checks the spec once more on update, and says everything twice.
  if (context.old != nullptr) check_job_update(object, *context.old, out);
  return out;
}

std::vector<std::string> job_warnings(const json::value& object, const Admission& context) {
  std::vector<std::string> out;
  if (!context.subresource.empty()) return out;
  if (context.old == nullptr) warn_of_pod_names(object, out);
  constexpr std::int64_t kManyCompletions = 100'000, kMuchParallelism = 10'000;
  if (json::get_string(object, {"spec", "completionMode"}) == "Indexed" &&
      count(object, {"spec", "completions"}) > kManyCompletions &&
      count(object, {"spec", "parallelism"}) > kMuchParallelism) {
    out.emplace_back(
        "spec: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism "
        "higher than 10^4, Kubernetes might not be able to track completedIndexes when a big "
        "number of indexes fail");
  }
  warn_of_template(object, context, "spec.template", out);
  return out;
}

std::string job_status_cell(const json::value& job) {
  if (condition_true(job, "Complete")) return "Complete";
  if (condition_true(job, "Failed")) return "Failed";
  if (deleting(job)) return "Terminating";
  for (const std::string_view type : {"Suspended", "FailureTarget", "SuccessCriteriaMet"}) {
    if (condition_true(job, type)) return std::string(type);
  }
  return "Running";
}

std::string completions_cell(const json::value& job) {
  const std::int64_t succeeded = count(job, {"status", "succeeded"});
  if (present(job, {"spec", "completions"})) {
    return fmt::format("{}/{}", succeeded, count(job, {"spec", "completions"}));
  }
  const std::int64_t parallelism = count(job, {"spec", "parallelism"});
  return parallelism > 1 ? fmt::format("{}/1 of {}", succeeded, parallelism)
                         : fmt::format("{}/1", succeeded);
}

std::string duration_cell(const json::value& job, std::int64_t now_s) {
  const auto start = time_at(job, {"status", "startTime"});
  if (!start) return "";
  const auto end = time_at(job, {"status", "completionTime"});
  return age(Duration(end.value_or(Time(std::chrono::seconds(now_s))) - *start));
}

std::optional<std::string> job_field_text(const json::value& job, std::string_view path) {
  if (path != "status.successful") return std::nullopt;
  return std::to_string(count(job, {"status", "succeeded"}));
}

json::array job_cells(const json::value& job, std::int64_t now_s) {
  const json::value& pod = value_at(job, {"spec", "template", "spec"});
  return {json::string(job_status_cell(job)),
          json::string(completions_cell(job)),
          json::string(duration_cell(job, now_s)),
          json::string(age_cell(job, now_s)),
          names_cell(pod),
          images_cell(pod),
          selector_cell(json::find(job, {"spec", "selector"}))};
}

}  // namespace

Kind job_kind() {
  return {
      .resource = {"batch", "v1", "jobs", "Job", true},
      .singular = "job",
      .categories = {"all"},
      .has_status = true,
      .schema = "io.k8s.api.batch.v1.Job",
      .columns = {{"Status", "string", "", 0, "Status of the job."},
                  {"Completions", "string", "", 0,
                   "The number of pods which reached phase Succeeded. The value increases "
                   "monotonically for a given spec. However, it may decrease in reaction to scale "
                   "down of elastic indexed jobs."},
                  {"Duration", "string", "", 0, "Time required to complete the job."},
                  {"Age", "string", "", 0, std::string(kAgeHelp)},
                  {"Containers", "string", "", 1, std::string(kContainersHelp)},
                  {"Images", "string", "", 1, std::string(kImagesHelp)},
                  {"Selector", "string", "", 1,
                   "A label query over pods that should match the pod count. Normally, the system "
                   "sets this field for you. More info: "
                   "https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/"
                   "#label-selectors"}},
      .selectable = {"status.successful"},
      .set_defaults = set_job_defaults,
      .prepare = prepare_job,
      .validate = validate_job,
      .warnings = job_warnings,
      .field_text = job_field_text,
      .cells = job_cells};
}

std::vector<Kind> batch_kinds() { return {job_kind(), cron_job_kind()}; }

}  // namespace skiff::api
