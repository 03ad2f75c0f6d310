// What a plain scalar stands for.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/yaml.h"

namespace skiff::yaml {
namespace {

bool one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

std::optional<json::value> integer(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    base = 8;
    text.remove_prefix(1);
    const char mark = static_cast<char>(text[0] | 0x20);
    if (mark == 'x' || mark == 'b' || mark == 'o') {
      base = mark == 'x' ? 16 : mark == 'b' ? 2 : 8;
      text.remove_prefix(1);
    }
  }
  if (text.empty() || text[0] == '-' || text[0] == '+') return std::nullopt;
  std::uint64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (!negative) {
    if (n <= INT64_MAX) return json::value(static_cast<std::int64_t>(n));
    return json::value(n);
  }
  constexpr std::uint64_t kLowest = std::uint64_t{1} << 63;
  if (n > kLowest) return std::nullopt;
  return json::value(static_cast<std::int64_t>(~n + 1));
}

// [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?
bool float_shaped(std::string_view t) {
  const auto digits = [&] {
    std::size_t n = 0;
    while (n < t.size() && t[n] >= '0' && t[n] <= '9') ++n;
    t.remove_prefix(n);
    return n;
  };
  const auto sign = [&] {
    if (!t.empty() && (t[0] == '-' || t[0] == '+')) t.remove_prefix(1);
  };
  sign();
  std::size_t mantissa = digits();
  if (t.starts_with('.')) {
    t.remove_prefix(1);
    mantissa += digits();
  }
  if (mantissa == 0) return false;
  if (t.starts_with('e') || t.starts_with('E')) {
    t.remove_prefix(1);
    sign();
    if (digits() == 0) return false;
  }
  return t.empty();
}

std::optional<json::value> floating(std::string_view text) {
  if (!float_shaped(text)) return std::nullopt;
  if (text.starts_with('+')) text.remove_prefix(1);
  double d = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), d);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(d)) {
    return std::nullopt;
  }
  // 1e3 is the integer 1000 to everybody who reads the JSON.
  constexpr double kExact = 9007199254740992.0;
  if (std::abs(d) <= kExact && d == std::trunc(d)) return json::value(static_cast<std::int64_t>(d));
  return json::value(d);
}

}  // namespace

json::value resolve_plain(std::string_view text) {
  if (one_of(text, {"", "~", "null", "Null", "NULL"})) return nullptr;
  if (one_of(text, {"true", "True", "TRUE", "y", "Y", "yes", "Yes", "YES", "on", "On", "ON"})) {
    return true;
  }
  if (one_of(text, {"false", "False", "FALSE", "n", "N", "no", "No", "NO", "off", "Off", "OFF"})) {
    return false;
  }
  const char first = text.front();
  if ((first >= '0' && first <= '9') || first == '-' || first == '+' || first == '.') {
    std::string plain(text);
    std::erase(plain, '_');
    if (auto n = integer(plain)) return *std::move(n);
    if (auto d = floating(plain)) return *std::move(d);
  }
  return json::string(text);
}

}  // namespace skiff::yaml
