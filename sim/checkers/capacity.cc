// The pods of a node never ask for more than it has. Counted here anew, not with the scheduler's
// own books.
#include <fmt/format.h>

#include <map>

#include "api/meta.h"
#include "base/quantity.h"
#include "sim/checkers/checkers.h"

namespace skiff::sim::checkers {
namespace {

class Capacity : public Checker {
 public:
  std::string_view name() const override { return "capacity"; }

  std::optional<std::string> check(const View& view) override {
    std::map<std::string, Quantity> used;
    for (const Object& pod : view.of("pods")) {
      const std::string_view phase = json::get_string(*pod, {"status", "phase"});
      const std::string node(json::get_string(*pod, {"spec", "nodeName"}));
      if (node.empty() || phase == "Succeeded" || phase == "Failed") continue;
      for (const json::value& container : json::get_array(*pod, {"spec", "containers"})) {
        const json::value* cpu = json::find(container, {"resources", "requests", "cpu"});
        if (cpu == nullptr) continue;
        used[node] += Quantity::from_json(*cpu).value_or(Quantity());
      }
    }
    for (const Object& node : view.of("nodes")) {
      const json::value* cpu = json::find(*node, {"status", "allocatable", "cpu"});
      const auto has = cpu == nullptr ? Quantity() : Quantity::from_json(*cpu).value_or(Quantity());
      const Quantity takes = used[std::string(api::name(*node))];
      if (takes > has) {
        return fmt::format("node {} has {} CPUs and its pods ask for {}", api::name(*node),
                           has.text(), takes.text());
      }
    }
    return std::nullopt;
  }
};

}  // namespace

std::unique_ptr<Checker> make_capacity() { return std::make_unique<Capacity>(); }

}  // namespace skiff::sim::checkers
