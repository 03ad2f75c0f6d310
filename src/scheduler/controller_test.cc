#include "scheduler/controller.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/meta.h"
#include "control/runtime.h"
#include "control/testing/memory_server.h"
#include "env/sim/clock.h"

namespace skiff::scheduler {
namespace {

const api::Resource kPods = {.version = "v1", .plural = "pods", .kind = "Pod"};
const api::Resource kEvents = {.version = "v1", .plural = "events", .kind = "Event"};
const api::Resource kNodes = {
    .version = "v1", .plural = "nodes", .kind = "Node", .namespaced = false};

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
  json::value get(std::string_view name) { return *server.get(kPods, "ns", name); }
  std::vector<std::string> reasons() {
    std::vector<std::string> out;
    for (const Object& event : server.list(kEvents, {}, {})->items) {
      out.emplace_back(json::get_string(*event, {"reason"}));
    }
    return out;
  }
};

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
