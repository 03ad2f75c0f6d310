// Whenever a member of a gang gets a node, the gang as a whole has at least its minimum.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "api/meta.h"
#include "scheduler/snapshot.h"
#include "sim/checkers/checkers.h"

namespace skiff::sim::checkers {
namespace {

std::size_t minimum_of(const json::value& pod) {
  const std::string_view text = api::annotation(pod, scheduler::kGangMinAnnotation);
  std::size_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

class Gangs : public Checker {
 public:
  std::string_view name() const override { return "gangs"; }
  void dies(bool power_cut) override {
    // Bindings that were lost are made again.
    if (power_cut) known_ = false;
  }

  std::optional<std::string> check(const View& view) override {
    struct Gang {
      std::set<std::string> members = {};
      std::size_t min = 0;  // 0: nobody starts now
    };
    std::map<std::string, Gang> gangs;
    std::map<std::string, std::string> bound;
    for (const Object& pod : view.of("pods")) {
      const std::string_view gang = api::annotation(*pod, scheduler::kGangAnnotation);
      if (gang.empty() || json::get_string(*pod, {"spec", "nodeName"}).empty()) continue;
      const std::string key = std::string(api::ns(*pod)) + "/" + std::string(gang);
      const std::string uid(api::uid(*pod));
      Gang& entry = gangs[key];
      entry.members.insert(uid);
      // A gang may shrink while it runs (replicas are done, people scale it down): what counts is
      // how many those ask for that start now, not what older members were told once.
      if (!bound_.contains(uid)) entry.min = std::max(entry.min, minimum_of(*pod));
      bound.emplace(uid, key);
    }
    // Those that were there a moment ago count: the scheduler may have seen them last.
    for (const auto& [uid, key] : bound_) {
      if (gangs.contains(key)) gangs[key].members.insert(uid);
    }
    bound_ = std::move(bound);
    if (!std::exchange(known_, true)) return std::nullopt;
    for (const auto& [key, gang] : gangs) {
      if (gang.members.size() < gang.min) {
        return fmt::format("gang {} has {} of {} members placed", key, gang.members.size(),
                           gang.min);
      }
    }
    return std::nullopt;
  }

 private:
  std::map<std::string, std::string> bound_ = {};  // uid to gang
  bool known_ = true;
};

}  // namespace

std::unique_ptr<Checker> make_gangs() { return std::make_unique<Gangs>(); }

}  // namespace skiff::sim::checkers
