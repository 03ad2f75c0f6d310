#include "scheduler/schedule.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <ctime>

#include "api/meta.h"
#include "scheduler/amount.h"

namespace skiff::scheduler {
namespace {

Object share(json::value v) { return std::make_shared<const json::value>(std::move(v)); }

json::value node(std::string name, json::object allocatable) {
  return json::object{{"metadata", {{"name", name}, {"labels", {{"host", name}}}}},
                      {"status", {{"allocatable", std::move(allocatable)}}}};
}

json::value pod(std::string name, json::object requests, int second = 0) {
  return json::object{
      {"metadata",
       {{"name", name},
        {"namespace", "ns"},
        {"creationTimestamp",
         fmt::format("2026-01-01T00:{:02}:{:02}Z", second / 60, second % 60)}}},
      {"spec",
       {{"containers", {json::object{{"resources", {{"requests", std::move(requests)}}}}}}}}};
}

json::value gang_pod(std::string name, std::string gang, int min, json::object requests,
                     int second = 0) {
  json::value out = pod(std::move(name), std::move(requests), second);
  json::make_object(out, {"metadata", "annotations"}) =
      json::object{{kGangAnnotation, gang}, {kGangMinAnnotation, std::to_string(min)}};
  return out;
}

struct ScheduleTest : ::testing::Test {
  Books books;

  void add_node(json::value v) { books.node_changed(nullptr, share(std::move(v))); }
  void add_pod(json::value v) { books.pod_changed(nullptr, share(std::move(v))); }
  // "a>n1 b>n1" for what is placed, by gang, in order.
  std::string placed() {
    std::string out;
    for (const auto& gang : schedule(books.snapshot()).gangs) {
      for (const auto& [pod, where] : gang.bindings)
        out += fmt::format("{}>{} ", pod->key.name, where);
    }
    return out;
  }
  std::string why(std::string_view name) {
    for (const Waiting& waiting : schedule(books.snapshot()).waiting) {
      if (waiting.pod->key.name == name) return waiting.message;
    }
    return "does not wait";
  }
};

TEST(Amount, is_counted_in_thousandths_and_shown_short) {
  EXPECT_EQ(milli_of(json::value("1500m")), 1500);
  EXPECT_EQ(milli_of(json::value("nonsense")), 0);
  EXPECT_EQ(milli_of(json::value(2)), 2000);
  EXPECT_EQ(milli_of(json::value(0.5)), 500);
  EXPECT_EQ(show_milli("cpu", 1500), "1.5");
  EXPECT_EQ(show_milli("memory", 1610612736000), "1.5Gi");
  EXPECT_EQ(show_milli("nvidia.com/gpu", 2000), "2");
}

json::value port_pod(std::string name, std::int64_t port, std::string protocol, int second) {
  json::value out = pod(std::move(name), {}, second);
  out.at("spec").at("containers").at(0).as_object()["ports"] =
      json::array{json::object{{"containerPort", 80}, {"hostPort", port}, {"protocol", protocol}}};
  return out;
}

TEST_F(ScheduleTest, APortOfTheMachineIsGivenOncePerNode) {
  add_node(node("n1", {{"cpu", "4"}}));
  add_pod(port_pod("a", 8080, "TCP", 0));
  add_pod(port_pod("b", 8080, "TCP", 1));
  add_pod(port_pod("c", 8080, "UDP", 2));
  add_pod(port_pod("d", 0, "TCP", 3));
  EXPECT_EQ(placed(), "a>n1 c>n1 d>n1 ");
  EXPECT_EQ(
      why("b"),
      "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports");
  add_node(node("n2", {{"cpu", "4"}}));
  EXPECT_EQ(why("b"), "does not wait");
}

TEST_F(ScheduleTest, APortOfTheMachineIsFreeAgainWhenItsPodIsOver) {
  add_node(node("n1", {{"cpu", "4"}}));
  json::value holder = port_pod("a", 8080, "TCP", 0);
  holder.at("spec").as_object()["nodeName"] = "n1";
  const Object running = share(holder);
  books.pod_changed(nullptr, running);
  add_pod(port_pod("b", 8080, "TCP", 1));
  EXPECT_EQ(placed(), "");
  holder.as_object()["status"] = json::object{{"phase", "Succeeded"}};
  books.pod_changed(running, share(holder));
  EXPECT_EQ(placed(), "b>n1 ");
}

TEST_F(ScheduleTest, a_pod_goes_where_there_is_room) {
  add_node(node("n1", {{"cpu", "1"}}));
  add_node(node("n2", {{"cpu", "4"}}));
  add_pod(pod("a", {{"cpu", "2"}}));
  EXPECT_EQ(placed(), "a>n2 ");
}

TEST_F(ScheduleTest, pods_are_packed_and_the_ones_without_requests_spread) {
  add_node(node("n1", {{"cpu", "4"}}));
  add_node(node("n2", {{"cpu", "2"}}));
  add_pod(pod("a", {{"cpu", "1"}}, 1));
  add_pod(pod("b", {{"cpu", "1"}}, 2));
  add_pod(pod("c", {}, 3));
  EXPECT_EQ(placed(), "a>n2 b>n2 c>n1 ");
}

TEST_F(ScheduleTest, bound_pods_take_room_until_they_finish) {
  add_node(node("n1", {{"cpu", "2"}}));
  json::value running = pod("r", {{"cpu", "500m"}});
  json::set(running, {"spec", "nodeName"}, "n1");
  const Object bound = share(running);
  books.pod_changed(nullptr, bound);
  add_pod(pod("a", {{"cpu", "2"}}));
  EXPECT_EQ(why("a"), "0/1 nodes are available: 1 Insufficient cpu (asks 2, free 1.5 of 2)");
  json::set(running, {"status", "phase"}, "Succeeded");
  books.pod_changed(bound, share(running));
  EXPECT_EQ(placed(), "a>n1 ");
}

TEST_F(ScheduleTest, a_request_larger_than_any_node_is_said_to_be_so) {
  add_node(node("n1", {{"cpu", "2"}}));
  add_node(node("n2", {{"cpu", "4"}}));
  add_pod(pod("a", {{"cpu", "8"}}));
  add_pod(pod("g", {{"nvidia.com/gpu", 1}}));
  EXPECT_EQ(
      why("a"),
      "0/2 nodes are available: 2 Insufficient cpu (asks 8, most free 4 of 4); the request is "
      "larger than any node it may run on");
  EXPECT_EQ(
      why("g"),
      "0/2 nodes are available: 2 Insufficient nvidia.com/gpu (asks 1, most free 0 of 0); the "
      "request is larger than any node it may run on");
}

TEST_F(ScheduleTest, without_nodes_it_says_so) {
  add_pod(pod("a", {}));
  EXPECT_EQ(why("a"), "no nodes available to schedule pods");
}

TEST_F(ScheduleTest, init_containers_and_limits_count_as_kubernetes_counts_them) {
  add_node(node("n1", {{"cpu", "3"}}));
  json::value p = pod("a", {{"cpu", "1"}});
  json::set(p, {"spec", "initContainers"},
            json::array{json::object{{"resources", {{"limits", {{"cpu", "4"}}}}}}});
  add_pod(p);
  EXPECT_NE(why("a").find("asks 4"), std::string::npos) << why("a");
  json::set(p, {"spec", "initContainers"},
            json::array{json::object{{"restartPolicy", "Always"},
                                     {"resources", {{"requests", {{"cpu", "2.5"}}}}}}});
  add_pod(p);
  EXPECT_NE(why("a").find("asks 3.5"), std::string::npos) << why("a");
}

TEST_F(ScheduleTest, selectors_affinity_taints_and_state_keep_pods_away) {
  add_node(node("n1", {{"cpu", "4"}}));
  json::value closed = node("n2", {{"cpu", "4"}});
  json::set(closed, {"spec", "unschedulable"}, true);
  add_node(closed);
  json::value tainted = node("n3", {{"cpu", "4"}});
  json::set(tainted, {"spec", "taints"},
            json::array{json::object{{"key", "gpu"}, {"value", "yes"}, {"effect", "NoSchedule"}}});
  add_node(tainted);
  json::value sick = node("n4", {{"cpu", "4"}});
  json::set(sick, {"status", "conditions"},
            json::array{json::object{{"type", "Ready"}, {"status", "False"}}});
  add_node(sick);

  json::value p = pod("a", {});
  json::set(p, {"spec", "nodeSelector"}, json::object{{"host", "n3"}});
  add_pod(p);
  EXPECT_EQ(
      why("a"),
      "0/4 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) "
      "had untolerated taint {gpu: yes}, 1 node(s) were not ready, 1 node(s) were "
      "unschedulable");
  json::set(p, {"spec", "tolerations"},
            json::array{json::object{{"key", "gpu"}, {"operator", "Exists"}}});
  add_pod(p);
  EXPECT_EQ(placed(), "a>n3 ");

  json::value q = pod("a", {});
  json::set(q,
            {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution",
             "nodeSelectorTerms"},
            json::array{json::object{
                {"matchExpressions",
                 {json::object{{"key", "host"}, {"operator", "NotIn"}, {"values", {"n1"}}}}}}});
  add_pod(q);
  EXPECT_NE(why("a").find("1 node(s) didn't match"), std::string::npos) << why("a");
}

TEST_F(ScheduleTest, priority_comes_before_age) {
  add_node(node("n1", {{"cpu", "1"}}));
  add_pod(pod("old", {{"cpu", "1"}}, 1));
  json::value urgent = pod("urgent", {{"cpu", "1"}}, 2);
  json::set(urgent, {"spec", "priority"}, 10);
  add_pod(urgent);
  EXPECT_EQ(placed(), "urgent>n1 ");
}

TEST_F(ScheduleTest, a_gang_is_placed_whole_or_not_at_all) {
  add_node(node("n1", {{"cpu", "3"}}));
  for (int i = 0; i < 4; ++i)
    add_pod(gang_pod(fmt::format("big-{}", i), "big", 4, {{"cpu", "1"}}, 1));
  for (int i = 0; i < 2; ++i)
    add_pod(gang_pod(fmt::format("sm-{}", i), "sm", 2, {{"cpu", "1"}}, 2));
  EXPECT_EQ(placed(), "sm-0>n1 sm-1>n1 ");
  EXPECT_EQ(why("big-0"),
            "gang \"big\" needs room for 4 pods at once and 3 fit: 0/1 nodes are available: 1 "
            "Insufficient cpu (asks 1, free 0 of 3)");
}

TEST_F(ScheduleTest, a_gang_waits_for_its_missing_members) {
  add_node(node("n1", {{"cpu", "9"}}));
  add_pod(gang_pod("a-0", "a", 2, {}));
  EXPECT_EQ(why("a-0"), "gang \"a\" starts 2 pods together and 1 exist so far");
  add_pod(gang_pod("a-1", "a", 2, {}));
  EXPECT_EQ(placed(), "a-0>n1 a-1>n1 ");
}

TEST_F(ScheduleTest, a_member_that_comes_back_joins_the_ones_that_run) {
  add_node(node("n1", {{"cpu", "9"}}));
  json::value running = gang_pod("a-0", "a", 2, {});
  json::set(running, {"spec", "nodeName"}, "n1");
  add_pod(running);
  add_pod(gang_pod("a-1", "a", 2, {}));
  EXPECT_EQ(placed(), "a-1>n1 ");
  const auto gangs = schedule(books.snapshot()).gangs;
  ASSERT_EQ(gangs[0].counted.size(), 1u);
  EXPECT_EQ(api::name(*gangs[0].counted[0]), "a-0");
}

TEST_F(ScheduleTest, members_past_the_minimum_are_placed_as_they_fit) {
  add_node(node("n1", {{"cpu", "2"}}));
  for (int i = 0; i < 3; ++i) add_pod(gang_pod(fmt::format("a-{}", i), "a", 2, {{"cpu", "1"}}));
  EXPECT_EQ(placed(), "a-0>n1 a-1>n1 ");
  EXPECT_EQ(why("a-2"), "0/1 nodes are available: 1 Insufficient cpu (asks 1, free 0 of 2)");
}

TEST_F(ScheduleTest, the_bound_on_pods_holds) {
  add_node(node("n1", {{"cpu", "9"}, {"pods", "1"}}));
  add_pod(pod("a", {}, 1));
  add_pod(pod("b", {}, 2));
  EXPECT_EQ(placed(), "a>n1 ");
  EXPECT_EQ(why("b"), "0/1 nodes are available: 1 Too many pods");
}

TEST_F(ScheduleTest, gated_deleted_and_foreign_pods_are_left_alone) {
  add_node(node("n1", {{"cpu", "9"}}));
  json::value gated = pod("gated", {});
  json::set(gated, {"spec", "schedulingGates"}, json::array{json::object{{"name", "g"}}});
  add_pod(gated);
  json::value deleted = pod("deleted", {});
  json::set(deleted, {"metadata", "deletionTimestamp"}, "2026-01-01T00:00:00Z");
  add_pod(deleted);
  json::value foreign = pod("foreign", {});
  json::set(foreign, {"spec", "schedulerName"}, "mine");
  add_pod(foreign);
  EXPECT_TRUE(books.snapshot().pending.empty());
}

TEST_F(ScheduleTest, ten_thousand_waiting_pods_are_planned_well_under_a_second) {
  for (int i = 0; i < 100; ++i) add_node(node(fmt::format("n{}", i), {{"cpu", "32"}}));
  for (int i = 0; i < 10'000; ++i) {
    // Half alone, half in gangs of eight; only a third of them fits.
    json::object requests{{"cpu", fmt::format("{}m", 900 + i % 200)}};
    const std::string name = fmt::format("p{}", i);
    add_pod(i % 2 == 0 ? pod(name, requests, i % 3600)
                       : gang_pod(name, fmt::format("g{}", i / 16), 8, requests, i % 3600));
  }
  // Processor time: how busy the machine is otherwise says nothing about the planner.
  const std::clock_t started = std::clock();
  const Decisions decisions = schedule(books.snapshot());
  const std::clock_t took = std::clock() - started;
  std::size_t bound = 0;
  for (const auto& gang : decisions.gangs) bound += gang.bindings.size();
  EXPECT_EQ(bound + decisions.waiting.size(), 10'000u);
  EXPECT_GT(bound, 3'000u);
  EXPECT_LT(took, CLOCKS_PER_SEC);
  ::testing::Test::RecordProperty("ms", static_cast<int>(took * 1000 / CLOCKS_PER_SEC));
}

}  // namespace
}  // namespace skiff::scheduler
