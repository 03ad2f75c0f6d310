#include "scheduler/controller.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/core/claims.h"
#include "api/meta.h"
#include "control/runtime.h"
#include "control/testing/memory_server.h"
#include "control/testing/resources.h"
#include "env/sim/clock.h"
#include "scheduler/snapshot.h"

namespace skiff::scheduler {
namespace {

using control::testing::kNodes;
using control::testing::kPods;

const api::Resource kEvents = {.version = "v1", .plural = "events", .kind = "Event"};

struct SchedulerTest : ::testing::Test {
  env::sim::Clock clock;
  control::testing::MemoryServer server{clock};
  bool woken = false;
  control::Runtime runtime{server, clock, {.wake = [this] { woken = true; }}};

  void SetUp() override {
    runtime.add(make_scheduler());
    client::Write node{.resource = kNodes};
    node.body =
        json::object{{"metadata", {{"name", "n1"}}}, {"status", {{"allocatable", {{"cpu", "2"}}}}}};
    ASSERT_TRUE(server.write(node));
  }
  void settle() {
    for (int i = 0; i < 100; ++i) {
      woken = false;
      const Duration next = runtime.pump();
      if (!woken && next > Duration{0}) return;
    }
    FAIL() << "does not settle";
  }
  void add(std::string name, std::string cpu) {
    client::Write write{.resource = kPods, .ns = "ns"};
    write.body = json::object{
        {"metadata", {{"name", name}}},
        {"spec", {{"containers", {json::object{{"resources", {{"requests", {{"cpu", cpu}}}}}}}}}}};
    ASSERT_TRUE(server.write(write));
  }
  void add_member(std::string name, std::string gang_min, json::object spec = {}) {
    client::Write write{.resource = kPods, .ns = "ns"};
    write.body =
        json::object{{"metadata",
                      {{"name", name},
                       {"annotations", {{kGangAnnotation, "g"}, {kGangMinAnnotation, gang_min}}}}},
                     {"spec", std::move(spec)}};
    ASSERT_TRUE(server.write(write));
  }
  void remove(std::string name) {
    client::Write write{.verb = client::Verb::kDelete, .resource = kPods, .ns = "ns", .name = name};
    write.body = json::object{{"gracePeriodSeconds", 0}};
    ASSERT_TRUE(server.write(write));
  }
  std::string node_of(std::string_view name) {
    return std::string(json::get_string(get(name), {"spec", "nodeName"}));
  }
  json::value get(std::string_view name) { return *server.get(kPods, "ns", name); }
  std::vector<std::string> reasons() {
    std::vector<std::string> out;
    for (const Object& event : server.list(kEvents, {}, {})->items) {
      out.emplace_back(json::get_string(*event, {"reason"}));
    }
    return out;
  }
};

TEST(Scheduler, a_long_plan_is_made_of_what_was_known_when_it_was_taken) {
  const control::GlobalController scheduler = make_scheduler();
  const auto share = [](json::value v) {
    return std::make_shared<const json::value>(std::move(v));
  };
  const Time now = *parse_time("2026-01-01T00:00:00Z");
  scheduler.changed(1, {},
                    share(json::object{{"metadata", {{"name", "n1"}}},
                                       {"status", {{"allocatable", {{"cpu", "900"}}}}}}));
  const auto add = [&](int i) {
    scheduler.changed(
        0, {},
        share(json::object{
            {"metadata",
             {{"name", fmt::format("p-{:03}", i)},
              {"namespace", "ns"},
              {"uid", fmt::format("u{}", i)},
              {"resourceVersion", "7"},
              {"annotations", {{kGangAnnotation, "g"}, {kGangMinAnnotation, "300"}}}}}}));
  };
  add(0);
  EXPECT_FALSE(scheduler.plan_apart(now).plan) << "a short one is not worth a copy";
  for (int i = 1; i < 300; ++i) add(i);
  const auto apart = scheduler.plan_apart(now).plan;
  ASSERT_TRUE(apart);
  const control::GlobalPlan here = scheduler.plan(now);
  add(300);
  scheduler.changed(1, share(json::object{{"metadata", {{"name", "n1"}}}}), {});
  const control::GlobalPlan there = apart();
  ASSERT_EQ(there.batches.size(), 1u);
  ASSERT_EQ(here.batches.size(), 1u);
  ASSERT_EQ(there.batches[0].writes.size(), 300u);
  for (std::size_t i = 0; i < 300; ++i) {
    EXPECT_EQ(there.batches[0].writes[i].body, here.batches[0].writes[i].body);
    EXPECT_EQ(there.batches[0].writes[i].uid, here.batches[0].writes[i].uid);
  }
  EXPECT_TRUE(scheduler.plan(now).batches[0].notes[0].note.warning) << "there is no node any more";
}

TEST_F(SchedulerTest, a_pod_that_fits_is_bound_and_told) {
  add("a", "1");
  settle();
  EXPECT_EQ(json::get_string(get("a"), {"spec", "nodeName"}), "n1");
  EXPECT_EQ(reasons(), std::vector<std::string>{"Scheduled"});
}

TEST_F(SchedulerTest, a_pod_that_waits_says_why_once) {
  add("a", "8");
  settle();
  const std::uint64_t writes = server.writes();
  const json::object* condition = api::condition(get("a"), "PodScheduled");
  const json::value pod = get("a");
  condition = api::condition(pod, "PodScheduled");
  ASSERT_NE(condition, nullptr);
  EXPECT_EQ(json::get_string(json::value(*condition), {"reason"}), "Unschedulable");
  EXPECT_EQ(reasons(), std::vector<std::string>{"FailedScheduling"});
  add("b", "1");  // changes the free amount, and with it nothing but a number
  settle();
  EXPECT_EQ(server.writes(), writes + 3);  // the pod, its binding, its event
}

TEST_F(SchedulerTest, of_a_large_gang_that_is_still_being_made_only_the_first_are_told) {
  constexpr int kThere = 150;
  for (int i = 0; i < kThere; ++i) add_member(fmt::format("m-{}", i), "200");
  settle();
  int told = 0;
  for (const Object& pod : server.list(kPods, {}, {})->items) {
    told += api::condition(*pod, "PodScheduled") != nullptr ? 1 : 0;
  }
  EXPECT_EQ(told, 100);
  for (int i = kThere; i < 200; ++i) add_member(fmt::format("m-{}", i), "200");
  settle();
  EXPECT_EQ(node_of("m-0"), "n1");
  EXPECT_EQ(node_of("m-199"), "n1");
}

TEST_F(SchedulerTest, of_a_large_gang_that_does_not_fit_only_the_first_are_told) {
  const json::array containers{json::object{{"resources", {{"requests", {{"cpu", "1"}}}}}}};
  for (int i = 0; i < 150; ++i) {
    add_member(fmt::format("m-{}", i), "150", json::object{{"containers", containers}});
  }
  add("z", "8");
  settle();
  int told = 0;
  for (const Object& pod : server.list(kPods, {}, {})->items) {
    if (!api::name(*pod).starts_with("m-")) continue;
    told += api::condition(*pod, "PodScheduled") != nullptr ? 1 : 0;
  }
  EXPECT_EQ(told, 100);
  const json::value alone = get("z");
  EXPECT_NE(api::condition(alone, "PodScheduled"), nullptr) << "the gang does not silence others";
}

TEST_F(SchedulerTest, numbers_of_a_reason_are_brought_up_to_date_in_time) {
  add("a", "2");
  add("b", "2");
  settle();
  clock.advance(std::chrono::minutes(1));
  ASSERT_TRUE(server.write({.verb = client::Verb::kDelete, .resource = kNodes, .name = "n1"}));
  settle();
  const json::value pod = get("b");
  EXPECT_EQ(json::get_string(json::value(*api::condition(pod, "PodScheduled")), {"message"}),
            "no nodes available to schedule pods");
}

// What a scheduler decides from what it sees now, to be carried out when the world has moved on.
struct LateScheduler {
  control::GlobalController scheduler = make_scheduler();

  LateScheduler(control::testing::MemoryServer& server, Time now) : server_(server) {
    for (std::size_t i = 0; i < scheduler.watched.size(); ++i) {
      for (const Object& object : server.list(scheduler.watched[i], {}, {})->items) {
        scheduler.changed(i, nullptr, object);
      }
    }
    plan_ = scheduler.plan(now);
  }
  void act() {
    for (const control::Batch& batch : plan_.batches) server_.submit(batch.writes, [](auto) {});
  }

 private:
  control::testing::MemoryServer& server_;
  control::GlobalPlan plan_ = {};
};

TEST_F(SchedulerTest, a_late_decision_binds_no_part_of_a_gang) {
  struct Case {
    std::string_view name;
    std::function<void()> meanwhile;
    bool bound;
  };
  const Case cases[] = {
      {"nothing happens", [] {}, true},
      {"the placed member is gone", [&] { remove("a"); }, false},
      {"the placed member has a successor that waits",
       [&] {
         remove("a");
         add_member("a", "2");
       },
       false},
      {"the placed member is being deleted",
       [&] {
         ASSERT_TRUE(server.write(
             {.verb = client::Verb::kDelete, .resource = kPods, .ns = "ns", .name = "a"}));
       },
       false},
      {"the waiting member has a successor",
       [&] {
         remove("b");
         add_member("b", "2");
       },
       false},
      {"the waiting member asks for a larger gang",
       [&] {
         client::Write patch{
             .verb = client::Verb::kMergePatch, .resource = kPods, .ns = "ns", .name = "b"};
         patch.body = json::object{{"metadata", {{"annotations", {{kGangMinAnnotation, "3"}}}}}};
         ASSERT_TRUE(server.write(patch));
       },
       false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    add_member("a", "2");
    add_member("b", "2");
    settle();
    ASSERT_EQ(node_of("a"), "n1");
    remove("b");
    add_member("b", "2");
    LateScheduler late(server, clock.now());
    c.meanwhile();
    late.act();
    EXPECT_EQ(node_of("b"), c.bound ? "n1" : "");
    for (const Object& pod : server.list(kPods, {}, {})->items)
      remove(std::string(api::name(*pod)));
    settle();
  }
}

TEST_F(SchedulerTest, a_gang_that_waits_is_bound_whole_or_not_at_all_by_a_late_decision) {
  add_member("a", "2");
  add_member("b", "2");
  LateScheduler late(server, clock.now());
  remove("b");
  add_member("b", "2");
  late.act();
  EXPECT_EQ(node_of("a"), "");
  EXPECT_EQ(node_of("b"), "");
}

// One that makes its plans apart, and lets them come back when the test says so.
struct ApartTest : SchedulerTest {
  std::vector<std::function<void()>> coming = {};
  control::Runtime apart{server, clock, {.elsewhere = [this](auto work, auto then) {
                           work();
                           coming.push_back(std::move(then));
                         }}};
  json::object node(std::string name, std::string cpu) {
    return {{"metadata", {{"name", name}}},
            {"status", {{"allocatable", {{"cpu", cpu}, {"memory", "1Gi"}}}}}};
  }

  void SetUp() override {
    apart.add(make_scheduler(1));
    for (const char* name : {"n1", "n2"}) {
      ASSERT_TRUE(server.write({.resource = kNodes, .body = node(name, "2")}));
    }
  }
  void pump() {
    for (int i = 0; i < 5; ++i) apart.pump();
  }
  void come_back() {
    for (const auto& then : std::exchange(coming, {})) then();
    pump();
  }
  void patch(std::string name, json::value body, std::string subresource = {}) {
    ASSERT_TRUE(server.write({.verb = client::Verb::kMergePatch,
                              .resource = kNodes,
                              .name = std::move(name),
                              .subresource = std::move(subresource),
                              .body = std::move(body)}));
  }
  void add_gang() {
    const json::object one{{"resources", {{"requests", {{"cpu", "1"}}}}}};
    for (const char* name : {"a", "b"}) {
      add_member(name, "2", json::object{{"containers", json::array{one}}});
    }
  }
};

TEST_F(ApartTest, a_node_that_changes_while_a_plan_is_under_way_gets_nothing_it_does_not_take) {
  struct Case {
    std::string_view name;
    std::function<void()> meanwhile;
    std::string_view place;
  };
  const json::value taint = json::object{{"key", "gpu"}, {"effect", "NoSchedule"}};
  const json::value not_ready = json::object{{"type", "Ready"}, {"status", "False"}};
  const json::value ready = json::object{{"type", "Ready"}, {"status", "True"}};
  const Case cases[] = {
      {"nothing happens", [] {}, "n1"},
      {"it is cordoned", [&] { patch("n1", {{"spec", {{"unschedulable", true}}}}); }, "n2"},
      {"it gets a taint", [&] { patch("n1", {{"spec", {{"taints", json::array{taint}}}}}); }, "n2"},
      {"it falls ill",
       [&] { patch("n1", {{"status", {{"conditions", json::array{not_ready}}}}}, "status"); },
       "n2"},
      {"it tells that it is well",
       [&] { patch("n1", {{"status", {{"conditions", json::array{ready}}}}}, "status"); }, "n1"},
      {"it has less room",
       [&] { patch("n1", {{"status", {{"allocatable", {{"cpu", "500m"}}}}}}, "status"); }, "n2"},
      {"it has less of what they do not ask for",
       [&] { patch("n1", {{"status", {{"allocatable", {{"memory", "1Mi"}}}}}}, "status"); }, "n1"},
      {"it is gone",
       [&] {
         ASSERT_TRUE(
             server.write({.verb = client::Verb::kDelete, .resource = kNodes, .name = "n1"}));
       },
       "n2"},
      {"somebody else takes the room",
       [&] {
         client::Write write{.resource = kPods, .ns = "ns"};
         write.body = json::object{
             {"metadata", {{"name", "guest"}}},
             {"spec",
              {{"nodeName", "n1"},
               {"containers", {json::object{{"resources", {{"requests", {{"cpu", "2"}}}}}}}}}}};
         ASSERT_TRUE(server.write(write));
       },
       "n2"},
      {"the other node is gone",
       [&] {
         ASSERT_TRUE(
             server.write({.verb = client::Verb::kDelete, .resource = kNodes, .name = "n2"}));
       },
       "n1"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    add_gang();
    pump();
    ASSERT_EQ(coming.size(), 1u);
    c.meanwhile();
    pump();
    come_back();
    EXPECT_EQ(node_of("a"), c.place);
    EXPECT_EQ(node_of("b"), c.place) << "a gang goes as one";
    for (const Object& pod : server.list(kPods, {}, {})->items)
      remove(std::string(api::name(*pod)));
    for (const Object& each : server.list(kNodes, {}, {})->items) {
      ASSERT_TRUE(server.write({.verb = client::Verb::kDelete,
                                .resource = kNodes,
                                .name = std::string(api::name(*each))}));
    }
    for (const char* name : {"n1", "n2"}) {
      ASSERT_TRUE(server.write({.resource = kNodes, .body = node(name, "2")}));
    }
    clock.advance(std::chrono::seconds(1));
    pump();
    come_back();
  }
}

TEST_F(ApartTest, a_claim_is_given_to_no_node_that_was_cordoned_meanwhile) {
  const api::Resource claims{
      .version = "v1", .plural = "persistentvolumeclaims", .kind = "PersistentVolumeClaim"};
  const api::Resource classes{.group = "storage.k8s.io",
                              .version = "v1",
                              .plural = "storageclasses",
                              .kind = "StorageClass",
                              .namespaced = false};
  ASSERT_TRUE(server.write({.resource = classes,
                            .body = json::object{{"metadata", {{"name", "local"}}},
                                                 {"provisioner", "skiff.dev/folder"},
                                                 {"volumeBindingMode", "WaitForFirstConsumer"}}}));
  ASSERT_TRUE(server.write({.resource = claims,
                            .ns = "ns",
                            .body = json::object{{"metadata", {{"name", "c"}}},
                                                 {"spec", {{"storageClassName", "local"}}},
                                                 {"status", {{"phase", "Pending"}}}}}));
  client::Write pod{.resource = kPods, .ns = "ns"};
  pod.body = json::object{
      {"metadata", {{"name", "a"}}},
      {"spec",
       {{"volumes",
         {json::object{{"name", "v"}, {"persistentVolumeClaim", {{"claimName", "c"}}}}}}}}};
  ASSERT_TRUE(server.write(pod));
  pump();
  ASSERT_EQ(coming.size(), 1u);
  patch("n1", {{"spec", {{"unschedulable", true}}}});
  pump();
  come_back();
  EXPECT_EQ(api::annotation(*server.get(claims, "ns", "c"), api::kSelectedNode), "n2");
}

TEST_F(SchedulerTest, room_that_appears_is_used) {
  add("a", "2");
  add("b", "2");
  settle();
  const bool a_first = !json::get_string(get("a"), {"spec", "nodeName"}).empty();
  client::Write done{.verb = client::Verb::kMergePatch,
                     .resource = kPods,
                     .ns = "ns",
                     .name = a_first ? "a" : "b",
                     .subresource = "status"};
  done.body = json::object{{"status", {{"phase", "Succeeded"}}}};
  ASSERT_TRUE(server.write(done));
  settle();
  EXPECT_EQ(json::get_string(get(a_first ? "b" : "a"), {"spec", "nodeName"}), "n1");
}

}  // namespace
}  // namespace skiff::scheduler
