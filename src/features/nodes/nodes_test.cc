#include "features/nodes/nodes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/meta.h"
#include "control/runtime.h"
#include "control/testing/memory_server.h"
#include "env/sim/clock.h"
#include "features/nodes/feature.h"

namespace skiff::nodes {
namespace {

using std::chrono::seconds;

json::array unreachable_since(std::string_view when) {
  return {json::object{{"key", "node.kubernetes.io/unreachable"},
                       {"effect", "NoExecute"},
                       {"timeAdded", json::string(when)}}};
}

json::value ready_condition(std::string_view status = "True") {
  return json::object{{"type", "Ready"}, {"status", json::string(status)}};
}

struct Nodes : ::testing::Test {
  env::sim::Clock clock = env::sim::Clock();
  control::testing::MemoryServer server{clock};
  control::Runtime runtime{server, clock};
  int beats = 0;

  void SetUp() override {
    runtime.add(make());
    write(node_resource(), "n", {{"status", {{"conditions", json::array{ready_condition()}}}}});
    write(lease_resource(), "n", {{"spec", {{"renewTime", "0"}}}}, "kube-node-lease");
    settle();
  }
  void write(const api::Resource& resource, std::string_view name, json::value body,
             std::string_view ns = {}) {
    json::set(body, {"metadata", "name"}, json::string(name));
    const auto done =
        server.write({.resource = resource, .ns = std::string(ns), .body = std::move(body)});
    ASSERT_TRUE(done.has_value()) << done.error().message;
  }
  void change(const api::Resource& resource, std::string_view name, json::value body,
              std::string_view ns = {}, std::string_view subresource = {}) {
    const auto done = server.write({.verb = client::Verb::kMergePatch,
                                    .resource = resource,
                                    .ns = std::string(ns),
                                    .name = std::string(name),
                                    .subresource = std::string(subresource),
                                    .body = std::move(body)});
    ASSERT_TRUE(done.has_value()) << done.error().message;
    settle();
  }
  void make_pod(std::string_view name, std::string_view node = "n", json::array tolerations = {}) {
    write(pod_resource(), name,
          {{"spec", {{"nodeName", json::string(node)}, {"tolerations", std::move(tolerations)}}},
           {"status", {{"phase", "Running"}, {"conditions", json::array{ready_condition()}}}}},
          "team");
    settle();
  }
  void settle() {
    for (int round = 0; round < 50; ++round) {
      const std::uint64_t before = server.revision();
      runtime.pump();
      if (server.revision() == before) return;
    }
    ADD_FAILURE() << "it does not settle";
  }
  void beat() {
    change(lease_resource(), "n", {{"spec", {{"renewTime", std::to_string(++beats)}}}},
           "kube-node-lease");
  }
  // Time passes second by second, with or without heartbeats.
  void pass(int how_many, bool beating) {
    for (int i = 0; i < how_many; ++i) {
      clock.advance(seconds(1));
      if (beating && i % 10 == 0) beat();
      settle();
    }
  }
  // As another process has left it in the store.
  void lose_node(std::string_view when) {
    json::value unknown = ready_condition("Unknown");
    unknown.as_object()["lastTransitionTime"] = json::string(when);
    const auto told = server.write({.verb = client::Verb::kMergePatch,
                                    .resource = node_resource(),
                                    .name = "n",
                                    .subresource = "status",
                                    .body = {{"status", {{"conditions", json::array{unknown}}}}}});
    ASSERT_TRUE(told.has_value()) << told.error().message;
    const auto tainted = server.write({.verb = client::Verb::kMergePatch,
                                       .resource = node_resource(),
                                       .name = "n",
                                       .body = {{"spec", {{"taints", unreachable_since(when)}}}}});
    ASSERT_TRUE(tainted.has_value()) << tainted.error().message;
  }
  json::value node() { return *server.get(node_resource(), "", "n"); }
  json::value pod(std::string_view name) {
    auto found = server.get(pod_resource(), "team", name);
    return found ? *std::move(found) : json::value();
  }
  std::string taints() {
    std::string out;
    for (const json::value& taint : json::get_array(node(), {"spec", "taints"})) {
      out += fmt::format("{}:{} ", json::get_string(taint, {"key"}),
                         json::get_string(taint, {"effect"}));
    }
    return out;
  }
  std::string condition(std::string_view type, std::string_view field = "status") {
    const json::value object = node();
    const json::object* found = api::condition(object, type);
    return found == nullptr ? "" : std::string(json::get_string(json::value(*found), {field}));
  }
};

constexpr std::string_view kUnreachable =
    "node.kubernetes.io/unreachable:NoExecute node.kubernetes.io/unreachable:NoSchedule ";

json::value tolerates(std::string_view key, std::optional<std::int64_t> for_s = std::nullopt) {
  json::object out{{"key", json::string(key)}, {"operator", "Exists"}, {"effect", "NoExecute"}};
  if (for_s) out["tolerationSeconds"] = *for_s;
  return out;
}

TEST_F(Nodes, that_beat_are_left_alone) {
  pass(300, true);
  EXPECT_EQ(condition("Ready"), "True");
  EXPECT_EQ(taints(), "");
}

TEST_F(Nodes, that_fall_silent_are_unknown_and_tainted_until_they_speak) {
  beat();
  pass(39, false);
  EXPECT_EQ(condition("Ready"), "True");
  pass(12, false);
  EXPECT_EQ(condition("Ready"), "Unknown");
  EXPECT_EQ(condition("Ready", "reason"), "NodeStatusUnknown");
  EXPECT_EQ(condition("Ready", "message"), "Kubelet stopped posting node status.");
  EXPECT_EQ(condition("MemoryPressure", "reason"), "NodeStatusNeverUpdated");
  EXPECT_EQ(taints(), kUnreachable);
  change(node_resource(), "n", {{"status", {{"conditions", json::array{ready_condition()}}}}}, {},
         "status");
  beat();
  EXPECT_EQ(taints(), "");
}

TEST_F(Nodes, are_not_blamed_for_the_time_that_nobody_looked) {
  beat();
  clock.advance(std::chrono::hours(8));
  settle();
  EXPECT_EQ(condition("Ready"), "True");
  pass(51, false);
  EXPECT_EQ(condition("Ready"), "Unknown");
}

TEST_F(Nodes, are_not_blamed_for_a_short_standstill_either) {
  beat();
  pass(11, false);
  clock.advance(seconds(34));
  settle();
  EXPECT_EQ(condition("Ready"), "True");
}

TEST_F(Nodes, that_are_cordoned_or_under_pressure_are_tainted_and_keep_taints_of_others) {
  change(node_resource(), "n",
         {{"spec",
           {{"unschedulable", true},
            {"taints", json::array{json::object{{"key", "gpu"}, {"effect", "NoSchedule"}}}}}}});
  EXPECT_EQ(taints(), "gpu:NoSchedule node.kubernetes.io/unschedulable:NoSchedule ");
  change(node_resource(), "n", {{"spec", {{"unschedulable", nullptr}}}});
  EXPECT_EQ(taints(), "gpu:NoSchedule ");
  change(node_resource(), "n",
         {{"status",
           {{"conditions",
             json::array{ready_condition("False"),
                         json::object{{"type", "MemoryPressure"}, {"status", "True"}}}}}}},
         {}, "status");
  EXPECT_EQ(
      taints(),
      "gpu:NoSchedule node.kubernetes.io/not-ready:NoExecute "
      "node.kubernetes.io/not-ready:NoSchedule node.kubernetes.io/memory-pressure:NoSchedule ");
}

TEST_F(Nodes, that_are_lost_lose_their_pods_when_those_tolerate_it_no_longer) {
  make_pod("short", "n", {tolerates("node.kubernetes.io/unreachable", 30)});
  make_pod("long", "n", {tolerates("node.kubernetes.io/unreachable", 300)});
  make_pod("forever", "n", {tolerates("node.kubernetes.io/unreachable")});
  beat();
  pass(51, false);
  ASSERT_EQ(taints(), kUnreachable);
  EXPECT_FALSE(api::deleting(pod("short")));
  EXPECT_FALSE(api::condition_true(pod("long"), "Ready")) << "endpoints must follow";
  pass(31, false);
  EXPECT_TRUE(api::deleting(pod("short")));
  EXPECT_TRUE(api::condition_true(pod("short"), "DisruptionTarget"));
  EXPECT_FALSE(api::deleting(pod("long")));
  pass(300, false);
  EXPECT_TRUE(api::deleting(pod("long")));
  EXPECT_FALSE(api::deleting(pod("forever")));
}

TEST_F(Nodes, that_speak_of_a_pod_after_they_were_lost_are_believed) {
  make_pod("p", "n", {tolerates("node.kubernetes.io/unreachable")});
  beat();
  pass(55, false);
  ASSERT_FALSE(api::condition_true(pod("p"), "Ready"));
  json::value again = ready_condition();
  again.as_object()["lastTransitionTime"] = rfc3339(clock.now());
  change(pod_resource(), "p", {{"status", {{"conditions", json::array{again}}}}}, "team", "status");
  EXPECT_TRUE(api::condition_true(pod("p"), "Ready"));
}

TEST_F(Nodes, that_speak_in_the_second_of_their_loss_are_believed) {
  make_pod("p", "n", {tolerates("node.kubernetes.io/unreachable")});
  beat();
  pass(55, false);
  ASSERT_FALSE(api::condition_true(pod("p"), "Ready"));
  json::value again = ready_condition();
  again.as_object()["lastTransitionTime"] = json::string(condition("Ready", "lastTransitionTime"));
  change(pod_resource(), "p", {{"status", {{"conditions", json::array{again}}}}}, "team", "status");
  EXPECT_TRUE(api::condition_true(pod("p"), "Ready"));
}

TEST_F(Nodes, that_were_lost_before_a_long_standstill_have_time_to_speak_again) {
  make_pod("at_once", "n", {tolerates("node.kubernetes.io/unreachable", 0)});
  make_pod("later", "n", {tolerates("node.kubernetes.io/unreachable", 300)});
  lose_node("2020-01-01T00:00:00Z");
  settle();
  EXPECT_FALSE(api::deleting(pod("later"))) << "the taint is new to this process";
  clock.advance(std::chrono::hours(8));
  settle();
  EXPECT_FALSE(api::deleting(pod("at_once")));
  EXPECT_FALSE(api::deleting(pod("later")));
  pass(30, false);
  EXPECT_FALSE(api::deleting(pod("at_once"))) << "its agent may still wake up";
  pass(20, false);
  EXPECT_TRUE(api::deleting(pod("at_once")));
  EXPECT_FALSE(api::deleting(pod("later")));
  pass(260, false);
  EXPECT_TRUE(api::deleting(pod("later")));
}

TEST_F(Nodes, that_were_lost_before_a_start_have_time_to_speak_again) {
  make_pod("p", "n", {tolerates("node.kubernetes.io/unreachable", 300)});
  make_pod("at_once", "n", {tolerates("node.kubernetes.io/unreachable", 0)});
  Books books;
  json::value lost = node();
  json::set(lost, {"spec", "taints"}, unreachable_since("2020-01-01T00:00:00Z"));
  books.changed(0, nullptr, std::make_shared<const json::value>(lost));
  for (const char* name : {"p", "at_once"}) {
    books.changed(2, nullptr, std::make_shared<const json::value>(pod(name)));
  }
  control::GlobalPlan plan;
  evict(books.look(clock.now()), clock.now(), plan);
  EXPECT_TRUE(plan.batches.empty());
  for (int i = 0; i < 5; ++i) {
    clock.advance(seconds(10));
    plan = {};
    evict(books.look(clock.now()), clock.now(), plan);
  }
  ASSERT_EQ(plan.batches.size(), 1U) << "nobody came back";
  EXPECT_EQ(plan.batches[0].writes[0].name, "at_once");
}

TEST_F(Nodes, that_are_lost_keep_pods_that_tolerate_nothing_for_the_usual_time) {
  make_pod("old");
  beat();
  pass(51, false);
  ASSERT_EQ(taints(), kUnreachable);
  EXPECT_FALSE(api::deleting(pod("old")));
  pass(280, false);
  EXPECT_FALSE(api::deleting(pod("old")));
  pass(20, false);
  EXPECT_TRUE(api::deleting(pod("old")));
}

TEST_F(Nodes, that_come_back_in_time_keep_their_pods) {
  make_pod("p", "n", {tolerates("node.kubernetes.io/unreachable", 30)});
  beat();
  pass(51, false);
  change(node_resource(), "n", {{"status", {{"conditions", json::array{ready_condition()}}}}}, {},
         "status");
  pass(600, true);
  EXPECT_FALSE(api::deleting(pod("p")));
}

TEST_F(Nodes, with_a_taint_by_hand_drive_away_who_does_not_tolerate_it) {
  make_pod("none");
  make_pod("some", "n", {tolerates("sick", 5)});
  make_pod("all", "n", {tolerates("sick")});
  change(node_resource(), "n",
         {{"spec",
           {{"taints", json::array{json::object{{"key", "sick"}, {"effect", "NoExecute"}}}}}}});
  EXPECT_TRUE(api::deleting(pod("none")));
  EXPECT_FALSE(api::deleting(pod("some")));
  pass(6, true);
  EXPECT_TRUE(api::deleting(pod("some")));
  EXPECT_FALSE(api::deleting(pod("all")));
  EXPECT_TRUE(api::condition_true(pod("all"), "Ready")) << "the node is well";
}

TEST_F(Nodes, that_are_gone_leave_no_pods_behind) {
  make_pod("p", "gone");
  make_pod("q");
  pass(35, true);
  EXPECT_TRUE(pod("p").is_object()) << "the node may still appear";
  pass(6, true);
  EXPECT_FALSE(pod("p").is_object());
  EXPECT_TRUE(pod("q").is_object());
}

TEST_F(Nodes, that_are_missing_after_a_standstill_have_time_to_appear) {
  make_pod("p", "gone");
  pass(10, true);
  clock.advance(std::chrono::hours(8));
  settle();
  EXPECT_TRUE(pod("p").is_object());
  pass(35, true);
  EXPECT_TRUE(pod("p").is_object());
  pass(6, true);
  EXPECT_FALSE(pod("p").is_object());
}

TEST_F(Nodes, that_are_gone_to_the_last_leave_no_pods_behind) {
  make_pod("p");
  ASSERT_TRUE(
      server.write({.verb = client::Verb::kDelete, .resource = node_resource(), .name = "n"}));
  settle();
  for (int i = 0; i < 60 && pod("p").is_object(); ++i) {
    clock.advance(runtime.pump());
    settle();
  }
  EXPECT_FALSE(pod("p").is_object());
}

TEST(EndedPods, beyond_so_many_go_the_oldest_first) {
  Books books;
  for (std::size_t i = 0; i < kEndedPods + 2; ++i) {
    const std::string name = fmt::format("p{:05}", i);
    const Object pod = std::make_shared<const json::value>(json::value{
        {"metadata",
         {{"name", json::string(name)},
          {"namespace", "team"},
          {"creationTimestamp", i == 7 ? "2026-11-15T11:00:00Z" : "2026-11-15T12:00:00Z"}}},
        {"spec", {{"nodeName", "n"}}},
        {"status",
         {{"phase", i == 9 ? "Failed" : "Succeeded"}, {"reason", i == 9 ? "Evicted" : ""}}}});
    books.changed(2, {}, pod);
    EXPECT_EQ(pod.use_count(), 1) << "of thousands that are kept only the least is";
  }
  const World& world = books.look(Time{});
  control::GlobalPlan plan;
  collect_pods(world, Time{}, plan);
  ASSERT_EQ(plan.batches.size(), 2U);
  EXPECT_EQ(plan.batches[0].writes[0].name, "p00009");
  EXPECT_EQ(plan.batches[1].writes[0].name, "p00007");
}

TEST(NodePlan, from_what_it_has_done_already_has_nothing_to_do) {
  World world;
  world.nodes["n"] = std::make_shared<const json::value>(
      json::value{{"metadata", {{"name", "n"}, {"uid", "u"}, {"resourceVersion", "1"}}},
                  {"spec", {{"unschedulable", true}}},
                  {"status", {{"conditions", json::array{ready_condition()}}}}});
  const Time now = Time{} + std::chrono::hours(1);
  world.heard["n"] = now - std::chrono::minutes(1);
  const control::GlobalPlan first = plan_nodes(world, now);
  ASSERT_EQ(first.batches.size(), 1U);
  ASSERT_EQ(first.batches[0].writes.size(), 2U);
  json::value after = *world.nodes["n"];
  json::set(after, {"status", "conditions"},
            json::get_array(first.batches[0].writes[0].body, {"status", "conditions"}));
  json::set(after, {"spec", "taints"},
            json::get_array(first.batches[0].writes[1].body, {"spec", "taints"}));
  EXPECT_EQ(json::get_array(after, {"spec", "taints"}).size(), 3U);
  world.nodes["n"] = std::make_shared<const json::value>(after);
  EXPECT_TRUE(plan_nodes(world, now + seconds(5)).batches.empty());
}

}  // namespace
}  // namespace skiff::nodes
