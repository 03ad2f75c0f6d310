// Jobs of older versions: what they become in v1, and that nothing is lost either way.
#include <gtest/gtest.h>

#include "features/training/engine/defaults.h"
#include "features/training/engine/validation.h"
#include "features/training/kinds/kinds.h"
#include "features/training/kinds/legacy/kept_fields.h"
#include "features/training/kinds/mpi/mpi.h"
#include "features/training/kinds/pytorch/pytorch.h"
#include "features/training/kinds/tensorflow/tensorflow.h"
#include "features/training/testing/builders.h"

namespace skiff::training {
namespace {

using testing::must_parse;

const OldVersion& legacy_version(const JobKind& kind, std::string_view name) {
  for (const OldVersion& old : kind.old_versions) {
    if (old.version == name) return old;
  }
  SKIFF_CHECK(false, "no such version");
  std::abort();
}

const OldVersion& first_tfjob() { return legacy_version(tensorflow(), "v1alpha1"); }

std::string pod(std::string_view container) {
  return fmt::format(R"({{"spec":{{"containers":[{{"name":"{}","image":"i"}}],)"
                     R"("restartPolicy":"OnFailure"}}}})",
                     container);
}

json::value role_list() {
  return must_parse(
      R"({"metadata":{"name":"a"},"spec":{"RuntimeId":"x7f2","schedulerName":"mine","replicaSpecs":[
      {"replicas":1,"tfReplicaType":"MASTER","template":)" +
      pod("tensorflow") + R"(},{"replicas":2,"tfReplicaType":"WORKER","tfPort":2300,"template":)" +
      pod("tensorflow") + R"(},{"replicas":2,"tfReplicaType":"PS","template":)" +
      pod("tensorflow") + "}]}}");
}

json::value there_and_back(const OldVersion& old, json::value object) {
  old.to_kept(object);
  old.from_kept(object);
  return object;
}

json::value back_and_there(const OldVersion& old, json::value object) {
  old.from_kept(object);
  old.to_kept(object);
  return object;
}

TEST(RoleList, BecomesRoles) {
  json::value job = role_list();
  first_tfjob().to_kept(job);
  const json::object& roles = json::get_object(job, {"spec", "tfReplicaSpecs"});
  ASSERT_EQ(roles.size(), 3u);
  const json::value& worker = roles.at("Worker");
  EXPECT_EQ(json::get_int(worker, {"replicas"}), 2);
  EXPECT_EQ(json::get_string(worker, {"restartPolicy"}), "OnFailure") << "as its template says";
  EXPECT_EQ(json::get_string(worker, {"template", "spec", "schedulerName"}), "mine");
  const json::value& port = worker.at_pointer("/template/spec/containers/0/ports/0");
  EXPECT_EQ(port, must_parse(R"({"name":"tfjob-port","containerPort":2300})"));
  EXPECT_EQ(json::get_string(job, {"spec", "runPolicy", "cleanPodPolicy"}), "Running");
  EXPECT_FALSE(json::get_object(job, {"spec"}).contains("replicaSpecs"));
  EXPECT_TRUE(validate_job(tensorflow(), job, {}).empty());
}

TEST(RoleList, ComesBackAsItWasWritten) {
  EXPECT_EQ(there_and_back(first_tfjob(), role_list()), role_list());
}

TEST(RoleList, OfNoTypeIsTheMaster) {
  json::value job =
      must_parse(R"({"spec":{"replicaSpecs":[{"template":)" + pod("pytorch") + "}]}}");
  legacy_version(pytorch(), "v1alpha1").to_kept(job);
  EXPECT_EQ(json::get_int(job, {"spec", "pytorchReplicaSpecs", "Master", "replicas"}), 1);
}

TEST(RoleList, WithATypeTwiceIsRefused) {
  json::value job = role_list();
  json::array& list = job.at_pointer("/spec/replicaSpecs").as_array();
  list.push_back(list[1]);
  first_tfjob().to_kept(job);
  const std::vector<Cause> causes = validate_job(tensorflow(), job, {});
  ASSERT_EQ(causes.size(), 1u);
  EXPECT_EQ(causes[0].field, "spec.tfReplicaSpecs[WORKER]");
}

TEST(RoleList, WithAnUnknownTypeIsRefused) {
  json::value job = role_list();
  job.at_pointer("/spec/replicaSpecs/1/tfReplicaType") = "HELPER";
  first_tfjob().to_kept(job);
  const std::vector<Cause> causes = validate_job(tensorflow(), job, {});
  ASSERT_EQ(causes.size(), 1u);
  EXPECT_EQ(causes[0].field, "spec.tfReplicaSpecs[HELPER]");
}

TEST(RoleList, OfAJobOfTodayLosesNothing) {
  const json::value job = testing::tfjob()
                              .role("Chief", 1, "ExitCode")
                              .role("Evaluator", 1)
                              .role("Worker", 3, "OnFailure")
                              .run("backoffLimit", 3)
                              .run("cleanPodPolicy", "All")
                              .spec("successPolicy", "AllWorkers")
                              .build();
  EXPECT_EQ(back_and_there(first_tfjob(), job), job);
  json::value shown = job;
  first_tfjob().from_kept(shown);
  EXPECT_EQ(json::get_string(shown.at_pointer("/spec/replicaSpecs/0"), {"tfReplicaType"}), "CHIEF");
  EXPECT_FALSE(json::get_object(shown, {"spec"}).contains("runPolicy"));
}

std::vector<json::value> jobs_of_few_words() {
  json::value restart_in_template = testing::tfjob().role("Worker", 1).build();
  json::set(restart_in_template,
            {"spec", "tfReplicaSpecs", "Worker", "template", "spec", "restartPolicy"}, "Always");
  return {testing::tfjob().role("Worker", 1).build(),
          testing::tfjob().role("Worker", 1).spec("runPolicy", json::object{}).build(),
          testing::tfjob().role("Worker", 1).run("cleanPodPolicy", "None").build(),
          testing::tfjob().role("Worker", 1).run("cleanPodPolicy", "Running").build(),
          testing::tfjob().role("Worker", 1).run("suspend", true).build(),
          restart_in_template};
}

TEST(OldVersions, ChangeNothingOfAJobThatSaysLittle) {
  for (const OldVersion& old : tensorflow().old_versions) {
    for (const json::value& job : jobs_of_few_words()) {
      EXPECT_EQ(back_and_there(old, job), job) << old.version;
    }
  }
}

TEST(OldVersions, TellThatV1CleansUpNothing) {
  json::value job = testing::tfjob().role("Worker", 1).build();
  legacy_version(tensorflow(), "v1beta1").from_kept(job);
  EXPECT_EQ(json::get_string(job, {"spec", "cleanPodPolicy"}), "None");
}

TEST(OldVersions, TakeNoFieldsFromAnAnnotationThatV1WouldRefuse) {
  for (const char* name : {"v1beta1", "v1alpha1"}) {
    json::value job = std::string_view(name) == "v1beta1"
                          ? must_parse(R"({"metadata":{},"spec":{}})")
                          : role_list();
    const json::object bad{{"runPolicy", "x"}, {"tfReplicaSpecs", json::object{{"Worker", 7}}}};
    keep_fields(job, kNewerFields,
                std::string_view(name) == "v1beta1" ? bad : json::object{{"spec", bad}});
    legacy_version(tensorflow(), name).to_kept(job);
    EXPECT_TRUE(json::find(job, {"spec", "runPolicy"})->is_object()) << name;
    EXPECT_EQ(json::find(job, {"spec", "tfReplicaSpecs", "Worker", "replicas"}) != nullptr,
              std::string_view(name) == "v1alpha1");
  }
}

TEST(RoleList, WhosePortWasChangedInV1HasOnePort) {
  json::value job = role_list();
  first_tfjob().to_kept(job);
  const auto port = [&]() -> json::value& {
    return job.at_pointer("/spec/tfReplicaSpecs/Worker/template/spec/containers/0/ports");
  };
  port().as_array()[0].as_object()["containerPort"] = 2400;
  first_tfjob().from_kept(job);
  first_tfjob().to_kept(job);
  ASSERT_EQ(port().as_array().size(), 1u);
  EXPECT_EQ(port().at_pointer("/0/containerPort"), 2400);
}

TEST(RoleList, ThatSomebodyHasScaledInV1IsShownSo) {
  json::value job = role_list();
  first_tfjob().to_kept(job);
  json::set(job, {"spec", "tfReplicaSpecs", "Worker", "replicas"}, 5);
  first_tfjob().from_kept(job);
  EXPECT_EQ(job.at_pointer("/spec/replicaSpecs/1/replicas"), 5);
}

struct PhaseCase {
  const char* sentence;
  const char* conditions;
  const char* phase;
  const char* state;
};

class RoleListPhase : public ::testing::TestWithParam<PhaseCase> {};

TEST_P(RoleListPhase, Is) {
  json::value job = testing::tfjob().role("Worker", 2).build();
  json::set(job, {"status", "conditions"}, must_parse(GetParam().conditions));
  json::set(job, {"status", "replicaStatuses"},
            must_parse(R"({"Worker":{"active":1,"succeeded":1}})"));
  const json::value kept = job;
  first_tfjob().from_kept(job);
  EXPECT_EQ(json::get_string(job, {"status", "phase"}), GetParam().phase) << GetParam().sentence;
  EXPECT_EQ(json::get_string(job, {"status", "state"}), GetParam().state) << GetParam().sentence;
  EXPECT_EQ(job.at_pointer("/status/replicaStatuses"),
            must_parse(R"([{"tf_replica_type":"WORKER","state":"Running",
                            "ReplicasStates":{"Running":1,"Succeeded":1}}])"));
  first_tfjob().to_kept(job);
  EXPECT_EQ(job.at("status"), kept.at("status"));
}

INSTANTIATE_TEST_SUITE_P(
    All, RoleListPhase,
    ::testing::Values(
        PhaseCase{"new", "[]", "", "Unknown"},
        PhaseCase{"taken up", R"([{"type":"Created","status":"True"}])", "Creating", "Running"},
        PhaseCase{"runs",
                  R"([{"type":"Created","status":"True"},{"type":"Running","status":"True"}])",
                  "Running", "Running"},
        PhaseCase{"done",
                  R"([{"type":"Running","status":"False"},{"type":"Succeeded","status":"True"}])",
                  "Done", "Succeeded"},
        PhaseCase{"failed", R"([{"type":"Failed","status":"True","message":"why"}])", "Done",
                  "Failed"}));

TEST(RoleListStatus, TellsWhyAJobHasFailed) {
  json::value job = testing::tfjob().role("Worker", 1).build();
  json::set(job, {"status", "conditions"},
            must_parse(R"([{"type":"Failed","status":"True","message":"why"}])"));
  first_tfjob().from_kept(job);
  EXPECT_EQ(json::get_string(job, {"status", "reason"}), "why");
}

json::value flat() {
  return must_parse(R"({"metadata":{"name":"a"},"spec":{"cleanPodPolicy":"All",
      "ttlSecondsAfterFinished":60,"activeDeadlineSeconds":9,"backoffLimit":2,
      "tfReplicaSpecs":{"Worker":{"replicas":4,"template":)" +
                    pod("tensorflow") + "}}}}");
}

TEST(FlatPolicy, BecomesARunPolicy) {
  json::value job = flat();
  legacy_version(tensorflow(), "v1beta1").to_kept(job);
  EXPECT_EQ(job.at_pointer("/spec/runPolicy"),
            must_parse(R"({"cleanPodPolicy":"All","ttlSecondsAfterFinished":60,
                           "activeDeadlineSeconds":9,"backoffLimit":2})"));
  EXPECT_EQ(json::get_object(job, {"spec"}).size(), 2u);
}

TEST(FlatPolicy, CleansUpWhatRunsWhereNobodySays) {
  json::value job = flat();
  job.at("spec").as_object().erase("cleanPodPolicy");
  legacy_version(tensorflow(), "v1beta1").to_kept(job);
  EXPECT_EQ(json::get_string(job, {"spec", "runPolicy", "cleanPodPolicy"}), "Running");
}

TEST(FlatPolicy, ComesBackAsItWasWritten) {
  for (const char* name : {"v1alpha2", "v1beta1", "v1beta2"}) {
    EXPECT_EQ(there_and_back(legacy_version(tensorflow(), name), flat()), flat()) << name;
  }
}

TEST(FlatPolicy, OfAJobOfTodayLosesNothing) {
  const json::value job = testing::tfjob()
                              .role("Worker", 3)
                              .run("suspend", true)
                              .run("cleanPodPolicy", "None")
                              .spec("enableDynamicWorker", true)
                              .status(must_parse(R"({"replicaStatuses":{"Worker":{"active":1}}})"))
                              .build();
  for (const char* name : {"v1alpha2", "v1beta1", "v1beta2"}) {
    EXPECT_EQ(back_and_there(legacy_version(tensorflow(), name), job), job) << name;
  }
}

TEST(FlatPolicy, CallsStatusesAsTheVersionDoes) {
  json::value job = testing::tfjob().role("Worker", 1).build();
  json::set(job, {"status", "replicaStatuses"}, json::object{{"Worker", json::object{}}});
  legacy_version(tensorflow(), "v1alpha2").from_kept(job);
  EXPECT_TRUE(json::get_object(job, {"status"}).contains("tfReplicaStatuses"));
}

const OldVersion& first_torchjob() { return legacy_version(pytorch(), "v1alpha1"); }

json::value torch_list() {
  return must_parse(
      R"({"metadata":{"name":"a"},"spec":{"backend":"tcp","masterPort":"23456","replicaSpecs":[
      {"replicas":1,"replicaType":"MASTER","template":)" +
      pod("pytorch") + R"(},{"replicas":2,"replicaType":"WORKER","template":)" + pod("pytorch") +
      "}]}}");
}

// What is said of a list, as its version says it.
std::vector<std::string> said_of(const OldVersion& old, json::value job,
                                 std::string_view subresource = {}) {
  old.to_kept(job);
  std::vector<std::string> out;
  for (const Cause& cause : old.validate(job, {.subresource = subresource})) {
    out.push_back(cause.field + ": " + cause.message);
  }
  return out;
}

struct ListRule {
  const char* sentence;
  const char* at;     // a pointer into the list of a good job
  const char* value;  // what stands there then
  const char* expected;
};

class RoleListRules : public ::testing::TestWithParam<ListRule> {};

TEST_P(RoleListRules, NameTheFieldAsTheVersionSpellsIt) {
  json::value job = role_list();
  ASSERT_EQ(said_of(first_tfjob(), job), std::vector<std::string>{});
  const std::string_view at = GetParam().at;
  const std::size_t last = at.rfind('/');
  job.at_pointer(at.substr(0, last)).as_object()[at.substr(last + 1)] =
      must_parse(GetParam().value);
  const std::vector<std::string> said = said_of(first_tfjob(), job);
  ASSERT_EQ(said.size(), 1u) << GetParam().sentence;
  EXPECT_TRUE(said[0].starts_with(GetParam().expected)) << GetParam().sentence << ": " << said[0];
}

INSTANTIATE_TEST_SUITE_P(
    All, RoleListRules,
    ::testing::Values(
        ListRule{"there is a role", "/spec/replicaSpecs", "[]",
                 "spec.replicaSpecs: Required value: must hold at least one role"},
        ListRule{"a type is known", "/spec/replicaSpecs/1/tfReplicaType", R"("HELPER")",
                 "spec.replicaSpecs[1].tfReplicaType: Unsupported value: \"HELPER\": supported "
                 "values: \"CHIEF\", \"MASTER\", \"PS\", \"WORKER\", \"EVALUATOR\""},
        ListRule{"a type stands once", "/spec/replicaSpecs/2/tfReplicaType", R"("WORKER")",
                 "spec.replicaSpecs[2].tfReplicaType: Duplicate value"},
        ListRule{"there is one master", "/spec/replicaSpecs/0/replicas", "2",
                 "spec.replicaSpecs[0].replicas: Invalid value: 2: must be 1"},
        ListRule{"a role has a template", "/spec/replicaSpecs/2/template", "{}",
                 "spec.replicaSpecs[2].template.spec.containers: Required value: must hold at "
                 "least one container"},
        ListRule{"a container has an image",
                 "/spec/replicaSpecs/1/template/spec/containers/0/image", R"("")",
                 "spec.replicaSpecs[1].template.spec.containers[0].image: Required value"},
        ListRule{"one container trains", "/spec/replicaSpecs/1/template/spec/containers/0/name",
                 R"("main")",
                 "spec.replicaSpecs[1].template.spec.containers: Required value: must hold a "
                 "container named tensorflow"},
        ListRule{"who decides is there", "/spec/terminationPolicy",
                 R"({"chief":{"replicaName":"BOSS","replicaIndex":0}})",
                 "spec.terminationPolicy.chief.replicaName: Invalid value: \"BOSS\": must be the "
                 "type of one of replicaSpecs"},
        ListRule{"a name is a label", "/metadata/name", R"("A")",
                 "metadata.name: Invalid value: \"A\""}));

TEST(RoleListRules, LetPassWhoDecidesWhereThatRoleIsThere) {
  for (const char* name : {"MASTER", "WORKER", "PS", "worker"}) {
    json::value job = role_list();
    json::set(job, {"spec", "terminationPolicy", "chief", "replicaName"}, name);
    EXPECT_EQ(said_of(first_tfjob(), job), std::vector<std::string>{}) << name;
  }
}

TEST(RoleListRules, OfPyTorchSayEachThingOnce) {
  json::value job = torch_list();
  EXPECT_EQ(said_of(first_torchjob(), job), std::vector<std::string>{}) << "text for a port, too";
  job.at_pointer("/spec/replicaSpecs/0/replicas") = 2;
  EXPECT_EQ(said_of(first_torchjob(), job),
            (std::vector<std::string>{"spec.replicaSpecs[0].replicas: Invalid value: 2: must be "
                                      "1"}));
  job = torch_list();
  json::set(job, {"spec", "terminationPolicy", "master", "replicaName"}, "CHIEF");
  EXPECT_EQ(said_of(first_torchjob(), job),
            (std::vector<std::string>{"spec.terminationPolicy.master.replicaName: Invalid value: "
                                      "\"CHIEF\": must be the type of one of replicaSpecs"}));
}

TEST(RoleListRules, LeaveTheStatusToTheEngine) {
  json::value job = role_list();
  job.at_pointer("/spec/replicaSpecs/0/replicas") = 2;
  EXPECT_EQ(said_of(first_tfjob(), job, "status"), std::vector<std::string>{});
}

TEST(RoleListRules, AreThoseOfTheServedVersion) {
  int found = 0;
  for (const Framework& framework : frameworks()) {
    for (const Served& served : framework.versions) {
      // The first version of MPIJob is no list of roles.
      if (served.api.resource.version != "v1alpha1" || framework.job == &mpi()) continue;
      ++found;
      EXPECT_EQ(served.api.validate, legacy_version(*framework.job, "v1alpha1").validate);
    }
  }
  EXPECT_EQ(found, 2) << "TFJob and PyTorchJob";
}

json::value flat_torch() {
  return must_parse(R"({"metadata":{"name":"a"},"spec":{"cleanPodPolicy":"All",
      "ttlSecondsAfterFinished":60,"activeDeadlineSeconds":9,"backoffLimit":2,
      "pytorchReplicaSpecs":{"Master":{"replicas":1,"template":)" +
                    pod("pytorch") + "}}}}");
}

TEST(FlatPolicy, OfPyTorchBecomesARunPolicyAndComesBack) {
  for (const char* name : {"v1alpha2", "v1beta1", "v1beta2"}) {
    json::value job = flat_torch();
    legacy_version(pytorch(), name).to_kept(job);
    EXPECT_EQ(job.at_pointer("/spec/runPolicy"),
              must_parse(R"({"cleanPodPolicy":"All","ttlSecondsAfterFinished":60,
                             "activeDeadlineSeconds":9,"backoffLimit":2})"))
        << name;
    EXPECT_TRUE(validate_job(pytorch(), job, {}).empty()) << name;
    legacy_version(pytorch(), name).from_kept(job);
    EXPECT_EQ(job, flat_torch()) << name;
  }
}

TEST(FlatPolicy, OfPyTorchCleansUpNothingWhereNobodySays) {
  json::value job = flat_torch();
  job.at("spec").as_object().erase("cleanPodPolicy");
  legacy_version(pytorch(), "v1beta1").to_kept(job);
  EXPECT_EQ(read_job(pytorch(), job).run.clean_pods, CleanPodPolicy::kNone);
  EXPECT_EQ(json::find(job, {"spec", "runPolicy", "cleanPodPolicy"}), nullptr);
}

TEST(FlatPolicy, OfPyTorchLosesNothingOfAJobOfToday) {
  const json::value job = testing::torchjob()
                              .role("Worker", 3)
                              .run("suspend", true)
                              .spec("nprocPerNode", "2")
                              .spec("elasticPolicy", json::object{{"minReplicas", 1}})
                              .status(must_parse(R"({"replicaStatuses":{"Worker":{"active":1}}})"))
                              .build();
  for (const char* name : {"v1alpha2", "v1beta1", "v1beta2"}) {
    EXPECT_EQ(back_and_there(legacy_version(pytorch(), name), job), job) << name;
  }
  json::value shown = job;
  legacy_version(pytorch(), "v1alpha2").from_kept(shown);
  EXPECT_TRUE(json::get_object(shown, {"status"}).contains("pytorchReplicaStatuses"));
}

TEST(KeptFields, ThatCannotBeReadAreDropped) {
  json::value object = must_parse(R"({"metadata":{"annotations":{"k":"{broken"}}})");
  EXPECT_TRUE(take_fields(object, "k").empty());
  EXPECT_EQ(object, must_parse(R"({"metadata":{}})"));
}

TEST(RoleList, WithARoleTakenOutForgetsWhatV1SaidOfIt) {
  const json::value job =
      testing::tfjob().role("Chief", 1, "ExitCode").role("Worker", 2, "ExitCode").build();
  json::value shown = job;
  first_tfjob().from_kept(shown);
  json::array& list = shown.at_pointer("/spec/replicaSpecs").as_array();
  ASSERT_EQ(list.size(), 2u);
  list.erase(list.begin());
  first_tfjob().to_kept(shown);
  const json::object& roles = json::get_object(shown, {"spec", "tfReplicaSpecs"});
  ASSERT_EQ(roles.size(), 1u);
  EXPECT_EQ(json::get_string(roles.at("Worker"), {"restartPolicy"}), "ExitCode");
}

}  // namespace
}  // namespace skiff::training
