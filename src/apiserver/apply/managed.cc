#include "apiserver/apply/managed.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace skiff::apiserver {
namespace {

constexpr std::size_t kMostUpdaters = 10;
constexpr std::string_view kOldUpdates = "ancient-changes";

Result<ManagedEntry> decode_entry(const json::value& v, std::size_t index) {
  const std::string_view operation = json::get_string(v, {"operation"});
  if (operation != "Apply" && operation != "Update") {
    return fail(Code::kBadRequest, "operation must be `Apply` or `Update`");
  }
  ManagedEntry entry{.manager = std::string(json::get_string(v, {"manager"})),
                     .applied = operation == "Apply",
                     .api_version = std::string(json::get_string(v, {"apiVersion"})),
                     .time = std::string(json::get_string(v, {"time"})),
                     .subresource = std::string(json::get_string(v, {"subresource"}))};
  if (entry.api_version.empty()) return fail(Code::kBadRequest, "apiVersion must not be empty");
  const std::string_view type = json::get_string(v, {"fieldsType"});
  if (type.empty()) {
    return fail(Code::kBadRequest,
                fmt::format("missing fieldsType in managed fields entry {}", index));
  }
  if (type != "FieldsV1") {
    return fail(Code::kBadRequest,
                fmt::format("invalid fieldsType \"{}\" in managed fields entry {}", type, index));
  }
  if (const json::value* fields = json::find(v, {"fieldsV1"})) {
    SKIFF_ASSIGN(entry.fields, schema::FieldSet::from_json(*fields));
    entry.raw = fields;
  }
  return entry;
}

json::object encode_entry(const ManagedEntry& entry) {
  json::object out;
  out.reserve(7);
  out["manager"] = entry.manager;
  out["operation"] = entry.applied ? "Apply" : "Update";
  out["apiVersion"] = entry.api_version;
  if (!entry.time.empty()) out["time"] = entry.time;
  out["fieldsType"] = "FieldsV1";
  out["fieldsV1"] = entry.raw != nullptr ? *entry.raw : json::value(entry.fields.to_json());
  if (!entry.subresource.empty()) out["subresource"] = entry.subresource;
  return out;
}

auto age(const ManagedEntry& e) {
  return std::tie(e.time, e.manager, e.api_version, e.subresource);
}

}  // namespace

bool ManagedEntry::same_manager(const ManagedEntry& other) const {
  return manager == other.manager && applied == other.applied && subresource == other.subresource &&
         (applied || api_version == other.api_version);
}

void ManagedEntry::set_fields(schema::FieldSet next) {
  fields = std::move(next);
  raw = nullptr;
}

Result<Managed> Managed::decode(const json::value& list) {
  Managed out;
  if (list.is_null()) return out;
  if (!list.is_array()) return fail(Code::kBadRequest, "managedFields must be a list");
  for (const json::value& v : list.get_array()) {
    SKIFF_ASSIGN(ManagedEntry entry, decode_entry(v, out.entries.size()));
    // Of two entries of one manager the later counts.
    if (ManagedEntry* known = out.find(entry)) {
      *known = std::move(entry);
    } else {
      out.entries.push_back(std::move(entry));
    }
  }
  return out;
}

json::array Managed::encode() const {
  std::vector<const ManagedEntry*> sorted;
  sorted.reserve(entries.size());
  for (const ManagedEntry& entry : entries) sorted.push_back(&entry);
  std::ranges::sort(sorted, [](const ManagedEntry* a, const ManagedEntry* b) {
    return a->applied != b->applied ? a->applied : age(*a) < age(*b);
  });
  json::array out;
  out.reserve(sorted.size());
  for (const ManagedEntry* entry : sorted) out.emplace_back(encode_entry(*entry));
  return out;
}

ManagedEntry* Managed::find(const ManagedEntry& like) {
  const auto at =
      std::ranges::find_if(entries, [&](const ManagedEntry& e) { return e.same_manager(like); });
  return at == entries.end() ? nullptr : &*at;
}

void Managed::drop_empty() {
  std::erase_if(entries, [](const ManagedEntry& e) { return e.fields.empty(); });
}

void Managed::cap() {
  std::vector<ManagedEntry> updaters;
  for (const ManagedEntry& e : entries) {
    if (!e.applied) updaters.push_back(e);
  }
  if (updaters.size() <= kMostUpdaters) return;
  std::ranges::sort(updaters,
                    [](const ManagedEntry& a, const ManagedEntry& b) { return age(a) < age(b); });
  std::size_t left = updaters.size();
  std::map<std::string, ManagedEntry> first;
  for (const ManagedEntry& old : updaters) {
    if (left <= kMostUpdaters) return;
    const auto [known, fresh] = first.emplace(old.api_version, old);
    if (fresh) continue;
    ManagedEntry bucket{.manager = std::string(kOldUpdates), .api_version = old.api_version};
    if (find(bucket) == nullptr) {
      bucket.fields = find(known->second)->fields;
      std::erase_if(entries, [&](const ManagedEntry& e) { return e.same_manager(known->second); });
      entries.push_back(bucket);
    }
    // The bucket itself may be the next in age; then the one before it goes in.
    const ManagedEntry& gone = bucket.same_manager(old) ? known->second : old;
    ManagedEntry& into = *find(bucket);
    into.set_fields(into.fields.united(gone.fields));
    into.time = old.time;
    std::erase_if(entries, [&](const ManagedEntry& e) { return e.same_manager(gone); });
    --left;
  }
}

bool is_reset(const json::value& list) {
  if (!list.is_array()) return false;
  const json::array& entries = list.get_array();
  return entries.empty() ||
         (entries.size() == 1 && entries[0].is_object() && entries[0].get_object().empty());
}

json::value take_managed(json::value& object) {
  json::object* root = object.if_object();
  json::value* metadata = root == nullptr ? nullptr : root->if_contains("metadata");
  if (metadata == nullptr || !metadata->is_object()) return {};
  json::object& o = metadata->get_object();
  const auto at = o.find("managedFields");
  if (at == o.end()) return {};
  json::value out = std::move(at->value());
  o.stable_erase(at);
  return out;
}

}  // namespace skiff::apiserver
