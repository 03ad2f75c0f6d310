#include "features/workloads/cron_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "api/meta.h"
#include "features/workloads/cron_times.h"
#include "features/workloads/pods.h"

namespace skiff::workloads {
namespace {

constexpr std::string_view kScheduledAt = "batch.kubernetes.io/cronjob-scheduled-timestamp";
// Timers stand still while the machine sleeps; the clock on the wall does not.
constexpr Duration kLongestNap = std::chrono::minutes(1);
// So that a clock that is set back a little does not wake us just before the time.
constexpr Duration kMargin = std::chrono::milliseconds(100);

// Complete, Failed or nothing.
std::string_view end_of(const json::value& job) {
  for (const std::string_view type : {"Complete", "Failed"}) {
    if (api::condition_true(job, type)) return type;
  }
  return {};
}

// "TZ=Europe/Madrid 0 9 * * *" was admitted once.
std::string zone_of(const json::value& cron) {
  const std::string_view schedule = json::get_string(cron, {"spec", "schedule"});
  if (schedule.starts_with("TZ=") || schedule.starts_with("CRON_TZ=")) {
    const std::size_t start = schedule.find('=') + 1;
    return std::string(schedule.substr(start, schedule.find(' ') - start));
  }
  return std::string(json::get_string(cron, {"spec", "timeZone"}));
}

json::object reference_to(const json::value& job) {
  return {{"apiVersion", "batch/v1"},
          {"kind", "Job"},
          {"namespace", json::string(api::ns(job))},
          {"name", json::string(api::name(job))},
          {"uid", json::string(api::uid(job))}};
}

class CronPlan {
 public:
  CronPlan(const control::Observed& observed, Time now, const Zones& zones)
      : cron_(*observed.root),
        jobs_(observed.owned[0]),
        now_(now),
        zones_(zones),
        status_(json::get_object(cron_, {"status"})) {}

  control::Plan make() {
    look_at_jobs();
    tell_of_changes();
    clean_up("Complete", "successfulJobsHistoryLimit");
    clean_up("Failed", "failedJobsHistoryLimit");
    const bool suspended = json::get_bool(cron_, {"spec", "suspend"}).value_or(false);
    if (!api::deleting(cron_) && !suspended) keep_time();
    json::array active;
    for (const Object& job : active_) active.push_back(reference_to(*job));
    if (active.empty()) {
      status_.erase("active");
    } else {
      status_["active"] = std::move(active);
    }
    json::value after = std::move(status_);
    const json::value* before = json::find(cron_, {"status"});
    const bool bare = before == nullptr && after.get_object().empty();
    if (!bare && (before == nullptr || *before != after)) plan_.status = std::move(after);
    // Whoever acts on an old look would start what has been started, or end it.
    plan_.only_if_unchanged = !plan_.writes.empty();
    return std::move(plan_);
  }

 private:
  void look_at_jobs() {
    for (const Object& job : jobs_) {
      const std::string_view end = end_of(*job);
      // One that is being deleted may still run.
      if (end.empty()) {
        if (!api::annotation(*job, kScheduledAt).empty()) {
          active_.push_back(job);
        } else {
          note("UnexpectedJob",
               fmt::format("Saw a job that the controller did not create or forgot: {}",
                           api::name(*job)),
               true);
        }
      }
      const auto at = api::time_at(*job, {"status", "completionTime"});
      if (end != "Complete" || !at) continue;
      const auto known = api::time_at(json::value(status_), {"lastSuccessfulTime"});
      if (!known || *known < *at) status_["lastSuccessfulTime"] = rfc3339(*at);
    }
  }

  // Of the jobs that were active when this was written last.
  void tell_of_changes() {
    for (const json::value& was : json::get_array(cron_, {"status", "active"})) {
      const std::string_view uid = json::get_string(was, {"uid"});
      const std::string_view name = json::get_string(was, {"name"});
      const auto is = [&](const Object& job) { return api::uid(*job) == uid; };
      const auto job = std::ranges::find_if(jobs_, is);
      if (job == jobs_.end()) {
        note("MissingJob", fmt::format("Active job went missing: {}", name));
      } else if (const std::string_view end = end_of(**job); !end.empty()) {
        note("SawCompletedJob", fmt::format("Saw completed job: {}, condition: {}", name, end));
      }
    }
  }

  void clean_up(std::string_view end, std::string_view limit_field) {
    const auto limit = json::get_int(cron_, {"spec", limit_field});
    if (!limit) return;
    std::vector<Object> ended_jobs;
    std::ranges::copy_if(jobs_, std::back_inserter(ended_jobs), [&](const Object& job) {
      return end_of(*job) == end && !api::deleting(*job);
    });
    std::ranges::sort(ended_jobs, {}, [](const Object& job) {
      const auto started = api::time_at(*job, {"status", "startTime"});
      return std::tuple(!started.has_value(), started.value_or(Time{}), api::name(*job));
    });
    const auto surplus = static_cast<std::int64_t>(ended_jobs.size()) - *limit;
    for (std::int64_t i = 0; i < surplus; ++i) remove(*ended_jobs[static_cast<std::size_t>(i)]);
  }

  void keep_time() {
    const auto zone = zones_(zone_of(cron_));
    if (!zone) {
      return note("UnknownTimeZone",
                  fmt::format("invalid timeZone: \"{}\": {}", zone_of(cron_), zone.error().message),
                  true);
    }
    const std::string_view text = json::get_string(cron_, {"spec", "schedule"});
    const auto schedule = CronSchedule::parse(text);
    if (!schedule) {
      return note("UnparseableSchedule",
                  fmt::format("unparseable schedule: \"{}\" : {}", text, schedule.error().message),
                  true);
    }
    const auto next = schedule->next(now_, *zone);
    if (!next) {
      return note("InvalidSchedule",
                  fmt::format("invalid schedule: {} : time difference between two schedules is "
                              "less than 1 second",
                              text),
                  true);
    }
    const Time last = api::time_at(cron_, {"status", "lastScheduleTime"})
                          .value_or(api::created_at(cron_).value_or(now_));
    const auto deadline = json::get_int(cron_, {"spec", "startingDeadlineSeconds"});
    const Time oldest = deadline ? now_ - std::chrono::seconds(*deadline) : last;
    // "@every" counts from the last start, whether that is long ago or not.
    const bool counts = schedule->every().has_value();
    Time due = *next;
    if (counts) {
      due = schedule->next(last, *zone).value_or(*next);
      // What is due already is started below, or may not be: then the next turn is the next look.
      if (due <= now_) due += ((now_ - due) / *schedule->every() + 1) * *schedule->every();
    }
    plan_.requeue_after = std::min(kLongestNap, due - now_ + kMargin);
    const Missed missed =
        missed_starts(*schedule, *zone, counts ? last : std::max(last, oldest), now_);
    if (missed.latest && *missed.latest < oldest) return;
    if (missed.many) {
      note("TooManyMissedTimes",
           "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check "
           "clock skew",
           true);
    }
    if (missed.latest) start(*missed.latest, *zone);
  }

  void start(Time at, const TimeZone& zone) {
    const auto minutes = std::chrono::floor<std::chrono::minutes>(at.time_since_epoch()).count();
    const std::string name = fmt::format("{}-{}", api::name(cron_), minutes);
    const auto is = [&](const Object& job) { return api::name(*job) == name; };
    if (std::ranges::any_of(jobs_, is)) {
      // Made by a plan whose status was not written.
      status_["lastScheduleTime"] = rfc3339(at);
      return;
    }
    const std::string_view policy = json::get_string(cron_, {"spec", "concurrencyPolicy"});
    if (policy == "Forbid" && !active_.empty()) {
      return note("JobAlreadyActive",
                  "Not starting job because prior execution is running and concurrency policy is "
                  "Forbid");
    }
    if (policy == "Replace") {
      for (const Object& job : active_) {
        if (!api::deleting(*job)) remove(*job);
      }
      active_.clear();
    }
    json::object meta{{"name", name},
                      {"ownerReferences", json::array{api::owner_reference(cron_)}}};
    for (const std::string_view key : {"labels", "annotations"}) {
      if (const json::value* found = json::find(cron_, {"spec", "jobTemplate", "metadata", key})) {
        meta[key] = *found;
      }
    }
    json::make_object(meta, {"annotations"})[kScheduledAt] = rfc3339_local(
        at, json::get_string(cron_, {"spec", "timeZone"}).empty() ? TimeZone() : zone);
    plan_.writes.push_back(
        creation(job_resource(), cron_,
                 json::object{{"apiVersion", "batch/v1"},
                              {"kind", "Job"},
                              {"metadata", std::move(meta)},
                              {"spec", json::get_object(cron_, {"spec", "jobTemplate", "spec"})}}));
    status_["lastScheduleTime"] = rfc3339(at);
    note("SuccessfulCreate", "Created job " + name);
  }

  void remove(const json::value& job) {
    plan_.writes.push_back(removal(job_resource(), job));
    note("SuccessfulDelete", fmt::format("Deleted job {}", api::name(job)));
  }

  void note(std::string reason, std::string message, bool warning = false) {
    plan_.notes.push_back({warning, std::move(reason), std::move(message)});
  }

  const json::value& cron_;
  const std::vector<Object>& jobs_;
  const Time now_;
  const Zones& zones_;
  control::Plan plan_ = {};
  json::object status_ = {};
  std::vector<Object> active_ = {};
};

}  // namespace

const api::Resource& cron_job_resource() {
  static const api::Resource kResource{
      .group = "batch", .version = "v1", .plural = "cronjobs", .kind = "CronJob"};
  return kResource;
}

control::Plan plan_cron_job(const control::Observed& observed, Time now, const Zones& zones) {
  return CronPlan(observed, now, zones).make();
}

control::Controller cron_job_controller(Zones zones) {
  return {.name = "cronjob-controller",
          .root = cron_job_resource(),
          .owned = {job_resource()},
          .plan = [zones = std::move(zones)](const control::Observed& observed, Time now) {
            return plan_cron_job(observed, now, zones);
          }};
}

}  // namespace skiff::workloads
