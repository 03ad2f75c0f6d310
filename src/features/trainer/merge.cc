#include "features/trainer/merge.h"

#include <algorithm>
#include <array>
#include <utility>

namespace skiff::trainer {
namespace {

// The lists of a JobSet and its pods that are merged, and what their entries are known by.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kKeys = {{
    {"replicatedJobs", "name"},
    {"containers", "name"},
    {"initContainers", "name"},
    {"volumes", "name"},
    {"env", "name"},
    {"volumeMounts", "mountPath"},
    {"imagePullSecrets", "name"},
    {"schedulingGates", "name"},
    {"topologySpreadConstraints", "topologyKey"},
}};

std::string_view key_of(std::string_view list) {
  for (const auto& [name, key] : kKeys) {
    if (name == list) return key;
  }
  return {};
}

json::value* entry_of(json::array& list, const json::value& like, std::string_view key) {
  for (json::value& entry : list) {
    if (json::get_string(entry, {key}) == json::get_string(like, {key})) return &entry;
  }
  return nullptr;
}

// A volume of another source is another volume.
bool replaces(std::string_view list) { return list == "volumes" || list == "env"; }

void merge_list(json::array& base, const json::array& patch, std::string_view name) {
  const std::string_view key = key_of(name);
  for (const json::value& entry : patch) {
    if (!entry.is_object()) continue;
    json::value* there = entry_of(base, entry, key);
    if (there == nullptr) {
      base.push_back(entry);
    } else if (replaces(name)) {
      *there = entry;
    } else {
      merge(*there, entry);
    }
  }
}

}  // namespace

void merge(json::value& base, const json::value& patch) {
  if (patch.is_null() || (base.is_object() && !patch.is_object()) ||
      (base.is_array() && !patch.is_array())) {
    return;
  }
  if (!patch.is_object() || !base.is_object()) {
    base = patch;
    return;
  }
  json::object& fields = base.get_object();
  for (const auto& [key, value] : patch.get_object()) {
    json::value* there = fields.if_contains(key);
    if (there == nullptr) {
      fields[key] = value;
    } else if (value.is_array() && there->is_array() && !key_of(key).empty()) {
      merge_list(there->get_array(), value.get_array(), key);
    } else {
      merge(*there, value);
    }
  }
}

void put_named(json::array& list, const json::array& entries, std::string_view key) {
  for (const json::value& entry : entries) {
    json::value* there = entry_of(list, entry, key);
    if (there == nullptr) {
      list.push_back(entry);
    } else {
      *there = entry;
    }
  }
}

json::array& array_at(json::object& object, std::string_view key) {
  json::value& member = object[key];
  return member.is_array() ? member.get_array() : member.emplace_array();
}

}  // namespace skiff::trainer
