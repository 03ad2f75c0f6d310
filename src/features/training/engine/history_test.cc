#include "features/training/engine/history.h"

#include <gtest/gtest.h>

#include "features/training/engine/defaults.h"
#include "features/training/testing/builders.h"

namespace skiff::training {
namespace {

History sample() {
  History history;
  history.role("Worker").started.insert(0);
  history.role("Worker").started.insert(1);
  history.role("Worker").succeeded.insert(0);
  history.replace("Worker", 1);
  history.replace("Worker", 1);
  return history;
}

TEST(History, SurvivesTheStatus) {
  json::object status;
  write_history(sample(), status);
  EXPECT_EQ(json::serialize(status),
            R"({"restarts":2,"replicaHistory":{"Worker":{"started":"0","succeeded":"0",)"
            R"("attempts":{"1":2}}}})");
  json::object again;
  write_history(read_history(status), again);
  EXPECT_EQ(again, status);
}

TEST(History, OfAFreshJobWritesNothing) {
  json::object status;
  write_history(read_history(json::object{}), status);
  EXPECT_TRUE(status.empty());
}

TEST(History, LeavesTheRestOfTheStatusAlone) {
  json::object status{{"startTime", "x"}, {"replicaHistory", {{"Worker", {{"started", "0"}}}}}};
  write_history({}, status);
  EXPECT_EQ(status, (json::object{{"startTime", "x"}}));
}

TEST(History, ReadsNonsenseAsNothing) {
  const History history = read_history(testing::must_parse(
      R"({"restarts":"many","replicaHistory":{"Worker":{"started":5,"attempts":{"x":1,"2":-4,
      "3":"y"}},"PS":[]}})"));
  EXPECT_EQ(history.restarts, 0);
  EXPECT_EQ(history.roles.at("Worker").started.size(), 0);
  EXPECT_TRUE(history.roles.at("Worker").attempts.empty());
}

TEST(History, ReplacingStartsANewAttempt) {
  History history;
  history.role("PS").started.insert(3);
  history.replace("PS", 3);
  EXPECT_FALSE(history.role("PS").started.contains(3));
  EXPECT_EQ(history.role("PS").attempt(3), 1);
  EXPECT_EQ(history.restarts, 1);
}

TEST(History, BelievesAPodOfALaterAttempt) {
  History history;
  history.witness_attempt("Worker", 0, 2);
  EXPECT_EQ(history.role("Worker").attempt(0), 2);
  EXPECT_EQ(history.restarts, 2);
}

TEST(History, CountsAnAttemptOnce) {
  History history = sample();
  history.witness_attempt("Worker", 1, 2);
  history.witness_attempt("Worker", 1, 1);
  history.witness_attempt("Worker", 1, 0);
  EXPECT_EQ(history.restarts, 2);
  EXPECT_EQ(history.role("Worker").attempt(1), 2);
}

TEST(History, ForgetsPodsButNotRestarts) {
  History history = sample();
  history.forget_pods();
  EXPECT_EQ(history.role("Worker").started.size(), 0);
  EXPECT_EQ(history.role("Worker").succeeded.size(), 0);
  EXPECT_EQ(history.role("Worker").attempt(1), 2);
  EXPECT_EQ(history.restarts, 2);
}

TEST(History, FollowsAJobThatShrinks) {
  History history = sample();
  history.role("PS").started.insert(0);
  const json::value root = testing::tfjob().role("Worker", 1).build();
  history.truncate(read_job(tensorflow(), root));
  EXPECT_FALSE(history.roles.contains("PS"));
  EXPECT_EQ(history.role("Worker").started.text(), "0");
  EXPECT_EQ(history.role("Worker").attempt(1), 0);
  EXPECT_EQ(history.restarts, 2) << "what was restarted was restarted";
}

}  // namespace
}  // namespace skiff::training
