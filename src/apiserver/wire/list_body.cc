#include "apiserver/wire/list_body.h"

namespace skiff::apiserver {
namespace {

// Enough for a few system calls at once, little enough to stay in the processor's cache.
constexpr std::size_t kPieceBytes = 128 * 1024;

}  // namespace

ListBody::ListBody(std::string head, std::vector<store::EntryPtr> entries)
    : head_(std::move(head)), entries_(std::move(entries)) {}

bool ListBody::pull(std::string& out, std::function<void()> /*wake: there is always more*/) {
  out += std::exchange(head_, {});
  while (next_ < entries_.size() && out.size() < kPieceBytes) {
    if (next_ > 0) out += ',';
    out += entries_[next_]->text().view();
    entries_[next_++].reset();
  }
  if (next_ < entries_.size()) return true;
  out += "]}";
  return false;
}

}  // namespace skiff::apiserver
