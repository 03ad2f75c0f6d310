#include "control/runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/meta.h"
#include "base/guarded.h"
#include "control/answers.h"

namespace skiff::control {
namespace {

constexpr Duration kFeedBackoffMax = std::chrono::seconds(10);
// However many resources have much to tell, a turn takes in no more once this is over. A cache
// gives a portion at a time, and each gives its first in every turn.
constexpr Duration kFeedingTime = std::chrono::milliseconds(10);
constexpr int kPortionsPerTurn = 4;
// Plans cheaper than this are not worth spreading out: the delay would be noticed, the load not.
constexpr Duration kDear = std::chrono::milliseconds(1);
constexpr Duration kThrottleMax = std::chrono::seconds(1);
constexpr int kThrottleFactor = 19;  // one part work, nineteen parts rest: a twentieth
// Ten thousand services of one job may be due at once; another controller's keys come in between.
constexpr std::size_t kKeysPerTurn = 50;
// After so long a turn plans no more: what has changed meanwhile is looked at first. Where that
// took longer itself, for as long as that.
constexpr Duration kPlanningTime = std::chrono::milliseconds(10);
// What is new is looked at before what has been, unless that has waited longer than this.
constexpr Duration kHeadStart = std::chrono::seconds(1);
constexpr Duration kIdleMax = std::chrono::hours(1);
// So long one that looks at everything waits for the rest of what has happened.
constexpr Duration kPatienceForAll = std::chrono::seconds(1);

// The write may have taken effect all the same.
bool ambiguous(Code code) {
  return code == Code::kTimeout || code == Code::kServiceUnavailable || code == Code::kInternal;
}

// Somebody changed what we looked at: looking again is the remedy, not waiting.
bool outdated(Code code) { return code == Code::kConflict || code == Code::kNotFound; }

std::string_view text_of(const json::object& object, std::string_view field) {
  const json::value* found = object.if_contains(field);
  return found != nullptr && found->is_string() ? json::view(found->get_string())
                                                : std::string_view();
}

std::string_view group_of(std::string_view api_version) {
  const std::size_t slash = api_version.find('/');
  return slash == std::string_view::npos ? std::string_view() : api_version.substr(0, slash);
}

// The creation that the error is about, where the server understood it and would not have it.
std::optional<Refusal> refusal_of(const std::vector<client::Write>& writes, const Error& error) {
  if (!refuses(error.code)) return std::nullopt;
  Refusal out{.message = error.message};
  std::size_t before = 0;
  bool any = false;
  for (const client::Write& write : writes) {
    if (write.verb != client::Verb::kCreate || !write.subresource.empty()) continue;
    any = true;
    if (!error.name.empty() && api::name(write.body) == error.name) out.allowed = before;
    ++before;
  }
  if (!any) return std::nullopt;
  return out;
}

}  // namespace

Runtime::Runtime(client::Client& client, const env::Clock& clock, RuntimeOptions options)
    : client_(client),
      clock_(clock),
      options_(std::move(options)),
      lookup_([this](const std::string& resource) { return cache(resource); }),
      events_(client, clock) {}

Runtime::~Runtime() = default;

const Cache* Runtime::cache(const std::string& resource_key) const {
  const auto it = feeds_.find(resource_key);
  return it == feeds_.end() ? nullptr : it->second.cache.get();
}

void Runtime::subscribe(const api::Resource& resource, Subscriber subscriber) {
  Feed& feed = feeds_[resource.key()];
  if (feed.cache == nullptr) {
    feed.cache = std::make_unique<Cache>(client_, resource, options_.wake);
  } else {
    // A second subscriber must hear of what the first already knows.
    for (const Key& key : feed.cache->keys()) {
      deliver(subscriber, {.after = feed.cache->get(key)});
    }
  }
  feed.subscribers.push_back(subscriber);
  members_[subscriber.member]->resources.push_back(resource.key());
}

void Runtime::add(Controller controller) {
  const std::size_t index = members_.size();
  members_.push_back(std::make_unique<Member>());
  members_.back()->keyed = controller;
  // All before the first subscription: it may tell of roots at once.
  for (const Related& related : controller.seen) members_.back()->joins.emplace_back(related);
  subscribe(controller.root, {.member = index, .which = 0});
  for (std::size_t i = 0; i < controller.owned.size(); ++i) {
    subscribe(controller.owned[i], {.member = index, .which = i + 1});
  }
  for (std::size_t i = 0; i < controller.seen.size(); ++i) {
    subscribe(controller.seen[i].resource,
              {.member = index, .which = controller.owned.size() + 1 + i});
  }
}

void Runtime::add(GlobalController controller) {
  const std::size_t index = members_.size();
  members_.push_back(std::make_unique<Member>());
  members_.back()->global = controller;
  for (std::size_t i = 0; i < controller.watched.size(); ++i) {
    subscribe(controller.watched[i], {.member = index, .which = i});
  }
  mark(index, {}, clock_.elapsed());
}

Duration Runtime::pump() {
  cost_ = {};
  Duration at = clock_.elapsed();
  const auto lap = [&] {
    const Duration before = std::exchange(at, clock_.elapsed());
    return at - before;
  };
  poll_feeds();
  cost_.feeds = lap();
  open_barriers();
  cost_.barriers = lap();
  plan_due();
  cost_.plans = lap();
  const bool unsent = send_batches();
  cost_.batches = lap();
  const bool unrecorded = tell_notes();
  const bool untold = events_.write_some() || unrecorded;
  cost_.events = lap();
  for (auto& [name, feed] : feeds_) feed.cache->let_rest(at);
  if (options_.turned) options_.turned(cost_);
  const bool more =
      std::ranges::any_of(feeds_, [](const auto& entry) { return entry.second.cache->more(); });
  return untold || more || unsent ? Duration{0} : until_next();
}

void Runtime::poll_feeds() {
  const Duration started = clock_.elapsed();
  for (auto& [name, feed] : feeds_) poll_feed(name, feed);
  for (int portion = 1; portion < kPortionsPerTurn; ++portion) {
    auto at = feeds_.lower_bound(first_feed_);
    for (std::size_t i = 0; i < feeds_.size(); ++i, ++at) {
      if (at == feeds_.end()) at = feeds_.begin();
      auto& [name, feed] = *at;
      if (!feed.cache->more()) continue;
      if (clock_.elapsed() - started >= kFeedingTime) {
        first_feed_ = name;
        return;
      }
      poll_feed(name, feed);
    }
  }
}

void Runtime::poll_feed(const std::string& name, Feed& feed) {
  if (feed.retry_at > clock_.elapsed()) return;
  auto changes = feed.cache->poll(clock_.elapsed());
  if (!changes) {
    feed.retry_at = clock_.elapsed() + backoff(feed.failures++, kFeedBackoffMax);
    return options_.log(fmt::format("cannot observe {}: {}", name, changes.error().message));
  }
  feed.failures = feed.cache->broken() ? feed.failures + 1 : 0;
  if (feed.cache->broken()) {
    feed.retry_at = clock_.elapsed() + backoff(feed.failures, kFeedBackoffMax);
  }
  for (const Change& change : *changes) {
    for (const Subscriber& subscriber : feed.subscribers) deliver(subscriber, change);
  }
}

void Runtime::deliver(const Subscriber& subscriber, const Change& change) {
  Member& member = *members_[subscriber.member];
  const auto told = guarded([&] {
    if (member.keyed) return deliver_to_key(subscriber, change);
    member.global->changed(subscriber.which, change.before, change.after);
  });
  if (!told) complain(member, change.after, told.error());
  if (member.global) mark(subscriber.member, {}, clock_.elapsed());
}

void Runtime::deliver_to_key(const Subscriber& subscriber, const Change& change) {
  Member& member = *members_[subscriber.member];
  if (subscriber.which > member.keyed->owned.size()) return deliver_to_watchers(subscriber, change);
  if (subscriber.which == 0) {
    for (Join& join : member.joins) join.root_changed(change.before, change.after);
    const Key key = key_of(change.after != nullptr ? *change.after : *change.before);
    // A person who changes the object does not wait for an old failure's back-off.
    const auto item = member.items.find(key);
    const auto generation = [](const Object& object) {
      return object == nullptr ? std::nullopt : json::get_int(*object, {"metadata", "generation"});
    };
    if (item != member.items.end() && generation(change.before) != generation(change.after)) {
      item->second.not_before = {};
      item->second.failures = 0;
    }
    return mark(subscriber.member, key, clock_.elapsed());
  }
  deliver_to_owner(subscriber, change);
}

void Runtime::deliver_to_owner(const Subscriber& subscriber, const Change& change) {
  const Member& member = *members_[subscriber.member];
  for (const Object& object : {change.before, change.after}) {
    const json::object* owner = object == nullptr ? nullptr : api::controller_of(*object);
    if (owner == nullptr) continue;
    const api::Resource& root = member.keyed->root;
    if (text_of(*owner, "kind") != root.kind) continue;
    if (group_of(text_of(*owner, "apiVersion")) != root.group) continue;
    mark(subscriber.member,
         {.ns = root.namespaced ? std::string(api::ns(*object)) : std::string(),
          .name = std::string(text_of(*owner, "name"))},
         clock_.elapsed());
  }
}

void Runtime::deliver_to_watchers(const Subscriber& subscriber, const Change& change) {
  Member& member = *members_[subscriber.member];
  Join& join = member.joins[subscriber.which - member.keyed->owned.size() - 1];
  join.object_changed(change.before, change.after);
  const auto& alike = member.keyed->seen[subscriber.which - member.keyed->owned.size() - 1].alike;
  if (alike && change.before && change.after && alike(*change.before, *change.after)) return;
  for (const Object& object : {change.before, change.after}) {
    if (object == nullptr) continue;
    for (const Key& key : join.roots_of(*object)) mark(subscriber.member, key, clock_.elapsed());
  }
}

void Runtime::mark(std::size_t member, const Key& key, Duration at) {
  const auto [it, fresh] = members_[member]->items.try_emplace(key);
  Item& item = it->second;
  auto& timers = members_[member]->timers;
  // A global controller's only key has none to be ahead of.
  if (fresh && members_[member]->keyed) at -= kHeadStart;
  at = std::max(at, item.not_before);
  if (item.due && *item.due <= at) return;
  if (item.due) timers.erase({*item.due, key});
  item.due = at;
  timers.emplace(at, key);
}

void Runtime::cancel(std::size_t member, const Key& key, Item& item) {
  if (item.due) members_[member]->timers.erase({*item.due, key});
  item.due.reset();
}

void Runtime::open_barriers() {
  const Duration now = clock_.elapsed();
  for (const Blocked::Id& id : blocked_.take(lookup_, now)) {
    Member& member = *members_[id.first];
    Item& item = member.items.at(id.second);
    if (!item.barrier.open(lookup_)) {
      if (now < item.blocked_until) {
        blocked_.add(id, item.barrier, item.blocked_until);
        continue;
      }
      options_.log(fmt::format("{}: {}/{} did not see its own writes in time; listing again",
                               member.keyed ? member.keyed->name : member.global->name,
                               id.second.ns, id.second.name));
      for (const std::string& resource : member.resources) feeds_[resource].cache->distrust();
      poll_feeds();
      item.barrier.clear();
      item.wanted = true;
    }
    item.blocked = false;
    if (std::exchange(item.wanted, false)) mark(id.first, id.second, now);
  }
}

bool Runtime::ready(const Member& member) const {
  // A controller that has seen only half of its world would create what already exists.
  // One that looks at everything waits for the rest of a commit as well: a scheduler would take a
  // gang for incomplete. A key need not; its own writes it waits for by their revision. Where
  // changes never cease it does not wait for ever: a gang that is seen in part is held.
  const bool waits = member.global && !member.timers.empty() &&
                     clock_.elapsed() - member.timers.begin()->first <= kPatienceForAll;
  return std::ranges::all_of(member.resources, [&](const std::string& resource) {
    const Cache& known = *feeds_.at(resource).cache;
    return known.synced() && !(waits && known.more());
  });
}

void Runtime::plan_due() {
  const Duration now = clock_.elapsed();
  struct Due {
    std::size_t member = 0;
    std::vector<Key> keys = {};
  };
  std::vector<Due> due;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    Due next{.member = (first_ + i) % members_.size()};
    const Member& member = *members_[next.member];
    if (member.timers.empty() || member.timers.begin()->first > now || !ready(member)) continue;
    for (const auto& [at, key] : member.timers) {
      if (at > now || next.keys.size() == kKeysPerTurn) break;
      next.keys.push_back(key);
    }
    due.push_back(std::move(next));
  }
  const Duration enough = std::max(kPlanningTime, cost_.feeds);
  // One key of each in turn: a job that is new does not wait behind fifty services.
  for (std::size_t round = 0; round < kKeysPerTurn; ++round) {
    for (const auto& [member, keys] : due) {
      if (round >= keys.size()) continue;
      plan_one(member, keys[round]);
      if (clock_.elapsed() - now < enough) continue;
      first_ = (member + 1) % members_.size();
      return;
    }
  }
}

void Runtime::plan_one(std::size_t index, const Key& key) {
  Member& member = *members_[index];
  const auto it = member.items.find(key);
  if (it == member.items.end()) return;
  const Duration started = clock_.elapsed();
  Item& item = it->second;
  cancel(index, key, item);
  if (item.in_flight > 0 || item.blocked) {
    item.wanted = true;
  } else if (member.global) {
    plan_global(index, item);
  } else {
    plan_key(index, key, item);
  }
  const Duration took = clock_.elapsed() - started;
  if (took <= cost_.dearest_took) return;
  cost_.dearest_took = took;
  cost_.dearest = member.keyed ? member.keyed->name : member.global->name;
}

std::optional<Observed> Runtime::observe(const Member& member, const Key& key) const {
  Observed observed{.root = feeds_.at(member.resources[0]).cache->get(key)};
  if (observed.root == nullptr) return std::nullopt;
  for (std::size_t i = 1; i <= member.keyed->owned.size(); ++i) {
    const Cache& children = *feeds_.at(member.resources[i]).cache;
    observed.owned.push_back(children.owned_by(api::uid(*observed.root),
                                               member.keyed->root.namespaced ? &key.ns : nullptr));
  }
  for (std::size_t i = 0; i < member.joins.size(); ++i) {
    const std::size_t which = member.keyed->owned.size() + 1 + i;
    const Cache& others = *feeds_.at(member.resources[which]).cache;
    observed.seen.push_back(others.get_all(member.joins[i].seen_by(*observed.root)));
  }
  return observed;
}

void Runtime::plan_key(std::size_t index, const Key& key, Item& item) {
  const Duration started = clock_.elapsed();
  Member& member = *members_[index];
  auto looked = guarded([&] { return observe(member, key); });
  if (!looked) return broken(index, key, item, {}, looked.error());
  std::optional<Observed> observed = *std::move(looked);
  if (!observed) {
    member.items.erase(key);
    return;
  }
  item.not_before = {};
  if (item.long_plan && options_.elsewhere) {
    return plan_elsewhere(index, key, item, *std::move(observed), started);
  }
  auto decision = guarded([&] { return decide(*member.keyed, *observed, clock_.now()); });
  if (!decision) return broken(index, key, item, observed->root, decision.error());
  item.long_plan = clock_.elapsed() - started >= options_.long_plan;
  carry_out(index, key, item, *std::move(decision), started);
  // The answer may have come already; the item itself stays until a later pass finds it rootless.
  charge(item, clock_.elapsed() - started);
}

void Runtime::plan_elsewhere(std::size_t index, const Key& key, Item& item, Observed observed,
                             Duration started) {
  struct Work {
    const Controller controller;
    const Time now;
    Observed observed = {};
    const Object root = {};
    Result<Decision> decision = Decision{};
    Duration took = {};
  };
  const Object root = observed.root;
  auto work = std::make_shared<Work>(Work{.controller = *members_[index]->keyed,
                                          .now = clock_.now(),
                                          .observed = std::move(observed),
                                          .root = root});
  item.in_flight = 1;
  const Duration looked = clock_.elapsed() - started;
  options_.elsewhere(
      [work, &clock = clock_] {
        const Duration began = clock.elapsed();
        work->decision =
            guarded([&] { return decide(work->controller, work->observed, work->now); });
        // Here: what the caches have replaced meanwhile is freed with it.
        work->observed = {};
        work->took = clock.elapsed() - began;
      },
      [this, index, key, work, started, looked, weak = std::weak_ptr(alive_)] {
        if (weak.expired()) return;
        const Duration began = clock_.elapsed();
        Item& planned = members_[index]->items.at(key);
        planned.in_flight = 0;
        planned.long_plan = looked + work->took >= options_.long_plan;
        const bool submitted = work->decision && !work->decision->empty;
        if (work->decision) {
          carry_out(index, key, planned, *std::move(work->decision), started);
        } else {
          broken(index, key, planned, work->root, work->decision.error());
        }
        charge(planned, looked + work->took + clock_.elapsed() - began);
        if (!submitted) settle(index, key, planned);
      });
}

void Runtime::carry_out(std::size_t index, const Key& key, Item& item, Decision decision,
                        Duration started) {
  if (decision.requeue_after) mark(index, key, started + *decision.requeue_after);
  if (!decision.empty) {
    item.told.clear();
    return submit(index, key, item, std::move(decision));
  }
  item.failures = 0;
  // Said once, not at every look at an object that stays as it is.
  if (decision.notes == item.told) return;
  for (const Note& note : decision.notes) {
    events_.record(decision.root, members_[index]->keyed->name, note);
  }
  item.told = std::move(decision.notes);
}

void Runtime::submit(std::size_t index, const Key& key, Item& item, Decision decision) {
  item.in_flight = 1;
  std::vector<client::Write> writes = std::move(decision.writes);
  client_.submit(std::move(writes), [this, index, key, decision = std::move(decision),
                                     weak = std::weak_ptr(alive_)](const Answers& answers) {
    if (!weak.expired()) answered(index, key, decision, answers);
  });
}

void Runtime::hear_refusal(std::size_t index, const Key& key, Item& item, Refusal refusal) {
  const Member& member = *members_[index];
  auto looked = guarded([&] { return observe(member, key); });
  if (!looked) return complain(member, {}, looked.error());
  std::optional<Observed> observed = *std::move(looked);
  // What a server without transactions did before is not seen yet and would be done twice.
  if (!observed || !item.barrier.open(lookup_)) return;
  observed->refused = std::move(refusal);
  auto decision = guarded([&] { return decide(*member.keyed, *observed, clock_.now()); });
  if (!decision) return complain(member, observed->root, decision.error());
  if (decision->empty) {
    for (const Note& note : decision->notes) {
      events_.record(decision->root, member.keyed->name, note);
    }
    return;
  }
  submit(index, key, item, *std::move(decision));
}

void Runtime::charge(Item& item, Duration cost) {
  if (cost < kDear) return;
  item.not_before =
      std::max(item.not_before, clock_.elapsed() + std::min(kThrottleMax, cost * kThrottleFactor));
}

void Runtime::expect(Item& item, const std::vector<client::Write>& writes, const Answers& answers) {
  for (std::size_t i = 0; i < answers.size() && i < writes.size(); ++i) {
    if (answers[i]) item.barrier.expect(writes[i], *answers[i], lookup_);
  }
}

void Runtime::answered(std::size_t index, const Key& key, const Decision& decision,
                       const Answers& answers) {
  Member& member = *members_[index];
  const auto it = member.items.find(key);
  if (it == member.items.end()) return;
  Item& item = it->second;
  item.in_flight = 0;
  expect(item, decision.asked, answers);
  if (const Error* error = failure(answers)) {
    if (error->code == Code::kAlreadyExists) {
      report_foreign_child(member, decision, answers);
    }
    failed(index, key, item, *error);
    if (member.keyed->hears_refusals && !decision.after_refusal) {
      if (auto refusal = refusal_of(decision.asked, *error)) {
        hear_refusal(index, key, item, *std::move(refusal));
        if (item.in_flight > 0) return;  // settled by its own answer
      }
    }
  } else {
    // What was done in spite of a refusal does not end its back-off.
    if (!decision.after_refusal) item.failures = 0;
    for (const Note& note : decision.notes) {
      events_.record(decision.root, member.keyed->name, note);
    }
    item.not_before = std::max(item.not_before, clock_.elapsed() + options_.rest);
  }
  settle(index, key, item);
}

void Runtime::settle(std::size_t index, const Key& key, Item& item) {
  if (!item.barrier.open(lookup_)) {
    // What was written after a refusal may have been answered, and settled, within the answer that
    // told of the refusal.
    if (item.blocked) return;
    item.blocked = true;
    item.blocked_until = clock_.elapsed() + options_.barrier_timeout;
    blocked_.add({index, key}, item.barrier, item.blocked_until);
  } else if (std::exchange(item.wanted, false)) {
    mark(index, key, clock_.elapsed());
  }
}

void Runtime::failed(std::size_t index, const Key& key, Item& item, const Error& error) {
  const Member& member = *members_[index];
  const Duration now = clock_.elapsed();
  const Duration wait = wait_after(item.failures++, error);
  options_.log(fmt::format("{}: {}/{}: {} (attempt {})",
                           member.keyed ? member.keyed->name : member.global->name, key.ns,
                           key.name, error.message, item.failures));
  doubt(member, error);
  // Whoever changed the object causes an event that marks this key; the timer is for the case that
  // the event came first. A key that keeps losing backs off like any other.
  constexpr unsigned kPatience = 5;
  if (!outdated(error.code) || item.failures > kPatience) {
    item.not_before = now + wait;
    cancel(index, key, item);  // a timer from before would not know of it
  }
  mark(index, key, now + wait);
}

void Runtime::doubt(const Member& member, const Error& error) {
  // Nobody tells us which revision to wait for, so only a fresh list shows what was done: planning
  // from what is cached could give away the same room twice.
  if (!ambiguous(error.code)) return;
  for (const std::string& resource : member.resources) feeds_.at(resource).cache->distrust();
}

void Runtime::report_foreign_child(const Member& member, const Decision& decision,
                                   const Answers& answers) {
  const Error* error = failure(answers);
  for (std::size_t i = 0; i < decision.asked.size(); ++i) {
    const client::Write& write = decision.asked[i];
    if (write.verb != client::Verb::kCreate) continue;
    const Key key{.ns = write.ns, .name = std::string(api::name(write.body))};
    const bool culprit = error->name.empty() ? i + 1 == answers.size() : error->name == key.name;
    const Cache* children = culprit ? cache(write.resource.key()) : nullptr;
    const Object there = children == nullptr ? nullptr : children->get(key);
    // Not in the cache: most likely our own, made before a restart and not heard of yet.
    if (there == nullptr || api::controlled_by(*there, api::uid(*decision.root))) continue;
    events_.record(decision.root, member.keyed->name,
                   {.warning = true,
                    .reason = "FailedCreate",
                    .message = fmt::format("{} \"{}\" already exists and is not controlled by {} "
                                           "\"{}\"; rename or delete it",
                                           write.resource.plural, key.name, member.keyed->root.kind,
                                           api::name(*decision.root))});
  }
}

Duration Runtime::until_next() const {
  const Duration now = clock_.elapsed();
  Duration next = std::min(now + kIdleMax, blocked_.next().value_or(Duration::max()));
  for (const auto& member : members_) {
    if (member->timers.empty() || member->timers.begin()->first >= next) continue;
    // A member that cannot see its world yet is woken by the feeds, not by its own timers.
    if (ready(*member)) next = member->timers.begin()->first;
  }
  for (const auto& [name, feed] : feeds_) {
    if (feed.failures > 0) next = std::min(next, feed.retry_at);
    next = std::min(next, feed.cache->next_rest().value_or(Duration::max()));
  }
  return std::max(Duration{0}, next - now);
}

}  // namespace skiff::control
