// Who wants to be called when there are events. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "store/store.h"

namespace skiff::store {

using Resources = std::set<std::string, std::less<>>;

class Listeners : public std::enable_shared_from_this<Listeners> {
 public:
  // `resource` empty: every one. The Subscription keeps this alive, so it may outlive the store.
  std::unique_ptr<Subscription> add(std::string_view resource, Horizon horizon,
                                    std::function<void()> fn);
  // Calls everybody concerned once, in this thread, without a lock held.
  void call(const Resources& resources, Horizon horizon) const;

 private:
  class Listener;
  class Handle;
  using Group = std::vector<std::shared_ptr<Listener>>;
  using Groups = std::map<std::string, Group, std::less<>>;

  void remove(std::string_view resource, Horizon horizon, const Listener* listener);
  Groups& groups(Horizon h) { return h == Horizon::kCommitted ? committed_ : visible_; }

  mutable std::mutex mutex_;
  Groups committed_;
  Groups visible_;
};

}  // namespace skiff::store
