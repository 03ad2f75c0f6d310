// Cases that only generated mutants (tools/mutants) asked for: what admission lets through and what
// it refuses, to the letter.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/check.h"
#include "features/jobsets/claims.h"
#include "features/jobsets/jobset.h"
#include "features/jobsets/testing/parse.h"

namespace skiff::jobsets {
namespace {

using testing::must_parse;

using Strings = std::vector<std::string>;

// A set of a name and a spec, with what the server fills in.
json::value set_of(std::string_view spec, std::string_view name = "train") {
  json::value out{{"metadata", {{"name", json::string(name)}, {"namespace", "team"}}},
                  {"spec", must_parse(spec)}};
  set_defaults(out);
  return out;
}

// The fields complained of, each as often as it is.
Strings fields(const json::value& set, const json::value* old = nullptr) {
  Strings out;
  for (const Cause& cause : validate(set, {.old = old})) out.push_back(cause.field);
  return out;
}

struct RuleCase {
  std::string_view name = {};
  std::string_view spec = {};
  Strings fields = {};
};

std::ostream& operator<<(std::ostream& out, const RuleCase& c) { return out << c.name; }

struct JobSetRule : ::testing::TestWithParam<RuleCase> {};

TEST_P(JobSetRule, complains_once_of_each_thing_that_is_wrong) {
  EXPECT_EQ(fields(set_of(GetParam().spec)), GetParam().fields);
}

const std::string kRules = "spec.failurePolicy.rules[0]";
const std::string kName128 = std::string(128, 'a');
const std::string kGoodRule =
    R"({"replicatedJobs": [{"name": "a"}], "failurePolicy": {"rules": [{"action": "FailJobSet",
        "onJobFailureReasons": ["FailedIndexes"], "onJobFailureMessagePatterns": ["a.*b"],
        "targetReplicatedJobs": ["a"], "name": ")" +
    kName128 + R"("}, {"action": "RestartJobSet"}]}})";
const std::string kLongRule =
    R"({"failurePolicy": {"rules": [{"action": "FailJobSet", "name": ")" + kName128 + R"(b"}]}})";
const std::string kManager = "a.b/" + std::string(59, 'c');
const std::string kGoodManager = R"({"managedBy": ")" + kManager + R"("})";
const std::string kLongManager = R"({"managedBy": ")" + kManager + R"(c"})";
const std::string kLongLabel = R"({"network": {"subdomain": ")" + std::string(55, 'd') +
                               R"("}, "coordinator": {"replicatedJob": "a"}, "replicatedJobs": [
        {"name": "a", "template": {"spec": {"completions": 1}}}]})";

INSTANTIATE_TEST_SUITE_P(
    All, JobSetRule,
    ::testing::Values(
        RuleCase{"dependence_on_one_of_those_before",
                 R"({"replicatedJobs": [{"name": "a"}, {"name": "b"}, {"name": "c", "dependsOn": [
                     {"name": "a", "status": "Ready"}, {"name": "b", "status": "Complete"}]}]})",
                 {}},
        RuleCase{"dependence_on_a_later_part",
                 R"({"replicatedJobs": [{"name": "a"}, {"name": "b", "dependsOn": [
                     {"name": "a"}, {"name": "c"}]}, {"name": "c"}]})",
                 {"spec.replicatedJobs[1].dependsOn[1]"}},
        RuleCase{"first_part_depends",
                 R"({"replicatedJobs": [{"name": "a", "dependsOn": [{"name": "b"}]}]})",
                 {"spec.replicatedJobs[0].dependsOn"}},
        RuleCase{"order_alone",
                 R"({"startupPolicy": {"startupPolicyOrder": "InOrder"},
                     "replicatedJobs": [{"name": "a"}, {"name": "b"}]})",
                 {}},
        RuleCase{"as_many_pods_as_there_may_be",
                 R"({"replicatedJobs": [{"name": "a", "replicas": 2147483647}]})",
                 {}},
        RuleCase{"success_of_a_part_that_is_there",
                 R"({"replicatedJobs": [{"name": "a"}],
                     "successPolicy": {"operator": "All", "targetReplicatedJobs": ["a"]}})",
                 {}},
        RuleCase{"rules_that_are_good", kGoodRule, {}},
        RuleCase{"rule_with_a_long_name", kLongRule, {kRules + ".name"}},
        RuleCase{"rule_with_an_empty_name",
                 R"({"failurePolicy": {"rules": [{"name": "", "action": "FailJobSet"}]}})",
                 {kRules + ".name", kRules + ".name"}},
        RuleCase{"three_rules_of_one_name_and_one_of_another",
                 R"({"failurePolicy": {"rules": [
                     {"name": "r", "action": "FailJobSet"}, {"name": "r", "action": "FailJobSet"},
                     {"name": "r", "action": "FailJobSet"},
                     {"name": "s", "action": "FailJobSet"}]}})",
                 {"spec.failurePolicy.rules[1].name"}},
        RuleCase{"manager", kGoodManager, {}},
        RuleCase{"long_manager", kLongManager, {"spec.managedBy"}},
        RuleCase{"coordinator",
                 R"({"coordinator": {"replicatedJob": "a", "jobIndex": 1, "podIndex": 2},
                     "replicatedJobs": [{"name": "z"}, {"name": "a", "replicas": 2, "template":
                       {"spec": {"completions": 3}}}]})",
                 {}},
        RuleCase{
            "coordinator_in_no_part",
            R"({"coordinator": {"replicatedJob": "ghost"}, "replicatedJobs": [{"name": "a"}]})",
            {"spec.coordinator.replicatedJob"}},
        RuleCase{"coordinator_in_no_job_and_no_pod",
                 R"({"coordinator": {"replicatedJob": "a", "jobIndex": 1, "podIndex": 9},
                     "replicatedJobs": [{"name": "a"}]})",
                 {"spec.coordinator.jobIndex"}},
        RuleCase{"coordinator_before_the_first_job",
                 R"({"coordinator": {"replicatedJob": "a", "jobIndex": -1},
                     "replicatedJobs": [{"name": "a", "template": {"spec": {"completions": 1}}}]})",
                 {"spec.coordinator.jobIndex"}},
        RuleCase{"coordinator_before_the_first_pod",
                 R"({"coordinator": {"replicatedJob": "a", "podIndex": -1},
                     "replicatedJobs": [{"name": "a", "template": {"spec": {"completions": 1}}}]})",
                 {"spec.coordinator.podIndex"}},
        RuleCase{"coordinator_of_pods_without_index",
                 R"({"coordinator": {"replicatedJob": "a", "podIndex": 9},
                     "replicatedJobs": [{"name": "a", "template": {"spec":
                       {"completions": 1, "completionMode": "NonIndexed"}}}]})",
                 {"spec.coordinator.replicatedJob"}},
        RuleCase{"coordinator_of_pods_without_number",
                 R"({"coordinator": {"replicatedJob": "a", "podIndex": 9},
                     "replicatedJobs": [{"name": "a"}]})",
                 {"spec.coordinator.replicatedJob"}},
        RuleCase{"coordinator_with_a_long_name", kLongLabel, {"spec.coordinator"}},
        RuleCase{"coordinator_that_is_text", R"({"coordinator": "x"})", {}},
        RuleCase{"claim_that_one_part_mounts",
                 R"({"volumeClaimPolicies": [{"templates": [{"metadata": {"name": "data"}}]}],
                     "replicatedJobs": [{"name": "a", "template": {"spec": {"template": {"spec": {
                       "volumes": [{"name": "own"}],
                       "initContainers": [{"volumeMounts": [{"name": "data"}]}]}}}}},
                       {"name": "b"}]})",
                 {}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(JobSetNames, are_as_long_as_the_longest_name_that_they_make) {
  const auto complaints = [](std::size_t length, std::string_view part) {
    return fields(set_of(fmt::format(R"({{"replicatedJobs": [{{"name": "w", {}}}]}})", part),
                         std::string(length, 'a')))
        .size();
  };
  // name-w-9 and name-w-10
  EXPECT_EQ(complaints(59, R"("replicas": 10)"), 0U);
  EXPECT_EQ(complaints(59, R"("replicas": 11)"), 1U);
  EXPECT_EQ(complaints(59, R"("replicas": 0)"), 0U);
  EXPECT_EQ(complaints(60, R"("replicas": 1)"), 1U);
  // name-w-0-9-abcde and name-w-0-10-abcde
  const auto pods = [&](std::string_view job) {
    return complaints(51, fmt::format(R"("template": {{"spec": {}}})", job));
  };
  EXPECT_EQ(pods(R"({"completions": 10})"), 0U);
  EXPECT_EQ(pods(R"({"completions": 11})"), 1U);
  EXPECT_EQ(pods(R"({"completions": 0})"), 0U);
  EXPECT_EQ(pods(R"({"completions": 11, "completionMode": "NonIndexed"})"), 0U)
      << "these have names of chance";
  EXPECT_EQ(pods("{}"), 0U);
}

TEST(JobSetNames, that_are_too_long_are_shown) {
  const std::vector<Cause> causes = validate(
      set_of(R"({"replicatedJobs": [{"name": "w", "replicas": 2}]})", std::string(60, 'a')), {});
  ASSERT_EQ(causes.size(), 1U);
  EXPECT_NE(causes[0].message.find(std::string(60, 'a') + "-w-1\""), std::string::npos)
      << causes[0].message;
}

// A set that is suspended, of one part `a` with this template of pods.
json::value suspended_set(std::string_view pod) {
  return set_of(fmt::format(R"({{"suspend": true, "replicatedJobs": [{{"name": "a", "template":
      {{"spec": {{"template": {}}}}}}}]}})",
                            pod));
}

TEST(SuspendedJobSet, lets_each_hint_come_change_and_go) {
  for (const auto& [with, other] :
       {std::pair(R"({"metadata": {"labels": {"a": "1"}}})",
                  R"({"metadata": {"labels": {"a": "2"}}})"),
        {R"({"metadata": {"annotations": {"a": "1"}}})",
         R"({"metadata": {"annotations": {"a": "2"}}})"},
        {R"({"spec": {"nodeSelector": {"a": "1"}}})", R"({"spec": {"nodeSelector": {"a": "2"}}})"},
        {R"({"spec": {"tolerations": [{"key": "1"}]}})",
         R"({"spec": {"tolerations": [{"key": "2"}]}})"},
        {R"({"spec": {"schedulingGates": [{"name": "1"}]}})",
         R"({"spec": {"schedulingGates": [{"name": "2"}]}})"},
        {R"({"spec": {"affinity": {"nodeAffinity": {"x": 1}}}})",
         R"({"spec": {"affinity": {"nodeAffinity": {"x": 2}}}})"}}) {
    const json::value bare = suspended_set("{}");
    const json::value before = suspended_set(with);
    const json::value after = suspended_set(other);
    EXPECT_EQ(fields(after, &before), Strings{}) << with << " changes";
    EXPECT_EQ(fields(before, &bare), Strings{}) << with << " comes";
    EXPECT_EQ(fields(bare, &before), Strings{}) << with << " goes";
    json::value runs = before;
    json::value ran = after;
    for (json::value* each : {&runs, &ran}) json::set(*each, {"spec", "suspend"}, false);
    EXPECT_EQ(fields(ran, &runs), Strings{"spec.replicatedJobs"}) << with << " while it runs";
  }
}

TEST(SuspendedJobSet, keeps_the_rest_of_an_affinity) {
  const json::value before = suspended_set(R"({"spec": {"affinity": {"podAffinity": {"x": 1}}}})");
  const json::value more = suspended_set(
      R"({"spec": {"affinity": {"podAffinity": {"x": 1}, "nodeAffinity": {"x": 1}}}})");
  EXPECT_EQ(fields(more, &before), Strings{});
  EXPECT_EQ(fields(suspended_set("{}"), &before), Strings{"spec.replicatedJobs"});
}

TEST(SuspendedJobSet, has_the_parts_that_it_had) {
  json::value before = suspended_set("{}");
  const json::value other = set_of(R"({"suspend": true, "replicatedJobs": [{"name": "b"}]})");
  EXPECT_EQ(fields(other, &before), Strings{"spec.replicatedJobs"});
  // As somebody stored it who did not fill in anything.
  const json::value bare = must_parse(R"({"spec": {"suspend": true,
      "replicatedJobs": [{"name": "a"}]}})");
  EXPECT_EQ(fields(bare, &bare), Strings{});
}

TEST(JobSetChanges, are_shown_as_they_are_asked_for) {
  const auto said = [](std::string_view before, std::string_view after) {
    const json::value old = set_of(before);
    const std::vector<Cause> causes = validate(set_of(after), {.old = &old});
    return causes.size() == 1 ? causes[0].field + ": " + causes[0].message
                              : std::to_string(causes.size());
  };
  EXPECT_EQ(said("{}", R"({"managedBy": "a.b/c"})"),
            "spec.managedBy: Invalid value: \"a.b/c\": Value is immutable");
  EXPECT_EQ(said(R"({"managedBy": "a.b/c"})", "{}"),
            "spec.managedBy: Invalid value: null: Value is immutable");
}

TEST(JobSetDefaults, let_claims_go_with_their_set) {
  json::value set = must_parse(R"({"spec": {"volumeClaimPolicies": [{},
      {"retentionPolicy": {"whenDeleted": "Retain"}}]}})");
  set_defaults(set);
  EXPECT_EQ(json::get_array(set, {"spec", "volumeClaimPolicies"}),
            must_parse(R"([{"retentionPolicy": {"whenDeleted": "Delete"}},
                           {"retentionPolicy": {"whenDeleted": "Retain"}}])")
                .as_array());
}

TEST(JobSetClaims, have_names_of_253_characters_at_most) {
  const auto causes = [](std::size_t length) {
    json::value set = must_parse(R"({"metadata": {"name": "s"}, "spec": {"replicatedJobs": [
        {"template": {"spec": {"template": {"spec": {"containers": [
            {"volumeMounts": [{}]}]}}}}}]}})");
    const json::string name(std::string(length, 'a'));
    json::set(set, {"spec", "volumeClaimPolicies"},
              json::array{{{"templates", {{{"metadata", {{"name", name}}}}}}}});
    api::Causes out;
    check_claims(set, out);
    return std::ranges::count_if(out, [](const auto& cause) {
      return cause.message.find("template name is too long") != std::string::npos;
    });
  };
  EXPECT_EQ(causes(251), 0);
  EXPECT_EQ(causes(252), 1);
}

}  // namespace
}  // namespace skiff::jobsets
