// Revisions only grow: of the server, and of every object that stays the same object.
#include <fmt/format.h>

#include <map>

#include "api/meta.h"
#include "sim/checkers/checkers.h"

namespace skiff::sim::checkers {
namespace {

class Revisions : public Checker {
 public:
  std::string_view name() const override { return "revisions"; }
  void dies(bool power_cut) override {
    // What was written and not synced may be gone. Its numbers are never given again, or a watch
    // could go on from one of them and miss what now bears it.
    if (power_cut) objects_.clear();
  }

  std::optional<std::string> check(const View& view) override {
    if (view.revision < server_) {
      return fmt::format("the server went back from revision {} to {}", server_, view.revision);
    }
    server_ = view.revision;
    std::map<std::string, std::uint64_t> now;
    for (const auto& [resource, objects] : view.objects) {
      for (const Object& object : objects) {
        const std::string uid(api::uid(*object));
        const std::uint64_t at = api::revision(*object);
        const auto before = objects_.find(uid);
        if (at > view.revision || (before != objects_.end() && at < before->second)) {
          return fmt::format("{} {} is at revision {}", resource, api::name(*object), at);
        }
        if (!now.emplace(uid, at).second) return fmt::format("uid {} is there twice", uid);
      }
    }
    objects_ = std::move(now);
    return std::nullopt;
  }

 private:
  std::uint64_t server_ = 0;
  std::map<std::string, std::uint64_t> objects_ = {};
};

}  // namespace

std::unique_ptr<Checker> make_revisions() { return std::make_unique<Revisions>(); }

}  // namespace skiff::sim::checkers
