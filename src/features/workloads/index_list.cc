#include "features/workloads/index_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace skiff::workloads {
namespace {

bool read(std::string_view text, std::int64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Indexes parse_indexes(std::string_view text, std::int64_t completions) {
  Indexes out;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const std::size_t dash = std::min(part.find('-'), part.size());
    std::int64_t first = 0;
    if (!read(part.substr(0, dash), first)) continue;
    std::int64_t last = first;
    if (dash < part.size() && !read(part.substr(dash + 1), last)) continue;
    for (std::int64_t i = first; i <= std::min(last, completions - 1); ++i) out.insert(i);
  }
  return out;
}

std::string indexes_text(const Indexes& indexes) {
  std::string out;
  for (auto it = indexes.begin(); it != indexes.end();) {
    const std::int64_t first = *it;
    std::int64_t last = first;
    while (++it != indexes.end() && *it == last + 1) last = *it;
    if (!out.empty()) out += ',';
    out += std::to_string(first);
    // Two neighbours are written apart, as upstream does.
    if (last == first + 1) out += fmt::format(",{}", last);
    if (last > first + 1) out += fmt::format("-{}", last);
  }
  return out;
}

}  // namespace skiff::workloads
