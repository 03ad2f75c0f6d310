// The object store: every current object in memory as immutable bytes, SQLite (WAL) behind it.
//
// A commit changes memory at once and returns; the journal writes it in the background, many
// commits in one transaction (group commit). Code in this process may act on what it reads at once.
// What leaves the process (an HTTP answer, a watch event, the start of a program) must wait until
// the revision it depends on is *visible*: on disk, synced where its class demands it.
//
// Thread-safe. Callbacks run without any lock held and must be quick: post elsewhere. Those that
// wait for visibility run on the writer thread (or inside flush()), one after another; subscribers
// with Horizon::kCommitted are called by whoever commits, inside commit(), so perhaps by several
// threads at the same time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "store/entry.h"

namespace skiff::store {

// How safe a write is before it is acknowledged. Both survive kill -9; only kSynced survives a
// power cut from the moment it is visible.
enum class Sync { kSynced, kLazy };

struct Mutation {
  Key key = {};
  // 0: the object must not exist. Absent: no condition (but see `value`).
  std::optional<Revision> expected = {};
  // The object to write (its resourceVersion is set by commit), or absent to remove the object,
  // which must then exist.
  std::optional<json::value> value = {};
};

// What a commit depends on without changing it.
struct Check {
  Key key = {};
  Revision expected = 0;  // 0: the object must not exist
};

struct Committed {
  Revision revision = 0;  // of the last mutation
  // One for each mutation, in order; a removed object's last state, stamped with the revision of
  // its removal.
  std::vector<EntryPtr> entries = {};
};

enum class EventType { kAdded, kModified, kDeleted };

struct Event {
  EventType type = EventType::kAdded;
  EntryPtr entry = {};     // for kDeleted: the last state, at the revision of the removal
  EntryPtr previous = {};  // null for kAdded
};

// How far a reader may look: code in this process sees commits at once, others what is visible.
enum class Horizon { kCommitted, kVisible };

struct Listing {
  Revision revision = 0;
  std::vector<EntryPtr> entries = {};  // ordered by namespace, then name
};

// Where commits are kept. Called by one thread at a time.
class Journal {
 public:
  virtual ~Journal() = default;

  struct Row {
    Key key = {};
    Revision revision = 0;
    EntryPtr entry = {};  // null: removed
  };
  struct Loaded {
    Revision revision = 0;
    std::vector<EntryPtr> entries = {};
  };
  virtual Result<Loaded> load() = 0;
  // One transaction. When it fails nothing of it is kept, and the store tries again later.
  virtual Result<void> write(const std::vector<Row>& rows, Revision last, Sync sync) = 0;
};

// Opens or creates `path`. A database of a newer format, or a damaged one, is refused with a
// sentence that says what to do; nothing is overwritten.
Result<std::unique_ptr<Journal>> open_sqlite_journal(const std::string& path);

class Subscription;

class Store {
 public:
  // kManual: nothing is written until flush(), for the simulator.
  enum class Writer { kThread, kManual };

  static Result<std::unique_ptr<Store>> open(std::unique_ptr<Journal> journal, Writer writer);
  // Writes what is waiting, where the disk lets it: it is tried once. A when_visible() callback
  // whose revision never came is dropped. Callbacks may run until the destructor returns, when a
  // unique_ptr that held the store is already empty.
  ~Store();

  EntryPtr get(const Key& key) const;
  // All namespaces where `ns` is empty.
  Listing list(std::string_view resource, std::string_view ns = {}) const;
  std::vector<std::string> resources() const;  // that have at least one object

  // All mutations or none, each at its own revision, in order; a later one meets the object as an
  // earlier one left it. Errors: kConflict (revision differs), kAlreadyExists, kNotFound, each
  // naming the key; kServiceUnavailable while the disk refuses writes or is far behind.
  // `checks` hold before the first mutation, in the same instant.
  Result<Committed> commit(std::vector<Mutation> mutations, Sync sync,
                           const std::vector<Check>& checks = {});

  Revision revision() const;  // of the newest commit; 1 in a store that never had one
  Revision visible() const;
  // Calls `fn` once when `revision` is visible: at once, in this thread, where it already is
  // (then perhaps before callbacks that have waited longer, in the writer thread). Where `refused`
  // is given and the disk refuses writes, that is called instead: the change waits in memory, and
  // nobody can say when it will be safe.
  using Refused = std::function<void(const Error&)>;
  void when_visible(Revision revision, std::function<void()> fn, Refused refused = {});

  // Events of one resource after a revision, oldest first. kExpired where history does not reach
  // back so far; it starts at the revision that was loaded. An empty answer means: nothing yet,
  // wait for the subscription.
  Result<std::vector<Event>> events(std::string_view resource, Revision after, Horizon horizon,
                                    std::size_t max) const;
  // Lets go of history up to that revision, but for the newest part of a few megabytes for each
  // resource. For whoever knows the time: what is recent is kept whole however much it is.
  void forget_history(Revision until);
  // Packs objects of revisions up to that one which are not packed yet, about `max` at once, and
  // says how many it took up. Fewer than `max`: the rest, if there is any, is for the next call;
  // without a rest a call costs nothing worth mentioning. For whoever knows the time: what is
  // recent is soon read or replaced.
  std::size_t pack(Revision until, std::size_t max);
  // `fn` is called whenever events() may have more. Until the Subscription is destroyed; the
  // destructor waits for a call that is under way, so never destroy it inside `fn`.
  std::unique_ptr<Subscription> subscribe(std::string_view resource, Horizon horizon,
                                          std::function<void()> fn);
  // As subscribe, for every resource (garbage collector, simulator).
  std::unique_ptr<Subscription> subscribe_all(Horizon horizon, std::function<void()> fn);

  // Writes what is waiting, as the writer thread would, and calls who waits for it. An error says
  // that the disk refused; what waits is kept for the next call. Only with Writer::kManual.
  Result<void> flush();

  struct Stats {
    std::size_t objects = 0;
    std::uint64_t commits = 0;
    std::uint64_t syncs = 0;
    std::size_t waiting = 0;    // mutations not yet on disk
    std::string refusing = {};  // why writes are refused at the moment; empty when all is well
  };
  Stats stats() const;

 private:
  struct Impl;
  explicit Store(std::unique_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

class Subscription {
 public:
  virtual ~Subscription() = default;
};

}  // namespace skiff::store
