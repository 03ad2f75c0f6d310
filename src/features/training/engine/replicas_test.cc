#include "features/training/engine/replicas.h"

#include <gtest/gtest.h>

#include "features/training/engine/defaults.h"
#include "features/training/testing/builders.h"

namespace skiff::training {
namespace {

using testing::replica_pod;
using testing::replica_service;
using testing::share;

class Bookkeeping : public ::testing::Test {
 protected:
  const json::value root_ = testing::tfjob().role("Worker", 2).role("PS", 1).build();
  const Job job_ = read_job(tensorflow(), root_);

  const RoleSlots& role(const Replicas& replicas, std::string_view name) {
    for (const RoleSlots& slots : replicas.roles) {
      if (slots.role->name == name) return slots;
    }
    ADD_FAILURE() << name;
    return replicas.roles.front();
  }
};

TEST_F(Bookkeeping, PutsPodsAndServicesInTheirPlace) {
  const Replicas replicas = sort_replicas(
      job_, {share(replica_pod("worker", 1, "Running")), share(replica_pod("ps", 0, "Failed"))},
      {share(replica_service("worker", 0))});
  const RoleSlots& workers = role(replicas, "Worker");
  ASSERT_EQ(workers.slots.size(), 2u);
  EXPECT_EQ(workers.slots[0].pod.object, nullptr);
  EXPECT_NE(workers.slots[0].service, nullptr);
  ASSERT_NE(workers.slots[1].pod.object, nullptr);
  EXPECT_EQ(workers.slots[1].pod.phase, Phase::kRunning);
  EXPECT_EQ(workers.slots[1].service, nullptr);
  EXPECT_EQ(role(replicas, "PS").slots[0].pod.phase, Phase::kFailed);
  EXPECT_TRUE(replicas.surplus_pods.empty());
  EXPECT_TRUE(replicas.surplus_services.empty());
}

struct Stray {
  const char* sentence;
  std::string_view role;
  const char* index;
};

class Strays : public Bookkeeping, public ::testing::WithParamInterface<Stray> {};

TEST_P(Strays, AreSurplus) {
  json::value pod = replica_pod(GetParam().role, 0, "Running");
  json::set(pod, {"metadata", "labels", kIndexLabel}, GetParam().index);
  json::value service = pod;
  const Replicas replicas = sort_replicas(job_, {share(pod)}, {share(service)});
  EXPECT_EQ(replicas.surplus_pods.size(), 1u) << GetParam().sentence;
  EXPECT_EQ(replicas.surplus_services.size(), 1u) << GetParam().sentence;
}

INSTANTIATE_TEST_SUITE_P(All, Strays,
                         ::testing::Values(Stray{"past the role's count", "worker", "2"},
                                           Stray{"of a role that is gone", "chief", "0"},
                                           Stray{"with an index that is no number", "worker", "x"},
                                           Stray{"with a negative index", "worker", "-1"},
                                           Stray{"with an empty index", "worker", ""}));

TEST_F(Bookkeeping, CallsAPodWithoutLabelsSurplus) {
  json::value pod = replica_pod("worker", 0, "Running");
  pod.at("metadata").as_object().erase("labels");
  EXPECT_EQ(sort_replicas(job_, {share(pod)}, {}).surplus_pods.size(), 1u);
}

TEST_F(Bookkeeping, KeepsTheOlderOfTwoInWhateverOrderTheyCome) {
  json::value older = replica_pod("worker", 0, "Running", "z");
  json::value younger = replica_pod("worker", 0, "Running", "a");
  json::set(younger, {"metadata", "creationTimestamp"}, "2026-11-15T12:00:02Z");
  for (const auto& pods : {std::vector{older, younger}, std::vector{younger, older}}) {
    const std::vector<Object> shared{share(pods[0]), share(pods[1])};
    const Replicas replicas = sort_replicas(job_, shared, shared);
    EXPECT_EQ(api::uid(*role(replicas, "Worker").slots[0].pod.object), "z-worker-0");
    EXPECT_EQ(api::uid(*role(replicas, "Worker").slots[0].service), "z-worker-0");
    ASSERT_EQ(replicas.surplus_pods.size(), 1u);
    EXPECT_EQ(api::uid(*replicas.surplus_pods[0]), "a-worker-0");
    ASSERT_EQ(replicas.surplus_services.size(), 1u);
    EXPECT_EQ(api::uid(*replicas.surplus_services[0]), "a-worker-0");
  }
}

TEST_F(Bookkeeping, DecidesByUidBetweenPodsOfTheSameSecond) {
  const Object a = share(replica_pod("worker", 0, "Running", "a"));
  const Object b = share(replica_pod("worker", 0, "Running", "b"));
  for (const std::vector<Object>& pods : {std::vector{a, b}, std::vector{b, a}}) {
    const Replicas replicas = sort_replicas(job_, pods, {});
    EXPECT_EQ(role(replicas, "Worker").slots[0].pod.object, a.get());
  }
}

TEST_F(Bookkeeping, ReadsTheAttemptAndWhetherAPodIsGoing) {
  json::value pod = replica_pod("worker", 0, "Running");
  json::set(pod, {"metadata", "annotations", kAttemptAnnotation}, "3");
  json::set(pod, {"metadata", "deletionTimestamp"}, "2026-11-15T12:00:02Z");
  const std::vector<Object> pods{share(pod)};
  const Replicas replicas = sort_replicas(job_, pods, {});
  const ReplicaPod& read = role(replicas, "Worker").slots[0].pod;
  EXPECT_EQ(read.attempt, 3);
  EXPECT_TRUE(read.deleting);
}

TEST_F(Bookkeeping, FindsTheExitCodeOfTheContainerThatTrains) {
  json::value pod = replica_pod("worker", 0, "Failed");
  EXPECT_EQ(exit_code(job_, pod), kNoExitCode) << "no status at all";
  testing::set_exit_code(pod, "sidecar", 7);
  EXPECT_EQ(exit_code(job_, pod), kNoExitCode) << "another container's";
  testing::set_exit_code(pod, "tensorflow", 3);
  EXPECT_EQ(exit_code(job_, pod), 3);
}

TEST(ContainerRestarts, AddUpOverAllContainers) {
  const json::value pod = testing::must_parse(
      R"({"status":{"initContainerStatuses":[{"restartCount":1}],
      "containerStatuses":[{"restartCount":2},{"restartCount":4},{}]}})");
  EXPECT_EQ(container_restarts(pod), 7);
  EXPECT_EQ(container_restarts(json::object{}), 0);
}

TEST(PodPhase, IsPendingWhereUnknown) {
  EXPECT_EQ(read_phase(json::object{}), Phase::kPending);
  EXPECT_EQ(read_phase(replica_pod("worker", 0, "Unknown")), Phase::kPending);
  EXPECT_EQ(read_phase(replica_pod("worker", 0, "Succeeded")), Phase::kSucceeded);
}

}  // namespace
}  // namespace skiff::training
