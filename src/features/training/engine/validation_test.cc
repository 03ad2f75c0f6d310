#include "features/training/engine/validation.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/strings.h"
#include "features/training/testing/builders.h"

namespace skiff::training {
namespace {

using testing::JobBuilder;
using testing::must_parse;
using testing::tfjob;
using testing::torchjob;

struct ValidationCase {
  const char* sentence;
  const JobKind* kind;
  json::value job;
  std::vector<std::string> expected;  // "<field>: <message>" or its beginning
};

class Validation : public ::testing::TestWithParam<ValidationCase> {};

TEST_P(Validation, Says) {
  const std::vector<Cause> causes = validate_job(*GetParam().kind, GetParam().job, {});
  std::vector<std::string> said;
  for (const Cause& cause : causes) said.push_back(cause.field + ": " + cause.message);
  ASSERT_EQ(said.size(), GetParam().expected.size())
      << GetParam().sentence << ": " << join(said, " | ");
  for (std::size_t i = 0; i < said.size(); ++i) {
    EXPECT_TRUE(said[i].starts_with(GetParam().expected[i]))
        << GetParam().sentence << ": " << said[i];
  }
}

json::value with_containers(JobBuilder builder, std::string_view containers) {
  builder.role("Worker", 1)
      .role_field("Worker", "template", {{"spec", {{"containers", must_parse(containers)}}}});
  return builder.build();
}

json::value renamed(json::value job, std::string_view name) {
  json::set(job, {"metadata", "name"}, json::string(name));
  return job;
}

json::value without_replicas(json::value job, std::string_view field, std::string_view role) {
  job.at("spec").at(field).at(role).as_object().erase("replicas");
  return job;
}

const std::string kLong(55, 'a');

INSTANTIATE_TEST_SUITE_P(
    Shared, Validation,
    ::testing::Values(
        ValidationCase{"a plain job is good", &tensorflow(), tfjob().role("Worker", 2).build(), {}},
        ValidationCase{"a name must be a DNS label",
                       &tensorflow(),
                       renamed(tfjob().role("Worker", 1).build(), "Mnist.1"),
                       {"metadata.name: Invalid value: \"Mnist.1\": a DNS-1035 label must"}},
        ValidationCase{"a name must leave room for its replicas",
                       &tensorflow(),
                       renamed(tfjob().role("Worker", 11).build(), kLong),
                       {"metadata.name: Invalid value: \"" + kLong + "\": too long: the replica"}},
        ValidationCase{"as long as the replicas' names fit it is good",
                       &tensorflow(),
                       renamed(tfjob().role("PS", 1).build(), kLong),
                       {}},
        ValidationCase{"there must be a role",
                       &tensorflow(),
                       tfjob().build(),
                       {"spec.tfReplicaSpecs: Required value: must hold at least one role"}},
        ValidationCase{
            "a role needs a container",
            &tensorflow(),
            with_containers(tfjob(), "[]"),
            {"spec.tfReplicaSpecs[Worker].template.spec.containers: Required value: must hold at "
             "least one container"}},
        ValidationCase{
            "a container needs an image",
            &tensorflow(),
            with_containers(tfjob(), R"([{"name":"tensorflow"}])"),
            {"spec.tfReplicaSpecs[Worker].template.spec.containers[0].image: Required value"}},
        ValidationCase{
            "one container needs the framework's name",
            &tensorflow(),
            with_containers(tfjob(), R"([{"name":"main","image":"i"}])"),
            {"spec.tfReplicaSpecs[Worker].template.spec.containers: Required value: must hold a "
             "container named tensorflow"}},
        ValidationCase{
            "every mistake is told at once",
            &tensorflow(),
            with_containers(tfjob(), R"([{"name":"main"},{"name":"other"}])"),
            {"spec.tfReplicaSpecs[Worker].template.spec.containers[0].image: Required value",
             "spec.tfReplicaSpecs[Worker].template.spec.containers[1].image: Required value",
             "spec.tfReplicaSpecs[Worker].template.spec.containers: Required value"}},
        ValidationCase{
            "a job has no more replicas than we can keep",
            &tensorflow(),
            tfjob().role("Worker", 9'999).role("PS", 2).build(),
            {"spec.tfReplicaSpecs: Invalid value: 10001: a job may have 10000 replicas in all"}},
        ValidationCase{"ten thousand are allowed",
                       &tensorflow(),
                       tfjob().role("Worker", 9'999).role("PS", 1).build(),
                       {}},
        ValidationCase{"who manages a job must be known",
                       &tensorflow(),
                       tfjob().role("Worker", 1).run("managedBy", "somebody").build(),
                       {"spec.runPolicy.managedBy: Unsupported value: \"somebody\""}},
        ValidationCase{
            "MultiKueue is known",
            &pytorch(),
            torchjob().role("Worker", 1).run("managedBy", "kueue.x-k8s.io/multikueue").build(),
            {}}));

INSTANTIATE_TEST_SUITE_P(
    TFJob, Validation,
    ::testing::Values(
        ValidationCase{"roles may be written in lower case",
                       &tensorflow(),
                       tfjob().role("worker", 1).role("ps", 1).build(),
                       {}},
        ValidationCase{"but not twice",
                       &tensorflow(),
                       tfjob().role("worker", 1).role("Worker", 1).build(),
                       {"spec.tfReplicaSpecs[Worker]: Duplicate value"}},
        ValidationCase{"an unknown role is refused",
                       &tensorflow(),
                       tfjob().role("Worker", 1).role("Boss", 1).build(),
                       {"spec.tfReplicaSpecs[Boss]: Unsupported value: \"Boss\""}},
        ValidationCase{
            "a chief and a master are one too many",
            &tensorflow(),
            tfjob().role("Chief", 1).role("Master", 1).build(),
            {"spec.tfReplicaSpecs: Forbidden: a job may have a Chief or a Master, not both"}}));

INSTANTIATE_TEST_SUITE_P(
    PyTorchJob, Validation,
    ::testing::Values(
        ValidationCase{"a master and workers are good",
                       &pytorch(),
                       torchjob().role("Master", 1).role("Worker", 3).build(),
                       {}},
        ValidationCase{"roles must be written as the API does",
                       &pytorch(),
                       torchjob().role("worker", 1).build(),
                       {"spec.pytorchReplicaSpecs[worker]: Unsupported value: \"worker\""}},
        ValidationCase{"there is one master",
                       &pytorch(),
                       torchjob().role("Master", 2).build(),
                       {"spec.pytorchReplicaSpecs[Master].replicas: Invalid value: 2: must be 1"}},
        ValidationCase{
            "and it is said so",
            &pytorch(),
            without_replicas(torchjob().role("Master", 1).build(), "pytorchReplicaSpecs", "Master"),
            {"spec.pytorchReplicaSpecs[Master].replicas: Required value: must be 1"}},
        ValidationCase{
            "workers, if any, are at least one",
            &pytorch(),
            torchjob().role("Worker", 0).build(),
            {"spec.pytorchReplicaSpecs[Worker].replicas: Invalid value: 0: must be greater"}},
        ValidationCase{
            "a worker count may be left out",
            &pytorch(),
            without_replicas(torchjob().role("Worker", 1).build(), "pytorchReplicaSpecs", "Worker"),
            {}},
        ValidationCase{
            "an elastic job needs workers",
            &pytorch(),
            torchjob().role("Master", 1).spec("elasticPolicy", json::object{}).build(),
            {"spec.pytorchReplicaSpecs[Worker]: Required value: an elasticPolicy needs"}},
        ValidationCase{"its least is at most its greatest",
                       &pytorch(),
                       torchjob()
                           .role("Worker", 1)
                           .spec("elasticPolicy", {{"minReplicas", 4}, {"maxReplicas", 2}})
                           .build(),
                       {"spec.elasticPolicy.minReplicas: Invalid value: 4: must not be greater"}},
        ValidationCase{"processes are given once",
                       &pytorch(),
                       torchjob()
                           .role("Worker", 1)
                           .spec("elasticPolicy", {{"nProcPerNode", 2}, {"minReplicas", 1}})
                           .spec("nprocPerNode", "2")
                           .build(),
                       {"spec.elasticPolicy.nProcPerNode: Forbidden"}}));

std::vector<Cause> update(const JobKind& kind, const json::value& old, const json::value& now,
                          std::string_view subresource = {}) {
  return validate_job(kind, now, {.old = &old, .subresource = subresource});
}

TEST(Update, MayNotChangeWhoManagesAJob) {
  const json::value before = torchjob().role("Worker", 1).build();
  const json::value after =
      torchjob().role("Worker", 1).run("managedBy", "kueue.x-k8s.io/multikueue").build();
  for (const auto& [old, now] : {std::pair(before, after), std::pair(after, before)}) {
    const std::vector<Cause> causes = update(pytorch(), old, now);
    ASSERT_EQ(causes.size(), 1u);
    EXPECT_EQ(causes[0].field, "spec.runPolicy.managedBy");
    EXPECT_NE(causes[0].message.find("immutable"), std::string::npos);
  }
  EXPECT_TRUE(update(pytorch(), after, after).empty());
}

TEST(Update, MayNotChangeAQueueOnceSet) {
  const auto in_queue = [](const char* queue) {
    return tfjob()
        .role("Worker", 1)
        .run("schedulingPolicy", json::object{{"queue", queue}})
        .build();
  };
  const json::value none = tfjob().role("Worker", 1).build();
  EXPECT_TRUE(update(tensorflow(), none, in_queue("a")).empty());
  EXPECT_TRUE(update(tensorflow(), in_queue("a"), in_queue("a")).empty());
  EXPECT_EQ(update(tensorflow(), in_queue("a"), in_queue("b")).size(), 1u);
  EXPECT_EQ(update(tensorflow(), in_queue("a"), none).size(), 1u);
}

TEST(Update, OfTheStatusIsNotJudged) {
  const json::value bad = tfjob().build();
  EXPECT_TRUE(update(tensorflow(), bad, bad, "status").empty());
  EXPECT_FALSE(update(tensorflow(), bad, bad).empty());
}

TEST(Update, ByTheScaleEndpointIsJudgedAsAnyOther) {
  const json::value before = torchjob().role("Worker", 1).build();
  for (const auto& [replicas, field] : {std::pair(0, "spec.pytorchReplicaSpecs[Worker].replicas"),
                                        {10'001, "spec.pytorchReplicaSpecs"}}) {
    const json::value after = torchjob().role("Worker", replicas).build();
    const std::vector<Cause> causes = update(pytorch(), before, after, "scale");
    ASSERT_EQ(causes.size(), 1u) << replicas;
    EXPECT_EQ(causes[0].field, field);
  }
  const json::value good = torchjob().role("Worker", 7).build();
  EXPECT_TRUE(update(pytorch(), before, good, "scale").empty());
}

TEST(Validation, SurvivesAnyShape) {
  for (const char* text : {R"({})", R"({"spec":[]})", R"({"spec":{"tfReplicaSpecs":{"Worker":3}}})",
                           R"({"metadata":{"name":7},"spec":{"tfReplicaSpecs":{"Worker":
                           {"template":{"spec":{"containers":[1,null]}}}}}})"}) {
    const json::value job = must_parse(text);
    EXPECT_FALSE(validate_job(tensorflow(), job, {}).empty()) << text;
    EXPECT_FALSE(validate_job(pytorch(), job, {}).empty()) << text;
  }
}

}  // namespace
}  // namespace skiff::training
