#include "apiserver/access/change_feed.h"

namespace skiff::apiserver {
namespace {

constexpr std::size_t kChangesAtOnce = 4096;

}  // namespace

ChangeFeed::Changes ChangeFeed::take() {
  Changes out;
  while (seen_ != 0) {
    const auto events = store_.events(resource_, seen_, store::Horizon::kCommitted, kChangesAtOnce);
    if (!events) break;
    if (events->empty()) return out;
    for (const store::Event& event : *events) {
      seen_ = event.entry->revision();
      out.keys.push_back(event.entry->key());
    }
  }
  const store::Listing listing = store_.list(resource_);
  seen_ = listing.revision;
  out.anew = true;
  for (const store::EntryPtr& entry : listing.entries) out.keys.push_back(entry->key());
  return out;
}

}  // namespace skiff::apiserver
