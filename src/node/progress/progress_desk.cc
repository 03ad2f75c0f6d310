#include "node/progress/progress_desk.h"

#include <algorithm>

namespace skiff::node {

std::vector<ProgressNews> ProgressDesk::look(const std::vector<ProgressTarget>& targets,
                                             std::size_t others, Duration elapsed, Time now) {
  struct Seen {
    bool leads = false;
    bool ended = true;  // all that was looked at of it
  };
  const std::lock_guard lock(mutex_);
  std::map<std::string, Seen, std::less<>> seen;
  for (const ProgressTarget& target : targets) {
    Run& run = pods_[target.uid].runs[target.container];
    // A new attempt begins anew; until it says something the last one's word stands.
    if (run.attempt != target.attempt) run.files = {}, run.attempt = target.attempt;
    run.files.look(target.log, target.file, now);
    if (!run.files.tracker().empty()) run.told = run.files.tracker().told();
    Seen& pod = seen[target.uid];
    pod.leads = pod.leads || target.leads;
    pod.ended = pod.ended && target.ended;
  }
  std::vector<ProgressNews> out;
  for (const auto& [uid, pod] : seen) {
    PodState& state = pods_[uid];
    json::object told;
    for (const auto& [container, run] : state.runs) {
      if (!run.told.empty()) told[container] = run.told;
    }
    const Duration pause =
        pod.leads
            ? kLeaderEvery
            : std::max<Duration>(kOtherEvery, static_cast<std::int64_t>(others) * kOtherShare);
    const bool due = !state.published || pod.ended || elapsed - *state.published >= pause;
    if (!told.empty() && told != state.last && due) {
      state.published = elapsed;
      state.last = told;
      out.push_back({.uid = uid, .told = std::move(told)});
    }
    if (pod.ended) pods_.erase(uid);
  }
  return out;
}

std::size_t ProgressDesk::size() const {
  const std::lock_guard lock(mutex_);
  return pods_.size();
}

void ProgressDesk::forget(std::string_view uid) {
  const std::lock_guard lock(mutex_);
  if (const auto found = pods_.find(uid); found != pods_.end()) pods_.erase(found);
}

}  // namespace skiff::node
