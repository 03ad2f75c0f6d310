// Runs controllers: caches what they observe, plans the keys that are due, submits what they plan.
//
// Single-threaded, no locks: one loop calls pump(), and every callback of the client arrives on the
// same thread. Only `Options::wake` is called from elsewhere; it must do no more than post a pump.
//
// A key (a root object of a controller) is planned when something of it changed, unless
//  - a submit for it is under way, or the caches have not yet seen what its last one wrote;
//  - its last plan failed and it backs off;
//  - its plans are dear: one key never takes more than a twentieth of the loop's time.
// Changes that arrive meanwhile become one plan.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "client/client.h"
#include "control/barrier.h"
#include "control/cache.h"
#include "control/controller.h"
#include "control/events.h"
#include "control/join.h"
#include "env/env.h"

namespace skiff::control {

struct RuntimeOptions {
  std::function<void()> wake = [] {};
  std::function<void(std::string_view line)> log = [](std::string_view) {};
  // How long a key waits to see its own writes before everything is listed again.
  Duration barrier_timeout = std::chrono::seconds(30);
};

class Runtime {
 public:
  Runtime(client::Client& client, const env::Clock& clock, RuntimeOptions options = {});
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  void add(Controller controller);
  void add(GlobalController controller);

  // Takes in changes, plans what is due, submits. Returns how long until the next timer; call again
  // then, or when woken.
  Duration pump();

  // The cache of a watched resource, or null. For whoever shows what controllers see.
  const Cache* cache(const std::string& resource_key) const;

 private:
  // What the runtime knows about one key of one controller; a global controller has one, unnamed.
  struct Item {
    std::optional<Duration> due = {};  // in timers_
    bool wanted = false;               // something changed while it could not be planned
    unsigned in_flight = 0;
    Barrier barrier = {};
    bool blocked = false;  // the barrier is closed
    Duration blocked_until = {};
    Duration not_before = {};
    unsigned failures = 0;
    // By a batch of the plan under way that has not failed before.
    std::optional<Error> failed = {};
    std::vector<Note> told = {};  // by the last plan that changed nothing
    // Of a global one: batches that failed, tried again when their time comes.
    // They hold up no other.
    struct Held {
      Duration until = {};
      unsigned failures = 0;
    };
    std::map<std::string, Held> held = {};
  };
  struct Member {
    // One of the two is set.
    std::optional<Controller> keyed = {};
    std::optional<GlobalController> global = {};
    std::map<Key, Item> items = {};
    std::vector<Join> joins = {};  // of a keyed one: for each of Controller::seen
    std::vector<std::string> resources = {};
  };
  struct Subscriber {
    std::size_t member = 0;
    std::size_t which = 0;  // of the member's resources: for keyed ones root, owned, seen
  };
  struct Feed {
    std::unique_ptr<Cache> cache = {};
    std::vector<Subscriber> subscribers = {};
    unsigned failures = 0;
    Duration retry_at = {};
  };
  using Answers = std::vector<Result<json::value>>;

  void subscribe(const api::Resource& resource, Subscriber subscriber);
  void poll_feeds();
  void deliver(const Subscriber& subscriber, const Change& change);
  void deliver_to_key(const Subscriber& subscriber, const Change& change);
  void deliver_to_owner(const Subscriber& subscriber, const Change& change);
  void deliver_to_watchers(const Subscriber& subscriber, const Change& change);
  void open_barriers();
  bool ready(const Member& member) const;
  void mark(std::size_t member, const Key& key, Duration at);
  void cancel(std::size_t member, const Key& key, Item& item);

  void plan_due();
  void plan_key(std::size_t member, const Key& key, Item& item);
  void plan_global(std::size_t member, Item& item);
  std::optional<Observed> observe(const Member& member, const Key& key) const;
  void charge(Item& item, Duration started);

  void answered(std::size_t member, const Key& key, const Observed& observed,
                const std::vector<client::Write>& writes, const std::vector<Note>& notes,
                const Answers& answers);
  void batch_answered(std::size_t member, const Batch& batch, const Answers& answers);
  // How often it has failed by now.
  unsigned hold(std::size_t member, Item& item, const Batch& batch, const Error& error);
  void expect(Item& item, const std::vector<client::Write>& writes, const Answers& answers);
  void settle(std::size_t member, const Key& key, Item& item);
  void failed(std::size_t member, const Key& key, Item& item, const Error& error);
  void doubt(const Member& member, const Error& error);
  void hear_refusal(std::size_t member, const Key& key, Item& item, Refusal refusal);
  void submit(std::size_t member, const Key& key, Item& item, Observed observed, Plan plan);
  void report_foreign_child(const Member& member, const Observed& observed,
                            const std::vector<client::Write>& writes, const Answers& answers);
  Duration until_next() const;

  client::Client& client_;
  const env::Clock& clock_;
  const RuntimeOptions options_;
  const Barrier::Lookup lookup_;
  EventRecorder events_;
  std::map<std::string, Feed> feeds_ = {};  // by api::Resource::key()
  std::vector<std::unique_ptr<Member>> members_ = {};
  std::set<std::tuple<Duration, std::size_t, Key>> timers_ = {};
  std::set<std::pair<std::size_t, Key>> blocked_ = {};
  // Answers that arrive after the runtime is gone find this expired.
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace skiff::control
