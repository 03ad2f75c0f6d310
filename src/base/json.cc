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
  boost::json::value_stack stack_;
};

}  // namespace

Result<value> parse(std::string_view text) {
  boost::system::error_code error;
  boost::json::parse_options options;
  options.max_depth = limits::kJsonDepth;
  boost::json::basic_parser<Builder> parser(options);
  const std::size_t used = parser.write_some(false, text.data(), text.size(), error);
  if (!error && used < text.size()) error = boost::json::error::extra_data;
  if (error) {
    return fail(Code::kBadRequest,
                fmt::format("invalid JSON at byte {}: {}", used, error.message()));
  }
  return parser.handler().release();
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
