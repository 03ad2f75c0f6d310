#include "base/json.h"

#include <fmt/format.h>

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_stack.hpp>
#include <charconv>
#include <cmath>

#include "base/limits.h"

namespace skiff::json {
namespace {

void write_pretty(std::string& out, const value& v, std::size_t indent) {
  const std::string pad(indent + 2, ' ');
  if (const object* o = v.if_object(); o != nullptr && !o->empty()) {
    out += "{\n";
    bool first = true;
    for (const auto& [key, member] : *o) {
      if (!first) out += ",\n";
      first = false;
      out += pad;
      out += boost::json::serialize(value(string(key)));
      out += ": ";
      write_pretty(out, member, indent + 2);
    }
    out += '\n' + std::string(indent, ' ') + '}';
  } else if (const array* a = v.if_array(); a != nullptr && !a->empty()) {
    out += "[\n";
    bool first = true;
    for (const value& item : *a) {
      if (!first) out += ",\n";
      first = false;
      out += pad;
      write_pretty(out, item, indent + 2);
    }
    out += '\n' + std::string(indent, ' ') + ']';
  } else {
    out += boost::json::serialize(v);
  }
}

// Builds the value as Boost's own parser does, but for doubles: Boost 1.81 is off by one in the
// last place of some, so that a value would drift each time it is written and read.
template <class Stack>
class Builder {
 public:
  constexpr static std::size_t max_object_size = object::max_size();
  constexpr static std::size_t max_array_size = array::max_size();
  constexpr static std::size_t max_key_size = string::max_size();
  constexpr static std::size_t max_string_size = string::max_size();
  using Text = boost::json::string_view;
  using Failure = boost::system::error_code;

  Builder() { stack_.reset(); }
  value release() { return stack_.release(); }

  bool on_document_begin(Failure&) { return true; }
  bool on_document_end(Failure&) { return true; }
  bool on_object_begin(Failure&) { return true; }
  bool on_object_end(std::size_t size, Failure&) { return stack_.push_object(size), true; }
  bool on_array_begin(Failure&) { return true; }
  bool on_array_end(std::size_t size, Failure&) { return stack_.push_array(size), true; }
  bool on_key_part(Text part, std::size_t, Failure&) { return stack_.push_chars(part), true; }
  bool on_key(Text last, std::size_t, Failure&) { return stack_.push_key(last), true; }
  bool on_string_part(Text part, std::size_t, Failure&) { return stack_.push_chars(part), true; }
  bool on_string(Text last, std::size_t, Failure&) { return stack_.push_string(last), true; }
  bool on_number_part(Text, Failure&) { return true; }
  bool on_int64(std::int64_t i, Text, Failure&) { return stack_.push_int64(i), true; }
  bool on_uint64(std::uint64_t u, Text, Failure&) { return stack_.push_uint64(u), true; }
  bool on_double(double near, Text text, Failure& failure) {
    double exact = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), exact);
    // Too small is zero, as elsewhere; too large is nothing that JSON could say again.
    if (error == std::errc::result_out_of_range && std::abs(near) > 1) {
      failure = boost::json::error::exponent_overflow;
      return false;
    }
    stack_.push_double(exact);
    return true;
  }
  bool on_bool(bool b, Failure&) { return stack_.push_bool(b), true; }
  bool on_null(Failure&) { return stack_.push_null(), true; }
  bool on_comment_part(Text, Failure&) { return true; }
  bool on_comment(Text, Failure&) { return true; }

 private:
  Stack stack_;
};

// Puts a member into an object that may have one of that name.
void join(object& to, std::string_view key, value member) {
  value* known = to.if_contains(key);
  if (known == nullptr) {
    to.emplace(key, std::move(member));
  } else if (known->is_object() && member.is_object()) {
    for (auto& inner : member.get_object()) {
      join(known->get_object(), inner.key(), std::move(inner.value()));
    }
  } else {
    *known = std::move(member);
  }
}

// A stack as Boost's, for whoever has to see every member of an object.
class JoiningStack {
 public:
  void reset() {}
  value release() { return std::move(values_.back()); }
  void push_chars(boost::json::string_view part) { text_.append(part.data(), part.size()); }
  void push_key(boost::json::string_view last) { values_.emplace_back(taken(last)); }
  void push_string(boost::json::string_view last) { values_.emplace_back(taken(last)); }
  void push_int64(std::int64_t i) { values_.emplace_back(i); }
  void push_uint64(std::uint64_t u) { values_.emplace_back(u); }
  void push_double(double d) { values_.emplace_back(d); }
  void push_bool(bool b) { values_.emplace_back(b); }
  void push_null() { values_.emplace_back(nullptr); }
  void push_array(std::size_t size) {
    array out;
    const auto first = values_.end() - static_cast<std::ptrdiff_t>(size);
    for (auto at = first; at != values_.end(); ++at) out.push_back(std::move(*at));
    values_.erase(first, values_.end());
    values_.emplace_back(std::move(out));
  }
  void push_object(std::size_t size) {
    object out;
    const auto first = values_.end() - static_cast<std::ptrdiff_t>(2 * size);
    for (auto at = first; at != values_.end(); at += 2) {
      join(out, view(at->get_string()), std::move(*(at + 1)));
    }
    values_.erase(first, values_.end());
    values_.emplace_back(std::move(out));
  }

 private:
  string taken(boost::json::string_view last) {
    text_.append(last.data(), last.size());
    string out(text_);
    text_.clear();
    return out;
  }

  std::vector<value> values_;
  std::string text_;
};

template <class Stack>
Result<value> parse_with(std::string_view text) {
  boost::system::error_code error;
  boost::json::parse_options options;
  options.max_depth = limits::kJsonDepth;
  boost::json::basic_parser<Builder<Stack>> parser(options);
  const std::size_t used = parser.write_some(false, text.data(), text.size(), error);
  if (!error && used < text.size()) error = boost::json::error::extra_data;
  if (error) {
    return fail(Code::kBadRequest,
                fmt::format("invalid JSON at byte {}: {}", used, error.message()));
  }
  return parser.handler().release();
}

// How many bytes of UTF-8 begin the text; 0 where they are none.
std::size_t utf8_bytes(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t size = first < 0x80   ? 1
                           : first < 0xC2 ? 0
                           : first < 0xE0 ? 2
                           : first < 0xF0 ? 3
                           : first < 0xF5 ? 4
                                          : 0;
  if (size < 2) return size;
  if (text.size() < size) return 0;
  const auto second = static_cast<unsigned char>(text[1]);
  // Not the shortest form, a surrogate, or beyond the last character.
  if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
      (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F)) {
    return 0;
  }
  for (const char c : text.substr(1, size - 1)) {
    if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) return 0;
  }
  return size;
}

// The number behind \u, or nothing.
std::optional<unsigned> unit(std::string_view text) {
  if (text.size() < 6 || !text.starts_with("\\u")) return std::nullopt;
  unsigned out = 0;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + 6, out, 16);
  if (error != std::errc{} || end != text.data() + 6) return std::nullopt;
  return out;
}

}  // namespace

Result<value> parse(std::string_view text) { return parse_with<boost::json::value_stack>(text); }
Result<value> parse_joining(std::string_view text) { return parse_with<JoiningStack>(text); }

std::string with_replacements(std::string_view text) {
  constexpr std::string_view kEscape = "\\ufffd";
  const auto leads = [](unsigned u) { return u >= 0xD800 && u < 0xDC00; };
  const auto trails = [](unsigned u) { return u >= 0xDC00 && u < 0xE000; };
  std::string out;
  while (!text.empty()) {
    std::size_t taken = utf8_bytes(text);
    const auto first = unit(text);
    if (taken == 0) {
      out += kEscape;
      taken = 1;
    } else if (first && leads(*first)) {
      const bool pair = trails(unit(text.substr(6)).value_or(0));
      taken = pair ? 12 : 6;
      out += pair ? text.substr(0, taken) : kEscape;
    } else if (first) {
      taken = 6;
      out += trails(*first) ? kEscape : text.substr(0, taken);
    } else {
      if (text.front() == '\\' && text.size() > 1) taken = 2;
      out += text.substr(0, taken);
    }
    text.remove_prefix(taken);
  }
  return out;
}

std::string serialize(const value& v) { return boost::json::serialize(v); }
std::string serialize(const object& v) { return boost::json::serialize(v); }

std::string pretty(const value& v) {
  std::string out;
  write_pretty(out, v, 0);
  return out;
}

const value* find(const object& v, std::initializer_list<std::string_view> path) {
  const object* at = &v;
  const value* found = nullptr;
  for (std::string_view key : path) {
    if (at == nullptr) return nullptr;
    found = at->if_contains(key);
    if (found == nullptr) return nullptr;
    at = found->if_object();
  }
  return found;
}

const value* find(const value& v, std::initializer_list<std::string_view> path) {
  if (path.size() == 0) return &v;
  const object* o = v.if_object();
  return o == nullptr ? nullptr : find(*o, path);
}

std::string_view get_string(const value& v, std::initializer_list<std::string_view> path,
                            std::string_view fallback) {
  const value* found = find(v, path);
  if (found == nullptr || !found->is_string()) return fallback;
  return view(found->get_string());
}

std::optional<std::int64_t> get_int(const value& v, std::initializer_list<std::string_view> path) {
  const value* found = find(v, path);
  if (found == nullptr) return {};
  if (found->is_int64()) return found->get_int64();
  if (found->is_uint64() && found->get_uint64() <= INT64_MAX) {
    return static_cast<std::int64_t>(found->get_uint64());
  }
  return {};
}

std::optional<bool> get_bool(const value& v, std::initializer_list<std::string_view> path) {
  const value* found = find(v, path);
  if (found == nullptr || !found->is_bool()) return {};
  return found->get_bool();
}

const array& get_array(const value& v, std::initializer_list<std::string_view> path) {
  static const array kEmpty;
  const value* found = find(v, path);
  return found == nullptr || !found->is_array() ? kEmpty : found->get_array();
}

const object& get_object(const value& v, std::initializer_list<std::string_view> path) {
  static const object kEmpty;
  const value* found = find(v, path);
  return found == nullptr || !found->is_object() ? kEmpty : found->get_object();
}

object& make_object(object& v, std::initializer_list<std::string_view> path) {
  object* at = &v;
  for (std::string_view key : path) {
    value& next = (*at)[key];
    if (!next.is_object()) next.emplace_object();
    at = &next.get_object();
  }
  return *at;
}

object& make_object(value& v, std::initializer_list<std::string_view> path) {
  if (!v.is_object()) v.emplace_object();
  return make_object(v.get_object(), path);
}

void set(value& v, std::initializer_list<std::string_view> path, value leaf) {
  if (!v.is_object()) v.emplace_object();
  object* at = &v.get_object();
  const std::string_view* last = path.end() - 1;
  for (const std::string_view* key = path.begin(); key != last; ++key) {
    value& next = (*at)[*key];
    if (!next.is_object()) next.emplace_object();
    at = &next.get_object();
  }
  (*at)[*last] = std::move(leaf);
}

std::vector<std::string> strings(const array& a) {
  std::vector<std::string> out;
  out.reserve(a.size());
  for (const value& v : a) {
    if (v.is_string()) out.emplace_back(view(v.get_string()));
  }
  return out;
}

std::string_view type_name(const value& v) {
  switch (v.kind()) {
    case boost::json::kind::null:
      return "null";
    case boost::json::kind::bool_:
      return "boolean";
    case boost::json::kind::int64:
    case boost::json::kind::uint64:
      return "integer";
    case boost::json::kind::double_:
      return "number";
    case boost::json::kind::string:
      return "string";
    case boost::json::kind::array:
      return "array";
    case boost::json::kind::object:
      return "object";
  }
  return "null";
}

}  // namespace skiff::json
