#include "store/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <shared_mutex>

#include "base/check.h"
#include "store/listeners.h"
#include "store/pack_keeper.h"
#include "store/stamp.h"
#include "store/table.h"
#include "store/write_queue.h"

namespace skiff::store {
namespace {

// With the fields and the words that kubectl shows for a Status.
std::unexpected<Error> refuse(Code code, const Key& key, std::string message) {
  Error error{.code = code, .message = std::move(message), .name = key.name};
  const std::size_t dot = key.resource.find('.');
  error.resource = key.resource.substr(0, dot);
  if (dot != std::string::npos) error.group = key.resource.substr(dot + 1);
  return std::unexpected(std::move(error));
}

// `current` is the object's revision, 0 where there is none.
Result<void> check_expectation(const Mutation& mutation, Revision current) {
  const Key& key = mutation.key;
  if (current == 0) {
    const bool must_exist = !mutation.value || mutation.expected.value_or(0) != 0;
    if (!must_exist) return {};
    return refuse(Code::kNotFound, key, fmt::format("{} \"{}\" not found", key.resource, key.name));
  }
  if (!mutation.expected || *mutation.expected == current) return {};
  if (*mutation.expected == 0) {
    return refuse(Code::kAlreadyExists, key,
                  fmt::format("{} \"{}\" already exists", key.resource, key.name));
  }
  return refuse(Code::kConflict, key,
                fmt::format("Operation cannot be fulfilled on {} \"{}\": the object has been "
                            "modified; please apply your changes to the latest version and try "
                            "again",
                            key.resource, key.name));
}

}  // namespace

struct Store::Impl {
  Impl(std::unique_ptr<Journal> journal, Revision start)
      : loaded(start),
        // Revision 0 is the API's word for "any", so an empty store is at revision 1.
        revision(std::max<Revision>(start, 1)),
        listeners(std::make_shared<Listeners>()),
        queue(std::move(journal), revision.load(), [all = listeners](const Resources& resources) {
          all->call(resources, Horizon::kVisible);
        }) {}

  EntryPtr find(const Key& key) const;
  Result<void> check(const std::vector<Mutation>& mutations) const;
  Result<void> check(const std::vector<Check>& checks) const;
  EntryPtr apply(const Key& key, std::optional<Draft>& draft, Revision at, Pending& pending,
                 std::vector<Event>& dropped);

  const Revision loaded;
  // Changes under `mutex` only, and when a commit is whole: others read it without the lock.
  std::atomic<Revision> revision;
  mutable std::shared_mutex mutex;  // guards tables, objects and commits
  std::map<std::string, Table, std::less<>> tables;
  std::size_t objects = 0;
  std::uint64_t commits = 0;
  std::mutex packing;  // one sweep at a time; before `mutex`
  PackKeeper packs;    // guarded by `packing`
  const std::shared_ptr<Listeners> listeners;
  WriteQueue queue;
};

EntryPtr Store::Impl::find(const Key& key) const {
  const auto it = tables.find(key.resource);
  return it == tables.end() ? nullptr : it->second.find(key.ns, key.name);
}

Result<void> Store::Impl::check(const std::vector<Mutation>& mutations) const {
  // A later mutation meets the object as an earlier one leaves it. Nobody else commits meanwhile,
  // so the revisions are known already.
  std::map<Key, Revision> left;
  Revision next = revision.load();
  for (const Mutation& mutation : mutations) {
    ++next;
    Revision current = 0;
    if (const auto it = left.find(mutation.key); it != left.end()) {
      current = it->second;
    } else if (const EntryPtr entry = find(mutation.key)) {
      current = entry->revision();
    }
    SKIFF_TRY(check_expectation(mutation, current));
    if (mutations.size() > 1) left[mutation.key] = mutation.value ? next : 0;
  }
  return {};
}

Result<void> Store::Impl::check(const std::vector<Check>& checks) const {
  for (const Check& check : checks) {
    const EntryPtr entry = find(check.key);
    if (entry == nullptr && check.expected == 0) continue;
    const Mutation as_if{.key = check.key, .expected = check.expected};
    SKIFF_TRY(check_expectation(as_if, entry == nullptr ? 0 : entry->revision()));
  }
  return {};
}

EntryPtr Store::Impl::apply(const Key& key, std::optional<Draft>& draft, Revision at,
                            Pending& pending, std::vector<Event>& dropped) {
  auto table = tables.find(key.resource);
  if (table == tables.end()) table = tables.emplace(key.resource, Table(loaded)).first;
  EntryPtr previous = table->second.find(key.ns, key.name);
  EventType type = EventType::kDeleted;
  EntryPtr entry;
  if (draft) {
    draft->stamp(at);
    type = previous == nullptr ? EventType::kAdded : EventType::kModified;
    entry = std::make_shared<const Entry>(key, at, draft->take_bytes());
    entry->value_ = draft->value();
    pending.values.push_back(draft->value());
  } else {
    entry = std::make_shared<const Entry>(key, at, bytes_at(*previous, at));
  }
  if (type == EventType::kAdded) ++objects;
  if (type == EventType::kDeleted) --objects;
  pending.rows.push_back({.key = key, .revision = at, .entry = draft ? entry : nullptr});
  table->second.apply({.type = type, .entry = entry, .previous = std::move(previous)}, dropped);
  return entry;
}

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
// While everything is still whole: the last batch calls callbacks, and these may ask the store.
Store::~Store() { impl_->queue.stop(); }

Result<std::unique_ptr<Store>> Store::open(std::unique_ptr<Journal> journal, Writer writer) {
  SKIFF_ASSIGN(Journal::Loaded loaded, journal->load());
  auto impl = std::make_unique<Impl>(std::move(journal), loaded.revision);
  for (EntryPtr& entry : loaded.entries) {
    auto table = impl->tables.find(entry->key().resource);
    if (table == impl->tables.end()) {
      table = impl->tables.emplace(entry->key().resource, Table(loaded.revision)).first;
    }
    table->second.load(std::move(entry));
  }
  impl->objects = loaded.entries.size();
  if (writer == Writer::kThread) impl->queue.start_thread();
  return std::unique_ptr<Store>(new Store(std::move(impl)));
}

EntryPtr Store::get(const Key& key) const {
  const std::shared_lock lock(impl_->mutex);
  return impl_->find(key);
}

Listing Store::list(std::string_view resource, std::string_view ns) const {
  Listing listing;
  const std::shared_lock lock(impl_->mutex);
  listing.revision = impl_->revision.load();
  const auto table = impl_->tables.find(resource);
  if (table != impl_->tables.end()) table->second.list(ns, listing.entries);
  return listing;
}

std::vector<std::string> Store::resources() const {
  std::vector<std::string> names;
  const std::shared_lock lock(impl_->mutex);
  for (const auto& [name, table] : impl_->tables) {
    if (table.size() > 0) names.push_back(name);
  }
  return names;
}

Result<Committed> Store::commit(std::vector<Mutation> mutations, Sync sync,
                                const std::vector<Check>& checks) {
  // Serialising comes first, without the lock: it is nearly all of the work.
  std::vector<std::optional<Draft>> drafts(mutations.size());
  Resources resources;
  for (std::size_t i = 0; i < mutations.size(); ++i) {
    // The value stays, emptied: check() asks whether there is one.
    if (mutations[i].value) drafts[i].emplace(std::move(*mutations[i].value));
    resources.insert(mutations[i].key.resource);
  }
  Committed committed;
  Pending pending{.sync = sync};
  std::vector<Event> dropped;
  std::vector<Object> values;  // alive while callbacks run, so that they find the entries parsed
  {
    const std::unique_lock lock(impl_->mutex);
    committed.revision = impl_->revision.load();
    SKIFF_TRY(impl_->check(checks));
    if (mutations.empty()) return committed;
    SKIFF_TRY(impl_->queue.accepting());
    SKIFF_TRY(impl_->check(mutations));
    for (std::size_t i = 0; i < mutations.size(); ++i) {
      const Revision at = ++committed.revision;
      committed.entries.push_back(impl_->apply(mutations[i].key, drafts[i], at, pending, dropped));
    }
    ++impl_->commits;
    pending.last = committed.revision;
    impl_->revision = committed.revision;
    values = pending.values;
    // Under the lock, so that the queue holds commits in order of their revisions.
    impl_->queue.push(std::move(pending));
  }
  impl_->listeners->call(resources, Horizon::kCommitted);
  return committed;
}

Revision Store::revision() const { return impl_->revision.load(); }
Revision Store::visible() const { return impl_->queue.visible(); }

void Store::when_visible(Revision revision, std::function<void()> fn, Refused refused) {
  impl_->queue.when_visible(revision, std::move(fn), std::move(refused));
}

Result<std::vector<Event>> Store::events(std::string_view resource, Revision after, Horizon horizon,
                                         std::size_t max) const {
  const std::shared_lock lock(impl_->mutex);
  const Revision until = horizon == Horizon::kVisible ? visible() : revision();
  const auto table = impl_->tables.find(resource);
  if (table != impl_->tables.end()) return table->second.events(after, until, max);
  return Table(impl_->loaded).events(after, until, max);
}

void Store::forget_history(Revision until) {
  std::vector<Event> dropped;
  // What nobody has been told yet is no history.
  until = std::min(until, visible());
  const std::unique_lock lock(impl_->mutex);
  for (auto& [resource, table] : impl_->tables) table.forget(until, dropped);
}

std::size_t Store::pack(Revision until, std::size_t max) {
  const std::lock_guard sweeping(impl_->packing);
  std::vector<std::pair<std::string, std::vector<EntryPtr>>> cold;
  std::size_t taken = 0;
  {
    const std::unique_lock lock(impl_->mutex);
    for (auto& [resource, table] : impl_->tables) {
      std::vector<EntryPtr> entries = table.take_cold(until, max - taken);
      taken += entries.size();
      if (!entries.empty()) cold.emplace_back(resource, std::move(entries));
      if (taken >= max) break;
    }
  }
  // Packing is nearly all of the work, and nobody waits for it.
  for (auto& [resource, entries] : cold) {
    if (!impl_->packs.pack(resource, entries)) continue;
    const std::unique_lock lock(impl_->mutex);
    impl_->tables.find(resource)->second.pack_again();
  }
  return taken;
}

std::unique_ptr<Subscription> Store::subscribe(std::string_view resource, Horizon horizon,
                                               std::function<void()> fn) {
  SKIFF_CHECK(!resource.empty(), "a subscription names its resource");
  return impl_->listeners->add(resource, horizon, std::move(fn));
}

std::unique_ptr<Subscription> Store::subscribe_all(Horizon horizon, std::function<void()> fn) {
  return impl_->listeners->add("", horizon, std::move(fn));
}

Result<void> Store::flush() {
  SKIFF_CHECK(!impl_->queue.has_thread(), "with a writer thread nobody else writes");
  return impl_->queue.write();
}

Store::Stats Store::stats() const {
  WriteQueue::Stats queue = impl_->queue.stats();
  const std::shared_lock lock(impl_->mutex);
  return {.objects = impl_->objects,
          .commits = impl_->commits,
          .syncs = queue.syncs,
          .waiting = queue.waiting,
          .refusing = std::move(queue.refusing)};
}

}  // namespace skiff::store
