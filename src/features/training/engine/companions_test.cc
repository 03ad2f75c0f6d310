#include "features/training/engine/companions.h"

#include <gtest/gtest.h>

#include "features/training/testing/builders.h"
#include "features/training/testing/world.h"

namespace skiff::training {
namespace {

using testing::mpijob;
using testing::must_parse;
using testing::World;

struct CompanionsCase {
  const char* sentence;
  const char* object;
  const char* wanted;
  bool expected;
};

class HasAllOf : public ::testing::TestWithParam<CompanionsCase> {};

TEST_P(HasAllOf, Holds) {
  EXPECT_EQ(has_all_of(must_parse(GetParam().object), must_parse(GetParam().wanted)),
            GetParam().expected)
      << GetParam().sentence;
}

INSTANTIATE_TEST_SUITE_P(
    All, HasAllOf,
    ::testing::Values(
        CompanionsCase{"the same", R"({"a":1})", R"({"a":1})", true},
        CompanionsCase{"more than wanted", R"({"a":1,"b":2})", R"({"a":1})", true},
        CompanionsCase{"less than wanted", R"({"a":1})", R"({"a":1,"b":2})", false},
        CompanionsCase{"other than wanted", R"({"a":2})", R"({"a":1})", false},
        CompanionsCase{"more inside", R"({"a":{"b":1,"c":2}})", R"({"a":{"b":1}})", true},
        CompanionsCase{"other inside", R"({"a":{"b":2}})", R"({"a":{"b":1}})", false},
        CompanionsCase{"no object inside", R"({"a":1})", R"({"a":{"b":1}})", false},
        CompanionsCase{"a longer list is another", R"({"a":[1,2]})", R"({"a":[1]})", false},
        CompanionsCase{"the same list", R"({"a":[1,2]})", R"({"a":[1,2]})", true},
        CompanionsCase{"an empty wish is always met", R"({"a":1})", R"({})", true}));

json::value companions_job() { return mpijob().role("Launcher", 1).role("Worker", 2).build(); }

json::value& config(World& world) { return world.companions["configmaps"]["mnist-config"]; }

TEST(Companions, AreMadeBeforePodsAndBelongToTheJob) {
  World world(mpi(), companions_job());
  std::vector<std::string> made;
  for (const client::Write& write : world.plan().writes) {
    ASSERT_EQ(write.verb, client::Verb::kCreate);
    EXPECT_EQ(write.ns, "team");
    EXPECT_TRUE(api::controlled_by(write.body, "uid-mnist")) << write.resource.plural;
    made.push_back(write.resource.plural);
  }
  EXPECT_EQ(made, (std::vector<std::string>{"services", "configmaps", "serviceaccounts", "roles",
                                            "rolebindings", "pods", "pods", "pods"}));
}

TEST(Companions, AreMadeOnce) {
  World world(mpi(), companions_job());
  world.settle();
  EXPECT_TRUE(world.plan().writes.empty());
  EXPECT_EQ(world.services.size(), 1u);
}

TEST(Companions, ComeBackWhenSomebodyDeletesThem) {
  World world(mpi(), companions_job());
  world.settle();
  world.companions["roles"].clear();
  world.services.clear();
  world.settle();
  EXPECT_TRUE(world.companions["roles"].contains("mnist-launcher"));
  EXPECT_TRUE(world.services.contains("mnist"));
}

TEST(Companions, AreMendedAndKeepWhatOthersAdded) {
  World world(mpi(), companions_job());
  world.settle();
  const json::value before = config(world);
  json::set(config(world), {"data", "hostfile"}, "nonsense");
  json::set(config(world), {"data", "notes"}, "somebody's");
  json::set(config(world), {"metadata", "labels", "team"}, "a");
  const control::Plan plan = world.plan();
  ASSERT_EQ(plan.writes.size(), 1u);
  EXPECT_EQ(plan.writes[0].verb, client::Verb::kMergePatch);
  EXPECT_EQ(plan.writes[0].uid, api::uid(before)) << "the object seen, and no successor";
  world.settle();
  EXPECT_EQ(json::get_string(config(world), {"data", "hostfile"}),
            json::get_string(before, {"data", "hostfile"}));
  EXPECT_EQ(json::get_string(config(world), {"data", "notes"}), "somebody's");
  EXPECT_EQ(api::label(config(world), "team"), "a");
}

TEST(Companions, ThatAreBeingDeletedAreLeftAlone) {
  World world(mpi(), companions_job());
  world.settle();
  json::set(config(world), {"metadata", "deletionTimestamp"}, "2026-11-15T12:00:00Z");
  json::set(config(world), {"data", "hostfile"}, "nonsense");
  EXPECT_TRUE(world.plan().writes.empty());
}

TEST(Companions, FollowTheNumberOfReplicas) {
  World world(mpi(), companions_job());
  world.settle();
  json::set(world.root, {"spec", "mpiReplicaSpecs", "Worker", "replicas"}, 1);
  world.settle();
  EXPECT_EQ(json::get_string(config(world), {"data", "hostfile"}),
            "mnist-worker-0.mnist.team.svc slots=1\n");
}

TEST(Companions, StayThroughSuspensionAndTheEnd) {
  World world(mpi(), companions_job());
  world.settle();
  json::set(world.root, {"spec", "runPolicy", "suspend"}, true);
  world.settle();
  EXPECT_TRUE(world.pods.empty());
  EXPECT_EQ(world.services.size(), 1u) << "one for all, which is no replica's";
  json::set(world.root, {"spec", "runPolicy", "suspend"}, false);
  world.settle();
  world.set_phase("mnist-launcher", "Succeeded");
  world.settle();
  EXPECT_EQ(world.conditions(), "Created !Suspended Succeeded");
  config(world) = json::object{{"metadata", {{"name", "mnist-config"}}}};
  EXPECT_TRUE(world.plan().writes.empty()) << "nobody needs them any more";
}

TEST(Companions, AreNotMadeForAJobThatNeverStarted) {
  World world(mpi(), mpijob().role("Launcher", 1).role("Worker", 1).run("suspend", true).build());
  world.settle();
  EXPECT_TRUE(world.companions.empty());
  EXPECT_TRUE(world.services.empty());
}

TEST(Companions, OtherKindsHaveNone) {
  World world(pytorch(), testing::torchjob().role("Worker", 1).build());
  world.settle();
  EXPECT_TRUE(world.companions.empty());
}

}  // namespace
}  // namespace skiff::training
