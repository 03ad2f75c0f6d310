#include "assembly/upkeep.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "assembly/log.h"
#include "base/guarded.h"

namespace skiff::assembly {
namespace {

constexpr Duration kTick = std::chrono::seconds(1);
// One pass may leave work for the next; whoever stops the platform does not wait for all of it.
constexpr int kPassesPerTurn = 50;
constexpr Duration kComplaintsApart = std::chrono::minutes(1);

}  // namespace

Upkeep::Upkeep(store::Store& store, const env::Clock& clock, std::function<bool()> collect,
               std::function<void()> tick)
    : clock_(clock), collect_(std::move(collect)), tick_(std::move(tick)) {
  watch_ = store.subscribe_all(store::Horizon::kCommitted, [this] {
    if (!due_.exchange(true)) loop_.wake();
  });
  loop_.start([this] { return turn(); });
}

Upkeep::~Upkeep() {
  watch_.reset();
  loop_.stop();
}

bool Upkeep::collect() {
  const auto did = guarded([&] { return collect_(); });
  if (!did) complain("collecting garbage", did.error().message);
  return did.value_or(false);
}

void Upkeep::tick() {
  const auto done = guarded([&] { tick_(); });
  if (!done) complain("the upkeep of every second", done.error().message);
}

void Upkeep::complain(std::string_view about, std::string_view message) {
  std::string line = fmt::format("{}: {}", about, message);
  const Duration now = clock_.elapsed();
  if (line == complaint_ && now < next_complaint_) return;
  log_line(line);
  complaint_ = std::move(line);
  next_complaint_ = now + kComplaintsApart;
}

Duration Upkeep::turn() {
  Duration now = clock_.elapsed();
  if (now >= next_tick_) {
    next_tick_ = now + kTick;
    due_ = true;
    tick();
  }
  if (due_ && now >= next_pass_) {
    due_ = false;  // before the first pass: what is committed meanwhile may come too late for it
    for (int pass = 0; pass < kPassesPerTurn && collect(); ++pass) {
    }
    now = clock_.elapsed();
    next_pass_ = now + kPace;
  }
  const Duration next = due_ ? std::min(next_pass_, next_tick_) : next_tick_;
  return std::max(Duration{0}, next - now);
}

}  // namespace skiff::assembly
