// What one resource looks like now: list once, then follow the watch.
//
// Poll based and single-threaded; poll() never waits for events (a list on a remote server blocks
// for its round trip). Objects are shared values without managedFields, one for all who look at
// them.
//
// What nobody has looked at for a while rests, where the client can give it again
// (client/source.h): it is let go and parsed anew for who looks next. Of ten thousand jobs that are
// kept only the bytes in the store remain.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/kind.h"
#include "base/json.h"
#include "base/result.h"
#include "base/time.h"
#include "client/client.h"

namespace skiff::control {

struct Key {
  std::string ns = {};
  std::string name = {};

  auto operator<=>(const Key&) const = default;
};
Key key_of(const json::value& object);

struct Change {
  Object before = {};  // null: appeared
  Object after = {};   // null: gone
};

class Cache {
 public:
  // `wake` is called from any thread when poll() may have something.
  Cache(client::Client& client, api::Resource resource, std::function<void()> wake);
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  const api::Resource& resource() const { return resource_; }

  // Takes in what has arrived and tells what changed. An error means that the server could not be
  // asked; what is cached stays, and the next poll tries again. Of many events it takes in a part.
  // `now` is when what is looked at from here on was last looked at.
  Result<std::vector<Change>> poll(Duration now);
  // The next poll lists everything and tells the differences. For whoever suspects a lost event.
  void distrust();

  bool synced() const { return synced_; }            // listed at least once
  bool more() const { return more_; }                // the last poll left events: poll again soon
  bool broken() const { return watch_ == nullptr; }  // the next poll has to ask the server
  std::uint64_t revision() const { return revision_; }  // everything up to it has been taken in

  Object get(const Key& key) const;
  // In that order, without those that are not there. Very many that are asked for together rest no
  // more: the next to ask would have to parse them all at once.
  std::vector<Object> get_all(const std::vector<Key>& wanted) const;
  std::vector<Key> keys() const;  // ordered by namespace and name
  // Objects whose controlling owner has that uid, ordered by namespace and name. Of one namespace
  // where `ns` is not null.
  std::vector<Object> owned_by(std::string_view uid, const std::string* ns = nullptr) const;

  // Lets go of some that nobody has looked at for a while.
  void let_rest(Duration now);
  // When there is something to let go; nothing: not before somebody looks at something.
  std::optional<Duration> next_rest() const;
  std::size_t awake() const { return awake_.size(); }  // of those that can rest

 private:
  struct Slot;
  struct ByKey {
    bool operator()(const Slot* a, const Slot* b) const { return *a->key < *b->key; }
  };
  using Group = std::set<Slot*, ByKey>;
  using Groups = std::map<std::string, Group, std::less<>>;
  struct Slot {
    const Key* key = nullptr;
    std::uint64_t revision = 0;
    client::SourcePtr source = {};  // null: it never rests
    Groups::iterator group = {};    // of by_owner_; its end: nobody controls it
    // Null: it rests.
    mutable Object object = {};
    mutable Duration touched = {};
    mutable Duration looked_after = {};  // its place in awake_
    // Twice as long after each time that it was woken: a heartbeat is not parsed twice for ever.
    mutable Duration patience = {};
    mutable bool in_crowd = false;  // asked for together with very many others
  };
  using Turn = std::pair<Duration, const Slot*>;
  struct ByTurn {
    bool operator()(const Turn& a, const Turn& b) const {
      return a.first != b.first ? a.first < b.first : *a.second->key < *b.second->key;
    }
  };
  using Awake = std::set<Turn, ByTurn>;

  Object wake(const Slot& slot) const;
  // When its patience is over, counted from then.
  void look_after(const Slot& slot, Duration from) const;
  bool stays(const Slot& slot) const;
  Result<void> relist(std::vector<Change>& changes);
  Result<void> rewatch();
  void take_in(std::vector<client::Event>& events, std::vector<Change>& changes);
  void put(Object object, client::SourcePtr source, std::vector<Change>& changes);
  void erase(const Key& key, std::vector<Change>& changes);
  void index(Slot& slot);
  void unindex(Slot& slot);

  client::Client& client_;
  const api::Resource resource_;
  const std::function<void()> wake_;
  std::unique_ptr<client::Watch> watch_ = {};
  bool synced_ = false;
  bool must_list_ = true;
  bool more_ = false;
  std::uint64_t revision_ = 0;
  std::map<Key, Slot> slots_ = {};
  Groups by_owner_ = {};  // by uid
  Duration now_ = {};
  mutable Awake awake_ = {};  // those that can rest and do not, by when to look after them
};

}  // namespace skiff::control
