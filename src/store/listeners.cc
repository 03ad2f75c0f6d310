#include "store/listeners.h"

#include <atomic>

namespace skiff::store {

// Counts the calls under way, so that the end of a subscription can wait for them. A mutex would
// do the same, but would hang a callback whose own commit calls it again.
class Listeners::Listener {
 public:
  explicit Listener(std::function<void()> fn) : fn_(std::move(fn)) {}

  void call() {
    if ((state_.fetch_add(kCall) & kClosed) == 0) fn_();
    if ((state_.fetch_sub(kCall) & kClosed) != 0) state_.notify_all();
  }

  void close() {
    unsigned state = state_.fetch_or(kClosed) | kClosed;
    while (state != kClosed) {
      state_.wait(state);
      state = state_.load();
    }
  }

 private:
  static constexpr unsigned kClosed = 1;
  static constexpr unsigned kCall = 2;

  const std::function<void()> fn_;
  std::atomic<unsigned> state_ = 0;
};

class Listeners::Handle final : public Subscription {
 public:
  Handle(std::shared_ptr<Listeners> all, std::string resource, Horizon horizon,
         std::shared_ptr<Listener> listener)
      : all_(std::move(all)),
        resource_(std::move(resource)),
        horizon_(horizon),
        listener_(std::move(listener)) {}
  ~Handle() override {
    all_->remove(resource_, horizon_, listener_.get());
    // Somebody may have taken the list before we left it and be about to call.
    listener_->close();
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

 private:
  const std::shared_ptr<Listeners> all_;
  const std::string resource_;
  const Horizon horizon_;
  const std::shared_ptr<Listener> listener_;
};

std::unique_ptr<Subscription> Listeners::add(std::string_view resource, Horizon horizon,
                                             std::function<void()> fn) {
  auto listener = std::make_shared<Listener>(std::move(fn));
  {
    const std::lock_guard lock(mutex_);
    groups(horizon)[std::string(resource)].push_back(listener);
  }
  return std::make_unique<Handle>(shared_from_this(), std::string(resource), horizon,
                                  std::move(listener));
}

void Listeners::remove(std::string_view resource, Horizon horizon, const Listener* listener) {
  const std::lock_guard lock(mutex_);
  Groups& all = groups(horizon);
  const auto it = all.find(resource);
  std::erase_if(it->second, [&](const auto& other) { return other.get() == listener; });
  if (it->second.empty()) all.erase(it);
}

void Listeners::call(const Resources& resources, Horizon horizon) const {
  Group concerned;
  {
    const std::lock_guard lock(mutex_);
    const Groups& all = horizon == Horizon::kCommitted ? committed_ : visible_;
    const auto take = [&](std::string_view resource) {
      const auto it = all.find(resource);
      if (it != all.end()) concerned.insert(concerned.end(), it->second.begin(), it->second.end());
    };
    for (const std::string& resource : resources) take(resource);
    if (!resources.empty()) take("");
  }
  for (const auto& listener : concerned) listener->call();
}

}  // namespace skiff::store
