#include "cli/job_pods.h"

#include <gtest/gtest.h>

#include <memory>

#include "api/meta.h"

namespace skiff::cli {
namespace {

Object owned_pod(std::string name, std::string owner) {
  json::value out = json::object{{"metadata", {{"name", name}}}};
  if (!owner.empty()) {
    out.at("metadata").as_object()["ownerReferences"] = json::array{
        json::object{{"kind", owner}, {"name", "mnist"}, {"uid", "u"}, {"controller", true}}};
  }
  return std::make_shared<const json::value>(std::move(out));
}

std::string names(const Result<std::vector<Object>>& pods) {
  if (!pods) return pods.error().message;
  std::string out;
  for (const Object& each : *pods) out += std::string(api::name(*each)) + " ";
  return out;
}

const std::vector<Object> kNamed = {owned_pod("mnist-chief-0", "TFJob"),
                                    owned_pod("mnist-master-0", "PyTorchJob"),
                                    owned_pod("mnist-worker-0", "TFJob"), owned_pod("stray", "")};
const std::vector<Object> kInSet = {owned_pod("mnist-node-0-0-x7", "Job")};

TEST(JobPods, AreThoseOfTheKindThatWasAskedFor) {
  EXPECT_EQ(names(job_pods(kNamed, kInSet, "TFJob", "mnist")), "mnist-chief-0 mnist-worker-0 ");
  EXPECT_EQ(names(job_pods(kNamed, kInSet, "PyTorchJob", "mnist")), "mnist-master-0 ");
  EXPECT_EQ(names(job_pods(kNamed, kInSet, "XGBoostJob", "mnist")), "");
  EXPECT_EQ(names(job_pods(kNamed, kInSet, "Job", "mnist")), "")
      << "a batch Job of that name has none of these";
}

TEST(JobPods, OfATrainJobAreThoseOfItsSet) {
  EXPECT_EQ(names(job_pods(kNamed, kInSet, "TrainJob", "mnist")), "mnist-node-0-0-x7 ");
  EXPECT_EQ(names(job_pods(kNamed, kInSet, "JobSet", "mnist")), "mnist-node-0-0-x7 ");
  EXPECT_EQ(names(job_pods(kNamed, {}, "TrainJob", "mnist")), "");
}

TEST(JobPods, OfABareNameAreThoseOfTheOnlyJobOfThatName) {
  EXPECT_EQ(names(job_pods({kNamed[0], kNamed[2]}, {}, "", "mnist")),
            "mnist-chief-0 mnist-worker-0 ");
  EXPECT_EQ(names(job_pods({}, kInSet, "", "mnist")), "mnist-node-0-0-x7 ");
  EXPECT_EQ(names(job_pods({}, {}, "", "mnist")), "");
}

TEST(JobPods, OfABareNameOfSeveralJobsAreNobodysGuess) {
  EXPECT_EQ(names(job_pods({kNamed[0], kNamed[1]}, {}, "", "mnist")),
            "mnist is the name of jobs of several kinds (PyTorchJob, TFJob); name one of them as "
            "KIND/mnist");
  EXPECT_EQ(names(job_pods({kNamed[0]}, kInSet, "", "mnist")),
            "mnist is the name of jobs of several kinds (JobSet, TFJob); name one of them as "
            "KIND/mnist");
}

}  // namespace
}  // namespace skiff::cli
