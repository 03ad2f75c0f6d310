#include "sim/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "api/meta.h"
#include "scheduler/controller.h"
#include "sim/resources.h"

namespace skiff::sim {
namespace {

// A round that never lets time pass is a loop of its own making.
constexpr unsigned kRoundsPerInstant = 2000;
constexpr Duration kInstant = std::chrono::milliseconds(1);

}  // namespace

Options Options::from_seed(std::uint64_t seed) {
  Random random(seed ^ 0x0b7105);
  Options out{.seed = seed};
  out.nodes = 1 + static_cast<unsigned>(random.below(4));
  out.cpus = 2 + static_cast<unsigned>(random.below(7));
  // Every tenth run has no faults: what fails there needs no clever explanation.
  const unsigned likely = seed % 10 == 0 ? 0 : 20 + static_cast<unsigned>(random.below(60));
  for (const Fault* fault : all_faults()) {
    if (random.chance(likely)) out.faults.push_back(fault);
  }
  out.faults_last = std::chrono::seconds(60 + random.below(600));
  out.strike_every = std::chrono::seconds(1 + random.below(60));
  out.flush_percent = 5 + static_cast<unsigned>(random.below(96));
  // In half of the runs: as long as a thread takes for it, as long as a busy machine, and so long
  // that the world is another one.
  constexpr std::uint64_t kApartMs[] = {20, 1'000, 30'000};
  const std::uint64_t most = kApartMs[random.below(std::size(kApartMs))];
  const auto apart = std::chrono::milliseconds(1 + random.below(most));
  if (random.chance(50)) out.apart = apart;
  return out;
}

std::string Options::describe() const {
  std::vector<std::string_view> names;
  for (const Fault* fault : faults) names.push_back(fault->name);
  return fmt::format("seed={} nodes={} cpus={} flush={}% apart={}ms faults=[{}] every {}s for {}s",
                     seed, nodes, cpus, flush_percent, apart / std::chrono::milliseconds(1),
                     fmt::join(names, " "), strike_every / std::chrono::seconds(1),
                     faults_last / std::chrono::seconds(1));
}

World::World(Options options, Workload& workload, Log log, const MakeBackend& make)
    : options_(std::move(options)),
      workload_(workload),
      log_(std::move(log)),
      random_(options_.seed),
      backend_(make(workload, clock_, options_.seed)),
      for_people_(traced("people")),
      for_nodes_(traced("a node")),
      for_controllers_(traced("a controller")),
      gate_(clock_, random_),
      nodes_(clock_, random_, workload) {
  std::set<api::Resource> seen{kPods, kNodes};
  for (const control::Controller& controller : workload.controllers()) {
    roots_.push_back(controller.root.key());
    seen.insert(controller.root);
    seen.insert(controller.owned.begin(), controller.owned.end());
    for (const control::Related& related : controller.seen) seen.insert(related.resource);
  }
  for (const control::GlobalController& controller : workload.global_controllers()) {
    seen.insert(controller.watched.begin(), controller.watched.end());
  }
  resources_.assign(seen.begin(), seen.end());
  for (unsigned i = 0; i < options_.nodes; ++i) nodes_.add(fmt::format("n{}", i), options_.cpus);
  gate_.attach(&for_controllers_);
  start_controllers();
}

World::~World() {
  // Watches first: they belong to the server.
  runtime_.reset();
  checkers_.clear();
}

void World::say(std::string_view line) {
  if (log_)
    log_(
        fmt::format("{:>12.3f} {}", std::chrono::duration<double>(clock_.elapsed()).count(), line));
}

Trace World::traced(std::string who) {
  Trace::Log log;
  if (log_) log = [this](std::string_view line) { say(line); };
  return {std::move(who), [this]() -> client::Client& { return backend_->client(); },
          std::move(log)};
}

void World::start_controllers() {
  const bool apart = options_.apart > Duration{0};
  control::RuntimeOptions options{.wake = [this] { woken_ = true; },
                                  .log = [this](std::string_view line) { say(line); }};
  if (apart) {
    // However short they are: no time passes while one is made.
    options.long_plan = {};
    options.elsewhere = [this](const auto& work, auto then) { make_apart(work, std::move(then)); };
  }
  runtime_ = std::make_unique<control::Runtime>(gate_, clock_, std::move(options));
  for (control::Controller& controller : workload_.controllers()) {
    runtime_->add(std::move(controller));
  }
  for (control::GlobalController& controller : workload_.global_controllers()) {
    runtime_->add(std::move(controller));
  }
  runtime_->add(scheduler::make_scheduler(apart ? 1 : scheduler::kMany));
  woken_ = true;
}

// The work is of what is known now; whatever happens until it comes back, it does not see.
void World::make_apart(const control::RuntimeOptions::Fn& work, control::RuntimeOptions::Fn then) {
  work();
  ++plans_apart_;
  const auto most = static_cast<std::uint64_t>(options_.apart / std::chrono::milliseconds(1));
  const auto after = std::chrono::milliseconds(random_.below(most + 1));
  returning_.emplace(clock_.elapsed() + after, std::move(then));
}

void World::bring_back() {
  while (!returning_.empty() && returning_.begin()->first <= clock_.elapsed()) {
    const control::RuntimeOptions::Fn then = std::move(returning_.begin()->second);
    returning_.erase(returning_.begin());
    then();
  }
}

void World::restart(bool power_cut) {
  say(power_cut ? "power cut" : "the process dies");
  runtime_.reset();
  returning_.clear();
  for (const auto& checker : checkers_) checker->dies(power_cut);
  backend_->restart(power_cut);
  checked_.reset();
  const View& reopened = view();
  for (const auto& checker : checkers_) {
    if (auto wrong = checker->check_reopened(reopened)) complain(*checker, *wrong);
  }
  if (power_cut) nodes_.power_cut();
  gate_.attach(&for_controllers_);
  start_controllers();
  ++restarts_;
}

std::optional<std::string> World::run() {
  const Duration calm_at = clock_.elapsed() + options_.faults_last;
  Duration strike_at = options_.strike_every;
  Duration people_at = {};
  while (!failure_ && clock_.elapsed() < calm_at) {
    if (clock_.elapsed() >= people_at) {
      people();
      people_at = clock_.elapsed() + std::chrono::seconds(1 + random_.below(60));
    }
    if (clock_.elapsed() >= strike_at) {
      strike();
      strike_at = clock_.elapsed() +
                  options_.strike_every * static_cast<std::int64_t>(1 + random_.below(2));
    }
    round(false);
    advance(std::min({calm_at, strike_at, people_at}) - clock_.elapsed());
  }
  say("faults stop");
  gate_.calm();
  nodes_.calm();
  workload_.finish(for_people_, clock_.now(), random_);
  do {
    settle();
    calm_ = true;
  } while (!failure_ && workload_.again(for_people_, random_));
  if (failure_ && log_) {
    for (const auto& [resource, objects] : view().objects) {
      for (const Object& object : objects) say(in_short(resource, *object));
    }
  }
  return failure_;
}

void World::settle() {
  const Duration deadline = clock_.elapsed() + options_.patience;
  std::optional<Duration> since;  // then everything was as it should be
  while (!failure_) {
    backend_->work();
    backend_->flush();
    check();
    const auto wrong = workload_.unsettled(view());
    if (wrong) {
      since.reset();
    } else if (!since) {
      since = clock_.elapsed();
    }
    const Duration until = since ? *since + workload_.rest() : deadline;
    if (since && clock_.elapsed() >= until) return;
    if (clock_.elapsed() >= deadline) {
      failure_ = fmt::format("liveness: long after the last fault {}",
                             wrong.value_or("nothing stays as it is"));
      return;
    }
    round(true);
    advance(std::min(until, deadline) - clock_.elapsed());
  }
}

void World::people() {
  workload_.people(for_people_, clock_.now(), random_);
  backend_->work();
  backend_->flush();
  check();
}

void World::strike() {
  if (options_.faults.empty()) return;
  const Fault& fault = *options_.faults[random_.below(options_.faults.size())];
  say(fault.name);
  fault.strike(*this, random_);
}

void World::round(bool calm) {
  for (unsigned i = 0; !failure_; ++i) {
    ++rounds_;
    woken_ = false;
    bring_back();
    runtime_next_ = runtime_->pump();
    if (gate_.dead()) {
      restart(gate_.die_by_power_cut);
      continue;
    }
    backend_->work();
    // In calm times, and before time passes, everything reaches the disk.
    const bool idle = !woken_ && runtime_next_ > Duration{0};
    if (idle || random_.chance(options_.flush_percent)) {
      backend_->flush();
      act(calm);
    }
    if (!woken_ && runtime_next_ > Duration{0}) break;
    if (i > kRoundsPerInstant) failure_ = "rest: a loop that never rests";
  }
}

// People and nodes see only what is on disk.
void World::act(bool calm) {
  if (!backend_->safe()) return;
  nodes_next_ = nodes_.step(for_nodes_, view(), calm);
  backend_->work();
  backend_->flush();
  check();
}

const View& World::view() {
  View out{.now = clock_.now(),
           .calm = calm_,
           .promised = backend_->promised(),
           .roots = roots_,
           .workload = &workload_,
           .client = &backend_->client(),
           .resources = resources_};
  for (const api::Resource& resource : resources_) {
    auto listed = backend_->client().list(resource, {}, {});
    if (!listed) {
      failure_ = fmt::format("cannot list {}: {}", resource.key(), listed.error().message);
      continue;
    }
    out.revision = std::max(out.revision, listed->revision);
    out.objects[resource.key()] = std::move(listed->items);
  }
  view_ = std::move(out);
  return view_;
}

void World::check() {
  if (!failure_ && gate_.forgotten_write()) {
    failure_ = fmt::format("own writes: {} was made twice by a controller that had not seen it",
                           *gate_.forgotten_write());
  }
  const View& now = view();
  // Nothing is written without a new revision: who has looked at this one has seen it all.
  const std::pair<std::uint64_t, std::uint64_t> at{now.revision, now.promised};
  if (checked_ == at) return;
  checked_ = at;
  for (const auto& checker : checkers_) {
    if (failure_) return;
    if (auto wrong = checker->check(now)) complain(*checker, *wrong);
  }
}

void World::complain(const Checker& checker, std::string_view what) {
  if (failure_) return;
  failure_ = fmt::format("{}: {} (at {:.3f} s)", checker.name(), what,
                         std::chrono::duration<double>(clock_.elapsed()).count());
}

void World::advance(Duration at_most) {
  Duration step = std::min({at_most, runtime_next_, nodes_next_});
  if (const auto arrival = gate_.next_arrival()) {
    step = std::min(step, *arrival - clock_.elapsed());
  }
  if (!returning_.empty()) step = std::min(step, returning_.begin()->first - clock_.elapsed());
  clock_.advance(std::max(step, kInstant));
}

}  // namespace skiff::sim
