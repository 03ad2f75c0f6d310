// How far back lists may go. A page of a list, or a list of an exact revision, shows the state of
// that revision; after five minutes and a little the server no longer promises to know it. Of a
// resource that changes much it forgets sooner: what is older than kRecent is kept as far as there
// is room for it (Store::forget_history), as the watch cache of Kubernetes does.
#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/time.h"
#include "store/store.h"

namespace skiff::apiserver {

class Compaction {
 public:
  static constexpr std::chrono::seconds kKept = std::chrono::minutes(5);
  static constexpr std::chrono::seconds kBetweenMarks = std::chrono::seconds(150);

  static constexpr std::chrono::seconds kRecent = std::chrono::seconds(75);

  // The revision there was kRecent ago or a little more; at most one answer in that time.
  std::optional<store::Revision> old_news(Duration elapsed, store::Revision revision);
  // Remembers which revision there was when; true where it is time for the next mark.
  bool due(Duration elapsed) const;
  void mark(Duration elapsed, store::Revision revision);
  // Lists of older revisions are refused.
  store::Revision oldest() const { return oldest_; }

 private:
  struct Mark {
    Duration at = {};
    store::Revision revision = 0;
  };
  mutable std::mutex lock_;
  std::deque<Mark> marks_;
  Mark recent_;
  std::atomic<store::Revision> oldest_ = 0;
};

// The lease that says that this server lives, as every Kubernetes API server keeps one. It is
// renewed with each mark, so that the revision moves on even where nobody else writes.
inline constexpr std::string_view kIdentityLease = "apiserver-skiff";
json::value identity_lease(Time now);

}  // namespace skiff::apiserver
