#include "schema/causes.h"

#include <fmt/format.h>

#include <unordered_set>

#include "base/limits.h"
#include "base/strings.h"

namespace skiff::schema {
namespace {

// At most so many bytes, whole characters all, with dots behind.
void shorten(std::string& text, std::size_t bytes) {
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) --bytes;
  text.resize(bytes);
  text += "...";
}

// A value in a sentence: scalars as JSON, anything larger by its beginning.
std::string shown(const json::value& value) {
  constexpr std::size_t kShownBytes = 400;
  std::string text = value.is_double()   ? fmt::format("{}", value.get_double())
                     : value.is_string() ? go_quoted(json::view(value.get_string()))
                                         : json::serialize(value);
  if (text.size() > kShownBytes) shorten(text, kShownBytes);
  return text;
}

// Paths that are cut end alike and are at least as long as the limit, so that they do not grow.
void cut(std::string& path) {
  if (path.size() > limits::kFieldPathBytes) shorten(path, limits::kFieldPathBytes);
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
  const bool others = causes.size() > limits::kNamedCauses;
  if (others) causes.resize(limits::kNamedCauses);
  // What is found twice is said once.
  std::vector<std::string> sentences;
  std::unordered_set<std::string> said;
  for (const Cause& cause : causes) {
    std::string sentence =
        cause.field.empty() ? cause.message : fmt::format("{}: {}", cause.field, cause.message);
    if (said.insert(sentence).second) sentences.push_back(std::move(sentence));
  }
  if (others) sentences.emplace_back("and others, too many to be listed");
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
  std::string out(base);
  append_child(out, name);
  return out;
}

std::string child(std::string_view base, std::size_t index) {
  std::string out(base);
  append_child(out, index);
  return out;
}

void append_child(std::string& base, std::string_view name) {
  if (base.size() >= limits::kFieldPathBytes) return;
  if (!base.empty()) base += '.';
  base += name.substr(0, limits::kFieldPathBytes + 1);
  cut(base);
}

void append_child(std::string& base, std::size_t index) {
  if (base.size() >= limits::kFieldPathBytes) return;
  base += fmt::format("[{}]", index);
  cut(base);
}

std::string entry(std::string_view base, std::string_view key) {
  if (base.size() >= limits::kFieldPathBytes) return std::string(base);
  std::string out = fmt::format("{}[{}]", base, key.substr(0, limits::kFieldPathBytes + 1));
  cut(out);
  return out;
}

}  // namespace skiff::schema
