#include "features/workloads/job_tally.h"

#include <algorithm>
#include <charconv>

#include "api/meta.h"
#include "features/workloads/job.h"
#include "features/workloads/job_policies.h"
#include "features/workloads/pods.h"

namespace skiff::workloads {
namespace {

bool counted(const json::value& pod) { return !api::annotation(pod, kCounted).empty(); }

json::array texts(const std::set<std::string>& list) {
  json::array out;
  for (const std::string& text : list) out.push_back(json::string(text));
  return out;
}

std::int64_t failures_before(const json::value& pod) {
  const std::string_view text = api::annotation(pod, kIndexFailures);
  std::int64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

}  // namespace

bool works(const json::value& pod) { return active(pod) && !counted(pod); }

client::Write mark_counted(const json::value& pod) {
  client::Write write =
      patch(pod_resource(), pod,
            {{"metadata", {{"annotations", json::object{{kCounted, json::string("true")}}}}}});
  // Whatever else changed about the pod, it is the same one.
  write.resource_version.clear();
  return write;
}

Tally::Tally(const control::Observed& observed, control::Plan& plan)
    : job_(*observed.root), pods_(observed.owned[0]), plan_(plan) {
  indexed_ = json::get_string(job_, {"spec", "completionMode"}) == "Indexed";
  per_index_ = indexed_ && json::get_int(job_, {"spec", "backoffLimitPerIndex"}).has_value();
  completions_ = int_at(job_, {"spec", "completions"});
  counted_succeeded_ = int_at(job_, {"status", "succeeded"});
  counted_failed_ = int_at(job_, {"status", "failed"});
  written_ = parse_indexes(json::get_string(job_, {"status", "completedIndexes"}), completions_);
  completed_ = written_;
  failed_indexes_ =
      parse_indexes(json::get_string(job_, {"status", "failedIndexes"}), completions_);
  take_over("succeeded", uncounted_succeeded_, counted_succeeded_);
  take_over("failed", uncounted_failed_, counted_failed_);
  for (const Object& pod : pods_) look_at(*pod);
  for (const std::int64_t index : completed_) failed_indexes_.erase(index);
}

void Tally::take_over(std::string_view list, std::set<std::string>& uids, std::int64_t& counter) {
  const json::array& known = json::get_array(job_, {"status", "uncountedTerminatedPods", list});
  for (const std::string& uid : json::strings(known)) {
    const auto pod =
        std::ranges::find_if(pods_, [&](const Object& p) { return api::uid(*p) == uid; });
    if (pod == pods_.end() || counted(**pod)) {
      ++counter;
    } else {
      uids.insert(uid);
      mark(**pod);
    }
  }
}

void Tally::mark(const json::value& pod) { plan_.writes.push_back(mark_counted(pod)); }

void Tally::look_at(const json::value& pod) {
  const std::string uid(api::uid(pod));
  if (counted(pod) || uncounted_succeeded_.contains(uid) || uncounted_failed_.contains(uid)) {
    // Counted by a status that an index may still be missing from: an old pod never takes back.
    return;
  }
  if (phase(pod) == "Succeeded") return look_at_success(pod);
  if (has_failed(job_, pod)) look_at_failure(pod);
}

void Tally::look_at_success(const json::value& pod) {
  if (!indexed_) {
    uncounted_succeeded_.emplace(api::uid(pod));
    return;
  }
  const auto index = completion_index(pod);
  const bool valid = index && *index < completions_;
  if (valid) completed_.insert(*index);
  if (!valid || written_.contains(*index)) mark(pod);
}

void Tally::look_at_failure(const json::value& pod) {
  const Verdict verdict = judge(job_, pod);
  if (policy_failure_.empty()) policy_failure_ = verdict.fails_job;
  const auto index = completion_index(pod);
  const bool valid = !indexed_ || (index && *index < completions_);
  if (valid && per_index_) {
    const std::int64_t limit = int_at(job_, {"spec", "backoffLimitPerIndex"});
    const std::int64_t failures = failures_before(pod) + (verdict.counts ? 1 : 0);
    if (verdict.fails_index || failures > limit) failed_indexes_.insert(*index);
  }
  if (verdict.counts && valid) {
    uncounted_failed_.emplace(api::uid(pod));
  } else {
    mark(pod);
  }
}

std::int64_t Tally::failures_of(std::int64_t index) const {
  std::int64_t most = 0;
  for (const Object& pod : pods_) {
    if (completion_index(*pod) != index || !has_failed(job_, *pod)) continue;
    most = std::max(most, failures_before(*pod) + (judge(job_, *pod).counts ? 1 : 0));
  }
  return most;
}

std::int64_t Tally::succeeded() const {
  if (indexed_) return static_cast<std::int64_t>(completed_.size());
  return counted_succeeded_ + static_cast<std::int64_t>(uncounted_succeeded_.size());
}

std::int64_t Tally::failed() const {
  return counted_failed_ + static_cast<std::int64_t>(uncounted_failed_.size());
}

bool Tally::has_uncounted() const {
  return !uncounted_succeeded_.empty() || !uncounted_failed_.empty();
}

void Tally::write(json::object& status) const {
  set_count(status, "succeeded", indexed_ ? succeeded() : counted_succeeded_);
  set_count(status, "failed", counted_failed_);
  if (indexed_ && !completed_.empty()) status["completedIndexes"] = indexes_text(completed_);
  if (per_index_) status["failedIndexes"] = indexes_text(failed_indexes_);
  json::object uncounted;
  if (!uncounted_succeeded_.empty()) uncounted["succeeded"] = texts(uncounted_succeeded_);
  if (!uncounted_failed_.empty()) uncounted["failed"] = texts(uncounted_failed_);
  status["uncountedTerminatedPods"] = std::move(uncounted);
}

}  // namespace skiff::workloads
