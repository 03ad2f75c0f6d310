// Runs controllers: caches what they observe, plans the keys that are due, submits what they plan.
//
// Single-threaded, no locks: one loop calls pump(), and every callback of the client arrives on the
// same thread. Only `Options::wake` is called from elsewhere; it must do no more than post a pump.
//
// A key (a root object of a controller) is planned when something of it changed, unless
//  - a plan or a submit for it is under way, or the caches have not seen its last writes yet;
//  - its last plan failed and it backs off;
//  - its plans are dear: one key never takes more than a twentieth of the loop's time.
// Changes that arrive meanwhile become one plan. However many keys are due, a turn is short, and in
// it the keys of all controllers take turns.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "client/client.h"
#include "control/barrier.h"
#include "control/blocked.h"
#include "control/cache.h"
#include "control/controller.h"
#include "control/decision.h"
#include "control/events.h"
#include "control/join.h"
#include "env/env.h"

namespace skiff::control {

// Where the time of one pump went.
struct TurnCost {
  Duration feeds = {};
  Duration barriers = {};
  Duration plans = {};
  Duration batches = {};
  Duration events = {};
  std::string dearest = {};  // the controller whose plan took longest
  Duration dearest_took = {};
};

struct RuntimeOptions {
  std::function<void()> wake = [] {};
  std::function<void(std::string_view line)> log = [](std::string_view) {};
  // How long a key waits to see its own writes before everything is listed again.
  Duration barrier_timeout = std::chrono::seconds(30);
  // What happens to a key for so long after it was written becomes one plan: for servers to which
  // each write is work.
  Duration rest = {};
  // Where set: runs `work` on another thread and after it `then` on this one. A key whose plans
  // take long, a job of ten thousand pods, is planned there; that is why plan() is pure. So is what
  // a global controller gives away (plan_apart).
  using Fn = std::function<void()>;
  std::function<void(Fn work, Fn then)> elsewhere = {};
  Duration long_plan = std::chrono::milliseconds(5);  // after such a one: the next is made there
  // Where set, told of every pump. For whoever looks for what holds up the loop.
  std::function<void(const TurnCost&)> turned = {};
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
    std::optional<Duration> due = {};  // in Member::timers
    bool wanted = false;               // something changed while it could not be planned
    unsigned in_flight = 0;            // a plan made elsewhere, or submits
    bool long_plan = false;            // the last one was
    bool outdated = false;             // a part of the last one was, when it came back
    Barrier barrier = {};
    bool blocked = false;  // the barrier is closed
    Duration blocked_until = {};
    Duration not_before = {};
    unsigned failures = 0;
    // By a batch of the plan under way that has not failed before.
    std::optional<Error> failed = {};
    std::vector<Note> told = {};  // by the last plan that changed nothing
    // Of a global one: batches that failed. They are tried again later and hold up no other.
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
    std::set<std::pair<Duration, Key>> timers = {};  // when which item is due
    std::vector<Join> joins = {};                    // of a keyed one: for each of Controller::seen
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
  void poll_feed(const std::string& name, Feed& feed);
  void deliver(const Subscriber& subscriber, const Change& change);
  void deliver_to_key(const Subscriber& subscriber, const Change& change);
  void deliver_to_owner(const Subscriber& subscriber, const Change& change);
  void deliver_to_watchers(const Subscriber& subscriber, const Change& change);
  void open_barriers();
  bool ready(const Member& member) const;
  void mark(std::size_t member, const Key& key, Duration at);
  void cancel(std::size_t member, const Key& key, Item& item);

  void plan_due();
  void plan_one(std::size_t member, const Key& key);
  void plan_key(std::size_t member, const Key& key, Item& item);
  struct Unsent;
  struct Packed;  // a global plan, ready to be sent
  void plan_global(std::size_t member, Item& item);
  void plan_global_elsewhere(std::size_t member, Item& item, PlanApart apart, Duration started);
  static Packed pack(std::size_t member, GlobalPlan plan);
  void enqueue(std::size_t member, Item& item, Packed packed, Duration started);
  // True where it left some for the next turn.
  bool send_batches();
  bool tell_notes();
  std::optional<Observed> observe(const Member& member, const Key& key) const;
  void plan_elsewhere(std::size_t member, const Key& key, Item& item, Observed observed,
                      Duration started);
  void carry_out(std::size_t member, const Key& key, Item& item, Decision decision,
                 Duration started);
  void charge(Item& item, Duration cost);

  void answered(std::size_t member, const Key& key, const Decision& decision,
                const Answers& answers);
  void batch_answered(Unsent& sent, const Answers& answers);
  // How often it has failed by now.
  unsigned hold(std::size_t member, Item& item, const Batch& batch, const Error& error);
  void expect(Item& item, const std::vector<client::Write>& writes, const Answers& answers);
  void settle(std::size_t member, const Key& key, Item& item);
  void failed(std::size_t member, const Key& key, Item& item, const Error& error);
  // A controller threw. Its key backs off as after a submit that failed; all others go on.
  void broken(std::size_t member, const Key& key, Item& item, const Object& about,
              const Error& error);
  // One that threw where there is nothing to try again: the log and the object say so.
  void complain(const Member& member, const Object& about, const Error& error);
  void doubt(const Member& member, const Error& error);
  void hear_refusal(std::size_t member, const Key& key, Item& item, Refusal refusal);
  void submit(std::size_t member, const Key& key, Item& item, Decision decision);
  void report_foreign_child(const Member& member, const Decision& decision, const Answers& answers);
  Duration until_next() const;

  client::Client& client_;
  const env::Clock& clock_;
  const RuntimeOptions options_;
  const Barrier::Lookup lookup_;
  EventRecorder events_;
  TurnCost cost_ = {};
  std::map<std::string, Feed> feeds_ = {};  // by api::Resource::key()
  std::string first_feed_ = {};             // whose second portion comes first in the next turn
  std::vector<std::unique_ptr<Member>> members_ = {};
  std::size_t first_ = 0;  // of members_: whose keys come first in the next turn
  Blocked blocked_ = {};
  struct Unsent {
    std::size_t member = 0;
    std::vector<client::Write> writes = {};
    Batch batch = {};  // the same without bodies, for when they are answered; and the notes
  };
  std::deque<Unsent> unsent_ = {};  // counted in their item's in_flight
  std::deque<std::tuple<std::size_t, ObjectNote, Time>> untold_ = {};  // of what succeeded when
  // Answers that arrive after the runtime is gone find this expired.
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace skiff::control
