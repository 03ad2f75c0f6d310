#include "apiserver/apply/last_applied.h"

#include <algorithm>
#include <vector>

#include "api/meta.h"
#include "base/limits.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kLastAppliedAnnotation =
    "kubectl.kubernetes.io/last-applied-configuration";

// Keys sorted, as Go writes a map.
json::value sorted(const json::value& v) {
  if (const json::array* list = v.if_array()) {
    json::array out;
    for (const json::value& item : *list) out.push_back(sorted(item));
    return out;
  }
  const json::object* object = v.if_object();
  if (object == nullptr) return v;
  std::vector<std::string_view> keys;
  for (const auto& member : *object) keys.push_back(member.key());
  std::ranges::sort(keys);
  json::object out;
  for (const std::string_view key : keys) out[key] = sorted(object->at(key));
  return out;
}

std::size_t bytes_of(const json::object& annotations) {
  std::size_t bytes = 0;
  for (const auto& [key, value] : annotations) {
    bytes += key.size() + json::get_string(value, {}).size();
  }
  return bytes;
}

}  // namespace

schema::FieldSet last_applied_fields(const schema::TypedFields& typed, const json::value& live,
                                     std::string_view api_version) {
  const std::string_view text =
      json::get_string(live, {"metadata", "annotations", kLastAppliedAnnotation});
  if (text.empty()) return {};
  const auto config = json::parse(text);
  if (!config || api::api_version(*config) != api_version || !typed.check(*config)) return {};
  const auto change = typed.compare(*config, live);
  return typed.leaf_set(*config).without(change.changed).without(change.removed);
}

void renew_last_applied(const json::value& config, json::value& object) {
  if (json::get_string(object, {"metadata", "annotations", kLastAppliedAnnotation}).empty()) return;
  json::value said = config;
  if (json::find(said, {"metadata", "annotations"}) != nullptr) {
    json::make_object(said, {"metadata", "annotations"}).erase(kLastAppliedAnnotation);
  }
  json::object& annotations = json::make_object(object, {"metadata", "annotations"});
  annotations[kLastAppliedAnnotation] = json::serialize(sorted(said)) + "\n";
  if (bytes_of(annotations) > limits::kAnnotationBytes) annotations.erase(kLastAppliedAnnotation);
}

}  // namespace skiff::apiserver
