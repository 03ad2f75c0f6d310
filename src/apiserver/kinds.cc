#include "apiserver/kinds.h"

#include <algorithm>
#include <charconv>
#include <tuple>

#include "apiserver/definitions/definitions.h"

namespace skiff::apiserver {
namespace {

// (stability, major, minor): larger is preferred. Not a Kubernetes version: stability 0.
std::tuple<int, long, long> version_rank(std::string_view version) {
  const std::tuple<int, long, long> none{0, 0, 0};
  if (!version.starts_with('v')) return none;
  const char* at = version.data() + 1;
  const char* end = version.data() + version.size();
  long major = 0, minor = 0;
  auto parsed = std::from_chars(at, end, major);
  if (parsed.ec != std::errc{}) return none;
  if (parsed.ptr == end) return {3, major, 0};
  const std::string_view rest(parsed.ptr, static_cast<std::size_t>(end - parsed.ptr));
  const int stability = rest.starts_with("beta") ? 2 : rest.starts_with("alpha") ? 1 : 0;
  if (stability == 0) return none;
  parsed = std::from_chars(parsed.ptr + (stability == 2 ? 4 : 5), end, minor);
  return {stability, major, minor};
}

}  // namespace

bool version_before(std::string_view a, std::string_view b) {
  const auto left = version_rank(a), right = version_rank(b);
  if (left != right) return left > right;
  return a < b;
}

api::Resource ServedKind::kept() const {
  api::Resource stored = kind.resource;
  stored.group = storage_group;
  stored.version = storage_version;
  return stored;
}

void ServedKind::to_storage(json::value& object) const {
  if (!object.is_object()) return;
  if (kind.to_storage != nullptr) kind.to_storage(object);
  object.get_object()["apiVersion"] = storage_api_version();
}

void ServedKind::from_storage(json::value& object) const {
  if (!object.is_object()) return;
  if (kind.from_storage != nullptr) kind.from_storage(object);
  object.get_object()["apiVersion"] = kind.resource.api_version();
}

std::vector<api::Subresource> subresources(const ServedKind& kind) {
  std::vector<api::Subresource> out = kind.kind.subresources;
  const std::vector<std::string> verbs = {"get", "patch", "update"};
  const bool status_first = kind.custom;  // the real server's own order for them
  const api::Subresource status{.name = "status", .kind = kind.resource().kind, .verbs = verbs};
  if (kind.kind.has_status && status_first) out.push_back(status);
  if (kind.kind.scale) {
    out.push_back({.name = "scale",
                   .kind = "Scale",
                   .verbs = verbs,
                   .group = "autoscaling",
                   .version = "v1"});
  }
  if (kind.kind.has_status && !status_first) out.push_back(status);
  return out;
}

std::vector<std::string> verbs(const ServedKind& kind) {
  if (!kind.kind.verbs.empty()) return kind.kind.verbs;
  if (kind.custom) {  // the real server's own order for them
    return {"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"};
  }
  return {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"};
}

bool is_question(const ServedKind& kind) {
  const std::vector<std::string> words = verbs(kind);
  return std::ranges::count(words, "get") == 0 || std::ranges::count(words, "update") == 0;
}

bool allows(const ServedKind& kind, std::string_view subresource, Verb verb) {
  const std::string_view word = verb_name(verb);
  if (subresource.empty()) return std::ranges::count(verbs(kind), word) > 0;
  for (const api::Subresource& info : subresources(kind)) {
    if (info.name == subresource) return std::ranges::count(info.verbs, word) > 0;
  }
  return false;
}

KindTable::KindTable(const std::vector<api::Kind>& built_in) {
  for (const api::Kind& kind : built_in) {
    api::Resource kept = kind.resource;
    kept.group = kind.kept_in_group.value_or(kept.group);
    const ServedKind* first = by_key(kept.key());
    add(std::make_shared<const ServedKind>(
        ServedKind{.kind = kind,
                   .storage_group = kept.group,
                   .storage_version = first == nullptr ? kept.version : first->resource().version,
                   .storage_schema = first == nullptr ? kind.schema : first->kind.schema}));
  }
  sort_versions();
}

KindTable KindTable::with(const std::vector<DefinitionPtr>& definitions) const {
  KindTable out = *this;
  for (const DefinitionPtr& definition : definitions) {
    if (out.by_key(definition->name) != nullptr) continue;
    for (const ServedKindPtr& kind : definition->served) out.add(kind);
  }
  out.sort_versions();
  return out;
}

void KindTable::add(ServedKindPtr kind) {
  const api::Resource& r = kind->resource();
  if (!kind->converts()) by_key_.emplace(r.key(), kind.get());
  const auto [at, first] = group_at_.try_emplace(r.group, groups_.size());
  if (first) groups_.push_back({.name = r.group});
  auto& [_, kinds] = *by_version_.try_emplace({r.group, r.version}).first;
  if (kinds.empty()) groups_[at->second].versions.push_back(r.version);
  const auto plural = [](const ServedKindPtr& k) -> const std::string& {
    return k->resource().plural;
  };
  kinds.insert(std::ranges::upper_bound(kinds, r.plural, {}, plural), kind);
  kinds_.push_back(std::move(kind));
}

void KindTable::sort_versions() {
  for (Group& group : groups_) std::ranges::sort(group.versions, version_before);
}

const ServedKind* KindTable::find(std::string_view group, std::string_view version,
                                  std::string_view plural) const {
  const std::vector<ServedKindPtr>& kinds = in(group, version);
  const auto found = std::ranges::find(
      kinds, plural,
      [](const ServedKindPtr& k) -> std::string_view { return k->resource().plural; });
  return found == kinds.end() ? nullptr : found->get();
}

const ServedKind* KindTable::by_key(std::string_view key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : found->second;
}

bool KindTable::built_in(std::string_view key) const {
  const ServedKind* kind = by_key(key);
  return kind != nullptr && !kind->custom;
}

const std::vector<ServedKindPtr>& KindTable::in(std::string_view group,
                                                std::string_view version) const {
  static const std::vector<ServedKindPtr> kNone;
  const auto found = by_version_.find({group, version});
  return found == by_version_.end() ? kNone : found->second;
}

}  // namespace skiff::apiserver
