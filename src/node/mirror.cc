#include "node/mirror.h"

#include <algorithm>

#include "api/meta.h"

namespace skiff::node {
namespace {

Mirror::Key mirror_key(const json::value& object) {
  return {std::string(api::ns(object)), std::string(api::name(object))};
}

}  // namespace

Mirror::Mirror(client::Client& client, api::Resource resource, std::function<void()> ready,
               Keep keep)
    : client_(client), resource_(std::move(resource)), ready_(std::move(ready)), keep_(keep) {}

void Mirror::apply(const client::Event& event) {
  revision_ = std::max(revision_, api::revision(*event.object));
  if (keep_ == Keep::kNothing) return;
  if (event.type == client::EventType::kDeleted) {
    objects_.erase(mirror_key(*event.object));
  } else {
    objects_[mirror_key(*event.object)] = extract_(event.object);
  }
}

// Where a watch can begin, without the objects: no name is a dot.
Result<void> Mirror::find_revision() {
  SKIFF_ASSIGN(const client::List none,
               client_.list(resource_, "", {.field_selector = "metadata.name=."}));
  gap_ = revision_ != 0;
  revision_ = none.revision;
  listed_ = true;
  return {};
}

Result<std::vector<client::Event>> Mirror::relist() {
  watch_.reset();
  if (keep_ == Keep::kNothing) {
    SKIFF_TRY(find_revision());
    return std::vector<client::Event>();
  }
  SKIFF_ASSIGN(client::List list, client_.list(resource_, "", {}));
  std::vector<client::Event> events;
  std::map<Key, Object> fresh;
  for (Object& object : list.items) fresh[mirror_key(*object)] = std::move(object);
  for (const auto& [key, old] : objects_) {
    const auto now = fresh.find(key);
    if (now == fresh.end() || api::uid(*now->second) != api::uid(*old)) {
      events.push_back({client::EventType::kDeleted, old});
    }
  }
  for (const auto& [key, object] : fresh) {
    const auto old = objects_.find(key);
    const bool known = old != objects_.end() && api::uid(*old->second) == api::uid(*object);
    if (known && api::resource_version(*old->second) == api::resource_version(*object)) continue;
    events.push_back({known ? client::EventType::kModified : client::EventType::kAdded, object});
  }
  for (auto& [key, object] : fresh) object = extract_(object);
  objects_ = std::move(fresh);
  revision_ = list.revision;
  listed_ = true;
  return events;
}

Result<std::vector<client::Event>> Mirror::poll() {
  std::vector<client::Event> events;
  if (!listed_) {
    SKIFF_ASSIGN(events, relist());
  }
  if (!watch_) {
    auto watch = client_.watch(resource_, revision_, ready_);
    if (!watch) {
      listed_ = watch.error().code != Code::kExpired;
      if (events.empty()) return std::unexpected(std::move(watch).error());
      return events;
    }
    watch_ = std::move(*watch);
  }
  Result<std::vector<client::Event>> more = watch_->poll();
  if (!more) {
    // Broken: watch again from where we are. Expired: list again.
    watch_.reset();
    listed_ = more.error().code != Code::kExpired;
    if (events.empty()) return std::unexpected(std::move(more).error());
    return events;
  }
  for (client::Event& event : *more) {
    apply(event);
    events.push_back(std::move(event));
  }
  return events;
}

std::vector<Object> values(const Mirror& mirror) {
  std::vector<Object> out;
  out.reserve(mirror.objects().size());
  for (const auto& [key, object] : mirror.objects()) out.push_back(object);
  return out;
}

}  // namespace skiff::node
