// What a status of a Job may become. Others than our controller may write it (spec.managedBy), so
// the server holds them to the same story: what is finished stays finished. A rule is applied only
// where the write changes what it is about, so that an old mistake does not stop every write.
#include <fmt/format.h>

#include <set>

#include "api/batch/batch.h"
#include "api/meta.h"
#include "api/rules.h"
#include "base/strings.h"
#include "schema/causes.h"

namespace skiff::api {
namespace {

using schema::child;

bool condition_false(const json::value& job, std::string_view type) {
  const json::object* found = condition(job, type);
  return found != nullptr && text_in(*found, "status") == "False";
}

class JobStatusChecks {
 public:
  JobStatusChecks(const json::value& job, const json::value& old, Causes& out)
      : job_(job),
        old_(old),
        now_(value_at(job, {"status"})),
        before_(value_at(old, {"status"})),
        out_(out) {}

  void run() {
    check_numbers();
    check_conditions();
    check_times();
    check_finished();
    check_indexes();
    check_last();
    check_history();
  }

 private:
  bool is(std::string_view type) const { return condition_true(job_, type); }
  bool was(std::string_view type) const { return condition_true(old_, type); }
  bool turned(std::string_view type) const { return is(type) != was(type); }
  bool finished() const { return is("Complete") || is("Failed"); }
  bool finished_turned() const { return finished() != (was("Complete") || was("Failed")); }
  bool changed(std::string_view field) const {
    const json::value* a = json::find(now_, {field});
    const json::value* b = json::find(before_, {field});
    if (a == nullptr || b == nullptr) return a != b;
    return *a != *b;
  }
  bool indexed() const { return json::get_string(job_, {"spec", "completionMode"}) == "Indexed"; }
  json::value value(std::string_view field) const {
    const json::value* found = json::find(now_, {field});
    return found == nullptr ? json::value() : *found;
  }
  void say(std::string_view field, std::string_view sentence) {
    out_.push_back(schema::invalid(child("status", field), value(field), sentence));
  }
  void say_conditions(std::string_view sentence) {
    out_.push_back(schema::invalid_unshown("status.conditions", sentence));
  }
  void need(std::string_view field, std::string_view sentence) {
    out_.push_back(schema::required(child("status", field), sentence));
  }

  void check_numbers() {
    check_counts(now_, "status", {"active", "succeeded", "failed", "ready", "terminating"}, out_);
    std::set<std::string_view> seen;
    for (const std::string_view list : {"succeeded", "failed"}) {
      const json::array& uids = json::get_array(now_, {"uncountedTerminatedPods", list});
      for (std::size_t i = 0; i < uids.size(); ++i) {
        const std::string path = child(child("status.uncountedTerminatedPods", list), i);
        const std::string_view uid = uids[i].is_string() ? json::view(uids[i].get_string()) : "";
        if (uid.empty()) {
          out_.push_back(schema::invalid(path, "", "must not be empty"));
        } else if (!seen.insert(uid).second) {
          out_.push_back(schema::duplicate(path, json::string(uid)));
        }
      }
    }
  }

  void check_conditions() {
    if ((turned("Complete") || turned("Failed")) && is("Complete") && is("Failed")) {
      say_conditions("cannot set Complete=True and Failed=true conditions");
    }
    if ((turned("Complete") || turned("FailureTarget")) && is("Complete") && is("FailureTarget")) {
      say_conditions("cannot set Complete=True and FailureTarget=true conditions");
    }
  }

  void check_times() {
    const auto start = time_at(job_, {"status", "startTime"});
    const auto end = time_at(job_, {"status", "completionTime"});
    const bool moved = turned("Complete") || changed("completionTime");
    if (moved && end && !is("Complete")) {
      say("completionTime", "cannot set completionTime when there is no Complete=True condition");
    }
    if (moved && !end && is("Complete")) {
      need("completionTime", "completionTime is required for Complete jobs");
    }
    if ((changed("startTime") || changed("completionTime")) && start && end && *end < *start) {
      say("completionTime", "must be equal to or after `startTime`");
    }
    if ((turned("Failed") || changed("failedIndexes")) && is("Failed") && !is("FailureTarget")) {
      say_conditions("cannot set Failed=True condition without the FailureTarget=true condition");
    }
    if ((turned("Complete") || turned("SuccessCriteriaMet")) && is("Complete") &&
        !is("SuccessCriteriaMet")) {
      say_conditions(
          "cannot set Complete=True condition without the SuccessCriteriaMet=true condition");
    }
  }

  void check_finished() {
    if (!finished()) return;
    const bool turned_now = finished_turned();
    if ((turned_now || changed("active")) && count(now_, {"active"}) > 0) {
      say("active", "active>0 is invalid for finished job");
    }
    const bool never_ran = json::get_bool(job_, {"spec", "suspend"}).value_or(false) &&
                           json::get_int(job_, {"spec", "completions"}) == 0;
    if ((turned_now || changed("startTime")) && !never_ran && !present(now_, {"startTime"})) {
      need("startTime", "startTime is required for finished job");
    }
    if ((turned_now || changed("uncountedTerminatedPods")) &&
        !(json::get_array(now_, {"uncountedTerminatedPods", "failed"}).empty() &&
          json::get_array(now_, {"uncountedTerminatedPods", "succeeded"}).empty())) {
      say("uncountedTerminatedPods", "must be empty for finished job");
    }
  }

  void check_indexes() {
    const auto completions = json::get_int(job_, {"spec", "completions"});
    const bool per_index = present(job_, {"spec", "backoffLimitPerIndex"});
    const std::string_view done = json::get_string(now_, {"completedIndexes"});
    const std::string_view failed = json::get_string(now_, {"failedIndexes"});
    const auto parse = [&](std::string_view field, std::string_view text) {
      const auto counted = count_indexes(text, *completions);
      if (!counted) say(field, fmt::format("error parsing {}: {}", field, counted.error().message));
    };
    if (changed("completedIndexes") && completions) parse("completedIndexes", done);
    if (changed("failedIndexes") && completions && per_index && present(now_, {"failedIndexes"})) {
      parse("failedIndexes", failed);
    }
    if (changed("completedIndexes") && !done.empty() && !indexed()) {
      say("completedIndexes",
          "cannot set non-empty completedIndexes when non-indexed completion mode");
    }
    if (changed("failedIndexes") && !per_index && present(now_, {"failedIndexes"})) {
      say("failedIndexes", "cannot set non-null failedIndexes when backoffLimitPerIndex is null");
    }
    if ((changed("failedIndexes") || changed("completedIndexes")) && completions) {
      if (const auto index = overlap(done, failed)) {
        say("failedIndexes",
            fmt::format("failedIndexes and completedIndexes overlap at index: {}", *index));
      }
    }
  }

  // The first index that is in both; parts that cannot be read are complained about elsewhere.
  static std::optional<std::int64_t> overlap(std::string_view a, std::string_view b) {
    std::optional<std::int64_t> first;
    for (const auto& [x, y] : ranges(a)) {
      for (const auto& [u, v] : ranges(b)) {
        if (x > v || u > y) continue;
        const std::int64_t at = std::max(x, u);
        first = std::min(first.value_or(at), at);
      }
    }
    return first;
  }

  static std::vector<std::pair<std::int64_t, std::int64_t>> ranges(std::string_view text) {
    std::vector<std::pair<std::int64_t, std::int64_t>> out;
    for (const std::string_view part : split(text, ',')) {
      if (!count_indexes(part, INT32_MAX) || part.empty()) continue;
      const auto ends = split(part, '-');
      out.emplace_back(std::stoll(std::string(ends.front())), std::stoll(std::string(ends.back())));
    }
    return out;
  }

  void check_last() {
    if ((finished_turned() || changed("terminating")) && finished() &&
        count(now_, {"terminating"}) > 0) {
      say("terminating", "terminating>0 is invalid for finished job");
    }
    if ((changed("ready") || changed("active")) &&
        count(now_, {"ready"}) > count(now_, {"active"})) {
      say("ready", "cannot set more ready pods than active");
    }
    if (is("SuccessCriteriaMet") && is("Failed")) {
      say_conditions("cannot set SuccessCriteriaMet=True and Failed=true conditions");
    }
    if (is("SuccessCriteriaMet") && is("FailureTarget")) {
      say_conditions("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions");
    }
    if (present(job_, {"spec", "successPolicy"}) && !is("SuccessCriteriaMet") && is("Complete")) {
      say_conditions(
          "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True");
    }
  }

  void check_history() {
    for (const std::string_view type : {"Failed", "Complete", "FailureTarget"}) {
      if (was(type) && !is(type)) {
        say_conditions(fmt::format("cannot disable the terminal {}=True condition", type));
      }
    }
    if (count(now_, {"failed"}) < count(before_, {"failed"})) {
      out_.push_back(schema::invalid("status.failed", count(now_, {"failed"}),
                                     "cannot decrease the failed counter"));
    }
    // An indexed job with as many pods as indexes can be made smaller.
    const bool elastic = indexed() && json::get_int(job_, {"spec", "completions"}) ==
                                          json::get_int(job_, {"spec", "parallelism"});
    if (!elastic && count(now_, {"succeeded"}) < count(before_, {"succeeded"})) {
      out_.push_back(schema::invalid("status.succeeded", count(now_, {"succeeded"}),
                                     "cannot decrease the succeeded counter"));
    }
    if (present(now_, {"completionTime"}) && present(before_, {"completionTime"}) &&
        changed("completionTime")) {
      say("completionTime", "field is immutable");
    }
    const bool resumes = was("Suspended") && condition_false(job_, "Suspended");
    if (present(before_, {"startTime"}) && changed("startTime") && !resumes &&
        !json::get_bool(job_, {"spec", "suspend"}).value_or(false)) {
      need("startTime", "startTime cannot be removed for unsuspended job");
    }
    if (was("SuccessCriteriaMet") && !is("SuccessCriteriaMet")) {
      say_conditions("cannot disable the SuccessCriteriaMet=True condition");
    }
    if (was("Complete") && !was("SuccessCriteriaMet") && is("SuccessCriteriaMet")) {
      say_conditions(
          "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions");
    }
  }

  const json::value& job_;
  const json::value& old_;
  const json::value& now_;
  const json::value& before_;
  Causes& out_;
};

}  // namespace

void check_job_status(const json::value& job, const json::value& old, Causes& out) {
  JobStatusChecks(job, old, out).run();
}

}  // namespace skiff::api
