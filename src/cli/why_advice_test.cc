#include "cli/why_advice.h"

#include <gtest/gtest.h>

#include "base/yaml.h"
#include "cli/testing/objects.h"
#include "cli/why.h"

namespace skiff::cli {
namespace {

using testing::object;

const Time kWhyAdviceNow = *parse_time("2026-11-15T12:00:00Z");

std::string all(const Situation& situation) {
  std::string out;
  for (const std::string& line : explain(situation, kWhyAdviceNow)) out += line + "\n";
  return out;
}

Object waiting_pod(const std::string& name, const std::string& message) {
  return object("{kind: Pod, metadata: {name: " + name +
                ", creationTimestamp: '2026-11-15T11:59:00Z'}, status: {conditions: [{type: "
                "PodScheduled, status: 'False', message: '" +
                message + "'}]}}");
}

TEST(WhyAdvice, EachReasonHasItsRemedy) {
  const struct {
    std::string_view reason, says;
  } cases[] = {
      {"Pod p waits: 0/1 nodes are available: 1 Insufficient cpu", "resources.requests"},
      {"1 Insufficient nvidia.com/gpu", "fewer GPUs"},
      {"gang \"g\" starts 3 pods together and 2 exist so far", "minAvailable"},
      {"pods \"a\" is forbidden: exceeded quota: q", "skiff get resourcequota"},
      {"persistentvolumeclaim \"data\" not found", "skiff get pvc"},
      {"Container c of pod p waits: ErrImagePull (x)", "skiff image"},
      {"Container c of pod p waits: ImagePullBackOff", "skiff image"},
      {"Container c of pod p waits: CrashLoopBackOff", "up to five minutes"},
      {"CreateContainerConfigError", "ConfigMap or Secret"},
      {"TFJob d/j has failed because it has reached the specified backoff limit.", "backoffLimit"},
      {"it was active longer than specified deadline.", "activeDeadlineSeconds"},
  };
  for (const auto& c : cases) EXPECT_TRUE(advice(c.reason).contains(c.says)) << c.reason;
  EXPECT_EQ(advice("all is well"), "");
}

TEST(WhyAdvice, AGangThatDoesNotFitIsToldOnceWithNumbersAndARemedy) {
  const std::string gang =
      "gang \"d/j\" needs room for 4 pods at once and 3 fit: 0/1 nodes are available: 1 "
      "Insufficient cpu";
  const std::string text = all({.object = object("{kind: TFJob, metadata: {name: j}}"),
                                .pods = {waiting_pod("j-0", gang), waiting_pod("j-1", gang)}});
  EXPECT_TRUE(text.contains("needs room for 4 pods at once and 3 fit")) << text;
  EXPECT_TRUE(text.contains("(1 more pod for the same reason)")) << text;
  const std::size_t first = text.find("What to do: Ask for less");
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find("What to do: Ask for less", first + 1), std::string::npos) << text;
}

TEST(WhyAdvice, AQuotaIsFoundInTheEvents) {
  const std::string text =
      all({.object = object("{kind: TFJob, metadata: {name: j}}"),
           .events = {object("{type: Warning, reason: FailedCreate, message: 'exceeded quota: q, "
                             "requested: pods=2, used: pods=9, limited: pods=10'}")}});
  EXPECT_TRUE(text.contains("limited: pods=10")) << text;
  EXPECT_TRUE(text.contains("What to do: The namespace has used up its quota")) << text;
}

TEST(WhyAdvice, ARunningJobTellsItsDeadlineProgressAndSilence) {
  const std::string text =
      all({.object =
               object("{kind: TFJob, metadata: {name: j, namespace: d}, spec: {runPolicy: "
                      "{activeDeadlineSeconds: "
                      "7200}}, status: {startTime: '2026-11-15T11:00:00Z', conditions: [{type: "
                      "Running, status: "
                      "'True'}], progress: {step: 5, totalSteps: 50, percent: 10, lastUpdateTime: "
                      "'2026-11-15T11:40:00Z'}}}")});
  EXPECT_TRUE(text.contains("60m left until its deadline (activeDeadlineSeconds 7200)")) << text;
  EXPECT_TRUE(text.contains("It is at step 5/50 (10 %)")) << text;
  EXPECT_TRUE(text.contains("said nothing about their progress for 20m")) << text;
}

TEST(WhyAdvice, AJobThatOthersRunIsToldAsSuch) {
  const std::string text =
      all({.object = object("{kind: TFJob, metadata: {name: j}, spec: {runPolicy: {managedBy: "
                            "kueue.x-k8s.io/multikueue}}}")});
  EXPECT_TRUE(text.contains("kueue.x-k8s.io/multikueue runs it")) << text;
}

}  // namespace
}  // namespace skiff::cli
