// Every policy of a run with every kind: what a user may expect whatever the framework.
#include <gtest/gtest.h>

#include <algorithm>

#include "features/training/engine/validation.h"
#include "features/training/kinds/jax/jax.h"
#include "features/training/kinds/kinds.h"
#include "features/training/kinds/paddle/paddle.h"
#include "features/training/kinds/xgboost/xgboost.h"
#include "features/training/testing/random_job.h"
#include "features/training/testing/world.h"

namespace skiff::training {
namespace {

using std::chrono::seconds;
using testing::JobBuilder;
using testing::World;

// The smallest job of a kind that has a replica that leads and two that follow.
struct Form {
  const JobKind* kind = nullptr;
  std::string lead_role = {};  // empty: the first worker leads
  std::string lead = {};       // its pod

  friend void PrintTo(const Form& form, std::ostream* out) { *out << form.kind->resource.kind; }
};

const std::vector<Form>& forms() {
  static const std::vector<Form> kForms = {
      {.kind = &tensorflow(), .lead_role = "Chief", .lead = "mnist-chief-0"},
      {.kind = &pytorch(), .lead_role = "Master", .lead = "mnist-master-0"},
      {.kind = &xgboost(), .lead_role = "Master", .lead = "mnist-master-0"},
      {.kind = &jax(), .lead = "mnist-worker-0"},
      {.kind = &paddle(), .lead_role = "Master", .lead = "mnist-master-0"},
      {.kind = &mpi(), .lead_role = "Launcher", .lead = "mnist-launcher"},
  };
  return kForms;
}

class EveryKind : public ::testing::TestWithParam<Form> {
 protected:
  const JobKind& kind() const { return *GetParam().kind; }
  const std::string& lead() const { return GetParam().lead; }
  std::string lead_role() const {
    return GetParam().lead_role.empty() ? "Worker" : GetParam().lead_role;
  }
  JobBuilder job(std::string_view restart = "Never") const {
    JobBuilder out(kind());
    if (!GetParam().lead_role.empty()) out.role(GetParam().lead_role, 1, restart);
    out.role("Worker", 2, restart);
    return out;
  }
  World start(const JobBuilder& builder) const {
    World world(kind(), builder.build());
    EXPECT_TRUE(validate_job(kind(), world.root, {}).empty());
    world.settle();
    return world;
  }
  World running(const JobBuilder& builder) const {
    World world = start(builder);
    world.all_phases("Running");
    world.settle();
    return world;
  }
  // Everybody who must be done for the job to have succeeded.
  void succeed(World& world) const {
    if (GetParam().lead_role.empty() || &kind() == &paddle()) {
      world.all_phases("Succeeded");
    } else {
      world.set_phase(lead(), "Succeeded");
    }
    world.settle();
  }
  std::string reason(const World& world, std::string_view type) const {
    const json::object* condition = api::condition(world.root, type);
    return condition == nullptr ? "" : std::string(json::view(condition->at("reason").as_string()));
  }
};

INSTANTIATE_TEST_SUITE_P(All, EveryKind, ::testing::ValuesIn(forms()),
                         [](const auto& each) { return each.param.kind->resource.kind; });

TEST_P(EveryKind, IsAmongThoseThatAreServed) {
  EXPECT_NE(std::ranges::find(job_kinds(), &kind()), job_kinds().end());
  EXPECT_EQ(job_kinds().size(), forms().size()) << "a new kind belongs into this table";
}

TEST_P(EveryKind, RunsAndSucceeds) {
  World world = start(job());
  EXPECT_EQ(world.conditions(), "Created");
  EXPECT_EQ(world.pods.size(), GetParam().lead_role.empty() ? 2u : 3u);
  world.all_phases("Running");
  world.settle();
  EXPECT_EQ(world.conditions(), "Created Running");
  EXPECT_EQ(json::get_string(world.root, {"status", "startTime"}), "2026-11-15T12:00:00Z");
  EXPECT_EQ(json::find(world.root, {"status", "completionTime"}), nullptr);
  world.now += seconds(90);
  succeed(world);
  EXPECT_EQ(world.conditions(), "Created !Running Succeeded");
  EXPECT_EQ(reason(world, "Succeeded"), kind().resource.kind + "Succeeded");
  EXPECT_EQ(json::get_string(world.root, {"status", "completionTime"}), "2026-11-15T12:01:30Z");
  EXPECT_EQ(world.settle(), 0) << "and then there is nothing left to do";
}

TEST_P(EveryKind, FailsForGoodWhereALeaderMayNotComeBack) {
  World world = running(job("Never"));
  world.set_phase(lead(), "Failed", 1);
  world.settle();
  EXPECT_EQ(world.conditions(), "Created !Running Failed");
  EXPECT_EQ(reason(world, "Failed"), kind().resource.kind + "Failed");
  EXPECT_EQ(world.count(lead_role(), "failed"), 1);
  EXPECT_EQ(world.settle(), 0);
}

TEST_P(EveryKind, BringsBackALeaderThatMayComeBack) {
  World world = running(job("OnFailure"));
  const std::string before(api::uid(world.pods[lead()]));
  world.set_phase(lead(), "Failed", 1);
  world.settle();
  ASSERT_TRUE(world.pods.contains(lead()));
  EXPECT_NE(api::uid(world.pods[lead()]), before);
  if (!GetParam().lead_role.empty()) EXPECT_EQ(world.conditions(), "Created Restarting");
  EXPECT_EQ(world.restarts(), 1);
  world.all_phases("Running");
  world.settle();
  EXPECT_EQ(world.conditions(), "Created Running");
  succeed(world);
  EXPECT_EQ(world.conditions(), "Created !Running Succeeded");
}

TEST_P(EveryKind, GivesUpWhenItsLimitIsReached) {
  World world = running(job("OnFailure").run("backoffLimit", 1));
  world.set_phase(lead(), "Failed", 1);
  world.settle();
  EXPECT_EQ(reason(world, "Failed"), "") << "one restart is allowed";
  world.set_phase(lead(), "Failed", 1);
  world.settle();
  EXPECT_TRUE(api::condition_true(world.root, "Failed")) << world.conditions();
  EXPECT_LE(world.restarts(), 1);
  EXPECT_EQ(world.settle(), 0);
}

TEST_P(EveryKind, EndsAtItsDeadlineAndNotBefore) {
  World world = running(job().run("activeDeadlineSeconds", 60).run("cleanPodPolicy", "Running"));
  EXPECT_EQ(world.plan().requeue_after, seconds(60));
  world.now += seconds(59);
  EXPECT_EQ(world.settle(), 0);
  world.now += seconds(1);
  world.settle();
  EXPECT_TRUE(api::condition_true(world.root, "Failed")) << world.conditions();
  for (const auto& [name, pod] : world.pods) {
    EXPECT_NE(json::get_string(pod, {"status", "phase"}), "Running") << name << " would go on";
  }
}

TEST_P(EveryKind, IsDeletedWhenItsTimeAfterTheEndIsOver) {
  World world = running(job().run("ttlSecondsAfterFinished", 30));
  EXPECT_FALSE(world.deleted);
  succeed(world);
  EXPECT_EQ(world.plan().requeue_after, seconds(30));
  world.now += seconds(29);
  world.settle();
  EXPECT_FALSE(world.deleted);
  world.now += seconds(1);
  world.settle();
  EXPECT_TRUE(world.deleted);
}

TEST_P(EveryKind, WaitsWhileItIsSuspended) {
  World world = start(job().run("suspend", true));
  EXPECT_TRUE(world.pods.empty());
  EXPECT_EQ(world.conditions(), "Created Suspended");
  json::set(world.root, {"spec", "runPolicy", "suspend"}, false);
  world.settle();
  EXPECT_FALSE(world.pods.empty());
  EXPECT_EQ(world.conditions(), "Created !Suspended");
  EXPECT_EQ(world.told(kind().resource.kind + "Suspended"), 1);
  EXPECT_EQ(world.told(kind().resource.kind + "Resumed"), 1);
}

TEST_P(EveryKind, GivesItsPodsUpWhenItIsSuspendedAndGetsThemBack) {
  World world = running(job());
  const std::string names = world.pod_names();
  json::set(world.root, {"spec", "runPolicy", "suspend"}, true);
  world.settle();
  EXPECT_EQ(world.pod_names(), "");
  EXPECT_EQ(world.conditions(), "Created !Running Suspended");
  EXPECT_EQ(world.count("Worker", "active"), 0);
  json::set(world.root, {"spec", "runPolicy", "suspend"}, false);
  world.settle();
  EXPECT_EQ(world.pod_names(), names);
  EXPECT_EQ(world.restarts(), 0) << "nothing has failed";
}

TEST_P(EveryKind, CleansUpAfterItsEndAsItIsTold) {
  for (const std::string_view policy : {"None", "Running", "All"}) {
    SCOPED_TRACE(policy);
    World world = running(job().run("cleanPodPolicy", json::string(policy)));
    const std::size_t all = world.pods.size();
    succeed(world);
    EXPECT_TRUE(api::condition_true(world.root, "Succeeded")) << world.conditions();
    std::size_t still = 0;
    for (const auto& [name, pod] : world.pods) {
      still += json::get_string(pod, {"status", "phase"}) == "Running" ? 1 : 0;
    }
    if (policy == "None") EXPECT_EQ(world.pods.size(), all);
    if (policy != "None") EXPECT_EQ(still, 0u);
    if (policy == "Running") EXPECT_TRUE(world.pods.contains(lead())) << "it has ended";
    if (policy == "All") EXPECT_EQ(world.pod_names(), kind().kept_role.empty() ? "" : lead());
  }
}

TEST_P(EveryKind, OfAnotherManagerIsNotTouched) {
  World world(kind(), job().run("managedBy", "kueue.x-k8s.io/multikueue").build());
  EXPECT_EQ(world.settle(), 0);
  EXPECT_TRUE(world.pods.empty());
  EXPECT_EQ(json::find(world.root, {"status"}), nullptr);
}

TEST_P(EveryKind, StartsItsPodsTogether) {
  const World world = start(job().run("schedulingPolicy", {{"minAvailable", 2}, {"queue", "q"}}));
  ASSERT_FALSE(world.pods.empty());
  for (const auto& [name, pod] : world.pods) {
    EXPECT_EQ(api::annotation(pod, "scheduling.skiff.dev/gang-min"), "2") << name;
    EXPECT_FALSE(api::annotation(pod, "scheduling.skiff.dev/gang").empty()) << name;
  }
}

TEST_P(EveryKind, FollowsTheNumberOfItsWorkers) {
  World world = running(job());
  const auto workers = [&] {
    return std::ranges::count_if(
        world.pods, [](const auto& each) { return each.first.starts_with("mnist-worker-"); });
  };
  EXPECT_EQ(workers(), 2);
  for (const std::int64_t size : {4, 1, 3}) {
    json::set(world.root, {"spec", kind().replicas_field, "Worker", "replicas"}, size);
    world.settle();
    EXPECT_EQ(workers(), size);
    EXPECT_EQ(world.settle(), 0);
  }
  EXPECT_EQ(world.restarts(), 0) << "a worker that is not wanted has not failed";
}

// What a version shows and takes back is what was kept, for any job whatever it says.
TEST_P(EveryKind, OfTodayGoesThroughEveryOldVersionWithoutLoss) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    Random random(seed);
    const json::value written = testing::random_job(kind(), "mnist", random);
    for (const OldVersion& old : kind().old_versions) {
      json::value object = written;
      old.from_kept(object);
      old.to_kept(object);
      ASSERT_EQ(object, written) << old.version << ", seed " << seed;
      json::value again = written;
      for (const OldVersion& other : kind().old_versions) {
        other.from_kept(again);
        other.to_kept(again);
      }
      ASSERT_EQ(again, written) << "one version after the other, seed " << seed;
    }
  }
}

// All places in a value, and what stands there becomes something else.
void places(json::value& value, std::vector<json::value*>& out) {
  out.push_back(&value);
  if (value.is_object()) {
    for (auto& [key, member] : value.get_object()) places(member, out);
  } else if (value.is_array()) {
    for (json::value& member : value.get_array()) places(member, out);
  }
}

json::value nonsense(Random& random) {
  static const std::vector<json::value> kWords = {nullptr,
                                                  true,
                                                  -1,
                                                  1e300,
                                                  "",
                                                  "x",
                                                  json::array{},
                                                  json::array{nullptr},
                                                  json::object{},
                                                  json::object{{"spec", 3}},
                                                  std::int64_t{1} << 62,
                                                  json::array{json::array{}}};
  return kWords[random.below(kWords.size())];
}

void spoil(json::value& object, Random& random) {
  std::vector<json::value*> all;
  places(object, all);
  *all[1 + random.below(all.size() - 1)] = nonsense(random);
}

// What the schema lets through is far less than this. No rule, view or plan may throw or hang over
// what it does not expect: it would be tried again and again.
TEST_P(EveryKind, SurvivesNonsenseAnywhere) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Random random(seed);
    World world(kind(), testing::random_job(kind(), "mnist", random));
    for (const auto& [key, value] : {std::pair("uid", "u1"), std::pair("namespace", "team")}) {
      json::set(world.root, {"metadata", key}, value);
    }
    world.settle();
    if (random.chance(50)) world.all_phases("Running");
    world.settle();
    const std::size_t times = 1 + random.below(3);
    for (std::size_t i = 0; i < times; ++i) {
      if (world.pods.empty() || random.chance(60)) {
        spoil(world.root, random);
      } else {
        spoil(world.pods.begin()->second, random);
      }
    }
    if (!world.root.is_object()) continue;
    SCOPED_TRACE(json::serialize(world.root));
    EXPECT_NO_THROW(validate_job(kind(), world.root, {})) << seed;
    EXPECT_NO_THROW(world.plan()) << seed;
    for (const OldVersion& old : kind().old_versions) {
      json::value object = world.root;
      EXPECT_NO_THROW(old.from_kept(object)) << old.version << " " << seed;
      EXPECT_NO_THROW(old.to_kept(object)) << old.version << " " << seed;
    }
  }
}

}  // namespace
}  // namespace skiff::training
