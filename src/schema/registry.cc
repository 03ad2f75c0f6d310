#include "schema/registry.h"

#include <algorithm>
#include <mutex>

#include "base/check.h"
#include "schema/definitions.h"

namespace skiff::schema {

Registry::Registry(std::string_view definitions) {
  for (const Definition& d : split_definitions(definitions)) {
    entries_[std::string(d.name)] = {.text = d.text};
  }
}

SchemaPtr Registry::find(std::string_view name) const {
  std::string_view text;
  {
    const std::shared_lock lock(mutex_);
    const auto at = entries_.find(name);
    if (at == entries_.end()) return nullptr;
    if (at->second.schema != nullptr) return at->second.schema;
    text = at->second.text;
  }
  Result<Schema> read = read_definition(text);
  SKIFF_CHECK(read, read.error().message);
  auto fresh = std::make_shared<const Schema>(*std::move(read));
  const std::unique_lock lock(mutex_);
  const auto at = entries_.find(name);
  if (at == entries_.end()) return fresh;
  if (at->second.schema == nullptr) at->second.schema = std::move(fresh);
  return at->second.schema;
}

void Registry::add(std::string name, Schema schema) {
  auto fresh = std::make_shared<const Schema>(std::move(schema));
  const std::unique_lock lock(mutex_);
  entries_[std::move(name)] = {.schema = std::move(fresh)};
}

void Registry::remove(std::string_view name) {
  const std::unique_lock lock(mutex_);
  const auto at = entries_.find(name);
  if (at != entries_.end()) entries_.erase(at);
}

std::vector<std::string> Registry::names() const {
  const std::shared_lock lock(mutex_);
  std::vector<std::string> out;
  out.reserve(entries_.size());
  for (const auto& [name, entry] : entries_) out.push_back(name);
  std::ranges::sort(out);
  return out;
}

const Schema& Registry::resolve(const Schema& place, SchemaPtr& holder) const {
  static const Schema kAnything{.preserve_unknown = true};
  const Schema* at = &place;
  // A definition may be another's name; a ring of names ends as "anything".
  for (int hops = 0; !at->ref.empty(); ++hops) {
    SchemaPtr next = hops < 8 ? find(at->ref) : nullptr;
    if (next == nullptr) return kAnything;
    holder = std::move(next);
    at = holder.get();
  }
  return *at;
}

}  // namespace skiff::schema
