// How long a turn of the runtime is, and whose keys come up in it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <stdexcept>
#include <utility>

#include "api/meta.h"
#include "control/blocked.h"
#include "control/runtime.h"
#include "control/testing/memory_server.h"
#include "control/testing/resources.h"
#include "env/sim/clock.h"

namespace skiff::control {
namespace {

using testing::kEvents;
using testing::kPods;
using testing::kServices;

using namespace std::chrono_literals;
using testing::MemoryServer;

const api::Resource kJobs = {.group = "test.dev", .version = "v1", .plural = "jobs", .kind = "Job"};

client::Write creation(const api::Resource& resource, std::string_view name) {
  client::Write write{.resource = resource, .ns = "ns"};
  write.body = json::object{{"metadata", {{"name", json::string(name)}}}};
  return write;
}

// A clock to which each look at the time of day takes a while.
class TickingClock : public env::Clock {
 public:
  TickingClock(env::sim::Clock& clock, Duration tick) : clock_(clock), tick_(tick) {}
  Time now() const override {
    clock_.advance(tick_);
    return clock_.now();
  }
  Duration elapsed() const override { return clock_.elapsed(); }

 private:
  env::sim::Clock& clock_;
  const Duration tick_;
};

// Each write of a submit takes its time; watches give their events in portions, where set.
class LateServer : public MemoryServer {
 public:
  explicit LateServer(env::sim::Clock& clock) : MemoryServer(clock), time_(clock) {}
  void submit(std::vector<client::Write> writes, Done done) override {
    time_.advance(takes * static_cast<int>(writes.size()));
    MemoryServer::submit(std::move(writes), std::move(done));
  }
  Result<std::unique_ptr<client::Watch>> watch(const api::Resource& resource, std::uint64_t after,
                                               std::function<void()> ready) override {
    SKIFF_ASSIGN(auto inner, MemoryServer::watch(resource, after, std::move(ready)));
    return std::make_unique<Portions>(portion, std::move(inner));
  }
  Duration takes = {};
  std::size_t portion = 0;

 private:
  class Portions : public client::Watch {
   public:
    Portions(const std::size_t& portion, std::unique_ptr<client::Watch> inner)
        : portion_(portion), inner_(std::move(inner)) {}
    Result<std::vector<client::Event>> poll() override {
      SKIFF_ASSIGN(std::vector<client::Event> arrived, inner_->poll());
      std::ranges::move(arrived, std::back_inserter(waiting_));
      const std::size_t many =
          portion_ == 0 ? waiting_.size() : std::min(portion_, waiting_.size());
      const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(many);
      std::vector<client::Event> out(std::make_move_iterator(waiting_.begin()),
                                     std::make_move_iterator(end));
      waiting_.erase(waiting_.begin(), end);
      return out;
    }

   private:
    const std::size_t& portion_;
    const std::unique_ptr<client::Watch> inner_;
    std::deque<client::Event> waiting_ = {};
  };
  env::sim::Clock& time_;
};

struct TurnTest : ::testing::Test {
  env::sim::Clock clock;
  LateServer server{clock};
  std::vector<std::string> planned = {};  // "Service/name", in order
  std::vector<TurnCost> costs = {};
  Runtime runtime{
      server, clock, {.turned = [this](const TurnCost& cost) { costs.push_back(cost); }}};

  void add(const api::Resource& root, Duration takes) {
    runtime.add(Controller{.name = root.plural,
                           .root = root,
                           .plan = [this, root, takes](const Observed& observed, Time) {
                             planned.push_back(
                                 fmt::format("{}/{}", root.kind, api::name(*observed.root)));
                             clock.advance(takes);
                             return Plan{};
                           }});
  }
  void make(const api::Resource& resource, int many) {
    for (int i = 0; i < many; ++i) {
      ASSERT_TRUE(server.write(creation(resource, fmt::format("{:02}", i))).has_value());
    }
  }
  std::vector<std::string> turn(Duration* next = nullptr) {
    planned.clear();
    const Duration wait = runtime.pump();
    if (next != nullptr) *next = wait;
    return planned;
  }
};

TEST_F(TurnTest, ends_when_its_time_is_over_and_goes_on_at_once) {
  add(kServices, 4ms);
  make(kServices, 7);
  Duration next{};
  EXPECT_EQ(turn(&next), (std::vector<std::string>{"Service/00", "Service/01", "Service/02"}));
  EXPECT_EQ(next, Duration{0});
  EXPECT_EQ(turn(&next), (std::vector<std::string>{"Service/03", "Service/04", "Service/05"}));
  EXPECT_EQ(next, Duration{0});
  EXPECT_EQ(turn(&next), (std::vector<std::string>{"Service/06"}));
  EXPECT_GT(next, Duration{0});
}

TEST_F(TurnTest, plans_one_key_of_each_controller_after_the_other) {
  add(kServices, 0ms);
  add(kJobs, 0ms);
  make(kServices, 3);
  make(kJobs, 2);
  EXPECT_EQ(turn(), (std::vector<std::string>{"Service/00", "Job/00", "Service/01", "Job/01",
                                              "Service/02"}));
}

TEST_F(TurnTest, a_new_key_does_not_wait_behind_all_that_are_older) {
  add(kServices, 4ms);
  add(kJobs, 1ms);
  make(kServices, 40);
  for (int i = 0; i < 5; ++i) turn();
  make(kJobs, 1);
  const auto now = turn();
  EXPECT_NE(std::ranges::find(now, "Job/00"), now.end());
  EXPECT_LE(now.size(), 4u);
}

TEST_F(TurnTest, what_is_new_comes_before_what_has_been_planned_unless_that_has_waited_for_long) {
  add(kJobs, 11ms);
  make(kJobs, 3);
  for (int i = 0; i < 3; ++i) turn();
  clock.advance(1s);
  const auto touch = [&](std::string_view name) {
    client::Write write{.verb = client::Verb::kMergePatch,
                        .resource = kJobs,
                        .ns = "ns",
                        .name = std::string(name),
                        .body = json::object{{"spec", {{"at", clock.elapsed().count()}}}}};
    ASSERT_TRUE(server.write(write).has_value());
  };
  for (const auto* name : {"00", "01", "02"}) touch(name);
  EXPECT_EQ(turn(), (std::vector<std::string>{"Job/00"}));
  ASSERT_TRUE(server.write(creation(kJobs, "new")).has_value());
  EXPECT_EQ(turn(), (std::vector<std::string>{"Job/new"}));
  clock.advance(2s);
  ASSERT_TRUE(server.write(creation(kJobs, "newer")).has_value());
  EXPECT_EQ(turn(), (std::vector<std::string>{"Job/01"}));
  EXPECT_EQ(turn(), (std::vector<std::string>{"Job/02"}));
  EXPECT_EQ(turn(), (std::vector<std::string>{"Job/newer"}));
}

TEST_F(TurnTest, who_was_cut_off_comes_first_in_the_next) {
  add(kServices, 11ms);
  add(kJobs, 11ms);
  make(kServices, 2);
  make(kJobs, 2);
  EXPECT_EQ(turn(), (std::vector<std::string>{"Service/00"}));
  EXPECT_EQ(turn(), (std::vector<std::string>{"Job/00"}));
  EXPECT_EQ(turn(), (std::vector<std::string>{"Service/01"}));
  EXPECT_EQ(turn(), (std::vector<std::string>{"Job/01"}));
}

TEST_F(TurnTest, is_told_of_with_what_it_cost) {
  add(kServices, 4ms);
  add(kJobs, 5ms);
  make(kServices, 1);
  make(kJobs, 1);
  turn();
  ASSERT_EQ(costs.size(), 1u);
  EXPECT_EQ(costs[0].plans, Duration(9ms));
  EXPECT_EQ(costs[0].dearest, "jobs");
  EXPECT_EQ(costs[0].dearest_took, Duration(5ms));
  EXPECT_EQ(costs[0].feeds + costs[0].barriers + costs[0].batches + costs[0].events, Duration{0});
}

TEST_F(TurnTest, sends_a_part_of_many_batches_and_plans_others_in_between) {
  constexpr int kMany = 35;
  int plans = 0;
  std::set<std::string> there;
  runtime.add(
      GlobalController{.name = "maker",
                       .watched = {kPods},
                       .changed = [&](std::size_t, const Object&,
                                      const Object& after) { there.emplace(api::name(*after)); },
                       .plan =
                           [&](Time) {
                             ++plans;
                             GlobalPlan plan;
                             for (int i = 0; i < kMany; ++i) {
                               const std::string name = fmt::format("p-{}", i);
                               if (!there.contains(name))
                                 plan.batches.push_back({.writes = {creation(kPods, name)}});
                             }
                             return plan;
                           }});
  add(kJobs, 0ms);
  server.takes = 1ms;
  const auto pods = [&] { return server.list(kPods, {}, {})->items.size(); };
  Duration next{};
  turn(&next);
  EXPECT_EQ(pods(), 10u);
  EXPECT_EQ(next, Duration{0}) << "there is more to send";
  make(kJobs, 1);
  EXPECT_EQ(turn(), (std::vector<std::string>{"Job/00"}));
  EXPECT_EQ(pods(), 20u);
  turn();
  EXPECT_EQ(plans, 1) << "what it planned is still under way";
  turn(&next);
  EXPECT_EQ(pods(), static_cast<std::size_t>(kMany));
  for (int i = 0; i < 5; ++i) {
    turn(&next);
    clock.advance(std::min<Duration>(next, 1s));
  }
  EXPECT_EQ(there.size(), static_cast<std::size_t>(kMany));
  EXPECT_EQ(pods(), static_cast<std::size_t>(kMany));
}

TEST_F(TurnTest, takes_in_a_portion_of_each_resource_and_no_more_once_its_time_is_over) {
  Duration takes = 1ms;
  std::vector<std::size_t> seen(2);
  runtime.add(GlobalController{.name = "counter",
                               .watched = {kPods, kServices},
                               .changed =
                                   [&](std::size_t which, const Object&, const Object&) {
                                     ++seen[which];
                                     clock.advance(takes);
                                   },
                               .plan = [](Time) { return GlobalPlan{}; }});
  server.portion = 16;
  turn();
  make(kPods, 100);
  make(kServices, 100);
  Duration next{};
  turn(&next);
  EXPECT_EQ(seen, (std::vector<std::size_t>{16, 16})) << "the first portion of each";
  EXPECT_EQ(next, Duration{0}) << "there is more to take in";
  takes = 100us;
  turn();
  EXPECT_EQ(seen, (std::vector<std::size_t>{80, 64})) << "until 10 ms are over";
  takes = 0ms;
  turn();
  EXPECT_EQ(seen, (std::vector<std::size_t>{100, 100}));
}

TEST_F(TurnTest, goes_on_with_the_resource_at_which_its_time_was_over) {
  std::vector<std::size_t> seen(2);
  runtime.add(GlobalController{.name = "counter",
                               .watched = {kPods, kServices},
                               .changed =
                                   [&](std::size_t which, const Object&, const Object&) {
                                     ++seen[which];
                                     clock.advance(300us);
                                   },
                               .plan = [](Time) { return GlobalPlan{}; }});
  server.portion = 16;
  turn();
  make(kPods, 100);
  make(kServices, 100);
  turn();
  EXPECT_EQ(seen, (std::vector<std::size_t>{32, 16})) << "until 10 ms are over";
  turn();
  EXPECT_EQ(seen, (std::vector<std::size_t>{48, 48}));
  turn();
  EXPECT_EQ(seen, (std::vector<std::size_t>{80, 64}));
}

TEST_F(TurnTest, dates_what_it_tells_later_when_it_happened) {
  const TickingClock ticking(clock, 1s);
  Runtime slow(server, ticking);
  make(kPods, 1);
  bool planned_once = false;
  slow.add(GlobalController{
      .name = "teller",
      .watched = {kPods},
      .changed = [](std::size_t, const Object&, const Object&) {},
      .plan =
          [&](Time) {
            if (std::exchange(planned_once, true)) return GlobalPlan{};
            Batch batch{.writes = {creation(kJobs, "j")}};
            const auto pod = std::make_shared<json::value>(*server.get(kPods, "ns", "00"));
            for (int i = 0; i < 3; ++i) {
              batch.notes.push_back({pod, {.reason = fmt::format("Reason{}", i)}});
            }
            return GlobalPlan{.batches = {std::move(batch)}};
          }});
  for (int i = 0; i < 1000 && slow.pump() == Duration{0}; ++i) {
  }
  std::set<std::string> dates;
  const auto events = server.list(kEvents, {}, {});
  ASSERT_TRUE(events.has_value());
  EXPECT_EQ(events->items.size(), 3u);
  for (const Object& event : events->items) {
    dates.emplace(json::get_string(*event, {"firstTimestamp"}));
  }
  EXPECT_EQ(dates.size(), 1u) << "each note takes a second";
}

TEST_F(TurnTest, tells_a_part_of_many_notes_and_writes_a_part_of_many_events) {
  constexpr int kMany = 100;
  bool planned_once = false;
  const TickingClock ticking(clock, 1ms);
  Runtime slow(server, ticking,
               {.turned = [this](const TurnCost& cost) { costs.push_back(cost); }});
  make(kPods, 1);
  server.takes = 1ms;
  slow.add(GlobalController{
      .name = "teller",
      .watched = {kPods},
      .changed = [](std::size_t, const Object&, const Object&) {},
      .plan =
          [&](Time) {
            if (std::exchange(planned_once, true)) return GlobalPlan{};
            Batch batch{.writes = {creation(kJobs, "j")}};
            const auto pod = std::make_shared<json::value>(*server.get(kPods, "ns", "00"));
            for (int i = 0; i < kMany; ++i) {
              batch.notes.push_back({pod, {.reason = fmt::format("Reason{}", i)}});
            }
            return GlobalPlan{.batches = {std::move(batch)}};
          }});
  for (int i = 0; i < 1000 && slow.pump() == Duration{0}; ++i) {
  }
  const auto longest = std::ranges::max(costs, {}, &TurnCost::batches).batches;
  EXPECT_LT(longest, Duration(kMany * 1ms)) << "each note takes a millisecond";
  for (const TurnCost& cost : costs) EXPECT_LT(cost.events, Duration(30ms)) << "and each event";
  EXPECT_EQ(server.list(kEvents, {}, {})->items.size(), static_cast<std::size_t>(kMany));
}

// A worker that does its work when it is told to.
struct LongPlans : ::testing::Test {
  env::sim::Clock clock;
  MemoryServer server{clock};
  struct Work {
    std::function<void()> work, then;
  };
  std::vector<Work> given = {};
  Duration takes = 20ms;
  std::vector<std::size_t> seen = {};  // how many pods each plan of a job saw
  std::vector<std::string> services = {};
  std::unique_ptr<Runtime> runtime = start();

  // A job gets one pod for each that its spec asks for, one at a time.
  std::unique_ptr<Runtime> start() {
    auto made = std::make_unique<Runtime>(server, clock,
                                          RuntimeOptions{.elsewhere = [this](auto work, auto then) {
                                            given.push_back({std::move(work), std::move(then)});
                                          }});
    made->add(Controller{
        .name = "jobs", .root = kJobs, .owned = {kPods}, .plan = [this](const Observed& o, Time) {
          clock.advance(takes);
          seen.push_back(o.owned[0].size());
          Plan plan;
          const auto many = static_cast<std::int64_t>(o.owned[0].size());
          if (many >= json::get_int(*o.root, {"spec", "pods"}).value_or(0)) return plan;
          client::Write write = creation(kPods, fmt::format("p-{}", many));
          json::set(write.body, {"metadata", "ownerReferences"},
                    json::array{api::owner_reference(*o.root)});
          plan.writes.push_back(std::move(write));
          return plan;
        }});
    made->add(
        Controller{.name = "services", .root = kServices, .plan = [this](const Observed& o, Time) {
                     services.emplace_back(api::name(*o.root));
                     return Plan{};
                   }});
    return made;
  }
  void make_job(int pods) {
    client::Write write = creation(kJobs, "j");
    json::set(write.body, {"spec"}, json::object{{"pods", pods}});
    ASSERT_TRUE(server.write(write).has_value());
  }
  void pump() {
    for (int i = 0; i < 5; ++i) runtime->pump();
  }
  // What it is given, and what comes of that.
  void work() {
    for (Work& each : std::exchange(given, {})) {
      each.work();
      each.then();
    }
  }
  std::size_t pods() { return server.list(kPods, {}, {})->items.size(); }
};

TEST_F(LongPlans, are_made_elsewhere_from_the_second_on) {
  make_job(2);
  pump();
  EXPECT_EQ(seen, (std::vector<std::size_t>{0}));
  EXPECT_EQ(pods(), 1u);
  clock.advance(1s);
  pump();
  ASSERT_EQ(given.size(), 1u);
  EXPECT_EQ(seen.size(), 1u) << "not here";
  ASSERT_TRUE(server.write(creation(kServices, "s")).has_value());
  pump();
  EXPECT_EQ(services, (std::vector<std::string>{"s"})) << "others go on meanwhile";
  EXPECT_EQ(given.size(), 1u) << "one plan of a key at a time";
  work();
  EXPECT_EQ(seen, (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(pods(), 2u);
  clock.advance(1s);
  pump();
  work();
  EXPECT_EQ(seen.back(), 2u) << "it has seen what it wrote";
  EXPECT_EQ(pods(), 2u);
}

TEST_F(LongPlans, are_made_again_for_what_changed_meanwhile) {
  make_job(0);
  pump();
  clock.advance(1s);
  const auto change = [&](int pods) {
    client::Write write{
        .verb = client::Verb::kMergePatch, .resource = kJobs, .ns = "ns", .name = "j"};
    write.body = json::object{{"spec", {{"pods", pods}}}};
    ASSERT_TRUE(server.write(write).has_value());
  };
  change(-1);
  pump();
  ASSERT_EQ(given.size(), 1u);
  change(1);
  pump();
  work();
  EXPECT_EQ(pods(), 0u) << "planned from what it was";
  pump();
  EXPECT_TRUE(given.empty()) << "it rests for nineteen times what it took";
  clock.advance(20ms * 19);
  pump();
  work();
  EXPECT_EQ(pods(), 1u);
}

TEST_F(LongPlans, that_have_become_short_are_made_here_again) {
  make_job(3);
  pump();
  clock.advance(1s);
  pump();
  takes = 0ms;
  work();
  EXPECT_EQ(pods(), 2u);
  clock.advance(1s);
  pump();
  EXPECT_TRUE(given.empty());
  EXPECT_EQ(pods(), 3u);
}

TEST_F(LongPlans, from_an_outdated_look_are_refused_by_the_server) {
  make_job(2);
  pump();
  clock.advance(1s);
  pump();
  ASSERT_EQ(given.size(), 1u);
  ASSERT_TRUE(
      server.write({.verb = client::Verb::kDelete, .resource = kJobs, .ns = "ns", .name = "j"})
          .has_value());
  pump();
  work();
  for (int i = 0; i < 10; ++i) {
    pump();
    work();
    clock.advance(1s);
  }
  EXPECT_EQ(pods(), 0u) << "no pod for a job that is gone";
}

TEST_F(LongPlans, may_outlive_the_runtime) {
  make_job(2);
  pump();
  clock.advance(1s);
  pump();
  ASSERT_EQ(given.size(), 1u);
  runtime.reset();
  work();
  EXPECT_EQ(seen.size(), 2u);
  EXPECT_EQ(pods(), 1u) << "nobody carries it out";
}

// One that looks at everything, and gives away its plans once it has seen three pods: a service
// for each.
struct LongGlobalPlans : ::testing::Test {
  env::sim::Clock clock;
  MemoryServer server{clock};
  struct Work {
    std::function<void()> work, then;
  };
  std::vector<Work> given = {};
  std::set<std::string> known = {};
  std::set<std::string> made = {};
  bool throws = false;
  std::function<bool(const std::vector<client::Write>&)> holds = {};
  std::vector<std::string> log = {};
  std::unique_ptr<Runtime> runtime = start();

  static GlobalPlan services_for(const std::set<std::string>& pods,
                                 const std::set<std::string>& made) {
    GlobalPlan plan;
    for (const std::string& pod : pods) {
      if (!made.contains(pod)) plan.batches.push_back({.writes = {creation(kServices, pod)}});
    }
    return plan;
  }
  std::unique_ptr<Runtime> start() {
    auto started = std::make_unique<Runtime>(
        server, clock,
        RuntimeOptions{.log = [this](std::string_view line) { log.emplace_back(line); },
                       .elsewhere =
                           [this](auto work, auto then) {
                             given.push_back({std::move(work), std::move(then)});
                           }});
    started->add(
        GlobalController{.name = "servant",
                         .watched = {kPods, kServices},
                         .changed =
                             [this](std::size_t which, const Object&, const Object& after) {
                               (which == 0 ? known : made).emplace(api::name(*after));
                             },
                         .plan = [this](Time) { return services_for(known, made); },
                         .plan_apart = [this](Time) -> PlanApart {
                           if (known.size() < 3) return {};
                           return {.plan =
                                       [this, pods = known, there = made] {
                                         clock.advance(20ms);
                                         if (throws) throw std::runtime_error("oh");
                                         return services_for(pods, there);
                                       },
                                   .holds = holds};
                         }});
    return started;
  }
  void make_pods(int from, int to) {
    for (int i = from; i < to; ++i) {
      ASSERT_TRUE(server.write(creation(kPods, fmt::format("{:02}", i))).has_value());
    }
  }
  void pump() {
    for (int i = 0; i < 5; ++i) runtime->pump();
  }
  void work() {
    for (Work& each : std::exchange(given, {})) {
      each.work();
      each.then();
    }
  }
  std::size_t services() { return server.list(kServices, {}, {})->items.size(); }
};

TEST_F(LongGlobalPlans, are_made_elsewhere_where_the_controller_says_that_they_are_long) {
  make_pods(0, 2);
  pump();
  EXPECT_TRUE(given.empty()) << "a short one is made here";
  EXPECT_EQ(services(), 2u);
  make_pods(2, 4);
  pump();
  ASSERT_EQ(given.size(), 1u);
  EXPECT_EQ(services(), 2u) << "not here";
  make_pods(4, 5);
  pump();
  EXPECT_EQ(given.size(), 1u) << "one plan at a time";
  work();
  pump();
  EXPECT_EQ(services(), 4u) << "from what was known when it was given away";
  EXPECT_EQ(given.size(), 1u) << "the loop has not worked for it and need not rest";
  work();
  pump();
  EXPECT_EQ(services(), 5u) << "and what came meanwhile is seen to after it";
  EXPECT_TRUE(log.empty()) << "nothing was made twice: " << log.front();
}

TEST_F(LongGlobalPlans, that_change_nothing_are_followed_by_one_of_what_came_meanwhile) {
  make_pods(0, 2);
  pump();
  made.emplace("02");
  make_pods(2, 3);
  pump();
  ASSERT_EQ(given.size(), 1u);
  make_pods(3, 4);
  pump();
  work();
  clock.advance(1s);
  pump();
  work();
  pump();
  EXPECT_EQ(services(), 3u);
}

TEST_F(LongGlobalPlans, that_lost_a_race_are_made_here_the_next_time) {
  make_pods(0, 3);
  pump();
  ASSERT_EQ(given.size(), 1u);
  ASSERT_TRUE(server.write(creation(kServices, "01")).has_value());
  work();
  pump();
  EXPECT_EQ(log.size(), 2u) << "the batch, and the plan that it was of";
  EXPECT_EQ(services(), 3u);
  make_pods(3, 4);
  clock.advance(10s);
  pump();
  EXPECT_TRUE(given.empty());
  EXPECT_EQ(services(), 4u) << "nobody can be quicker";
  clock.advance(10min);
  make_pods(4, 5);
  pump();
  make_pods(5, 6);
  pump();
  EXPECT_EQ(given.size(), 1u) << "that is long ago";
}

TEST_F(LongGlobalPlans, that_are_right_no_more_in_part_are_made_here_once_more_for_that_part) {
  bool asked = false;
  holds = [&](const std::vector<client::Write>& writes) {
    asked = true;
    return api::name(writes.at(0).body) != "01";
  };
  make_pods(0, 3);
  pump();
  ASSERT_EQ(given.size(), 1u);
  work();
  EXPECT_TRUE(asked);
  runtime->pump();
  EXPECT_EQ(services(), 2u) << "what is still right is done";
  pump();
  EXPECT_EQ(services(), 3u) << "the rest is planned here, from the newest books";
  EXPECT_TRUE(log.empty()) << log.front();
  EXPECT_EQ(given.size(), 1u) << "the next one is long, as ever";
}

TEST_F(LongGlobalPlans, of_which_nothing_is_right_any_more_are_made_here) {
  holds = [](const std::vector<client::Write>&) { return false; };
  make_pods(0, 3);
  pump();
  work();
  EXPECT_EQ(services(), 0u);
  pump();
  EXPECT_EQ(services(), 3u);
}

TEST_F(LongGlobalPlans, that_throw_when_they_are_asked_whether_they_hold_are_tried_again) {
  bool throws_once = true;
  holds = [&](const std::vector<client::Write>&) -> bool {
    if (std::exchange(throws_once, false)) throw std::runtime_error("ah");
    return true;
  };
  make_pods(0, 3);
  pump();
  work();
  ASSERT_EQ(log.size(), 1u);
  EXPECT_NE(log[0].find("ah"), std::string::npos);
  clock.advance(10s);
  pump();
  work();
  pump();
  EXPECT_EQ(services(), 3u);
}

TEST_F(LongGlobalPlans, that_throw_are_tried_again) {
  throws = true;
  make_pods(0, 3);
  pump();
  work();
  ASSERT_EQ(log.size(), 1u);
  EXPECT_NE(log[0].find("oh"), std::string::npos);
  throws = false;
  clock.advance(10s);
  pump();
  work();
  pump();
  EXPECT_EQ(services(), 3u);
}

TEST_F(LongGlobalPlans, may_outlive_the_runtime) {
  make_pods(0, 3);
  pump();
  ASSERT_EQ(given.size(), 1u);
  runtime.reset();
  work();
  EXPECT_EQ(services(), 0u) << "nobody carries it out";
}

struct BlockedTest : ::testing::Test {
  env::sim::Clock clock;
  MemoryServer server{clock};
  Cache pods{server, kPods, [] {}};
  Cache services{server, kServices, [] {}};
  Barrier::Lookup lookup = [this](const std::string& resource) -> const Cache* {
    return resource == kPods.key() ? &pods : resource == kServices.key() ? &services : nullptr;
  };
  Blocked blocked;

  void SetUp() override {
    ASSERT_TRUE(pods.poll({}).has_value());
    ASSERT_TRUE(services.poll({}).has_value());
  }
  // A barrier that waits until the pod and the service are seen.
  Barrier made(const std::string& name, bool with_service = false) {
    Barrier barrier;
    for (const api::Resource& resource : {kPods, kServices}) {
      if (resource.key() == kServices.key() && !with_service) continue;
      const client::Write write = creation(resource, name);
      const auto answer = server.write(write);
      EXPECT_TRUE(answer.has_value());
      barrier.expect(write, *answer, lookup);
    }
    EXPECT_FALSE(barrier.open(lookup));
    return barrier;
  }
  static Blocked::Id id(const std::string& name) { return {7, {.ns = "ns", .name = name}}; }
};

TEST_F(BlockedTest, gives_those_whose_writes_have_arrived) {
  blocked.add(id("a"), made("a"), 30s);
  EXPECT_TRUE(blocked.take(lookup, 1s).empty());
  ASSERT_TRUE(pods.poll({}).has_value());
  blocked.add(id("b"), made("b"), 31s);
  EXPECT_EQ(blocked.next(), Duration(30s));
  EXPECT_EQ(blocked.take(lookup, 1s), (std::vector{id("a")}));
  EXPECT_EQ(blocked.next(), Duration(31s));
  EXPECT_TRUE(blocked.take(lookup, 1s).empty()) << "given once";
  ASSERT_TRUE(pods.poll({}).has_value());
  EXPECT_EQ(blocked.take(lookup, 1s), (std::vector{id("b")}));
  EXPECT_EQ(blocked.next(), std::nullopt);
}

TEST_F(BlockedTest, one_that_waits_for_two_caches_is_added_again) {
  Barrier barrier = made("a", true);
  blocked.add(id("a"), barrier, 30s);
  ASSERT_TRUE(pods.poll({}).has_value());
  EXPECT_EQ(blocked.take(lookup, 1s), (std::vector{id("a")}));
  ASSERT_FALSE(barrier.open(lookup)) << "the service is not seen yet";
  blocked.add(id("a"), barrier, 30s);
  EXPECT_TRUE(blocked.take(lookup, 1s).empty());
  ASSERT_TRUE(services.poll({}).has_value());
  EXPECT_EQ(blocked.take(lookup, 1s), (std::vector{id("a")}));
  EXPECT_TRUE(barrier.open(lookup));
}

TEST_F(BlockedTest, gives_once_whose_time_is_up_though_nothing_has_arrived) {
  blocked.add(id("a"), made("a"), 30s);
  blocked.add(id("b"), made("b"), 40s);
  EXPECT_TRUE(blocked.take(lookup, 29s).empty());
  EXPECT_EQ(blocked.take(lookup, 30s), (std::vector{id("a")}));
  ASSERT_TRUE(pods.poll({}).has_value());
  EXPECT_EQ(blocked.take(lookup, 50s), (std::vector{id("b")})) << "in time and too late at once";
}

TEST_F(BlockedTest, who_is_added_twice_is_given_once) {
  blocked.add(id("a"), made("a"), 30s);
  blocked.add(id("a"), made("b"), 40s);
  EXPECT_EQ(blocked.next(), Duration(40s));
  EXPECT_EQ(blocked.take(lookup, 50s), (std::vector{id("a")}));
  EXPECT_TRUE(blocked.take(lookup, 50s).empty());
  EXPECT_EQ(blocked.next(), std::nullopt);
}

TEST_F(BlockedTest, looks_every_time_where_no_revision_is_known) {
  ASSERT_TRUE(server.write(creation(kPods, "a")).has_value());
  ASSERT_TRUE(pods.poll({}).has_value());
  Barrier barrier;
  client::Write removal{.verb = client::Verb::kDelete, .resource = kPods, .ns = "ns", .name = "a"};
  barrier.expect(removal, json::object{{"kind", "Status"}}, lookup);
  ASSERT_FALSE(barrier.open(lookup));
  for (int i = 0; i < 2; ++i) {
    blocked.add(id("a"), barrier, 30s);
    EXPECT_EQ(blocked.take(lookup, 1s), (std::vector{id("a")}));
  }
  ASSERT_TRUE(server.write(removal).has_value());
  ASSERT_TRUE(pods.poll({}).has_value());
  EXPECT_TRUE(barrier.open(lookup));
}

}  // namespace
}  // namespace skiff::control
