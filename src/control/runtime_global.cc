// The part of the runtime that is about global controllers: plans of many batches.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "api/meta.h"
#include "base/guarded.h"
#include "control/answers.h"
#include "control/runtime.h"

namespace skiff::control {
namespace {

// A scheduler may bind ten thousand pods at once. So long a turn sends, and others' keys come in
// between.
constexpr Duration kSendingTime = std::chrono::milliseconds(10);
// And so long it writes down what is to be told of them.
constexpr Duration kTellingTime = std::chrono::milliseconds(5);

// What a batch is known by from plan to plan: what it does first.
std::string title(const Batch& batch) {
  if (batch.writes.empty()) return {};
  const client::Write& write = batch.writes.front();
  return fmt::format("{} {} {}/{}", static_cast<int>(write.verb), write.resource.key(), write.ns,
                     write.name.empty() ? api::name(write.body) : std::string_view(write.name));
}

}  // namespace

struct Runtime::Packed {
  std::vector<Unsent> batches = {};
  std::optional<Duration> requeue_after = {};

  // True where some hold no more.
  bool drop_outdated(const PlanApart& apart) {
    if (!apart.holds) return false;
    return std::erase_if(batches,
                         [&](const Unsent& unsent) { return !apart.holds(unsent.writes); }) > 0;
  }
};

Runtime::Packed Runtime::pack(std::size_t index, GlobalPlan plan) {
  Packed out{.requeue_after = plan.requeue_after};
  out.batches.reserve(plan.batches.size());
  for (Batch& batch : plan.batches) {
    std::vector<client::Write> writes = std::move(batch.writes);
    batch.writes = without_bodies(writes);
    out.batches.push_back(
        {.member = index, .writes = std::move(writes), .batch = std::move(batch)});
  }
  return out;
}

void Runtime::plan_global(std::size_t index, Item& item) {
  const Duration started = clock_.elapsed();
  const GlobalController& global = *members_[index]->global;
  item.not_before = {};
  // What lost a race would lose the next one as well: that plan is made from the newest books.
  const bool lost = std::ranges::any_of(
      item.held, [&](const auto& entry) { return entry.second.until <= started; });
  const bool again = std::exchange(item.outdated, false) || lost;
  if (options_.elsewhere && global.plan_apart && !again) {
    auto apart = guarded([&] { return global.plan_apart(clock_.now()); });
    if (!apart) return broken(index, {}, item, {}, apart.error());
    if (apart->plan) return plan_global_elsewhere(index, item, *std::move(apart), started);
  }
  auto planned = guarded([&] { return global.plan(clock_.now()); });
  if (!planned) return broken(index, {}, item, {}, planned.error());
  enqueue(index, item, pack(index, *std::move(planned)), started);
  charge(item, clock_.elapsed() - started);
}

void Runtime::plan_global_elsewhere(std::size_t index, Item& item, PlanApart apart,
                                    Duration started) {
  struct Work {
    PlanApart apart = {};
    Result<Packed> packed = Packed{};
  };
  auto work = std::make_shared<Work>(Work{.apart = std::move(apart)});
  item.in_flight = 1;
  const Duration looked = clock_.elapsed() - started;
  options_.elsewhere(
      [work, index] {
        work->packed = guarded([&] { return pack(index, work->apart.plan()); });
        work->apart.plan = {};  // here: what it was made from is freed with it
      },
      [this, index, work, started, looked, weak = std::weak_ptr(alive_)] {
        if (weak.expired()) return;
        const Duration began = clock_.elapsed();
        Item& planned = members_[index]->items.at({});
        planned.in_flight = 0;
        Result<Packed>& packed = work->packed;
        const auto dropped = guarded([&] { return packed && packed->drop_outdated(work->apart); });
        if (!packed || !dropped) {
          broken(index, {}, planned, {}, packed ? dropped.error() : packed.error());
        } else {
          planned.outdated = *dropped;
          planned.wanted |= *dropped;
          enqueue(index, planned, *std::move(packed), started);
        }
        charge(planned, looked + clock_.elapsed() - began);  // of the loop's time it took no more
        if (planned.in_flight == 0) settle(index, {}, planned);
      });
}

void Runtime::enqueue(std::size_t index, Item& item, Packed packed, Duration started) {
  if (packed.requeue_after) mark(index, {}, started + *packed.requeue_after);
  std::erase_if(packed.batches, [&](const Unsent& unsent) {
    if (item.held.empty()) return false;
    const auto held = item.held.find(title(unsent.batch));
    if (held == item.held.end() || held->second.until <= started) return false;
    mark(index, {}, held->second.until);
    return true;
  });
  std::erase_if(item.held, [&](const auto& entry) {
    return entry.second.until + kBackoffMax < started;  // nobody plans it any more
  });
  if (packed.batches.empty()) item.failures = 0;
  item.failed.reset();
  // Counted before the first answer can come, so that the first does not look like the last.
  item.in_flight = static_cast<unsigned>(packed.batches.size());
  std::ranges::move(packed.batches, std::back_inserter(unsent_));
}

bool Runtime::send_batches() {
  const Duration started = clock_.elapsed();
  while (!unsent_.empty() && clock_.elapsed() - started < kSendingTime) {
    const auto sent = std::make_shared<Unsent>(std::move(unsent_.front()));
    unsent_.pop_front();
    client_.submit(std::move(sent->writes),
                   [this, sent, weak = std::weak_ptr(alive_)](const Answers& answers) {
                     if (!weak.expired()) batch_answered(*sent, answers);
                   });
  }
  return !unsent_.empty();
}

// A note costs a hash and a reference; a gang of ten thousand has as many.
bool Runtime::tell_notes() {
  const Duration started = clock_.elapsed();
  while (!untold_.empty() && clock_.elapsed() - started < kTellingTime) {
    const auto& [member, note, at] = untold_.front();
    events_.record(note.object, members_[member]->global->name, note.note, at);
    untold_.pop_front();
  }
  return !untold_.empty();
}

void Runtime::batch_answered(Unsent& sent, const Answers& answers) {
  const std::size_t index = sent.member;
  const Batch& batch = sent.batch;
  Item& item = members_[index]->items[{}];
  --item.in_flight;
  expect(item, batch.writes, answers);
  if (const Error* error = failure(answers)) {
    // One that fails again has a back-off of its own. Only new failures, be they ever so many, are
    // one failure of the plan: a plan whose batches are never the same must rest as well.
    const unsigned times = hold(index, item, batch, *error);
    if (times == 1 && !refuses(error->code)) item.failed = *error;
  } else {
    item.held.erase(title(batch));
    // They are told later; a pod may have started by then.
    const Time now = clock_.now();
    for (ObjectNote& note : sent.batch.notes) untold_.emplace_back(index, std::move(note), now);
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

}  // namespace skiff::control
