// The one place that says who may do what: RBAC over the roles and bindings in the store.
//
// Reading takes a shared picture (Policy); it is drawn anew only after a role or binding has
// changed, and then reuses what it had read of the unchanged ones.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "apiserver/access/policy.h"
#include "apiserver/authn.h"
#include "base/result.h"
#include "store/store.h"

namespace skiff::apiserver {

class Authorizer {
 public:
  explicit Authorizer(store::Store& store);

  std::shared_ptr<const Policy> policy() const;
  Decision decide(const Identity& who, const Action& action) const;
  // kForbidden with the sentence of the real server.
  Result<void> authorize(const Identity& who, const Action& action) const;

 private:
  template <class T>
  struct Read {
    store::Revision revision = 0;
    std::shared_ptr<const T> value = {};
  };
  std::shared_ptr<const Policy> draw() const;

  store::Store& store_;
  std::atomic<std::uint64_t> changes_ = 1;  // counted by the store's events
  mutable std::atomic<std::uint64_t> drawn_ = 0;
  mutable std::mutex lock_;  // held for as long as it takes to copy a pointer
  mutable std::shared_ptr<const Policy> policy_;
  mutable std::mutex draw_lock_;
  mutable std::map<store::Key, Read<std::vector<Rule>>> roles_;
  mutable std::map<store::Key, Read<Binding>> bindings_;
  std::array<std::unique_ptr<store::Subscription>, 4> subscriptions_;
};

Error forbidden_action(const Identity& who, const Action& action, std::string_view reason);

}  // namespace skiff::apiserver
