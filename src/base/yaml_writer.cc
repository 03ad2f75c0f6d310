// YAML output in the style of `kubectl get -o yaml`.
#include <fmt/format.h>

#include "base/yaml.h"

namespace skiff::yaml {
namespace {

bool printable(std::string_view s) {
  for (const char c : s) {
    const auto u = static_cast<unsigned char>(c);
    if ((u < 0x20 && c != '\n') || u == 0x7f) return false;
  }
  // A line separator or a byte-order mark ends a plain scalar for some readers.
  return s.find("\xE2\x80\xA8") == s.npos && s.find("\xE2\x80\xA9") == s.npos &&
         s.find("\xC2\x85") == s.npos && s.find("\xEF\xBB\xBF") == s.npos;
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

std::string double_quoted(std::string_view s) {
  // JSON's escapes are YAML's, and JSON text is a YAML scalar.
  return json::serialize(json::value(json::string(s)));
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
  if (!resolve_plain(s).is_string()) return double_quoted(s);
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
  out += flow_scalar(key);
  out += ':';
  if (block(v)) {
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
