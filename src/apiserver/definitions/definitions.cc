#include "apiserver/definitions/definitions.h"

#include "api/help.h"
#include "api/meta.h"
#include "schema/openapi.h"

namespace skiff::apiserver {
namespace {

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

ServedKind served_version(const json::value& spec, const json::value& version,
                          std::string_view storage) {
  const std::string group(json::get_string(spec, {"group"}));
  ServedKind kind{.custom = true, .storage_group = group, .storage_version = std::string(storage)};
  kind.kind.resource = {.group = group,
                        .version = std::string(json::get_string(version, {"name"})),
                        .plural = std::string(json::get_string(spec, {"names", "plural"})),
                        .kind = std::string(json::get_string(spec, {"names", "kind"})),
                        .namespaced = json::get_string(spec, {"scope"}) != "Cluster"};
  kind.kind.singular = json::get_string(spec, {"names", "singular"});
  kind.kind.short_names = json::strings(json::get_array(spec, {"names", "shortNames"}));
  kind.kind.categories = json::strings(json::get_array(spec, {"names", "categories"}));
  kind.kind.has_status = json::find(version, {"subresources", "status"}) != nullptr;
  kind.kind.scale = scale_paths_of(version);
  kind.kind.columns = columns_of(version);
  kind.kind.selectable = selectable_of(version);
  kind.kind.unconditional_update = false;
  return kind;
}

std::vector<ServedKindPtr> served_by(const json::value& definition) {
  std::vector<ServedKindPtr> out;
  const json::value* spec = json::find(definition, {"spec"});
  if (spec == nullptr) return out;
  // One whose names are another's is kept but not served.
  const json::object* established = api::condition(definition, "Established");
  if (established != nullptr && !api::condition_true(definition, "Established")) return out;
  const json::array& versions = json::get_array(*spec, {"versions"});
  std::string_view storage;
  schema::SchemaPtr kept;
  for (const json::value& version : versions) {
    if (!json::get_bool(version, {"storage"}).value_or(false)) continue;
    storage = json::get_string(version, {"name"});
    kept = schema_of(version);
  }
  for (const json::value& version : versions) {
    if (!json::get_bool(version, {"served"}).value_or(false)) continue;
    ServedKind kind = served_version(*spec, version, storage);
    kind.schema = kind.converts() ? schema_of(version) : kept;
    kind.kept_schema = kept;
    kind.defined_at = api::revision(definition);
    out.push_back(std::make_shared<const ServedKind>(std::move(kind)));
  }
  return out;
}

HeldNames held_by(const json::value& definition) {
  HeldNames out;
  const auto add = [&](std::set<std::string>& to, std::string_view field) {
    to.emplace(json::get_string(definition, {"status", "acceptedNames", field}));
  };
  add(out.resources, "plural");
  add(out.resources, "singular");
  add(out.kinds, "kind");
  add(out.kinds, "listKind");
  for (std::string& name :
       json::strings(json::get_array(definition, {"status", "acceptedNames", "shortNames"}))) {
    out.resources.insert(std::move(name));
  }
  out.resources.erase("");
  out.kinds.erase("");
  return out;
}

}  // namespace

void HeldNames::add(const HeldNames& other) {
  resources.insert(other.resources.begin(), other.resources.end());
  kinds.insert(other.kinds.begin(), other.kinds.end());
}

Definition read_definition(const json::value& object) {
  return {.name = std::string(api::name(object)),
          .revision = api::revision(object),
          .group = std::string(json::get_string(object, {"spec", "group"})),
          .held = held_by(object),
          .names_accepted = api::condition_true(object, "NamesAccepted"),
          .served = served_by(object)};
}

DefinitionPtr Definitions::known(const store::EntryPtr& entry) {
  {
    const std::lock_guard guard(lock_);
    const auto found = known_.find(entry->key().name);
    if (found != known_.end() && found->second->revision == entry->revision()) {
      return found->second;
    }
    ++reads_;
  }
  // Without the lock: a large definition takes its time, and the others need not wait.
  auto read = std::make_shared<const Definition>(read_definition(*entry->value()));
  const std::lock_guard guard(lock_);
  DefinitionPtr& newest = known_[read->name];
  if (newest == nullptr || newest->revision < read->revision) newest = read;
  return read;
}

void Definitions::forget_others(const std::vector<DefinitionPtr>& present) {
  const std::lock_guard guard(lock_);
  if (known_.size() <= present.size()) return;
  std::set<std::string_view> names;
  for (const DefinitionPtr& definition : present) names.insert(definition->name);
  std::erase_if(known_, [&](const auto& one) { return !names.contains(one.first); });
}

std::vector<DefinitionPtr> Definitions::all(const store::Store& store) {
  std::vector<DefinitionPtr> out;
  for (const store::EntryPtr& entry : store.list(kCrdKey).entries) out.push_back(known(entry));
  forget_others(out);
  return out;
}

HeldNames Definitions::taken(const store::Store& store, std::string_view group) {
  HeldNames out;
  for (const DefinitionPtr& definition : all(store)) {
    if (definition->group == group) out.add(definition->held);
  }
  return out;
}

HeldNames Definitions::taken(const Transaction& txn, std::string_view group) {
  HeldNames out;
  for (const Transaction::Listed& one : txn.entries(kCrdKey, "")) {
    if (one.staged != nullptr) {
      if (json::get_string(*one.staged, {"spec", "group"}) == group) out.add(held_by(*one.staged));
    } else if (const DefinitionPtr definition = known(one.entry); definition->group == group) {
      out.add(definition->held);
    }
  }
  return out;
}

std::uint64_t Definitions::reads() const {
  const std::lock_guard guard(lock_);
  return reads_;
}

}  // namespace skiff::apiserver
