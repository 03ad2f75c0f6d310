// A controller that throws about one object: that object's key fails, everything else goes on.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "api/meta.h"
#include "control/runtime.h"
#include "control/testing/memory_server.h"
#include "control/testing/resources.h"
#include "env/sim/clock.h"

namespace skiff::control {
namespace {

using testing::kEvents;

using testing::MemoryServer;

const api::Resource kMarkRoots = {
    .group = "test.dev", .version = "v1", .plural = "marks", .kind = "Mark"};
const api::Resource kOthers = {
    .group = "test.dev", .version = "v1", .plural = "others", .kind = "Other"};

bool marked(const json::value& object) { return json::find(object, {"status"}) != nullptr; }

// Writes how long the list of a root is; what is no list is a mistake of whoever wrote this.
Plan plan_length(const Observed& observed, Time) {
  Plan plan;
  const auto length =
      static_cast<std::int64_t>(observed.root->at("spec").at("list").as_array().size());
  if (json::get_int(*observed.root, {"status", "length"}) != length) {
    plan.status = json::object{{"length", length}};
  }
  return plan;
}

struct GuardTest : ::testing::Test {
  env::sim::Clock clock;
  MemoryServer server{clock};
  bool woken = false;
  std::vector<std::string> log;
  Runtime runtime{server, clock,
                  RuntimeOptions{.wake = [this] { woken = true; },
                                 .log = [this](std::string_view line) { log.emplace_back(line); }}};

  void make(std::string name, json::value list) {
    client::Write write{.resource = kMarkRoots, .ns = "ns"};
    write.body =
        json::object{{"metadata", {{"name", name}}}, {"spec", {{"list", std::move(list)}}}};
    ASSERT_TRUE(server.write(write));
  }
  void change(std::string name, json::value list) {
    client::Write write{
        .verb = client::Verb::kMergePatch, .resource = kMarkRoots, .ns = "ns", .name = name};
    write.body = json::object{{"spec", {{"list", std::move(list)}}}};
    ASSERT_TRUE(server.write(write));
  }
  Duration settle() {
    for (int i = 0; i < 100; ++i) {
      woken = false;
      const Duration next = runtime.pump();
      if (!woken && next > Duration{0}) return next;
    }
    ADD_FAILURE() << "does not settle";
    return {};
  }
  json::value get(std::string_view name) { return *server.get(kMarkRoots, "ns", name); }
  // "PlanFailed of bad by length-controller, Warning: ..." for each event.
  std::vector<std::string> events() {
    std::vector<std::string> out;
    for (const Object& event : server.list(kEvents, {}, {})->items) {
      out.push_back(std::string(json::get_string(*event, {"reason"})) + " of " +
                    std::string(json::get_string(*event, {"involvedObject", "name"})) + " by " +
                    std::string(json::get_string(*event, {"source", "component"})) + ", " +
                    std::string(json::get_string(*event, {"type"})) + ": " +
                    std::string(json::get_string(*event, {"message"})));
    }
    return out;
  }
};

TEST_F(GuardTest, a_plan_that_throws_is_an_error_of_its_key_and_stops_no_other) {
  runtime.add(Controller{.name = "length-controller", .root = kMarkRoots, .plan = plan_length});
  make("bad", "no list");
  make("good", json::array{1, 2});
  EXPECT_EQ(settle(), std::chrono::milliseconds(5)) << "tried again, after a back-off";
  EXPECT_EQ(json::get_int(get("good"), {"status", "length"}), 2);
  ASSERT_EQ(log.size(), 1u);
  EXPECT_TRUE(log[0].starts_with("length-controller: ns/bad: a bug in Skiff: ")) << log[0];
  EXPECT_TRUE(log[0].ends_with(" (attempt 1)")) << log[0];
  ASSERT_EQ(events().size(), 1u);
  EXPECT_TRUE(
      events()[0].starts_with("PlanFailed of bad by length-controller, Warning: a bug in Skiff: "))
      << events()[0];
}

TEST_F(GuardTest, it_backs_off_like_any_failure_and_nothing_is_listed_anew) {
  runtime.add(Controller{.name = "length-controller", .root = kMarkRoots, .plan = plan_length});
  make("bad", "no list");
  Duration last = settle();
  for (int i = 0; i < 20; ++i) {
    clock.advance(last);
    last = settle();
  }
  EXPECT_EQ(last, std::chrono::seconds(60));
  EXPECT_EQ(events().size(), 1u) << "one event whose count grows";
}

TEST_F(GuardTest, who_mends_the_object_is_served_at_once) {
  runtime.add(Controller{.name = "length-controller", .root = kMarkRoots, .plan = plan_length});
  make("bad", "no list");
  Duration last = settle();
  for (int i = 0; i < 20; ++i) {
    clock.advance(last);
    last = settle();
  }
  change("bad", json::array{7});
  settle();
  EXPECT_EQ(json::get_int(get("bad"), {"status", "length"}), 1);
}

TEST_F(GuardTest, what_says_which_objects_a_root_looks_at_may_throw_too) {
  Controller controller{.name = "length-controller", .root = kMarkRoots, .plan = plan_length};
  controller.seen = {{.resource = kOthers,
                      .wants = [](const json::value& root) -> std::vector<std::string> {
                        return {std::string(json::view(root.at("wants").as_string()))};
                      },
                      .has = [](const json::value&) { return std::vector<std::string>{"x"}; }}};
  runtime.add(std::move(controller));
  make("bad", json::array{});
  client::Write good{.resource = kMarkRoots, .ns = "ns"};
  good.body =
      json::object{{"metadata", {{"name", "good"}}}, {"wants", "x"}, {"spec", {{"list", {1}}}}};
  ASSERT_TRUE(server.write(good));
  settle();
  EXPECT_EQ(json::get_int(get("good"), {"status", "length"}), 1);
  EXPECT_FALSE(marked(get("bad")));
  ASSERT_FALSE(events().empty());
  EXPECT_TRUE(events()[0].starts_with("PlanFailed of bad by length-controller")) << events()[0];
}

TEST_F(GuardTest, a_plan_that_throws_at_a_refusal_keeps_the_back_off_of_the_refusal) {
  runtime.add(Controller{
      .name = "maker",
      .root = kMarkRoots,
      .owned = {kOthers},
      .hears_refusals = true,
      .plan = [](const Observed& observed, Time) -> Plan {
        if (observed.refused) throw std::logic_error("never thought of that");
        Plan plan;
        client::Write write{.resource = kOthers};
        write.body = json::object{
            {"metadata",
             {{"name", "child"}, {"ownerReferences", {api::owner_reference(*observed.root)}}}}};
        if (observed.owned[0].empty()) plan.writes.push_back(std::move(write));
        return plan;
      }});
  server.refuse = [](const client::Write& write) -> std::optional<Error> {
    if (write.resource.key() != kOthers.key()) return std::nullopt;
    return Error{.code = Code::kForbidden, .message = "quota"};
  };
  make("a", json::array{});
  EXPECT_EQ(settle(), std::chrono::milliseconds(5));
  EXPECT_EQ(log, (std::vector<std::string>{"maker: ns/a: quota (attempt 1)",
                                           "maker: ns/a: a bug in Skiff: never thought of that"}));
  EXPECT_EQ(events(), std::vector<std::string>{
                          "PlanFailed of a by maker, Warning: a bug in Skiff: never thought of "
                          "that"});
  server.refuse = {};
  clock.advance(std::chrono::milliseconds(5));
  settle();
  EXPECT_EQ(server.list(kOthers, {}, {})->items.size(), 1u);
}

// Marks every object it has been told of.
struct Books {
  std::map<Key, Object> waiting = {};
  int broken_plans = 0;
};

GlobalController marker(const std::shared_ptr<Books>& books) {
  return {.name = "marker",
          .watched = {kMarkRoots},
          .changed =
              [books](std::size_t, const Object&, const Object& after) {
                if (after == nullptr) throw std::logic_error("gone");
                if (!after->at("spec").at("list").is_array()) throw std::logic_error("no list");
                books->waiting[key_of(*after)] = after;
              },
          .plan =
              [books](Time) {
                if (books->broken_plans > 0) {
                  --books->broken_plans;
                  throw std::logic_error("lost count");
                }
                GlobalPlan plan;
                for (const auto& [key, object] : books->waiting) {
                  if (marked(*object)) continue;
                  client::Write write{.verb = client::Verb::kMergePatch,
                                      .resource = kMarkRoots,
                                      .ns = key.ns,
                                      .name = key.name,
                                      .subresource = "status"};
                  write.body = json::object{{"status", {{"marked", true}}}};
                  plan.batches.push_back({.writes = {std::move(write)}});
                }
                return plan;
              }};
}

TEST_F(GuardTest, an_object_that_a_global_controller_throws_about_stops_no_other) {
  runtime.add(marker(std::make_shared<Books>()));
  make("bad", "no list");
  make("good", json::array{});
  settle();
  EXPECT_TRUE(marked(get("good")));
  EXPECT_FALSE(marked(get("bad")));
  EXPECT_EQ(log, std::vector<std::string>{"marker: ns/bad: a bug in Skiff: no list"});
  EXPECT_EQ(events(), std::vector<std::string>{
                          "PlanFailed of bad by marker, Warning: a bug in Skiff: no list"});
}

TEST_F(GuardTest, of_one_that_is_gone_only_the_log_tells) {
  runtime.add(marker(std::make_shared<Books>()));
  make("a", json::array{});
  settle();
  ASSERT_TRUE(server.write(
      {.verb = client::Verb::kDelete, .resource = kMarkRoots, .ns = "ns", .name = "a"}));
  settle();
  EXPECT_EQ(log, std::vector<std::string>{"marker: a bug in Skiff: gone"});
  EXPECT_TRUE(events().empty());
}

TEST_F(GuardTest, a_global_plan_that_throws_is_made_again_after_a_back_off) {
  const auto books = std::make_shared<Books>();
  books->broken_plans = 2;
  runtime.add(marker(books));
  make("a", json::array{});
  EXPECT_EQ(settle(), std::chrono::milliseconds(5));
  EXPECT_FALSE(marked(get("a")));
  clock.advance(std::chrono::milliseconds(5));
  EXPECT_EQ(settle(), std::chrono::milliseconds(10));
  clock.advance(std::chrono::milliseconds(10));
  settle();
  EXPECT_TRUE(marked(get("a")));
  EXPECT_EQ(log, (std::vector<std::string>{"marker: /: a bug in Skiff: lost count (attempt 1)",
                                           "marker: /: a bug in Skiff: lost count (attempt 2)"}));
}

}  // namespace
}  // namespace skiff::control
