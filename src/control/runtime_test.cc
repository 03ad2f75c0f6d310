#include "control/runtime.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <deque>

#include "api/meta.h"
#include "control/testing/memory_server.h"
#include "control/testing/resources.h"
#include "env/sim/clock.h"

namespace skiff::control {
namespace {

using testing::kEvents;
using testing::kPods;

using testing::MemoryServer;

const api::Resource kEchoRoots = {
    .group = "test.dev", .version = "v1", .plural = "echoes", .kind = "Echo"};

client::Write create_root(std::string name, int replicas) {
  client::Write write{.resource = kEchoRoots, .ns = "ns"};
  write.body = json::object{{"metadata", {{"name", name}}}, {"spec", {{"replicas", replicas}}}};
  return write;
}

// Keeps as many pods as the root asks for and counts them in its status.
Plan plan_echo(const Observed& observed, Time) {
  Plan plan;
  const auto wanted = json::get_int(*observed.root, {"spec", "replicas"}).value_or(0);
  std::set<std::string_view> names;
  for (const Object& pod : observed.owned[0]) names.insert(api::name(*pod));
  for (int i = 0; i < wanted; ++i) {
    const std::string name = fmt::format("{}-{}", api::name(*observed.root), i);
    if (names.erase(name) > 0) continue;
    client::Write write{.resource = kPods};
    write.body = json::object{
        {"metadata",
         {{"name", name}, {"ownerReferences", {api::owner_reference(*observed.root)}}}}};
    plan.writes.push_back(std::move(write));
  }
  for (const std::string_view extra : names) {
    plan.writes.push_back({.verb = client::Verb::kDelete,
                           .resource = kPods,
                           .ns = std::string(api::ns(*observed.root)),
                           .name = std::string(extra)});
  }
  const auto count = static_cast<std::int64_t>(observed.owned[0].size());
  if (json::get_int(*observed.root, {"status", "pods"}) != count) {
    plan.status = json::object{{"pods", count}};
    plan.notes.push_back({.reason = "Counted", .message = fmt::format("{} pods", count)});
  }
  return plan;
}

// A server whose watches can fall silent without breaking, and give events in portions.
class QuietServer : public MemoryServer {
 public:
  using MemoryServer::MemoryServer;
  std::set<std::string> quiet = {};  // keys of resources
  std::size_t portion = 0;           // how many events a watch gives at once; 0: all

  Result<std::unique_ptr<client::Watch>> watch(const api::Resource& resource,
                                               std::uint64_t after_revision,
                                               std::function<void()> ready) override {
    SKIFF_ASSIGN(auto inner, MemoryServer::watch(resource, after_revision, std::move(ready)));
    return std::make_unique<QuietWatch>(*this, resource.key(), std::move(inner));
  }

 private:
  class QuietWatch : public client::Watch {
   public:
    QuietWatch(const QuietServer& server, std::string resource,
               std::unique_ptr<client::Watch> inner)
        : server_(server), resource_(std::move(resource)), inner_(std::move(inner)) {}
    Result<std::vector<client::Event>> poll() override {
      if (server_.quiet.contains(resource_)) return std::vector<client::Event>();
      SKIFF_ASSIGN(std::vector<client::Event> arrived, inner_->poll());
      for (client::Event& event : arrived) waiting_.push_back(std::move(event));
      std::vector<client::Event> out;
      while (!waiting_.empty() && (server_.portion == 0 || out.size() < server_.portion)) {
        out.push_back(std::move(waiting_.front()));
        waiting_.pop_front();
      }
      return out;
    }

   private:
    const QuietServer& server_;
    const std::string resource_;
    const std::unique_ptr<client::Watch> inner_;
    std::deque<client::Event> waiting_ = {};
  };
};

struct RuntimeTest : ::testing::Test {
  env::sim::Clock clock;
  QuietServer server{clock};
  bool woken = false;
  std::vector<std::string> log;
  int plans = 0;
  Duration plan_takes = {};
  std::unique_ptr<Runtime> runtime = start();

  std::unique_ptr<Runtime> start() {
    auto made = std::make_unique<Runtime>(
        server, clock,
        RuntimeOptions{.wake = [this] { woken = true; },
                       .log = [this](std::string_view line) { log.emplace_back(line); }});
    made->add(Controller{.name = "echo-controller",
                         .root = kEchoRoots,
                         .owned = {kPods},
                         .plan = [this](const Observed& observed, Time now) {
                           ++plans;
                           clock.advance(plan_takes);
                           return plan_echo(observed, now);
                         }});
    return made;
  }
  // Pumps while there is something to do now; returns how long until the next timer.
  Duration settle() {
    Duration next{0};
    for (int i = 0; i < 100; ++i) {
      woken = false;
      next = runtime->pump();
      if (!woken && next > Duration{0}) return next;
    }
    ADD_FAILURE() << "does not settle";
    return next;
  }
  std::size_t count(const api::Resource& resource) {
    return server.list(resource, {}, {})->items.size();
  }
  json::value root(std::string_view name) { return *server.get(kEchoRoots, "ns", name); }
};

TEST_F(RuntimeTest, a_root_gets_its_children_and_then_its_status) {
  ASSERT_TRUE(server.write(create_root("a", 3)));
  settle();
  EXPECT_EQ(count(kPods), 3u);
  EXPECT_EQ(json::get_int(root("a"), {"status", "pods"}), 3);
  EXPECT_TRUE(log.empty());
}

TEST_F(RuntimeTest, what_is_already_there_at_the_start_is_planned) {
  ASSERT_TRUE(server.write(create_root("a", 2)));
  settle();
  const std::uint64_t before = server.revision();
  runtime = start();
  settle();
  EXPECT_EQ(server.revision(), before);
}

TEST_F(RuntimeTest, many_changes_are_one_plan) {
  ASSERT_TRUE(server.write(create_root("a", 200)));
  settle();
  EXPECT_LE(plans, 4);
}

TEST_F(RuntimeTest, a_deleted_child_comes_back_and_a_deleted_root_is_forgotten) {
  ASSERT_TRUE(server.write(create_root("a", 2)));
  settle();
  ASSERT_TRUE(
      server.write({.verb = client::Verb::kDelete, .resource = kPods, .ns = "ns", .name = "a-1"}));
  settle();
  EXPECT_EQ(count(kPods), 2u);
  ASSERT_TRUE(server.write(
      {.verb = client::Verb::kDelete, .resource = kEchoRoots, .ns = "ns", .name = "a"}));
  settle();
  EXPECT_EQ(count(kPods), 0u);
}

TEST_F(RuntimeTest, an_error_backs_off_and_grows) {
  server.refuse = [](const client::Write& write) -> std::optional<Error> {
    if (write.resource.key() != "pods") return std::nullopt;
    return Error{.code = Code::kForbidden, .message = "quota"};
  };
  ASSERT_TRUE(server.write(create_root("a", 1)));
  EXPECT_EQ(settle(), std::chrono::milliseconds(5));
  Duration last{0};
  for (int i = 0; i < 20; ++i) {
    clock.advance(runtime->pump());
    last = settle();
  }
  EXPECT_EQ(last, std::chrono::seconds(60));
  ASSERT_FALSE(log.empty());
  EXPECT_EQ(log[0], "echo-controller: ns/a: quota (attempt 1)");
  server.refuse = {};
  clock.advance(std::chrono::seconds(60));
  settle();
  EXPECT_EQ(count(kPods), 1u);
}

TEST_F(RuntimeTest, a_changed_spec_ends_the_back_off) {
  server.refuse = [](const client::Write& write) -> std::optional<Error> {
    if (write.resource.key() != "pods") return std::nullopt;
    return Error{.code = Code::kForbidden, .message = "quota"};
  };
  ASSERT_TRUE(server.write(create_root("a", 1)));
  for (int i = 0; i < 20; ++i) clock.advance(settle());
  settle();
  server.refuse = {};
  client::Write patch{
      .verb = client::Verb::kMergePatch, .resource = kEchoRoots, .ns = "ns", .name = "a"};
  patch.body = json::object{{"spec", {{"replicas", 2}}}};
  ASSERT_TRUE(server.write(patch));
  settle();
  EXPECT_EQ(count(kPods), 2u);
}

TEST_F(RuntimeTest, a_conflict_is_looked_at_again_when_the_cache_moves) {
  int refusals = 0;
  server.refuse = [&](const client::Write& write) -> std::optional<Error> {
    if (write.subresource != "status" || refusals++ > 0) return std::nullopt;
    return Error{.code = Code::kConflict, .message = "modified"};
  };
  ASSERT_TRUE(server.write(create_root("a", 1)));
  EXPECT_LE(settle(), std::chrono::seconds(1));
  clock.advance(std::chrono::seconds(1));
  settle();
  EXPECT_EQ(json::get_int(root("a"), {"status", "pods"}), 1);
}

TEST_F(RuntimeTest, a_child_of_somebody_else_is_reported_and_left_alone) {
  client::Write foreign{.resource = kPods, .ns = "ns"};
  foreign.body = json::object{{"metadata", {{"name", "a-0"}}}};
  ASSERT_TRUE(server.write(foreign));
  ASSERT_TRUE(server.write(create_root("a", 1)));
  settle();
  const auto events = server.list(kEvents, {}, {});
  ASSERT_EQ(events->items.size(), 1u);
  EXPECT_EQ(json::get_string(*events->items[0], {"reason"}), "FailedCreate");
  EXPECT_EQ(json::get_string(*events->items[0], {"type"}), "Warning");
  EXPECT_EQ(json::get_string(*events->items[0], {"message"}),
            "pods \"a-0\" already exists and is not controlled by Echo \"a\"; rename or delete it");
  EXPECT_EQ(api::controller_of(*server.get(kPods, "ns", "a-0")), nullptr);
}

TEST_F(RuntimeTest, a_note_is_one_event_that_counts) {
  ASSERT_TRUE(server.write(create_root("a", 1)));
  settle();
  const auto events = server.list(kEvents, "ns", {});
  ASSERT_EQ(events->items.size(), 2u);  // "0 pods", then "1 pods"
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(server.write(
        {.verb = client::Verb::kDelete, .resource = kPods, .ns = "ns", .name = "a-0"}));
    clock.advance(std::chrono::seconds(10));
    settle();
  }
  std::int64_t most = 0;
  for (const Object& event : server.list(kEvents, "ns", {})->items) {
    most = std::max(most, json::get_int(*event, {"count"}).value_or(0));
    EXPECT_TRUE(api::name(*event).starts_with("a."));
  }
  EXPECT_EQ(count(kEvents), 2u);
  EXPECT_EQ(most, 4);
}

TEST_F(RuntimeTest, many_events_are_written_a_few_in_a_turn) {
  constexpr std::size_t kMany = 120;
  std::vector<std::size_t> written;
  for (std::size_t i = 0; i < kMany; ++i) {
    ASSERT_TRUE(server.write(create_root(fmt::format("a-{}", i), 0)));
  }
  for (int turn = 0; turn < 5; ++turn) {
    clock.advance(std::chrono::milliseconds(1));
    const Duration next = runtime->pump();
    written.push_back(count(kEvents));
    if (written.back() < kMany) EXPECT_EQ(next, Duration{0}) << turn;
  }
  EXPECT_EQ(written, (std::vector<std::size_t>{50, 100, kMany, kMany, kMany}));
}

TEST_F(RuntimeTest, a_controller_with_many_keys_lets_others_in_between) {
  for (int i = 0; i < 120; ++i) ASSERT_TRUE(server.write(create_root(fmt::format("a-{}", i), 0)));
  int others = 0;
  runtime->add(
      Controller{.name = "other-controller", .root = kPods, .plan = [&](const Observed&, Time) {
                   ++others;
                   return Plan{};
                 }});
  ASSERT_TRUE(server.write(
      {.resource = kPods, .ns = "ns", .body = json::object{{"metadata", {{"name", "p"}}}}}));
  EXPECT_EQ(runtime->pump(), Duration{0});
  EXPECT_EQ(plans, 50);
  EXPECT_EQ(others, 1);
  settle();
  EXPECT_GE(plans, 120);
}

TEST(CacheTest, keeps_objects_without_who_manages_their_fields) {
  env::sim::Clock clock;
  MemoryServer server(clock);
  Cache cache(server, kPods, [] {});
  const json::value metadata = json::object{
      {"name", "p"}, {"managedFields", json::array{json::object{}}}, {"labels", {{"a", "b"}}}};
  const json::value sent = json::object{{"metadata", metadata}, {"spec", {{"nodeName", "n"}}}};
  ASSERT_TRUE(server.write({.resource = kPods, .ns = "ns", .body = sent}).has_value());
  ASSERT_TRUE(cache.poll({}).has_value());
  json::value expected = *server.get(kPods, "ns", "p");
  ASSERT_NE(json::find(expected, {"metadata", "managedFields"}), nullptr);
  expected.at("metadata").as_object().erase("managedFields");
  EXPECT_EQ(*cache.get({.ns = "ns", .name = "p"}), expected);
}

client::Write create_pod(int number) {
  client::Write write{.resource = kPods, .ns = "ns"};
  write.body = json::object{{"metadata", {{"name", fmt::format("p-{}", number)}}}};
  return write;
}

TEST(CacheTest, takes_in_many_events_over_several_polls) {
  env::sim::Clock clock;
  QuietServer server(clock);
  server.portion = 10;
  Cache cache(server, kPods, [] {});
  ASSERT_TRUE(cache.poll({}).has_value());
  EXPECT_FALSE(cache.more());
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(server.write(create_pod(i)).has_value());
  const auto first = cache.poll({});
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->size(), 20u);
  EXPECT_TRUE(cache.more());
  EXPECT_LT(cache.revision(), server.revision()) << "what is left has not been taken in";
  const auto second = cache.poll({});
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->size(), 10u);
  EXPECT_FALSE(cache.more());
  EXPECT_EQ(cache.revision(), server.revision());
}

TEST_F(RuntimeTest, a_key_is_planned_before_all_events_of_others_are_taken_in) {
  server.portion = 16;
  std::size_t seen = 0, planned_at = 0;
  runtime->add(
      GlobalController{.name = "counter",
                       .watched = {kPods},
                       .changed = [&](std::size_t, const Object&, const Object&) { ++seen; },
                       .plan =
                           [&](Time) {
                             planned_at = seen;
                             return GlobalPlan{};
                           }});
  settle();
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(server.write(create_pod(i)).has_value());
  ASSERT_TRUE(server.write(create_root("a", 1)));
  EXPECT_EQ(runtime->pump(), Duration{0}) << "there is more to take in";
  EXPECT_EQ(count(kPods), 1001u) << "the root has its pod";
  EXPECT_EQ(seen, 64u);
  EXPECT_EQ(planned_at, 0u) << "who looks at everything waits for all of it";
  EXPECT_EQ(plans, 1);
  runtime->pump();
  EXPECT_EQ(plans, 1) << "the root waits to see its pod, which is behind the others";
  settle();
  EXPECT_EQ(planned_at, 1001u);
  EXPECT_EQ(count(kPods), 1001u);
  EXPECT_EQ(json::get_int(root("a"), {"status", "pods"}), 1);
}

TEST_F(RuntimeTest, who_looks_at_everything_does_not_wait_for_ever_for_the_rest_of_it) {
  server.portion = 16;
  int looks = 0;
  runtime->add(GlobalController{.name = "counter",
                                .watched = {kPods},
                                .changed = [](std::size_t, const Object&, const Object&) {},
                                .plan =
                                    [&](Time) {
                                      ++looks;
                                      return GlobalPlan{};
                                    }});
  settle();
  const int before = looks;
  for (int turn = 0; turn < 15; ++turn) {
    for (int i = 0; i < 64; ++i) {
      ASSERT_TRUE(server.write(create_pod(turn * 64 + i)).has_value());
    }
    EXPECT_EQ(runtime->pump(), Duration{0}) << "there may always be more";
    EXPECT_EQ(looks, turn <= 10 ? before : before + 1) << turn;
    clock.advance(std::chrono::milliseconds(100));
  }
}

// Time that passes with every look at it.
class RestlessClock : public env::Clock {
 public:
  Time now() const override { return Time{elapsed_}; }
  Duration elapsed() const override { return elapsed_ += Duration{1}; }
  void advance(Duration by) { elapsed_ += by; }

 private:
  mutable Duration elapsed_ = {};
};

TEST(RefusalTest, what_is_written_at_once_after_one_is_waited_for_once) {
  RestlessClock clock;
  MemoryServer server(clock);
  server.refuse = [](const client::Write& write) -> std::optional<Error> {
    if (write.resource.key() != kPods.key()) return std::nullopt;
    return Error{.code = Code::kForbidden, .message = "quota"};
  };
  std::vector<std::string> log;
  Runtime runtime(server, clock,
                  RuntimeOptions{.log = [&](std::string_view line) { log.emplace_back(line); }});
  runtime.add(Controller{.name = "echo-controller",
                         .root = kEchoRoots,
                         .owned = {kPods},
                         .hears_refusals = true,
                         .plan = [](const Observed& observed, Time now) {
                           if (!observed.refused) return plan_echo(observed, now);
                           Plan plan;
                           if (json::find(*observed.root, {"status", "why"}) == nullptr) {
                             plan.status = json::object{{"pods", 0}, {"why", "quota"}};
                           }
                           return plan;
                         }});
  ASSERT_TRUE(server.write(create_root("a", 1)));
  for (int i = 0; i < 10; ++i) {
    runtime.pump();
    clock.advance(std::chrono::seconds(31));  // longer than who is blocked waits
  }
  EXPECT_EQ(json::get_string(*server.get(kEchoRoots, "ns", "a"), {"status", "why"}), "quota");
  for (const std::string& line : log) EXPECT_TRUE(line.contains(": quota (attempt ")) << line;
}

TEST(BarrierTest, an_answer_that_comes_after_the_change_waits_for_no_other) {
  env::sim::Clock clock;
  MemoryServer server(clock);
  Cache cache(server, kPods, [] {});
  const Barrier::Lookup lookup = [&](const std::string&) { return &cache; };
  const auto pod = server.write(
      {.resource = kPods, .ns = "ns", .body = json::object{{"metadata", {{"name", "p"}}}}});
  ASSERT_TRUE(pod.has_value() && cache.poll({}).has_value());
  client::Write bind{.resource = kPods,
                     .ns = "ns",
                     .name = "p",
                     .subresource = "binding",
                     .uid = std::string(api::uid(*pod)),
                     .resource_version = std::string(api::resource_version(*pod))};
  Barrier early;
  early.expect(bind, json::object{{"kind", "Status"}}, lookup);
  EXPECT_FALSE(early.open(lookup)) << "the cache has not seen it";
  client::Write change = bind;
  change.verb = client::Verb::kMergePatch;
  change.subresource = {};
  change.body = json::object{{"spec", {{"nodeName", "n"}}}};
  ASSERT_TRUE(server.write(change).has_value() && cache.poll({}).has_value());
  EXPECT_TRUE(early.open(lookup));
  Barrier late;
  late.expect(bind, json::object{{"kind", "Status"}}, lookup);
  EXPECT_TRUE(late.open(lookup)) << "the cache had seen it before the answer came";
}

TEST_F(RuntimeTest, a_key_that_never_sees_its_own_writes_lists_again_in_the_end) {
  runtime->pump();
  ASSERT_TRUE(server.write(create_root("a", 2)));
  runtime->pump();
  ASSERT_EQ(count(kPods), 2u);
  server.quiet = {kEchoRoots.key(), kPods.key()};
  const int before = plans;
  EXPECT_EQ(settle(), std::chrono::seconds(30));
  clock.advance(std::chrono::milliseconds(29'999));
  settle();
  EXPECT_EQ(plans, before) << "planned without having seen its own writes";
  EXPECT_TRUE(log.empty());
  clock.advance(std::chrono::milliseconds(1));
  runtime->pump();
  ASSERT_EQ(log.size(), 1u);
  EXPECT_EQ(log[0], "echo-controller: ns/a did not see its own writes in time; listing again");
  EXPECT_GT(plans, before);
  EXPECT_EQ(json::get_int(root("a"), {"status", "pods"}), 2);
}

TEST_F(RuntimeTest, a_root_that_is_gone_gets_no_children_however_late_we_hear_of_it) {
  // One that writes no status, which would carry the condition by itself.
  runtime = std::make_unique<Runtime>(server, clock);
  runtime->add(Controller{.name = "silent-controller",
                          .root = kEchoRoots,
                          .owned = {kPods},
                          .plan = [](const Observed& observed, Time now) {
                            Plan plan = plan_echo(observed, now);
                            plan.status.reset();
                            return plan;
                          }});
  ASSERT_TRUE(server.write(create_root("a", 1)));
  settle();
  ASSERT_EQ(count(kPods), 1u);
  server.quiet = {kEchoRoots.key()};
  ASSERT_TRUE(server.write(
      {.verb = client::Verb::kDelete, .resource = kEchoRoots, .ns = "ns", .name = "a"}));
  ASSERT_EQ(count(kPods), 0u);
  const std::uint64_t writes = server.writes();
  for (int i = 0; i < 100; ++i) {
    const Duration next = runtime->pump();
    clock.advance(std::min<Duration>(next, std::chrono::milliseconds(1)));
  }
  EXPECT_EQ(server.writes(), writes);
}

TEST_F(RuntimeTest, a_dear_plan_rests_for_nineteen_times_what_it_took) {
  struct Case {
    Duration takes;
    Duration rests;
  };
  using std::chrono::milliseconds;
  for (const auto& [takes, rests] :
       {Case{.takes = std::chrono::microseconds(999), .rests = {}},
        Case{.takes = milliseconds(10), .rests = milliseconds(190)},
        Case{.takes = milliseconds(500), .rests = milliseconds(1000)}}) {
    SCOPED_TRACE(takes.count());
    plan_takes = {};
    runtime = start();
    ASSERT_TRUE(server.write(create_root("a" + std::to_string(takes.count()), 0)));
    settle();
    clock.advance(std::chrono::hours(1));
    plan_takes = takes;
    client::Write patch{.verb = client::Verb::kMergePatch,
                        .resource = kEchoRoots,
                        .ns = "ns",
                        .name = "a" + std::to_string(takes.count())};
    int times = 0;
    const auto touch = [&] {
      patch.body = json::object{{"metadata", {{"labels", {{"touched", ++times}}}}}};
      ASSERT_TRUE(server.write(patch));
    };
    touch();
    runtime->pump();
    const int before = plans;
    for (int i = 0; i < 3; ++i) {
      touch();
      if (rests == Duration{}) continue;
      EXPECT_EQ(runtime->pump(), rests);
    }
    EXPECT_EQ(plans, before) << "the key is planned while it should rest";
    clock.advance(rests);
    runtime->pump();
    EXPECT_EQ(plans, before + 1) << "what changed meanwhile is one plan";
  }
}

TEST_F(RuntimeTest, history_that_is_gone_is_listed_again) {
  ASSERT_TRUE(server.write(create_root("a", 2)));
  settle();
  ASSERT_TRUE(server.write(create_root("b", 2)));
  ASSERT_TRUE(
      server.write({.verb = client::Verb::kDelete, .resource = kPods, .ns = "ns", .name = "a-0"}));
  server.forget_history();
  settle();
  EXPECT_EQ(count(kPods), 4u);
}

TEST_F(RuntimeTest, a_server_that_keeps_partial_submits_converges_too) {
  server.transactional = false;
  int creates = 0;
  server.refuse = [&](const client::Write& write) -> std::optional<Error> {
    if (write.resource.key() != "pods" || ++creates % 2 == 1) return std::nullopt;
    return Error{.code = Code::kTimeout, .message = "slow"};
  };
  ASSERT_TRUE(server.write(create_root("a", 5)));
  for (int i = 0; i < 20; ++i) clock.advance(settle());
  EXPECT_EQ(count(kPods), 5u);
}

// Makes the pods it is told of, each for itself.
struct Makers : ::testing::Test {
  env::sim::Clock clock = env::sim::Clock();
  MemoryServer server{clock};
  std::set<std::string> wanted = {"refused", "a"};
  std::set<std::string> there = {};
  Runtime runtime{server, clock};

  void SetUp() override {
    server.refuse = [](const client::Write& write) -> std::optional<Error> {
      if (write.resource.kind != "Pod" || api::name(write.body) != "refused") return std::nullopt;
      return Error{.code = Code::kForbidden, .message = "exceeded quota"};
    };
    runtime.add(GlobalController{.name = "maker",
                                 .watched = {kPods},
                                 .changed =
                                     [this](std::size_t, const Object&, const Object& after) {
                                       if (after != nullptr) there.emplace(api::name(*after));
                                     },
                                 .plan =
                                     [this](Time) {
                                       GlobalPlan plan;
                                       for (const std::string& name : wanted) {
                                         if (there.contains(name)) continue;
                                         client::Write write{.resource = kPods, .ns = "ns"};
                                         write.body = json::object{{"metadata", {{"name", name}}}};
                                         plan.batches.push_back({.writes = {std::move(write)}});
                                       }
                                       return plan;
                                     }});
  }
  void pump() {
    for (int i = 0; i < 5; ++i) runtime.pump();
  }
};

TEST_F(Makers, are_not_held_up_by_a_batch_that_is_refused) {
  pump();
  EXPECT_TRUE(there.contains("a"));
  for (int i = 0; i < 20; ++i) {  // the refused one backs off for long by now
    clock.advance(std::chrono::seconds(61));
    pump();
  }
  clock.advance(std::chrono::milliseconds(10));
  wanted.insert("b");
  const auto other = server.write(
      {.resource = kPods, .ns = "ns", .body = json::object{{"metadata", {{"name", "wake"}}}}});
  ASSERT_TRUE(other.has_value());
  pump();
  EXPECT_TRUE(there.contains("b"));
  server.refuse = {};
  pump();
  EXPECT_FALSE(there.contains("refused")) << "its own time has not come";
  clock.advance(std::chrono::seconds(61));
  pump();
  EXPECT_TRUE(there.contains("refused"));
}

TEST_F(Makers, ask_for_what_is_refused_less_and_less_often) {
  int asked = 0;
  const auto quota = server.refuse;
  server.refuse = [&](const client::Write& write) {
    auto refused = quota(write);
    asked += refused ? 1 : 0;
    return refused;
  };
  for (int i = 0; i < 600; ++i) {
    clock.advance(std::chrono::milliseconds(100));
    pump();
  }
  EXPECT_GT(asked, 5);
  EXPECT_LT(asked, 20) << "in a minute";
}

TEST_F(Makers, are_not_held_up_by_a_batch_that_fails) {
  server.refuse = [](const client::Write& write) -> std::optional<Error> {
    if (write.resource.kind != "Pod" || api::name(write.body) != "refused") return std::nullopt;
    return Error{.code = Code::kInternal, .message = "broken"};
  };
  for (int i = 0; i < 50; ++i) clock.advance(runtime.pump());  // it backs off for long by now
  pump();
  clock.advance(std::chrono::milliseconds(10));
  wanted.insert("b");
  ASSERT_TRUE(server.write(
      {.resource = kPods, .ns = "ns", .body = json::object{{"metadata", {{"name", "wake"}}}}}));
  pump();
  EXPECT_TRUE(there.contains("b"));
  EXPECT_FALSE(there.contains("refused"));
}

TEST_F(Makers, soon_try_again_however_many_batches_failed_together) {
  bool broken = true;
  server.refuse = [&](const client::Write& write) -> std::optional<Error> {
    if (!broken || write.resource.kind != "Pod") return std::nullopt;
    return Error{.code = Code::kServiceUnavailable, .message = "busy"};
  };
  for (int i = 0; i < 30; ++i) wanted.insert(fmt::format("p{}", i));
  for (int i = 0; i < 3; ++i) {
    pump();
    clock.advance(std::chrono::milliseconds(10));
  }
  broken = false;
  for (int i = 0; i < 10; ++i) {
    clock.advance(std::chrono::milliseconds(10));
    pump();
  }
  EXPECT_EQ(there.size(), wanted.size());
}

TEST_F(Makers, that_think_of_another_name_each_time_back_off_too) {
  int asked = 0;
  server.refuse = [&](const client::Write& write) -> std::optional<Error> {
    if (write.resource.kind != "Pod") return std::nullopt;
    wanted = {fmt::format("p{}", ++asked)};
    return Error{.code = Code::kInternal, .message = "broken"};
  };
  for (int i = 0; i < 600; ++i) {
    clock.advance(std::chrono::milliseconds(100));
    pump();
  }
  EXPECT_GT(asked, 5);
  EXPECT_LT(asked, 20) << "in a minute";
}

TEST_F(Makers, wait_as_long_as_the_server_asks_for) {
  int asked = 0;
  server.refuse = [&](const client::Write& write) -> std::optional<Error> {
    if (write.resource.kind != "Pod" || api::name(write.body) != "refused") return std::nullopt;
    ++asked;
    return Error{.code = Code::kTooManyRequests, .message = "slowly", .retry_after_s = 30};
  };
  for (int i = 0; i < 29; ++i) {
    pump();
    clock.advance(std::chrono::seconds(1));
  }
  pump();
  EXPECT_EQ(asked, 1);
  clock.advance(std::chrono::seconds(2));
  pump();
  EXPECT_EQ(asked, 2);
}

}  // namespace
}  // namespace skiff::control
