// A place of a root is filled by at most one child that lives.
#include <fmt/format.h>

#include <map>

#include "api/meta.h"
#include "sim/checkers/checkers.h"

namespace skiff::sim::checkers {
namespace {

class Slots : public Checker {
 public:
  std::string_view name() const override { return "slots"; }

  std::optional<std::string> check(const View& view) override {
    std::map<std::string, std::string_view> filled;
    for (const Object& pod : view.of("pods")) {
      const std::string_view phase = json::get_string(*pod, {"status", "phase"});
      if (api::deleting(*pod) || phase == "Succeeded" || phase == "Failed") continue;
      const json::object* owner = api::controller_of(*pod);
      const std::string slot = view.workload->slot(*pod);
      if (owner == nullptr || slot.empty()) continue;
      const std::string place = json::serialize(*owner) + slot;
      const auto [it, fresh] = filled.emplace(place, api::name(*pod));
      if (!fresh) {
        return fmt::format("pods {} and {} both fill {}", it->second, api::name(*pod), slot);
      }
    }
    return std::nullopt;
  }
};

}  // namespace

std::unique_ptr<Checker> make_slots() { return std::make_unique<Slots>(); }

}  // namespace skiff::sim::checkers
