// Every rule that a training job must keep to be stored, as a table: what is wrong in the manifest,
// the field that is named and the sentence that is said. Rules of the schema and of validate()
// alike, each for every kind that has it.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

#include "base/strings.h"
#include "features/training/feature.h"
#include "features/training/kinds/kinds.h"
#include "features/training/testing/builders.h"
#include "schema/check.h"
#include "schema/merge_patch.h"

namespace skiff::training {
namespace {

using testing::must_parse;

struct RulesRule {
  const char* name;
  const char* kinds;  // separated by spaces; "all" where every kind has the rule
  const char* patch;  // what is changed in a good job. ROLES and NAME are the kind's own words
  const char* field;
  const char* message;        // its beginning
  const char* before = "{}";  // what the stored job differs in; only asked where `updates`
  bool updates = false;
};

void PrintTo(const RulesRule& rule, std::ostream* out) { *out << rule.name; }

std::string with_words(std::string_view text, const JobKind& kind) {
  std::string out(text);
  const std::pair<std::string, std::string> words[] = {
      {"ROLES", kind.replicas_field}, {"NAME", kind.container}, {"KIND", kind.resource.kind}};
  for (const auto& [word, meant] : words) {
    for (std::size_t at = out.find(word); at != std::string::npos; at = out.find(word)) {
      out.replace(at, word.size(), meant);
    }
  }
  return out;
}

json::value good_job(const JobKind& kind) {
  testing::JobBuilder builder(kind);
  if (kind.resource.kind == "XGBoostJob") builder.role("Master", 1);
  if (kind.resource.kind == "MPIJob") builder.role("Launcher", 1);
  return builder.role("Worker", 1).build();
}

const api::Kind& served(const Feature& feature, const JobKind& kind) {
  return *std::ranges::find(feature.kinds, kind.resource, &api::Kind::resource);
}

std::vector<Cause> judge(const JobKind& kind, const json::value& job, const json::value* old) {
  static const Feature kFeature = make();
  const api::Kind& api = served(kFeature, kind);
  const schema::Schema& schema = std::ranges::find(kFeature.schemas, api.schema, [](const auto& e) {
                                   return e.first;
                                 })->second;
  static const schema::Registry kRegistry;
  std::vector<Cause> causes = schema::check(kRegistry, schema, job);
  if (!causes.empty()) return causes;
  return api.validate(job, {.old = old});
}

bool concerns(const RulesRule& rule, const JobKind& kind) {
  if (std::string_view(rule.kinds) == "all") return true;
  const std::vector<std::string_view> kinds = split(rule.kinds, ' ');
  return std::ranges::find(kinds, kind.resource.kind) != kinds.end();
}

class Rules : public ::testing::TestWithParam<RulesRule> {};

TEST_P(Rules, NameTheFieldAndSayASentence) {
  const RulesRule& rule = GetParam();
  int asked = 0;
  for (const JobKind* kind : job_kinds()) {
    if (!concerns(rule, *kind)) continue;
    ++asked;
    json::value old = good_job(*kind);
    schema::apply_merge_patch(old, must_parse(with_words(rule.before, *kind)));
    json::value job = old;
    schema::apply_merge_patch(job, must_parse(with_words(rule.patch, *kind)));
    ASSERT_TRUE(judge(*kind, old, nullptr).empty()) << "the job before is good";
    const std::vector<Cause> causes = judge(*kind, job, rule.updates ? &old : nullptr);
    std::string said;
    for (const Cause& cause : causes) said += cause.field + ": " + cause.message + "\n";
    const std::string expected =
        with_words(rule.field, *kind) + ": " + with_words(rule.message, *kind);
    EXPECT_TRUE(said.starts_with(expected)) << kind->resource.kind << " says\n" << said;
    EXPECT_EQ(std::ranges::count(said, '\n'), 1) << kind->resource.kind << " says\n" << said;
  }
  EXPECT_GT(asked, 0) << "no kind has the rule";
}

constexpr const char* kAllButMpi = "TFJob PyTorchJob XGBoostJob JAXJob PaddleJob";
constexpr const char* kContainers = "spec.ROLES[Worker].template.spec.containers";

INSTANTIATE_TEST_SUITE_P(
    OfMetadata, Rules,
    ::testing::Values(
        RulesRule{"a name is a DNS label", "all", R"({"metadata":{"name":"1st"}})", "metadata.name",
                  "Invalid value: \"1st\": a DNS-1035 label must consist of"},
        RulesRule{"a name has no dots", "all", R"({"metadata":{"name":"a.b"}})", "metadata.name",
                  "Invalid value: \"a.b\": a DNS-1035 label must consist of"},
        RulesRule{
            "a name leaves room for its replicas", "TFJob PyTorchJob JAXJob PaddleJob",
            R"({"metadata":{"name":"aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeefffff"},
                 "spec":{"ROLES":{"Worker":{"replicas":11}}}})",
            "metadata.name",
            "Invalid value: \"aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeefffff\": too long: "
            "the replica aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeefffff-worker-10 would "
            "have a name of 65 characters, and a name may have 63"},
        RulesRule{"what a failure restarts is one of two", "all",
                  R"({"metadata":{"annotations":{"training.skiff.dev/restart":"job"}}})",
                  "metadata.annotations[training.skiff.dev/restart]",
                  "Unsupported value: \"job\": supported values: \"gang\", \"replica\""}));

INSTANTIATE_TEST_SUITE_P(
    OfTheRunPolicy, Rules,
    ::testing::Values(
        RulesRule{"who manages an MPIJob is one of three", "MPIJob",
                  R"({"spec":{"runPolicy":{"managedBy":"me"}}})", "spec.runPolicy.managedBy",
                  "Unsupported value: \"me\": supported values: \"kubeflow.org/mpi-operator\", "
                  "\"kubeflow.org/training-operator\", \"kueue.x-k8s.io/multikueue\""},
        RulesRule{
            "who manages is one of two", kAllButMpi, R"({"spec":{"runPolicy":{"managedBy":"me"}}})",
            "spec.runPolicy.managedBy",
            "Unsupported value: \"me\": supported values: \"kubeflow.org/training-operator\", "
            "\"kueue.x-k8s.io/multikueue\""},
        RulesRule{"who manages stays", "all",
                  R"({"spec":{"runPolicy":{"managedBy":"kueue.x-k8s.io/multikueue"}}})",
                  "spec.runPolicy.managedBy",
                  "Invalid value: \"kueue.x-k8s.io/multikueue\": field is immutable", "{}", true},
        RulesRule{"a queue stays once set", "all",
                  R"({"spec":{"runPolicy":{"schedulingPolicy":{"queue":"b"}}}})",
                  "spec.runPolicy.schedulingPolicy.queue",
                  "Invalid value: \"b\": field is immutable once set",
                  R"({"spec":{"runPolicy":{"schedulingPolicy":{"queue":"a"}}}})", true},
        RulesRule{"cleanPodPolicy is one of three", "all",
                  R"({"spec":{"runPolicy":{"cleanPodPolicy":"Some"}}})",
                  "spec.runPolicy.cleanPodPolicy",
                  "Unsupported value: \"Some\": supported values: \"None\", \"Running\", \"All\""},
        RulesRule{
            "a TTL is not negative", "all",
            R"({"spec":{"runPolicy":{"ttlSecondsAfterFinished":-1}}})",
            "spec.runPolicy.ttlSecondsAfterFinished",
            "Invalid value: -1: spec.runPolicy.ttlSecondsAfterFinished in body should be greater"},
        RulesRule{
            "a deadline is not negative", "all",
            R"({"spec":{"runPolicy":{"activeDeadlineSeconds":-1}}})",
            "spec.runPolicy.activeDeadlineSeconds",
            "Invalid value: -1: spec.runPolicy.activeDeadlineSeconds in body should be greater"},
        RulesRule{"a back-off limit is not negative", "all",
                  R"({"spec":{"runPolicy":{"backoffLimit":-1}}})", "spec.runPolicy.backoffLimit",
                  "Invalid value: -1: spec.runPolicy.backoffLimit in body should be greater"},
        RulesRule{
            "minAvailable is not negative", "all",
            R"({"spec":{"runPolicy":{"schedulingPolicy":{"minAvailable":-1}}}})",
            "spec.runPolicy.schedulingPolicy.minAvailable",
            "Invalid value: -1: spec.runPolicy.schedulingPolicy.minAvailable in body should be"},
        RulesRule{
            "a deadline is a number", "all",
            R"({"spec":{"runPolicy":{"activeDeadlineSeconds":"1h"}}})",
            "spec.runPolicy.activeDeadlineSeconds",
            "Invalid value: \"string\": spec.runPolicy.activeDeadlineSeconds in body must be of "
            "type integer"},
        RulesRule{
            "suspend is true or false", "all", R"({"spec":{"runPolicy":{"suspend":"yes"}}})",
            "spec.runPolicy.suspend",
            "Invalid value: \"string\": spec.runPolicy.suspend in body must be of type boolean"}));

INSTANTIATE_TEST_SUITE_P(
    OfTypesInTheRunPolicy, Rules,
    ::testing::Values(
        RulesRule{"a run policy is an object", "all", R"({"spec":{"runPolicy":"fast"}})",
                  "spec.runPolicy",
                  "Invalid value: \"string\": spec.runPolicy in body must be of type object"},
        RulesRule{
            "a TTL is a number", "all",
            R"({"spec":{"runPolicy":{"ttlSecondsAfterFinished":"1h"}}})",
            "spec.runPolicy.ttlSecondsAfterFinished",
            "Invalid value: \"string\": spec.runPolicy.ttlSecondsAfterFinished in body must be "
            "of type integer"},
        RulesRule{"a back-off limit is a number", "all",
                  R"({"spec":{"runPolicy":{"backoffLimit":"none"}}})",
                  "spec.runPolicy.backoffLimit",
                  "Invalid value: \"string\": spec.runPolicy.backoffLimit in body must be of type "
                  "integer"},
        RulesRule{"who manages is a name", "all", R"({"spec":{"runPolicy":{"managedBy":7}}})",
                  "spec.runPolicy.managedBy",
                  "Invalid value: \"integer\": spec.runPolicy.managedBy in body must be of type "
                  "string"},
        RulesRule{
            "a queue is a name", "all",
            R"({"spec":{"runPolicy":{"schedulingPolicy":{"queue":["a"]}}}})",
            "spec.runPolicy.schedulingPolicy.queue",
            "Invalid value: \"array\": spec.runPolicy.schedulingPolicy.queue in body must be of "
            "type string"},
        RulesRule{
            "the time to be scheduled in is not negative", "all",
            R"({"spec":{"runPolicy":{"schedulingPolicy":{"scheduleTimeoutSeconds":-1}}}})",
            "spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds",
            "Invalid value: -1: spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds in body "
            "should be greater"}));

INSTANTIATE_TEST_SUITE_P(
    OfRoles, Rules,
    ::testing::Values(
        RulesRule{"the roles are there", "all", R"({"spec":{"ROLES":null}})", "spec.ROLES",
                  "Required value"},
        RulesRule{"there is a role", "TFJob PyTorchJob JAXJob PaddleJob",
                  R"({"spec":{"ROLES":{"Worker":null}}})", "spec.ROLES",
                  "Required value: must hold at least one role"},
        RulesRule{"a role's name is known", "TFJob PyTorchJob XGBoostJob JAXJob PaddleJob",
                  R"({"spec":{"ROLES":{"Boss":{"template":{"spec":{"containers":[
                 {"name":"NAME","image":"i"}]}}}}}})",
                  "spec.ROLES[Boss]", "Unsupported value: \"Boss\": supported values: "},
        RulesRule{"a role is spelt as the API does", "PyTorchJob XGBoostJob JAXJob PaddleJob",
                  R"({"spec":{"ROLES":{"worker":{"template":{"spec":{"containers":[
                 {"name":"NAME","image":"i"}]}}}}}})",
                  "spec.ROLES[worker]", "Unsupported value: \"worker\": supported values: "},
        RulesRule{"a role in another case is the same role", "TFJob",
                  R"({"spec":{"ROLES":{"worker":{"template":{"spec":{"containers":[
                 {"name":"NAME","image":"i"}]}}}}}})",
                  "spec.ROLES[worker]", "Duplicate value: \"worker\""},
        RulesRule{"replicas are not negative", "all",
                  R"({"spec":{"ROLES":{"Worker":{"replicas":-1}}}})", "spec.ROLES.Worker.replicas",
                  "Invalid value: -1: spec.ROLES.Worker.replicas in body should be greater than or "
                  "equal to 0"},
        RulesRule{"there are not too many replicas", "TFJob PyTorchJob JAXJob PaddleJob",
                  R"({"spec":{"ROLES":{"Worker":{"replicas":10001}}}})", "spec.ROLES",
                  "Invalid value: 10001: a job may have 10000 replicas in all"},
        RulesRule{"replicas are a number", "all",
                  R"({"spec":{"ROLES":{"Worker":{"replicas":"two"}}}})",
                  "spec.ROLES.Worker.replicas",
                  "Invalid value: \"string\": spec.ROLES.Worker.replicas in body must be of type "
                  "integer"},
        RulesRule{"a role is an object", "all", R"({"spec":{"ROLES":{"Worker":2}}})",
                  "spec.ROLES.Worker",
                  "Invalid value: \"integer\": spec.ROLES.Worker in body must be of type object"},
        RulesRule{"a restart policy is one of four", "all",
                  R"({"spec":{"ROLES":{"Worker":{"restartPolicy":"Sometimes"}}}})",
                  "spec.ROLES.Worker.restartPolicy",
                  "Unsupported value: \"Sometimes\": supported values: \"Always\", \"OnFailure\", "
                  "\"Never\", \"ExitCode\""}));

INSTANTIATE_TEST_SUITE_P(
    OfContainers, Rules,
    ::testing::Values(
        RulesRule{"a role has a container", "all",
                  R"({"spec":{"ROLES":{"Worker":{"template":{"spec":{"containers":[]}}}}}})",
                  kContainers, "Required value: must hold at least one container"},
        RulesRule{"a role has a template", "all",
                  R"({"spec":{"ROLES":{"Worker":{"template":null}}}})", kContainers,
                  "Required value: must hold at least one container"},
        RulesRule{"a container has an image", "all",
                  R"({"spec":{"ROLES":{"Worker":{"template":{"spec":{"containers":[
                 {"name":"NAME","image":"i"},{"name":"other"}]}}}}}})",
                  "spec.ROLES[Worker].template.spec.containers[1].image",
                  "Required value: must name an image"},
        RulesRule{"one container has the framework's name", kAllButMpi,
                  R"({"spec":{"ROLES":{"Worker":{"template":{"spec":{"containers":[
                 {"name":"main","image":"i"}]}}}}}})",
                  kContainers, "Required value: must hold a container named NAME"}));

INSTANTIATE_TEST_SUITE_P(
    OfOneKind, Rules,
    ::testing::Values(
        RulesRule{"a TFJob has a chief or a master", "TFJob",
                  R"({"spec":{"ROLES":{
                 "Chief":{"template":{"spec":{"containers":[{"name":"NAME","image":"i"}]}}},
                 "Master":{"template":{"spec":{"containers":[{"name":"NAME","image":"i"}]}}}}}})",
                  "spec.ROLES", "Forbidden: a job may have a Chief or a Master, not both"},
        RulesRule{"successPolicy is one of two", "TFJob",
                  R"({"spec":{"successPolicy":"AnyWorker"}})", "spec.successPolicy",
                  "Unsupported value: \"AnyWorker\": supported values: \"\", \"AllWorkers\""},
        RulesRule{"there is one master", "PyTorchJob XGBoostJob",
                  R"({"spec":{"ROLES":{"Master":{"replicas":2,"template":{"spec":{"containers":[
                 {"name":"NAME","image":"i"}]}}}}}})",
                  "spec.ROLES[Master].replicas", "Invalid value: 2: must be 1"},
        RulesRule{"and it is said so", "PyTorchJob XGBoostJob",
                  R"({"spec":{"ROLES":{"Master":{"replicas":null,"template":{"spec":{"containers":[
                 {"name":"NAME","image":"i"}]}}}}}})",
                  "spec.ROLES[Master].replicas", "Required value: must be 1"},
        RulesRule{"workers are at least one", "PyTorchJob",
                  R"({"spec":{"ROLES":{"Worker":{"replicas":0}}}})", "spec.ROLES[Worker].replicas",
                  "Invalid value: 0: must be greater than or equal to 1"},
        RulesRule{"an elastic job has workers", "PyTorchJob PaddleJob",
                  R"({"spec":{"elasticPolicy":{},"ROLES":{"Worker":null,
                 "Master":{"replicas":1,"template":{"spec":{"containers":[
                 {"name":"NAME","image":"i"}]}}}}}})",
                  "spec.ROLES[Worker]", "Required value: an elasticPolicy needs a Worker role"},
        RulesRule{"its least is not more than its most", "PyTorchJob PaddleJob",
                  R"({"spec":{"elasticPolicy":{"minReplicas":3,"maxReplicas":2}}})",
                  "spec.elasticPolicy.minReplicas",
                  "Invalid value: 3: must not be greater than maxReplicas, 2"},
        RulesRule{"processes are given in one place", "PyTorchJob",
                  R"({"spec":{"nprocPerNode":"2","elasticPolicy":{"nProcPerNode":2}}})",
                  "spec.elasticPolicy.nProcPerNode",
                  "Forbidden: must not be used together with spec.nprocPerNode"},
        RulesRule{
            "a meeting is of a known kind", "PyTorchJob",
            R"({"spec":{"elasticPolicy":{"rdzvBackend":"zookeeper"}}})",
            "spec.elasticPolicy.rdzvBackend",
            "Unsupported value: \"zookeeper\": supported values: \"c10d\", \"etcd\", \"etcd-v2\""},
        RulesRule{
            "the least number of workers is not negative", "PyTorchJob PaddleJob",
            R"({"spec":{"elasticPolicy":{"minReplicas":-1}}})", "spec.elasticPolicy.minReplicas",
            "Invalid value: -1: spec.elasticPolicy.minReplicas in body should be greater than or "
            "equal to 0"},
        RulesRule{
            "the greatest number of workers is not negative", "PyTorchJob PaddleJob",
            R"({"spec":{"elasticPolicy":{"maxReplicas":-1}}})", "spec.elasticPolicy.maxReplicas",
            "Invalid value: -1: spec.elasticPolicy.maxReplicas in body should be greater than or "
            "equal to 0"},
        RulesRule{"processes are said in words", "PyTorchJob", R"({"spec":{"nprocPerNode":2}})",
                  "spec.nprocPerNode",
                  "Invalid value: \"integer\": spec.nprocPerNode in body must be of type string"},
        RulesRule{"workers are dynamic or not", "TFJob",
                  R"({"spec":{"enableDynamicWorker":"yes"}})", "spec.enableDynamicWorker",
                  "Invalid value: \"string\": spec.enableDynamicWorker in body must be of type "
                  "boolean"},
        RulesRule{
            "slots are not negative", "MPIJob", R"({"spec":{"slotsPerWorker":-1}})",
            "spec.slotsPerWorker",
            "Invalid value: -1: spec.slotsPerWorker in body should be greater than or equal to "
            "0"},
        RulesRule{
            "an MPI is a known one", "MPIJob", R"({"spec":{"mpiImplementation":"LAM"}})",
            "spec.mpiImplementation",
            "Unsupported value: \"LAM\": supported values: \"OpenMPI\", \"Intel\", \"MPICH\""},
        RulesRule{"a launcher is made at one of two times", "MPIJob",
                  R"({"spec":{"launcherCreationPolicy":"Later"}})", "spec.launcherCreationPolicy",
                  "Unsupported value: \"Later\": supported values: \"AtStartup\", "
                  "\"WaitForWorkersReady\""},
        RulesRule{"an MPIJob has a launcher", "MPIJob", R"({"spec":{"ROLES":{"Launcher":null}}})",
                  "spec.ROLES[Launcher]", "Required value: must have Launcher replica spec"},
        RulesRule{"an XGBoostJob has a master", "XGBoostJob",
                  R"({"spec":{"ROLES":{"Master":null}}})", "spec.ROLES[Master]",
                  "Required value: the tracker that workers meet at runs in the master"}));

TEST(Rules, LetAGoodJobPassOfEveryKind) {
  for (const JobKind* kind : job_kinds()) {
    const json::value job = good_job(*kind);
    EXPECT_TRUE(judge(*kind, job, nullptr).empty()) << kind->resource.kind;
    EXPECT_TRUE(judge(*kind, job, &job).empty()) << kind->resource.kind;
  }
}

struct Good {
  const char* sentence;
  const char* kind;
  const char* patch;
};

TEST(Rules, LetPassWhatIsAtTheirBounds) {
  const Good cases[] = {
      {"nothing is kept for no time", "TFJob",
       R"({"spec":{"runPolicy":{"ttlSecondsAfterFinished":0,"activeDeadlineSeconds":0,
           "backoffLimit":0,"schedulingPolicy":{"minAvailable":0}}}})"},
      {"a restart of the gang", "JAXJob",
       R"({"metadata":{"annotations":{"training.skiff.dev/restart":"gang"}}})"},
      {"a restart of the replica", "JAXJob",
       R"({"metadata":{"annotations":{"training.skiff.dev/restart":"replica"}}})"},
      {"as few as many", "PyTorchJob",
       R"({"spec":{"elasticPolicy":{"minReplicas":2,"maxReplicas":2}}})"},
      {"processes in the old place alone", "PyTorchJob",
       R"({"spec":{"elasticPolicy":{"nProcPerNode":2}}})"},
      {"the most replicas", "TFJob", R"({"spec":{"ROLES":{"Worker":{"replicas":10000}}}})"},
      {"a role without replicas", "TFJob", R"({"spec":{"ROLES":{"Worker":{"replicas":0}}}})"},
      {"a second container of any name", "TFJob",
       R"({"spec":{"ROLES":{"Worker":{"template":{"spec":{"containers":[
           {"name":"log","image":"i"},{"name":"NAME","image":"i"}]}}}}}})"}};
  for (const Good& good : cases) {
    for (const JobKind* kind : job_kinds()) {
      if (kind->resource.kind != good.kind) continue;
      json::value job = good_job(*kind);
      schema::apply_merge_patch(job, must_parse(with_words(good.patch, *kind)));
      const std::vector<Cause> causes = judge(*kind, job, nullptr);
      EXPECT_TRUE(causes.empty()) << good.sentence << ": " << causes.front().message;
    }
  }
}

TEST(Warnings, TellOfTheDeprecatedNumberOfProcesses) {
  static const Feature feature = make();
  const api::Kind& kind = served(feature, pytorch());
  json::value job = good_job(pytorch());
  EXPECT_TRUE(kind.warnings(job, {}).empty());
  json::set(job, {"spec", "elasticPolicy"}, {{"nProcPerNode", 2}});
  EXPECT_EQ(kind.warnings(job, {}),
            (std::vector<std::string>{
                "spec.elasticPolicy.nProcPerNode is deprecated, use spec.nprocPerNode instead"}));
  EXPECT_TRUE(kind.warnings(job, {.subresource = "status"}).empty()) << "the engine's own writes";
  EXPECT_TRUE(served(feature, tensorflow()).warnings(job, {}).empty()) << "no field of a TFJob";
}

}  // namespace
}  // namespace skiff::training
