// Cases that only generated mutants (tools/mutants) asked for: single plans, looked at closely.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "api/meta.h"
#include "base/yaml.h"
#include "features/trainer/builtin_runtimes.h"
#include "features/trainer/jobset_of.h"
#include "features/trainer/plan.h"
#include "features/trainer/progress.h"
#include "features/trainer/testing/objects.h"
#include "features/trainer/trainjob.h"

namespace skiff::trainer {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;
using testing::must_parse;
using Strings = std::vector<std::string>;

const Time kNow = *parse_time("2026-11-15T12:00:00Z");

Object plan_edges_shared(json::value value) {
  return std::make_shared<const json::value>(std::move(value));
}

// A job as it is observed, made at noon, and what is there of it.
struct Scene {
  json::value job = {};
  json::value runtime = testing::runtime();
  control::Observed seen = {.owned = {{}, {}, {}, {}, {}}, .seen = {{}, {}, {}}};

  explicit Scene(std::string_view spec = "{}", std::string_view status = "") {
    job = testing::trainjob(spec);
    json::set(job, {"metadata", "uid"}, "u1");
    json::set(job, {"metadata", "creationTimestamp"}, "2026-11-15T12:00:00Z");
    if (!status.empty()) json::set(job, {"status"}, must_parse(status));
  }
  // What the job's own plan makes of its runtime, as a server stores it.
  Scene& with_jobset(std::string_view status = "") {
    const control::Plan first = plan();
    for (const client::Write& write : first.writes) {
      json::value made = write.body;
      json::set(made, {"metadata", "uid"}, "s1");
      json::set(made, {"metadata", "resourceVersion"}, "7");
      if (write.resource == jobset_resource()) {
        if (!status.empty()) json::set(made, {"status"}, must_parse(status));
        seen.owned[0] = {plan_edges_shared(std::move(made))};
      } else if (write.resource == config_map_resource()) {
        seen.owned[1].push_back(plan_edges_shared(std::move(made)));
      } else {
        seen.owned[write.resource.kind == "ServiceAccount" ? 2
                   : write.resource.kind == "Role"         ? 3
                                                   : 4] = {plan_edges_shared(std::move(made))};
      }
    }
    return *this;
  }
  Scene& change_jobset(std::initializer_list<std::string_view> path, json::value value) {
    json::value changed = *seen.owned[0][0];
    json::set(changed, path, std::move(value));
    seen.owned[0] = {plan_edges_shared(std::move(changed))};
    return *this;
  }
  control::Plan plan(Time now = kNow) const {
    control::Observed all = seen;
    all.root = plan_edges_shared(job);
    all.seen[0] = {plan_edges_shared(runtime)};
    return plan_trainjob(all, now);
  }
};

// create JobSet mnist, patch Role mnist-launcher, ...
Strings writes(const control::Plan& plan) {
  Strings out;
  for (const client::Write& write : plan.writes) {
    const char* verb = write.verb == client::Verb::kCreate   ? "create"
                       : write.verb == client::Verb::kDelete ? "delete"
                                                             : "patch";
    out.push_back(fmt::format("{} {} {}", verb, write.resource.kind,
                              write.name.empty() ? api::name(write.body) : write.name));
  }
  return out;
}

// status reason time, of the plan's status.
std::string condition(const control::Plan& plan, std::string_view type) {
  if (!plan.status) return "no status";
  const json::value root{{"status", *plan.status}};
  const json::object* found = api::condition(root, type);
  if (found == nullptr) return "none";
  return fmt::format("{} {} {}", json::get_string(*found, {"status"}),
                     json::get_string(*found, {"reason"}),
                     json::get_string(*found, {"lastTransitionTime"}));
}

json::value mpi_runtime() {
  for (const client::Write& write : builtin_objects()) {
    if (api::name(write.body) == "deepspeed-distributed") return write.body;
  }
  return {};
}

TEST(TrainJobPlan, acts_only_on_a_job_that_is_as_it_was_seen) {
  Scene scene;
  const control::Plan first = scene.plan();
  EXPECT_EQ(writes(first), (Strings{"create ConfigMap mnist-runtime-snapshot",
                                    "create JobSet "
                                    "mnist"}));
  EXPECT_TRUE(first.only_if_unchanged);
  const control::Plan second = scene.with_jobset().plan();
  EXPECT_EQ(writes(second), Strings{});
  EXPECT_FALSE(second.only_if_unchanged);
}

TEST(TrainJobPlan, leaves_a_job_alone_that_is_being_deleted) {
  Scene scene;
  json::set(scene.job, {"metadata", "deletionTimestamp"}, "2026-11-15T12:00:00Z");
  EXPECT_TRUE(scene.plan().empty());
}

TEST(TrainJobPlan, of_a_suspended_job_comes_to_rest) {
  Scene scene(R"({"suspend": true})");
  scene.with_jobset();
  EXPECT_EQ(writes(scene.plan()), Strings{});
}

TEST(TrainJobPlan, changes_a_jobset_only_as_it_was_seen) {
  Scene scene(R"({"suspend": true})");
  scene.with_jobset();
  json::set(scene.job, {"spec", "suspend"}, false);
  const control::Plan plan = scene.plan();
  ASSERT_EQ(writes(plan), Strings{"patch JobSet mnist"});
  EXPECT_EQ(plan.writes[0].resource_version, "7");
  EXPECT_EQ(plan.writes[0].uid, "s1");
  EXPECT_EQ(plan.writes[0].body, must_parse(R"({"spec": {"suspend": false}})"));
  scene.change_jobset({"metadata", "deletionTimestamp"}, "2026-11-15T12:00:00Z");
  EXPECT_EQ(writes(scene.plan()), Strings{}) << "what goes is not changed";
}

TEST(TrainJobPlan, keeps_of_a_runtime_what_its_owner_wrote) {
  Scene scene;
  json::set(scene.runtime, {"status"}, json::object{});
  json::set(scene.runtime, {"metadata", "managedFields"}, json::array{1});
  const control::Plan plan = scene.plan();
  ASSERT_EQ(plan.writes.size(), 2U);
  const auto kept = yaml::parse(json::get_string(plan.writes[0].body, {"data", "runtime"}));
  ASSERT_TRUE(kept.has_value());
  EXPECT_EQ(*kept, testing::runtime());
}

TEST(TrainJobPlan, takes_no_other_runtime_where_the_one_it_kept_cannot_be_read) {
  Scene scene;
  scene.seen.owned[1] = {
      plan_edges_shared(must_parse(R"({"metadata": {"name": "mnist-runtime-snapshot"},
      "data": {"runtime": "{"}})"))};
  const control::Plan plan = scene.plan();
  EXPECT_EQ(writes(plan), Strings{});
  ASSERT_EQ(plan.notes.size(), 1U);
  EXPECT_TRUE(plan.notes[0].message.starts_with("TrainJob resources reconciliation failed: yaml"))
      << plan.notes[0].message;
}

TEST(TrainJobPlan, warns_of_what_keeps_it_from_making_the_jobset) {
  Scene scene(R"({"trainer": {"env": [{"name": "PET_NNODES", "value": "9"}]}})");
  const control::Plan plan = scene.plan();
  ASSERT_EQ(plan.notes.size(), 1U);
  EXPECT_TRUE(plan.notes[0].warning);
  EXPECT_EQ(plan.notes[0].reason, "TrainJobResourcesCreationFailed");
  EXPECT_TRUE(plan.notes[0].message.starts_with(
      "TrainJob resources reconciliation failed: spec.trainer.env: "))
      << plan.notes[0].message;
}

TEST(TrainJobPlan, says_at_most_950_characters_of_why) {
  const auto said = [](std::size_t length) {
    Scene scene;
    json::set(scene.job, {"spec", "runtimeRef", "name"}, json::string(std::string(length, 'x')));
    control::Observed nothing = scene.seen;
    nothing.root = plan_edges_shared(scene.job);
    return plan_trainjob(nothing, kNow).notes.at(0).message;
  };
  const std::string before =
      "TrainJob resources reconciliation failed: TrainingRuntime specified in TrainJob is not "
      "found: clustertrainingruntimes.trainer.kubeflow.org \"";
  const std::string after = "\" not found";
  EXPECT_EQ(said(3), before + "xxx" + after);
  const std::size_t most = 950 - (said(0).size() - 42);
  EXPECT_EQ(said(most), before + std::string(most, 'x') + after);
  EXPECT_EQ(said(most + 1), before + std::string(most + 1, 'x') + "\" not foun ...");
}

TEST(TrainJobPlan, looks_at_no_pods_before_there_is_a_jobset) {
  Scene scene;
  scene.runtime = mpi_runtime();
  scene.seen.seen[2] = {plan_edges_shared(must_parse(R"({"metadata": {"name": "p"}})"))};
  EXPECT_EQ(scene.plan().writes.size(), 6U);
}

constexpr std::string_view kMisfit =
    R"({"trainer": {"env": [{"name": "PET_NNODES", "value": "9"}]}})";
constexpr std::string_view kInvalidReason = R"({"conditions": [
    {"type": "Suspended", "status": "False", "reason": "Resumed", "message": "TrainJob is resumed",
     "lastTransitionTime": "2026-11-15T10:00:00Z"},
    {"type": "Failed", "status": "True", "reason": "Invalid", "message": "old",
     "lastTransitionTime": "2026-11-15T11:00:00Z"}]})";

TEST(TrainJobPlan, keeps_the_time_of_a_failure_that_is_judged_anew) {
  const control::Plan plan = Scene(kMisfit, kInvalidReason).plan();
  EXPECT_EQ(condition(plan, "Failed"), "True Invalid 2026-11-15T11:00:00Z");
  EXPECT_EQ(condition(plan, "Suspended"), "False Resumed 2026-11-15T10:00:00Z");
  EXPECT_EQ(json::get_array(*plan.status, {"conditions"}).size(), 2U);
}

TEST(TrainJobPlan, takes_a_failure_away_that_was_put_right_and_nothing_else) {
  const control::Plan plan = Scene("{}", kInvalidReason).plan();
  EXPECT_EQ(condition(plan, "Failed"), "none");
  EXPECT_EQ(condition(plan, "Suspended"), "False Resumed 2026-11-15T10:00:00Z");
  const control::Plan alone = Scene("{}", R"({"conditions": [{"type": "Failed", "status": "True",
      "reason": "Invalid"}]})")
                                  .plan();
  ASSERT_TRUE(alone.status.has_value());
  EXPECT_EQ(*alone.status, must_parse("{}"));
}

TEST(TrainJobPlan, gives_a_new_condition_no_time_of_another) {
  Scene scene(R"({"suspend": true})", R"({"conditions": [{"type": "Failed", "status": "True",
      "reason": "Invalid", "lastTransitionTime": "2026-11-15T11:00:00Z"}]})");
  EXPECT_EQ(condition(scene.plan(), "Suspended"), "True Suspended 2026-11-15T12:00:00Z");
}

struct DeadlineCase {
  std::string_view name = {};
  std::string_view spec = {};
  std::string_view status = {};
  std::int64_t after_us = 0;
  std::string_view failed = {};
};

std::ostream& operator<<(std::ostream& out, const DeadlineCase& c) { return out << c.name; }

struct TrainJobTime : ::testing::TestWithParam<DeadlineCase> {};

TEST_P(TrainJobTime, ends_a_job_that_runs_when_its_time_is_over) {
  Scene scene(GetParam().spec, GetParam().status);
  const control::Plan plan = scene.plan(kNow + microseconds(GetParam().after_us));
  EXPECT_EQ(plan.status ? condition(plan, "Failed") : "none", GetParam().failed);
}

INSTANTIATE_TEST_SUITE_P(
    All, TrainJobTime,
    ::testing::Values(
        DeadlineCase{"a_moment_is_left", R"({"activeDeadlineSeconds": 1})", "", 999'999, "none"},
        DeadlineCase{"none_is_left", R"({"activeDeadlineSeconds": 1})", "", 1'000'000,
                     "True DeadlineExceeded 2026-11-15T12:00:01Z"},
        DeadlineCase{"a_stored_one_of_nothing_is_none", R"({"activeDeadlineSeconds": 0})", "",
                     1'000'000, "none"},
        DeadlineCase{"the_job_is_complete", R"({"activeDeadlineSeconds": 1})",
                     R"({"conditions": [{"type": "Complete", "status": "True"}]})", 5'000'000,
                     "none"},
        DeadlineCase{"the_job_is_suspended", R"({"activeDeadlineSeconds": 1, "suspend": true})", "",
                     5'000'000, "none"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(TrainJobDeadline, waits_for_the_rest_of_the_time) {
  EXPECT_EQ(Scene(R"({"activeDeadlineSeconds": 30})").plan(kNow + seconds(10)).requeue_after,
            Duration(seconds(20)));
}

TEST(TrainJobDeadline, does_not_begin_without_a_time_of_birth) {
  Scene scene(R"({"activeDeadlineSeconds": 1})");
  json::make_object(scene.job, {"metadata"}).erase("creationTimestamp");
  const control::Plan plan = scene.plan();
  EXPECT_FALSE(plan.status.has_value());
  EXPECT_EQ(plan.requeue_after, std::nullopt);
}

TEST(TrainJobDeadline, lets_no_jobset_be_made_that_is_too_late) {
  EXPECT_EQ(writes(Scene(R"({"activeDeadlineSeconds": 1})").plan(kNow + seconds(2))),
            Strings{"create ConfigMap mnist-runtime-snapshot"});
}

TEST(TrainJobDeadline, takes_the_jobset_away_once) {
  Scene scene(R"({"activeDeadlineSeconds": 1})");
  scene.with_jobset();
  const control::Plan plan = scene.plan(kNow + seconds(2));
  ASSERT_EQ(writes(plan), Strings{"delete JobSet mnist"});
  EXPECT_EQ(plan.writes[0].uid, "s1");
  EXPECT_EQ(json::get_string(plan.writes[0].body, {"propagationPolicy"}), "Background");
  scene.change_jobset({"metadata", "deletionTimestamp"}, "2026-11-15T12:00:02Z");
  EXPECT_EQ(writes(scene.plan(kNow + seconds(2))), Strings{});
}

TEST(TrainJobDeadline, stays_the_reason_whatever_becomes_of_the_jobset) {
  Scene scene(R"({"activeDeadlineSeconds": 1})");
  scene.with_jobset(R"({"conditions": [{"type": "Completed", "status": "True"}]})");
  json::set(scene.job, {"status"}, must_parse(R"({"conditions": [{"type": "Failed",
      "status": "True", "reason": "DeadlineExceeded"}]})"));
  EXPECT_FALSE(scene.plan(kNow + seconds(2)).status.has_value());
}

TEST(MpiPlanEdges, mend_only_what_is_not_going_and_only_as_it_was_seen) {
  Scene scene;
  scene.runtime = mpi_runtime();
  scene.with_jobset();
  json::value role = *scene.seen.owned[3][0];
  json::set(role, {"rules"}, json::array{});
  scene.seen.owned[3] = {plan_edges_shared(role)};
  const control::Plan plan = scene.plan();
  ASSERT_EQ(writes(plan), Strings{"patch Role mnist-launcher"});
  EXPECT_EQ(plan.writes[0].resource_version, "7");
  EXPECT_EQ(json::get_array(plan.writes[0].body, {"rules"}).size(), 1U);
  json::set(role, {"metadata", "deletionTimestamp"}, "2026-11-15T12:00:00Z");
  scene.seen.owned[3] = {plan_edges_shared(role)};
  EXPECT_EQ(writes(scene.plan()), Strings{});
}

TEST(OwnPods, are_a_reason_to_plan_only_when_what_is_read_of_them_changes) {
  const auto alike = trainjob_controller().seen.at(2).alike;
  json::value pod = must_parse(R"({"metadata": {"name": "p"}, "status": {"phase": "Running"}})");
  const auto changed = [&](std::initializer_list<std::string_view> path, std::string_view value) {
    json::value after = pod;
    json::set(after, path, json::string(value));
    return !alike(pod, after);
  };
  EXPECT_FALSE(changed({"status", "hostIP"}, "10.0.0.1"));
  EXPECT_TRUE(changed({"status", "phase"}, "Failed"));
  EXPECT_TRUE(changed({"metadata", "deletionTimestamp"}, "2026-11-15T12:00:00Z"));
  EXPECT_TRUE(changed({"metadata", "annotations", kProgressAnnotation}, "{}"));
}

json::value pod_that_says(json::object told) {
  told["lastUpdateTime"] = "2026-01-01T00:00:10Z";
  const json::value all{{"node", std::move(told)}};
  json::value out;
  json::set(out, {"metadata", "annotations", kProgressAnnotation},
            json::string(json::serialize(all)));
  return out;
}

TEST(TrainerStatusEdges, take_names_and_values_of_1_to_64_characters) {
  for (const auto& [name, value, taken] : {std::tuple(1, 1, true),
                                           {64, 64, true},
                                           {0, 1, false},
                                           {65, 1, false},
                                           {1, 0, false},
                                           {1, 65, false}}) {
    const auto text = [](int length) { return json::string(std::string(length, 'x')); };
    const json::object told{{"percent", 1}, {"metrics", json::object{{text(name), text(value)}}}};
    EXPECT_EQ(trainer_status(pod_that_says(told)).contains("metrics"), taken)
        << name << " " << value;
  }
}

TEST(TrainerStatusEdges, take_256_metrics_at_most) {
  json::object metrics;
  for (int i = 0; i < 300; ++i) metrics["m" + std::to_string(i)] = "1";
  const json::object status = trainer_status(pod_that_says({{"metrics", metrics}}));
  EXPECT_EQ(status.at("metrics").as_array().size(), 256U);
}

TEST(TrainerStatusEdges, begin_at_nothing) {
  const json::object status = trainer_status(pod_that_says({{"percent", 0}, {"step", 0}}));
  EXPECT_EQ(status.at("progressPercentage"), 0);
  EXPECT_EQ(status.at("metrics"), must_parse(R"([{"name": "step", "value": "0"}])"));
  EXPECT_EQ(trainer_status(pod_that_says({{"percent", -5}})).at("progressPercentage"), 0);
}

}  // namespace
}  // namespace skiff::trainer
