// The garbage collector: what follows from a deletion. Dependents of absent owners go, foreground
// and orphan deletions are finished, namespaces and custom definitions are emptied, events expire.
//
// It keeps an index of owners by uid, fed by the store's events, so that a pass costs what has
// changed and not what exists. Passes are deterministic; the simulator calls them by hand.
//
// The index is in memory for every object, so it is lean: each key and each uid is there once, in
// `nodes_`, and the rest points at them. Most objects are events, which nobody owns: of those it
// remembers only when they expire.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <queue>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "apiserver/kinds.h"
#include "apiserver/writes.h"
#include "env/env.h"
#include "store/store.h"

namespace skiff::apiserver {

class Collector {
 public:
  using Kinds = std::function<std::shared_ptr<const KindTable>()>;
  // `commit` writes the transaction and does what must follow a write.
  using Commit = std::function<Result<void>(Transaction&, store::Sync)>;
  Collector(store::Store& store, const env::Clock& clock, Writes& writes, Kinds kinds,
            Commit commit);

  // One pass; true if it changed anything, so that another may find more to do.
  bool pass();

 private:
  struct Owner {
    std::string uid = {};
    const std::string* group = nullptr;  // these two in words_
    const std::string* kind = nullptr;
    bool blocks = false;
    bool gone = false;  // it was seen, and seen to go
  };
  struct Node {
    std::string uid = {};
    std::vector<Owner> owners = {};
    std::vector<std::string> finalizers = {};
    bool deleting = false;
    store::Revision revision = 0;
  };
  using Nodes = std::map<store::Key, Node>;
  struct Dependent {
    std::string_view owner = {};  // its uid, in the child's node
    const store::Key* child = nullptr;

    bool operator<(const Dependent& other) const {
      return std::tie(owner, *child) < std::tie(other.owner, *other.child);
    }
  };
  struct Expiry {
    Time at = {};
    store::Revision revision = 0;
    std::weak_ptr<const store::Entry> event = {};  // only that one: a change has its own expiry

    bool operator>(const Expiry& other) const {
      return std::tie(at, revision) > std::tie(other.at, other.revision);
    }
  };

  // What a namespace or a custom kind still has. Kept up to date with every object, so that
  // emptying costs what there is to remove and not what was looked at before.
  struct Holdings {
    std::map<std::string, std::int64_t> resources = {};
    std::map<std::string, std::int64_t> finalizers = {};
    std::int64_t staying = 0;  // not deleted yet
  };
  void count_in(const store::Key& key, const Node& node);
  void count_out(const store::Key& key, const Node& node);
  bool remove_staying(const Holdings& holdings, const std::string* ns);
  // Events that are in the store and not in the index.
  std::vector<store::EntryPtr> plain_events(const std::string& ns) const;
  static void show_remaining(json::value& object, const Holdings& holdings, const std::string& now);

  void refresh();
  void refresh(const std::string& resource);
  void rescan(const std::string& resource);
  void upsert(const store::EntryPtr& entry);
  Node node_of(const json::value& object);
  bool is_plain(const store::Key& key, const Node& node) const;
  static bool alike(const Node& a, const Node& b);
  void change(Nodes::iterator at, Node node);
  void link(Nodes::iterator at);
  void unlink(Nodes::iterator at);
  void erase(const store::Key& key);
  void touch_holders(const store::Key& key, const Node& node);

  bool step(const store::Key& key);
  bool expire_events();
  bool finish_foreground(const store::Key& key, const Node& node);
  bool leads_to(const std::string& from, const std::string& to) const;
  bool finish_orphan(const store::Key& key, const Node& node);
  bool judge_owners(const store::Key& key);
  bool empty_namespace(const store::Key& key);
  bool empty_definition(const store::Key& key);
  void retry_names();
  bool release_storage(const store::Key& key);
  bool owner_lives(const store::Key& key, const Owner& owner) const;
  std::vector<store::Key> dependents(const std::string& uid) const;
  std::vector<store::Key> objects_of(const std::string& resource, const std::string* ns) const;

  // `seen`: only if it is as it was at that revision; 0: however it is.
  bool remove(const store::Key& key, const std::string& uid, std::string_view propagation,
              store::Revision seen = 0);
  bool strip_owners(const store::Key& key, const std::set<std::string>& uids);
  bool remove_finalizer(const store::Key& key, std::string_view finalizer);
  // `subresource`: as what the change counts for the managers of fields.
  bool write(const store::Key& key, const std::function<void(json::value&)>& change,
             std::string_view subresource = {});
  void track(const ServedKind& kind, std::string_view subresource, const json::value& old,
             json::value& next) const;

  store::Store& store_;
  const env::Clock& clock_;
  Writes& writes_;
  Kinds kinds_;
  Commit commit_;
  std::mutex lock_;
  Nodes nodes_;
  std::set<std::string, std::less<>> words_;  // groups and kinds of owners: few, never forgotten
  std::unordered_map<std::string_view, const store::Key*> by_uid_;
  std::set<Dependent> dependents_;
  std::map<std::string, Holdings> by_namespace_;
  std::map<std::string, Holdings> by_resource_;
  std::map<std::string, store::Revision> seen_;
  std::set<store::Key> used_claims_;  // deleted, and waiting for their pods to go
  std::priority_queue<Expiry, std::vector<Expiry>, std::greater<>> expiries_;
  std::set<store::Key> dirty_;
};

}  // namespace skiff::apiserver
