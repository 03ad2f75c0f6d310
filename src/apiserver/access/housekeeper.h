// What the server keeps in order by itself, beside the garbage collector: ClusterRoles that gather
// others, the default ServiceAccount and the authority's certificate of each namespace, and Secrets
// that carry a token of a service account. Deterministic; the simulator calls passes by hand.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "apiserver/access/change_feed.h"
#include "apiserver/access/tokens.h"
#include "apiserver/kinds.h"
#include "apiserver/writes.h"

namespace skiff::apiserver {

class Housekeeper {
 public:
  using Kinds = std::function<std::shared_ptr<const KindTable>()>;
  using Commit = std::function<Result<void>(Transaction&, store::Sync)>;
  // `authority`: the certificate that clients in pods are to trust; empty: none is published.
  Housekeeper(store::Store& store, Writes& writes, const ServiceTokens& tokens,
              std::string authority, Kinds kinds, Commit commit);

  // One pass; true if it changed anything, so that another may find more to do.
  bool pass();

  // What every namespace has, staged beside whatever else the transaction does.
  void furnish(Transaction& txn, const std::string& ns);

 private:
  void look();
  bool gather();
  bool keep_namespace(const std::string& ns);
  bool keep_secret(const store::Key& key);
  // Stages the write as the server itself; false where it was refused.
  bool stage(Transaction& txn, WriteRequest request, std::string_view resource) const;
  bool commit(Transaction& txn) const;

  store::Store& store_;
  Writes& writes_;
  const ServiceTokens& tokens_;
  const std::string authority_;
  Kinds kinds_;
  Commit commit_;
  std::mutex lock_;
  ChangeFeed namespaces_, accounts_, config_maps_, secrets_, roles_;
  std::set<std::string> stale_namespaces_;
  std::set<store::Key> stale_secrets_;
  std::set<store::Key> token_secrets_;
  bool roles_changed_ = true;
};

}  // namespace skiff::apiserver
