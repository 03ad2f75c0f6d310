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

bool is_subdomain(std::string_view s) {
  while (true) {
    const std::size_t dot = s.find('.');
    if (!is_label(s.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    s.remove_prefix(dot + 1);
  }
}

std::string too_long(std::size_t bytes) {
  return fmt::format("must be no more than {} characters", bytes);
}

constexpr std::string_view kQualifiedSentence =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

}  // namespace

Complaint check_dns1123_label(std::string_view name) {
  if (name.size() > kLabelBytes) return too_long(kLabelBytes);
  if (is_label(name)) return std::nullopt;
  return "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
         "and "
         "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex "
         "used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
}

Complaint check_dns1123_subdomain(std::string_view name) {
  if (name.size() > limits::kNameBytes) return too_long(limits::kNameBytes);
  if (is_subdomain(name)) return std::nullopt;
  return "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' "
         "or "
         "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex "
         "used for validation is "
         R"('[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'))";
}

Complaint check_dns1035_label(std::string_view name) {
  if (name.size() > kLabelBytes) return too_long(kLabelBytes);
  if (is_label(name) && lower(name.front())) return std::nullopt;
  return "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with "
         "an "
         "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "
         "'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
}

Complaint check_label_key(std::string_view key) {
  const std::size_t slash = key.find('/');
  std::string_view part = key;
  if (slash != std::string_view::npos) {
    const std::string_view prefix = key.substr(0, slash);
    part = key.substr(slash + 1);
    if (part.find('/') != std::string_view::npos) {
      return fmt::format(
          "a qualified name {} with an optional DNS subdomain prefix and '/' (e.g. "
          "'example.com/MyName')",
          kQualifiedSentence);
    }
    if (prefix.empty()) return "prefix part must be non-empty";
    if (const Complaint bad = check_dns1123_subdomain(prefix)) return "prefix part " + *bad;
  }
  if (part.empty()) return "name part must be non-empty";
  if (part.size() > kLabelBytes) return "name part " + too_long(kLabelBytes);
  if (is_qualified_part(part)) return std::nullopt;
  return fmt::format("name part {}", kQualifiedSentence);
}

Complaint check_label_value(std::string_view value) {
  if (value.size() > kLabelBytes) return too_long(kLabelBytes);
  if (value.empty() || is_qualified_part(value)) return std::nullopt;
  return "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
         "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "
         "'my_value',  or '12345', regex used for validation is "
         "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
}

Complaint check_port_name(std::string_view name) {
  if (name.size() > kPortNameBytes) return too_long(kPortNameBytes);
  if (!std::ranges::all_of(name, [](char c) { return lower_or_digit(c) || c == '-'; })) {
    return "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)";
  }
  if (std::ranges::none_of(name, lower)) return "must contain at least one letter (a-z)";
  if (name.find("--") != std::string_view::npos) return "must not contain consecutive hyphens";
  if (name.front() == '-' || name.back() == '-') return "must not begin or end with a hyphen";
  return std::nullopt;
}

Complaint check_env_name(std::string_view name) {
  const auto allowed = [](char c) { return c >= ' ' && c <= '~' && c != '='; };
  if (!name.empty() && std::ranges::all_of(name, allowed)) return std::nullopt;
  return "a valid environment variable name must consist only of printable ASCII characters other "
         "than '='";
}

Complaint check_config_key(std::string_view key) {
  if (key.size() > limits::kNameBytes) return too_long(limits::kNameBytes);
  const auto allowed = [](char c) { return alnum(c) || c == '-' || c == '_' || c == '.'; };
  if (key.empty() || !std::ranges::all_of(key, allowed)) {
    return "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
           "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
           "'[-._a-zA-Z0-9]+')";
  }
  if (key == ".") return "must not be '.'";
  if (key == "..") return "must not be '..'";
  if (key.starts_with("..")) return "must not start with '..'";
  return std::nullopt;
}

}  // namespace skiff::names
