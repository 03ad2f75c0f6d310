// What the agent tells of its pods' use, with a runtime whose containers use half a CPU each.
#include <csignal>

#include "node/testing/agent_fixture.h"

namespace skiff::node {
namespace {

TEST_F(AgentTest, TellsWhatItsNodeAndPodsUse) {
  start();
  create_pod("p", "u1");
  apiserver::Usage usage;
  ASSERT_TRUE(eventually([&] {
    usage = agent_->usage();
    return !usage.pods.empty() && !usage.nodes.empty();
  }));
  EXPECT_EQ(usage.nodes[0].name, "n1");
  EXPECT_GT(usage.nodes[0].used.memory_bytes, 0);
  EXPECT_EQ(usage.pods[0].ns, "default");
  EXPECT_EQ(usage.pods[0].name, "p");
  EXPECT_EQ(usage.pods[0].uid, "u1");
  ASSERT_EQ(usage.pods[0].containers.size(), 1u);
  EXPECT_EQ(usage.pods[0].containers[0].name, "main");
  EXPECT_EQ(usage.pods[0].containers[0].used.memory_bytes, 10'000'000);
  EXPECT_GT(usage.pods[0].containers[0].used.cpu_nano, 100'000'000);
}

TEST_F(AgentTest, APodThatHasEndedUsesNothing) {
  start();
  create_pod("short", "u1");
  ASSERT_TRUE(eventually([&] { return !agent_->usage().pods.empty(); }));
  ASSERT_TRUE(runtime_->signal("u1", "main", SIGKILL));
  ASSERT_TRUE(eventually([&] { return phase("short") == "Failed"; }));
  EXPECT_TRUE(agent_->usage().pods.empty());
}

}  // namespace
}  // namespace skiff::node
