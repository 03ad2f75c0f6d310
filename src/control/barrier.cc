#include "control/barrier.h"

#include <algorithm>
#include <charconv>

#include "api/meta.h"

namespace skiff::control {

void Barrier::expect(const client::Write& write, const json::value& result, const Lookup& lookup) {
  const std::string resource = write.resource.key();
  const Cache* cache = lookup(resource);
  if (cache == nullptr) return;
  const bool removal = write.verb == client::Verb::kDelete;
  const std::uint64_t revision = api::revision(result);
  if (!removal && revision != 0) {
    std::uint64_t& newest = revisions_[resource];
    newest = std::max(newest, revision);
    return;
  }
  Effect effect{.resource = resource,
                .key = {.ns = write.ns, .name = write.name},
                .uid = write.uid,
                .removal = removal};
  const Object before = cache->get(effect.key);
  if (before == nullptr) return;  // nothing that could change
  // The answer may have come later than the change. What the write was conditional upon is from
  // before it for certain.
  const std::string& condition = write.resource_version;
  effect.newer_than = api::revision(*before);
  if (!condition.empty()) {
    std::uint64_t planned_from = 0;
    std::from_chars(condition.data(), condition.data() + condition.size(), planned_from);
    effect.newer_than = std::min(effect.newer_than, planned_from);
  }
  effects_.push_back(std::move(effect));
}

bool Barrier::seen(const Effect& effect, const Cache& cache) {
  const Object now = cache.get(effect.key);
  if (now == nullptr) return true;
  if (!effect.uid.empty() && api::uid(*now) != effect.uid) return true;
  if (effect.removal) return api::deleting(*now);
  return api::revision(*now) > effect.newer_than;
}

bool Barrier::open(const Lookup& lookup) {
  std::erase_if(revisions_, [&](const auto& entry) {
    const Cache* cache = lookup(entry.first);
    return cache == nullptr || cache->revision() >= entry.second;
  });
  if (!revisions_.empty()) return false;
  // One that is not seen yet is enough to know: ten thousand are not looked at in every turn.
  while (!effects_.empty()) {
    const Cache* cache = lookup(effects_.back().resource);
    if (cache != nullptr && !seen(effects_.back(), *cache)) return false;
    effects_.pop_back();
  }
  return true;
}

Barrier::Mark Barrier::waits_for() const {
  if (revisions_.empty()) return {};
  return {.resource = revisions_.begin()->first, .revision = revisions_.begin()->second};
}

void Barrier::clear() {
  revisions_.clear();
  effects_.clear();
}

}  // namespace skiff::control
