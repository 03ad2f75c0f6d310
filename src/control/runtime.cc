#include "control/runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/meta.h"
#include "control/apply.h"

namespace skiff::control {
namespace {

constexpr Duration kBackoffMin = std::chrono::milliseconds(5);
constexpr Duration kBackoffMax = std::chrono::seconds(60);
constexpr Duration kFeedBackoffMax = std::chrono::seconds(10);
// Plans cheaper than this are not worth spreading out: the delay would be noticed, the load not.
constexpr Duration kDear = std::chrono::milliseconds(1);
constexpr Duration kThrottleMax = std::chrono::seconds(1);
constexpr int kThrottleFactor = 19;  // one part work, nineteen parts rest: a twentieth
constexpr Duration kIdleMax = std::chrono::hours(1);

Duration backoff(unsigned failures, Duration max) {
  // 2^20 times the minimum is past any maximum, and the shift stays far from overflow.
  return std::min(max, kBackoffMin * (std::int64_t{1} << std::min(failures, 20U)));
}

Duration wait_after(unsigned failures, const Error& error) {
  return std::max<Duration>(backoff(failures, kBackoffMax),
                            std::chrono::seconds(error.retry_after_s.value_or(0)));
}

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

// The failing write is the last one tried; those before it may carry errors too, because a
// transaction that fails undoes them.
const Error* failure(const std::vector<Result<json::value>>& answers) {
  return answers.empty() || answers.back() ? nullptr : &answers.back().error();
}

// Asking again soon is no use: the server understood it and would not have it.
bool refuses(Code code) { return code == Code::kForbidden || code == Code::kInvalid; }

// What a batch is known by from plan to plan: what it does first.
std::string title(const Batch& batch) {
  if (batch.writes.empty()) return {};
  const client::Write& write = batch.writes.front();
  return fmt::format("{} {} {}/{}", static_cast<int>(write.verb), write.resource.key(), write.ns,
                     write.name.empty() ? api::name(write.body) : std::string_view(write.name));
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
    for (const auto& [key, object] : feed.cache->objects()) {
      deliver(subscriber, {.after = object});
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
  poll_feeds();
  open_barriers();
  plan_due();
  return until_next();
}

void Runtime::poll_feeds() {
  for (auto& [name, feed] : feeds_) {
    if (feed.retry_at > clock_.elapsed()) continue;
    auto changes = feed.cache->poll();
    if (!changes) {
      feed.retry_at = clock_.elapsed() + backoff(feed.failures++, kFeedBackoffMax);
      options_.log(fmt::format("cannot observe {}: {}", name, changes.error().message));
      continue;
    }
    feed.failures = feed.cache->broken() ? feed.failures + 1 : 0;
    if (feed.cache->broken()) {
      feed.retry_at = clock_.elapsed() + backoff(feed.failures, kFeedBackoffMax);
    }
    for (const Change& change : *changes) {
      for (const Subscriber& subscriber : feed.subscribers) deliver(subscriber, change);
    }
  }
}

void Runtime::deliver(const Subscriber& subscriber, const Change& change) {
  Member& member = *members_[subscriber.member];
  if (member.keyed) return deliver_to_key(subscriber, change);
  member.global->changed(subscriber.which, change.before, change.after);
  mark(subscriber.member, {}, clock_.elapsed());
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
  Item& item = members_[member]->items[key];
  at = std::max(at, item.not_before);
  if (item.due && *item.due <= at) return;
  if (item.due) timers_.erase({*item.due, member, key});
  item.due = at;
  timers_.emplace(at, member, key);
}

void Runtime::cancel(std::size_t member, const Key& key, Item& item) {
  if (item.due) timers_.erase({*item.due, member, key});
  item.due.reset();
}

void Runtime::open_barriers() {
  const Duration now = clock_.elapsed();
  for (auto it = blocked_.begin(); it != blocked_.end();) {
    Member& member = *members_[it->first];
    Item& item = member.items.at(it->second);
    if (!item.barrier.open(lookup_)) {
      if (now < item.blocked_until) {
        ++it;
        continue;
      }
      options_.log(fmt::format("{}: {}/{} did not see its own writes in time; listing again",
                               member.keyed ? member.keyed->name : member.global->name,
                               it->second.ns, it->second.name));
      for (const std::string& resource : member.resources) feeds_[resource].cache->distrust();
      poll_feeds();
      item.barrier.clear();
      item.wanted = true;
    }
    item.blocked = false;
    if (std::exchange(item.wanted, false)) mark(it->first, it->second, now);
    it = blocked_.erase(it);
  }
}

bool Runtime::ready(const Member& member) const {
  // A controller that has seen only half of its world would create what already exists.
  return std::ranges::all_of(member.resources, [&](const std::string& resource) {
    return feeds_.at(resource).cache->synced();
  });
}

void Runtime::plan_due() {
  const Duration now = clock_.elapsed();
  std::vector<std::pair<std::size_t, Key>> due;
  for (const auto& [at, member, key] : timers_) {
    if (at > now) break;
    if (ready(*members_[member])) due.emplace_back(member, key);
  }
  for (const auto& [index, key] : due) {
    Member& member = *members_[index];
    const auto it = member.items.find(key);
    if (it == member.items.end()) continue;
    Item& item = it->second;
    cancel(index, key, item);
    if (item.in_flight > 0 || item.blocked) {
      item.wanted = true;
    } else if (member.global) {
      plan_global(index, item);
    } else {
      plan_key(index, key, item);
    }
  }
}

std::optional<Observed> Runtime::observe(const Member& member, const Key& key) const {
  Observed observed{.root = feeds_.at(member.resources[0]).cache->get(key)};
  if (observed.root == nullptr) return std::nullopt;
  for (std::size_t i = 1; i <= member.keyed->owned.size(); ++i) {
    auto owned = feeds_.at(member.resources[i]).cache->owned_by(api::uid(*observed.root));
    if (member.keyed->root.namespaced) {
      std::erase_if(owned, [&](const Object& object) { return api::ns(*object) != key.ns; });
    }
    observed.owned.push_back(std::move(owned));
  }
  for (const Join& join : member.joins) observed.seen.push_back(join.seen_by(*observed.root));
  return observed;
}

void Runtime::plan_key(std::size_t index, const Key& key, Item& item) {
  const Duration started = clock_.elapsed();
  Member& member = *members_[index];
  auto observed = observe(member, key);
  if (!observed) {
    member.items.erase(key);
    return;
  }
  item.not_before = {};
  Plan plan = member.keyed->plan(*observed, clock_.now());
  if (plan.requeue_after) mark(index, key, started + *plan.requeue_after);
  if (plan.empty()) {
    item.failures = 0;
    // Said once, not at every look at an object that stays as it is.
    if (plan.notes != item.told) {
      for (const Note& note : plan.notes) events_.record(observed->root, member.keyed->name, note);
      item.told = std::move(plan.notes);
    }
    charge(item, started);
    return;
  }
  item.told.clear();
  submit(index, key, item, *std::move(observed), std::move(plan));
  // The answer may have come already; the item itself stays until a later pass finds it rootless.
  charge(item, started);
}

void Runtime::submit(std::size_t index, const Key& key, Item& item, Observed observed, Plan plan) {
  std::vector<client::Write> writes = arrange(*members_[index]->keyed, observed, plan);
  item.in_flight = 1;
  client_.submit(writes, [this, index, key, observed = std::move(observed), writes,
                          notes = std::move(plan.notes),
                          weak = std::weak_ptr(alive_)](const Answers& answers) {
    if (weak.expired()) return;
    answered(index, key, observed, writes, notes, answers);
  });
}

void Runtime::hear_refusal(std::size_t index, const Key& key, Item& item, Refusal refusal) {
  const Member& member = *members_[index];
  auto observed = observe(member, key);
  // What a server without transactions did before is not seen yet and would be done twice.
  if (!observed || !item.barrier.open(lookup_)) return;
  observed->refused = std::move(refusal);
  Plan plan = member.keyed->plan(*observed, clock_.now());
  if (plan.empty()) {
    for (const Note& note : plan.notes) events_.record(observed->root, member.keyed->name, note);
    return;
  }
  submit(index, key, item, *std::move(observed), std::move(plan));
}

void Runtime::plan_global(std::size_t index, Item& item) {
  const Duration started = clock_.elapsed();
  Member& member = *members_[index];
  item.not_before = {};
  GlobalPlan plan = member.global->plan(clock_.now());
  if (plan.requeue_after) mark(index, {}, started + *plan.requeue_after);
  std::erase_if(plan.batches, [&](const Batch& batch) {
    const auto held = item.held.find(title(batch));
    if (held == item.held.end() || held->second.until <= started) return false;
    mark(index, {}, held->second.until);
    return true;
  });
  std::erase_if(item.held, [&](const auto& entry) {
    return entry.second.until + kBackoffMax < started;  // nobody plans it any more
  });
  if (plan.batches.empty()) item.failures = 0;
  item.failed.reset();
  // Counted before the first answer can come, so that the first does not look like the last.
  item.in_flight = static_cast<unsigned>(plan.batches.size());
  for (Batch& batch : plan.batches) {
    std::vector<client::Write> writes = batch.writes;
    client_.submit(std::move(writes), [this, index, batch = std::move(batch),
                                       weak = std::weak_ptr(alive_)](const Answers& answers) {
      if (!weak.expired()) batch_answered(index, batch, answers);
    });
  }
  charge(item, started);
}

void Runtime::charge(Item& item, Duration started) {
  const Duration ended = clock_.elapsed();
  const Duration cost = ended - started;
  if (cost < kDear) return;
  item.not_before =
      std::max(item.not_before, ended + std::min(kThrottleMax, cost * kThrottleFactor));
}

void Runtime::expect(Item& item, const std::vector<client::Write>& writes, const Answers& answers) {
  for (std::size_t i = 0; i < answers.size() && i < writes.size(); ++i) {
    if (answers[i]) item.barrier.expect(writes[i], *answers[i], lookup_);
  }
}

void Runtime::answered(std::size_t index, const Key& key, const Observed& observed,
                       const std::vector<client::Write>& writes, const std::vector<Note>& notes,
                       const Answers& answers) {
  Member& member = *members_[index];
  const auto it = member.items.find(key);
  if (it == member.items.end()) return;
  Item& item = it->second;
  item.in_flight = 0;
  expect(item, writes, answers);
  if (const Error* error = failure(answers)) {
    if (error->code == Code::kAlreadyExists) {
      report_foreign_child(member, observed, writes, answers);
    }
    failed(index, key, item, *error);
    if (member.keyed->hears_refusals && !observed.refused) {
      if (auto refusal = refusal_of(writes, *error)) {
        hear_refusal(index, key, item, *std::move(refusal));
        if (item.in_flight > 0) return;  // settled by its own answer
      }
    }
  } else {
    // What was done in spite of a refusal does not end its back-off.
    if (!observed.refused) item.failures = 0;
    for (const Note& note : notes) events_.record(observed.root, member.keyed->name, note);
  }
  settle(index, key, item);
}

void Runtime::batch_answered(std::size_t index, const Batch& batch, const Answers& answers) {
  Member& member = *members_[index];
  Item& item = member.items[{}];
  --item.in_flight;
  expect(item, batch.writes, answers);
  if (const Error* error = failure(answers)) {
    // One that fails again has a back-off of its own. Only new failures, be they ever so many, are
    // one failure of the plan: a plan whose batches are never the same must rest as well.
    const unsigned times = hold(index, item, batch, *error);
    if (times == 1 && !refuses(error->code)) item.failed = *error;
  } else {
    item.held.erase(title(batch));
    for (const auto& [object, note] : batch.notes) {
      events_.record(object, member.global->name, note);
    }
  }
  if (item.in_flight > 0) return;
  if (item.failed) {
    failed(index, {}, item, *item.failed);
  } else {
    item.failures = 0;
  }
  settle(index, {}, item);
}

unsigned Runtime::hold(std::size_t index, Item& item, const Batch& batch, const Error& error) {
  Item::Held& held = item.held[title(batch)];
  held.until = clock_.elapsed() + wait_after(held.failures++, error);
  options_.log(fmt::format("{}: {}: {} (attempt {})", members_[index]->global->name, title(batch),
                           error.message, held.failures));
  doubt(*members_[index], error);
  mark(index, {}, held.until);
  return held.failures;
}

void Runtime::settle(std::size_t index, const Key& key, Item& item) {
  if (!item.barrier.open(lookup_)) {
    item.blocked = true;
    item.blocked_until = clock_.elapsed() + options_.barrier_timeout;
    blocked_.emplace(index, key);
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

void Runtime::report_foreign_child(const Member& member, const Observed& observed,
                                   const std::vector<client::Write>& writes,
                                   const Answers& answers) {
  const Error* error = failure(answers);
  for (std::size_t i = 0; i < writes.size(); ++i) {
    const client::Write& write = writes[i];
    if (write.verb != client::Verb::kCreate) continue;
    const Key key{.ns = write.ns, .name = std::string(api::name(write.body))};
    const bool culprit = error->name.empty() ? i + 1 == answers.size() : error->name == key.name;
    const Cache* children = culprit ? cache(write.resource.key()) : nullptr;
    const Object there = children == nullptr ? nullptr : children->get(key);
    // Not in the cache: most likely our own, made before a restart and not heard of yet.
    if (there == nullptr || api::controlled_by(*there, api::uid(*observed.root))) continue;
    events_.record(observed.root, member.keyed->name,
                   {.warning = true,
                    .reason = "FailedCreate",
                    .message = fmt::format("{} \"{}\" already exists and is not controlled by {} "
                                           "\"{}\"; rename or delete it",
                                           write.resource.plural, key.name, member.keyed->root.kind,
                                           api::name(*observed.root))});
  }
}

Duration Runtime::until_next() const {
  const Duration now = clock_.elapsed();
  Duration next = now + kIdleMax;
  for (const auto& [at, member, key] : timers_) {
    // A member that cannot see its world yet is woken by the feeds, not by its own timers.
    if (at >= next) break;
    if (!ready(*members_[member])) continue;
    next = at;
    break;
  }
  for (const auto& [member, key] : blocked_) {
    next = std::min(next, members_[member]->items.at(key).blocked_until);
  }
  for (const auto& [name, feed] : feeds_) {
    if (feed.failures > 0) next = std::min(next, feed.retry_at);
  }
  return std::max(Duration{0}, next - now);
}

}  // namespace skiff::control
