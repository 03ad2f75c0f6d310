// What lies at the edges of the policies: each case is here because a change by one (tools/mutants)
// was once noticed by no other test.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/limits.h"
#include "features/training/engine/abnormal_pods.h"
#include "features/training/engine/backoff_limit.h"
#include "features/training/engine/conditions.h"
#include "features/training/engine/draft.h"
#include "features/training/engine/history.h"
#include "features/training/engine/notes.h"
#include "features/training/engine/pod_template.h"
#include "features/training/engine/services.h"
#include "features/training/engine/validation.h"
#include "features/training/feature.h"
#include "features/training/kinds/jax/jax.h"
#include "features/training/kinds/paddle/paddle.h"
#include "features/training/kinds/xgboost/xgboost.h"
#include "features/training/testing/world.h"

namespace skiff::training {
namespace {

using testing::environment;
using testing::JobBuilder;
using testing::must_parse;
using testing::tfjob;
using testing::torchjob;
using testing::verdict;
using testing::World;

std::vector<std::string> reasons(const World& world) {
  std::vector<std::string> out;
  for (const control::Note& note : world.plan().notes) out.push_back(note.reason);
  return out;
}

std::vector<std::string> told_of(std::string_view phase, std::string_view status) {
  World world(pytorch(), torchjob().role("Worker", 1).build());
  world.settle();
  world.set_phase("mnist-worker-0", phase);
  const json::value parts = must_parse(status);
  for (const auto& [key, value] : parts.as_object()) {
    json::set(world.pods["mnist-worker-0"], {"status", key}, value);
  }
  world.settle();
  return reasons(world);
}

using Words = std::vector<std::string>;

constexpr std::string_view kUnplaced =
    R"("conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable"}]})";

TEST(AbnormalPod, IsToldByItsContainersBeforeItsPlace) {
  EXPECT_EQ(told_of("Pending", std::string(R"({"containerStatuses":[
    {"name":"pytorch","state":{"waiting":{"reason":"ErrImagePull"}}},
    {"name":"side","state":{"waiting":{"reason":"ContainerCreating"}}}],)") +
                                   std::string(kUnplaced)),
            Words{"ErrImagePull"});
  EXPECT_EQ(told_of("Pending", std::string(R"({"initContainerStatuses":[
    {"name":"fetch","state":{"terminated":{"reason":"Error","exitCode":2}}}],)") +
                                   std::string(kUnplaced)),
            Words{"Error"});
}

TEST(AbnormalPod, WhoseContainersAreWellIsToldByItsPlace) {
  EXPECT_EQ(told_of("Pending", std::string(R"({"containerStatuses":[
    {"name":"pytorch","state":{"waiting":{"reason":"ContainerCreating"}}}],)") +
                                   std::string(kUnplaced)),
            Words{"Unschedulable"});
  EXPECT_EQ(told_of("Pending", R"({"conditions":[{"type":"PodScheduled","status":"True"},
                                                 {"type":"Initialized","status":"False"}]})"),
            Words{});
}

TEST(AbnormalPods, ThatRunAreLookedAtInSmallJobsOnly) {
  for (const std::size_t size : {kClosePods, kClosePods + 1}) {
    World world(pytorch(), torchjob().role("Worker", static_cast<std::int64_t>(size)).build());
    world.settle();
    world.all_phases("Running");
    json::set(
        world.pods["mnist-worker-0"], {"status", "containerStatuses"},
        must_parse(R"([{"name":"pytorch","state":{"waiting":{"reason":"CrashLoopBackOff"}}}])"));
    world.settle();
    EXPECT_EQ(reasons(world).size(), size == kClosePods ? 1u : 0u) << size;
  }
}

TEST(End, MendsACompletionTimeThatIsNoTime) {
  World world(tensorflow(), tfjob().role("Worker", 1).run("ttlSecondsAfterFinished", 5).build());
  world.settle();
  world.set_phase("mnist-worker-0", "Succeeded");
  world.settle();
  json::set(world.root, {"status", "completionTime"}, 7);
  world.settle();
  EXPECT_EQ(json::get_string(world.root, {"status", "completionTime"}), "2026-11-15T12:00:00Z");
}

TEST(End, LeavesServicesOfNoReplicaUnlessAllGo) {
  for (const char* policy : {"Running", "All"}) {
    World world(tensorflow(), tfjob().role("Worker", 1).run("cleanPodPolicy", policy).build());
    world.settle();
    world.set_phase("mnist-worker-0", "Succeeded");
    world.settle();
    world.services["stray"] = testing::replica_service("worker", 9);
    json::set(world.services["stray"], {"metadata", "name"}, "stray");
    world.settle();
    EXPECT_EQ(world.services.contains("stray"), std::string_view(policy) == "Running") << policy;
  }
}

TEST(End, IsSettledInTheSameWrite) {
  World world(tensorflow(), tfjob().role("Worker", 2).build());
  world.settle();
  world.all_phases("Running");
  world.settle();
  world.set_phase("mnist-worker-0", "Succeeded");
  world.apply(world.plan());
  EXPECT_EQ(world.count("Worker", "active"), 0);
  EXPECT_EQ(world.count("Worker", "succeeded"), 2);
}

TEST(Events, WarnOfRestartsOnly) {
  World world(tensorflow(), tfjob().role("Worker", 1, "OnFailure").build());
  world.settle();
  world.set_phase("mnist-worker-0", "Failed", 1);
  world.settle();
  json::set(world.root, {"spec", "runPolicy", "suspend"}, true);
  world.settle();
  json::set(world.root, {"spec", "runPolicy", "suspend"}, false);
  world.settle();
  world.set_phase("mnist-worker-0", "Succeeded");
  world.settle();
  int seen = 0;
  for (const control::Note& note : world.notes) {
    if (!note.reason.starts_with("TFJob")) continue;
    EXPECT_EQ(note.warning, note.reason == "TFJobRestarting") << note.reason;
    ++seen;
  }
  EXPECT_EQ(seen, 4) << "restarting, suspended, resumed, succeeded";
}

TEST(Events, OfAFailedJobAreNormalAsUpstream) {
  World world(tensorflow(), tfjob().role("Worker", 1).build());
  world.settle();
  world.set_phase("mnist-worker-0", "Failed", 1);
  world.settle();
  for (const control::Note& note : world.notes) EXPECT_FALSE(note.warning) << note.reason;
  EXPECT_EQ(world.told("TFJobFailed"), 1);
}

TEST(Events, TellOfATemplatesPolicyOnce) {
  json::value root = tfjob().role("Worker", 2).build();
  json::set(root, {"spec", "tfReplicaSpecs", "Worker", "template", "spec", "restartPolicy"},
            "Always");
  World world(tensorflow(), root);
  world.settle();
  world.set_phase("mnist-worker-0", "Running");
  world.settle();
  EXPECT_EQ(world.told("SetPodTemplateRestartPolicy"), 1);
}

TEST(Events, TellOfAFinalExitOnce) {
  World world(tensorflow(), tfjob().role("Worker", 3).spec("enableDynamicWorker", true).build());
  world.settle();
  world.all_phases("Running");
  world.set_phase("mnist-worker-1", "Failed", 1);
  world.settle();
  world.set_phase("mnist-worker-2", "Pending");
  world.settle();
  EXPECT_EQ(world.told("ExitedWithCode"), 1) << "the pod is still there, and was told of";
}

TEST(Events, AreSinglesUpToTheirBound) {
  std::vector<control::Note> notes;
  note_objects("Made", "Created", "pod", std::vector<std::string>(kSingleNotes, "p"), notes);
  EXPECT_EQ(notes.size(), kSingleNotes);
}

TEST(Suspension, IsToldOnceAlsoWhenSomethingElseIsTakenAway) {
  World world(pytorch(), torchjob().role("Worker", 1).run("suspend", true).build());
  world.settle();
  world.pods["mnist-worker-0"] = testing::replica_pod("worker", 0, "Running");
  world.settle();
  EXPECT_TRUE(world.pods.empty());
  EXPECT_EQ(world.told("PyTorchJobSuspended"), 1);
}

TEST(Condition, ThatIsNoEndLeavesRunningAlone) {
  json::object status;
  const Time now = *parse_time("2026-11-15T12:00:00Z");
  set_condition(status, {kRunning, true, "R", ""}, now);
  set_condition(status, {kSuspended, true, "S", ""}, now);
  EXPECT_TRUE(has_condition(status, kRunning));
  set_condition(status, {kSucceeded, false, "X", ""}, now);
  EXPECT_TRUE(has_condition(status, kRunning));
}

TEST(Reading, PassesOverWhatIsNoContainer) {
  json::value root = tfjob().role("Worker", 2).build();
  json::array& containers =
      root.at_pointer("/spec/tfReplicaSpecs/Worker/template/spec/containers").as_array();
  containers.insert(containers.begin(), 1);
  const Job job = read_job(tensorflow(), root);
  ASSERT_NE(training_container(tensorflow(), *job.roles[0].pod_template), nullptr);
  const json::value pod = render_pod(pod_context(job, 0), job.roles[0], 0, 0);
  EXPECT_EQ(json::get_array(pod, {"spec", "containers"}).size(), 2u);
}

TEST(Reading, TakesARoleOnce) {
  const json::value root = tfjob().role("worker", 1).role("Worker", 2).build();
  EXPECT_EQ(read_job(tensorflow(), root).roles.size(), 1u);
}

TEST(Draft, DeletesNothingTwice) {
  Draft draft;
  json::value service = testing::replica_service("worker", 0);
  draft.delete_service(service);
  json::set(service, {"metadata", "deletionTimestamp"}, "2026-11-15T12:00:00Z");
  draft.delete_service(service);
  EXPECT_EQ(draft.plan.writes.size(), 1u);
}

TEST(History, KeepsOnlyAttemptsThatAreNumbers) {
  const json::value status = must_parse(R"({"replicaHistory":{"Worker":{"succeeded":"1",
    "attempts":{"x":1,"1x":2,"-1":3,"2":0,"3":4,"4":"5"}}}})");
  json::object again;
  write_history(read_history(status), again);
  EXPECT_EQ(json::serialize(again),
            R"({"replicaHistory":{"Worker":{"succeeded":"1","attempts":{"3":4}}}})");
}

TEST(History, OfReplicasThatOnlyStartedTellsNoSuccess) {
  History history;
  history.role("Worker").started.insert(0);
  json::object status;
  write_history(history, status);
  EXPECT_EQ(json::serialize(status), R"({"replicaHistory":{"Worker":{"started":"0"}}})");
}

TEST(History, OfAWholeRestartHasAnAttemptForEachReplica) {
  const json::value root = torchjob().role("Worker", 2).build();
  History history;
  history.replace_all(read_job(pytorch(), root));
  EXPECT_EQ(history.role("Worker").attempts,
            (std::map<std::int64_t, std::int64_t>{{0, 1}, {1, 1}}));
  EXPECT_EQ(history.restarts, 1);
}

TEST(History, ForgetsSuccessesOfReplicasThatAreGone) {
  const json::value root = torchjob().role("Worker", 1).build();
  History history;
  history.role("Worker").succeeded.insert(0);
  history.role("Worker").succeeded.insert(1);
  history.truncate(read_job(pytorch(), root));
  EXPECT_EQ(history.role("Worker").succeeded.text(), "0");
}

TEST(IndexSet, HoldsIndicesOfReplicasOnly) {
  const auto most = static_cast<std::int64_t>(limits::kReplicasPerJob);
  const IndexSet set = IndexSet::parse(fmt::format("{},{}", most - 1, most));
  EXPECT_TRUE(set.contains(most - 1));
  EXPECT_FALSE(set.contains(most));
}

std::size_t count(const control::Plan& plan, client::Verb verb) {
  return static_cast<std::size_t>(std::ranges::count(plan.writes, verb, &client::Write::verb));
}

TEST(Restart, OfALostReplicaSaysHowManyAndMakesTheNextAtOnce) {
  World world(pytorch(), torchjob().role("Worker", 2).build());
  world.settle();
  world.all_phases("Running");
  world.settle();
  world.pods.erase("mnist-worker-1");
  const control::Plan plan = world.plan();
  EXPECT_EQ(count(plan, client::Verb::kCreate), 1u);
  world.apply(plan);
  const json::array& conditions = json::get_array(world.root, {"status", "conditions"});
  EXPECT_EQ(json::get_string(conditions.back(), {"message"}),
            "PyTorchJob team/mnist is restarting because 1 Worker replica(s) failed.");
}

TEST(Restart, DeletesAFailedPodAtOnce) {
  World world(pytorch(), torchjob().role("Worker", 1).build());
  world.settle();
  world.set_phase("mnist-worker-0", "Failed", 1);
  EXPECT_EQ(count(world.plan(), client::Verb::kDelete), 1u);
}

TEST(Restart, DeletesAPodOfAnAttemptThatWasGivenUp) {
  World world(pytorch(), torchjob().role("Worker", 1).build());
  world.settle();
  json::set(world.root, {"status", "replicaHistory", "Worker"}, {{"attempts", {{"0", 1}}}});
  EXPECT_EQ(count(world.plan(), client::Verb::kDelete), 1u);
}

TEST(Restart, OfAGangDeletesAllAtOnceAndOnlyForTheJobThatWasSeen) {
  json::value root = torchjob().role("Worker", 3).build();
  json::set(root, {"metadata", "annotations", kRestartAnnotation}, "gang");
  World world(pytorch(), root);
  world.settle();
  world.set_phase("mnist-worker-0", "Failed", 1);
  const control::Plan failed = world.plan();
  EXPECT_EQ(count(failed, client::Verb::kDelete), 3u);
  EXPECT_TRUE(failed.only_if_unchanged);
  world.set_phase("mnist-worker-0", "Running");
  world.pods.erase("mnist-worker-1");
  const control::Plan lost = world.plan();
  ASSERT_EQ(count(lost, client::Verb::kCreate), 1u);
  const auto made = std::ranges::find(lost.writes, client::Verb::kCreate, &client::Write::verb);
  EXPECT_EQ(api::annotation(made->body, kGangMinAnnotation), "3");
}

TEST(BigJob, WritesABoundedEnvironmentAtATime) {
  World world(tensorflow(), tfjob("mnist-with-a-much-longer-name").role("Worker", 990).build());
  const control::Plan plan = world.plan();
  const std::size_t pods = static_cast<std::size_t>(std::ranges::count_if(
      plan.writes, [](const client::Write& write) { return write.resource.plural == "pods"; }));
  EXPECT_GT(pods, 100u);
  EXPECT_LT(pods, 990u) << "TF_CONFIG lists every replica in every replica";
  EXPECT_EQ(plan.requeue_after, Duration::zero());
}

TEST(BackoffLimit, ThatIsLoweredLaterEndsAJobOnlyWithTheNextFailure) {
  EXPECT_FALSE(backoff_exceeded(2, {.replaced = 3}));
  EXPECT_TRUE(backoff_exceeded(2, {.replaced = 3, .to_replace = 1}));
}

TEST(Ports, OfTheUserAreKept) {
  json::value root = tfjob().role("Worker", 1).build();
  json::value& container =
      root.at_pointer("/spec/tfReplicaSpecs/Worker/template/spec/containers/0");
  container.as_object()["ports"] = must_parse(R"([{"name":"tfjob-port","containerPort":5000}])");
  const auto ports = [&] {
    const Job job = read_job(tensorflow(), root);
    const json::value pod = render_pod(pod_context(job, 0), job.roles[0], 0, 0);
    return json::serialize(pod.at_pointer("/spec/containers/0/ports"));
  };
  EXPECT_EQ(ports(), R"([{"name":"tfjob-port","containerPort":5000}])");
  container.as_object()["ports"] = must_parse(R"([{"name":"web","containerPort":80}])");
  EXPECT_EQ(ports(), R"([{"name":"web","containerPort":80},)"
                     R"({"name":"tfjob-port","containerPort":2222,"protocol":"TCP"}])");
}

TEST(Ports, WithoutANumberAreNone) {
  json::value root = tfjob().role("Worker", 1).build();
  root.at_pointer("/spec/tfReplicaSpecs/Worker/template/spec/containers/0").as_object()["ports"] =
      must_parse(R"([{"name":"web"}])");
  const Job job = read_job(tensorflow(), root);
  const json::value service = render_service(job, job.roles[0], 0);
  EXPECT_EQ(service.at_pointer("/spec/ports/0/port"), 0);
}

TEST(Labels, OfAReplicaAreBothThereAsText) {
  const json::value root = torchjob().role("Worker", 1).build();
  const Job job = read_job(pytorch(), root);
  for (const char* labels : {R"({"training.kubeflow.org/replica-type":"worker"})",
                             R"({"training.kubeflow.org/replica-index":"0"})",
                             R"({"training.kubeflow.org/replica-type":"worker",
                                 "training.kubeflow.org/replica-index":0})",
                             R"({"training.kubeflow.org/replica-type":1,
                                 "training.kubeflow.org/replica-index":"0"})"}) {
    json::value pod = testing::replica_pod("worker", 0, "Running");
    json::set(pod, {"metadata", "labels"}, must_parse(labels));
    EXPECT_EQ(sort_replicas(job, {testing::share(pod)}, {}).surplus_pods.size(), 1u) << labels;
  }
}

std::size_t edge_complaints(JobBuilder builder, std::string_view name) {
  json::value job = builder.build();
  json::set(job, {"metadata", "name"}, json::string(name));
  return validate_job(tensorflow(), job, {}).size();
}

TEST(Names, MayBeAsLongAsTheirReplicasAllow) {
  const auto letters = [](std::size_t n) { return std::string(n, 'a'); };
  EXPECT_EQ(edge_complaints(tfjob().role("Worker", 1), letters(54)), 0u) << "63 with -worker-0";
  EXPECT_EQ(edge_complaints(tfjob().role("Worker", 1), letters(55)), 1u);
  EXPECT_EQ(edge_complaints(tfjob().role("PS", 1), letters(59)), 1u);
  EXPECT_EQ(edge_complaints(tfjob().role("PS", 1).role("Worker", 0), letters(55)), 0u)
      << "a role without replicas has no names";
  EXPECT_EQ(edge_complaints(tfjob().role("PS", 1).role("Worker", 1), letters(60)), 1u)
      << "told once";
  EXPECT_EQ(edge_complaints(tfjob().role("Worker", 1), "A" + letters(62)), 1u) << "told once";
}

TEST(Replicas, AreCountedAsTheyWillBe) {
  json::value job = tfjob().role("Worker", 9'999).role("PS", 1).build();
  job.at_pointer("/spec/tfReplicaSpecs/PS").as_object().erase("replicas");
  EXPECT_TRUE(validate_job(tensorflow(), job, {}).empty()) << "one where nothing is said";
  EXPECT_TRUE(
      validate_job(tensorflow(), tfjob().role("Worker", 10'000).role("PS", 0).build(), {}).empty());
  const auto causes = validate_job(tensorflow(), tfjob().role("Worker", 20'000).build(), {});
  ASSERT_EQ(causes.size(), 1u);
  EXPECT_TRUE(causes[0].message.starts_with("Invalid value: 10001:")) << causes[0].message;
}

TEST(Verdict, OfARoleWithoutReplicasIsNone) {
  EXPECT_EQ(verdict(jax(), JobBuilder(jax()).role("Worker", 0).build(), {}), Verdict{});
  EXPECT_EQ(
      verdict(pytorch(), torchjob().role("Worker", 2).spec("elasticPolicy", json::object{}).build(),
              {{.role = "Worker", .running = 2}}),
      (Verdict{.running = true}));
}

TEST(OldVersions, HaveTheirOwnSchemaViewAndWarning) {
  for (const api::Kind& kind : make().kinds) {
    const std::string kept = kind.resource.kind == "MPIJob" ? "v2beta1" : "v1";
    const bool old = kind.resource.version != kept;
    EXPECT_EQ(kind.to_storage != nullptr, old) << kind.schema;
    EXPECT_EQ(kind.from_storage != nullptr, old) << kind.schema;
    EXPECT_NE(kind.schema.find("." + kind.resource.version + "."), std::string::npos);
    // Two operators serve MPIJob, each its own version: neither is the old one.
    if (!old || kind.resource.version == "v1") {
      EXPECT_EQ(kind.deprecation, "");
      continue;
    }
    EXPECT_EQ(kind.deprecation,
              fmt::format("kubeflow.org/{} {} is deprecated; use kubeflow.org/{} {}",
                          kind.resource.version, kind.resource.kind, kept, kind.resource.kind));
  }
}

TEST(PaddleEnvironment, KnowsThePortOfWhereItMeets) {
  json::value root = JobBuilder(paddle()).role("Master", 1).role("Worker", 1).build();
  root.at_pointer("/spec/paddleReplicaSpecs/Master/template/spec/containers/0")
      .as_object()["ports"] = must_parse(R"([{"name":"master","containerPort":7000}])");
  EXPECT_EQ(environment(paddle(), root, "Worker", 0)[3], "PADDLE_MASTER=mnist-master-0:7000");
  const Job job = read_job(paddle(), root);
  EXPECT_TRUE(paddle().is_master(job, *job.role("Master"), 0));
  EXPECT_FALSE(paddle().is_master(job, *job.role("Worker"), 0));
}

std::string variable(const JobKind& kind, const json::value& root, std::string_view role,
                     std::string_view name) {
  for (const std::string& each : environment(kind, root, role, 0)) {
    if (each.starts_with(std::string(name) + "=")) return each.substr(name.size() + 1);
  }
  return "absent";
}

TEST(TorchEnvironment, CountsTheProcessesItCanKnow) {
  const auto world_size = [](JobBuilder builder) {
    return variable(pytorch(), builder.role("Master", 1).role("Worker", 1).build(), "Worker",
                    "WORLD_SIZE");
  };
  EXPECT_EQ(world_size(torchjob().spec("nprocPerNode", "4")), "8");
  EXPECT_EQ(world_size(torchjob().spec("nprocPerNode", "4x")), "2");
  EXPECT_EQ(world_size(torchjob().spec("elasticPolicy", {{"nProcPerNode", 4}})), "2");
}

TEST(TorchEnvironment, MeetsAtThePortOfTheWorkers) {
  json::value root = torchjob().role("Worker", 2).spec("elasticPolicy", json::object{}).build();
  root.at_pointer("/spec/pytorchReplicaSpecs/Worker/template/spec/containers/0")
      .as_object()["ports"] = must_parse(R"([{"name":"pytorchjob-port","containerPort":7000}])");
  EXPECT_EQ(variable(pytorch(), root, "Worker", "PET_RDZV_ENDPOINT"), "mnist-worker-0:7000");
}

TEST(XGBoostEnvironment, NamesWorkersWhereThereAreAny) {
  const auto workers = [](JobBuilder builder, const char* role) {
    return variable(xgboost(), builder.build(), role, "WORKER_ADDRS");
  };
  const auto job = [] { return JobBuilder(xgboost()); };
  EXPECT_EQ(workers(job().role("Master", 1).role("Worker", 1), "Master"), "mnist-worker-0");
  EXPECT_EQ(workers(job().role("Master", 1).role("Worker", 0), "Master"), "absent");
  EXPECT_EQ(workers(job().role("Master", 2), "Master"), "absent");
  EXPECT_EQ(variable(xgboost(), job().role("Worker", 1).build(), "Worker", "RANK"), "0");
}

}  // namespace
}  // namespace skiff::training
