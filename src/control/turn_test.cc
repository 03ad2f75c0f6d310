// How long a turn of the runtime is, and whose keys come up in it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <utility>

#include "api/meta.h"
#include "control/blocked.h"
#include "control/runtime.h"
#include "control/testing/memory_server.h"
#include "env/sim/clock.h"

namespace skiff::control {
namespace {

using namespace std::chrono_literals;
using testing::MemoryServer;

const api::Resource kServices = {.version = "v1", .plural = "services", .kind = "Service"};
const api::Resource kJobs = {.group = "test.dev", .version = "v1", .plural = "jobs", .kind = "Job"};
const api::Resource kPods = {.version = "v1", .plural = "pods", .kind = "Pod"};

client::Write creation(const api::Resource& resource, std::string_view name) {
  client::Write write{.resource = resource, .ns = "ns"};
  write.body = json::object{{"metadata", {{"name", json::string(name)}}}};
  return write;
}

// Each write of a submit takes its time.
class SlowServer : public MemoryServer {
 public:
  explicit SlowServer(env::sim::Clock& clock) : MemoryServer(clock), time_(clock) {}
  void submit(std::vector<client::Write> writes, Done done) override {
    time_.advance(takes * static_cast<int>(writes.size()));
    MemoryServer::submit(std::move(writes), std::move(done));
  }
  Duration takes = {};

 private:
  env::sim::Clock& time_;
};

struct TurnTest : ::testing::Test {
  env::sim::Clock clock;
  SlowServer server{clock};
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
    ASSERT_TRUE(pods.poll().has_value());
    ASSERT_TRUE(services.poll().has_value());
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
  ASSERT_TRUE(pods.poll().has_value());
  blocked.add(id("b"), made("b"), 31s);
  EXPECT_EQ(blocked.next(), Duration(30s));
  EXPECT_EQ(blocked.take(lookup, 1s), (std::vector{id("a")}));
  EXPECT_EQ(blocked.next(), Duration(31s));
  EXPECT_TRUE(blocked.take(lookup, 1s).empty()) << "given once";
  ASSERT_TRUE(pods.poll().has_value());
  EXPECT_EQ(blocked.take(lookup, 1s), (std::vector{id("b")}));
  EXPECT_EQ(blocked.next(), std::nullopt);
}

TEST_F(BlockedTest, one_that_waits_for_two_caches_is_added_again) {
  Barrier barrier = made("a", true);
  blocked.add(id("a"), barrier, 30s);
  ASSERT_TRUE(pods.poll().has_value());
  EXPECT_EQ(blocked.take(lookup, 1s), (std::vector{id("a")}));
  ASSERT_FALSE(barrier.open(lookup)) << "the service is not seen yet";
  blocked.add(id("a"), barrier, 30s);
  EXPECT_TRUE(blocked.take(lookup, 1s).empty());
  ASSERT_TRUE(services.poll().has_value());
  EXPECT_EQ(blocked.take(lookup, 1s), (std::vector{id("a")}));
  EXPECT_TRUE(barrier.open(lookup));
}

TEST_F(BlockedTest, gives_once_whose_time_is_up_though_nothing_has_arrived) {
  blocked.add(id("a"), made("a"), 30s);
  blocked.add(id("b"), made("b"), 40s);
  EXPECT_TRUE(blocked.take(lookup, 29s).empty());
  EXPECT_EQ(blocked.take(lookup, 30s), (std::vector{id("a")}));
  ASSERT_TRUE(pods.poll().has_value());
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
  ASSERT_TRUE(pods.poll().has_value());
  Barrier barrier;
  client::Write removal{.verb = client::Verb::kDelete, .resource = kPods, .ns = "ns", .name = "a"};
  barrier.expect(removal, json::object{{"kind", "Status"}}, lookup);
  ASSERT_FALSE(barrier.open(lookup));
  for (int i = 0; i < 2; ++i) {
    blocked.add(id("a"), barrier, 30s);
    EXPECT_EQ(blocked.take(lookup, 1s), (std::vector{id("a")}));
  }
  ASSERT_TRUE(server.write(removal).has_value());
  ASSERT_TRUE(pods.poll().has_value());
  EXPECT_TRUE(barrier.open(lookup));
}

}  // namespace
}  // namespace skiff::control
