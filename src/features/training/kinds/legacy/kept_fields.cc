#include "features/training/kinds/legacy/kept_fields.h"

#include <algorithm>

namespace skiff::training {

void keep_fields(json::value& object, std::string_view annotation, const json::object& fields) {
  if (!fields.empty()) {
    json::make_object(object, {"metadata", "annotations"})[annotation] = json::serialize(fields);
    return;
  }
  if (json::find(object, {"metadata", "annotations", annotation}) != nullptr) {
    take_fields(object, annotation);
  }
}

json::object take_fields(json::value& object, std::string_view annotation) {
  if (json::find(object, {"metadata", "annotations", annotation}) == nullptr) return {};
  json::object& metadata = json::make_object(object, {"metadata"});
  json::object& annotations = json::make_object(metadata, {"annotations"});
  Result<json::value> read =
      json::parse(json::get_string(object, {"metadata", "annotations", annotation}));
  annotations.erase(annotation);
  if (annotations.empty()) metadata.erase("annotations");
  return read && read->is_object() ? std::move(read->get_object()) : json::object{};
}

json::object take_members(json::object& from, std::initializer_list<std::string_view> names) {
  json::object out;
  for (const std::string_view name : names) {
    const auto found = from.find(name);
    if (found == from.end()) continue;
    out[name] = std::move(found->value());
    from.stable_erase(found);
  }
  return out;
}

json::object take_others(json::object& from, std::initializer_list<std::string_view> names) {
  json::object kept, out;
  for (auto& [key, value] : from) {
    const bool named = std::ranges::find(names, std::string_view(key)) != names.end();
    (named ? kept : out)[key] = std::move(value);
  }
  from = std::move(kept);
  return out;
}

void put_back(json::object& to, const json::object& fields) {
  for (const auto& [key, value] : fields) to[key] = value;
}

}  // namespace skiff::training
