#include "scheduler/schedule.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <ctime>
#include <map>

#include "api/meta.h"
#include "scheduler/amount.h"

namespace skiff::scheduler {
namespace {

Object shared(json::value v) { return std::make_shared<const json::value>(std::move(v)); }

json::value labelled_node(std::string name, json::object allocatable) {
  return json::object{{"metadata", {{"name", name}, {"labels", {{"host", name}}}}},
                      {"status", {{"allocatable", std::move(allocatable)}}}};
}

json::value timed_pod(std::string name, json::object requests, int second = 0) {
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
  json::value out = timed_pod(std::move(name), std::move(requests), second);
  json::make_object(out, {"metadata", "annotations"}) =
      json::object{{kGangAnnotation, gang}, {kGangMinAnnotation, std::to_string(min)}};
  return out;
}

struct ScheduleTest : ::testing::Test {
  Books books;
  Time now = *parse_time("2026-01-01T00:00:00Z");

  void add_node(json::value v) { books.node_changed(nullptr, shared(std::move(v))); }
  void add_pod(json::value v) { books.pod_changed(nullptr, shared(std::move(v))); }
  // "a>n1 b>n1" for what is placed, by gang, in order.
  std::string placed() {
    std::string out;
    for (const auto& gang : schedule(books.snapshot(), now).gangs) {
      for (const auto& [timed_pod, where] : gang.bindings)
        out += fmt::format("{}>{} ", timed_pod->key.name, where);
    }
    return out;
  }
  std::string why(std::string_view name) {
    for (const Waiting& waiting : schedule(books.snapshot(), now).waiting) {
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
  json::value out = timed_pod(std::move(name), {}, second);
  out.at("spec").at("containers").at(0).as_object()["ports"] =
      json::array{json::object{{"containerPort", 80}, {"hostPort", port}, {"protocol", protocol}}};
  return out;
}

TEST_F(ScheduleTest, pods_that_are_alike_go_where_each_of_them_alone_would_go) {
  // What is asked for, by shape: nothing, little, much.
  const std::vector<json::object> shapes = {json::object{}, json::object{{"cpu", "1"}},
                                            json::object{{"cpu", "3"}, {"memory", "1Gi"}}};
  for (std::size_t i = 0; i < 7; ++i) {
    add_node(
        labelled_node(fmt::format("n{}", i),
                      {{"cpu", std::to_string(4 + i % 3 * 4)}, {"memory", "8Gi"}, {"pods", "9"}}));
  }
  Books alone = books;
  std::string expected;
  for (std::size_t i = 0; i < 60; ++i) {
    // Runs of ten of a shape: what is known of the nodes for one must not be taken for another.
    const json::value wanted =
        timed_pod(fmt::format("p{:02}", i), shapes[i / 10 % shapes.size()], static_cast<int>(i));
    add_pod(wanted);
    alone.pod_changed(nullptr, shared(wanted));
    const Decisions decided = schedule(alone.snapshot(), now);
    if (decided.gangs.empty()) continue;
    ASSERT_EQ(decided.gangs.size(), 1u);
    const auto& [one, where] = decided.gangs[0].bindings[0];
    expected += fmt::format("{}>{} ", one->key.name, where);
    json::value bound = wanted;
    json::set(bound, {"spec", "nodeName"}, json::string(where));
    alone.pod_changed(shared(wanted), shared(bound));
  }
  EXPECT_EQ(placed(), expected);
  EXPECT_NE(expected.find("p40>"), std::string::npos);
  EXPECT_EQ(expected.find("p59>"), std::string::npos) << "some find no room";
}

TEST_F(ScheduleTest, what_a_gang_gives_back_is_there_for_others_like_it) {
  add_node(labelled_node("n1", {{"cpu", "4"}}));
  add_node(labelled_node("n2", {{"cpu", "2"}}));
  for (int i = 0; i < 7; ++i) {
    add_pod(gang_pod(fmt::format("a{}", i), "a", 7, {{"cpu", "1"}}));
  }
  for (int i = 0; i < 6; ++i) add_pod(timed_pod(fmt::format("b{}", i), {{"cpu", "1"}}, 1));
  EXPECT_EQ(placed(), "b0>n2 b1>n2 b2>n1 b3>n1 b4>n1 b5>n1 ");
}

TEST_F(ScheduleTest, APortOfTheMachineIsGivenOncePerNode) {
  add_node(labelled_node("n1", {{"cpu", "4"}}));
  add_pod(port_pod("a", 8080, "TCP", 0));
  add_pod(port_pod("b", 8080, "TCP", 1));
  add_pod(port_pod("c", 8080, "UDP", 2));
  add_pod(port_pod("d", 0, "TCP", 3));
  EXPECT_EQ(placed(), "a>n1 c>n1 d>n1 ");
  EXPECT_EQ(
      why("b"),
      "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports");
  add_node(labelled_node("n2", {{"cpu", "4"}}));
  EXPECT_EQ(why("b"), "does not wait");
}

TEST_F(ScheduleTest, APortOfTheMachineIsFreeAgainWhenItsPodIsOver) {
  add_node(labelled_node("n1", {{"cpu", "4"}}));
  json::value holder = port_pod("a", 8080, "TCP", 0);
  holder.at("spec").as_object()["nodeName"] = "n1";
  const Object running = shared(holder);
  books.pod_changed(nullptr, running);
  add_pod(port_pod("b", 8080, "TCP", 1));
  EXPECT_EQ(placed(), "");
  holder.as_object()["status"] = json::object{{"phase", "Succeeded"}};
  books.pod_changed(running, shared(holder));
  EXPECT_EQ(placed(), "b>n1 ");
}

TEST_F(ScheduleTest, a_pod_goes_where_there_is_room) {
  add_node(labelled_node("n1", {{"cpu", "1"}}));
  add_node(labelled_node("n2", {{"cpu", "4"}}));
  add_pod(timed_pod("a", {{"cpu", "2"}}));
  EXPECT_EQ(placed(), "a>n2 ");
}

TEST_F(ScheduleTest, pods_are_packed_and_the_ones_without_requests_spread) {
  add_node(labelled_node("n1", {{"cpu", "4"}}));
  add_node(labelled_node("n2", {{"cpu", "2"}}));
  add_pod(timed_pod("a", {{"cpu", "1"}}, 1));
  add_pod(timed_pod("b", {{"cpu", "1"}}, 2));
  add_pod(timed_pod("c", {}, 3));
  EXPECT_EQ(placed(), "a>n2 b>n2 c>n1 ");
}

TEST_F(ScheduleTest, bound_pods_take_room_until_they_finish) {
  add_node(labelled_node("n1", {{"cpu", "2"}}));
  json::value running = timed_pod("r", {{"cpu", "500m"}});
  json::set(running, {"spec", "nodeName"}, "n1");
  const Object bound = shared(running);
  books.pod_changed(nullptr, bound);
  add_pod(timed_pod("a", {{"cpu", "2"}}));
  EXPECT_EQ(why("a"), "0/1 nodes are available: 1 Insufficient cpu (asks 2, free 1.5 of 2)");
  json::set(running, {"status", "phase"}, "Succeeded");
  books.pod_changed(bound, shared(running));
  EXPECT_EQ(placed(), "a>n1 ");
}

TEST_F(ScheduleTest, a_request_larger_than_any_node_is_said_to_be_so) {
  add_node(labelled_node("n1", {{"cpu", "2"}}));
  add_node(labelled_node("n2", {{"cpu", "4"}}));
  add_pod(timed_pod("a", {{"cpu", "8"}}));
  add_pod(timed_pod("g", {{"nvidia.com/gpu", 1}}));
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
  add_pod(timed_pod("a", {}));
  EXPECT_EQ(why("a"), "no nodes available to schedule pods");
}

TEST_F(ScheduleTest, init_containers_and_limits_count_as_kubernetes_counts_them) {
  add_node(labelled_node("n1", {{"cpu", "3"}}));
  json::value p = timed_pod("a", {{"cpu", "1"}});
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
  add_node(labelled_node("n1", {{"cpu", "4"}}));
  json::value closed = labelled_node("n2", {{"cpu", "4"}});
  json::set(closed, {"spec", "unschedulable"}, true);
  add_node(closed);
  json::value tainted = labelled_node("n3", {{"cpu", "4"}});
  json::set(tainted, {"spec", "taints"},
            json::array{json::object{{"key", "gpu"}, {"value", "yes"}, {"effect", "NoSchedule"}}});
  add_node(tainted);
  json::value sick = labelled_node("n4", {{"cpu", "4"}});
  json::set(sick, {"status", "conditions"},
            json::array{json::object{{"type", "Ready"}, {"status", "False"}}});
  add_node(sick);

  json::value p = timed_pod("a", {});
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

  json::value q = timed_pod("a", {});
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
  add_node(labelled_node("n1", {{"cpu", "1"}}));
  add_pod(timed_pod("old", {{"cpu", "1"}}, 1));
  json::value urgent = timed_pod("urgent", {{"cpu", "1"}}, 2);
  json::set(urgent, {"spec", "priority"}, 10);
  add_pod(urgent);
  EXPECT_EQ(placed(), "urgent>n1 ");
}

TEST_F(ScheduleTest, a_gang_is_placed_whole_or_not_at_all) {
  add_node(labelled_node("n1", {{"cpu", "3"}}));
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
  add_node(labelled_node("n1", {{"cpu", "9"}}));
  add_pod(gang_pod("a-0", "a", 2, {}));
  EXPECT_EQ(why("a-0"), "gang \"a\" starts 2 pods together and 1 exist so far");
  add_pod(gang_pod("a-1", "a", 2, {}));
  EXPECT_EQ(placed(), "a-0>n1 a-1>n1 ");
}

TEST_F(ScheduleTest, a_gang_that_is_named_after_a_uid_goes_without_its_name) {
  add_node(labelled_node("n1", {{"cpu", "1"}}));
  const std::string uid = "38ea9c94-4a29-4fad-aeb4-60a9378a77a9";
  add_pod(gang_pod("a-0", uid, 2, {{"cpu", "1"}}));
  EXPECT_EQ(why("a-0"), "its gang starts 2 pods together and 1 exist so far");
  add_pod(gang_pod("a-1", uid, 2, {{"cpu", "1"}}));
  EXPECT_EQ(why("a-0"),
            "its gang needs room for 2 pods at once and 1 fit: 0/1 nodes are available: 1 "
            "Insufficient cpu (asks 1, free 0 of 1)");
}

TEST_F(ScheduleTest, a_member_that_comes_back_joins_the_ones_that_run) {
  add_node(labelled_node("n1", {{"cpu", "9"}}));
  json::value running = gang_pod("a-0", "a", 2, {});
  json::set(running, {"spec", "nodeName"}, "n1");
  add_pod(running);
  add_pod(gang_pod("a-1", "a", 2, {}));
  EXPECT_EQ(placed(), "a-1>n1 ");
  const auto gangs = schedule(books.snapshot(), now).gangs;
  ASSERT_EQ(gangs[0].counted.size(), 1u);
  EXPECT_EQ(gangs[0].counted[0]->key.name, "a-0");
}

TEST_F(ScheduleTest, members_that_have_ended_count_no_more_whatever_they_ended_with) {
  add_node(labelled_node("n1", {{"cpu", "1"}}));
  for (const std::string_view phase : {"Failed", "Succeeded"}) {
    for (int i = 0; i < 2; ++i) {
      json::value over = gang_pod(fmt::format("old-{}", i), "a", 2, {{"cpu", "1"}});
      json::set(over, {"spec", "nodeName"}, "n1");
      json::set(over, {"status", "phase"}, json::string(phase));
      add_pod(std::move(over));
    }
    for (int i = 0; i < 2; ++i) add_pod(gang_pod(fmt::format("a-{}", i), "a", 2, {{"cpu", "1"}}));
    EXPECT_EQ(placed(), "") << "half a gang would hold its room and wait for the other half: "
                            << phase;
  }
}

TEST_F(ScheduleTest, of_four_with_one_done_the_three_that_were_lost_start_together) {
  add_node(labelled_node("n1", {{"cpu", "2"}}));
  json::value done = gang_pod("a-0", "a", 4, {{"cpu", "1"}});
  json::set(done, {"spec", "nodeName"}, "n1");
  json::set(done, {"status", "phase"}, "Succeeded");
  add_pod(std::move(done));
  // Who makes them asks for no place for the one that is done.
  for (int i = 1; i < 4; ++i) add_pod(gang_pod(fmt::format("a-{}", i), "a", 3, {{"cpu", "1"}}));
  EXPECT_EQ(placed(), "") << "two would fit, and wait for the third";
  add_node(labelled_node("n2", {{"cpu", "1"}}));
  EXPECT_EQ(placed(), "a-1>n2 a-2>n1 a-3>n1 ");
}

TEST_F(ScheduleTest, members_past_the_minimum_are_placed_as_they_fit) {
  add_node(labelled_node("n1", {{"cpu", "2"}}));
  for (int i = 0; i < 3; ++i) add_pod(gang_pod(fmt::format("a-{}", i), "a", 2, {{"cpu", "1"}}));
  EXPECT_EQ(placed(), "a-0>n1 a-1>n1 ");
  EXPECT_EQ(why("a-2"), "0/1 nodes are available: 1 Insufficient cpu (asks 1, free 0 of 2)");
}

// A pod on n1; `policy` says whether it ends by itself.
json::value running_pod(std::string name, std::string_view cpu, std::string_view policy) {
  json::value out = timed_pod(std::move(name), {{"cpu", json::string(cpu)}});
  json::set(out, {"spec", "nodeName"}, "n1");
  json::set(out, {"spec", "restartPolicy"}, json::string(policy));
  return out;
}

// Four CPUs, of which a pod that ends by itself has two; a gang waits for four, a pod for one.
struct HoldTest : ScheduleTest {
  void SetUp() override {
    add_node(labelled_node("n1", {{"cpu", "4"}}));
    add_pod(running_pod("runs", "2", "Never"));
    add_pod(gang_pod("big-0", "big", 2, {{"cpu", "2"}}, 0));
    add_pod(gang_pod("big-1", "big", 2, {{"cpu", "2"}}, 0));
    add_pod(timed_pod("small", {{"cpu", "1"}}, 1));
  }
  std::optional<Duration> look_again() { return schedule(books.snapshot(), now).look_again_after; }
};

TEST_F(HoldTest, small_ones_pass_a_gang_that_has_not_waited_for_long) {
  now += kPatience - std::chrono::seconds(1);
  EXPECT_EQ(placed(), "small>n1 ");
  EXPECT_EQ(look_again(), std::nullopt);
}

TEST_F(HoldTest, a_gang_that_has_waited_for_long_gets_room_held) {
  now += kPatience;
  EXPECT_EQ(placed(), "");
  EXPECT_EQ(why("small"),
            "0/1 nodes are available: 1 Insufficient cpu (asks 1, free 0 of 4); room is held for "
            "big-0, which has waited longer");
  EXPECT_EQ(look_again(), kHold);
  books.pod_changed(shared(running_pod("runs", "2", "Never")), nullptr);
  EXPECT_EQ(placed(), "big-0>n1 big-1>n1 ") << "it starts as soon as it can";
}

TEST_F(HoldTest, others_may_take_what_the_gang_does_not_need) {
  add_node(labelled_node("n2", {{"cpu", "1"}}));
  now += kPatience;
  EXPECT_EQ(placed(), "small>n2 ") << "a node that the gang would not fill";
  add_pod(timed_pod("tiny", {}, 2));
  EXPECT_NE(placed().find("tiny>"), std::string::npos) << "it asks for nothing that is held";
}

TEST_F(HoldTest, what_is_left_beside_the_gang_is_given_out) {
  books = {};
  add_node(labelled_node("n1", {{"cpu", "4"}}));
  add_node(labelled_node("n2", {{"cpu", "5"}}));
  add_pod(running_pod("runs", "2", "Never"));
  for (int i = 0; i < 2; ++i) {
    add_pod(gang_pod(fmt::format("big-{}", i), "big", 2, {{"cpu", "4"}}, 0));
  }
  add_pod(timed_pod("small-0", {{"cpu", "1"}}, 1));
  add_pod(timed_pod("small-1", {{"cpu", "600m"}}, 2));
  EXPECT_EQ(placed(), "small-0>n1 small-1>n1 ");
  now += kPatience;
  EXPECT_EQ(placed(), "small-0>n2 ") << "of n2 the gang needs four CPUs, of n1 all";
}

TEST_F(HoldTest, nothing_is_held_where_pods_that_stay_are_in_the_way) {
  books.pod_changed(nullptr, shared(running_pod("runs", "2", "Always")));
  now += kPatience;
  EXPECT_EQ(placed(), "small>n1 ") << "waiting would not help the gang";
}

TEST_F(HoldTest, nor_for_a_gang_that_no_node_could_take) {
  add_pod(gang_pod("big-2", "big", 3, {{"cpu", "2"}}, 0));
  now += kPatience;
  EXPECT_EQ(placed(), "small>n1 ");
}

TEST_F(HoldTest, after_a_while_others_may_pass_again) {
  now += kPatience + kHold - std::chrono::seconds(1);
  EXPECT_EQ(placed(), "");
  EXPECT_EQ(look_again(), std::chrono::seconds(1));
  now += std::chrono::seconds(1);
  EXPECT_EQ(placed(), "small>n1 ") << "a pod that never ends must not keep all others away";
  now += kPatience;
  EXPECT_EQ(placed(), "");
}

TEST_F(HoldTest, who_is_more_urgent_is_not_held_back) {
  json::value urgent = timed_pod("urgent", {{"cpu", "1"}}, 3);
  json::set(urgent, {"spec", "priority"}, 10);
  add_pod(urgent);
  now += kPatience;
  EXPECT_EQ(placed(), "urgent>n1 ");
}

TEST_F(HoldTest, a_large_pod_alone_is_a_gang_of_one) {
  books = {};
  add_node(labelled_node("n1", {{"cpu", "4"}}));
  add_pod(running_pod("runs", "2", "Never"));
  add_pod(timed_pod("large", {{"cpu", "4"}}, 0));
  add_pod(timed_pod("small", {{"cpu", "1"}}, 1));
  EXPECT_EQ(placed(), "small>n1 ");
  now += kPatience;
  EXPECT_EQ(placed(), "");
}

TEST_F(HoldTest, room_is_held_for_one_at_a_time) {
  add_node(labelled_node("n2", {{"cpu", "4"}}));
  json::value other = running_pod("there", "3", "Never");
  json::set(other, {"spec", "nodeName"}, "n2");
  add_pod(other);
  add_pod(timed_pod("second", {{"cpu", "4"}}, 0));
  now += kPatience + std::chrono::seconds(5);
  EXPECT_EQ(placed(), "small>n2 ") << "held for the gang on n1, not for the second on n2";
}

TEST_F(HoldTest, room_is_held_where_most_of_it_is_free_already) {
  books = {};
  add_node(labelled_node("n1", {{"cpu", "4"}}));
  add_node(labelled_node("n2", {{"cpu", "4"}}));
  add_pod(running_pod("stays", "4", "Never"));
  json::value passes = running_pod("passes", "1", "Never");
  json::set(passes, {"spec", "nodeName"}, "n2");
  add_pod(passes);
  add_pod(timed_pod("large", {{"cpu", "4"}}, 0));
  add_pod(timed_pod("small", {{"cpu", "1"}}, 1));
  EXPECT_EQ(placed(), "small>n2 ");
  now += kPatience + std::chrono::minutes(1);
  EXPECT_EQ(placed(), "") << "n1 is as large, but nobody knows when it is free";
  books.pod_changed(shared(passes), nullptr);
  EXPECT_EQ(placed(), "large>n2 ");
}

TEST_F(HoldTest, members_that_fit_nowhere_do_not_keep_room_from_the_others) {
  add_pod(gang_pod("alike-0", "big", 2, {{"cpu", "8"}}, 0));
  add_pod(gang_pod("alike-1", "big", 2, {{"cpu", "8"}}, 0));
  now += kPatience;
  EXPECT_EQ(placed(), "") << "two of its four are enough, and there would be room for two";
}

TEST_F(HoldTest, members_that_follow_a_gang_that_runs_hold_nothing) {
  books = {};
  add_node(labelled_node("n1", {{"cpu", "4"}}));
  json::value first = gang_pod("a-0", "a", 2, {{"cpu", "2"}}, 0);
  json::set(first, {"spec", "nodeName"}, "n1");
  add_pod(first);
  add_pod(gang_pod("a-1", "a", 2, {{"cpu", "3"}}, 0));
  add_pod(timed_pod("small", {{"cpu", "1"}}, 1));
  now += kPatience;
  EXPECT_EQ(placed(), "small>n1 ") << "what the gang has itself will not end before it";
}

// Two gangs that fit one at a time: in whatever order their pods appear, one starts whole, and the
// other when it has ended.
TEST_F(ScheduleTest, two_gangs_that_do_not_fit_together_never_block_each_other) {
  for (int order = 0; order < 64; ++order) {
    books = {};
    add_node(labelled_node("n1", {{"cpu", "2"}}));
    add_node(labelled_node("n2", {{"cpu", "2"}}));
    std::vector<json::value> pods;
    for (int i = 0; i < 6; ++i) {
      const char* gang = (order >> i & 1) == 0 ? "left" : "right";
      pods.push_back(gang_pod(fmt::format("{}-{}", gang, i), gang, 3, {{"cpu", "1"}}, i));
    }
    const int right = std::popcount(static_cast<unsigned>(order));
    std::map<std::string, int> started;
    for (const json::value& each : pods) {
      add_pod(each);
      for (const Placement& gang : schedule(books.snapshot(), now).gangs) {
        for (const auto& [bound, where] : gang.bindings) {
          json::value placed = *bound->object;
          json::set(placed, {"spec", "nodeName"}, json::string(where));
          books.pod_changed(bound->object, shared(placed));
          ++started[bound->gang];
        }
      }
      for (const auto& [gang, members] : started) EXPECT_GE(members, 3) << gang << " " << order;
    }
    const std::size_t whole = (right >= 3) + (6 - right >= 3);
    EXPECT_EQ(started.size(), std::min<std::size_t>(whole, 1)) << "order " << order;
  }
}

TEST_F(ScheduleTest, the_bound_on_pods_holds) {
  add_node(labelled_node("n1", {{"cpu", "9"}, {"pods", "1"}}));
  add_pod(timed_pod("a", {}, 1));
  add_pod(timed_pod("b", {}, 2));
  EXPECT_EQ(placed(), "a>n1 ");
  EXPECT_EQ(why("b"), "0/1 nodes are available: 1 Too many pods");
}

TEST_F(ScheduleTest, gated_deleted_and_foreign_pods_are_left_alone) {
  add_node(labelled_node("n1", {{"cpu", "9"}}));
  json::value gated = timed_pod("gated", {});
  json::set(gated, {"spec", "schedulingGates"}, json::array{json::object{{"name", "g"}}});
  add_pod(gated);
  json::value deleted = timed_pod("deleted", {});
  json::set(deleted, {"metadata", "deletionTimestamp"}, "2026-01-01T00:00:00Z");
  add_pod(deleted);
  json::value foreign = timed_pod("foreign", {});
  json::set(foreign, {"spec", "schedulerName"}, "mine");
  add_pod(foreign);
  EXPECT_TRUE(books.snapshot().pending.empty());
}

TEST_F(ScheduleTest, ten_thousand_waiting_pods_are_planned_well_under_a_second) {
  for (int i = 0; i < 100; ++i) add_node(labelled_node(fmt::format("n{}", i), {{"cpu", "32"}}));
  for (int i = 0; i < 10'000; ++i) {
    // Half alone, half in gangs of eight; only a third of them fits.
    json::object requests{{"cpu", fmt::format("{}m", 900 + i % 200)}};
    const std::string name = fmt::format("p{}", i);
    add_pod(i % 2 == 0 ? timed_pod(name, requests, i % 3600)
                       : gang_pod(name, fmt::format("g{}", i / 16), 8, requests, i % 3600));
  }
  // Processor time: how busy the machine is otherwise says nothing about the planner.
  const std::clock_t started = std::clock();
  const Decisions decisions = schedule(books.snapshot(), now);
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
