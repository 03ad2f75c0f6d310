// Whenever a member of a gang gets a node, the gang as a whole has at least its minimum.
#include <fmt/format.h>

#include <charconv>
#include <map>
#include <set>

#include "api/meta.h"
#include "scheduler/snapshot.h"
#include "sim/checkers/checkers.h"

namespace skiff::sim::checkers {
namespace {

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
      std::size_t fresh = 0;
      std::size_t min = 0;
    };
    std::map<std::string, Gang> gangs;
    std::map<std::string, std::string> bound;
    for (const Object& pod : view.of("pods")) {
      const std::string_view gang = api::annotation(*pod, scheduler::kGangAnnotation);
      if (gang.empty() || json::get_string(*pod, {"spec", "nodeName"}).empty()) continue;
      const std::string key = std::string(api::ns(*pod)) + "/" + std::string(gang);
      const std::string uid(api::uid(*pod));
      const std::string_view min = api::annotation(*pod, scheduler::kGangMinAnnotation);
      Gang& entry = gangs[key];
      std::from_chars(min.data(), min.data() + min.size(), entry.min);
      entry.members.insert(uid);
      entry.fresh += bound_.contains(uid) ? 0 : 1;
      bound.emplace(uid, key);
    }
    // Those that were there a moment ago count: the scheduler may have seen them last.
    for (const auto& [uid, key] : bound_) {
      if (gangs.contains(key)) gangs[key].members.insert(uid);
    }
    bound_ = std::move(bound);
    if (!std::exchange(known_, true)) return std::nullopt;
    for (const auto& [key, gang] : gangs) {
      if (gang.fresh > 0 && gang.members.size() < gang.min) {
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
