// The books of a Job: which ends of pods are counted, and how each is counted exactly once.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "control/controller.h"
#include "features/workloads/index_list.h"

namespace skiff::workloads {

// An end is first written into status.uncountedTerminatedPods, then the pod is marked, then the
// counter takes it over. A plan that is cut short anywhere can be made again.
class Tally {
 public:
  Tally(const control::Observed& observed, control::Plan& plan);

  bool indexed() const { return indexed_; }
  std::int64_t completions() const { return completions_; }  // of an indexed job
  std::int64_t succeeded() const;
  std::int64_t failed() const;
  const Indexes& completed() const { return completed_; }
  const Indexes& failed_indexes() const { return failed_indexes_; }
  // Failures of that index so far, for backoffLimitPerIndex.
  std::int64_t failures_of(std::int64_t index) const;
  bool has_uncounted() const;
  // Why the failure policy ends the job; empty: it does not.
  const std::string& policy_failure() const { return policy_failure_; }

  void write(json::object& status) const;

 private:
  void take_over(std::string_view list, std::set<std::string>& uids, std::int64_t& counter);
  void look_at(const json::value& pod);
  void look_at_success(const json::value& pod);
  void look_at_failure(const json::value& pod);
  void mark(const json::value& pod);

  const json::value& job_;
  const std::vector<Object>& pods_;
  control::Plan& plan_;
  bool indexed_ = false;
  bool per_index_ = false;
  std::int64_t completions_ = 0;
  std::int64_t counted_succeeded_ = 0;
  std::int64_t counted_failed_ = 0;
  std::set<std::string> uncounted_succeeded_ = {};
  std::set<std::string> uncounted_failed_ = {};
  Indexes written_ = {};  // of status.completedIndexes as observed
  Indexes completed_ = {};
  Indexes failed_indexes_ = {};
  std::string policy_failure_ = {};
};

// A pod that is neither ended nor given up.
bool works(const json::value& pod);
client::Write mark_counted(const json::value& pod);

}  // namespace skiff::workloads
