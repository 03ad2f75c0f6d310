#include "schema/field_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/strings.h"

namespace skiff::schema {
namespace {

int rank(const json::value& v) {
  if (v.is_number()) return 0;
  if (v.is_string()) return 1;
  if (v.is_bool()) return 2;
  return v.is_null() ? 3 : 4;
}

std::strong_ordering order(double a, double b) {
  return a < b   ? std::strong_ordering::less
         : a > b ? std::strong_ordering::greater
                 : std::strong_ordering::equal;
}

// JSON as Go's encoder writes it, which keeps text safe inside HTML.
std::string go_json(const json::value& v) {
  if (v.is_double()) return fmt::format("{}", v.get_double());
  const std::string plain = json::serialize(v);
  if (plain.find_first_of("<>&") == std::string::npos) return plain;
  std::string out;
  for (const char c : plain) {
    if (c == '<' || c == '>' || c == '&') {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out;
}

std::string go_scalar(const json::value& v) {
  return v.is_double() ? fmt::format("{}", v.get_double()) : json::serialize(v);
}

Result<PathElement> parse_keys(std::string_view text) {
  SKIFF_ASSIGN(const json::value parsed, json::parse(text));
  if (!parsed.is_object()) return fail(Code::kBadRequest, "the keys of an item must be an object");
  std::vector<std::pair<std::string, json::value>> keys;
  for (const auto& [name, value] : parsed.get_object()) keys.emplace_back(std::string(name), value);
  return PathElement::key(std::move(keys));
}

}  // namespace

std::strong_ordering compare_scalars(const json::value& a, const json::value& b) {
  const int left = rank(a), right = rank(b);
  if (left != right) return left <=> right;
  switch (left) {
    case 0:
      if (a.is_int64() && b.is_int64()) return a.get_int64() <=> b.get_int64();
      return order(a.to_number<double>(), b.to_number<double>());
    case 1:
      return json::view(a.get_string()) <=> json::view(b.get_string());
    case 2:
      return a.get_bool() <=> b.get_bool();
    case 3:
      return std::strong_ordering::equal;
    default:
      return a == b ? std::strong_ordering::equal : json::serialize(a) <=> json::serialize(b);
  }
}

PathElement PathElement::field(std::string_view name) {
  PathElement out;
  out.name_ = name;
  return out;
}

PathElement PathElement::key(std::vector<std::pair<std::string, json::value>> keys) {
  std::ranges::sort(keys, {}, &std::pair<std::string, json::value>::first);
  PathElement out;
  out.kind_ = Kind::kKey;
  json::array& flat = out.value_.emplace_array();
  flat.reserve(keys.size() * 2);
  for (auto& [name, value] : keys) {
    flat.emplace_back(name);
    flat.emplace_back(std::move(value));
  }
  return out;
}

PathElement PathElement::value(json::value value) {
  PathElement out;
  out.kind_ = Kind::kValue;
  out.value_ = std::move(value);
  return out;
}

PathElement PathElement::index(std::int64_t at) {
  PathElement out;
  out.kind_ = Kind::kIndex;
  out.value_ = at;
  return out;
}

Result<PathElement> PathElement::parse(std::string_view text) {
  if (text.size() < 2) return fail(Code::kBadRequest, "key must be 2 characters long:");
  if (text[1] != ':') return fail(Code::kBadRequest, fmt::format("missing colon: {}", text));
  const std::string_view rest = text.substr(2);
  switch (text[0]) {
    case 'f':
      return field(rest);
    case 'k':
      return parse_keys(rest);
    case 'v': {
      SKIFF_ASSIGN(json::value parsed, json::parse(rest));
      return value(std::move(parsed));
    }
    case 'i': {
      std::int64_t at = 0;
      const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), at);
      if (error != std::errc{} || end != rest.data() + rest.size()) {
        return fail(Code::kBadRequest, fmt::format("\"{}\" is not an index", rest));
      }
      return index(at);
    }
    default:
      return fail(Code::kNotFound, "unknown path element type");
  }
}

std::string PathElement::encoded() const {
  switch (kind_) {
    case Kind::kField:
      return "f:" + name_;
    case Kind::kKey: {
      std::string out = "k:{";
      const json::array& flat = value_.get_array();
      for (std::size_t i = 0; i + 1 < flat.size(); i += 2) {
        if (i > 0) out += ',';
        out += json::serialize(flat[i]) + ":" + go_json(flat[i + 1]);
      }
      return out + "}";
    }
    case Kind::kValue:
      return "v:" + go_json(value_);
    case Kind::kIndex:
      return "i:" + go_json(value_);
  }
  return {};
}

std::string PathElement::text() const {
  switch (kind_) {
    case Kind::kField:
      return "." + name_;
    case Kind::kKey: {
      std::string out = "[";
      const json::array& flat = value_.get_array();
      for (std::size_t i = 0; i + 1 < flat.size(); i += 2) {
        if (i > 0) out += ',';
        out += json::get_string(flat[i], {});
        out += "=" + go_scalar(flat[i + 1]);
      }
      return out + "]";
    }
    case Kind::kValue:
      return "[=" + go_scalar(value_) + "]";
    case Kind::kIndex:
      return "[" + json::serialize(value_) + "]";
  }
  return {};
}

std::strong_ordering PathElement::operator<=>(const PathElement& other) const {
  if (kind_ != other.kind_) return kind_ <=> other.kind_;
  if (kind_ == Kind::kField) return name_ <=> other.name_;
  if (kind_ != Kind::kKey) return compare_scalars(value_, other.value_);
  const json::array& left = value_.get_array();
  const json::array& right = other.value_.get_array();
  for (std::size_t i = 0; i < left.size() && i < right.size(); ++i) {
    if (const auto c = compare_scalars(left[i], right[i]); c != 0) return c;
  }
  return left.size() <=> right.size();
}

}  // namespace skiff::schema
