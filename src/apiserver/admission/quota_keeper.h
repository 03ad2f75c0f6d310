// Keeps status.used of every ResourceQuota right: writes charge it, this takes off what has gone.
//
// It follows the store's events and counts a namespace anew only where a quota has changed or
// something that it may have charged for has gone or shrunk. Passes are deterministic.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "apiserver/transaction.h"
#include "base/time.h"
#include "env/env.h"
#include "store/store.h"

namespace skiff::apiserver {

class QuotaKeeper {
 public:
  using Commit = std::function<Result<void>(Transaction&, store::Sync)>;
  // Whether objects of a resource (by its key) can exist in namespaces.
  using Counted = std::function<bool(const std::string& resource)>;
  QuotaKeeper(store::Store& store, const env::Clock& clock, Counted counted, Commit commit);

  // One pass; true if it changed anything.
  bool pass();

 private:
  void follow(const std::string& resource);
  void see(const store::Event& event);
  bool recount(const store::Key& quota);

  store::Store& store_;
  const env::Clock& clock_;
  Counted counted_;
  Commit commit_;
  std::mutex lock_;
  std::map<std::string, std::set<store::Key>> quotas_;  // by namespace
  std::map<std::string, store::Revision> seen_;         // by resource
  std::set<std::string> dirty_;                         // namespaces
  // Until when a namespace with a new quota is counted after every new object: a write that was
  // under way when the quota came may not have charged it.
  std::map<std::string, Time> young_;
  Time next_full_ = {};
};

}  // namespace skiff::apiserver
