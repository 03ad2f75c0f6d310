#include "scheduler/ground.h"

#include <algorithm>

#include "scheduler/constraints.h"

namespace skiff::scheduler {
namespace {

const Amounts& used_on(const std::map<std::string, Amounts>& used, const std::string& node) {
  static const Amounts kNone;
  const auto found = used.find(node);
  return found == used.end() ? kNone : found->second;
}

}  // namespace

std::set<std::string, std::less<>> Ground::moved(const Snapshot& now) const {
  std::set<std::string, std::less<>> out;
  for (const auto& [name, node] : nodes_) {
    const auto there = now.nodes.find(name);
    if (there == now.nodes.end() || there->second != node ||
        used_on(used_, name) != used_on(now.used, name)) {
      out.insert(name);
    }
  }
  return out;
}

bool Ground::takes(const Snapshot& now, const Pod& pod, const std::string& node) const {
  const auto then = nodes_.find(node);
  const auto there = now.nodes.find(node);
  if (then == nodes_.end() || there == now.nodes.end()) return false;
  if (obstacle(pod, *there->second)) return false;
  const Amounts& had = then->second->allocatable;
  const Amounts& has = there->second->allocatable;
  const Amounts& before = used_on(used_, node);
  const Amounts& used = used_on(now.used, node);
  return std::ranges::all_of(pod.requests, [&](const auto& request) {
    const std::size_t resource = request.first;
    return amount_at(has, resource) - amount_at(used, resource) >=
           amount_at(had, resource) - amount_at(before, resource);
  });
}

}  // namespace skiff::scheduler
