#include "schema/merge_patch.h"

namespace skiff::schema {

void apply_merge_patch(json::value& document, const json::value& patch) {
  const json::object* changes = patch.if_object();
  if (changes == nullptr) {
    document = patch;
    return;
  }
  if (!document.is_object()) document.emplace_object();
  json::object& o = document.get_object();
  for (const auto& [key, change] : *changes) {
    if (change.is_null()) {
      if (const auto at = o.find(key); at != o.end()) o.stable_erase(at);
    } else {
      apply_merge_patch(o[key], change);
    }
  }
}

json::value make_merge_patch(const json::value& from, const json::value& to) {
  if (!from.is_object() || !to.is_object()) return to;
  const json::object &a = from.get_object(), &b = to.get_object();
  json::object out;
  for (const auto& [key, value] : b) {
    const json::value* old = a.if_contains(key);
    if (old == nullptr) {
      out[key] = value;
    } else if (*old != value) {
      out[key] = make_merge_patch(*old, value);
    }
  }
  for (const auto& [key, value] : a) {
    if (!b.contains(key)) out[key] = nullptr;
  }
  return out;
}

}  // namespace skiff::schema
