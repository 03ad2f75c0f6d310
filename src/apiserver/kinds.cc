#include "apiserver/kinds.h"

#include <algorithm>
#include <charconv>
#include <tuple>

#include "api/help.h"
#include "api/meta.h"
#include "schema/openapi.h"

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

std::string column_help(const json::value& column) {
  const std::string_view text = json::get_string(column, {"description"});
  if (!text.empty()) return std::string(text);
  return "Custom resource definition column (in JSONPath format): " +
         std::string(json::get_string(column, {"jsonPath"}));
}

std::vector<api::Column> columns_of(const json::value& version) {
  std::vector<api::Column> columns;
  for (const json::value& c : json::get_array(version, {"additionalPrinterColumns"})) {
    columns.push_back({.name = std::string(json::get_string(c, {"name"})),
                       .type = std::string(json::get_string(c, {"type"})),
                       .json_path = std::string(json::get_string(c, {"jsonPath"})),
                       .priority = static_cast<int>(json::get_int(c, {"priority"}).value_or(0)),
                       .description = column_help(c),
                       .format = std::string(json::get_string(c, {"format"}))});
  }
  if (columns.empty()) {
    columns.push_back({.name = "Age",
                       .type = "date",
                       .json_path = ".metadata.creationTimestamp",
                       .description = std::string(api::kAgeHelp)});
  }
  return columns;
}

std::optional<api::ScalePaths> scale_paths_of(const json::value& version) {
  const json::value* scale = json::find(version, {"subresources", "scale"});
  if (scale == nullptr || !scale->is_object()) return std::nullopt;
  return api::ScalePaths{.spec = std::string(json::get_string(*scale, {"specReplicasPath"})),
                         .status = std::string(json::get_string(*scale, {"statusReplicasPath"})),
                         .selector = std::string(json::get_string(*scale, {"labelSelectorPath"}))};
}

std::vector<std::string> selectable_of(const json::value& version) {
  std::vector<std::string> paths;
  for (const json::value& field : json::get_array(version, {"selectableFields"})) {
    std::string_view path = json::get_string(field, {"jsonPath"});
    if (path.starts_with('.')) path.remove_prefix(1);
    paths.emplace_back(path);
  }
  return paths;
}

schema::SchemaPtr schema_of(const json::value& version) {
  const json::value* text = json::find(version, {"schema", "openAPIV3Schema"});
  if (text == nullptr) return nullptr;
  auto read = schema::from_openapi(*text);
  return read ? std::make_shared<const schema::Schema>(std::move(*read)) : nullptr;
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

KindTable::KindTable(const std::vector<api::Kind>& built_in,
                     const std::vector<Object>& definitions) {
  for (const api::Kind& kind : built_in) {
    api::Resource kept = kind.resource;
    kept.group = kind.kept_in_group.value_or(kept.group);
    const ServedKind* first = by_key(kept.key());
    add({.kind = kind,
         .storage_group = kept.group,
         .storage_version = first == nullptr ? kept.version : first->resource().version,
         .storage_schema = first == nullptr ? kind.schema : first->kind.schema});
  }
  for (const Object& definition : definitions) add_definition(*definition);
  for (Group& group : groups_) std::ranges::sort(group.versions, version_before);
}

void KindTable::add(ServedKind kind) {
  kinds_.push_back(std::make_unique<ServedKind>(std::move(kind)));
  const ServedKind* added = kinds_.back().get();
  if (!added->converts()) by_key_.emplace(added->resource().key(), added);
  const std::string& name = added->resource().group;
  auto group = std::ranges::find(groups_, name, &Group::name);
  if (group == groups_.end()) group = groups_.insert(groups_.end(), Group{.name = name});
  if (std::ranges::count(group->versions, added->resource().version) == 0) {
    group->versions.push_back(added->resource().version);
  }
}

void KindTable::add_definition(const json::value& definition) {
  const json::value* spec = json::find(definition, {"spec"});
  if (spec == nullptr || by_key(api::name(definition)) != nullptr) return;
  // One whose names are another's is kept but not served.
  const json::object* established = api::condition(definition, "Established");
  if (established != nullptr && !api::condition_true(definition, "Established")) return;
  std::string storage;
  schema::SchemaPtr kept;
  for (const json::value& version : json::get_array(*spec, {"versions"})) {
    if (!json::get_bool(version, {"storage"}).value_or(false)) continue;
    storage = json::get_string(version, {"name"});
    kept = schema_of(version);
  }
  for (const json::value& version : json::get_array(*spec, {"versions"})) {
    if (!json::get_bool(version, {"served"}).value_or(false)) continue;
    const std::string group(json::get_string(*spec, {"group"}));
    ServedKind kind{.custom = true, .storage_group = group, .storage_version = storage};
    kind.kind.resource = {.group = group,
                          .version = std::string(json::get_string(version, {"name"})),
                          .plural = std::string(json::get_string(*spec, {"names", "plural"})),
                          .kind = std::string(json::get_string(*spec, {"names", "kind"})),
                          .namespaced = json::get_string(*spec, {"scope"}) != "Cluster"};
    kind.kind.singular = json::get_string(*spec, {"names", "singular"});
    kind.kind.short_names = json::strings(json::get_array(*spec, {"names", "shortNames"}));
    kind.kind.categories = json::strings(json::get_array(*spec, {"names", "categories"}));
    kind.kind.has_status = json::find(version, {"subresources", "status"}) != nullptr;
    kind.kind.scale = scale_paths_of(version);
    kind.kind.columns = columns_of(version);
    kind.kind.selectable = selectable_of(version);
    kind.kind.unconditional_update = false;
    kind.schema = schema_of(version);
    kind.kept_schema = kept;
    kind.defined_at = api::revision(definition);
    add(std::move(kind));
  }
}

const ServedKind* KindTable::find(std::string_view group, std::string_view version,
                                  std::string_view plural) const {
  for (const auto& kind : kinds_) {
    const api::Resource& r = kind->resource();
    if (r.plural == plural && r.group == group && r.version == version) return kind.get();
  }
  return nullptr;
}

const ServedKind* KindTable::by_key(std::string_view key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : found->second;
}

bool KindTable::built_in(std::string_view key) const {
  const ServedKind* kind = by_key(key);
  return kind != nullptr && !kind->custom;
}

std::vector<const ServedKind*> KindTable::in(std::string_view group,
                                             std::string_view version) const {
  std::vector<const ServedKind*> out;
  for (const auto& kind : kinds_) {
    if (kind->resource().group == group && kind->resource().version == version) {
      out.push_back(kind.get());
    }
  }
  std::ranges::sort(out, {}, [](const ServedKind* k) { return k->resource().plural; });
  return out;
}

}  // namespace skiff::apiserver
