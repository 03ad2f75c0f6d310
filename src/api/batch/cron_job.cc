#include <fmt/format.h>

#include <algorithm>

#include "api/apps/apps.h"
#include "api/batch/batch.h"
#include "api/cells.h"
#include "api/core/pod_warnings.h"
#include "api/help.h"
#include "api/meta.h"
#include "base/cron.h"
#include "base/strings.h"
#include "base/time_zone.h"
#include "schema/causes.h"

namespace skiff::api {
namespace {

using schema::child;

void set_cron_job_defaults(json::value& object) {
  json::object* root = object.if_object();
  json::object* spec = root == nullptr ? nullptr : object_in(*root, "spec");
  if (spec == nullptr) return;
  default_text(*spec, "concurrencyPolicy", "Allow");
  json::value& suspend = (*spec)["suspend"];
  if (suspend.is_null()) suspend = false;
  default_int(*spec, "successfulJobsHistoryLimit", 3);
  default_int(*spec, "failedJobsHistoryLimit", 1);
  if (json::object* job = object_in(*spec, "jobTemplate")) {
    object_in(*job, "metadata");
    if (json::object* inner = object_in(*job, "spec")) default_job_spec(*inner);
  }
  object_in(*root, "status");
}

bool names_zone(std::string_view schedule) { return schedule.find("TZ") != schedule.npos; }

void check_schedule(const json::value& spec, const json::value* old, Causes& out) {
  const std::string_view schedule = json::get_string(spec, {"schedule"});
  if (schedule.empty()) {
    out.push_back(schema::required("spec.schedule"));
    return;
  }
  const json::value shown = json::string(schedule);
  if (const auto parsed = CronSchedule::parse(schedule); !parsed) {
    out.push_back(schema::invalid("spec.schedule", shown, parsed.error().message));
  }
  if (!names_zone(schedule)) return;
  const bool allowed = old != nullptr && names_zone(json::get_string(*old, {"spec", "schedule"}));
  if (!allowed) {
    out.push_back(
        schema::invalid("spec.schedule", shown,
                        "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"));
  } else if (json::find(spec, {"timeZone"}) != nullptr) {
    out.push_back(schema::invalid("spec.schedule", shown,
                                  "cannot use both timeZone field and TZ or CRON_TZ in schedule"));
  }
}

bool fit_for_zone(std::string_view part) {
  constexpr std::size_t kMostBytes = 14;
  const auto fine = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '-' || c == '_' || c == '+';
  };
  return part != "." && part != ".." && !part.starts_with('-') && !part.empty() &&
         part.size() <= kMostBytes && std::ranges::all_of(part, fine);
}

void check_zone(const json::value& spec, Causes& out) {
  const json::value* given = json::find(spec, {"timeZone"});
  if (given == nullptr || given->is_null()) return;
  const std::string_view zone = json::get_string(*given, {});
  const auto say = [&](std::string_view sentence) {
    out.push_back(schema::invalid("spec.timeZone", json::string(zone), sentence));
  };
  if (zone.empty()) return say("timeZone must be nil or non-empty string");
  const std::string unknown = fmt::format("unknown time zone {}", zone);
  if (!std::ranges::all_of(split(zone, '/'), fit_for_zone)) return say(unknown);
  const bool local = equal_ignoring_case(zone, "Local");
  if (local) {
    say("timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones");
  }
  // "Local" by that spelling is one that programs know.
  if (zone != "Local" && !time_zone_exists(zone)) say(unknown);
}

void check_job_template(const json::value& spec, Causes& out) {
  const json::value& job = value_at(spec, {"jobTemplate", "spec"});
  const std::string path = "spec.jobTemplate.spec";
  check_job_spec(job, path, out);
  const json::value* selector = json::find(job, {"selector"});
  if (selector != nullptr && !selector->is_null()) {
    out.push_back(schema::invalid(child(path, "selector"), shown_selector(selector),
                                  "`selector` will be auto-generated"));
  }
  if (json::get_bool(job, {"manualSelector"}).value_or(false)) {
    out.push_back(schema::unsupported(child(path, "manualSelector"), true, {"nil", "false"}));
  }
}

std::vector<Cause> validate_cron_job(const json::value& object, const Admission& context) {
  Causes out;
  if (context.subresource == "status") return out;
  const json::value& spec = value_at(object, {"spec"});
  check_schedule(spec, context.old, out);
  check_counts(spec, "spec", {"startingDeadlineSeconds"}, out);
  if (context.old == nullptr ||
      value_at(spec, {"timeZone"}) != value_at(*context.old, {"spec", "timeZone"})) {
    check_zone(spec, out);
  }
  const std::string_view policy = json::get_string(spec, {"concurrencyPolicy"});
  if (!is_one_of(policy, {"Allow", "Forbid", "Replace"})) {
    out.push_back(schema::unsupported("spec.concurrencyPolicy", json::string(policy),
                                      {"Allow", "Forbid", "Replace"}));
  }
  check_job_template(spec, out);
  check_counts(spec, "spec", {"successfulJobsHistoryLimit", "failedJobsHistoryLimit"}, out);
  // Jobs are called after it and the minute, in eleven characters.
  constexpr std::size_t kNameBytes = 52;
  if (context.old == nullptr && name(object).size() > kNameBytes) {
    out.push_back(schema::invalid("metadata.name", json::string(name(object)),
                                  "must be no more than 52 characters"));
  }
  return out;
}

std::vector<std::string> cron_job_warnings(const json::value& object, const Admission& context) {
  std::vector<std::string> out;
  if (!context.subresource.empty()) return out;
  if (context.old == nullptr) {
    warn_of_pod_names(object, out);
  } else if (names_zone(json::get_string(object, {"spec", "schedule"}))) {
    // The path has one spec too many in the real server's sentence as well.
    out.emplace_back(
        "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
        "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details");
  }
  warn_of_template(object, context, "spec.jobTemplate.spec.template", out);
  return out;
}

json::array cron_job_cells(const json::value& object, std::int64_t now_s) {
  const json::value& job = value_at(object, {"spec", "jobTemplate", "spec"});
  const json::value& pod = value_at(job, {"template", "spec"});
  const auto suspend = json::get_bool(object, {"spec", "suspend"});
  const auto last = time_at(object, {"status", "lastScheduleTime"});
  return {json::string(json::get_string(object, {"spec", "schedule"})),
          json::string(or_none(json::get_string(object, {"spec", "timeZone"}))),
          !suspend   ? "<unset>"
          : *suspend ? "True"
                     : "False",
          json::get_array(object, {"status", "active"}).size(),
          json::string(last ? age_cell(last, now_s) : "<none>"),
          json::string(age_cell(object, now_s)),
          names_cell(pod),
          images_cell(pod),
          selector_cell(json::find(job, {"selector"}))};
}

std::vector<Column> cron_job_columns() {
  return {
      {"Schedule", "string", "", 0,
       "The schedule in Cron format, see https://en.wikipedia.org/wiki/Cron."},
      {"Timezone", "string", "", 0,
       "The time zone name for the given schedule, see "
       "https://en.wikipedia.org/wiki/List_of_tz_database_time_zones. If not specified, this will "
       "default to the time zone of the kube-controller-manager process. The set of valid time "
       "zone names and the time zone offset is loaded from the system-wide time zone database by "
       "the API server during CronJob validation and the controller manager during execution. If "
       "no system-wide time zone database can be found a bundled version of the database is used "
       "instead. If the time zone name becomes invalid during the lifetime of a CronJob or due to "
       "a change in host configuration, the controller will stop creating new new Jobs and will "
       "create a system event with the reason UnknownTimeZone. More information can be found in "
       "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/#time-zones"},
      {"Suspend", "boolean", "", 0,
       "This flag tells the controller to suspend subsequent executions, it does not apply to "
       "already started executions.  Defaults to false."},
      {"Active", "integer", "", 0, "A list of pointers to currently running jobs."},
      {"Last Schedule", "string", "", 0,
       "Information when was the last time the job was successfully scheduled."},
      {"Age", "string", "", 0, std::string(kAgeHelp)},
      {"Containers", "string", "", 1, std::string(kContainersHelp)},
      {"Images", "string", "", 1, std::string(kImagesHelp)},
      {"Selector", "string", "", 1,
       "A label query over pods that should match the pod count. Normally, the system sets this "
       "field for you. More info: "
       "https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/"
       "#label-selectors"}};
}

}  // namespace

Kind cron_job_kind() {
  return {.resource = {"batch", "v1", "cronjobs", "CronJob", true},
          .singular = "cronjob",
          .short_names = {"cj"},
          .categories = {"all"},
          .has_status = true,
          .schema = "io.k8s.api.batch.v1.CronJob",
          .columns = cron_job_columns(),
          .set_defaults = set_cron_job_defaults,
          .validate = validate_cron_job,
          .warnings = cron_job_warnings,
          .cells = cron_job_cells};
}

}  // namespace skiff::api
