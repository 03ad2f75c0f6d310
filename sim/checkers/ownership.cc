// No orphan, and nobody has two controllers.
#include <fmt/format.h>

#include <set>

#include "api/meta.h"
#include "sim/checkers/checkers.h"

namespace skiff::sim::checkers {
namespace {

class Ownership : public Checker {
 public:
  std::string_view name() const override { return "ownership"; }

  std::optional<std::string> check(const View& view) override {
    std::set<std::string_view> uids;
    for (const auto& [resource, objects] : view.objects) {
      for (const Object& object : objects) uids.insert(api::uid(*object));
    }
    for (const auto& [resource, objects] : view.objects) {
      for (const Object& object : objects) {
        std::size_t controllers = 0;
        bool alive = false;
        const json::array& owners = json::get_array(*object, {"metadata", "ownerReferences"});
        for (const json::value& owner : owners) {
          controllers += json::get_bool(owner, {"controller"}).value_or(false) ? 1 : 0;
          alive |= uids.contains(json::get_string(owner, {"uid"}));
        }
        if (controllers > 1) {
          return fmt::format("{} {} has {} controllers", resource, api::name(*object), controllers);
        }
        if (!owners.empty() && !alive && !api::deleting(*object)) {
          return fmt::format("{} {} is an orphan", resource, api::name(*object));
        }
      }
    }
    return std::nullopt;
  }
};

}  // namespace

std::unique_ptr<Checker> make_ownership() { return std::make_unique<Ownership>(); }

}  // namespace skiff::sim::checkers
