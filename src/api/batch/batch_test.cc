#include "api/batch/batch.h"

#include <gtest/gtest.h>

#include "api/test_kind.h"

namespace skiff::api {
namespace {

using testing::cells;
using testing::complaints;
using testing::defaulted;
using testing::Lines;
using testing::parsed;
using testing::warned;

std::string pod(std::string_view more = R"(,"restartPolicy":"Never")") {
  return R"("template":{"spec":{"containers":[{"name":"c","image":"i:1"}])" + std::string(more) +
         "}}";
}

std::string job(std::string_view more = "",
                std::string_view pod_more = R"(,"restartPolicy":"Never")") {
  return R"({"metadata":{"name":"sum","namespace":"default","uid":"u1"},"spec":{)" + pod(pod_more) +
         std::string(more) + "}}";
}

json::value stored_job(std::string_view more = "", std::string_view after = "") {
  std::string text = job(more);
  text.insert(text.size() - 1, after);
  json::value v = defaulted(job_kind(), text);
  job_kind().prepare(v, {});
  return v;
}

TEST(Job, Defaults) {
  const json::value v = defaulted(job_kind(), job());
  EXPECT_EQ(json::get_int(v, {"spec", "completions"}), 1);
  EXPECT_EQ(json::get_int(v, {"spec", "parallelism"}), 1);
  EXPECT_EQ(json::get_int(v, {"spec", "backoffLimit"}), 6);
  EXPECT_EQ(json::get_string(v, {"spec", "completionMode"}), "NonIndexed");
  EXPECT_EQ(json::get_string(v, {"spec", "podReplacementPolicy"}), "TerminatingOrFailed");
  EXPECT_EQ(json::get_bool(v, {"spec", "suspend"}), false);
  EXPECT_EQ(json::get_bool(v, {"spec", "manualSelector"}), false);
  const json::value queue = defaulted(job_kind(), job(R"(,"parallelism":3)"));
  EXPECT_EQ(json::find(queue, {"spec", "completions"}), nullptr);
  const json::value indexed = defaulted(
      job_kind(), job(R"(,"backoffLimitPerIndex":1,"podFailurePolicy":{"rules":[{"action":)"
                      R"("Ignore","onPodConditions":[{"type":"X"}]}]})"));
  EXPECT_EQ(json::get_int(indexed, {"spec", "backoffLimit"}), INT32_MAX);
  EXPECT_EQ(json::get_string(indexed, {"spec", "podReplacementPolicy"}), "Failed");
  EXPECT_NE(json::serialize(indexed).find(R"("onPodConditions":[{"type":"X","status":"True"}])"),
            std::string::npos);
}

TEST(Job, GetsItsSelectorFromItsUid) {
  const json::value v = stored_job();
  EXPECT_EQ(json::serialize(*json::find(v, {"spec", "selector"})),
            R"({"matchLabels":{"batch.kubernetes.io/controller-uid":"u1"}})");
  EXPECT_EQ(json::serialize(*json::find(v, {"spec", "template", "metadata", "labels"})),
            R"({"job-name":"sum","batch.kubernetes.io/job-name":"sum","controller-uid":"u1",)"
            R"("batch.kubernetes.io/controller-uid":"u1"})");
  // A job without labels has those of its pods.
  EXPECT_EQ(*json::find(v, {"metadata", "labels"}),
            *json::find(v, {"spec", "template", "metadata", "labels"}));
  EXPECT_EQ(complaints(job_kind(), job()), Lines{});
  json::value manual = defaulted(job_kind(), job(R"(,"manualSelector":true)"));
  job_kind().prepare(manual, {});
  EXPECT_EQ(json::find(manual, {"spec", "selector"}), nullptr);
}

TEST(Job, RefusesASelectorThatIsNotItsOwn) {
  const Lines lines = complaints(
      job_kind(), job(R"(,"selector":{"matchLabels":{"batch.kubernetes.io/controller-uid":"x"}})"));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], R"(spec.selector: Invalid value: {"matchLabels":{"batch.kubernetes.io/)"
                      R"(controller-uid":"x"}}: `selector` not auto-generated)");
  EXPECT_TRUE(lines[1].starts_with("spec.template.metadata.labels: Invalid value: {"));
}

TEST(Job, Rules) {
  EXPECT_EQ(complaints(job_kind(), job(R"(,"parallelism":-1,"backoffLimit":-2)")),
            (Lines{"spec.parallelism: Invalid value: -1: must be greater than or equal to 0",
                   "spec.backoffLimit: Invalid value: -2: must be greater than or equal to 0"}));
  EXPECT_EQ(complaints(job_kind(), job("", "")),
            Lines{R"(spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", )"
                  R"("Never")"});
  EXPECT_EQ(complaints(job_kind(), job(R"(,"completionMode":"X","maxFailedIndexes":1)")),
            (Lines{"spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified",
                   R"(spec.completionMode: Unsupported value: "X": supported values: )"
                   R"("NonIndexed", "Indexed")"}));
  EXPECT_EQ(complaints(job_kind(), job(R"(,"completionMode":"Indexed","parallelism":100001)")),
            (Lines{"spec.completions: Required value: when completion mode is Indexed",
                   "spec.parallelism: Invalid value: 100001: must be less than or equal to 100000 "
                   "when completion mode is Indexed"}));
  EXPECT_EQ(complaints(job_kind(), job(R"(,"managedBy":"me")")),
            Lines{R"(spec.managedBy: Invalid value: "me": must be a domain-prefixed path (such as )"
                  R"("acme.io/foo"))"});
  EXPECT_EQ(complaints(job_kind(), job(R"(,"podReplacementPolicy":"Always")")),
            Lines{R"(spec.podReplacementPolicy: Unsupported value: "Always": supported values: )"
                  R"("Failed", "TerminatingOrFailed")"});
}

TEST(Job, FailurePolicies) {
  const auto with = [](std::string_view rule) {
    return complaints(job_kind(),
                      job(R"(,"podFailurePolicy":{"rules":[)" + std::string(rule) + "]}"));
  };
  EXPECT_EQ(with(R"({"action":"Ignore","onExitCodes":{"operator":"In","values":[1,2]}})"), Lines{});
  EXPECT_EQ(
      with(R"({"onExitCodes":{"operator":"In","containerName":"x","values":[2,0,2]}})"),
      (Lines{R"(spec.podFailurePolicy.rules[0].action: Required value: valid values: )"
             R"(["Count" "FailIndex" "FailJob" "Ignore"])",
             R"(spec.podFailurePolicy.rules[0].onExitCodes.containerName: Invalid value: )"
             R"("x": must be one of the container or initContainer names in the pod template)",
             "spec.podFailurePolicy.rules[0].onExitCodes.values[1]: Invalid value: 0: must "
             "not be 0 for the In operator",
             "spec.podFailurePolicy.rules[0].onExitCodes.values[2]: Duplicate value: 2",
             "spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: [2,0,2]: "
             "must be ordered"}));
  EXPECT_EQ(with(R"({"action":"FailIndex"})"),
            (Lines{R"(spec.podFailurePolicy.rules[0].action: Invalid value: "FailIndex": requires )"
                   "the backoffLimitPerIndex to be set",
                   "spec.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes "
                   "and OnPodConditions is required"}));
}

TEST(Job, SuccessPolicies) {
  const auto with = [](std::string_view rules) {
    return complaints(job_kind(), job(R"(,"completionMode":"Indexed","completions":5,)"
                                      R"("successPolicy":{"rules":[)" +
                                      std::string(rules) + "]}"));
  };
  EXPECT_EQ(with(R"({"succeededIndexes":"0,2-4","succeededCount":2})"), Lines{});
  EXPECT_EQ(with(""), Lines{"spec.successPolicy.rules: Required value: at least one rules must be "
                            "specified when the successPolicy is specified"});
  EXPECT_EQ(
      with(R"({"succeededIndexes":"3-1"},{"succeededCount":9})"),
      (Lines{R"(spec.successPolicy.rules[0].succeededIndexes: Invalid value: "3-1": error )"
             "parsing succeededIndexes: non-increasing order, previous: 3, current: 1",
             "spec.successPolicy.rules[1].succeededCount: Invalid value: 9: must be less than "
             "or equal to 5 (the number of specified completions)"}));
}

TEST(Job, Indexes) {
  EXPECT_EQ(count_indexes("", 5), 0);
  EXPECT_EQ(count_indexes("0,2-4", 5), 4);
  const auto wrong = [](std::string_view text) { return count_indexes(text, 5).error().message; };
  EXPECT_EQ(wrong("5"), "too large index: \"5\"");
  EXPECT_EQ(wrong("a"), "cannot convert string to integer for index: \"a\"");
  EXPECT_EQ(wrong("2,1"), "non-increasing order, previous: 2, current: 1");
  EXPECT_EQ(wrong("1-2-3"),
            "the fragment \"1-2-3\" violates the requirement that an index interval can have at "
            "most two parts separated by '-'");
}

TEST(Job, LittleMayChange) {
  const json::value old = stored_job(R"(,"completions":2)");
  const auto change = [&](std::string_view field, json::value value) {
    json::value next = old;
    json::set(next, {"spec", field}, std::move(value));
    Lines out;
    for (const Cause& c : job_kind().validate(next, {.old = &old})) {
      out.push_back(c.field + ": " + c.message.substr(0, 40));
    }
    return out;
  };
  EXPECT_EQ(change("parallelism", 7), Lines{});
  EXPECT_EQ(change("suspend", true), Lines{});
  EXPECT_EQ(change("completions", 3),
            Lines{"spec.completions: Invalid value: 3: field is immutable"});
  EXPECT_EQ(change("managedBy", "a.org/b"),
            Lines{R"(spec.managedBy: Invalid value: "a.org/b": field is immut)"});
  json::value pods = *json::find(old, {"spec", "template"});
  json::set(pods, {"spec", "nodeSelector"}, json::object{{"a", "b"}});
  EXPECT_EQ(change("template", pods).size(), 1u);
  // While none runs, pods may still be sent elsewhere.
  json::value held = old;
  json::set(held, {"spec", "suspend"}, true);
  json::value next = held;
  json::set(next, {"spec", "template"}, pods);
  EXPECT_TRUE(job_kind().validate(next, {.old = &held}).empty());
}

TEST(Job, AnEndStaysAnEnd) {
  const auto status = [](std::string_view text) {
    return stored_job("", R"(,"status":)" + std::string(text));
  };
  const auto complaints_of = [](const json::value& next, const json::value& old) {
    Lines out;
    for (const Cause& c : job_kind().validate(next, {.old = &old, .subresource = "status"})) {
      out.push_back(c.field + ": " + c.message);
    }
    return out;
  };
  const std::string complete =
      R"({"startTime":"2026-01-01T00:00:00Z","completionTime":"2026-01-01T00:01:00Z",)"
      R"("succeeded":1,"conditions":[{"type":"SuccessCriteriaMet","status":"True"},)"
      R"({"type":"Complete","status":"True"}]})";
  const json::value running = status(R"({"startTime":"2026-01-01T00:00:00Z","active":1})");
  EXPECT_EQ(complaints_of(status(complete), running), Lines{});
  EXPECT_EQ(complaints_of(running, status(complete)),
            (Lines{"status.conditions: Invalid value: cannot disable the terminal Complete=True "
                   "condition",
                   "status.succeeded: Invalid value: 0: cannot decrease the succeeded counter",
                   "status.conditions: Invalid value: cannot disable the SuccessCriteriaMet=True "
                   "condition"}));
  EXPECT_EQ(complaints_of(status(R"({"active":1,"ready":2,"conditions":[{"type":"Failed",)"
                                 R"("status":"True"}]})"),
                          status("{}")),
            (Lines{"status.conditions: Invalid value: cannot set Failed=True condition without the "
                   "FailureTarget=true condition",
                   "status.active: Invalid value: 1: active>0 is invalid for finished job",
                   "status.startTime: Required value: startTime is required for finished job",
                   "status.ready: Invalid value: 2: cannot set more ready pods than active"}));
  EXPECT_EQ(complaints_of(status(R"({"completedIndexes":"0"})"), status("{}")),
            Lines{R"(status.completedIndexes: Invalid value: "0": cannot set non-empty )"
                  "completedIndexes when non-indexed completion mode"});
}

TEST(Job, Cells) {
  EXPECT_EQ(cells(job_kind(), job(R"(,"completions":3},"status":{"succeeded":1,"startTime":)"
                                  R"("2023-11-14T22:17:20Z")")),
            R"(["Running","1/3","60s","<unknown>","c","i:1","<none>"])");
  EXPECT_EQ(cells(job_kind(), R"({"spec":{"parallelism":2},"status":{"conditions":[{"type":)"
                              R"("Failed","status":"True"}]}})"),
            R"(["Failed","0/1 of 2","","<unknown>","","","<none>"])");
  EXPECT_EQ(job_kind().field_text(parsed(R"({"status":{"succeeded":2}})"), "status.successful"),
            "2");
  EXPECT_EQ(job_kind().field_text(parsed("{}"), "status.successful"), "0");
}

std::string cron_job(std::string_view schedule, std::string_view more = "") {
  return R"({"metadata":{"name":"nightly","namespace":"default"},"spec":{"schedule":")" +
         std::string(schedule) + R"(","jobTemplate":{"spec":{)" + pod() + "}}" + std::string(more) +
         "}}";
}

TEST(CronJob, DefaultsAndCells) {
  const json::value v = defaulted(cron_job_kind(), cron_job("@daily"));
  EXPECT_EQ(json::get_string(v, {"spec", "concurrencyPolicy"}), "Allow");
  EXPECT_EQ(json::get_int(v, {"spec", "successfulJobsHistoryLimit"}), 3);
  EXPECT_EQ(json::get_int(v, {"spec", "failedJobsHistoryLimit"}), 1);
  EXPECT_EQ(json::find(v, {"spec", "jobTemplate", "spec", "completions"}), nullptr);
  EXPECT_EQ(json::get_string(v, {"spec", "jobTemplate", "spec", "template", "spec", "dnsPolicy"}),
            "ClusterFirst");
  EXPECT_EQ(
      cells(cron_job_kind(),
            cron_job("@daily", R"(,"suspend":false,"timeZone":"UTC"},"status":{"active":[{}],)"
                               R"("lastScheduleTime":"2023-11-14T22:17:20Z")")),
      R"(["@daily","UTC","False",1,"60s","<unknown>","c","i:1","<none>"])");
}

TEST(CronJob, Rules) {
  EXPECT_EQ(complaints(cron_job_kind(), cron_job("*/5 * * * *", R"(,"timeZone":"Europe/Madrid")")),
            Lines{});
  EXPECT_EQ(complaints(cron_job_kind(), cron_job("61 * * * *")),
            Lines{R"(spec.schedule: Invalid value: "61 * * * *": end of range (61) above maximum )"
                  "(59): 61"});
  EXPECT_EQ(complaints(cron_job_kind(), cron_job("")), Lines{"spec.schedule: Required value"});
  EXPECT_EQ(
      complaints(cron_job_kind(), cron_job("TZ=UTC 0 0 * * *")),
      Lines{R"(spec.schedule: Invalid value: "TZ=UTC 0 0 * * *": cannot use TZ or CRON_TZ in )"
            "schedule, use timeZone field instead"});
  EXPECT_EQ(complaints(cron_job_kind(), cron_job("@daily", R"(,"timeZone":"Mars/Base")")),
            Lines{R"(spec.timeZone: Invalid value: "Mars/Base": unknown time zone Mars/Base)"});
  EXPECT_EQ(complaints(cron_job_kind(), cron_job("@daily", R"(,"timeZone":"local")")).size(), 2u);
  EXPECT_EQ(complaints(cron_job_kind(), cron_job("@daily", R"(,"timeZone":"")")),
            Lines{R"(spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string)"});
  EXPECT_EQ(
      complaints(cron_job_kind(), cron_job("@daily", R"(,"concurrencyPolicy":"Both")")),
      Lines{R"(spec.concurrencyPolicy: Unsupported value: "Both": supported values: "Allow", )"
            R"("Forbid", "Replace")"});
  const std::string long_name(53, 'a');
  std::string text = cron_job("@daily");
  text.replace(text.find("nightly"), 7, long_name);
  EXPECT_EQ(complaints(cron_job_kind(), text),
            Lines{"metadata.name: Invalid value: \"" + long_name +
                  "\": must be no more than 52 characters"});
}

TEST(CronJob, WarnsOfAZoneInTheSchedule) {
  const json::value old = parsed(cron_job("TZ=UTC 0 0 * * *"));
  EXPECT_EQ(complaints(cron_job_kind(), cron_job("TZ=UTC 0 0 * * *"), &old), Lines{});
  EXPECT_EQ(warned(cron_job_kind(), cron_job("TZ=UTC 0 0 * * *"), &old).size(), 1u);
  EXPECT_EQ(warned(cron_job_kind(), cron_job("@daily"), &old), Lines{});
}

}  // namespace
}  // namespace skiff::api
