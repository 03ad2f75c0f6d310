// Whenever a member of a gang gets a node, at least as many as it asks for run at that time: pods
// that have ended are not among them, whatever they ended with.
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

bool runs(const json::value& pod) {
  const std::string_view phase = json::get_string(pod, {"status", "phase"});
  return phase != "Succeeded" && phase != "Failed" && !api::deleting(pod);
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
    std::set<std::string> bound;
    std::map<std::string, std::string> running;
    for (const Object& pod : view.of("pods")) {
      const std::string_view gang = api::annotation(*pod, scheduler::kGangAnnotation);
      if (gang.empty() || json::get_string(*pod, {"spec", "nodeName"}).empty()) continue;
      const std::string key = std::string(api::ns(*pod)) + "/" + std::string(gang);
      const std::string uid(api::uid(*pod));
      const bool starts = !bound_.contains(uid);
      Gang& entry = gangs[key];
      // A gang may shrink while it runs (replicas are done, people scale it down): what counts is
      // how many those ask for that start now, not what older members were told once.
      if (starts) entry.min = std::max(entry.min, minimum_of(*pod));
      if (starts || runs(*pod)) entry.members.insert(uid);
      if (runs(*pod)) running.emplace(uid, key);
      bound.insert(uid);
    }
    // Those that ran a moment ago count: they may have ended since the others were bound.
    for (const auto& [uid, key] : running_) {
      if (gangs.contains(key)) gangs[key].members.insert(uid);
    }
    bound_ = std::move(bound);
    running_ = std::move(running);
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
  std::set<std::string> bound_ = {};                 // uids of all that have a node
  std::map<std::string, std::string> running_ = {};  // of those that run, to their gang
  bool known_ = true;
};

}  // namespace

std::unique_ptr<Checker> make_gangs() { return std::make_unique<Gangs>(); }

}  // namespace skiff::sim::checkers
