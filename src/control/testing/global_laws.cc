#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "api/meta.h"
#include "control/cache.h"
#include "control/testing/laws.h"
#include "control/testing/memory_server.h"
#include "env/sim/clock.h"

namespace skiff::control::testing {
namespace {

constexpr std::size_t kNeverCut = static_cast<std::size_t>(-1);
constexpr Duration kShortest = std::chrono::milliseconds(1);

std::string brief(const client::Write& write) {
  return fmt::format("a write to {} {}/{}", write.resource.plural, write.ns,
                     write.name.empty() ? api::name(write.body) : std::string_view(write.name));
}

// Notes are told again as long as they are so; only writes count.
std::vector<std::vector<client::Write>> writes_of(const GlobalPlan& plan) {
  std::vector<std::vector<client::Write>> out;
  for (const Batch& batch : plan.batches) {
    if (!batch.writes.empty()) out.push_back(batch.writes);
  }
  return out;
}

bool alike(const client::Write& a, const client::Write& b) {
  return a.verb == b.verb && a.resource == b.resource && a.ns == b.ns && a.name == b.name &&
         a.subresource == b.subresource && a.body == b.body && a.uid == b.uid &&
         a.resource_version == b.resource_version;
}

// Lives of the controller in one world, the next one after each crash.
class GlobalRun {
 public:
  GlobalRun(const GlobalLawCase& law_case, std::uint64_t seed, std::size_t cut, bool stale)
      : case_(law_case),
        random_(seed),
        whims_(seed ^ 0x5eed),
        cut_(cut),
        stale_(stale),
        server_(clock_, seed) {
    be_born();
  }

  // The first broken law, as a sentence.
  std::optional<std::string> go() {
    case_.arrange(server_, random_);
    settle();
    for (unsigned i = 0; i < case_.steps_max && !broken_; ++i) {
      if (!case_.step(server_, clock_.now(), random_)) {
        stale_ = false;
        settle();
        if (broken_) return broken_;
        if (const auto wrong = case_.wrong(server_)) broken_ = "convergent: " + *wrong;
        return broken_;
      }
      settle();
      pass(case_.step_takes);
    }
    if (!broken_) broken_ = fmt::format("convergent: no end after {} steps", case_.steps_max);
    return broken_;
  }

  std::size_t writes() const { return writes_; }

 private:
  void be_born() {
    controller_ = case_.make();
    known_.assign(controller_.watched.size(), {});
  }

  // It is asked when it wanted to be, and once more at the end.
  void pass(Duration time) {
    while (time > Duration{0} && !broken_) {
      const auto soonest = std::max<Duration>(wake_after_.value_or(time), kShortest);
      const Duration slice = std::min(time, soonest);
      clock_.advance(slice);
      time -= slice;
      settle();
    }
  }

  // Tells the controller what has changed since it was last told.
  void look() {
    for (std::size_t which = 0; which < controller_.watched.size(); ++which) {
      std::map<Key, Object> now;
      for (const Object& object : server_.list(controller_.watched[which], {}, {})->items) {
        now[key_of(*object)] = object;
      }
      auto& known = known_[which];
      for (const auto& [key, before] : known) {
        if (!now.contains(key)) controller_.changed(which, before, nullptr);
      }
      for (const auto& [key, after] : now) {
        const auto before = known.find(key);
        if (before != known.end() && before->second == after) continue;
        controller_.changed(which, before == known.end() ? nullptr : before->second, after);
      }
      known = std::move(now);
    }
  }

  void settle() {
    // It has heard of nothing new and acts all the same; the rounds count when it has.
    if (stale_ && whims_.chance(50)) {
      turn(false);
      return;
    }
    for (unsigned round = 0; round < case_.settle_rounds && !broken_; ++round) {
      look();
      if (!turn(true)) return;
    }
    if (!broken_) {
      broken_ = fmt::format("idempotent: still writes after {} rounds without any change: {}",
                            case_.settle_rounds, last_);
    }
  }

  // Plans and applies; true if something was written.
  bool turn(bool fresh) {
    const GlobalPlan whole = controller_.plan(clock_.now());
    wake_after_ = whole.requeue_after;
    const auto plan = writes_of(whole);
    const auto again = writes_of(controller_.plan(clock_.now()));
    if (!std::ranges::equal(plan, again, [](const auto& a, const auto& b) {
          return std::ranges::equal(a, b, alike);
        })) {
      broken_ = "idempotent: two plans from the same observation differ";
      return false;
    }
    for (const std::vector<client::Write>& batch : plan) {
      if (!apply(batch, fresh)) return true;
    }
    return !plan.empty();
  }

  // False where the process dies or a law is broken.
  bool apply(const std::vector<client::Write>& batch, bool fresh) {
    for (const client::Write& write : batch) {
      if (writes_++ == cut_) {
        be_born();
        return false;
      }
      last_ = brief(write);
      if (!case_.may_write(write)) {
        broken_ = fmt::format("ownership: {} is not its own", last_);
        return false;
      }
      const auto before = server_.get(write.resource, write.ns, write.name);
      const bool allowed =
          write.verb != client::Verb::kDelete || !before || case_.may_delete(server_, *before);
      const auto done = server_.write(write);
      if (done && !allowed) {
        broken_ = fmt::format("{}: it deleted {}", fresh ? "convergent" : "stale-safe", last_);
      }
      if (!done && fresh) {
        broken_ = fmt::format("convergent: {} was refused: {}", last_, done.error().message);
      }
      if (broken_) return false;
      // As on a remote server: what came before stays.
      if (!done) return true;
    }
    return true;
  }

  const GlobalLawCase& case_;
  Random random_;  // drives the world: the same in every run of a seed
  Random whims_;   // drives the faults
  const std::size_t cut_;
  bool stale_;
  env::sim::Clock clock_ = env::sim::Clock();
  MemoryServer server_;
  GlobalController controller_ = {};
  std::vector<std::map<Key, Object>> known_ = {};
  std::optional<Duration> wake_after_ = {};
  std::size_t writes_ = 0;
  std::string last_ = {};
  std::optional<std::string> broken_ = {};
};

}  // namespace

std::vector<std::string> check_laws(const GlobalLawCase& law_case, std::uint64_t seeds) {
  std::vector<std::string> out;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    GlobalRun plain(law_case, seed, kNeverCut, false);
    if (const auto broken = plain.go()) {
      out.push_back(fmt::format("seed {}: {}", seed, *broken));
      continue;  // the other runs would only say it again
    }
    const std::size_t total = plain.writes();
    const std::size_t stride = 1 + total / std::max(1U, law_case.cuts_max);
    for (std::size_t cut = seed % stride; cut < total; cut += stride) {
      if (const auto broken = GlobalRun(law_case, seed, cut, false).go()) {
        out.push_back(
            fmt::format("seed {}: crash-safe: cut before write {}: {}", seed, cut, *broken));
        break;
      }
    }
    if (const auto broken = GlobalRun(law_case, seed, kNeverCut, true).go()) {
      const bool named = broken->starts_with("stale-safe");
      out.push_back(fmt::format("seed {}: {}{}", seed, named ? "" : "stale-safe: ", *broken));
    }
  }
  return out;
}

}  // namespace skiff::control::testing
