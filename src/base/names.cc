#include "base/names.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.h"

namespace skiff::names {
namespace {

constexpr std::size_t kLabelBytes = 63;
constexpr std::size_t kPortNameBytes = 15;

bool lower(char c) { return c >= 'a' && c <= 'z'; }
bool digit(char c) { return c >= '0' && c <= '9'; }
bool lower_or_digit(char c) { return lower(c) || digit(c); }
bool alnum(char c) { return lower_or_digit(c) || (c >= 'A' && c <= 'Z'); }

// Non-empty, `inner` characters with an `edge` character at both ends.
template <class Edge, class Inner>
bool shaped(std::string_view s, Edge edge, Inner inner) {
  return !s.empty() && edge(s.front()) && edge(s.back()) && std::ranges::all_of(s, inner);
}

bool is_label(std::string_view s) {
  return shaped(s, lower_or_digit, [](char c) { return lower_or_digit(c) || c == '-'; });
}

bool is_qualified_part(std::string_view s) {
  return shaped(s, alnum, [](char c) { return alnum(c) || c == '-' || c == '_' || c == '.'; });
}

// Pieces between dots, each of which is fine.
template <class Piece>
bool dotted(std::string_view s, Piece piece) {
  while (true) {
    const std::size_t dot = s.find('.');
    if (!piece(s.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    s.remove_prefix(dot + 1);
  }
}

bool is_subdomain(std::string_view s) { return dotted(s, is_label); }

bool is_label_with_underscore(std::string_view s) {
  if (s.starts_with('_')) s.remove_prefix(1);
  return shaped(s, lower_or_digit,
                [](char c) { return lower_or_digit(c) || c == '-' || c == '_'; });
}

std::string too_long(std::size_t bytes) {
  return fmt::format("must be no more than {} characters", bytes);
}

// Too long, or of the wrong shape, or both.
Complaints shape_and_length(std::string_view text, std::size_t most, bool fine,
                            std::string_view sentence) {
  Complaints out;
  if (text.size() > most) out.push_back(too_long(most));
  if (!fine) out.emplace_back(sentence);
  return out;
}

constexpr std::string_view kQualifiedSentence =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

}  // namespace

Complaints check_dns1123_label(std::string_view name) {
  if (!is_label(name) && is_subdomain(name)) {
    return shape_and_length(name, kLabelBytes, false, "must not contain dots");
  }
  return shape_and_length(
      name, kLabelBytes, is_label(name),
      "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
      "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex "
      "used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')");
}

Complaints check_dns1123_subdomain(std::string_view name) {
  return shape_and_length(
      name, limits::kNameBytes, is_subdomain(name),
      "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
      "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex "
      "used for validation is "
      R"('[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'))");
}

Complaints check_search_domain(std::string_view name) {
  return shape_and_length(
      name, limits::kNameBytes, dotted(name, is_label_with_underscore),
      "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' "
      "or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex "
      "used for validation is "
      R"('_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*'))");
}

Complaints check_dns1035_label(std::string_view name) {
  return shape_and_length(
      name, kLabelBytes, is_label(name) && lower(name.front()),
      "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
      "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "
      "'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')");
}

Complaints check_label_key(std::string_view key) {
  Complaints out;
  const std::size_t slash = key.find('/');
  std::string_view part = key;
  if (slash != std::string_view::npos) {
    const std::string_view prefix = key.substr(0, slash);
    part = key.substr(slash + 1);
    if (part.find('/') != std::string_view::npos) {
      return {
          fmt::format("a qualified name {} with an optional DNS subdomain prefix and '/' (e.g. "
                      "'example.com/MyName')",
                      kQualifiedSentence)};
    }
    if (prefix.empty()) {
      out.emplace_back("prefix part must be non-empty");
    } else {
      for (const std::string& bad : check_dns1123_subdomain(prefix)) {
        out.push_back("prefix part " + bad);
      }
    }
  }
  if (part.empty()) out.emplace_back("name part must be non-empty");
  if (part.size() > kLabelBytes) out.push_back("name part " + too_long(kLabelBytes));
  if (!is_qualified_part(part)) out.push_back(fmt::format("name part {}", kQualifiedSentence));
  return out;
}

Complaints check_label_value(std::string_view value) {
  return shape_and_length(
      value, kLabelBytes, value.empty() || is_qualified_part(value),
      "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
      "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "
      "'my_value',  or '12345', regex used for validation is "
      "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')");
}

Complaints check_port_name(std::string_view name) {
  Complaints out;
  if (name.size() > kPortNameBytes) out.push_back(too_long(kPortNameBytes));
  // Go's pattern wants a character.
  if (name.empty() ||
      !std::ranges::all_of(name, [](char c) { return lower_or_digit(c) || c == '-'; })) {
    out.emplace_back("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
  }
  if (std::ranges::none_of(name, lower)) {
    out.emplace_back("must contain at least one letter (a-z)");
  }
  if (name.find("--") != std::string_view::npos) {
    out.emplace_back("must not contain consecutive hyphens");
  }
  if (!name.empty() && (name.front() == '-' || name.back() == '-')) {
    out.emplace_back("must not begin or end with a hyphen");
  }
  return out;
}

Complaints check_env_name(std::string_view name) {
  if (name.empty()) return {"environment variable name must be non-empty"};
  const auto allowed = [](char c) { return c >= ' ' && c <= '~' && c != '='; };
  if (std::ranges::all_of(name, allowed)) return {};
  return {
      "a valid environment variable name must consist only of printable ASCII characters other "
      "than '='"};
}

Complaints check_config_key(std::string_view key) {
  const auto allowed = [](char c) { return alnum(c) || c == '-' || c == '_' || c == '.'; };
  Complaints out = shape_and_length(
      key, limits::kNameBytes, !key.empty() && std::ranges::all_of(key, allowed),
      "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
      "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
      "'[-._a-zA-Z0-9]+')");
  if (key == ".") {
    out.emplace_back("must not be '.'");
  } else if (key == "..") {
    out.emplace_back("must not be '..'");
  } else if (key.starts_with("..")) {
    out.emplace_back("must not start with '..'");
  }
  return out;
}

Complaints check_path_segment(std::string_view name) {
  if (name == "." || name == "..") return {fmt::format("may not be '{}'", name)};
  Complaints out;
  for (const char c : {'/', '%'}) {
    if (name.find(c) != std::string_view::npos) {
      out.push_back(fmt::format("may not contain '{}'", c));
    }
  }
  return out;
}

}  // namespace skiff::names
