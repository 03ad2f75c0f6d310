#include "features/training/engine/index_set.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "base/limits.h"
#include "base/strings.h"

namespace skiff::training {
namespace {

std::optional<std::int64_t> read_index(std::string_view text) {
  std::int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  if (n < 0 || n >= static_cast<std::int64_t>(limits::kReplicasPerJob)) return {};
  return n;
}

}  // namespace

IndexSet IndexSet::parse(std::string_view text) {
  IndexSet set;
  for (const std::string_view piece : split(text, ',')) {
    const std::size_t dash = piece.find('-');
    const std::optional<std::int64_t> first = read_index(piece.substr(0, dash));
    const std::optional<std::int64_t> last =
        dash == std::string_view::npos ? first : read_index(piece.substr(dash + 1));
    if (!first || !last) continue;
    for (std::int64_t i = *first; i <= *last; ++i) set.insert(i);
  }
  return set;
}

std::string IndexSet::text() const {
  std::string out;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (!members_[i]) continue;
    const std::size_t first = i;
    while (i + 1 < members_.size() && members_[i + 1]) ++i;
    if (!out.empty()) out += ',';
    out += first == i ? fmt::format("{}", i) : fmt::format("{}-{}", first, i);
  }
  return out;
}

bool IndexSet::contains(std::int64_t index) const {
  return index >= 0 && static_cast<std::size_t>(index) < members_.size() &&
         members_[static_cast<std::size_t>(index)];
}

void IndexSet::insert(std::int64_t index) {
  if (index < 0 || contains(index)) return;
  const std::size_t at = static_cast<std::size_t>(index);
  if (members_.size() <= at) members_.resize(at + 1);
  members_[at] = true;
  ++size_;
}

void IndexSet::erase(std::int64_t index) {
  if (!contains(index)) return;
  members_[static_cast<std::size_t>(index)] = false;
  --size_;
}

void IndexSet::truncate(std::int64_t bound) {
  for (std::int64_t i = bound; i < static_cast<std::int64_t>(members_.size()); ++i) erase(i);
}

}  // namespace skiff::training
