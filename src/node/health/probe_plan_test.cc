#include "node/health/probe_plan.h"

#include <gtest/gtest.h>

namespace skiff::node {
namespace {

using std::chrono::seconds;

const Time kNow = *parse_time("2026-01-02T03:04:05Z");

json::value container(std::string_view probes) {
  return *json::parse(R"({"name":"main",)" + std::string(probes) + "}");
}

RunHealth run_of(std::string_view probes, KnownHealth known = {}) {
  return begin_run(container(probes), 0, kNow, known, kNow);
}

// Answers one probe after another, each a second after it began.
void take_answers(RunHealth& run, ProbeKind kind, std::string_view outcomes) {
  for (const char c : outcomes) {
    const auto outcome = c == '+'   ? ProbeOutcome::kSuccess
                         : c == '-' ? ProbeOutcome::kFailure
                                    : ProbeOutcome::kError;
    take_answer(run, kind, outcome, kNow, kNow + seconds(1));
  }
}

TEST(ProbeRules, AreKubernetesDefaultsWhereNothingIsGiven) {
  const ProbeRules rules = probe_rules(json::object());
  EXPECT_EQ(rules.initial_delay, seconds(0));
  EXPECT_EQ(rules.period, seconds(10));
  EXPECT_EQ(rules.timeout, seconds(1));
  EXPECT_EQ(rules.success_threshold, 1);
  EXPECT_EQ(rules.failure_threshold, 3);
}

TEST(ProbePlan, AContainerWithoutProbesIsStartedAndReady) {
  const Verdict verdict = judge(run_of(R"("image":"i")"));
  EXPECT_TRUE(verdict.started);
  EXPECT_TRUE(verdict.ready);
  EXPECT_FALSE(verdict.failed);
}

TEST(ProbePlan, ThresholdsDecideWhatARowOfAnswersMeans) {
  struct Case {
    const char* sentence;
    ProbeKind kind;
    const char* probe;
    const char* answers;
    bool started, ready, failed;
  };
  using enum ProbeKind;
  const Case kCases[] = {
      {"readiness begins as not passed", kReadiness, R"("readinessProbe":{})", "", true, false,
       false},
      {"one success is enough", kReadiness, R"("readinessProbe":{})", "+", true, true, false},
      {"two are needed where two are asked for", kReadiness,
       R"("readinessProbe":{"successThreshold":2})", "+", true, false, false},
      {"a failure between them starts the row anew", kReadiness,
       R"("readinessProbe":{"successThreshold":2})", "+-+", true, false, false},
      {"two successes in a row pass", kReadiness, R"("readinessProbe":{"successThreshold":2})",
       "-++", true, true, false},
      {"two failures of three change nothing", kReadiness, R"("readinessProbe":{})", "+--", true,
       true, false},
      {"three failures in a row take readiness away and kill nothing", kReadiness,
       R"("readinessProbe":{})", "+---", true, false, false},
      {"readiness comes back", kReadiness, R"("readinessProbe":{})", "+---+", true, true, false},
      {"errors count for nothing", kReadiness, R"("readinessProbe":{})", "+--???", true, true,
       false},
      {"liveness begins as passed", kLiveness, R"("livenessProbe":{})", "", true, true, false},
      {"liveness fails at its threshold", kLiveness, R"("livenessProbe":{"failureThreshold":2})",
       "--", true, true, true},
      {"liveness below its threshold is well", kLiveness, R"("livenessProbe":{})", "--", true, true,
       false},
      {"startup begins as not started", kStartup, R"("startupProbe":{})", "", false, false, false},
      {"startup passes", kStartup, R"("startupProbe":{})", "--+", true, true, false},
      {"startup fails at its threshold", kStartup, R"("startupProbe":{})", "---", false, false,
       true},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.sentence);
    RunHealth run = run_of(c.probe);
    take_answers(run, c.kind, c.answers);
    const Verdict verdict = judge(run);
    EXPECT_EQ(verdict.started, c.started);
    EXPECT_EQ(verdict.ready, c.ready);
    EXPECT_EQ(verdict.failed.has_value(), c.failed);
  }
}

TEST(ProbePlan, TheFirstProbeComesAfterTheInitialDelay) {
  const RunHealth run = run_of(R"("readinessProbe":{"initialDelaySeconds":7})");
  EXPECT_TRUE(probes_due(run, false, kNow + seconds(6)).due.empty());
  EXPECT_EQ(probes_due(run, false, kNow).next, kNow + seconds(7));
  EXPECT_EQ(probes_due(run, false, kNow + seconds(7)).due.size(), 1U);
}

TEST(ProbePlan, TheNextProbeComesAPeriodAfterTheOneBeforeBegan) {
  RunHealth run = run_of(R"("readinessProbe":{"periodSeconds":4})");
  take_answer(run, ProbeKind::kReadiness, ProbeOutcome::kSuccess, kNow, kNow + seconds(1));
  EXPECT_EQ(probes_due(run, false, kNow + seconds(1)).next, kNow + seconds(4));
  take_answer(run, ProbeKind::kReadiness, ProbeOutcome::kSuccess, kNow, kNow + seconds(9));
  EXPECT_EQ(probes_due(run, false, kNow + seconds(9)).due.size(), 1U);
}

TEST(ProbePlan, AProbeUnderWayIsNotBegunAgain) {
  RunHealth run = run_of(R"("readinessProbe":{})");
  run.probes[ProbeKind::kReadiness].busy = true;
  EXPECT_TRUE(probes_due(run, false, kNow + seconds(100)).due.empty());
}

TEST(ProbePlan, UntilTheContainerHasStartedOnlyStartupIsProbed) {
  RunHealth run = run_of(R"("startupProbe":{},"livenessProbe":{},"readinessProbe":{})");
  EXPECT_EQ(probes_due(run, false, kNow).due, std::vector{ProbeKind::kStartup});
  take_answers(run, ProbeKind::kStartup, "+");
  EXPECT_EQ(probes_due(run, false, kNow + seconds(50)).due,
            (std::vector{ProbeKind::kLiveness, ProbeKind::kReadiness}));
}

TEST(ProbePlan, AfterAFatalFailureTheRunIsNotProbedAgain) {
  RunHealth run = run_of(R"("livenessProbe":{"failureThreshold":1})");
  take_answers(run, ProbeKind::kLiveness, "-");
  EXPECT_TRUE(probes_due(run, false, kNow + seconds(100)).due.empty());
}

TEST(ProbePlan, OfADeletedPodOnlyReadinessIsProbed) {
  const RunHealth run = run_of(R"("livenessProbe":{},"readinessProbe":{})");
  EXPECT_EQ(probes_due(run, true, kNow).due, std::vector{ProbeKind::kReadiness});
}

TEST(ProbePlan, WhatAnEarlierSkiffHasWrittenStaysUntilAProbeSaysOtherwise) {
  const RunHealth run =
      run_of(R"("startupProbe":{},"readinessProbe":{})", {.started = true, .ready = true});
  EXPECT_TRUE(judge(run).ready);
  EXPECT_EQ(probes_due(run, false, kNow).due, std::vector{ProbeKind::kReadiness});
}

}  // namespace
}  // namespace skiff::node
