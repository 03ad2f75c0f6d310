// A killed process loses nothing that others have seen, and a power cut nothing that was promised.
#include <fmt/format.h>

#include <map>
#include <utility>

#include "api/meta.h"
#include "sim/checkers/checkers.h"

namespace skiff::sim::checkers {
namespace {

class Durability : public Checker {
 public:
  std::string_view name() const override { return "durability"; }
  void dies(bool power_cut) override { power_cut_ = power_cut; }

  std::optional<std::string> check(const View& view) override {
    known_ = objects_of(view);
    promised_ = view.promised;
    return std::nullopt;
  }

  std::optional<std::string> check_reopened(const View& view) override {
    const auto now = objects_of(view);
    // From here on this is what counts: the next death may come before the next check.
    const auto known = std::exchange(known_, now);
    for (const auto& [uid, before] : known) {
      // Written after the last sync: a power cut may leave it as it was earlier, or not at all.
      if (power_cut_ && before.revision > promised_) continue;
      const auto it = now.find(uid);
      if (it == now.end()) return fmt::format("{} is lost", before.name);
      if (it->second.revision != before.revision) {
        return fmt::format("{} was at revision {} and came back at {}", before.name,
                           before.revision, it->second.revision);
      }
    }
    for (const auto& [uid, after] : now) {
      // What was deleted without a sync may be there again.
      if (!power_cut_ && !known.contains(uid)) return fmt::format("{} came back", after.name);
    }
    return std::nullopt;
  }

 private:
  struct Known {
    std::string name = {};
    std::uint64_t revision = 0;
  };

  static std::map<std::string, Known> objects_of(const View& view) {
    std::map<std::string, Known> out;
    for (const auto& [resource, objects] : view.objects) {
      for (const Object& object : objects) {
        out[std::string(api::uid(*object))] = {
            .name = fmt::format("{} {}", resource, api::name(*object)),
            .revision = api::revision(*object)};
      }
    }
    return out;
  }

  std::map<std::string, Known> known_ = {};
  std::uint64_t promised_ = 0;
  bool power_cut_ = false;
};

}  // namespace

std::unique_ptr<Checker> make_durability() { return std::make_unique<Durability>(); }

}  // namespace skiff::sim::checkers
