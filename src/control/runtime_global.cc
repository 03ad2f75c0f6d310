// The part of the runtime that is about global controllers: plans of many batches.
#include <fmt/format.h>

#include <utility>

#include "api/meta.h"
#include "base/guarded.h"
#include "control/answers.h"
#include "control/runtime.h"

namespace skiff::control {
namespace {

// A scheduler may bind ten thousand pods at once. So long a turn sends, and others' keys come in
// between.
constexpr Duration kSendingTime = std::chrono::milliseconds(10);

// What a batch is known by from plan to plan: what it does first.
std::string title(const Batch& batch) {
  if (batch.writes.empty()) return {};
  const client::Write& write = batch.writes.front();
  return fmt::format("{} {} {}/{}", static_cast<int>(write.verb), write.resource.key(), write.ns,
                     write.name.empty() ? api::name(write.body) : std::string_view(write.name));
}

}  // namespace

void Runtime::plan_global(std::size_t index, Item& item) {
  const Duration started = clock_.elapsed();
  Member& member = *members_[index];
  item.not_before = {};
  auto planned = guarded([&] { return member.global->plan(clock_.now()); });
  if (!planned) return broken(index, {}, item, {}, planned.error());
  GlobalPlan plan = *std::move(planned);
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
  for (Batch& batch : plan.batches) unsent_.push_back({.member = index, .batch = std::move(batch)});
  charge(item, clock_.elapsed() - started);
}

bool Runtime::send_batches() {
  const Duration started = clock_.elapsed();
  while (!unsent_.empty() && clock_.elapsed() - started < kSendingTime) {
    Unsent next = std::move(unsent_.front());
    unsent_.pop_front();
    std::vector<client::Write> writes = std::move(next.batch.writes);
    next.batch.writes = without_bodies(writes);
    client_.submit(std::move(writes), [this, sent = std::move(next),
                                       weak = std::weak_ptr(alive_)](const Answers& answers) {
      if (!weak.expired()) batch_answered(sent.member, sent.batch, answers);
    });
  }
  return !unsent_.empty();
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

}  // namespace skiff::control
