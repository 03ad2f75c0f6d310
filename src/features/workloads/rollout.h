// A Deployment and its ReplicaSets while a plan is made: what was seen and what it is to become.
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "control/controller.h"

namespace skiff::workloads {

inline constexpr std::string_view kRevision = "deployment.kubernetes.io/revision";
inline constexpr std::string_view kRevisionHistory = "deployment.kubernetes.io/revision-history";
inline constexpr std::string_view kDesiredReplicas = "deployment.kubernetes.io/desired-replicas";
inline constexpr std::string_view kMaxReplicas = "deployment.kubernetes.io/max-replicas";

// A ReplicaSet: `seen` is null for one that the plan creates.
struct Set {
  Object seen = {};
  json::value now = {};
  bool doomed = false;

  std::int64_t replicas() const;  // asked for
  std::int64_t count(std::string_view status_field) const;
  // Those that stay: a set that was made smaller may still count pods that it is about to delete.
  std::int64_t available() const;
  std::int64_t revision() const;
  bool deleting() const;
};

class Rollout {
 public:
  Rollout(const control::Observed& observed, Time now);

  const json::value& deployment() const { return *observed_.root; }
  Time now() const { return now_; }
  std::int64_t replicas() const { return replicas_; }
  std::int64_t surge() const { return surge_; }
  std::int64_t unavailable() const { return unavailable_; }
  bool recreates() const { return recreates_; }
  bool has_deadline() const;

  Set* current() const { return current_; }              // of the template as it is now, or null
  const std::vector<Set*>& old() const { return old_; }  // oldest first
  std::vector<Set*> all() const;
  std::vector<Set*> active_old() const;

  // Sets the size of a set and the notes that a later scaling goes by. True where it changed.
  bool scale(Set& set, std::int64_t size);
  // Makes the set of the current template where it is missing. False where its name is taken.
  bool make_current();
  // Gives the current set the next revision and the deployment's annotations.
  void renew_current();
  // As many old sets go as the limit of the history says.
  void clean_up();

  // What has to be written; the deployment's own revision, too, unless a set is made: it comes
  // with the next plan, because a status and a change of metadata exclude each other.
  control::Plan finish(json::object status);

 private:
  json::object selector_with(std::string_view hash) const;
  void annotate(Set& set) const;

  const control::Observed& observed_;
  const Time now_;
  std::int64_t replicas_ = 0;
  std::int64_t surge_ = 0;
  std::int64_t unavailable_ = 0;
  bool recreates_ = false;
  std::deque<Set> sets_ = {};  // never moved
  Set* current_ = nullptr;
  std::vector<Set*> old_ = {};
  std::vector<control::Note> notes_ = {};
};

std::int64_t sum_replicas(const std::vector<Set*>& sets);
std::int64_t sum(const std::vector<Set*>& sets, std::string_view status_field);

// How large the current set may be now.
std::int64_t next_size(const Rollout& rollout, std::int64_t size);
// Spreads a change of the deployment's size over the sets of a rollout that is under way.
void scale_in_proportion(Rollout& rollout);

}  // namespace skiff::workloads
