#include "control/blocked.h"

namespace skiff::control {

void Blocked::add(const Id& id, const Barrier& barrier, Duration until) {
  if (waits_.contains(id)) remove(id);  // its old time would outlive it
  Barrier::Mark mark = barrier.waits_for();
  marks_[mark.resource].emplace(mark.revision, id);
  times_.emplace(until, id);
  waits_[id] = {.until = until, .mark = std::move(mark)};
}

void Blocked::remove(const Id& id) {
  const auto wait = waits_.find(id);
  const auto marks = marks_.find(wait->second.mark.resource);
  marks->second.erase({wait->second.mark.revision, id});
  if (marks->second.empty()) marks_.erase(marks);
  times_.erase({wait->second.until, id});
  waits_.erase(wait);
}

std::vector<Blocked::Id> Blocked::take(const Barrier::Lookup& lookup, Duration now) {
  std::vector<Id> out;
  for (const auto& [resource, marks] : marks_) {
    const Cache* cache = resource.empty() ? nullptr : lookup(resource);
    for (const auto& [revision, id] : marks) {
      if (cache != nullptr && cache->revision() < revision) break;
      out.push_back(id);
    }
  }
  for (const Id& id : out) remove(id);
  while (!times_.empty() && times_.begin()->first <= now) {
    out.push_back(times_.begin()->second);
    remove(out.back());
  }
  return out;
}

std::optional<Duration> Blocked::next() const {
  if (times_.empty()) return std::nullopt;
  return times_.begin()->first;
}

}  // namespace skiff::control
