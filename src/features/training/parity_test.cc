// What clients and scripts of the Training Operator rely on, as tables over all kinds: defaults,
// names, labels, variables, conditions and events.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

#include "base/strings.h"
#include "features/training/engine/pod_template.h"
#include "features/training/engine/services.h"
#include "features/training/kinds/jax/jax.h"
#include "features/training/kinds/kinds.h"
#include "features/training/kinds/paddle/paddle.h"
#include "features/training/kinds/xgboost/xgboost.h"
#include "features/training/testing/world.h"

namespace skiff::training {
namespace {

using std::chrono::seconds;
using testing::JobBuilder;
using testing::must_parse;
using testing::tfjob;
using testing::torchjob;
using testing::World;
using Strings = std::vector<std::string>;

struct Contract {
  const JobKind* kind = nullptr;
  std::string_view plural = {};
  std::string_view singular = {};
  std::string_view map = {};
  std::vector<std::string_view> roles = {};  // sorted
  std::string_view container = {};
  std::string_view port_name = {};  // empty: none is added
  std::int64_t port = 0;
  RestartPolicy restart = RestartPolicy::kNever;  // of workers
  std::string_view controller = {};
  bool scales = false;

  friend void PrintTo(const Contract& c, std::ostream* out) { *out << c.plural; }
};

std::vector<Contract> contracts() {
  return {{.kind = &tensorflow(),
           .plural = "tfjobs",
           .singular = "tfjob",
           .map = "tfReplicaSpecs",
           .roles = {"Chief", "Evaluator", "Master", "PS", "Worker"},
           .container = "tensorflow",
           .port_name = "tfjob-port",
           .port = 2222,
           .controller = "tfjob-controller"},
          {.kind = &pytorch(),
           .plural = "pytorchjobs",
           .singular = "pytorchjob",
           .map = "pytorchReplicaSpecs",
           .roles = {"Master", "Worker"},
           .container = "pytorch",
           .port_name = "pytorchjob-port",
           .port = 23456,
           .restart = RestartPolicy::kOnFailure,
           .controller = "pytorchjob-controller",
           .scales = true},
          {.kind = &xgboost(),
           .plural = "xgboostjobs",
           .singular = "xgboostjob",
           .map = "xgbReplicaSpecs",
           .roles = {"Master", "Worker"},
           .container = "xgboost",
           .port_name = "xgboostjob-port",
           .port = 9999,
           .controller = "xgboostjob-controller"},
          {.kind = &paddle(),
           .plural = "paddlejobs",
           .singular = "paddlejob",
           .map = "paddleReplicaSpecs",
           .roles = {"Master", "Worker"},
           .container = "paddle",
           .port_name = "master",
           .port = 36543,
           .restart = RestartPolicy::kOnFailure,
           .controller = "paddlejob-controller",
           .scales = true},
          {.kind = &jax(),
           .plural = "jaxjobs",
           .singular = "jaxjob",
           .map = "jaxReplicaSpecs",
           .roles = {"Worker"},
           .container = "jax",
           .port_name = "jaxjob-port",
           .port = 6666,
           .controller = "jaxjob-controller",
           .scales = true},
          {.kind = &mpi(),
           .plural = "mpijobs",
           .singular = "mpijob",
           .map = "mpiReplicaSpecs",
           .roles = {"Launcher", "Worker"},
           .container = "mpi",
           .controller = "mpijob-controller"}};
}

class Parity : public ::testing::TestWithParam<Contract> {
 protected:
  const JobKind& kind() const { return *GetParam().kind; }
  // A job whose workers say as little as they can.
  json::value bare() const {
    json::value root = JobBuilder(kind()).role("Worker", 1).build();
    root.at("spec").at(GetParam().map).at("Worker").as_object().erase("replicas");
    return root;
  }
  json::value pod(const json::value& root) const {
    const Job job = read_job(kind(), root);
    return render_pod(pod_context(job, 0), *job.role("Worker"), 0, 0);
  }
};

INSTANTIATE_TEST_SUITE_P(All, Parity, ::testing::ValuesIn(contracts()),
                         [](const auto& each) { return std::string(each.param.singular); });

TEST_P(Parity, IsServedUnderItsName) {
  EXPECT_EQ(kind().resource.group, "kubeflow.org");
  EXPECT_EQ(kind().resource.plural, GetParam().plural);
  EXPECT_EQ(kind().singular, GetParam().singular);
  EXPECT_EQ(lower(kind().resource.kind), GetParam().singular);
  std::vector<std::string_view> roles = kind().roles;
  std::ranges::sort(roles);
  EXPECT_EQ(roles, GetParam().roles);
}

TEST_P(Parity, FillsInWhatAJobLeavesOut) {
  const json::value root = bare();
  const Job job = read_job(kind(), root);
  ASSERT_EQ(job.roles.size(), 1u);
  EXPECT_EQ(job.roles[0].replicas, 1);
  EXPECT_EQ(job.roles[0].restart, GetParam().restart);
  EXPECT_EQ(job.run.suspend, false);
  EXPECT_FALSE(job.run.ttl || job.run.active_deadline || job.run.min_available);
  EXPECT_EQ(root, bare()) << "and writes none of it into the object";
}

TEST_P(Parity, PutsTheFrameworksPortIntoItsContainer) {
  const json::value made = pod(bare());
  const json::array& ports = json::get_array(made.at_pointer("/spec/containers/0"), {"ports"});
  if (GetParam().port_name.empty()) {
    EXPECT_TRUE(ports.empty());
    return;
  }
  ASSERT_EQ(ports.size(), 1u);
  EXPECT_EQ(json::get_string(ports[0], {"name"}), GetParam().port_name);
  EXPECT_EQ(json::get_int(ports[0], {"containerPort"}), GetParam().port);
}

TEST_P(Parity, PutsItsVariablesBehindTheUsers) {
  json::value root = JobBuilder(kind()).role("Worker", 2).build();
  json::set(
      root.at("spec").at(GetParam().map).at("Worker").at_pointer("/template/spec/containers/0"),
      {"env"}, must_parse(R"([{"name":"MINE","value":"1"}])"));
  const json::value made = pod(root);
  const json::array& env = json::get_array(made.at_pointer("/spec/containers/0"), {"env"});
  ASSERT_GT(env.size(), 1u);
  EXPECT_EQ(json::get_string(env[0], {"name"}), "MINE");
}

TEST_P(Parity, LabelsPodsForWhoSelectsThem) {
  const json::value made = pod(bare());
  EXPECT_EQ(api::label(made, "training.kubeflow.org/operator-name"), GetParam().controller);
  EXPECT_EQ(api::label(made, "training.kubeflow.org/job-name"), "mnist");
  EXPECT_EQ(api::label(made, "training.kubeflow.org/replica-type"), "worker");
  EXPECT_EQ(api::label(made, "training.kubeflow.org/replica-index"), "0");
  EXPECT_EQ(api::name(made), "mnist-worker-0");
}

TEST_P(Parity, OwnsItsPodsAsTheirController) {
  const json::value made = pod(bare());
  const json::array& owners = json::get_array(made, {"metadata", "ownerReferences"});
  ASSERT_EQ(owners.size(), 1u);
  EXPECT_EQ(json::get_string(owners[0], {"apiVersion"}), kind().resource.api_version());
  EXPECT_EQ(json::get_string(owners[0], {"kind"}), kind().resource.kind);
  EXPECT_EQ(json::get_string(owners[0], {"uid"}), "uid-mnist");
  EXPECT_EQ(json::get_bool(owners[0], {"controller"}), true);
  EXPECT_EQ(json::get_bool(owners[0], {"blockOwnerDeletion"}), true);
}

TEST_P(Parity, HasAServiceForEachPodThatTrains) {
  World world(kind(), JobBuilder(kind()).role("Worker", 2).build());
  world.settle();
  if (!kind().replica_services) {
    EXPECT_EQ(world.services.size(), 1u) << "one for all";
    EXPECT_TRUE(world.services.contains("mnist"));
    return;
  }
  ASSERT_EQ(world.services.size(), 2u);
  const json::value& service = world.services["mnist-worker-1"];
  EXPECT_EQ(json::get_string(service, {"spec", "clusterIP"}), "None");
  const json::object& selector = json::get_object(service, {"spec", "selector"});
  EXPECT_EQ(selector.size(), 4u);
  EXPECT_FALSE(selector.contains("training.kubeflow.org/job-role"));
  for (const auto& [key, value] : selector) {
    EXPECT_EQ(api::label(world.pods["mnist-worker-1"], key), json::view(value.as_string())) << key;
  }
  EXPECT_EQ(json::get_int(service.at_pointer("/spec/ports/0"), {"port"}), GetParam().port);
}

TEST_P(Parity, TellsASelectorWhereItScales) {
  World world(kind(), JobBuilder(kind()).role("Worker", 1).build());
  world.settle();
  const std::string selector(
      json::get_string(world.root, {"status", "replicaStatuses", "Worker", "selector"}));
  if (!GetParam().scales) {
    EXPECT_EQ(selector, "");
    return;
  }
  EXPECT_EQ(selector, fmt::format("training.kubeflow.org/job-name=mnist,"
                                  "training.kubeflow.org/operator-name={},"
                                  "training.kubeflow.org/replica-type=worker",
                                  GetParam().controller));
}

TEST_P(Parity, ScalesByTheSubresourceWhereUpstreamDoes) {
  for (const Framework& framework : frameworks()) {
    if (framework.job != &kind()) continue;
    const std::optional<api::ScalePaths>& scale = framework.versions.front().api.scale;
    ASSERT_EQ(scale.has_value(), GetParam().scales);
    if (!scale) continue;
    EXPECT_EQ(scale->spec, fmt::format(".spec.{}.Worker.replicas", GetParam().map));
    EXPECT_EQ(scale->status, ".status.replicaStatuses.Worker.active");
    EXPECT_EQ(scale->selector, ".status.replicaStatuses.Worker.selector");
  }
}

TEST_P(Parity, WarnsOfARestartPolicyInTheTemplate) {
  json::value root = JobBuilder(kind()).role("Worker", 1, "OnFailure").build();
  json::set(root.at("spec").at(GetParam().map).at("Worker"), {"template", "spec", "restartPolicy"},
            "Never");
  World world(kind(), root);
  world.settle();
  EXPECT_EQ(world.told("SetPodTemplateRestartPolicy"), 1);
  EXPECT_EQ(json::get_string(world.pods["mnist-worker-0"], {"spec", "restartPolicy"}), "OnFailure");
}

// Which pods carry job-role=master, by which SDKs find the log of a job.
struct Masters {
  const char* sentence;
  json::value job;
  const JobKind* kind;
  std::string expected;
};

class MasterLabel : public ::testing::TestWithParam<Masters> {};

TEST_P(MasterLabel, Marks) {
  World world(*GetParam().kind, GetParam().job);
  world.settle();
  Strings marked;
  for (const auto& [name, pod] : world.pods) {
    if (api::label(pod, "training.kubeflow.org/job-role") == "master") marked.push_back(name);
  }
  EXPECT_EQ(join(marked, " "), GetParam().expected) << GetParam().sentence;
}

INSTANTIATE_TEST_SUITE_P(
    All, MasterLabel,
    ::testing::Values(
        Masters{"every chief", tfjob().role("Chief", 1).role("Worker", 2).build(), &tensorflow(),
                "mnist-chief-0"},
        Masters{"every master", tfjob().role("Master", 1).role("PS", 1).build(), &tensorflow(),
                "mnist-master-0"},
        Masters{"else the first worker", tfjob().role("PS", 1).role("Worker", 2).build(),
                &tensorflow(), "mnist-worker-0"},
        Masters{"nobody among servers", tfjob().role("PS", 2).build(), &tensorflow(), ""},
        Masters{"the master of PyTorch", torchjob().role("Master", 1).role("Worker", 2).build(),
                &pytorch(), "mnist-master-0"},
        Masters{"the first of PyTorch's workers", torchjob().role("Worker", 2).build(), &pytorch(),
                "mnist-worker-0"},
        Masters{"the master of XGBoost",
                JobBuilder(xgboost()).role("Master", 1).role("Worker", 1).build(), &xgboost(),
                "mnist-master-0"},
        Masters{"the server of Paddle",
                JobBuilder(paddle()).role("Master", 1).role("Worker", 1).build(), &paddle(),
                "mnist-master-0"},
        Masters{"none of Paddle's equals", JobBuilder(paddle()).role("Worker", 2).build(),
                &paddle(), ""},
        Masters{"the first of JAX", JobBuilder(jax()).role("Worker", 2).build(), &jax(),
                "mnist-worker-0"}));

// A condition as clients read it.
std::string condition(const World& world, std::string_view type) {
  const json::object* found = api::condition(world.root, type);
  if (found == nullptr) return "absent";
  const json::value all(*found);
  return fmt::format("{} {}: {}", json::get_string(all, {"status"}),
                     json::get_string(all, {"reason"}), json::get_string(all, {"message"}));
}

TEST_P(Parity, SaysWhatHappensInUpstreamsWords) {
  const std::string& word = kind().resource.kind;
  JobBuilder builder(kind());
  if (&kind() == &xgboost()) builder.role("Master", 1, "OnFailure");
  if (&kind() == &mpi()) builder.role("Launcher", 1, "OnFailure");
  World world(kind(), builder.role("Worker", 1, "OnFailure").build());
  world.settle();
  EXPECT_EQ(condition(world, "Created"),
            fmt::format("True {0}Created: {0} mnist is created.", word));
  world.all_phases("Running");
  world.settle();
  EXPECT_EQ(condition(world, "Running"),
            fmt::format("True {0}Running: {0} team/mnist is running.", word));
  json::set(world.root, {"spec", "runPolicy", "suspend"}, true);
  world.settle();
  EXPECT_EQ(condition(world, "Suspended"),
            fmt::format("True {0}Suspended: {0} mnist is suspended.", word));
  EXPECT_EQ(condition(world, "Running"),
            fmt::format("False {0}Suspended: {0} mnist is suspended.", word));
  json::set(world.root, {"spec", "runPolicy", "suspend"}, false);
  world.settle();
  EXPECT_EQ(condition(world, "Suspended"),
            fmt::format("False {0}Resumed: {0} mnist is resumed.", word));
  world.set_phase("mnist-worker-0", "Failed", 1);
  world.apply(world.plan());
  EXPECT_EQ(condition(world, "Restarting"),
            fmt::format("True {0}Restarting: {0} team/mnist is restarting because 1 Worker "
                        "replica(s) failed.",
                        word));
  world.settle();
  world.all_phases("Succeeded");
  world.settle();
  EXPECT_EQ(condition(world, "Succeeded"),
            fmt::format("True {0}Succeeded: {0} team/mnist successfully completed.", word));
}

struct ParityEnd {
  const char* sentence;
  const char* message;
  void (*bring_about)(World& world);
};

class FailedJob : public ::testing::TestWithParam<ParityEnd> {};

json::value limited_job() {
  return torchjob()
      .role("Worker", 3, "ExitCode")
      .run("backoffLimit", 0)
      .run("activeDeadlineSeconds", 60)
      .run("cleanPodPolicy", "Running")
      .run("ttlSecondsAfterFinished", 5)
      .build();
}

// However a job comes to fail, its end is written down, cleaned up and forgotten as it asked.
TEST_P(FailedJob, IsWrittenDownCleanedUpAndDeletedInTime) {
  World world(pytorch(), limited_job());
  world.settle();
  world.all_phases("Running");
  world.settle();
  GetParam().bring_about(world);
  world.settle();
  EXPECT_EQ(condition(world, "Failed"),
            fmt::format("True PyTorchJobFailed: PyTorchJob team/mnist {}", GetParam().message))
      << GetParam().sentence;
  EXPECT_EQ(json::get_string(world.root, {"status", "completionTime"}), rfc3339(world.now));
  EXPECT_TRUE(std::ranges::none_of(world.pods, [](const auto& each) {
    return json::get_string(each.second, {"status", "phase"}) == "Running";
  })) << "cleanPodPolicy holds for this end, too";
  EXPECT_EQ(world.told("PyTorchJobFailed"), 1);
  EXPECT_EQ(world.plan().requeue_after, seconds(5));
  world.now += seconds(5);
  world.settle();
  EXPECT_TRUE(world.deleted);
}

INSTANTIATE_TEST_SUITE_P(
    All, FailedJob,
    ::testing::Values(
        ParityEnd{"by a replica", "has failed because 1 Worker replica(s) failed.",
                  [](World& world) { world.set_phase("mnist-worker-1", "Failed", 2); }},
        ParityEnd{"by its limit", "has failed because it has reached the specified backoff limit.",
                  [](World& world) { world.set_phase("mnist-worker-1", "Failed", 137); }},
        ParityEnd{"by restarts in place",
                  "has failed because it has reached the specified backoff limit.",
                  [](World& world) {
                    json::set(world.pods["mnist-worker-2"], {"status", "initContainerStatuses"},
                              must_parse(R"([{"name":"fetch","restartCount":1}])"));
                  }},
        ParityEnd{"by its deadline",
                  "has failed because it was active longer than specified deadline.",
                  [](World& world) { world.now += seconds(60); }}));

struct InPlace {
  const char* sentence;
  const char* restart;
  const char* phase;
  std::int64_t limit;
  std::int64_t restarts;
  bool fails;
};

class RestartsInPlace : public ::testing::TestWithParam<InPlace> {};

TEST_P(RestartsInPlace, CountAgainstTheLimit) {
  const InPlace& c = GetParam();
  World world(tensorflow(),
              tfjob().role("Worker", 2, c.restart).run("backoffLimit", c.limit).build());
  world.settle();
  world.all_phases("Running");
  world.settle();
  world.set_phase("mnist-worker-1", c.phase);
  json::set(world.pods["mnist-worker-1"], {"status", "containerStatuses"},
            json::array{json::object{{"name", "tensorflow"}, {"restartCount", c.restarts}}});
  world.settle();
  EXPECT_EQ(api::condition_true(world.root, "Failed"), c.fails) << c.sentence;
}

INSTANTIATE_TEST_SUITE_P(
    All, RestartsInPlace,
    ::testing::Values(
        InPlace{"none is allowed and there is none", "OnFailure", "Running", 0, 0, false},
        InPlace{"none is allowed", "OnFailure", "Running", 0, 1, true},
        InPlace{"one fewer than allowed", "OnFailure", "Running", 3, 2, false},
        InPlace{"as many as allowed", "OnFailure", "Running", 3, 3, true},
        InPlace{"under Always", "Always", "Running", 2, 2, true},
        InPlace{"under ExitCode", "ExitCode", "Running", 2, 2, true},
        InPlace{"not where nothing may restart", "Never", "Running", 2, 5, false},
        InPlace{"not of a pod that does not run", "OnFailure", "Pending", 2, 5, false}));

struct ExitCase {
  const char* sentence;
  std::int64_t code;  // negative: none is known
  bool replaced;
};

class ExitCodes : public ::testing::TestWithParam<ExitCase> {};

// For each kind: ExitCode means the same everywhere.
TEST_P(ExitCodes, DecideUnderExitCode) {
  for (const JobKind* kind : job_kinds()) {
    if (kind == &mpi()) continue;  // v2beta1 knows no ExitCode
    JobBuilder builder(*kind);
    if (kind == &xgboost()) builder.role("Master", 1, "ExitCode");
    World world(*kind, builder.role("Worker", 2, "ExitCode").build());
    world.settle();
    world.all_phases("Running");
    world.settle();
    world.set_phase("mnist-worker-1", "Failed", GetParam().code);
    if (GetParam().code < 0) {
      world.pods["mnist-worker-1"].at("status").as_object().erase("containerStatuses");
    }
    world.settle();
    EXPECT_EQ(world.restarts(), GetParam().replaced ? 1 : 0)
        << kind->resource.kind << ": " << GetParam().sentence;
    EXPECT_EQ(api::condition_true(world.root, "Failed"), !GetParam().replaced)
        << kind->resource.kind << ": " << GetParam().sentence;
  }
}

INSTANTIATE_TEST_SUITE_P(All, ExitCodes,
                         ::testing::Values(ExitCase{"the program gave up", 1, false},
                                           ExitCase{"its highest code", 127, false},
                                           ExitCase{"the lowest of signals", 128, true},
                                           ExitCase{"interrupted", 130, true},
                                           ExitCase{"killed, or out of memory", 137, true},
                                           ExitCase{"ended by its node", 143, true},
                                           ExitCase{"the highest", 255, true},
                                           ExitCase{"no container left a code", -1, true}));

TEST(Suspension, TakesWhatIsDoneAwayToo) {
  World world(pytorch(), torchjob().role("Worker", 2).run("cleanPodPolicy", "None").build());
  world.settle();
  world.set_phase("mnist-worker-0", "Running");
  world.set_phase("mnist-worker-1", "Succeeded");
  world.settle();
  json::set(world.root, {"spec", "runPolicy", "suspend"}, true);
  world.settle();
  EXPECT_TRUE(world.pods.empty()) << "whatever cleanPodPolicy says";
  EXPECT_TRUE(world.services.empty());
  json::set(world.root, {"spec", "runPolicy", "suspend"}, false);
  world.settle();
  EXPECT_EQ(world.pods.size(), 2u) << "all of it begins anew";
}

TEST(Suspension, HoldsNeitherDeadlineNorTimeToLive) {
  World world(pytorch(), torchjob()
                             .role("Worker", 1)
                             .run("suspend", true)
                             .run("activeDeadlineSeconds", 1)
                             .run("ttlSecondsAfterFinished", 0)
                             .build());
  world.settle();
  world.now += seconds(3600);
  EXPECT_EQ(world.settle(), 0);
  EXPECT_FALSE(world.plan().requeue_after);
  EXPECT_FALSE(world.deleted);
}

TEST(Suspension, OfAJobThatHasEndedChangesNothing) {
  World world(tensorflow(), tfjob().role("Worker", 1).build());
  world.settle();
  world.set_phase("mnist-worker-0", "Succeeded");
  world.settle();
  json::set(world.root, {"spec", "runPolicy", "suspend"}, true);
  world.settle();
  EXPECT_EQ(world.conditions(), "Created Succeeded");
  EXPECT_EQ(world.pod_names(), "mnist-worker-0");
}

TEST(Ttl, OfNoSecondsDeletesAtOnceAndOnlyAfterTheEndIsWrittenDown) {
  World world(tensorflow(), tfjob().role("Worker", 1).run("ttlSecondsAfterFinished", 0).build());
  world.settle();
  world.set_phase("mnist-worker-0", "Succeeded");
  const control::Plan end = world.plan();
  EXPECT_FALSE(end.delete_root);
  EXPECT_TRUE(end.status.has_value());
  world.apply(end);
  EXPECT_TRUE(world.plan().delete_root);
}

TEST(Status, HasAMapOfReplicasFromTheFirstWrite) {
  for (const JobKind* kind : job_kinds()) {
    World world(*kind, JobBuilder(*kind).role("Worker", 1).run("suspend", true).build());
    const control::Plan first = world.plan();
    ASSERT_TRUE(first.status) << kind->resource.kind;
    const json::value* map = json::find(*first.status, {"replicaStatuses"});
    ASSERT_NE(map, nullptr) << kind->resource.kind;
    EXPECT_TRUE(map->is_object()) << kind->resource.kind;
  }
}

TEST(Status, CountsNoPodThatWaits) {
  World world(pytorch(), torchjob().role("Worker", 4, "Never").build());
  world.settle();
  world.set_phase("mnist-worker-1", "Running");
  world.set_phase("mnist-worker-2", "Succeeded");
  world.settle();
  EXPECT_EQ(world.count("Worker", "active"), 1);
  EXPECT_EQ(world.count("Worker", "succeeded"), 1);
  EXPECT_EQ(world.count("Worker", "failed"), 0);
}

TEST(Conditions, StandInTheOrderInWhichTheyCame) {
  World world(pytorch(), torchjob().role("Worker", 2).build());
  world.settle();
  const auto last = [&] {
    return std::string(
        json::get_string(json::get_array(world.root, {"status", "conditions"}).back(), {"type"}));
  };
  EXPECT_EQ(last(), "Created") << "what kubectl shows as the state";
  world.all_phases("Running");
  world.settle();
  EXPECT_EQ(last(), "Running");
  world.set_phase("mnist-worker-0", "Failed", 1);
  world.apply(world.plan());
  EXPECT_EQ(last(), "Restarting");
  world.settle();
  world.all_phases("Running");
  world.settle();
  EXPECT_EQ(last(), "Running");
  json::set(world.root, {"spec", "runPolicy", "suspend"}, true);
  world.settle();
  EXPECT_EQ(last(), "Suspended");
}

TEST(Conditions, KeepTheTimeOfTheirLastChange) {
  World world(pytorch(), torchjob().role("Worker", 1).build());
  world.settle();
  world.all_phases("Running");
  world.settle();
  world.now += seconds(10);
  world.all_phases("Succeeded");
  world.settle();
  const json::value running(*api::condition(world.root, "Running"));
  const json::value done(*api::condition(world.root, "Succeeded"));
  EXPECT_EQ(json::get_string(running, {"lastTransitionTime"}), "2026-11-15T12:00:00Z");
  EXPECT_EQ(json::get_string(done, {"lastTransitionTime"}), "2026-11-15T12:00:10Z");
  EXPECT_EQ(json::get_string(done, {"lastUpdateTime"}), "2026-11-15T12:00:10Z");
}

}  // namespace
}  // namespace skiff::training
