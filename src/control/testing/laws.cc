#include "control/testing/laws.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "api/meta.h"
#include "control/apply.h"
#include "control/cache.h"
#include "control/testing/memory_server.h"
#include "env/sim/clock.h"

namespace skiff::control::testing {
namespace {

constexpr std::size_t kNoCut = static_cast<std::size_t>(-1);

bool same(const client::Write& a, const client::Write& b) {
  return a.verb == b.verb && a.resource == b.resource && a.ns == b.ns && a.name == b.name &&
         a.subresource == b.subresource && a.body == b.body && a.uid == b.uid &&
         a.resource_version == b.resource_version;
}

bool same(const Plan& a, const Plan& b) {
  return std::ranges::equal(a.writes, b.writes,
                            [](const auto& x, const auto& y) { return same(x, y); }) &&
         a.status == b.status && a.delete_root == b.delete_root && a.notes == b.notes &&
         a.requeue_after == b.requeue_after;
}

std::string describe(const client::Write& write) {
  static constexpr std::string_view kVerbs[] = {"create", "update", "patch",
                                                "patch",  "apply",  "delete"};
  const std::string_view name =
      write.name.empty() ? api::name(write.body) : std::string_view(write.name);
  return fmt::format("{} {} {}/{}", kVerbs[static_cast<std::size_t>(write.verb)],
                     write.resource.plural, write.ns, name);
}

// One life of the controller in one world.
class Run {
 public:
  Run(const LawCase& law_case, std::uint64_t seed, std::size_t cut, bool stale)
      : case_(law_case),
        random_(seed),
        whims_(seed ^ 0x5eed),
        cut_(cut),
        stale_(stale),
        server_(law_case.server ? law_case.server(clock_, seed)
                                : std::make_unique<MemoryServer>(clock_, seed)) {}

  // The first broken law, as a sentence.
  std::optional<std::string> go() {
    case_.arrange(*server_, random_);
    for (unsigned i = 0; i < case_.steps_max && !broken_; ++i) {
      settle();
      if (broken_) break;
      if (!case_.step(*server_, clock_.now(), random_)) {
        if (!wake_after_) return finish();
        // Only time can change something now.
        clock_.advance(std::max<Duration>(*wake_after_, std::chrono::milliseconds(1)));
        continue;
      }
      clock_.advance(std::chrono::seconds(1));
    }
    if (!broken_) {
      broken_ = fmt::format("convergent: no end after {} steps: {}", case_.steps_max,
                            case_.wrong(*server_).value_or("the end state itself is right"));
    }
    return broken_;
  }

  std::size_t writes() const { return writes_; }

 private:
  std::optional<std::string> finish() {
    if (broken_) return broken_;
    if (auto wrong = case_.wrong(*server_)) return fmt::format("convergent: {}", *wrong);
    return std::nullopt;
  }

  void settle() {
    // Acting on an old observation is a disturbance: it comes first and the rounds count after it.
    may_be_stale_ = stale_;
    for (unsigned round = 0; round < case_.settle_rounds + (stale_ ? 1 : 0); ++round) {
      bool busy = false;
      wake_after_.reset();
      for (const Observed& observed : observe()) {
        busy |= turn(observed);
        if (broken_) return;
      }
      may_be_stale_ = false;
      if (case_.never && !broken_) broken_ = case_.never(*server_);
      if (!busy || broken_) return;
    }
    broken_ = fmt::format("idempotent: still writes after {} rounds without any change: {}",
                          case_.settle_rounds, last_);
  }

  std::vector<Observed> observe() {
    std::vector<Observed> out;
    const auto roots = server_->list(case_.controller.root, {}, {});
    for (const Object& root : roots->items) {
      Observed observed{.root = root};
      for (const api::Resource& resource : case_.controller.owned) {
        auto& children = observed.owned.emplace_back();
        for (const Object& object : server_->list(resource, api::ns(*root), {})->items) {
          if (api::controlled_by(*object, api::uid(*root))) children.push_back(object);
        }
      }
      for (const Related& related : case_.controller.seen) {
        observed.seen.push_back(look(related, *root));
      }
      out.push_back(std::move(observed));
    }
    return out;
  }

  std::vector<Object> look(const Related& related, const json::value& root) {
    const std::vector<std::string> wants = related.wants(root);
    std::vector<Object> out;
    if (wants.empty()) return out;
    const std::string ns(related.resource.namespaced ? api::ns(root) : std::string_view());
    for (const Object& object : server_->list(related.resource, ns, {})->items) {
      const std::vector<std::string> has = related.has(*object);
      const auto had = [&](const std::string& word) { return std::ranges::count(has, word) > 0; };
      if (std::ranges::all_of(wants, had)) out.push_back(object);
    }
    return out;
  }

  // Plans and applies for one root; true if something was written.
  bool turn(const Observed& observed) {
    const Plan plan = case_.controller.plan(observed, clock_.now());
    if (!same(plan, case_.controller.plan(observed, clock_.now()))) {
      broken_ = "idempotent: two plans from the same observation differ";
      return false;
    }
    if (plan.requeue_after) {
      wake_after_ = std::min(wake_after_.value_or(*plan.requeue_after), *plan.requeue_after);
    }
    check_ownership(observed, plan);
    if (broken_) return false;
    if (may_be_stale_ && whims_.chance(50) && act_on_old(observed, plan)) return true;
    remember(observed);
    if (plan.empty()) return false;
    std::vector<client::Write> writes = arrange(case_.controller, observed, plan);
    last_ = describe(writes.front());
    if (cut_ >= writes_ && cut_ - writes_ < writes.size()) {
      writes.resize(cut_ - writes_);
      cut_ = kNoCut;
    }
    writes_ += writes.size();
    if (writes.empty()) return true;
    server_->submit(std::move(writes), [this](const std::vector<Result<json::value>>& answers) {
      // The observation is fresh and nobody else writes: a refusal is the controller's mistake.
      if (!answers.empty() && !answers.back()) {
        broken_ =
            fmt::format("convergent: {} was refused: {}", last_, answers.back().error().message);
      }
    });
    return true;
  }

  void remember(const Observed& observed) {
    auto& known = history_[std::string(api::uid(*observed.root))];
    known.push_back(observed);
    if (known.size() > 50) known.erase(known.begin() + static_cast<long>(whims_.below(50)));
  }

  // Applies a plan made from an earlier observation, write by write as on a remote server.
  bool act_on_old(const Observed& fresh, const Plan& fresh_plan) {
    const auto& known = history_[std::string(api::uid(*fresh.root))];
    if (known.empty()) return false;
    const Observed& old = known[whims_.below(known.size())];
    const Plan plan = case_.controller.plan(old, clock_.now());
    if (plan.empty()) return false;
    std::set<std::string> doomed;
    for (const client::Write& write : arrange(case_.controller, fresh, fresh_plan)) {
      if (write.verb == client::Verb::kDelete) doomed.insert(write.uid);
    }
    std::set<std::string> alive{std::string(api::uid(*fresh.root))};
    for (const Object& child : in_its_hands(fresh)) {
      if (!api::deleting(*child)) alive.emplace(api::uid(*child));
    }
    for (const client::Write& write : arrange(case_.controller, old, plan)) {
      if (!server_->write(write)) break;
      const bool should_live = alive.contains(write.uid) && !doomed.contains(write.uid);
      if (write.verb == client::Verb::kDelete && should_live) {
        broken_ = fmt::format("stale-safe: {} succeeded from an old observation", describe(write));
      }
    }
    return true;
  }

  // What it controls, and what it said that it writes besides.
  std::vector<Object> in_its_hands(const Observed& observed) const {
    std::vector<Object> out;
    for (const auto& children : observed.owned) {
      out.insert(out.end(), children.begin(), children.end());
    }
    for (std::size_t i = 0; i < observed.seen.size(); ++i) {
      if (!case_.controller.seen[i].writes) continue;
      out.insert(out.end(), observed.seen[i].begin(), observed.seen[i].end());
    }
    return out;
  }

  void check_ownership(const Observed& observed, const Plan& plan) {
    std::set<std::string_view> mine{api::uid(*observed.root)};
    for (const Object& child : in_its_hands(observed)) mine.insert(api::uid(*child));
    for (const client::Write& write : arrange(case_.controller, observed, plan)) {
      const bool creates = write.verb == client::Verb::kCreate && write.subresource.empty();
      const bool owns = api::controlled_by(write.body, api::uid(*observed.root)) ||
                        std::ranges::any_of(case_.controller.seen, [&](const Related& related) {
                          return related.writes && related.resource.key() == write.resource.key();
                        });
      const bool right =
          creates ? owns && write.ns == api::ns(*observed.root) : mine.contains(write.uid);
      if (!right) broken_ = fmt::format("ownership: {} is not its own", describe(write));
    }
  }

  const LawCase& case_;
  Random random_;  // drives the world: the same in every run of a seed
  Random whims_;   // drives the faults
  std::size_t cut_;
  const bool stale_;
  bool may_be_stale_ = false;
  env::sim::Clock clock_ = env::sim::Clock();
  std::unique_ptr<client::Client> server_;
  std::map<std::string, std::vector<Observed>> history_ = {};
  std::size_t writes_ = 0;
  std::string last_ = {};
  std::optional<Duration> wake_after_ = {};
  std::optional<std::string> broken_ = {};
};

}  // namespace

std::vector<std::string> check_laws(const LawCase& law_case, std::uint64_t seeds) {
  std::vector<std::string> out;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    Run plain(law_case, seed, kNoCut, false);
    if (auto broken = plain.go()) {
      out.push_back(fmt::format("seed {}: {}", seed, *broken));
      continue;  // the other runs would only say it again
    }
    const std::size_t total = plain.writes();
    const std::size_t stride = 1 + total / std::max(1U, law_case.cuts_max);
    // Another offset for each seed, so that together they try every write.
    for (std::size_t cut = seed % stride; cut < total; cut += stride) {
      if (auto broken = Run(law_case, seed, cut, false).go()) {
        out.push_back(
            fmt::format("seed {}: crash-safe: cut before write {}: {}", seed, cut, *broken));
        break;
      }
    }
    if (auto broken = Run(law_case, seed, kNoCut, true).go()) {
      const bool named = broken->starts_with("stale-safe");
      out.push_back(fmt::format("seed {}: {}{}", seed, named ? "" : "stale-safe: ", *broken));
    }
  }
  return out;
}

}  // namespace skiff::control::testing
