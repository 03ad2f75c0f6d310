#include "store/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/limits.h"

namespace skiff::store {
namespace {

// Objects may have megabytes: the count alone would not bound what a resource's history takes.
constexpr std::size_t kHistoryBytes = 64 * 1024 * 1024;
// An Entry, its strings and its place in history, about.
constexpr std::size_t kEntryBytes = 300;

// Of a walk along all objects, at once: everybody waits for it.
constexpr std::size_t kSteps = 5'000;

// What it keeps alive: a state that is still current would be in memory anyway.
std::size_t cost(const Event& event) {
  std::size_t bytes = sizeof(Event);
  if (event.previous != nullptr) bytes += kEntryBytes + event.previous->size();
  if (event.type == EventType::kDeleted) bytes += kEntryBytes + event.entry->size();
  return bytes;
}

}  // namespace

EntryPtr Table::find(std::string_view ns, std::string_view name) const {
  const auto it = objects_.find(Place{ns, name});
  return it == objects_.end() ? nullptr : *it;
}

void Table::list(std::string_view ns, std::vector<EntryPtr>& out) const {
  if (ns.empty()) {
    out.insert(out.end(), objects_.begin(), objects_.end());
    return;
  }
  for (auto it = objects_.lower_bound(Place{ns, {}}); it != objects_.end(); ++it) {
    if ((*it)->key().ns != ns) break;
    out.push_back(*it);
  }
}

void Table::load(EntryPtr entry) {
  miss(entry->revision());
  objects_.insert(objects_.end(), std::move(entry));
}

void Table::apply(Event event, std::vector<Event>& dropped) {
  const Key& key = event.entry->key();
  const auto it = objects_.find(Place{key.ns, key.name});
  if (event.type == EventType::kAdded) {
    objects_.insert(event.entry);
  } else {
    SKIFF_CHECK(it != objects_.end(), "a change follows the object it changes");
    const auto next = std::next(it);
    auto node = objects_.extract(it);
    if (event.type == EventType::kModified) {
      node.value() = event.entry;
      objects_.insert(next, std::move(node));
    }
  }
  history_bytes_ += cost(event);
  history_.push_back(std::move(event));
  while (history_.size() > limits::kWatchEvents ||
         (history_bytes_ > kHistoryBytes && history_.size() > 1)) {
    drop_oldest(dropped);
  }
}

void Table::forget(Revision until, std::vector<Event>& dropped) {
  while (history_bytes_ > kOldHistoryBytes && !history_.empty() &&
         history_.front().entry->revision() <= until) {
    drop_oldest(dropped);
  }
}

void Table::drop_oldest(std::vector<Event>& dropped) {
  start_ = history_.front().entry->revision();
  if (start_ > swept_) miss(start_);
  history_bytes_ -= cost(history_.front());
  dropped.push_back(std::move(history_.front()));
  history_.pop_front();
}

void Table::miss(Revision revision) {
  if (missed_from_ == 0) missed_from_ = revision;
  missed_from_ = std::min(missed_from_, revision);
  missed_to_ = std::max(missed_to_, revision);
}

void Table::pack_again() { miss(1); }

std::vector<EntryPtr> Table::take_cold(Revision until, std::size_t max) {
  std::vector<EntryPtr> out;
  if (!walk_ && missed_from_ != 0 && missed_from_ <= until) {
    walk_ = Key();
    // What is younger, and no longer in history, needs another walk when its time has come.
    missed_from_ = missed_to_ <= until ? 0 : until + 1;
    if (missed_from_ == 0) missed_to_ = 0;
  }
  if (walk_) walk(until, max, out);
  if (swept_ < until && !history_.empty() && history_.back().entry->revision() > swept_) {
    const auto revision_of = [](const Event& e) { return e.entry->revision(); };
    auto it = std::ranges::upper_bound(history_, swept_, {}, revision_of);
    for (; it != history_.end() && out.size() < max && revision_of(*it) <= until; ++it) {
      swept_ = revision_of(*it);
      out.push_back(it->entry);
      // An object that was loaded, and changed before its turn came, is known to history only.
      if (it->previous != nullptr && !it->previous->packed()) out.push_back(it->previous);
    }
  }
  return out;
}

void Table::walk(Revision until, std::size_t max, std::vector<EntryPtr>& out) {
  // The rest is still to come from history.
  const Revision known = std::min(until, std::max(swept_, start_));
  auto it = objects_.lower_bound(Place{walk_->ns, walk_->name});
  for (std::size_t i = 0; it != objects_.end() && out.size() < max && i < kSteps; ++it, ++i) {
    if ((*it)->revision() <= known && !(*it)->packed()) out.push_back(*it);
  }
  if (it == objects_.end()) {
    walk_.reset();
  } else {
    walk_ = (*it)->key();
  }
}

Result<std::vector<Event>> Table::events(Revision after, Revision until, std::size_t max) const {
  if (after < start_) {
    return fail(Code::kExpired, fmt::format("too old resource version: {} ({})", after, start_));
  }
  const auto revision_of = [](const Event& e) { return e.entry->revision(); };
  const auto begin = std::ranges::upper_bound(history_, after, {}, revision_of);
  const auto end = std::ranges::upper_bound(begin, history_.end(), until, {}, revision_of);
  const auto count = std::min<std::size_t>(max, static_cast<std::size_t>(end - begin));
  return std::vector<Event>(begin, begin + static_cast<std::ptrdiff_t>(count));
}

}  // namespace skiff::store
