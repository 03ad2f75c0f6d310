#include "schema/field.h"

namespace skiff::schema {

Field& Field::doc(std::string_view text) {
  if (schema_ != nullptr) schema_->description = text;
  return *this;
}

Field& Field::required() {
  if (owner_ != nullptr && !owner_->requires_property(name_)) owner_->required.push_back(name_);
  return *this;
}

Field& Field::one_of(std::initializer_list<std::string_view> values) {
  if (schema_ == nullptr) return *this;
  for (const std::string_view v : values) schema_->enumeration.emplace_back(json::string(v));
  return *this;
}

Field& Field::min(double least) {
  if (schema_ != nullptr) schema_->minimum = least;
  return *this;
}

Field& Field::max(double most) {
  if (schema_ != nullptr) schema_->maximum = most;
  return *this;
}

Field& Field::length(std::uint64_t least, std::uint64_t most) {
  if (schema_ == nullptr) return *this;
  schema_->min_length = least;
  schema_->max_length = most;
  return *this;
}

Field& Field::items(std::uint64_t least, std::uint64_t most) {
  if (schema_ == nullptr) return *this;
  schema_->min_items = least;
  schema_->max_items = most;
  return *this;
}

Field& Field::pattern(std::string_view re2) {
  if (schema_ != nullptr) schema_->pattern = re2;
  return *this;
}

Field& Field::format(std::string_view name) {
  if (schema_ != nullptr) schema_->format = name;
  return *this;
}

Field& Field::fallback(json::value value) {
  if (schema_ != nullptr) schema_->fallback = std::move(value);
  return *this;
}

Field& Field::nullable() {
  if (schema_ != nullptr) schema_->nullable = true;
  return *this;
}

Field& Field::preserve_unknown() {
  if (schema_ != nullptr) schema_->preserve_unknown = true;
  return *this;
}

Field& Field::int_or_string() {
  if (schema_ == nullptr) return *this;
  schema_->type = Type::kAny;
  schema_->preserve_unknown = false;
  schema_->int_or_string = true;
  return *this;
}

Field& Field::definition(std::string_view name) {
  if (schema_ == nullptr) return *this;
  Schema place;
  place.ref = name;
  place.description = schema_->description;
  *schema_ = std::move(place);
  return *this;
}

Field& Field::list_map(std::initializer_list<std::string_view> keys) {
  if (schema_ == nullptr) return *this;
  schema_->list_type = ListType::kMap;
  schema_->list_map_keys.assign(keys.begin(), keys.end());
  return *this;
}

Field& Field::list_set() {
  if (schema_ != nullptr) schema_->list_type = ListType::kSet;
  return *this;
}

}  // namespace skiff::schema
