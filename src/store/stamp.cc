#include "store/stamp.h"

#include <fmt/format.h>

#include "base/check.h"

namespace skiff::store {
namespace {

// Where `needle` is in `text`, if it is there exactly once.
std::optional<std::size_t> only(std::string_view text, std::string_view needle) {
  const std::size_t at = text.find(needle);
  if (at == std::string_view::npos) return {};
  if (text.find(needle, at + 1) != std::string_view::npos) return {};
  return at;
}

}  // namespace

Draft::Draft(json::value value) : value_(std::make_shared<json::value>(std::move(value))) {
  SKIFF_CHECK(value_->is_object(), "only JSON objects are stored");
  json::value& revision = json::make_object(*value_, {"metadata"})["resourceVersion"];
  // Whatever mark we choose, an object may hold the same text elsewhere; then we choose another.
  for (std::uint64_t n = 0;; ++n) {
    const std::string mark = fmt::format("<the revision, mark {}>", n);
    revision = mark;
    bytes_ = json::serialize(*value_);
    if (const auto at = only(bytes_, mark)) {
      mark_at_ = *at;
      mark_size_ = mark.size();
      break;
    }
  }
  // These bytes live as long as the object; what growing them left over would live as long.
  bytes_.shrink_to_fit();
  revision_ = &revision.get_string();
}

void Draft::stamp(Revision revision) {
  const fmt::format_int digits(revision);
  bytes_.replace(mark_at_, mark_size_, digits.data(), digits.size());
  revision_->assign(digits.data(), digits.size());
}

std::string bytes_at(const Entry& entry, Revision revision) {
  const std::string old = fmt::format("\"resourceVersion\":\"{}\"", entry.revision());
  std::string bytes = entry.text().str();
  if (const auto at = only(bytes, old)) {
    bytes.replace(*at, old.size(), fmt::format("\"resourceVersion\":\"{}\"", revision));
    return bytes;
  }
  // The object holds the same member twice, perhaps a copy of itself: parse to know which is which.
  Draft draft(json::value(*entry.value()));
  draft.stamp(revision);
  return draft.take_bytes();
}

}  // namespace skiff::store
