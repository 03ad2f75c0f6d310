// What one resource looks like now: list once, then follow the watch.
//
// Poll based and single-threaded; poll() never waits for events (a list on a remote server blocks
// for its round trip). Objects are shared values without managedFields, one for all who look at
// them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/kind.h"
#include "base/json.h"
#include "base/result.h"
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

  const api::Resource& resource() const { return resource_; }

  // Takes in what has arrived and tells what changed. An error means that the server could not be
  // asked; what is cached stays, and the next poll tries again. Of many events it takes in a part.
  Result<std::vector<Change>> poll();
  // The next poll lists everything and tells the differences. For whoever suspects a lost event.
  void distrust();

  bool synced() const { return synced_; }            // listed at least once
  bool more() const { return more_; }                // the last poll left events: poll again soon
  bool broken() const { return watch_ == nullptr; }  // the next poll has to ask the server
  std::uint64_t revision() const { return revision_; }  // everything up to it has been taken in

  Object get(const Key& key) const;
  const std::map<Key, Object>& objects() const { return objects_; }
  // Objects whose controlling owner has that uid, ordered by namespace and name. Of one namespace
  // where `ns` is not null.
  std::vector<Object> owned_by(std::string_view uid, const std::string* ns = nullptr) const;

 private:
  Result<void> relist(std::vector<Change>& changes);
  Result<void> rewatch();
  void take_in(std::vector<client::Event>& events, std::vector<Change>& changes);
  void put(Object object, std::vector<Change>& changes);
  void erase(const Key& key, std::vector<Change>& changes);
  void index(const Object& object, bool add);

  client::Client& client_;
  const api::Resource resource_;
  const std::function<void()> wake_;
  std::unique_ptr<client::Watch> watch_ = {};
  bool synced_ = false;
  bool must_list_ = true;
  bool more_ = false;
  std::uint64_t revision_ = 0;
  std::map<Key, Object> objects_ = {};
  std::map<std::string, std::map<Key, Object>, std::less<>> by_owner_ = {};
};

}  // namespace skiff::control
