#include "control/cache.h"

#include <algorithm>
#include <utility>

#include "api/meta.h"

namespace skiff::control {

Key key_of(const json::value& object) {
  return {.ns = std::string(api::ns(object)), .name = std::string(api::name(object))};
}

namespace {

// Of what nobody looks at any more. Short, so that what ends every second does not pile up.
constexpr Duration kRestAfter = std::chrono::seconds(2);
constexpr Duration kPatienceMax = std::chrono::minutes(1);
// They are let go together, not each at a time of its own for which the loop would wake up.
constexpr Duration kRestEvery = std::chrono::seconds(1);
// To free them takes about a millisecond.
constexpr std::size_t kRestsPerTurn = 100;
// What one owner has more of, or one plan looks at, does not rest: the next plan would parse all of
// it in one long turn.
constexpr std::size_t kCrowd = 64;

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

Result<std::vector<Change>> Cache::poll(Duration now) {
  now_ = now;
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
      // Ten thousand pods of one commit take several turns: others' keys come in between.
      more_ = taken >= client::kEventsPerPoll;
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
      put(std::move(event.object), std::move(event.source), changes);
    }
  }
}

Result<void> Cache::relist(std::vector<Change>& changes) {
  SKIFF_ASSIGN(client::List listed, client_.list(resource_, {}, {}));
  // A server restored from an older state may list less than we have seen. The list is the truth.
  std::map<Key, std::size_t> fresh;
  for (std::size_t i = 0; i < listed.items.size(); ++i) fresh.emplace(key_of(*listed.items[i]), i);
  listed.sources.resize(listed.items.size());
  for (const Key& key : keys()) {
    if (!fresh.contains(key)) erase(key, changes);
  }
  for (const auto& [key, i] : fresh) {
    Object& object = listed.items[i];
    const auto known = slots_.find(key);
    if (known != slots_.end()) {
      if (known->second.revision == api::revision(*object)) continue;
      // The same name with another uid is another object: tell both, so that nothing is mixed up.
      if (api::uid(*wake(known->second)) != api::uid(*object)) erase(key, changes);
    }
    put(std::move(object), std::move(listed.sources[i]), changes);
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
  const auto it = slots_.find(key);
  return it == slots_.end() ? nullptr : wake(it->second);
}

std::vector<Object> Cache::get_all(const std::vector<Key>& wanted) const {
  std::vector<Object> out;
  out.reserve(wanted.size());
  for (const Key& key : wanted) {
    const auto it = slots_.find(key);
    if (it == slots_.end()) continue;
    if (wanted.size() > kCrowd) it->second.in_crowd = true;
    out.push_back(wake(it->second));
  }
  return out;
}

std::vector<Key> Cache::keys() const {
  std::vector<Key> out;
  out.reserve(slots_.size());
  for (const auto& [key, slot] : slots_) out.push_back(key);
  return out;
}

std::vector<Object> Cache::owned_by(std::string_view uid, const std::string* ns) const {
  std::vector<Object> out;
  const auto it = by_owner_.find(uid);
  if (it == by_owner_.end()) return out;
  out.reserve(it->second.size());
  for (const Slot* slot : it->second) {
    if (ns == nullptr || slot->key->ns == *ns) out.push_back(wake(*slot));
  }
  return out;
}

void Cache::put(Object object, client::SourcePtr source, std::vector<Change>& changes) {
  object = without_managers(std::move(object));
  const auto [it, fresh] = slots_.try_emplace(key_of(*object));
  Slot& slot = it->second;
  Change change{.after = object};
  if (fresh) {
    slot.key = &it->first;
    slot.group = by_owner_.end();
  } else {
    change.before = wake(slot);
    unindex(slot);
  }
  slot.revision = api::revision(*object);
  slot.object = std::move(object);
  slot.source = std::move(source);
  index(slot);
  slot.touched = now_;
  look_after(slot, now_);
  changes.push_back(std::move(change));
}

void Cache::erase(const Key& key, std::vector<Change>& changes) {
  const auto it = slots_.find(key);
  if (it == slots_.end()) return;
  changes.push_back({.before = wake(it->second)});
  unindex(it->second);
  awake_.erase({it->second.looked_after, &it->second});
  slots_.erase(it);
}

void Cache::index(Slot& slot) {
  const json::object* owner = api::controller_of(*slot.object);
  const json::value* uid = owner == nullptr ? nullptr : owner->if_contains("uid");
  if (uid == nullptr || !uid->is_string()) return;
  slot.group = by_owner_.try_emplace(std::string(json::view(uid->get_string()))).first;
  slot.group->second.insert(&slot);
}

void Cache::unindex(Slot& slot) {
  const auto group = std::exchange(slot.group, by_owner_.end());
  if (group == by_owner_.end()) return;
  group->second.erase(&slot);
  if (group->second.empty()) by_owner_.erase(group);
}

Object Cache::wake(const Slot& slot) const {
  slot.touched = now_;
  if (slot.object == nullptr) {
    slot.object = without_managers(slot.source->value());
    slot.patience = std::min(2 * slot.patience, kPatienceMax);
    look_after(slot, now_);
  }
  return slot.object;
}

// Its place in awake_ stays when it is looked at again: that is asked when its time has come.
void Cache::look_after(const Slot& slot, Duration from) const {
  awake_.erase({slot.looked_after, &slot});
  if (slot.source == nullptr) return;
  slot.patience = std::max(slot.patience, kRestAfter);
  const Duration at = from + slot.patience;
  slot.looked_after = (at / kRestEvery + 1) * kRestEvery;
  awake_.emplace(slot.looked_after, &slot);
}

bool Cache::stays(const Slot& slot) const {
  // Where somebody else holds it nothing would be won, and who looks next would have a second one.
  if (slot.object.use_count() > 1 || slot.in_crowd) return true;
  return slot.group != by_owner_.end() && slot.group->second.size() > kCrowd;
}

void Cache::let_rest(Duration now) {
  now_ = now;
  for (std::size_t i = 0; i < kRestsPerTurn; ++i) {
    if (awake_.empty() || awake_.begin()->first > now) return;
    const Slot& slot = *awake_.begin()->second;
    const bool tired = now - slot.touched >= slot.patience;
    if (tired && !stays(slot)) {
      awake_.erase(awake_.begin());
      slot.object = nullptr;
      continue;
    }
    look_after(slot, tired ? now + kPatienceMax : slot.touched);
  }
}

std::optional<Duration> Cache::next_rest() const {
  if (awake_.empty()) return std::nullopt;
  return awake_.begin()->first;
}

}  // namespace skiff::control
