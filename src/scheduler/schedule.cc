#include "scheduler/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "api/meta.h"
#include "scheduler/amount.h"
#include "scheduler/claims.h"
#include "scheduler/constraints.h"

namespace skiff::scheduler {
namespace {

// A node with what is left on it while this round places.
struct Slot {
  const Node* node = nullptr;
  Amounts free = {};
};

// How to call a gang ("namespace/name") to its user. Those of training jobs have the job's uid for
// a name, which tells nobody anything.
std::string called(std::string_view gang) {
  const std::string_view name = gang.substr(gang.find('/') + 1);
  const bool uid =
      name.size() == 36 && name[8] == '-' && name[13] == '-' && name[18] == '-' && name[23] == '-';
  return uid ? "its gang" : fmt::format("gang \"{}\"", name);
}

// The first resource a pod asks for that the slot lacks.
std::optional<std::size_t> lacking(const Pod& pod, const Amounts& amounts) {
  for (const auto& [resource, milli] : pod.requests) {
    if (milli > amount_at(amounts, resource)) return resource;
  }
  return std::nullopt;
}

std::int64_t asked(const Pod& pod, std::size_t resource) {
  for (const auto& [number, milli] : pod.requests) {
    if (number == resource) return milli;
  }
  return 0;
}

// How full the node would be: pods are packed, because whole nodes are what large gangs need.
double fullness(const Pod& pod, const Slot& slot) {
  double most = 0;
  for (const auto& [resource, milli] : pod.requests) {
    if (resource == kPodCount) continue;
    const auto all = static_cast<double>(amount_at(slot.node->allocatable, resource));
    if (all == 0) continue;  // a port
    const auto left = static_cast<double>(amount_at(slot.free, resource) - milli);
    most = std::max(most, 1.0 - left / std::max(all, 1.0));
  }
  return most;
}

// How many such pods the slot has room for.
double room_for(const Pod& pod, const Slot& slot) {
  double least = std::numeric_limits<double>::max();
  for (const auto& [resource, milli] : pod.requests) {
    if (resource == kPodCount || milli <= 0) continue;
    const auto left =
        static_cast<double>(std::max<std::int64_t>(0, amount_at(slot.free, resource)));
    least = std::min(least, left / static_cast<double>(milli));
  }
  return least;
}

struct Unit {
  std::vector<PodPtr> pods = {};
  std::int64_t priority = 0;
  Time created = {};

  auto order() const { return std::tuple(-priority, created, pods.front()->key); }
};

std::vector<Unit> units_of(const Snapshot& snapshot) {
  std::vector<Unit> units;
  std::unordered_map<std::string_view, std::size_t> gangs;
  for (const auto& [key, pod] : snapshot.pending) {
    std::size_t index = units.size();
    if (!pod->gang.empty()) index = gangs.try_emplace(pod->gang, index).first->second;
    if (index == units.size()) {
      units.push_back({.priority = pod->priority, .created = pod->created});
    }
    Unit& unit = units[index];
    unit.priority = std::max(unit.priority, pod->priority);
    unit.created = std::min(unit.created, pod->created);
    unit.pods.push_back(pod);
  }
  std::ranges::sort(units, {}, &Unit::order);
  return units;
}

// The nodes with what is left of them when `taken` is.
std::vector<Slot> slots_beside(const Snapshot& snapshot,
                               const std::map<std::string, Amounts>& taken) {
  std::vector<std::size_t> ports;
  for (std::size_t i = 0; i < snapshot.resources.size(); ++i) {
    if (snapshot.resources[i].starts_with(kHostPort)) ports.push_back(i);
  }
  std::vector<Slot> slots;
  for (const auto& [name, node] : snapshot.nodes) {
    Slot slot{.node = node.get(), .free = node->allocatable};
    if (!ports.empty()) {
      slot.free.resize(std::max(slot.free.size(), snapshot.resources.size()));
    }
    for (const std::size_t port : ports) slot.free[port] = 1000;
    const auto used = taken.find(name);
    for (std::size_t i = 0; used != taken.end() && i < slot.free.size(); ++i) {
      slot.free[i] -= amount_at(used->second, i);
    }
    slots.push_back(std::move(slot));
  }
  return slots;
}

// Whether room can be held costs a look at every node; those further behind wait for another round.
constexpr std::size_t kLooks = 16;

// How much longer room is held for what has waited for `age`; nothing where none is.
std::optional<Duration> held_for(Duration age) {
  const Duration past = age % (kPatience + kHold);
  if (age < kPatience || past < kPatience) return std::nullopt;
  return kPatience + kHold - past;
}

// A place in the order in which nodes are taken: the fullest first, of equals the one with fewer
// pods, so that pods that ask for nothing spread.
struct Rank {
  double fullness = 0;
  std::int64_t pods_free = 0;
  std::size_t slot = 0;

  bool operator<(const Rank& other) const {
    return std::tuple(-fullness, -pods_free, slot) <
           std::tuple(-other.fullness, -other.pods_free, other.slot);
  }
};

class Round {
 public:
  Round(const Snapshot& snapshot, Time now)
      : snapshot_(snapshot), now_(now), slots_(slots_beside(snapshot, snapshot.used)) {}

  Decisions run() {
    for (const Unit& unit : units_of(snapshot_)) {
      if (unit.pods.front()->gang.empty()) {
        place_alone(unit);
      } else {
        place_gang(unit);
      }
    }
    return std::move(decisions_);
  }

 private:
  void place_alone(const Unit& unit) {
    const PodPtr& pod = unit.pods.front();
    // Within a round free amounts only shrink: what failed once fails again, for the same reason.
    const auto failed = failed_.find(pod->signature);
    if (failed != failed_.end()) return wait(pod, failed->second);
    const ClaimsView claims = view(*pod);
    if (claims.blocked) return wait(pod, blocked(claims));
    Slot* slot = best(*pod, claims);
    if (claims.coming) {
      // Its volume is being made; nobody behind it takes its place meanwhile.
      if (slot != nullptr) occupy(*pod, *slot, 1);
      return;
    }
    if (slot == nullptr) {
      std::string why = explain(*pod, claims);
      failed_.emplace(pod->signature, why);
      wait(pod, std::move(why));
      return hold_room(unit, 1);
    }
    occupy(*pod, *slot, 1);
    exclusive_.insert(claims.exclusive.begin(), claims.exclusive.end());
    if (!claims.unplaced.empty()) return select(claims, *slot);
    decisions_.gangs.push_back({.bindings = {{.pod = pod, .node = slot->node->name}}});
  }

  void place_gang(const Unit& unit) {
    const Pod& first = *unit.pods.front();
    std::size_t wanted = 0;
    for (const PodPtr& pod : unit.pods) wanted = std::max(wanted, pod->gang_min);
    const auto there = snapshot_.placed.find(first.gang);
    const std::size_t placed = there == snapshot_.placed.end() ? 0 : there->second.size();
    const std::size_t needed = wanted > placed ? wanted - placed : 0;
    const std::string name = called(first.gang);
    if (unit.pods.size() < needed) {
      const std::string why = fmt::format("{} starts {} pods together and {} exist so far", name,
                                          wanted, placed + unit.pods.size());
      for (const PodPtr& pod : unit.pods) {
        decisions_.waiting.push_back({.pod = pod, .message = why, .incomplete = true});
      }
      return;
    }
    std::vector<std::pair<PodPtr, Slot*>> tried;
    std::vector<control::Key> held;  // claims that only one pod may have
    std::vector<Waiting> left;
    bool selecting = false;
    for (const PodPtr& pod : unit.pods) {
      const ClaimsView claims = view(*pod);
      if (claims.blocked) return drop(tried, held, unit, blocked(claims));
      selecting = selecting || claims.coming || !claims.unplaced.empty();
      Slot* slot = best(*pod, claims);
      if (slot == nullptr) {
        left.push_back({.pod = pod, .message = explain(*pod, claims)});
        // Enough to know: the gang cannot be whole any more.
        if (unit.pods.size() - left.size() < needed) break;
        continue;
      }
      occupy(*pod, *slot, 1);
      for (const control::Key& claim : claims.exclusive) {
        if (exclusive_.insert(claim).second) held.push_back(claim);
      }
      tried.emplace_back(pod, slot);
    }
    if (tried.size() < needed || tried.empty()) {
      std::string why = left.front().message;
      // One that comes to a gang that is whole waits for itself alone.
      if (needed > 0) {
        why = fmt::format("{} needs room for {} pods at once and {} fit: {}", name, needed,
                          tried.size(), why);
      }
      drop(tried, held, unit, why);
      if (placed == 0) hold_room(unit, needed);
      return;
    }
    if (selecting) {
      for (const auto& [pod, slot] : tried) select(view_claims(snapshot_, *pod), *slot);
      return;
    }
    Placement placement;
    for (const auto& [pod, slot] : tried) {
      placement.bindings.push_back({.pod = pod, .node = slot->node->name});
    }
    if (there != snapshot_.placed.end()) {
      for (const auto& [key, member] : there->second) {
        if (tried.size() + placement.counted.size() >= wanted) break;
        placement.counted.push_back(member);
      }
    }
    decisions_.gangs.push_back(std::move(placement));
    for (Waiting& waiting : left) decisions_.waiting.push_back(std::move(waiting));
  }

  // A gang that cannot start gives back what it was tried on.
  void drop(const std::vector<std::pair<PodPtr, Slot*>>& tried,
            const std::vector<control::Key>& held, const Unit& unit, const std::string& why) {
    for (const control::Key& claim : held) exclusive_.erase(claim);
    for (const auto& [pod, slot] : tried) occupy(*pod, *slot, -1);
    wait_all(unit, why);
  }

  // Takes away from all that come later what `needed` pods of the unit will need, on nodes that
  // have room for them when what ends by itself has ended.
  void hold_room(const Unit& unit, std::size_t needed) {
    const std::optional<Duration> hold = held_for(now_ - unit.created);
    if (!hold || !held_by_.empty() || ++looked_ > kLooks) return;
    std::vector<Slot> calm = slots_beside(snapshot_, snapshot_.lasting);
    std::set<std::size_t> chosen;
    std::unordered_set<std::string_view> failed;  // signatures: amounts only shrink here, too
    std::size_t fit = 0;
    std::size_t left = unit.pods.size();
    for (const PodPtr& pod : unit.pods) {
      if (fit == needed || fit + left < needed) break;
      --left;
      if (failed.contains(pod->signature)) continue;
      const auto where = soonest(calm, *pod);
      if (!where) {
        failed.insert(pod->signature);
        continue;
      }
      take(*pod, calm[*where], 1);
      chosen.insert(*where);
      ++fit;
    }
    if (fit < needed) return;  // it waits for more than what ends by itself
    ranked_for_ = nullptr;
    for (const std::size_t i : chosen) leave(slots_[i], calm[i]);
    held_by_ = unit.pods.front()->key.name;
    decisions_.look_again_after = hold;
  }

  // Of the nodes that can take the pod when they are calm, the one with the most room already:
  // there is least to wait for. Of equals the one that would be fullest.
  std::optional<std::size_t> soonest(const std::vector<Slot>& calm, const Pod& pod) const {
    const ClaimsView claims = view(pod);
    std::optional<std::size_t> found;
    std::pair<double, double> score;
    for (std::size_t i = 0; i < calm.size(); ++i) {
      if (lacking(pod, calm[i].free) || obstacle(pod, *calm[i].node)) continue;
      if (volume_obstacle(claims, *calm[i].node)) continue;
      const std::pair mine(room_for(pod, slots_[i]), fullness(pod, calm[i]));
      if (found && mine <= score) continue;
      found = i;
      score = mine;
    }
    return found;
  }

  // Others may have of the node what is left beside the gang, less what they hold of it already.
  void leave(Slot& slot, const Slot& beside_gang) const {
    static const Amounts kNone;
    const auto amounts = [&](const std::map<std::string, Amounts>& by_node) -> const Amounts& {
      const auto found = by_node.find(slot.node->name);
      return found == by_node.end() ? kNone : found->second;
    };
    const Amounts& used = amounts(snapshot_.used);
    const Amounts& lasting = amounts(snapshot_.lasting);
    for (std::size_t i = 0; i < slot.free.size(); ++i) {
      const std::int64_t passing = amount_at(used, i) - amount_at(lasting, i);
      slot.free[i] = std::max<std::int64_t>(
          0, std::min(slot.free[i], amount_at(beside_gang.free, i) - passing));
    }
  }

  // The first pod that wants a claim chooses for all; the others follow when it is bound.
  void select(const ClaimsView& claims, const Slot& slot) {
    for (const Object& claim : claims.unplaced) {
      if (!selected_.insert(std::string(api::uid(*claim))).second) continue;
      decisions_.selections.push_back({.claim = claim, .node = slot.node->name});
    }
  }

  ClaimsView view(const Pod& pod) const {
    ClaimsView out = view_claims(snapshot_, pod);
    for (const control::Key& claim : out.exclusive) {
      if (exclusive_.contains(claim)) out.blocked = std::string(kExclusiveConflict);
    }
    return out;
  }

  std::string blocked(const ClaimsView& claims) const {
    return fmt::format("0/{} nodes are available: {}", slots_.size(), *claims.blocked);
  }

  Slot* best(const Pod& pod, const ClaimsView& claims) {
    if (ranked_for_ == nullptr || ranked_for_->signature != pod.signature) rank(pod, claims);
    return ranks_.empty() ? nullptr : &slots_[ranks_.begin()->slot];
  }

  // Ten thousand pods of a gang are alike: all nodes are looked at for the first of them, and to
  // place one changes the rank of one node.
  void rank(const Pod& pod, const ClaimsView& claims) {
    ranked_for_ = &pod;
    ranks_.clear();
    suits_.assign(slots_.size(), false);
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      // What it lacks it may be given back; what is in its way stays there for this round.
      suits_[i] = !obstacle(pod, *slots_[i].node) && !volume_obstacle(claims, *slots_[i].node);
      enter(i);
    }
  }
  Rank rank_of(std::size_t i) const {
    return {.fullness = fullness(*ranked_for_, slots_[i]),
            .pods_free = slots_[i].free[kPodCount],
            .slot = i};
  }
  void enter(std::size_t i) {
    if (suits_[i] && !lacking(*ranked_for_, slots_[i].free)) ranks_.insert(rank_of(i));
  }

  void occupy(const Pod& pod, Slot& slot, int sign) {
    if (ranked_for_ == nullptr) return take(pod, slot, sign);
    const auto i = static_cast<std::size_t>(&slot - slots_.data());
    ranks_.erase(rank_of(i));
    take(pod, slot, sign);
    enter(i);
  }

  static void take(const Pod& pod, Slot& slot, int sign) {
    for (const auto& [resource, milli] : pod.requests) slot.free[resource] -= sign * milli;
  }

  void wait(const PodPtr& pod, std::string why) {
    decisions_.waiting.push_back({.pod = pod, .message = std::move(why)});
  }
  void wait_all(const Unit& unit, const std::string& why) {
    for (const PodPtr& pod : unit.pods) wait(pod, why);
  }

  // Nodes counted by what keeps the pod away, as kube-scheduler words it, with the numbers.
  std::string explain(const Pod& pod, const ClaimsView& claims) const {
    if (slots_.empty()) return "no nodes available to schedule pods";
    std::map<std::string, std::size_t> obstacles;
    std::map<std::size_t, std::pair<std::size_t, const Slot*>> shortages;
    std::optional<std::size_t> impossible;
    bool possible = false;
    for (const Slot& slot : slots_) {
      auto why = obstacle(pod, *slot.node);
      if (!why) why = volume_obstacle(claims, *slot.node);
      if (why) {
        ++obstacles[*why];
        continue;
      }
      auto never = lacking(pod, slot.node->allocatable);
      // Ports come last, and a node's list does not name them.
      if (never && is_port(*never)) never.reset();
      if (never) impossible = never;
      possible |= !never;
      const auto lack = never ? never : lacking(pod, slot.free);
      if (!lack) continue;
      auto& [count, roomiest] = shortages[*lack];
      ++count;
      if (roomiest == nullptr || amount_at(slot.free, *lack) > amount_at(roomiest->free, *lack)) {
        roomiest = &slot;
      }
    }
    std::vector<std::string> parts;
    for (const auto& [resource, shortage] : shortages) {
      parts.push_back(describe_shortage(pod, resource, shortage.first, *shortage.second));
    }
    for (const auto& [why, count] : obstacles) parts.push_back(fmt::format("{} {}", count, why));
    std::string out =
        fmt::format("0/{} nodes are available: {}", slots_.size(), fmt::join(parts, ", "));
    if (impossible && !possible) out += "; the request is larger than any node it may run on";
    if (!held_by_.empty()) {
      out += fmt::format("; room is held for {}, which has waited longer", held_by_);
    }
    return out;
  }

  bool is_port(std::size_t resource) const {
    return snapshot_.resources[resource].starts_with(kHostPort);
  }

  std::string describe_shortage(const Pod& pod, std::size_t resource, std::size_t count,
                                const Slot& roomiest) const {
    const std::string& name = snapshot_.resources[resource];
    if (resource == kPodCount) return fmt::format("{} Too many pods", count);
    if (is_port(resource)) {
      return fmt::format("{} node(s) didn't have free ports for the requested pod ports", count);
    }
    return fmt::format("{} Insufficient {} (asks {}, {}free {} of {})", count, name,
                       show_milli(name, asked(pod, resource)), count > 1 ? "most " : "",
                       show_milli(name, amount_at(roomiest.free, resource)),
                       show_milli(name, amount_at(roomiest.node->allocatable, resource)));
  }

  const Snapshot& snapshot_;
  const Time now_;
  std::vector<Slot> slots_ = {};
  const Pod* ranked_for_ = nullptr;  // one like it is asked for next, most likely
  std::vector<bool> suits_ = {};     // by slot: nothing is in its way there
  std::set<Rank> ranks_ = {};        // of those with room for it
  std::unordered_map<std::string, std::string> failed_ = {};
  std::set<std::string> selected_ = {};    // uids of claims
  std::set<control::Key> exclusive_ = {};  // claims that a pod of this round has to itself
  std::string held_by_ = {};               // the first pod of what room is held for
  std::size_t looked_ = 0;                 // at how many whether room can be held
  Decisions decisions_ = {};
};

}  // namespace

Decisions schedule(const Snapshot& snapshot, Time now) { return Round(snapshot, now).run(); }

}  // namespace skiff::scheduler
