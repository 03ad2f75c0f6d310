#include "features/trainer/progress.h"

#include <gtest/gtest.h>

#include "features/trainer/jobset_of.h"
#include "features/trainer/plan.h"
#include "features/trainer/testing/objects.h"

namespace skiff::trainer {
namespace {

using testing::must_parse;

json::value progress_pod(std::string_view told) {
  json::value out = must_parse(R"({"metadata": {"name": "mnist-node-0-0-x", "namespace": "team",
      "labels": {"jobset.sigs.k8s.io/jobset-name": "mnist",
                 "jobset.sigs.k8s.io/jobset-uid": "s1",
                 "jobset.sigs.k8s.io/replicatedjob-name": "node",
                 "batch.kubernetes.io/job-completion-index": "0"}}})");
  json::set(out, {"metadata", "annotations", kProgressAnnotation}, json::string(told));
  return out;
}

constexpr std::string_view kTold = R"({"side": {"step": 1},
    "node": {"step": 30, "totalSteps": 100, "percent": 30, "metrics": {"loss": "0.5", "bad": 3},
             "lastUpdateTime": "2026-01-01T00:00:10Z",
             "estimatedCompletionTime": "2026-01-01T00:01:10Z"}})";

json::object status() {
  return must_parse(R"({"progressPercentage": 30, "estimatedRemainingSeconds": 60, "metrics": [
      {"name": "step", "value": "30"}, {"name": "totalSteps", "value": "100"},
      {"name": "loss", "value": "0.5"}], "lastUpdatedTime": "2026-01-01T00:00:10Z"})")
      .as_object();
}

TEST(TrainerStatus, IsWhatThePodTellsInUpstreamsWords) {
  EXPECT_EQ(trainer_status(progress_pod(kTold)), status());
}

TEST(TrainerStatus, TakesNothingFromWhatHasAnotherForm) {
  for (const std::string_view told :
       {"", "x", "[]", "{}", R"({"node": 3})", R"({"node": {"step": 3}})",
        R"({"node": {"lastUpdateTime": "2026-01-01T00:00:10Z"}})",
        R"({"node": {"step": -3, "lastUpdateTime": "2026-01-01T00:00:10Z"}})"}) {
    EXPECT_EQ(trainer_status(progress_pod(told)), json::object()) << told;
  }
  const json::object bound = trainer_status(progress_pod(R"({"node": {"percent": 300,
      "lastUpdateTime": "2026-01-01T00:00:10Z",
      "estimatedCompletionTime": "2025-01-01T00:00:10Z"}})"));
  EXPECT_EQ(bound.at("progressPercentage"), 100);
  EXPECT_EQ(bound.at("estimatedRemainingSeconds"), 0);
}

TEST(TrainerStatus, GoesForwardOnly) {
  const json::value known = status();
  EXPECT_TRUE(is_news(nullptr, status()));
  EXPECT_FALSE(is_news(&known, status())) << "it is known";
  json::object later = status();
  later["lastUpdatedTime"] = "2026-01-01T00:00:11Z";
  EXPECT_TRUE(is_news(&known, later));
  EXPECT_FALSE(is_news(&known, {}));
  const json::value newest = later;
  EXPECT_FALSE(is_news(&newest, status())) << "a program wrote it itself, since";
}

Object progress_shared(json::value value) {
  return std::make_shared<const json::value>(std::move(value));
}

TEST(TrainerStatus, IsTakenFromTheFirstPodOfThePartThatTrains) {
  const json::value job = testing::trainjob();
  json::value jobset = jobset_of(job, testing::runtime());
  json::set(jobset, {"metadata", "uid"}, "s1");
  control::Observed seen{.root = progress_shared(job),
                         .owned = {{progress_shared(jobset)}, {}, {}, {}, {}}};
  seen.seen = {{progress_shared(testing::runtime())}, {}, {progress_shared(progress_pod(kTold))}};
  const auto told = [&] {
    const control::Plan plan = plan_trainjob(seen, Time());
    const json::value* found = plan.status ? json::find(*plan.status, {"trainerStatus"}) : nullptr;
    return found == nullptr ? json::value() : *found;
  };
  EXPECT_EQ(told(), json::value(status()));
  for (const auto& [label, value] :
       {std::pair("jobset.sigs.k8s.io/replicatedjob-name", "dataset-initializer"),
        {"jobset.sigs.k8s.io/jobset-uid", "another"},
        {"batch.kubernetes.io/job-completion-index", "1"}}) {
    json::value other = progress_pod(kTold);
    json::set(other, {"metadata", "labels", label}, value);
    seen.seen[2] = {progress_shared(other)};
    EXPECT_EQ(told(), json::value()) << label;
  }
}

}  // namespace
}  // namespace skiff::trainer
