#include "scheduler/ground.h"

#include <gtest/gtest.h>

#include "scheduler/testing/desk.h"

namespace skiff::scheduler {
namespace {

using Names = std::set<std::string, std::less<>>;

// A plan was made for "p", which asks for one of two CPUs of n1, while "other" had the second.
struct GroundTest : ::testing::Test {
  testing::Desk desk = {};
  const json::value other = testing::bound(testing::pod("other", R"("cpu":"1")"), "n1");

  GroundTest() {
    desk.node(testing::node("n1", R"("cpu":"2","memory":"4")"));
    desk.node(testing::node("n2", R"("cpu":"2","memory":"4")"));
    desk.pod(other);
    desk.pod(testing::pod("p", R"("cpu":"1")"));
  }

  const Snapshot& now() const { return desk.books.snapshot(); }
  const Pod& waiting() const { return *now().pending.at({.ns = "ns", .name = "p"}); }
  void changes(std::string_view allocatable, std::string_view spec = "") {
    desk.books.node_changed(testing::share(testing::node("n1", R"("cpu":"2","memory":"4")")),
                            testing::share(testing::node("n1", allocatable, spec)));
  }
  void takes(std::string_view name, std::string_view requests) {
    desk.pod(testing::bound(testing::pod(name, requests), "n1"));
  }
};

TEST_F(GroundTest, holds_where_nothing_has_changed) {
  const Ground then(now());
  EXPECT_EQ(then.moved(now()), Names{});
  EXPECT_TRUE(then.takes(now(), waiting(), "n1"));
}

TEST_F(GroundTest, holds_where_more_is_free_than_before) {
  const Ground then(now());
  desk.gone(other);
  EXPECT_EQ(then.moved(now()), Names{"n1"});
  EXPECT_TRUE(then.takes(now(), waiting(), "n1"));
  changes(R"("cpu":"3","memory":"4")");
  EXPECT_TRUE(then.takes(now(), waiting(), "n1"));
}

TEST_F(GroundTest, holds_no_more_where_others_have_taken_what_the_pod_asks_for) {
  const Ground then(now());
  takes("late", R"("cpu":"1m")");
  EXPECT_EQ(then.moved(now()), Names{"n1"});
  EXPECT_FALSE(then.takes(now(), waiting(), "n1"));
  EXPECT_TRUE(then.takes(now(), waiting(), "n2"));
}

TEST_F(GroundTest, holds_where_others_have_taken_what_the_pod_does_not_ask_for) {
  // The number of pods counts for all of them, so one comes and one goes.
  const Ground then(now());
  desk.gone(other);
  takes("late", R"("cpu":"1","memory":"2")");
  EXPECT_EQ(then.moved(now()), Names{"n1"});
  EXPECT_TRUE(then.takes(now(), waiting(), "n1"));
}

TEST_F(GroundTest, holds_no_more_where_the_node_has_less) {
  const Ground then(now());
  changes(R"("cpu":"1","memory":"4")");
  EXPECT_EQ(then.moved(now()), Names{"n1"});
  EXPECT_FALSE(then.takes(now(), waiting(), "n1"));
}

TEST_F(GroundTest, a_resource_that_a_node_has_never_had_is_none) {
  desk.pod(testing::pod("asks", R"("example.com/device":"1")"));
  const Ground then(now());
  const Pod& asks = *now().pending.at({.ns = "ns", .name = "asks"});
  EXPECT_TRUE(then.takes(now(), asks, "n1")) << "no less than the plan counted on";
  takes("late", R"("example.com/device":"1")");
  EXPECT_FALSE(then.takes(now(), asks, "n1"));
}

TEST_F(GroundTest, holds_no_more_where_the_node_is_cordoned) {
  const Ground then(now());
  changes(R"("cpu":"2","memory":"4")", R"("unschedulable":true)");
  EXPECT_EQ(then.moved(now()), Names{"n1"});
  EXPECT_FALSE(then.takes(now(), waiting(), "n1"));
}

TEST_F(GroundTest, holds_no_more_where_the_node_is_gone) {
  const Ground then(now());
  desk.books.node_changed(testing::share(testing::node("n1", R"("cpu":"2","memory":"4")")),
                          nullptr);
  EXPECT_EQ(then.moved(now()), Names{"n1"});
  EXPECT_FALSE(then.takes(now(), waiting(), "n1"));
}

TEST_F(GroundTest, nothing_is_known_of_a_node_that_came_later) {
  const Ground then(now());
  desk.node(testing::node("n3", R"("cpu":"2")"));
  EXPECT_EQ(then.moved(now()), Names{});
  EXPECT_FALSE(then.takes(now(), waiting(), "n3"));
}

}  // namespace
}  // namespace skiff::scheduler
