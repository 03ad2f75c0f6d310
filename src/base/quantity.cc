#include "base/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace skiff {
namespace {

__extension__ using Wide = __int128;

constexpr std::int64_t kNano = 1'000'000'000;
constexpr Wide kMaxNanos = Wide{INT64_MAX} * kNano;
// Fractions are read to 18 digits; what is beyond can only matter to rounding up.
constexpr int kFractionDigits = 18;

struct Suffix {
  std::string_view text;
  int exponent;  // of ten, or of two for the binary ones
};
constexpr std::array kDecimalSuffixes{
    Suffix{"E", 18}, Suffix{"P", 15}, Suffix{"T", 12}, Suffix{"G", 9},  Suffix{"M", 6},
    Suffix{"k", 3},  Suffix{"", 0},   Suffix{"m", -3}, Suffix{"u", -6}, Suffix{"n", -9}};
constexpr std::array kBinarySuffixes{Suffix{"Ei", 60}, Suffix{"Pi", 50}, Suffix{"Ti", 40},
                                     Suffix{"Gi", 30}, Suffix{"Mi", 20}, Suffix{"Ki", 10}};

constexpr Wide power10(int exponent) {
  Wide out = 1;
  for (; exponent > 0; --exponent) out *= 10;
  return out;
}

Wide divide_up(Wide a, Wide b) { return a / b + (a % b != 0 ? 1 : 0); }

struct Scale {
  Quantity::Format format = Quantity::Format::kDecimal;
  int exponent = 0;
};

std::optional<Scale> read_suffix(std::string_view text) {
  for (const Suffix& s : kDecimalSuffixes) {
    if (s.text == text) return Scale{Quantity::Format::kDecimal, s.exponent};
  }
  for (const Suffix& s : kBinarySuffixes) {
    if (s.text == text) return Scale{Quantity::Format::kBinary, s.exponent};
  }
  if (text.size() < 2 || (text[0] != 'e' && text[0] != 'E')) return std::nullopt;
  text.remove_prefix(1);
  const bool plus = text[0] == '+';
  if (plus) text.remove_prefix(1);
  if (text.empty() || (plus && text[0] == '-')) return std::nullopt;
  int exponent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), exponent);
  if (error == std::errc::result_out_of_range) exponent = text[0] == '-' ? -1000 : 1000;
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) return std::nullopt;
  return Scale{Quantity::Format::kExponent, exponent};
}

// whole + fraction * 10^-18, times the scale, in nanos and rounded up.
Wide scaled(Wide whole, Wide fraction, bool more, Scale scale) {
  if (whole == 0 && fraction == 0 && !more) return 0;
  if (scale.format != Quantity::Format::kBinary && scale.exponent < 0) {
    const int places = 9 + scale.exponent;
    if (places < 0) {
      const Wide unit = power10(std::min(-places, 37));
      const bool rest = whole % unit != 0 || fraction != 0 || more;
      return std::min(whole / unit + (rest ? 1 : 0), kMaxNanos);
    }
    const Wide parts = fraction * power10(places) + (more ? 1 : 0);
    const Wide low = divide_up(parts, power10(kFractionDigits));
    return std::min(whole * power10(places) + low, kMaxNanos);
  }
  if (scale.format != Quantity::Format::kBinary && scale.exponent > 18) return kMaxNanos;
  const Wide factor = scale.format == Quantity::Format::kBinary ? Wide{1} << scale.exponent
                                                                : power10(scale.exponent);
  if (whole > INT64_MAX / factor) return kMaxNanos;
  const Wide low = divide_up(fraction * factor + (more ? 1 : 0), kNano);
  return std::min(whole * factor * kNano + low, kMaxNanos);
}

std::string digits_of(Wide v) {
  const bool negative = v < 0;
  std::string out;
  // Only quotients of kMaxNanos come here, so the negation cannot overflow.
  for (v = negative ? -v : v; v > 0 || out.empty(); v /= 10) {
    out += static_cast<char>('0' + static_cast<int>(v % 10));
  }
  if (negative) out += '-';
  std::ranges::reverse(out);
  return out;
}

}  // namespace

Result<Quantity> Quantity::parse(std::string_view text) {
  const auto bad = [&] {
    return fail(Code::kInvalid,
                "quantities must match the regular expression "
                "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
  };
  std::string_view rest = text;
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  Wide whole = 0, fraction = 0;
  bool more = false;
  std::size_t i = 0, digits = 0;
  for (; i < rest.size() && rest[i] >= '0' && rest[i] <= '9'; ++i, ++digits) {
    // As many nanos are the most there can be; more digits say no more.
    whole = std::min(whole * 10 + (rest[i] - '0'), kMaxNanos);
  }
  if (i < rest.size() && rest[i] == '.') {
    int places = 0;
    for (++i; i < rest.size() && rest[i] >= '0' && rest[i] <= '9'; ++i, ++digits) {
      if (places < kFractionDigits) {
        fraction = fraction * 10 + (rest[i] - '0');
        ++places;
      } else {
        more = more || rest[i] != '0';
      }
    }
    fraction *= power10(kFractionDigits - places);
  }
  if (digits == 0) return bad();
  const std::optional<Scale> scale = read_suffix(rest.substr(i));
  if (!scale) {
    constexpr std::string_view kLetters = "eEinumkKMGTP+-0123456789";
    if (rest.substr(i).find_first_not_of(kLetters) != std::string_view::npos) return bad();
    return fail(Code::kInvalid, "unable to parse quantity's suffix");
  }
  Quantity out;
  out.nanos_ = scaled(whole, fraction, more, *scale);
  if (negative) out.nanos_ = -out.nanos_;
  out.format_ = scale->format;
  return out;
}

Result<Quantity> Quantity::from_json(const json::value& v) {
  if (v.is_string()) return parse(json::view(v.get_string()));
  if (v.is_int64()) return of(v.get_int64());
  if (v.is_uint64()) return of(INT64_MAX);
  if (v.is_double()) return parse(fmt::format("{}", v.get_double()));
  return fail(Code::kInvalid, "a quantity must be a string or a number");
}

Quantity Quantity::of(std::int64_t value, Format format) {
  Quantity out;
  out.nanos_ = std::clamp(Wide{value} * kNano, -kMaxNanos, kMaxNanos);
  out.format_ = format;
  return out;
}

Quantity Quantity::of_milli(std::int64_t milli) {
  Quantity out;
  out.nanos_ = Wide{milli} * (kNano / 1000);
  return out;
}

std::int64_t Quantity::rounded_up(std::int64_t nanos_per_unit) const {
  const Wide units = nanos_ >= 0 ? divide_up(nanos_, nanos_per_unit) : nanos_ / nanos_per_unit;
  return static_cast<std::int64_t>(std::clamp(units, Wide{INT64_MIN}, Wide{INT64_MAX}));
}

std::int64_t Quantity::value() const { return rounded_up(kNano); }
std::int64_t Quantity::milli() const { return rounded_up(kNano / 1000); }

bool Quantity::whole() const { return nanos_ % kNano == 0; }

Quantity Quantity::in_milli() const {
  constexpr std::int64_t kMilli = kNano / 1000;
  Quantity out = *this;
  // Away from zero: who asks for something gets something.
  if (nanos_ % kMilli != 0) out.nanos_ = (nanos_ / kMilli + (nanos_ > 0 ? 1 : -1)) * kMilli;
  return out;
}

std::string Quantity::text() const {
  if (nanos_ == 0) return "0";
  const Wide size = nanos_ < 0 ? -nanos_ : nanos_;
  // Below 1Ki, or with a fraction, the binary suffixes have nothing to say.
  if (format_ == Format::kBinary && size >= Wide{1024} * kNano && size % kNano == 0) {
    for (const Suffix& s : kBinarySuffixes) {
      const Wide unit = (Wide{1} << s.exponent) * kNano;
      if (size % unit == 0) return digits_of(nanos_ / unit) + std::string(s.text);
    }
    return digits_of(nanos_ / kNano);
  }
  for (const Suffix& s : kDecimalSuffixes) {
    const Wide unit = power10(s.exponent + 9);
    if (size % unit != 0) continue;
    std::string out = digits_of(nanos_ / unit);
    if (format_ == Format::kExponent) {
      return s.exponent == 0 ? out : fmt::format("{}e{}", out, s.exponent);
    }
    return out + std::string(s.text);
  }
  return digits_of(nanos_) + "n";
}

Quantity& Quantity::operator+=(const Quantity& other) {
  if (nanos_ == 0) format_ = other.format_;
  nanos_ = std::clamp(nanos_ + other.nanos_, -kMaxNanos, kMaxNanos);
  return *this;
}

Quantity& Quantity::operator-=(const Quantity& other) {
  if (nanos_ == 0) format_ = other.format_;
  nanos_ = std::clamp(nanos_ - other.nanos_, -kMaxNanos, kMaxNanos);
  return *this;
}

}  // namespace skiff
