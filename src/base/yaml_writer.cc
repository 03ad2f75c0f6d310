// YAML output in the style of `kubectl get -o yaml`.
#include <fmt/format.h>

#include <algorithm>

#include "base/yaml.h"

namespace skiff::yaml {
namespace {

// A character that begins `s` and may stand in YAML only as an escape, but in JSON as itself: DEL,
// the second set of control characters, line separators, the byte-order mark, what is no character.
struct Special {
  std::size_t bytes = 0;  // 0: there is none
  std::string escape = {};
};
Special special(std::string_view s) {
  const auto u = static_cast<unsigned char>(s.front());
  if (u == 0x7f) return {1, "\\x7F"};
  if (u == 0xc2 && s.size() > 1 && static_cast<unsigned char>(s[1]) < 0xa0) {
    return {2, fmt::format("\\x{:02X}", static_cast<unsigned char>(s[1]))};
  }
  if (s.starts_with("\xE2\x80\xA8")) return {3, "\\L"};
  if (s.starts_with("\xE2\x80\xA9")) return {3, "\\P"};
  if (s.starts_with("\xEF\xBB\xBF")) return {3, "\\uFEFF"};
  if (s.starts_with("\xEF\xBF\xBE")) return {3, "\\uFFFE"};
  if (s.starts_with("\xEF\xBF\xBF")) return {3, "\\uFFFF"};
  return {};
}

bool printable(std::string_view s) {
  for (; !s.empty(); s.remove_prefix(1)) {
    const auto u = static_cast<unsigned char>(s.front());
    if ((u < 0x20 && u != '\n') || special(s).bytes > 0) return false;
  }
  return true;
}

// True where the text may stand without quotes.
bool plain(std::string_view s) {
  constexpr std::string_view kIndicators = "-?:,[]{}#&*!|>'\"%@`";
  if (s.front() == ' ' || s.back() == ' ' || s.starts_with("---") || s.starts_with("...")) {
    return false;
  }
  if (kIndicators.find(s.front()) != s.npos) {
    const bool mark = s.front() == '-' || s.front() == '?' || s.front() == ':';
    if (!mark || s.size() == 1 || s[1] == ' ') return false;
  }
  if (s.find(": ") != s.npos || s.find(" #") != s.npos || s.back() == ':') return false;
  return s != "<<" && s != "=";
}

// Up to `most` digits, at least one.
bool take_digits(std::string_view& s, std::size_t most) {
  std::size_t n = 0;
  while (n < s.size() && n < most && s[n] >= '0' && s[n] <= '9') ++n;
  s.remove_prefix(n);
  return n > 0;
}

bool take(std::string_view& s, std::string_view any_of) {
  if (s.empty() || any_of.find(s.front()) == any_of.npos) return false;
  s.remove_prefix(1);
  return true;
}

// 2026-01-02, perhaps with 03:04:05.6 and Z or +01:00 behind: text that others read as a time.
bool timestamp(std::string_view s) {
  if (s.size() < 5 || s[4] != '-' || !take_digits(s, 4) || !take(s, "-") || !take_digits(s, 2) ||
      !take(s, "-") || !take_digits(s, 2)) {
    return false;
  }
  if (s.empty()) return true;
  const bool zoned = s.front() != ' ';
  if (!take(s, "Tt ") || !take_digits(s, 2) || !take(s, ":") || !take_digits(s, 2) ||
      !take(s, ":") || !take_digits(s, 2) || (take(s, ".") && !take_digits(s, s.size()))) {
    return false;
  }
  if (!zoned) return s.empty();
  if (s == "Z") return true;
  return take(s, "+-") && take_digits(s, 2) && take(s, ":") && take_digits(s, 2) && s.empty();
}

std::string double_quoted(std::string_view s) {
  // JSON's escapes are YAML's, and JSON text is a YAML scalar but for what it need not escape.
  const std::string text = json::serialize(json::value(json::string(s)));
  std::string out;
  for (std::string_view rest = text; !rest.empty();) {
    const Special found = special(rest);
    out += found.bytes > 0 ? std::string_view(found.escape) : rest.substr(0, 1);
    rest.remove_prefix(std::max<std::size_t>(found.bytes, 1));
  }
  return out;
}

std::string single_quoted(std::string_view s) {
  std::string out = "'";
  for (const char c : s) {
    out += c;
    if (c == '\'') out += c;
  }
  return out + "'";
}

std::string flow_scalar(std::string_view s) {
  if (s.empty()) return R"("")";
  if (!printable(s) || s.find('\n') != s.npos) return double_quoted(s);
  if (!resolve_plain(s).is_string() || timestamp(s)) return double_quoted(s);
  return plain(s) ? std::string(s) : single_quoted(s);
}

void indent_to(std::string& out, std::size_t indent) { out.append(indent, ' '); }

// A literal block after "key:" or "-"; `indent` is that of its lines.
void write_literal(std::string& out, std::string_view s, std::size_t indent) {
  out += '|';
  if (s.front() == ' ' || s.front() == '\n') out += '2';
  if (!s.ends_with('\n')) {
    out += '-';
  } else if (s.size() == 1 || s[s.size() - 2] == '\n') {
    out += '+';
  }
  out += '\n';
  if (s.ends_with('\n')) s.remove_suffix(1);
  while (true) {
    const std::size_t end = s.find('\n');
    const std::string_view line = s.substr(0, end);
    if (!line.empty()) {
      indent_to(out, indent);
      out += line;
    }
    out += '\n';
    if (end == s.npos) return;
    s.remove_prefix(end + 1);
  }
}

bool literal(const json::value& v) {
  if (!v.is_string()) return false;
  const std::string_view s = json::view(v.get_string());
  return s.find('\n') != s.npos && printable(s) && s.find_first_not_of('\n') != s.npos;
}

bool block(const json::value& v) {
  return (v.is_object() && !v.get_object().empty()) || (v.is_array() && !v.get_array().empty());
}

void write_block(std::string& out, const json::value& v, std::size_t indent, bool mid_line);

// What fits on the line of its key.
void write_inline(std::string& out, const json::value& v, std::size_t indent) {
  if (literal(v)) {
    write_literal(out, json::view(v.get_string()), indent);
    return;
  }
  if (v.is_string()) {
    out += flow_scalar(json::view(v.get_string()));
  } else if (v.is_double()) {
    out += fmt::format("{}", v.get_double());
  } else {
    out += json::serialize(v);
  }
  out += '\n';
}

void write_member(std::string& out, std::string_view key, const json::value& v,
                  std::size_t indent) {
  // Longer keys must be announced; YAML's own bound is 1024, but the writers of others stop here.
  constexpr std::size_t kSimpleKey = 128;
  const bool announced = key.size() > kSimpleKey;
  if (announced) out += "? ";
  out += flow_scalar(key);
  if (announced) {
    out += '\n';
    indent_to(out, indent);
  }
  out += ':';
  if (announced && block(v)) {
    out += ' ';
    write_block(out, v, indent + 2, true);
  } else if (block(v)) {
    out += '\n';
    // A list stands at the indent of its key.
    write_block(out, v, v.is_array() ? indent : indent + 2, false);
  } else {
    out += ' ';
    write_inline(out, v, indent + 2);
  }
}

// `mid_line`: the first line follows a "- " already written.
void write_block(std::string& out, const json::value& v, std::size_t indent, bool mid_line) {
  const auto start_line = [&] {
    if (!mid_line) indent_to(out, indent);
    mid_line = false;
  };
  if (const json::object* o = v.if_object()) {
    for (const auto& [key, member] : *o) {
      start_line();
      write_member(out, key, member, indent);
    }
    return;
  }
  for (const json::value& item : v.get_array()) {
    start_line();
    out += "- ";
    if (block(item)) {
      write_block(out, item, indent + 2, true);
    } else {
      write_inline(out, item, indent + 2);
    }
  }
}

}  // namespace

std::string serialize(const json::value& v) {
  std::string out;
  if (block(v)) {
    write_block(out, v, 0, false);
  } else {
    write_inline(out, v, 2);
  }
  return out;
}

}  // namespace skiff::yaml
