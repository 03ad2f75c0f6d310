#include "features/training/engine/progress.h"

#include <gtest/gtest.h>

#include "features/training/engine/plan.h"
#include "features/training/testing/builders.h"

namespace skiff::training {
namespace {

const Time kProgressNow = *parse_time("2026-11-15T12:00:00Z");

Object pod_telling(std::string_view role, std::int64_t index, std::string_view annotation,
                   std::string_view phase = "Running") {
  json::value pod = testing::replica_pod(role, index, phase);
  if (!annotation.empty()) {
    json::set(pod, {"metadata", "annotations", kProgressAnnotation}, json::string(annotation));
  }
  return testing::share(std::move(pod));
}

control::Observed observed(json::value root, std::vector<Object> pods) {
  control::Observed out{.root = testing::share(std::move(root)), .owned = {std::move(pods), {}}};
  return out;
}

std::string progress(const control::Plan& plan) {
  if (!plan.status) return "no status";
  const json::value* found = json::find(*plan.status, {"progress"});
  return found == nullptr ? "none" : json::serialize(*found);
}

TEST(Progress, OfTheReplicaThatSpeaksForTheJobIsInTheStatus) {
  const json::value root = testing::tfjob().role("Worker", 2).role("PS", 1).build();
  const auto plan = plan_job(
      tensorflow(),
      observed(root,
               {pod_telling("ps", 0, R"({"tensorflow":{"step":1}})"),
                pod_telling("worker", 0,
                            R"({"tensorflow":{"step":10,"totalSteps":100,"percent":10,)"
                            R"("metrics":{"loss":"0.3"},"lastUpdateTime":"2026-11-15T12:00:00Z",)"
                            R"("estimatedCompletionTime":"2026-11-15T12:15:00Z"}})"),
                pod_telling("worker", 1, R"({"tensorflow":{"step":12}})")}),
      kProgressNow);
  EXPECT_EQ(progress(plan),
            R"({"step":10,"totalSteps":100,"percent":10,"metrics":{"loss":"0.3"},)"
            R"("lastUpdateTime":"2026-11-15T12:00:00Z",)"
            R"("estimatedCompletionTime":"2026-11-15T12:15:00Z","replica":"worker-0"})");
}

TEST(Progress, TheMasterGoesBeforeAnyWorker) {
  const json::value root = testing::torchjob().role("Master", 1).role("Worker", 1).build();
  const auto plan =
      plan_job(pytorch(),
               observed(root, {pod_telling("worker", 0, R"({"pytorch":{"step":7}})"),
                               pod_telling("master", 0, R"({"pytorch":{"step":5}})")}),
               kProgressNow);
  EXPECT_EQ(progress(plan), R"({"step":5,"replica":"master-0"})");
}

TEST(Progress, AWorkerSpeaksWhereTheFirstIsSilent) {
  const json::value root = testing::tfjob().role("Worker", 2).build();
  const auto plan = plan_job(
      tensorflow(),
      observed(root,
               {pod_telling("worker", 0, ""),
                pod_telling("worker", 1, R"({"sidecar":{"step":1},"tensorflow":{"epoch":3}})")}),
      kProgressNow);
  EXPECT_EQ(progress(plan), R"({"epoch":3,"replica":"worker-1"})");
}

TEST(Progress, WhatAnAnnotationSaysWronglyIsLeftOut) {
  const struct {
    std::string_view annotation, told;
  } cases[] = {
      {"not json", "none"},
      {"[1]", "none"},
      {"{}", "none"},
      {R"({"tensorflow":7})", "none"},
      {R"({"tensorflow":{"step":"many"}})", "none"},
      {R"({"tensorflow":{"step":-1,"epoch":2}})", R"({"epoch":2,"replica":"worker-0"})"},
      {R"({"tensorflow":{"step":1,"lastUpdateTime":"soon","metrics":{"loss":3,"acc":"1"}}})",
       R"({"step":1,"metrics":{"acc":"1"},"replica":"worker-0"})"},
      {R"({"tensorflow":{"step":1,"extra":{"a":1}}})", R"({"step":1,"replica":"worker-0"})"},
      {R"({"other":{"step":4}})", R"({"step":4,"replica":"worker-0"})"},
  };
  const json::value root = testing::tfjob().role("Worker", 1).build();
  for (const auto& c : cases) {
    const auto plan = plan_job(
        tensorflow(), observed(root, {pod_telling("worker", 0, c.annotation)}), kProgressNow);
    EXPECT_EQ(progress(plan), c.told) << c.annotation;
  }
}

TEST(Progress, APlanAfterItsOwnStatusWritesNothing) {
  json::value root = testing::tfjob().role("Worker", 1).build();
  const std::vector<Object> pods = {pod_telling("worker", 0, R"({"tensorflow":{"step":10}})")};
  control::Observed seen = observed(root, pods);
  seen.owned[1] = {testing::share(testing::replica_service("worker", 0))};
  const auto first = plan_job(tensorflow(), seen, kProgressNow);
  ASSERT_TRUE(first.status);
  json::set(root, {"status"}, *first.status);
  seen.root = testing::share(root);
  EXPECT_TRUE(plan_job(tensorflow(), seen, kProgressNow + std::chrono::hours(1)).empty());
  // Nor does the word of one that does not speak for the job.
  seen.owned[0][0] = pod_telling("worker", 0, R"({"tensorflow":{"step":10},"sidecar":{"step":2}})");
  EXPECT_TRUE(plan_job(tensorflow(), seen, kProgressNow).empty());
}

TEST(Progress, StaysWhenNobodySpeaksAndComesLateToAJobThatHasEnded) {
  json::value root = testing::tfjob().role("Worker", 1).build();
  control::Observed seen =
      observed(root, {pod_telling("worker", 0, R"({"tensorflow":{"step":9}})")});
  seen.owned[1] = {testing::share(testing::replica_service("worker", 0))};
  json::set(root, {"status"}, *plan_job(tensorflow(), seen, kProgressNow).status);
  seen.root = testing::share(root);
  json::value done = testing::replica_pod("worker", 0, "Succeeded");
  testing::set_exit_code(done, "tensorflow", 0);
  seen.owned[0] = {testing::share(done)};
  const auto ended = plan_job(tensorflow(), seen, kProgressNow);
  EXPECT_EQ(progress(ended), R"({"step":9,"replica":"worker-0"})");
  json::set(root, {"status"}, *ended.status);
  seen.root = testing::share(root);
  seen.owned[0] = {pod_telling("worker", 0, R"({"tensorflow":{"step":10}})", "Succeeded")};
  EXPECT_EQ(progress(plan_job(tensorflow(), seen, kProgressNow)),
            R"({"step":10,"replica":"worker-0"})");
}

TEST(Progress, TheFirstStepOfAJobIsThatOfItsFirstAttempt) {
  const auto told = [](std::string_view kept, std::string_view said) {
    json::value root = testing::tfjob().role("Worker", 1).build();
    json::set(root, {"status", "progress", "firstStepTime"}, json::string(kept));
    const std::string first =
        said.empty() ? "" : ",\"firstStepTime\":\"" + std::string(said) + "\"";
    const auto plan = plan_job(
        tensorflow(),
        observed(root, {pod_telling("worker", 0, "{\"tensorflow\":{\"step\":1" + first + "}}")}),
        kProgressNow);
    if (!plan.status) return std::string("no status");
    return std::string(json::get_string(*plan.status, {"progress", "firstStepTime"}));
  };
  const std::string_view early = "2026-11-15T11:00:00Z", late = "2026-11-15T11:30:00Z";
  EXPECT_EQ(told(early, late), early) << "a new attempt";
  EXPECT_EQ(told(late, early), early);
  EXPECT_EQ(told(early, ""), early);
  EXPECT_EQ(told("soon", late), late);
}

TEST(Progress, OfAJobOfThousandsOnlyTheFirstOfEachRoleAreAsked) {
  const std::int64_t late = kProgressReplicas;
  const json::value root = testing::tfjob().role("Worker", late + 1).build();
  std::vector<Object> pods;
  for (std::int64_t i = 0; i <= late; ++i) {
    pods.push_back(pod_telling("worker", i, i == late ? R"({"tensorflow":{"step":1}})" : ""));
  }
  EXPECT_EQ(progress(plan_job(tensorflow(), observed(root, pods), kProgressNow)), "none");
}

}  // namespace
}  // namespace skiff::training
