// Whoever follows a watch from a list on knows exactly what another list says.
#include <fmt/format.h>

#include <map>

#include "api/meta.h"
#include "control/cache.h"
#include "sim/checkers/checkers.h"

namespace skiff::sim::checkers {
namespace {

class Stream : public Checker {
 public:
  std::string_view name() const override { return "stream"; }
  void dies(bool) override { followers_.clear(); }

  std::optional<std::string> check(const View& view) override {
    for (const api::Resource& resource : view.resources) {
      if (auto wrong = follow(view, resource)) return wrong;
    }
    return std::nullopt;
  }

 private:
  // Deliberately simpler than control::Cache, which is under test as well.
  struct Follower {
    std::unique_ptr<client::Watch> watch = {};
    std::map<control::Key, std::uint64_t> known = {};
    std::uint64_t last = 0;
  };

  std::optional<std::string> follow(const View& view, const api::Resource& resource) {
    const std::vector<Object>& truth = view.of(resource.key());
    Follower& follower = followers_[resource.key()];
    if (follower.watch == nullptr) {
      for (const Object& object : truth) {
        follower.known[control::key_of(*object)] = api::revision(*object);
      }
      follower.last = view.revision;
      auto watch = view.client->watch(resource, view.revision, [] {});
      if (!watch) return fmt::format("{}: {}", resource.key(), watch.error().message);
      follower.watch = std::move(*watch);
      return std::nullopt;
    }
    auto events = follower.watch->poll();
    for (; events && !events->empty(); events = follower.watch->poll()) {
      for (const client::Event& event : *events) {
        if (auto wrong = take_in(follower, event)) return resource.key() + ": " + *wrong;
      }
    }
    if (!events) return fmt::format("{}: {}", resource.key(), events.error().message);
    std::map<control::Key, std::uint64_t> listed;
    for (const Object& object : truth) listed[control::key_of(*object)] = api::revision(*object);
    if (listed != follower.known) {
      return fmt::format("{}: the list has {} objects and the stream tells of {}", resource.key(),
                         listed.size(), follower.known.size());
    }
    return std::nullopt;
  }

  static std::optional<std::string> take_in(Follower& follower, const client::Event& event) {
    const control::Key key = control::key_of(*event.object);
    const std::uint64_t at = api::revision(*event.object);
    if (at <= follower.last) return fmt::format("revision {} after {}", at, follower.last);
    follower.last = at;
    const bool there = follower.known.contains(key);
    if ((event.type == client::EventType::kAdded) == there) {
      return fmt::format("an event of {} contradicts what came before", key.name);
    }
    if (event.type == client::EventType::kDeleted) {
      follower.known.erase(key);
    } else {
      follower.known[key] = at;
    }
    return std::nullopt;
  }

  std::map<std::string, Follower> followers_ = {};
};

}  // namespace

std::unique_ptr<Checker> make_stream() { return std::make_unique<Stream>(); }

}  // namespace skiff::sim::checkers
