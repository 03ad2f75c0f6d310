// Cases that only generated mutants (tools/mutants) asked for: what admission and the runtime's fit
// let through and what they refuse, to the letter.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "api/meta.h"
#include "features/trainer/builtin_runtimes.h"
#include "features/trainer/feature.h"
#include "features/trainer/overrides.h"
#include "features/trainer/policies.h"
#include "features/trainer/testing/objects.h"
#include "features/trainer/trainjob.h"

namespace skiff::trainer {
namespace {

using testing::must_parse;
using testing::runtime;
using testing::trainjob;
using Strings = std::vector<std::string>;

Strings said(const std::vector<Cause>& causes) {
  Strings out;
  for (const Cause& cause : causes) out.push_back(cause.field + ": " + cause.message);
  return out;
}

// The fields complained of, each as often as it is.
Strings fields(const std::vector<Cause>& causes) {
  Strings out;
  for (const Cause& cause : causes) out.push_back(cause.field);
  return out;
}

json::array& parts_of_runtime(json::value& from) {
  return json::make_object(from, {"spec", "template", "spec"})["replicatedJobs"].as_array();
}

TEST(TrainJobName, has_63_characters_at_most_and_may_be_left_to_the_server) {
  const auto complaints = [](std::size_t length) {
    json::value job = trainjob();
    json::set(job, {"metadata", "name"}, json::string(std::string(length, 'a')));
    return validate_trainjob(job, {}).size();
  };
  EXPECT_EQ(complaints(63), 0U);
  EXPECT_EQ(complaints(64), 1U);
  EXPECT_EQ(complaints(0), 0U) << "generateName";
}

struct PatchCase {
  std::string_view name = {};
  std::string_view part = {};  // an entry of replicatedJobs
  Strings fields = {};         // complained of, below that entry
};

std::ostream& operator<<(std::ostream& out, const PatchCase& c) { return out << c.name; }

struct RulesEdgesRuntimePatch : ::testing::TestWithParam<PatchCase> {};

TEST_P(RulesEdgesRuntimePatch, is_told_once_of_each_thing_that_is_wrong) {
  const json::value job =
      trainjob(fmt::format(R"({{"runtimePatches": [{{"manager": "a.b/c", "trainingRuntimeSpec":
          {{"template": {{"spec": {{"replicatedJobs": [{}]}}}}}}}}]}})",
                           GetParam().part));
  Strings wanted;
  for (const std::string& field : GetParam().fields) {
    wanted.push_back("spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0]" +
                     field);
  }
  EXPECT_EQ(fields(validate_trainjob(job, {})), wanted);
}

INSTANTIATE_TEST_SUITE_P(
    All, RulesEdgesRuntimePatch,
    ::testing::Values(
        PatchCase{"text", R"("node")", {""}},
        PatchCase{"template_is_text", R"({"name": "node", "template": "x"})", {".template"}},
        PatchCase{"spec_of_the_job_is_text",
                  R"({"name": "node", "template": {"spec": "x"}})",
                  {".template.spec"}},
        PatchCase{"metadata_of_the_job_is_text",
                  R"({"name": "node", "template": {"metadata": "x"}})",
                  {".template.metadata"}},
        PatchCase{"metadata_of_the_pod_is_text",
                  R"({"name": "node", "template": {"spec": {"template": {"metadata": "x"}}}})",
                  {".template.spec.template.metadata"}},
        PatchCase{"container_without_a_name",
                  R"({"name": "node", "template": {"spec": {"template": {"spec":
                      {"containers": [{"env": []}]}}}}})",
                  {".template.spec.template.spec.containers[0].name"}},
        PatchCase{"container_is_text",
                  R"({"name": "node", "template": {"spec": {"template": {"spec":
                      {"initContainers": ["x"]}}}}})",
                  {".template.spec.template.spec.initContainers[0].name"}},
        PatchCase{"all_is_well",
                  R"({"name": "node", "template": {"metadata": {"labels": {}}, "spec": {"template":
                      {"metadata": {}, "spec": {"affinity": {}, "volumes": [], "containers":
                        [{"name": "side", "volumeMounts": [], "securityContext": {}}]}}}}})",
                  {}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(RuntimePatches, may_be_empty) {
  EXPECT_EQ(validate_trainjob(trainjob(R"({"runtimePatches": [{"manager": "a.b/c"},
      {"manager": "a.b/d", "trainingRuntimeSpec": {"template": {"metadata": {}}}}]})"),
                              {}),
            std::vector<Cause>{});
}

// The patches of a job before and after a change, of a manager and the account that it gives pods.
json::value with_account(std::string_view spec) {
  return trainjob(fmt::format(R"({{"suspend": true, "runtimePatches": [{{"manager": "a.b/c",
      "trainingRuntimeSpec": {{"template": {{"spec": {{"replicatedJobs": [{{"name": "node",
        "template": {{"spec": {{"template": {{"spec": {}}}}}}}}}]}}}}}}}}]}})",
                              spec));
}

TEST(FixedPatches, of_a_job_without_a_jobset_come_and_go_but_do_not_change) {
  const auto complaints = [](std::string_view before, std::string_view after,
                             std::string_view status) {
    json::value old = with_account(before);
    json::set(old, {"status"}, must_parse(status));
    return validate_trainjob(with_account(after), {.old = &old}).size();
  };
  constexpr std::string_view kOne = R"({"serviceAccountName": "one"})";
  constexpr std::string_view kTwo = R"({"serviceAccountName": "two"})";
  constexpr std::string_view kInvalid =
      R"({"conditions": [{"type": "Failed", "status": "True", "reason": "Invalid"}]})";
  constexpr std::string_view kFailed =
      R"({"conditions": [{"type": "Failed", "status": "True", "reason": "FailedJobs"}]})";
  EXPECT_EQ(complaints(kOne, "{}", kInvalid), 0U);
  EXPECT_EQ(complaints("{}", kOne, kInvalid), 0U);
  EXPECT_EQ(complaints(kOne, kTwo, kInvalid), 1U);
  EXPECT_EQ(complaints(kOne, "{}", kFailed), 1U);
  EXPECT_EQ(complaints(kOne, "{}", "{}"), 1U);
  EXPECT_EQ(complaints(kOne, "{}", R"({"jobsStatus": [{"name": "node"}], "conditions": [
      {"type": "Failed", "status": "True", "reason": "Invalid"}]})"),
            1U)
      << "it has had a JobSet";
}

TEST(Changes, of_patches_and_labels_need_a_job_that_is_suspended_before_or_after) {
  const auto complaints = [](bool before, bool after, std::string_view more) {
    json::value old = trainjob();
    json::set(old, {"spec", "suspend"}, before);
    json::value job = trainjob(more);
    json::set(job, {"spec", "suspend"}, after);
    return said(validate_trainjob(job, {.old = &old}));
  };
  const std::string_view patch = R"({"runtimePatches": [{"manager": "a.b/c"}]})";
  EXPECT_EQ(complaints(false, true, patch), Strings{});
  EXPECT_EQ(complaints(true, false, patch), Strings{});
  EXPECT_EQ(complaints(false, false, patch),
            Strings{"spec.runtimePatches: Forbidden: RuntimePatches can only be modified when the "
                    "TrainJob is suspended before or after the update"});
  EXPECT_EQ(complaints(false, false, R"({"labels": {"a": "b"}})"),
            Strings{"spec.labels: Forbidden: labels can only be modified when the TrainJob is "
                    "suspended before or after the update"});
}

TEST(Changes, of_patches_need_jobs_that_are_not_active) {
  const auto complaints = [](std::string_view status, std::string_view more) {
    json::value old = trainjob(R"({"suspend": true})");
    json::set(old, {"status", "jobsStatus"}, must_parse(status));
    json::value job = trainjob(more);
    json::set(job, {"spec", "suspend"}, true);
    return validate_trainjob(job, {.old = &old}).size();
  };
  const std::string_view patch = R"({"runtimePatches": [{"manager": "a.b/c"}]})";
  EXPECT_EQ(complaints(R"([{"name": "node", "active": 1}])", patch), 1U);
  EXPECT_EQ(complaints(R"([{"name": "node", "active": 0}, {"name": "x"}])", patch), 0U);
  EXPECT_EQ(complaints(R"([{"name": "node", "active": 1}])", R"({"labels": {"a": "b"}})"), 0U)
      << "what is as it was is nobody's change";
}

json::value stamped(std::string_view patches, const api::Admission& context) {
  json::value job = trainjob();
  json::set(job, {"spec", "runtimePatches"}, must_parse(patches));
  stamp_patches(job, context);
  return json::get_array(job, {"spec", "runtimePatches"}).at(0);
}

TEST(Stamps, are_left_where_they_are_given_and_for_writes_of_the_status) {
  EXPECT_EQ(stamped(R"([{"manager": "m"}])", {.now = "new"}),
            must_parse(R"({"manager": "m", "time": "new"})"));
  EXPECT_EQ(stamped(R"([{"manager": "m", "time": "mine"}])", {.now = "new"}),
            must_parse(R"({"manager": "m", "time": "mine"})"));
  EXPECT_EQ(stamped(R"([{"manager": "m"}])", {.subresource = "status", .now = "new"}),
            must_parse(R"({"manager": "m"})"));
  EXPECT_EQ(stamped(R"(["x"])", {.now = "new"}), "x");
}

TEST(Stamps, need_a_list_of_patches) {
  for (const std::string_view text : {R"("x")", "{}", R"({"spec": "x"})", R"({"spec": {}})",
                                      R"({"spec": {"runtimePatches": 1}})"}) {
    json::value job = must_parse(text);
    stamp_patches(job, {.now = "new"});
    EXPECT_EQ(job, must_parse(text));
  }
}

TEST(OldOverrides, that_are_no_maps_are_for_the_schema_to_refuse) {
  for (const std::string_view form : {"podSpecOverrides", "podTemplateOverrides"}) {
    json::value job = trainjob();
    json::set(job, {"spec", form}, json::array{"x"});
    EXPECT_EQ(validate_trainjob(job, {}), std::vector<Cause>{}) << form;
  }
}

TEST(OldOverrides, may_say_nothing_of_a_field_by_null) {
  EXPECT_EQ(validate_trainjob(trainjob(R"({"podSpecOverrides": [{"targetJobs": [{"name": "node"}],
      "hostPID": null, "containers": null}]})"),
                              {}),
            std::vector<Cause>{});
}

// A runtime whose first part is called as an initializer is, of these containers.
json::value with_part(std::string_view name, std::string_view containers,
                      std::string_view step = "", std::int64_t replicas = 1) {
  json::value out = runtime();
  json::value part{{"name", json::string(name)}, {"replicas", replicas}};
  if (!step.empty()) {
    json::set(part, {"template", "metadata", "labels", kStepLabel}, json::string(step));
  }
  json::set(part, {"template", "spec", "template", "spec", "containers"}, must_parse(containers));
  parts_of_runtime(out).insert(parts_of_runtime(out).begin(), std::move(part));
  return out;
}

TEST(RuntimeParts, that_are_steps_have_one_replica_and_their_container) {
  for (const std::string_view step : {"dataset-initializer", "model-initializer"}) {
    const std::string own = fmt::format(R"([{{"name": "{}"}}])", step);
    const std::string at = "spec.template.spec.replicatedJobs[0]";
    EXPECT_EQ(fields(validate_runtime(with_part("a", own, step), {})), Strings{});
    EXPECT_EQ(fields(validate_runtime(with_part("a", own, step, 2), {})),
              Strings{at + ".replicas"});
    EXPECT_EQ(fields(validate_runtime(with_part("a", R"([{"name": "node"}])", step), {})),
              Strings{at + ".template.spec.template.spec.containers"});
  }
  EXPECT_EQ(fields(validate_runtime(with_part("a", "[]", "", 2), {})), Strings{})
      << "others are as they like";
  EXPECT_EQ(fields(validate_runtime(runtime(R"({"torch": {}, "jax": null})"), {})), Strings{})
      << "null names nothing";
}

// What a job is told of the fit to its runtime, from the last "must".
Strings misfits(const json::value& job, const json::value& from) {
  Strings out;
  for (const Cause& cause : check_against(job, from)) {
    out.push_back(cause.message.substr(cause.message.rfind("must")));
  }
  return out;
}

TEST(MisfitInitializers, look_at_the_very_container_of_the_very_part) {
  const json::value job = trainjob(R"({"initializer": {"dataset": {}}})");
  constexpr std::string_view kMount = R"("volumeMounts": [{"name": "initializer"}])";
  const std::string mounting = fmt::format(R"({{"name": "dataset-initializer", {}}})", kMount);
  const std::string unmounted =
      "must have volumeMount with name - initializer in container dataset-initializer of the "
      "dataset-initializer job";
  EXPECT_EQ(misfits(job, with_part("dataset-initializer", "[" + mounting + "]")), Strings{});
  EXPECT_EQ(misfits(job, with_part("dataset-initializer", "[]")),
            Strings{"must have container with name - dataset-initializer in the "
                    "dataset-initializer job"});
  EXPECT_EQ(misfits(job, with_part("dataset-initializer",
                                   fmt::format(R"([{{"name": "dataset-initializer"}},
                                                   {{"name": "other", {}}}])",
                                               kMount))),
            Strings{unmounted});
  json::value elsewhere = with_part("other", "[" + mounting + "]");
  json::value bare = with_part("dataset-initializer", R"([{"name": "dataset-initializer"}])");
  parts_of_runtime(elsewhere).push_back(parts_of_runtime(bare)[0]);
  EXPECT_EQ(misfits(job, elsewhere), Strings{unmounted});
}

json::value patch_of(std::string_view part, std::string_view container) {
  return trainjob(fmt::format(R"({{"runtimePatches": [{{"manager": "a.b/c", "trainingRuntimeSpec":
      {{"template": {{"spec": {{"replicatedJobs": [{{"name": "{}", "template": {{"spec":
        {{"template": {{"spec": {{"containers": [{}]}}}}}}}}}}]}}}}}}}}]}})",
                              part, container));
}

json::value override_of(std::string_view part, std::string_view container) {
  return trainjob(fmt::format(R"({{"podTemplateOverrides": [{{"targetJobs": [{{"name": "{}"}}],
      "spec": {{"containers": [{}]}}}}]}})",
                              part, container));
}

TEST(MisfitPatches, name_containers_of_the_part_they_are_for) {
  const json::value from = with_part("a", R"([{"name": "only-a"}])");
  const std::string_view sentence = "must not have container that doesn't exist in the runtime job";
  for (const auto make : {patch_of, override_of}) {
    EXPECT_EQ(misfits(make("a", R"({"name": "only-a"})"), from), Strings{});
    EXPECT_EQ(misfits(make("node", R"({"name": "only-a"})"), from),
              Strings{fmt::format("{} node", sentence)});
    EXPECT_EQ(misfits(make("ghost", R"({"name": "node"})"), from).size(), 1U)
        << "of a part that is not there nothing more is said";
  }
}

TEST(MisfitPatches, set_no_variables_of_the_containers_that_the_job_speaks_of_itself) {
  for (const std::string_view name : {"node", "dataset-initializer", "model-initializer"}) {
    const json::value from = with_part("a", fmt::format(R"([{{"name": "{}"}}])", name));
    const std::string bare = fmt::format(R"({{"name": "{}"}})", name);
    const std::string given = fmt::format(R"({{"name": "{}", "env": [{{"name": "A"}}]}})", name);
    for (const auto make : {patch_of, override_of}) {
      EXPECT_EQ(misfits(make("a", bare), from), Strings{}) << name;
      EXPECT_EQ(misfits(make("a", given), from),
                Strings{"must not have envs for the dataset-initializer, model-initializer, node "
                        "containers"})
          << name;
    }
  }
}

TEST(MisfitMpi, needs_both_parts_only_for_two_nodes_of_which_the_launcher_is_one) {
  const auto complaints = [](std::int64_t nodes, bool launcher_is_node, bool node_too) {
    json::value from = runtime(R"({"mpi": {}})");
    json::set(from, {"spec", "mlPolicy", "mpi", "runLauncherAsNode"}, launcher_is_node);
    json::value launcher = parts_of_runtime(from)[0];
    json::set(launcher, {"name"}, "launcher");
    if (node_too) parts_of_runtime(from).push_back(launcher);
    if (!node_too) parts_of_runtime(from)[0] = launcher;
    json::value job = trainjob();
    if (nodes > 0) json::set(job, {"spec", "trainer", "numNodes"}, nodes);
    return check_against(job, from).size();
  };
  EXPECT_EQ(complaints(2, true, false), 1U);
  EXPECT_EQ(complaints(2, true, true), 0U);
  EXPECT_EQ(complaints(2, false, false), 0U);
  EXPECT_EQ(complaints(1, true, false), 0U);
  EXPECT_EQ(complaints(0, true, false), 0U) << "the runtime's number is the runtime's matter";
}

TEST(MisfitMpi, bounds_the_nodes_of_an_mpi_alone) {
  const json::value job = trainjob(R"({"trainer": {"numNodes": 10001}})");
  EXPECT_EQ(check_against(job, runtime(R"({"torch": {}})")), std::vector<Cause>{});
  EXPECT_EQ(check_against(job, runtime(R"({"mpi": {}})")).size(), 1U);
}

TEST(Misfits, are_not_said_of_a_container_that_is_there_to_be_told_where_to_meet) {
  EXPECT_EQ(check_against(trainjob(), runtime(R"({"torch": {"envInjection": {"targets": [
                {"jobName": "node", "containerNames": ["side"]}]}}})")),
            std::vector<Cause>{});
}

TEST(Misfits, are_those_of_torchtune_and_of_overrides_too) {
  EXPECT_EQ(misfits(trainjob(R"({"trainer": {"command": ["tune", "run"]}})"), runtime()),
            Strings{"must have a supported pretrained model, invalid model configured: "});
  EXPECT_EQ(misfits(override_of("ghost", ""), runtime()),
            Strings{"must not have targetJob that doesn't exist in the runtime job template"});
}

TEST(ReservedVariables, are_those_of_the_framework) {
  struct Case {
    std::string_view framework;
    std::string_view name;
    bool reserved;
  };
  for (const auto& [framework, name, expected] :
       {Case{"torch", "PET_NNODES", true}, Case{"torch", "LR", false},
        Case{"torch", "DMLC_TASK_ID", false}, Case{"mpi", "OMPI_MCA_plm_rsh_args", true},
        Case{"mpi", "PET_NNODES", false}, Case{"xgboost", "DMLC_TASK_ID", true},
        Case{"xgboost", "PET_NNODES", false}, Case{"jax", "LR", false},
        Case{"", "PET_NNODES", false}}) {
    EXPECT_EQ(reserved(framework, name), expected) << framework << " " << name;
  }
}

TEST(TrainerFeature, has_three_kinds_with_their_schemas) {
  const Feature feature = make();
  ASSERT_EQ(feature.kinds.size(), 3U);
  ASSERT_EQ(feature.schemas.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(feature.schemas[i].first, feature.kinds[i].schema);
    EXPECT_FALSE(feature.kinds[i].unconditional_update);
    EXPECT_EQ(feature.kinds[i].has_status, i == 0) << "runtimes have none";
  }
}

}  // namespace
}  // namespace skiff::trainer
