#include "features/training/engine/observe.h"

#include <gtest/gtest.h>

#include "features/training/engine/defaults.h"
#include "features/training/testing/builders.h"

namespace skiff::training {
namespace {

using testing::replica_pod;

// One worker: its pod, what the job remembers, and what is found.
struct ObserveCase {
  const char* sentence;
  const char* restart = "OnFailure";
  const char* phase = nullptr;  // null: no pod
  bool deleting = false;
  std::int64_t attempt = 0;  // of the pod
  std::int64_t known_attempt = 0;
  bool started = false;
  bool succeeded = false;
  std::string expected = {};
};

std::string describe_counts(const Findings& findings, History& history) {
  std::string out;
  const auto add = [&](bool yes, std::string_view word) {
    if (yes) out += (out.empty() ? "" : " ") + std::string(word);
  };
  add(!findings.failed.empty(), "failed");
  add(!findings.lost.empty(), "lost");
  add(!findings.missing.empty(), "missing");
  add(!findings.leftovers.empty(), "leftover");
  add(findings.final_failures[0] > 0, "final");
  add(findings.states[0].running > 0, "running");
  add(findings.states[0].succeeded > 0, "succeeded");
  add(history.role("Worker").started.contains(0), "started");
  return out + fmt::format(" r{}", history.restarts);
}

class Observing : public ::testing::TestWithParam<ObserveCase> {};

TEST_P(Observing, FindsWhatBecameOfAReplica) {
  const ObserveCase& c = GetParam();
  const json::value root = testing::tfjob().role("Worker", 1, c.restart).build();
  const Job job = read_job(tensorflow(), root);
  std::vector<Object> pods;
  if (c.phase != nullptr) {
    json::value pod = replica_pod("worker", 0, c.phase);
    if (c.deleting) json::set(pod, {"metadata", "deletionTimestamp"}, "2026-11-15T12:00:02Z");
    if (c.attempt > 0) {
      json::set(pod, {"metadata", "annotations", kAttemptAnnotation},
                json::string(std::to_string(c.attempt)));
    }
    testing::set_exit_code(pod, "tensorflow", 1);
    pods.push_back(testing::share(std::move(pod)));
  }
  History history;
  if (c.known_attempt > 0) history.role("Worker").attempts[0] = c.known_attempt;
  history.restarts = c.known_attempt;
  if (c.started) history.role("Worker").started.insert(0);
  if (c.succeeded) history.role("Worker").succeeded.insert(0);
  const Findings findings = observe(job, sort_replicas(job, pods, {}), history);
  EXPECT_EQ(describe_counts(findings, history), c.expected) << c.sentence;
}

INSTANTIATE_TEST_SUITE_P(
    All, Observing,
    ::testing::Values(
        ObserveCase{.sentence = "a replica that never had a pod is missing",
                    .expected = "missing r0"},
        ObserveCase{.sentence = "one that had a pod and has none was lost",
                    .started = true,
                    .expected = "lost started r0"},
        ObserveCase{.sentence = "one that succeeded is done without a pod",
                    .started = true,
                    .succeeded = true,
                    .expected = "succeeded started r0"},
        ObserveCase{
            .sentence = "a waiting pod is started", .phase = "Pending", .expected = "started r0"},
        ObserveCase{
            .sentence = "a running pod runs", .phase = "Running", .expected = "running started r0"},
        ObserveCase{.sentence = "a success is remembered",
                    .phase = "Succeeded",
                    .expected = "succeeded started r0"},
        ObserveCase{.sentence = "a success counts also while the pod goes",
                    .phase = "Succeeded",
                    .deleting = true,
                    .expected = "succeeded r0"},
        ObserveCase{.sentence = "a failure under OnFailure is to be replaced",
                    .phase = "Failed",
                    .expected = "failed started r0"},
        ObserveCase{.sentence = "a failure under Never is final",
                    .restart = "Never",
                    .phase = "Failed",
                    .expected = "final started r0"},
        ObserveCase{
            .sentence = "a failure under ExitCode with a code of the program's own is final",
            .restart = "ExitCode",
            .phase = "Failed",
            .expected = "final started r0"},
        ObserveCase{.sentence = "a pod that is taken away while it runs is no failure",
                    .restart = "Never",
                    .phase = "Running",
                    .deleting = true,
                    .started = true,
                    .expected = "started r0"},
        ObserveCase{.sentence = "nor one that fails because it is taken away",
                    .restart = "Never",
                    .phase = "Failed",
                    .deleting = true,
                    .started = true,
                    .expected = "started r0"},
        ObserveCase{.sentence = "a failed pod that has been given up is only left over",
                    .phase = "Failed",
                    .attempt = 0,
                    .known_attempt = 1,
                    .expected = "leftover r1"},
        ObserveCase{.sentence = "and waited for once it goes",
                    .phase = "Failed",
                    .deleting = true,
                    .known_attempt = 1,
                    .expected = " r1"},
        ObserveCase{.sentence = "the pod of the present attempt is judged",
                    .phase = "Failed",
                    .attempt = 1,
                    .known_attempt = 1,
                    .expected = "failed started r1"},
        ObserveCase{.sentence = "a pod of an attempt that was not written down is believed",
                    .phase = "Running",
                    .attempt = 2,
                    .known_attempt = 1,
                    .expected = "running started r2"},
        ObserveCase{.sentence = "a failure after a success is ignored",
                    .restart = "Never",
                    .phase = "Failed",
                    .succeeded = true,
                    .expected = "succeeded started r0"}));

TEST(Observe, CountsRestartsInPlaceOnlyWhereALimitAsks) {
  json::value pod = replica_pod("worker", 0, "Running");
  json::set(pod, {"status", "containerStatuses"},
            testing::must_parse(R"([{"name":"tensorflow","restartCount":4}])"));
  const auto restarts = [&](const json::value& root) {
    const Job job = read_job(tensorflow(), root);
    History history;
    return observe(job, sort_replicas(job, {testing::share(pod)}, {}), history).in_place_restarts;
  };
  EXPECT_EQ(restarts(testing::tfjob().role("Worker", 1, "OnFailure").build()), 0);
  EXPECT_EQ(
      restarts(testing::tfjob().role("Worker", 1, "OnFailure").run("backoffLimit", 9).build()), 4);
  EXPECT_EQ(restarts(testing::tfjob().role("Worker", 1, "Never").run("backoffLimit", 9).build()),
            0);
}

}  // namespace
}  // namespace skiff::training
