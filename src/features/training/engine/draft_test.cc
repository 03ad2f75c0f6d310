#include "features/training/engine/draft.h"

#include <gtest/gtest.h>

#include "features/training/engine/defaults.h"
#include "features/training/engine/plan.h"
#include "features/training/testing/world.h"

namespace skiff::training {
namespace {

using std::chrono::seconds;

class DraftOfAPlan : public ::testing::Test {
 protected:
  Draft make(json::value status = nullptr) {
    testing::JobBuilder job = testing::torchjob().role("Worker", 1);
    if (!status.is_null()) job.status(status);
    root_ = job.build();
    Draft draft{.job = read_job(pytorch(), root_)};
    draft.status = json::get_object(root_, {"status"});
    return draft;
  }

 private:
  json::value root_ = {};
};

TEST_F(DraftOfAPlan, DeletesTheVeryObjectThatWasSeen) {
  Draft draft = make();
  draft.delete_pod(testing::replica_pod("worker", 0, "Running"));
  draft.delete_service(testing::replica_service("worker", 0));
  ASSERT_EQ(draft.plan.writes.size(), 2u);
  for (const client::Write& write : draft.plan.writes) {
    EXPECT_EQ(write.verb, client::Verb::kDelete);
    EXPECT_EQ(write.name, "mnist-worker-0");
    EXPECT_EQ(write.ns, "team");
  }
  EXPECT_EQ(draft.plan.writes[0].uid, "pod-worker-0");
  EXPECT_EQ(draft.plan.writes[0].resource.plural, "pods");
  EXPECT_EQ(draft.plan.writes[1].uid, "service-worker-0");
  EXPECT_EQ(draft.plan.writes[1].resource.plural, "services");
}

TEST_F(DraftOfAPlan, DoesNotDeleteTwice) {
  Draft draft = make();
  json::value pod = testing::replica_pod("worker", 0, "Running");
  json::set(pod, {"metadata", "deletionTimestamp"}, "2026-11-15T12:00:00Z");
  draft.delete_pod(pod);
  EXPECT_TRUE(draft.plan.writes.empty());
  EXPECT_TRUE(draft.deleted_pods.empty()) << "nor is it told";
}

TEST_F(DraftOfAPlan, CreatesInTheJobsNamespace) {
  Draft draft = make();
  draft.create_pod(testing::replica_pod("worker", 0, ""));
  draft.create_service(testing::replica_service("worker", 0));
  ASSERT_EQ(draft.plan.writes.size(), 2u);
  for (const client::Write& write : draft.plan.writes) {
    EXPECT_EQ(write.verb, client::Verb::kCreate);
    EXPECT_EQ(write.ns, "team");
    EXPECT_TRUE(write.uid.empty());
  }
}

TEST_F(DraftOfAPlan, LooksAgainAtTheEarliestTime) {
  Draft draft = make();
  draft.look_again_after(seconds{9});
  draft.look_again_after(seconds{3});
  draft.look_again_after(seconds{5});
  EXPECT_EQ(draft.plan.requeue_after, seconds{3});
}

TEST_F(DraftOfAPlan, NamesTheKindInItsReasons) {
  Draft draft = make();
  draft.note(true, "Restarting", "why");
  EXPECT_EQ(draft.plan.notes,
            (std::vector<control::Note>{
                {.warning = true, .reason = "PyTorchJobRestarting", .message = "why"}}));
}

TEST_F(DraftOfAPlan, WritesAStatusOnlyWhereItDiffers) {
  EXPECT_TRUE(finish(make()).status.has_value()) << "an absent status gets its replicaStatuses";
  const control::Plan same = finish(make({{"replicaStatuses", json::object{}}, {"restarts", 1}}));
  EXPECT_FALSE(same.status.has_value());
  Draft draft = make({{"replicaStatuses", json::object{}}});
  draft.status["restarts"] = 1;
  const control::Plan changed = finish(std::move(draft));
  ASSERT_TRUE(changed.status.has_value());
  EXPECT_EQ(*changed.status, (json::value{{"replicaStatuses", json::object{}}, {"restarts", 1}}));
}

TEST_F(DraftOfAPlan, TellsWhatItDoesInTheOrderItIsDone) {
  Draft draft = make();
  draft.create_pod(testing::replica_pod("worker", 1, ""));
  draft.create_service(testing::replica_service("worker", 1));
  draft.delete_pod(testing::replica_pod("worker", 0, "Failed"));
  draft.delete_service(testing::replica_service("worker", 0));
  std::string told;
  for (const control::Note& note : finish(std::move(draft)).notes) told += note.reason + " ";
  EXPECT_EQ(told,
            "SuccessfulDeletePod SuccessfulDeleteService SuccessfulCreatePod "
            "SuccessfulCreateService ");
}

TEST_F(DraftOfAPlan, TellsNothingNewWhereNothingChanges) {
  Draft draft = make({{"replicaStatuses", json::object{}}});
  draft.note(false, "Running", "again");
  EXPECT_TRUE(finish(std::move(draft)).notes.empty());
  Draft standing = make({{"replicaStatuses", json::object{}}});
  standing.note(false, "Running", "again");
  standing.standing.push_back({.warning = true, .reason = "ErrImagePull", .message = "no image"});
  const control::Plan plan = finish(std::move(standing));
  ASSERT_EQ(plan.notes.size(), 1u);
  EXPECT_EQ(plan.notes[0].reason, "ErrImagePull");
}

TEST(Plan, ThatMakesPodsHoldsOnlyForTheJobThatWasSeen) {
  testing::World world(pytorch(), testing::torchjob().role("Worker", 1).build());
  EXPECT_TRUE(world.plan().only_if_unchanged);
  world.settle();
  world.all_phases("Running");
  EXPECT_FALSE(world.plan().only_if_unchanged) << "a status says it as well";
}

}  // namespace
}  // namespace skiff::training
