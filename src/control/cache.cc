#include "control/cache.h"

#include <algorithm>
#include <utility>

#include "api/meta.h"

namespace skiff::control {

Key key_of(const json::value& object) {
  return {.ns = std::string(api::ns(object)), .name = std::string(api::name(object))};
}

namespace {

// Ten thousand pods of one commit are taken in over several turns: others' keys come in between.
constexpr std::size_t kEventsPerTurn = 64;

// Who manages which field is half of a pod, and no controller asks: ten thousand jobs that are kept
// would take twice the memory. A write without it leaves it as it is.
Object without_managers(Object object) {
  if (json::find(*object, {"metadata", "managedFields"}) == nullptr) return object;
  json::object out;
  out.reserve(object->get_object().size());
  for (const auto& [key, member] : object->get_object()) {
    if (key != "metadata") {
      out.emplace(key, member);
      continue;
    }
    json::object& metadata = out[key].emplace_object();
    metadata.reserve(member.get_object().size() - 1);
    for (const auto& [name, field] : member.get_object()) {
      if (name != "managedFields") metadata.emplace(name, field);
    }
  }
  return std::make_shared<const json::value>(std::move(out));
}

}  // namespace

Cache::Cache(client::Client& client, api::Resource resource, std::function<void()> wake)
    : client_(client), resource_(std::move(resource)), wake_(std::move(wake)) {}

void Cache::distrust() {
  must_list_ = true;
  watch_.reset();
}

Result<std::vector<Change>> Cache::poll() {
  std::vector<Change> changes;
  more_ = false;
  // Two passes: a watch that turns out to be expired is replaced by a list within the same poll.
  for (int pass = 0; pass < 2; ++pass) {
    if (must_list_) {
      auto listed = relist(changes);
      // What the first pass took in must be told even if the second cannot list.
      if (!listed && changes.empty()) return std::unexpected(std::move(listed).error());
      if (!listed) return changes;
    }
    if (watch_ == nullptr) {
      auto opened = rewatch();
      if (!opened && opened.error().code == Code::kExpired) {
        distrust();
        continue;
      }
      // What the list told is not lost by a watch that cannot be opened yet.
      if (!opened && changes.empty()) return std::unexpected(std::move(opened).error());
      if (!opened) return changes;
    }
    auto events = watch_->poll();
    for (std::size_t taken = 0; events && !events->empty(); events = watch_->poll()) {
      // A watch may give its backlog in portions; the last one is empty.
      taken += events->size();
      take_in(*events, changes);
      more_ = taken >= kEventsPerTurn;
      if (more_) return changes;
    }
    if (!events) {
      // Anything but kExpired means that only the stream broke: go on after the last event seen.
      if (events.error().code == Code::kExpired) {
        distrust();
      } else {
        watch_.reset();
      }
      continue;
    }
    break;
  }
  return changes;
}

void Cache::take_in(std::vector<client::Event>& events, std::vector<Change>& changes) {
  for (client::Event& event : events) {
    const std::uint64_t at = api::revision(*event.object);
    // A duplicate or a late repeat: what we have is newer.
    if (at <= revision_) continue;
    revision_ = at;
    if (event.type == client::EventType::kDeleted) {
      erase(key_of(*event.object), changes);
    } else {
      put(std::move(event.object), changes);
    }
  }
}

Result<void> Cache::relist(std::vector<Change>& changes) {
  SKIFF_ASSIGN(client::List listed, client_.list(resource_, {}, {}));
  // A server restored from an older state may list less than we have seen. The list is the truth.
  std::map<Key, Object> fresh;
  for (Object& object : listed.items) fresh.emplace(key_of(*object), std::move(object));
  std::vector<Key> gone;
  for (const auto& [key, object] : objects_) {
    if (!fresh.contains(key)) gone.push_back(key);
  }
  for (const Key& key : gone) erase(key, changes);
  for (auto& [key, object] : fresh) {
    const Object known = get(key);
    // The same name with another uid is another object: tell both, so that nothing is mixed up.
    if (known != nullptr && api::uid(*known) != api::uid(*object)) erase(key, changes);
    if (known == nullptr || api::resource_version(*known) != api::resource_version(*object)) {
      put(std::move(object), changes);
    }
  }
  revision_ = listed.revision;
  synced_ = true;
  must_list_ = false;
  watch_.reset();
  return {};
}

Result<void> Cache::rewatch() {
  SKIFF_ASSIGN(watch_, client_.watch(resource_, revision_, wake_));
  return {};
}

Object Cache::get(const Key& key) const {
  const auto it = objects_.find(key);
  return it == objects_.end() ? nullptr : it->second;
}

std::vector<Object> Cache::owned_by(std::string_view uid, const std::string* ns) const {
  std::vector<Object> out;
  const auto it = by_owner_.find(uid);
  if (it == by_owner_.end()) return out;
  out.reserve(it->second.size());
  for (const auto& [key, object] : it->second) {
    if (ns == nullptr || key.ns == *ns) out.push_back(object);
  }
  return out;
}

void Cache::put(Object object, std::vector<Change>& changes) {
  object = without_managers(std::move(object));
  Object& slot = objects_[key_of(*object)];
  Change change{.before = std::move(slot), .after = object};
  if (change.before != nullptr) index(change.before, false);
  index(object, true);
  slot = std::move(object);
  changes.push_back(std::move(change));
}

void Cache::erase(const Key& key, std::vector<Change>& changes) {
  const auto it = objects_.find(key);
  if (it == objects_.end()) return;
  index(it->second, false);
  changes.push_back({.before = std::move(it->second)});
  objects_.erase(it);
}

void Cache::index(const Object& object, bool add) {
  const json::object* owner = api::controller_of(*object);
  if (owner == nullptr) return;
  const json::value* uid = owner->if_contains("uid");
  if (uid == nullptr || !uid->is_string()) return;
  const std::string_view text = json::view(uid->get_string());
  if (add) {
    by_owner_[std::string(text)][key_of(*object)] = object;
    return;
  }
  const auto it = by_owner_.find(text);
  if (it == by_owner_.end()) return;
  it->second.erase(key_of(*object));
  if (it->second.empty()) by_owner_.erase(it);
}

}  // namespace skiff::control
