#include "features/training/kinds/mpi/mpi.h"

#include <gtest/gtest.h>

#include "features/training/engine/validation.h"
#include "features/training/kinds/legacy/kept_fields.h"
#include "features/training/testing/builders.h"
#include "features/training/testing/world.h"

namespace skiff::training {
namespace {

using testing::mpijob;
using testing::must_parse;
using testing::verdict;
using testing::World;

json::value mpi_job(std::int64_t workers = 2) {
  return mpijob().role("Launcher", 1).role("Worker", workers).build();
}

json::value job_as_v1(json::value root) {
  json::make_object(root, {"metadata", "annotations"})[kOlderFields] = R"({"writtenAs":"v1"})";
  return root;
}

TEST(MpiVerdict, IsTheLaunchers) {
  EXPECT_EQ(verdict(mpi(), mpi_job(), {{"Launcher", 1, 0}, {"Worker", 2, 0}}),
            (Verdict{.running = true}));
  EXPECT_EQ(verdict(mpi(), mpi_job(), {{"Launcher", 1, 0}, {"Worker", 1, 0}}), Verdict{})
      << "a worker is missing";
  EXPECT_EQ(verdict(mpi(), mpi_job(), {{"Launcher", 0, 0}, {"Worker", 2, 0}}), Verdict{});
  EXPECT_EQ(verdict(mpi(), mpi_job(), {{"Launcher", 0, 1}, {"Worker", 2, 0}}),
            (Verdict{.succeeded = true}));
  EXPECT_EQ(verdict(mpi(), mpi_job(), {{"Launcher", 0, 0}, {"Worker", 0, 2}}), Verdict{});
  EXPECT_EQ(verdict(mpi(), mpi_job(), {{"Launcher", 1, 0}, {"Worker", 1, 1}}),
            (Verdict{.running = true}))
      << "a worker that is done is not missing";
}

TEST(MpiVerdict, OfV1LooksAtTheLauncherOnly) {
  EXPECT_EQ(verdict(mpi(), job_as_v1(mpi_job()), {{"Launcher", 1, 0}, {"Worker", 0, 0}}),
            (Verdict{.running = true}));
}

TEST(MpiVerdict, NeedsNoWorkers) {
  EXPECT_EQ(verdict(mpi(), mpijob().role("Launcher", 1).build(), {{"Launcher", 1, 0}}),
            (Verdict{.running = true}));
}

TEST(MpiJob, HasALauncherWithoutANumber) {
  World world(mpi(), mpi_job());
  world.settle();
  EXPECT_EQ(world.pod_names(), "mnist-launcher mnist-worker-0 mnist-worker-1");
}

TEST(MpiJob, NeverHasTwoLaunchers) {
  json::value root = mpi_job();
  json::set(root, {"spec", "mpiReplicaSpecs", "Launcher", "replicas"}, 3);
  World world(mpi(), root);
  world.settle();
  EXPECT_EQ(world.pod_names(), "mnist-launcher mnist-worker-0 mnist-worker-1");
}

TEST(MpiJob, StopsItsWorkersAtTheEnd) {
  World world(mpi(), mpi_job());
  world.settle();
  world.all_phases("Running");
  world.settle();
  EXPECT_EQ(world.conditions(), "Created Running");
  world.set_phase("mnist-launcher", "Succeeded");
  world.settle();
  EXPECT_EQ(world.conditions(), "Created !Running Succeeded");
  EXPECT_EQ(world.pod_names(), "mnist-launcher") << "it holds the job's log";
}

TEST(MpiJob, KeepsItsLauncherWhateverIsCleanedUp) {
  for (const char* policy : {"All", "Running"}) {
    json::value root = mpi_job();
    json::set(root, {"spec", "runPolicy", "cleanPodPolicy"}, policy);
    World world(mpi(), root);
    world.settle();
    world.all_phases("Running");
    world.set_phase("mnist-launcher", "Succeeded");
    world.settle();
    EXPECT_EQ(world.pod_names(), "mnist-launcher") << policy;
  }
  json::value root = mpi_job();
  json::set(root, {"spec", "runPolicy", "cleanPodPolicy"}, "None");
  World world(mpi(), root);
  world.settle();
  world.all_phases("Running");
  world.set_phase("mnist-launcher", "Succeeded");
  world.settle();
  EXPECT_EQ(world.pods.size(), 3u);
}

TEST(MpiJob, StopsALauncherThatRunsOnWhenTheJobHasFailed) {
  json::value root = mpi_job();
  json::set(root, {"spec", "runPolicy", "activeDeadlineSeconds"}, 5);
  World world(mpi(), root);
  world.settle();
  world.all_phases("Running");
  world.settle();
  json::set(world.pods.at("mnist-launcher"), {"spec", "nodeName"}, "here");
  world.now += std::chrono::seconds(6);
  world.settle();
  EXPECT_EQ(world.conditions(), "Created !Running Failed");
  EXPECT_EQ(world.pod_names(), "mnist-launcher") << "its log stays";
  const json::value& launcher = world.pods.at("mnist-launcher");
  EXPECT_EQ(json::get_int(launcher, {"spec", "activeDeadlineSeconds"}), 1) << "its node ends it";
}

TEST(MpiJob, TakesAwayALauncherThatNeverHadAPlaceWhenTheJobHasFailed) {
  json::value root = mpi_job();
  json::set(root, {"spec", "runPolicy", "activeDeadlineSeconds"}, 5);
  World world(mpi(), root);
  world.settle();
  world.now += std::chrono::seconds(6);
  world.settle();
  EXPECT_EQ(world.conditions(), "Created Failed");
  EXPECT_EQ(world.pod_names(), "");
}

TEST(MpiJob, ReplacesALauncherThatFailed) {
  World world(mpi(), mpi_job());
  world.settle();
  world.all_phases("Running");
  world.set_phase("mnist-launcher", "Failed", 1);
  world.settle();
  EXPECT_EQ(world.restarts(), 1);
  EXPECT_EQ(world.conditions(), "Created Restarting");
  EXPECT_TRUE(world.pods.contains("mnist-launcher"));
}

TEST(MpiJob, FailsAfterSixRestarts) {
  World world(mpi(), mpi_job());
  world.settle();
  for (int i = 0; i < 7; ++i) {
    ASSERT_FALSE(testing::condition_list(world.root).ends_with("Failed")) << i;
    world.set_phase("mnist-launcher", "Failed", 1);
    world.settle();
  }
  EXPECT_EQ(world.restarts(), 6);
  EXPECT_TRUE(world.conditions().ends_with("Failed")) << world.conditions();
}

TEST(MpiJob, OfV1FailsWithItsLauncher) {
  World world(mpi(), job_as_v1(mpi_job()));
  world.settle();
  world.set_phase("mnist-launcher", "Failed", 1);
  world.settle();
  EXPECT_EQ(world.restarts(), 0);
  EXPECT_EQ(world.conditions(), "Created Failed");
}

TEST(MpiJob, DoesNotFailWithAWorkerButInV1) {
  World world(mpi(), mpi_job());
  world.settle();
  world.all_phases("Running");
  world.set_phase("mnist-worker-1", "Failed", 1);
  world.settle();
  EXPECT_EQ(world.conditions(), "Created Running");
  EXPECT_EQ(world.count("Worker", "failed"), 1);
  World first(mpi(), job_as_v1(mpi_job()));
  first.settle();
  first.all_phases("Running");
  first.set_phase("mnist-worker-1", "Failed", 1);
  first.settle();
  EXPECT_EQ(first.conditions(), "Created Failed");
}

TEST(MpiJob, ReplacesItsLauncherThoughAWorkerHasFailed) {
  World world(mpi(), mpi_job());
  world.settle();
  world.all_phases("Running");
  world.set_phase("mnist-worker-1", "Failed", 1);
  world.set_phase("mnist-launcher", "Failed", 1);
  world.settle();
  EXPECT_EQ(api::annotation(world.pods["mnist-launcher"], kGangMinAnnotation), "2")
      << "it must not wait for a place beside a pod that is no more";
}

TEST(MpiJob, JudgesALauncherByTheCodeOfItsFirstContainer) {
  json::value root = job_as_v1(mpi_job());
  json::set(root, {"spec", "mpiReplicaSpecs", "Launcher", "restartPolicy"}, "ExitCode");
  root.at_pointer("/spec/mpiReplicaSpecs/Launcher/template/spec/containers/0/name") = "tensorflow";
  for (const int code : {1, 137}) {
    World world(mpi(), root);
    world.settle();
    json::value& pod = world.pods["mnist-launcher"];
    json::set(pod, {"status", "phase"}, "Failed");
    testing::set_exit_code(pod, "tensorflow", code);
    world.settle();
    EXPECT_EQ(world.conditions().ends_with("Failed"), code == 1) << code;
  }
}

void set_ready(World& world, const std::string& pod) {
  world.set_phase(pod, "Running");
  json::set(world.pods[pod], {"status", "conditions"},
            json::array{json::object{{"type", "Ready"}, {"status", "True"}}});
}

json::value waiting_job() {
  json::value root = mpi_job();
  json::set(root, {"spec", "launcherCreationPolicy"}, "WaitForWorkersReady");
  return root;
}

TEST(WaitForWorkersReady, MakesTheLauncherLast) {
  World world(mpi(), waiting_job());
  world.settle();
  EXPECT_EQ(world.pod_names(), "mnist-worker-0 mnist-worker-1");
  EXPECT_EQ(api::annotation(world.pods["mnist-worker-0"], kGangMinAnnotation), "2")
      << "workers must not wait for a launcher that waits for them";
  set_ready(world, "mnist-worker-0");
  world.set_phase("mnist-worker-1", "Running");
  world.settle();
  EXPECT_EQ(world.pods.size(), 2u) << "one runs and is not ready";
  set_ready(world, "mnist-worker-1");
  world.settle();
  EXPECT_TRUE(world.pods.contains("mnist-launcher"));
}

TEST(WaitForWorkersReady, DoesNotWaitForWhatHasEnded) {
  World world(mpi(), waiting_job());
  world.settle();
  set_ready(world, "mnist-worker-0");
  world.set_phase("mnist-worker-1", "Failed", 1);
  world.settle();
  EXPECT_TRUE(world.pods.contains("mnist-launcher")) << "mpirun will say what is missing";
}

TEST(AtStartup, MakesAllPodsAtOnce) {
  World world(mpi(), mpi_job());
  world.settle();
  EXPECT_EQ(world.pods.size(), 3u);
  EXPECT_EQ(api::annotation(world.pods["mnist-worker-0"], kGangMinAnnotation), "3");
}

void evict(World& world, const std::string& pod) {
  world.set_phase(pod, "Failed", 137);
  json::set(world.pods[pod], {"status", "reason"}, "Evicted");
}

TEST(MpiJob, FailsWhenAWorkerIsEvictedWhateverItsVersion) {
  for (const json::value& root : {mpi_job(), job_as_v1(mpi_job())}) {
    World world(mpi(), root);
    world.settle();
    world.all_phases("Running");
    world.settle();
    evict(world, "mnist-worker-1");
    world.settle();
    ASSERT_TRUE(api::condition_true(world.root, "Failed")) << world.conditions();
    const json::value failed(*api::condition(world.root, "Failed"));
    EXPECT_EQ(json::get_string(failed, {"reason"}), "MPIJobEvicted");
    EXPECT_EQ(json::get_string(failed, {"message"}), "1/2 workers are evicted");
    EXPECT_EQ(world.told("MPIJobEvicted"), 1);
    EXPECT_TRUE(json::find(world.root, {"status", "completionTime"}) != nullptr);
    EXPECT_EQ(world.settle(), 0);
  }
}

TEST(MpiJob, ReplacesAnEvictedWorkerWhereItsPolicySaysSo) {
  World world(mpi(), mpijob().role("Launcher", 1).role("Worker", 2, "OnFailure").build());
  world.settle();
  world.all_phases("Running");
  world.settle();
  evict(world, "mnist-worker-1");
  world.settle();
  EXPECT_FALSE(api::condition_true(world.root, "Failed")) << world.conditions();
  EXPECT_EQ(world.restarts(), 1);
}

TEST(MpiJob, WhoseLauncherIsEvictedHasAReplacement) {
  World world(mpi(), mpi_job());
  world.settle();
  world.all_phases("Running");
  world.settle();
  evict(world, "mnist-launcher");
  world.settle();
  EXPECT_FALSE(api::condition_true(world.root, "Failed")) << world.conditions();
  EXPECT_EQ(world.restarts(), 1);
}

TEST(MpiJob, IsRunHereUnderBothNamesOfItsOperators) {
  for (const char* manager : {"kubeflow.org/mpi-operator", "kubeflow.org/training-operator"}) {
    json::value root = mpi_job();
    json::set(root, {"spec", "runPolicy", "managedBy"}, manager);
    EXPECT_TRUE(validate_job(mpi(), root, {}).empty()) << manager;
    World world(mpi(), root);
    world.settle();
    EXPECT_EQ(world.pods.size(), 3u) << manager;
  }
  json::value root = mpi_job();
  json::set(root, {"spec", "runPolicy", "managedBy"}, "kueue.x-k8s.io/multikueue");
  EXPECT_TRUE(validate_job(mpi(), root, {}).empty());
  World world(mpi(), root);
  world.settle();
  EXPECT_TRUE(world.pods.empty());
}

struct MpiRule {
  const char* sentence;
  json::value job;
  std::vector<std::string> expected;  // field: message
};

class MpiRules : public ::testing::TestWithParam<MpiRule> {};

TEST_P(MpiRules, Say) {
  std::vector<std::string> said;
  for (const Cause& cause : validate_job(mpi(), GetParam().job, {})) {
    said.push_back(cause.field + ": " + cause.message);
  }
  EXPECT_EQ(said, GetParam().expected) << GetParam().sentence;
}

json::value mpi_with(json::value root, std::initializer_list<std::string_view> path,
                     json::value leaf) {
  json::set(root, path, std::move(leaf));
  return root;
}

INSTANTIATE_TEST_SUITE_P(
    All, MpiRules,
    ::testing::Values(
        MpiRule{"a whole job", mpi_job(), {}},
        MpiRule{"no workers at all", mpijob().role("Launcher", 1).build(), {}},
        MpiRule{
            "no launcher",
            mpijob().role("Worker", 1).build(),
            {"spec.mpiReplicaSpecs[Launcher]: Required value: must have Launcher replica spec"}},
        MpiRule{"two launchers",
                mpijob().role("Launcher", 2).role("Worker", 1).build(),
                {"spec.mpiReplicaSpecs[Launcher].replicas: Invalid value: 2: must be 1"}},
        MpiRule{"no worker in the role",
                mpijob().role("Launcher", 1).role("Worker", 0).build(),
                {"spec.mpiReplicaSpecs[Worker].replicas: Invalid value: 0: must be greater than or "
                 "equal to 1"}},
        MpiRule{"no worker in the role, as v1 may",
                job_as_v1(mpijob().role("Launcher", 1).role("Worker", 0).build()),
                {}},
        MpiRule{"a policy that v2beta1 does not know",
                mpijob().role("Launcher", 1, "Always").role("Worker", 1, "ExitCode").build(),
                {"spec.mpiReplicaSpecs[Launcher].restartPolicy: Unsupported value: \"Always\": "
                 "supported values: \"Never\", \"OnFailure\"",
                 "spec.mpiReplicaSpecs[Worker].restartPolicy: Unsupported value: \"ExitCode\": "
                 "supported values: \"Never\", \"OnFailure\""}},
        MpiRule{
            "the same in v1",
            job_as_v1(mpijob().role("Launcher", 1, "Always").role("Worker", 1, "ExitCode").build()),
            {}},
        MpiRule{"a container of any name",
                mpi_with(mpi_job(), {"spec", "mpiReplicaSpecs", "Worker", "template"},
                         must_parse(R"({"spec":{"containers":[{"name":"x","image":"i"}]}})")),
                {}},
        MpiRule{
            "no container",
            mpi_with(mpi_job(), {"spec", "mpiReplicaSpecs", "Worker", "template"}, json::object{}),
            {"spec.mpiReplicaSpecs[Worker].template.spec.containers: Required value: must hold "
             "at least one container"}},
        MpiRule{"somebody else's manager",
                mpi_with(mpi_job(), {"spec", "runPolicy", "managedBy"}, "me"),
                {"spec.runPolicy.managedBy: Unsupported value: \"me\": supported values: "
                 "\"kubeflow.org/mpi-operator\", \"kubeflow.org/training-operator\", "
                 "\"kueue.x-k8s.io/multikueue\""}}));

}  // namespace
}  // namespace skiff::training
