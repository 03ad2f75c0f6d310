#include "schema/causes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"

namespace skiff::schema {
namespace {

// A value in a sentence: scalars as JSON, anything larger by its beginning.
std::string shown(const json::value& value) {
  constexpr std::size_t kShownBytes = 400;
  std::string text = value.is_double()   ? fmt::format("{}", value.get_double())
                     : value.is_string() ? go_quoted(json::view(value.get_string()))
                                         : json::serialize(value);
  if (text.size() > kShownBytes) {
    std::size_t end = kShownBytes;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    text = text.substr(0, end) + "...";
  }
  return text;
}

}  // namespace

Cause required(std::string path, std::string_view detail) {
  return {std::move(path), "FieldValueRequired",
          detail.empty() ? "Required value" : fmt::format("Required value: {}", detail)};
}

Cause invalid(std::string path, const json::value& value, std::string_view detail) {
  return {std::move(path), "FieldValueInvalid",
          fmt::format("Invalid value: {}{}{}", shown(value), detail.empty() ? "" : ": ", detail)};
}

Cause type_invalid(std::string path, const json::value& value, std::string_view detail) {
  Cause out = invalid(std::move(path), value, detail);
  out.reason = "FieldValueTypeInvalid";
  return out;
}

Cause invalid_unshown(std::string path, std::string_view detail) {
  return {std::move(path), "FieldValueInvalid", fmt::format("Invalid value: {}", detail)};
}

Cause unsupported(std::string path, const json::value& value,
                  const std::vector<std::string>& supported) {
  std::vector<std::string> quoted;
  for (const std::string& s : supported) {
    quoted.push_back(json::serialize(json::value(json::string(s))));
  }
  return {
      std::move(path), "FieldValueNotSupported",
      fmt::format("Unsupported value: {}: supported values: {}", shown(value), join(quoted, ", "))};
}

Cause duplicate(std::string path, const json::value& value) {
  return {std::move(path), "FieldValueDuplicate", "Duplicate value: " + shown(value)};
}

Cause forbidden(std::string path, std::string_view detail) {
  return {std::move(path), "FieldValueForbidden", fmt::format("Forbidden: {}", detail)};
}

Cause not_found(std::string path, const json::value& value) {
  return {std::move(path), "FieldValueNotFound", "Not found: " + shown(value)};
}

Cause too_long(std::string path, std::size_t most) {
  return {std::move(path), "FieldValueTooLong",
          fmt::format("Too long: may not be more than {} bytes", most)};
}

Cause too_many(std::string path, std::size_t have, std::size_t most) {
  return {std::move(path), "FieldValueTooMany",
          fmt::format("Too many: {}: must have at most {} items", have, most)};
}

Error invalid_error(std::string_view kind, std::string_view group, std::string_view name,
                    std::vector<Cause> causes) {
  // What is found twice is said once.
  std::vector<std::string> sentences;
  for (const Cause& cause : causes) {
    std::string sentence =
        cause.field.empty() ? cause.message : fmt::format("{}: {}", cause.field, cause.message);
    if (std::ranges::count(sentences, sentence) == 0) sentences.push_back(std::move(sentence));
  }
  const std::string all =
      sentences.size() == 1 ? sentences.front() : fmt::format("[{}]", join(sentences, ", "));
  const std::string what = group.empty() ? std::string(kind) : fmt::format("{}.{}", kind, group);
  return {.code = Code::kInvalid,
          .message = fmt::format("{} {} is invalid: {}", what, go_quoted(name), all),
          .causes = std::move(causes),
          .group = std::string(group),
          .resource = std::string(kind),
          .name = std::string(name)};
}

std::string child(std::string_view base, std::string_view name) {
  return base.empty() ? std::string(name) : fmt::format("{}.{}", base, name);
}

std::string child(std::string_view base, std::size_t index) {
  return fmt::format("{}[{}]", base, index);
}

std::string entry(std::string_view base, std::string_view key) {
  return fmt::format("{}[{}]", base, key);
}

}  // namespace skiff::schema
