#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "api/builtin.h"
#include "base/check.h"
#include "features/jobsets/feature.h"
#include "features/jobsets/jobset.h"
#include "features/jobsets/testing/parse.h"
#include "schema/check.h"
#include "schema/defaults.h"
#include "schema/registry.h"

namespace skiff::jobsets {
namespace {

using testing::must_parse;

// A good set of two parts.
json::value good() {
  return must_parse(R"({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
    "metadata": {"name": "train", "namespace": "team"},
    "spec": {"replicatedJobs": [
      {"name": "driver", "template": {"spec": {"completions": 1, "parallelism": 1, "template":
        {"spec": {"containers": [{"name": "main", "image": "work"}]}}}}},
      {"name": "worker", "replicas": 2, "template": {"spec": {"template":
        {"spec": {"containers": [{"name": "main", "image": "work"}]}}}}}]}})");
}

struct Admitted {
  Feature feature = make();
  schema::Registry registry{api::builtin_definitions()};

  Admitted() {
    for (auto& [name, schema] : feature.schemas) registry.add(name, schema);
  }
  // As the server does it: schema, defaults, rules.
  std::vector<std::string> complaints(json::value object, const json::value* old = nullptr,
                                      std::string_view subresource = {}) {
    const schema::SchemaPtr schema = registry.find(feature.kind.schema);
    std::vector<std::string> out;
    for (const Cause& cause : schema::check(registry, *schema, object)) {
      out.push_back(cause.field + ": " + cause.message);
    }
    schema::apply_defaults(registry, *schema, object);
    feature.kind.set_defaults(object);
    const api::Admission context{.old = old, .subresource = subresource};
    for (const Cause& cause : feature.kind.validate(object, context)) {
      out.push_back(cause.field + ": " + cause.message);
    }
    return out;
  }
};

struct BadCase {
  std::string_view name = {};
  std::vector<std::string> path = {};
  std::string_view value = {};
  std::string_view complaint = {};
};

std::ostream& operator<<(std::ostream& out, const BadCase& bad) { return out << bad.name; }

// Numbers are places in lists.
void put(json::value& at, std::span<const std::string> path, json::value leaf) {
  if (path.empty()) {
    at = std::move(leaf);
    return;
  }
  if (at.is_array()) return put(at.as_array()[std::stoul(path[0])], path.subspan(1), leaf);
  if (!at.is_object()) at.emplace_object();
  put(at.as_object()[path[0]], path.subspan(1), std::move(leaf));
}

struct BadJobSet : ::testing::TestWithParam<BadCase> {};

TEST_P(BadJobSet, is_refused_with_the_field_and_a_sentence) {
  Admitted admitted;
  json::value object = good();
  put(object, GetParam().path, must_parse(GetParam().value));
  const std::vector<std::string> complaints = admitted.complaints(object);
  const auto is = [&](const std::string& said) { return said.starts_with(GetParam().complaint); };
  EXPECT_TRUE(std::ranges::any_of(complaints, is))
      << (complaints.empty() ? "nothing was said" : complaints[0]);
}

INSTANTIATE_TEST_SUITE_P(
    All, BadJobSet,
    ::testing::Values(
        BadCase{"first_part_depends",
                {"spec", "replicatedJobs", "0", "dependsOn"},
                R"([{"name": "worker", "status": "Ready"}])",
                "spec.replicatedJobs[0].dependsOn: Forbidden: DependsOn can't be set for the first "
                "ReplicatedJob"},
        BadCase{"depends_on_a_later_part",
                {"spec", "replicatedJobs", "1", "dependsOn"},
                R"([{"name": "evaluator", "status": "Ready"}])",
                "spec.replicatedJobs[1].dependsOn[0]: Invalid value: \"evaluator\": replicatedJob: "
                "worker cannot depend on replicatedJob: evaluator"},
        BadCase{"order_and_dependence",
                {"spec"},
                R"({"startupPolicy": {"startupPolicyOrder": "InOrder"}, "replicatedJobs": [
                    {"name": "a", "template": {"spec": {"template": {"spec": {"containers": []}}}}},
                    {"name": "b", "dependsOn": [{"name": "a", "status": "Ready"}], "template":
                     {"spec": {"template": {"spec": {"containers": []}}}}}]})",
                "spec.replicatedJobs[1].dependsOn: Forbidden: StartupPolicy and DependsOn APIs are "
                "mutually exclusive"},
        BadCase{"dependence_on_what",
                {"spec", "replicatedJobs", "1", "dependsOn"},
                R"([{"name": "driver", "status": "Begun"}])",
                "spec.replicatedJobs[1].dependsOn[0].status: Unsupported value: \"Begun\""},
        BadCase{"too_many_dependences",
                {"spec", "replicatedJobs", "1", "dependsOn"},
                R"([{"name": "a", "status": "Ready"}, {"name": "b", "status": "Ready"},
                    {"name": "c", "status": "Ready"}, {"name": "d", "status": "Ready"},
                    {"name": "e", "status": "Ready"}, {"name": "f", "status": "Ready"}])",
                "spec.replicatedJobs[1].dependsOn: Too many: 6: must have at most 5 items"},
        BadCase{"dependence_on_itself",
                {"spec", "replicatedJobs", "1", "dependsOn"},
                R"([{"name": "worker", "status": "Ready"}])",
                "spec.replicatedJobs[1].dependsOn[0]: Invalid value: \"worker\": replicatedJob: "
                "worker cannot depend on replicatedJob: worker"},
        BadCase{"part_twice",
                {"spec", "replicatedJobs", "1", "name"},
                R"("driver")",
                "spec.replicatedJobs[1]: Duplicate value"},
        BadCase{"order",
                {"spec", "startupPolicy"},
                R"({"startupPolicyOrder": "Backwards"})",
                "spec.startupPolicy.startupPolicyOrder: Unsupported value: \"Backwards\""},
        BadCase{"strategy",
                {"spec", "failurePolicy"},
                R"({"restartStrategy": "Later"})",
                "spec.failurePolicy.restartStrategy: Unsupported value: \"Later\""},
        BadCase{"action",
                {"spec", "failurePolicy"},
                R"({"rules": [{"name": "r", "action": "Ignore"}]})",
                "spec.failurePolicy.rules[0].action: Unsupported value: \"Ignore\""},
        BadCase{"retention",
                {"spec", "volumeClaimPolicies"},
                R"([{"templates": [], "retentionPolicy": {"whenDeleted": "Perhaps"}}])",
                "spec.volumeClaimPolicies[0].retentionPolicy.whenDeleted: Unsupported value: "
                "\"Perhaps\""},
        BadCase{
            "suspend", {"spec", "suspend"}, R"("yes")", "spec.suspend: Invalid value: \"string\""},
        BadCase{"negative_replicas",
                {"spec", "replicatedJobs", "1", "replicas"},
                "-1",
                "spec.replicatedJobs[1].replicas: Invalid value: -1"},
        BadCase{"too_many_pods",
                {"spec", "replicatedJobs", "1", "template", "spec", "parallelism"},
                "2147483647",
                "spec.replicatedJobs[1].replicas: Invalid value: 2: the product of replicas and "
                "parallelism must not exceed 2147483647 for replicatedJob 'worker'"},
        BadCase{"no_template",
                {"spec", "replicatedJobs", "1"},
                R"({"name": "x"})",
                "spec.replicatedJobs[1].template: Required value"},
        BadCase{"bad_group",
                {"spec", "replicatedJobs", "1", "groupName"},
                R"("A_b")",
                "spec.replicatedJobs[1].groupName: Invalid value: \"A_b\": a DNS-1035 label"},
        BadCase{"long_name",
                {"metadata", "name"},
                R"("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")",
                "spec.replicatedJobs[0].name: Invalid value: "
                "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-driver-0\": "
                "JobSet name is too long, job names generated for this JobSet will exceed 63 "
                "characters"},
        BadCase{"long_pod_name",
                {"metadata", "name"},
                R"("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")",
                "spec.replicatedJobs[0].name: Invalid value: "
                "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-driver-0\": JobSet name is "
                "too long, pod names generated for this JobSet will exceed 63 characters"},
        BadCase{"subdomain",
                {"spec", "network"},
                R"({"subdomain": "Mesh"})",
                "spec.network.subdomain: Invalid value: \"Mesh\": a DNS-1035 label"},
        BadCase{"managed_by",
                {"spec", "managedBy"},
                R"("me")",
                "spec.managedBy: Invalid value: \"me\": must be a domain-prefixed path"},
        BadCase{"success_target",
                {"spec", "successPolicy"},
                R"({"operator": "All", "targetReplicatedJobs": ["ghost"]})",
                "spec.successPolicy.targetReplicatedJobs[0]: Invalid value: \"ghost\": invalid "
                "replicatedJob name 'ghost' does not appear in .spec.ReplicatedJobs"},
        BadCase{"success_operator",
                {"spec", "successPolicy"},
                R"({"operator": "Most"})",
                "spec.successPolicy.operator: Unsupported value: \"Most\""},
        BadCase{"failure_target",
                {"spec", "failurePolicy"},
                R"({"rules": [{"name": "r", "action": "FailJobSet",
                               "targetReplicatedJobs": ["ghost"]}]})",
                "spec.failurePolicy.rules[0].targetReplicatedJobs[0]: Invalid value: \"ghost\": "
                "invalid replicatedJob name 'ghost' in failure policy does not appear in "
                ".spec.ReplicatedJobs"},
        BadCase{
            "failure_reason",
            {"spec", "failurePolicy"},
            R"({"rules": [{"action": "FailJobSet", "onJobFailureReasons": ["Bored"]}]})",
            "spec.failurePolicy.rules[0].onJobFailureReasons: Invalid value: \"Bored\": invalid "
            "job failure reason 'Bored'"},
        BadCase{
            "failure_pattern",
            {"spec", "failurePolicy"},
            R"({"rules": [{"action": "FailJobSet", "onJobFailureMessagePatterns": ["(a"]}]})",
            "spec.failurePolicy.rules[0].onJobFailureMessagePatterns[0]: Invalid value: \"(a\": "
            "error parsing regexp"},
        BadCase{"rule_name",
                {"spec", "failurePolicy"},
                R"({"rules": [{"name": "1st", "action": "FailJobSet"}]})",
                "spec.failurePolicy.rules[0].name: Invalid value: \"1st\": invalid failure policy "
                "rule name '1st'"},
        BadCase{
            "rule_names_twice",
            {"spec", "failurePolicy"},
            R"({"rules": [{"name": "r", "action": "FailJobSet"},
                              {"name": "r", "action": "RestartJobSet"}]})",
            "spec.failurePolicy.rules[1].name: Invalid value: \"r\": rule names are not unique, "
            "rules with indices [0 1] all have the same name 'r'"},
        BadCase{"one_job_restarts",
                {"spec", "failurePolicy"},
                R"({"rules": [{"action": "RestartJob"}]})",
                "spec.failurePolicy.rules[0].action: Forbidden: RestartJob and "
                "RestartJobAndIgnoreMaxRestarts failure policy actions are not allowed"},
        BadCase{"in_place",
                {"spec", "failurePolicy"},
                R"({"restartStrategy": "InPlaceRestart"})",
                "spec.failurePolicy.restartStrategy: Forbidden: InPlaceRestart"},
        BadCase{"coordinator_part",
                {"spec", "coordinator"},
                R"({"replicatedJob": "ghost"})",
                "spec.coordinator.replicatedJob: Invalid value: \"ghost\": coordinator "
                "replicatedJob ghost does not exist"},
        BadCase{"coordinator_job",
                {"spec", "coordinator"},
                R"({"replicatedJob": "driver", "jobIndex": 1})",
                "spec.coordinator.jobIndex: Invalid value: 1: coordinator job index 1 is invalid "
                "for replicatedJob driver"},
        BadCase{"coordinator_pod",
                {"spec", "coordinator"},
                R"({"replicatedJob": "driver", "podIndex": 1})",
                "spec.coordinator.podIndex: Invalid value: 1: coordinator pod index 1 is invalid "
                "for replicatedJob driver job index 0"},
        BadCase{
            "coordinator_without_completions",
            {"spec", "coordinator"},
            R"({"replicatedJob": "worker"})",
            "spec.coordinator.replicatedJob: Invalid value: \"worker\": job for coordinator pod "
            "must be indexed completion mode, and completions number must be set"},
        BadCase{
            "claim_that_nobody_mounts",
            {"spec", "volumeClaimPolicies"},
            R"([{"templates": [{"metadata": {"name": "data"}}]}])",
            "spec.replicatedJobs: Invalid value: replicatedJob containers don't have a matching "
            "volumeMount: data from VolumeClaimPolicies"},
        BadCase{"claim_twice",
                {"spec", "volumeClaimPolicies"},
                R"([{"templates": [{"metadata": {"name": "data"}},
                                   {"metadata": {"name": "data"}}]}])",
                "spec.volumeClaimPolicies[0].templates[1].metadata.name: Invalid value: \"data\": "
                "names must be unique for VolumeClaimPolicies template"},
        BadCase{
            "claim_name",
            {"spec", "volumeClaimPolicies"},
            R"([{"templates": [{"metadata": {"name": "Data"}}]}])",
            "spec.volumeClaimPolicies[0].templates[0].metadata.name: Invalid value: \"Data\": a "
            "lowercase RFC 1123 subdomain"},
        BadCase{
            "claim_and_volume",
            {"spec"},
            R"({"volumeClaimPolicies": [{"templates": [{"metadata": {"name": "data"}}]}],
                    "replicatedJobs": [{"name": "a", "template": {"spec": {"template": {"spec": {
                      "volumes": [{"name": "data", "emptyDir": {}}], "containers": [
                        {"name": "m", "image": "i", "volumeMounts": [
                          {"name": "data", "mountPath": "/d"}]}]}}}}}]})",
            "spec.replicatedJobs[0].template.spec.template.spec.volumes[0].name: Invalid value: "
            "\"data\": volume name conflicts with VolumeClaimPolicy template name: data"},
        BadCase{"ttl",
                {"spec", "ttlSecondsAfterFinished"},
                "-1",
                "spec.ttlSecondsAfterFinished: Invalid value: -1"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(JobSetAdmission, takes_what_is_good) {
  Admitted admitted;
  EXPECT_EQ(admitted.complaints(good()), std::vector<std::string>{});
  json::value full = good();
  json::set(full, {"spec", "failurePolicy"}, must_parse(R"({"maxRestarts": 2, "rules": [
      {"action": "RestartJobSet", "onJobFailureReasons": ["PodFailurePolicy"]}]})"));
  json::set(full, {"spec", "coordinator"}, must_parse(R"({"replicatedJob": "driver"})"));
  json::set(full, {"spec", "managedBy"}, "kueue.x-k8s.io/multikueue");
  EXPECT_EQ(admitted.complaints(full), std::vector<std::string>{});
}

TEST(JobSetAdmission, fills_in_what_upstream_does) {
  json::value object = good();
  json::set(object, {"spec", "failurePolicy"}, must_parse(R"({"rules": [{}, {}]})"));
  set_defaults(object);
  EXPECT_EQ(json::get_string(object, {"spec", "successPolicy", "operator"}), "All");
  EXPECT_EQ(json::get_string(object, {"spec", "startupPolicy", "startupPolicyOrder"}), "AnyOrder");
  EXPECT_EQ(json::get_bool(object, {"spec", "network", "enableDNSHostnames"}), true);
  EXPECT_EQ(json::get_bool(object, {"spec", "network", "publishNotReadyAddresses"}), true);
  const json::value& first = parts(object)[0];
  EXPECT_EQ(json::get_int(first, {"replicas"}), 1);
  EXPECT_EQ(json::get_string(first, {"groupName"}), "default");
  EXPECT_EQ(json::get_string(first, {"template", "spec", "completionMode"}), "Indexed");
  EXPECT_EQ(json::get_string(first, {"template", "spec", "template", "spec", "restartPolicy"}),
            "OnFailure");
  const json::array& rules = json::get_array(object, {"spec", "failurePolicy", "rules"});
  EXPECT_EQ(json::get_string(rules[1], {"name"}), "failurePolicyRule1");
}

TEST(JobSetAdmission, keeps_what_was_said) {
  json::value object = good();
  json::set(object, {"spec", "network"}, must_parse(R"({"enableDNSHostnames": false})"));
  json::set(object, {"spec", "successPolicy"}, must_parse(R"({"operator": "Any"})"));
  set_defaults(object);
  EXPECT_EQ(json::get_bool(object, {"spec", "network", "enableDNSHostnames"}), false);
  EXPECT_EQ(json::get_string(object, {"spec", "successPolicy", "operator"}), "Any");
}

json::value defaulted(json::value object) {
  set_defaults(object);
  return object;
}

TEST(JobSetAdmission, lets_nobody_change_what_runs) {
  Admitted admitted;
  const json::value before = defaulted(good());
  const auto refuses = [&](std::initializer_list<std::string_view> path, std::string_view value,
                           std::string_view complaint) {
    json::value object = before;
    json::set(object, path, must_parse(value));
    const std::vector<std::string> said = admitted.complaints(object, &before);
    return said.size() == 1 && said[0].starts_with(complaint);
  };
  EXPECT_TRUE(refuses({"spec", "replicatedJobs"}, "[]", "spec.replicatedJobs: Invalid value"));
  EXPECT_TRUE(refuses({"spec", "managedBy"}, R"("a.b/c")", "spec.managedBy: Invalid value"));
  EXPECT_TRUE(refuses({"spec", "network", "subdomain"}, R"("x")", "spec.network: Invalid value"));
  EXPECT_TRUE(refuses({"spec", "successPolicy", "operator"}, R"("Any")", "spec.successPolicy: "));
  EXPECT_TRUE(refuses({"spec", "failurePolicy"}, R"({"maxRestarts": 3})", "spec.failurePolicy: "));
  json::value later = before;
  json::set(later, {"spec", "ttlSecondsAfterFinished"}, 30);
  json::set(later, {"spec", "suspend"}, true);
  EXPECT_EQ(admitted.complaints(later, &before), std::vector<std::string>{});
}

TEST(JobSetAdmission, lets_the_template_be_placed_anew_while_suspended) {
  Admitted admitted;
  json::value before = defaulted(good());
  json::value after = before;
  json::object& pod =
      json::make_object(json::make_object(after, {"spec"})["replicatedJobs"].as_array()[0],
                        {"template", "spec", "template"});
  json::make_object(pod, {"spec"})["nodeSelector"] = {{"pool", "gpu"}};
  json::make_object(pod, {"metadata"})["labels"] = {{"queue", "q"}};
  EXPECT_EQ(admitted.complaints(after, &before).size(), 1U) << "it runs";
  json::set(before, {"spec", "suspend"}, true);
  EXPECT_EQ(admitted.complaints(after, &before), std::vector<std::string>{}) << "and is resumed";
  json::make_object(pod, {"spec"})["serviceAccountName"] = "other";
  EXPECT_EQ(admitted.complaints(after, &before).size(), 1U) << "that is no matter of place";
}

TEST(JobSetAdmission, lets_node_affinity_change_while_suspended_and_no_other) {
  Admitted admitted;
  json::value before = defaulted(good());
  json::set(before, {"spec", "suspend"}, true);
  json::value after = before;
  json::object& spec =
      json::make_object(json::make_object(after, {"spec"})["replicatedJobs"].as_array()[0],
                        {"template", "spec", "template", "spec"});
  spec["affinity"] = must_parse(R"({"nodeAffinity":
      {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]}}})");
  EXPECT_EQ(admitted.complaints(after, &before), std::vector<std::string>{});
  EXPECT_EQ(admitted.complaints(before, &after), std::vector<std::string>{}) << "and go again";
  spec["affinity"] = must_parse(R"({"podAffinity":
      {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}})");
  EXPECT_EQ(admitted.complaints(after, &before).size(), 1U);
}

TEST(JobSetAdmission, leaves_the_status_to_the_controller) {
  Admitted admitted;
  const json::value before = defaulted(good());
  json::value after = before;
  json::set(after, {"spec", "managedBy"}, "bad");
  EXPECT_EQ(admitted.complaints(after, &before, "status"), std::vector<std::string>{});
}

}  // namespace
}  // namespace skiff::jobsets
