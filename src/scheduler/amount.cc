#include "scheduler/amount.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/quantity.h"

namespace skiff::scheduler {

std::int64_t milli_of(const json::value& quantity) {
  const auto parsed = Quantity::from_json(quantity);
  return parsed ? parsed->milli() : 0;
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
