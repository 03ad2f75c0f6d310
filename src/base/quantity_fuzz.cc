// Quantities: the text of one is the same quantity, and sums never overflow.
#include <limits>

#include "base/fuzz.h"
#include "base/json.h"
#include "base/quantity.h"

SKIFF_FUZZ(text) {
  using namespace skiff;
  const auto a = Quantity::parse(next_part(text));
  if (!a) return;
  const auto again = Quantity::parse(a->text());
  SKIFF_CHECK(again.has_value(), "its text is a quantity: " + a->text());
  SKIFF_CHECK(*again == *a, "the same one: " + a->text());
  // A binary one that no power of 1024 divides becomes decimal; from then on the text stays.
  SKIFF_CHECK(Quantity::parse(again->text())->text() == again->text(), "of one form");
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max() / 1000;
  if (a->value() > -kMost && a->value() < kMost) {
    SKIFF_CHECK(a->value() >= a->milli() / 1000, "whole units are rounded up");
  }
  if (const auto b = Quantity::parse(text)) {
    (void)(*a + *b).text();
    (void)(*a - *b).text();
    (void)((*a + *b) + (*a + *b)).milli();
    SKIFF_CHECK(*a + *b == *b + *a, "sums have no order");
  }
}
