// What is finished stays finished.
#include <fmt/format.h>

#include <set>

#include "api/meta.h"
#include "sim/checkers/checkers.h"

namespace skiff::sim::checkers {
namespace {

class Finality : public Checker {
 public:
  std::string_view name() const override { return "finality"; }

  std::optional<std::string> check(const View& view) override {
    for (const std::string& resource : view.roots) {
      for (const Object& root : view.of(resource)) {
        const std::string uid(api::uid(*root));
        if (view.workload->finished(*root)) {
          finished_.insert(uid);
        } else if (finished_.contains(uid)) {
          return fmt::format("{} {} was finished and is not any more", resource, api::name(*root));
        }
      }
    }
    return std::nullopt;
  }

 private:
  std::set<std::string> finished_ = {};
};

}  // namespace

std::unique_ptr<Checker> make_finality() { return std::make_unique<Finality>(); }

}  // namespace skiff::sim::checkers
