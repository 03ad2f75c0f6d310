#include "node/quantity.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

namespace skiff::node {
namespace {

// What one unit of the suffix is, in thousandths.
std::optional<long double> suffix_milli(std::string_view suffix) {
  static constexpr std::pair<std::string_view, long double> kSuffixes[] = {
      {"", 1e3L},
      {"n", 1e-6L},
      {"u", 1e-3L},
      {"m", 1.0L},
      {"k", 1e6L},
      {"M", 1e9L},
      {"G", 1e12L},
      {"T", 1e15L},
      {"P", 1e18L},
      {"E", 1e21L},
      {"Ki", 1024e3L},
      {"Mi", 1048576e3L},
      {"Gi", 1073741824e3L},
      {"Ti", 1099511627776e3L},
      {"Pi", 1125899906842624e3L},
      {"Ei", 1152921504606846976e3L},
  };
  for (const auto& [name, milli] : kSuffixes) {
    if (name == suffix) return milli;
  }
  return std::nullopt;
}

std::int64_t round_up(long double milli) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  if (milli >= static_cast<long double>(kMost)) return kMost;
  if (milli <= -static_cast<long double>(kMost)) return -kMost;
  return static_cast<std::int64_t>(std::ceil(milli));
}

}  // namespace

std::optional<std::int64_t> milli_quantity(std::string_view text) {
  const bool negative = !text.empty() && text.front() == '-';
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  if (text.empty() || (text.front() != '.' && (text.front() < '0' || text.front() > '9'))) {
    return std::nullopt;
  }
  // "2E" is two exa, "2e3" two thousand: an exponent needs digits after it.
  std::size_t end = text.find_first_not_of("0123456789.");
  if (end != std::string_view::npos && end + 1 < text.size() &&
      (text[end] == 'e' || text[end] == 'E')) {
    end = text.find_first_not_of("0123456789", end + 1 + (text[end + 1] == '-' ? 1 : 0));
  }
  const std::string_view number = text.substr(0, end);
  const std::string_view suffix = end == std::string_view::npos ? "" : text.substr(end);
  double value = 0;
  const auto [stop, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  const auto unit = suffix_milli(suffix);
  if (error != std::errc{} || stop != number.data() + number.size() || !unit) return std::nullopt;
  // The nearest double to 0.1 is a little above it: what is that close to a whole number is it.
  const long double milli = static_cast<long double>(value) * *unit;
  const long double near = std::round(milli);
  const long double exact =
      std::fabs(milli - near) < 1e-6L * std::fmax(1.0L, near * 1e-6L) ? near : milli;
  return round_up(negative ? -exact : exact);
}

std::optional<std::int64_t> milli_quantity(const json::value& quantity) {
  if (quantity.is_string()) return milli_quantity(json::view(quantity.get_string()));
  if (quantity.is_int64() || quantity.is_uint64() || quantity.is_double()) {
    return milli_quantity(json::serialize(quantity));
  }
  return std::nullopt;
}

std::optional<std::int64_t> whole_quantity(const json::value& quantity) {
  const auto milli = milli_quantity(quantity);
  if (!milli) return std::nullopt;
  return *milli / 1000 + (*milli % 1000 > 0 ? 1 : 0);
}

}  // namespace skiff::node
