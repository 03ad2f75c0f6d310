// Kubernetes quantities: 500m, 1.5, 2Gi, 1e3. Exact to a billionth; more than 2^63-1 is held at
// that, as Kubernetes holds it.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace skiff {

class Quantity {
 public:
  enum class Format { kDecimal, kBinary, kExponent };

  Quantity() = default;
  static Result<Quantity> parse(std::string_view text);
  // From JSON, where a bare number is a quantity too.
  static Result<Quantity> from_json(const json::value& v);
  static Quantity of(std::int64_t value, Format format = Format::kDecimal);
  static Quantity of_milli(std::int64_t milli);

  // Rounded up, as Kubernetes does when it counts cores or bytes.
  std::int64_t value() const;  // whole units: bytes, GPUs
  std::int64_t milli() const;  // thousandths: CPU
  Quantity in_milli() const;   // this or, with a finer fraction, the next thousandth
  // The shortest form without a fraction in the format the quantity was written in.
  std::string text() const;
  bool whole() const;  // without a fraction
  bool zero() const { return nanos_ == 0; }
  bool negative() const { return nanos_ < 0; }

  Quantity& operator+=(const Quantity& other);
  Quantity& operator-=(const Quantity& other);
  friend Quantity operator+(Quantity a, const Quantity& b) { return a += b; }
  friend Quantity operator-(Quantity a, const Quantity& b) { return a -= b; }
  friend std::strong_ordering operator<=>(const Quantity& a, const Quantity& b) {
    return a.nanos_ < b.nanos_   ? std::strong_ordering::less
           : a.nanos_ > b.nanos_ ? std::strong_ordering::greater
                                 : std::strong_ordering::equal;
  }
  friend bool operator==(const Quantity& a, const Quantity& b) { return a.nanos_ == b.nanos_; }

 private:
  __extension__ using Wide = __int128;

  std::int64_t rounded_up(std::int64_t nanos_per_unit) const;

  Wide nanos_ = 0;
  Format format_ = Format::kDecimal;
};

}  // namespace skiff
