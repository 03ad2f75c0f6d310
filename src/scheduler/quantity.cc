#include "scheduler/quantity.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

namespace skiff::scheduler {
namespace {

constexpr std::array<std::pair<std::string_view, long double>, 16> kSuffixes = {{
    {"", 1.0L},
    {"n", 1e-9L},
    {"u", 1e-6L},
    {"m", 1e-3L},
    {"k", 1e3L},
    {"M", 1e6L},
    {"G", 1e9L},
    {"T", 1e12L},
    {"P", 1e15L},
    {"E", 1e18L},
    {"Ki", 1024.0L},
    {"Mi", 1048576.0L},
    {"Gi", 1073741824.0L},
    {"Ti", 1099511627776.0L},
    {"Pi", 1125899906842624.0L},
    {"Ei", 1152921504606846976.0L},
}};

std::optional<long double> scale_of(std::string_view suffix) {
  for (const auto& [name, scale] : kSuffixes) {
    if (name == suffix) return scale;
  }
  // A decimal exponent: e3, E-2.
  if (suffix.size() < 2 || (suffix[0] != 'e' && suffix[0] != 'E')) return std::nullopt;
  const std::string_view digits = suffix.substr(suffix[1] == '+' ? 2 : 1);
  int exponent = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return std::pow(10.0L, static_cast<long double>(exponent));
}

}  // namespace

std::optional<std::int64_t> parse_milli(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  long double number = 0;
  long double place = 1;
  bool fraction = false;
  std::size_t digits = 0;
  std::size_t i = 0;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '.' && !fraction) {
      fraction = true;
      continue;
    }
    if (c < '0' || c > '9') break;
    ++digits;
    number = number * 10 + static_cast<long double>(c - '0');
    if (fraction) place *= 10;
  }
  const auto scale = scale_of(text.substr(i));
  if (digits == 0 || !scale) return std::nullopt;
  // The tolerance keeps 0.1 at 100 although no binary number is exactly a tenth.
  const long double milli = std::ceil(number / place * *scale * 1000.0L - 1e-6L);
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  const std::int64_t whole =
      milli >= static_cast<long double>(kMax) ? kMax : static_cast<std::int64_t>(milli);
  return negative ? -whole : whole;
}

std::int64_t milli_of(const json::value& quantity) {
  if (quantity.is_string()) return parse_milli(json::view(quantity.get_string())).value_or(0);
  if (quantity.is_number()) return parse_milli(json::serialize(quantity)).value_or(0);
  return 0;
}

std::string show_milli(std::string_view resource, std::int64_t milli) {
  if (resource == "memory" || resource == "ephemeral-storage" ||
      resource.starts_with("hugepages-")) {
    constexpr std::array<std::string_view, 6> kUnits = {"", "Ki", "Mi", "Gi", "Ti", "Pi"};
    double amount = static_cast<double>(milli) / 1000.0;
    std::size_t unit = 0;
    while (std::abs(amount) >= 1024.0 && unit + 1 < kUnits.size()) {
      amount /= 1024.0;
      ++unit;
    }
    return fmt::format("{:.4g}{}", amount, kUnits[unit]);
  }
  if (milli % 1000 == 0) return fmt::format("{}", milli / 1000);
  return fmt::format("{:g}", static_cast<double>(milli) / 1000.0);
}

}  // namespace skiff::scheduler
