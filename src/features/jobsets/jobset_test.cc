#include "features/jobsets/jobset.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "api/meta.h"
#include "base/check.h"
#include "control/runtime.h"
#include "control/testing/laws.h"
#include "control/testing/memory_server.h"
#include "env/sim/clock.h"
#include "features/jobsets/child_job.h"
#include "features/jobsets/claims.h"
#include "features/jobsets/plan.h"
#include "features/jobsets/testing/parse.h"

namespace skiff::jobsets {
namespace {

using testing::must_parse;

using std::chrono::seconds;
using Strings = std::vector<std::string>;

json::value part(std::string_view name, std::int64_t replicas, std::int64_t pods = 1) {
  return json::object{{"name", json::string(name)},
                      {"replicas", replicas},
                      {"template",
                       {{"metadata", {{"labels", {{"mine", "yes"}}}}},
                        {"spec",
                         {{"parallelism", pods},
                          {"completions", pods},
                          {"template",
                           {{"spec",
                             {{"containers", json::array{json::object{{"name", "main"},
                                                                      {"image", "work"}}}}}}}}}}}}};
}

json::value jobset_of_parts(json::array parts, json::object more = {}) {
  json::object spec = std::move(more);
  spec["replicatedJobs"] = std::move(parts);
  return {{"metadata", {{"name", "train"}, {"namespace", "team"}}}, {"spec", std::move(spec)}};
}

void must_write(client::Client& client, const client::Write& write) {
  const Result<json::value> result = client.write(write);
  ASSERT_TRUE(result.has_value()) << result.error().message;
}

void change(client::Client& client, const api::Resource& resource, std::string_view name,
            json::value body, std::string_view subresource = {}) {
  must_write(client, {.verb = client::Verb::kMergePatch,
                      .resource = resource,
                      .ns = "team",
                      .name = std::string(name),
                      .subresource = std::string(subresource),
                      .body = std::move(body)});
}

json::value job_end(std::string_view type, Time at, std::string_view reason = "",
                    std::string_view message = "") {
  return {{"status",
           {{"active", nullptr},
            {"conditions", json::array{json::object{{"type", json::string(type)},
                                                    {"status", "True"},
                                                    {"reason", json::string(reason)},
                                                    {"message", json::string(message)},
                                                    {"lastTransitionTime", rfc3339(at)}}}}}}};
}

struct JobSets : ::testing::Test {
  env::sim::Clock clock = env::sim::Clock();
  control::testing::MemoryServer server{clock};
  control::Runtime runtime{server, clock};

  JobSets() { runtime.add(jobset_controller()); }

  void settle() {
    for (int round = 0; round < 100; ++round) {
      const std::uint64_t before = server.revision();
      runtime.pump();
      if (server.revision() == before) return;
      clock.advance(std::chrono::milliseconds(1));
    }
    ADD_FAILURE() << "a hundred rounds did not settle";
  }
  void pass(Duration time) {
    clock.advance(time);
    settle();
  }
  void make(json::value object) {
    must_write(server, {.resource = jobset_resource(), .ns = "team", .body = std::move(object)});
    settle();
  }
  void patch(json::value spec) {
    change(server, jobset_resource(), "train", {{"spec", std::move(spec)}});
    settle();
  }
  void finish(std::string_view job, std::string_view type, std::string_view reason = "",
              std::string_view message = "") {
    change(server, job_resource(), job, job_end(type, clock.now(), reason, message), "status");
    settle();
  }
  void get_ready(std::string_view job, std::int64_t pods = 1) {
    change(server, job_resource(), job, {{"status", {{"active", pods}, {"ready", pods}}}},
           "status");
    settle();
  }
  Strings jobs() {
    Strings out;
    for (const Object& job : server.list(job_resource(), {}, {})->items) {
      out.emplace_back(api::name(*job));
    }
    return out;
  }
  json::value job(std::string_view name) {
    Result<json::value> found = server.get(job_resource(), "team", name);
    return found ? *std::move(found) : json::value();
  }
  json::value set() {
    return server.get(jobset_resource(), "team", "train").value_or(json::value());
  }
  std::string condition(std::string_view type) {
    const json::value object = set();
    const json::object* found = api::condition(object, type);
    if (found == nullptr) return "none";
    const json::value c(*found);
    return fmt::format("{} {}: {}", json::get_string(c, {"status"}),
                       json::get_string(c, {"reason"}), json::get_string(c, {"message"}));
  }
  json::value state(std::string_view part) {
    const json::value object = set();
    for (const json::value& s : json::get_array(object, {"status", "replicatedJobsStatus"})) {
      if (json::get_string(s, {"name"}) == part) return s;
    }
    return {};
  }
  int told(std::string_view reason) {
    const api::Resource events{.version = "v1", .plural = "events", .kind = "Event"};
    const auto list = server.list(events, {}, {})->items;
    return static_cast<int>(std::ranges::count_if(
        list, [&](const Object& e) { return json::get_string(*e, {"reason"}) == reason; }));
  }
};

TEST_F(JobSets, make_the_jobs_of_each_part_and_one_headless_service) {
  json::value object = jobset_of_parts({part("driver", 1), part("worker", 2, 3)});
  json::set(object, {"spec", "coordinator"}, {{"replicatedJob", "driver"}});
  make(std::move(object));
  EXPECT_EQ(jobs(), (Strings{"train-driver-0", "train-worker-0", "train-worker-1"}));
  const json::value worker = job("train-worker-1");
  const json::value pod = *json::find(worker, {"spec", "template"});
  for (const json::value& owner : {worker, pod}) {
    for (const std::string_view kind : {"labels", "annotations"}) {
      const auto mark = [&](std::string_view key) {
        return json::get_string(owner,
                                {"metadata", kind, fmt::format("jobset.sigs.k8s.io/{}", key)});
      };
      EXPECT_EQ(mark("jobset-name"), "train");
      EXPECT_EQ(mark("jobset-uid"), api::uid(set()));
      EXPECT_EQ(mark("replicatedjob-name"), "worker");
      EXPECT_EQ(mark("replicatedjob-replicas"), "2");
      EXPECT_EQ(mark("global-replicas"), "3");
      EXPECT_EQ(mark("job-index"), "1");
      EXPECT_EQ(mark("job-global-index"), "2");
      EXPECT_EQ(mark("restart-attempt"), "0");
      EXPECT_EQ(mark("group-name"), "default");
      EXPECT_EQ(mark("group-replicas"), "3");
      EXPECT_EQ(mark("job-group-index"), "2");
      EXPECT_EQ(mark("coordinator"), "train-driver-0-0.train");
      // sha1 of team/train-worker-1
      EXPECT_EQ(mark("job-key"), "2fb1221a5803888cb1f40e95432b594fa8d30cd9");
    }
  }
  EXPECT_EQ(api::label(worker, "mine"), "yes");
  EXPECT_TRUE(api::controlled_by(worker, api::uid(set())));
  EXPECT_EQ(json::get_string(pod, {"spec", "subdomain"}), "train");
  EXPECT_EQ(json::get_string(pod, {"spec", "restartPolicy"}), "OnFailure");
  EXPECT_EQ(json::get_string(worker, {"spec", "completionMode"}), "Indexed");
  EXPECT_EQ(json::get_bool(worker, {"spec", "suspend"}), false);
  const auto services = server.list(service_resource(), {}, {})->items;
  ASSERT_EQ(services.size(), 1U);
  EXPECT_EQ(api::name(*services[0]), "train");
  EXPECT_EQ(json::get_string(*services[0], {"spec", "clusterIP"}), "None");
  EXPECT_EQ(json::get_bool(*services[0], {"spec", "publishNotReadyAddresses"}), true);
  EXPECT_EQ(json::get_string(*services[0], {"spec", "selector", kJobSetName}), "train");
}

TEST_F(JobSets, count_jobs_of_a_group_by_themselves) {
  json::value lone = part("alone", 2);
  json::set(lone, {"groupName"}, "other");
  make(jobset_of_parts({part("a", 1), std::move(lone), part("b", 1)}));
  const json::value b = job("train-b-0");
  EXPECT_EQ(api::label(b, "jobset.sigs.k8s.io/job-global-index"), "3");
  EXPECT_EQ(api::label(b, "jobset.sigs.k8s.io/job-group-index"), "1");
  EXPECT_EQ(api::label(b, "jobset.sigs.k8s.io/group-replicas"), "2");
  EXPECT_EQ(api::label(job("train-alone-1"), "jobset.sigs.k8s.io/job-group-index"), "1");
}

TEST_F(JobSets, use_a_service_that_is_there_and_the_subdomain_they_are_given) {
  must_write(
      server,
      {.resource = service_resource(), .ns = "team", .body = {{"metadata", {{"name", "mesh"}}}}});
  make(jobset_of_parts({part("a", 1)}, {{"network", {{"subdomain", "mesh"}}}}));
  EXPECT_EQ(server.list(service_resource(), {}, {})->items.size(), 1U);
  EXPECT_EQ(json::get_string(job("train-a-0"), {"spec", "template", "spec", "subdomain"}), "mesh");
}

TEST_F(JobSets, have_no_service_where_names_are_not_wanted) {
  make(jobset_of_parts({part("a", 1)}, {{"network", {{"enableDNSHostnames", false}}}}));
  EXPECT_TRUE(server.list(service_resource(), {}, {})->items.empty());
  EXPECT_EQ(json::find(job("train-a-0"), {"spec", "template", "spec", "subdomain"}), nullptr);
}

TEST_F(JobSets, make_the_claims_that_their_pods_share) {
  json::value with = part("a", 2);
  json::make_object(with, {"template", "spec", "template", "spec"})["containers"] =
      must_parse(R"([{"name": "main", "image": "work",
                      "volumeMounts": [{"name": "data", "mountPath": "/data"}]}])");
  must_write(server, {.resource = claim_resource(),
                      .ns = "team",
                      .body = {{"metadata", {{"name", "kept-train"}, {"uid", "old"}}}}});
  json::value object = jobset_of_parts({std::move(with), part("b", 1)});
  json::set(object, {"spec", "volumeClaimPolicies"}, must_parse(R"([
      {"templates": [{"metadata": {"name": "data", "labels": {"mine": "yes"}},
                      "spec": {"accessModes": ["ReadWriteMany"]}}]},
      {"templates": [{"metadata": {"name": "kept"}}, {"metadata": {"name": "later"}}],
       "retentionPolicy": {"whenDeleted": "Retain"}}])"));
  make(std::move(object));
  const auto get = [&](std::string_view name) {
    return server.get(claim_resource(), "team", name).value_or(json::value());
  };
  EXPECT_TRUE(api::controlled_by(get("data-train"), api::uid(set())));
  EXPECT_EQ(api::label(get("data-train"), kJobSetName), "train");
  EXPECT_EQ(api::label(get("data-train"), "mine"), "yes");
  EXPECT_EQ(json::get_array(get("data-train"), {"spec", "accessModes"}).size(), 1U);
  EXPECT_FALSE(get("later-train").is_null());
  EXPECT_EQ(api::controller_of(get("later-train")), nullptr) << "it outlives the set";
  EXPECT_EQ(api::label(get("kept-train"), kJobSetName), "") << "one that is there is used";
  EXPECT_EQ(
      json::get_array(job("train-a-1"), {"spec", "template", "spec", "volumes"}),
      (json::array{{{"name", "data"}, {"persistentVolumeClaim", {{"claimName", "data-train"}}}}}));
  EXPECT_EQ(json::find(job("train-b-0"), {"spec", "template", "spec", "volumes"}), nullptr)
      << "it mounts none";
}

TEST(ClaimNames, end_in_the_name_of_their_set) {
  EXPECT_EQ(endings("my-data-train"), (Strings{"data-train", "train"}));
  EXPECT_EQ(endings("data"), Strings{});
}

TEST_F(JobSets, tell_what_their_jobs_are_doing) {
  make(jobset_of_parts({part("a", 2, 2), part("b", 1)}));
  get_ready("train-a-0", 2);
  change(server, job_resource(), "train-a-1", {{"status", {{"active", 2}, {"ready", 1}}}},
         "status");
  settle();
  finish("train-b-0", "Complete");
  EXPECT_EQ(state("a"), (json::value{{"name", "a"},
                                     {"ready", 1},
                                     {"succeeded", 0},
                                     {"failed", 0},
                                     {"active", 2},
                                     {"suspended", 0}}));
  EXPECT_EQ(json::get_int(state("b"), {"succeeded"}), 1);
  EXPECT_EQ(json::get_int(set(), {"status", "restarts"}), 0);
}

TEST_F(JobSets, are_complete_when_all_jobs_are) {
  make(jobset_of_parts({part("a", 1), part("b", 1)}));
  finish("train-a-0", "Complete");
  EXPECT_EQ(condition("Completed"), "none");
  finish("train-b-0", "Complete");
  EXPECT_EQ(condition("Completed"), "True AllJobsCompleted: jobset completed successfully");
  EXPECT_EQ(json::get_string(set(), {"status", "terminalState"}), "Completed");
  EXPECT_EQ(told("AllJobsCompleted"), 1);
}

TEST_F(JobSets, are_complete_with_the_first_of_those_that_count_and_delete_the_others) {
  make(
      jobset_of_parts({part("a", 1), part("b", 2)},
                      {{"successPolicy", {{"operator", "Any"}, {"targetReplicatedJobs", {"b"}}}}}));
  finish("train-a-0", "Complete");
  EXPECT_EQ(condition("Completed"), "none") << "a does not count";
  finish("train-b-1", "Complete");
  EXPECT_NE(condition("Completed"), "none");
  EXPECT_EQ(jobs(), (Strings{"train-a-0", "train-b-1"})) << "the one that ran is deleted";
}

TEST_F(JobSets, are_complete_when_all_that_count_are) {
  make(
      jobset_of_parts({part("a", 2), part("b", 1)},
                      {{"successPolicy", {{"operator", "All"}, {"targetReplicatedJobs", {"a"}}}}}));
  finish("train-a-0", "Complete");
  EXPECT_EQ(condition("Completed"), "none");
  finish("train-a-1", "Complete");
  EXPECT_NE(condition("Completed"), "none");
}

TEST_F(JobSets, fail_with_a_job_where_there_is_no_policy) {
  make(jobset_of_parts({part("a", 2)}));
  finish("train-a-1", "Failed", "BackoffLimitExceeded");
  EXPECT_EQ(condition("Failed"),
            "True FailedJobs: jobset failed due to one or more job failures (first failed job: "
            "train-a-1)");
  EXPECT_EQ(json::get_string(set(), {"status", "terminalState"}), "Failed");
  EXPECT_EQ(jobs(), (Strings{"train-a-1"})) << "the failed one stays to be looked at";
  EXPECT_EQ(condition("RestartingJobSet"), "none");
}

TEST_F(JobSets, start_anew_as_a_whole_until_the_limit) {
  json::value with_gang = part("a", 2);
  json::set(with_gang, {"template", "spec", "template", "metadata", "annotations", kGangAnnotation},
            "g");
  make(jobset_of_parts({std::move(with_gang)}, {{"failurePolicy", {{"maxRestarts", 1}}}}));
  const std::string first(api::uid(job("train-a-0")));
  const auto gang = [&] {
    return std::string(json::get_string(
        job("train-a-0"),
        {"spec", "template", "metadata", "annotations", std::string_view(kGangAnnotation)}));
  };
  EXPECT_EQ(gang(), "g");
  finish("train-a-1", "Failed", "BackoffLimitExceeded");
  EXPECT_EQ(json::get_int(set(), {"status", "restarts"}), 1);
  EXPECT_EQ(json::get_int(set(), {"status", "restartsCountTowardsMax"}), 1);
  EXPECT_EQ(condition("RestartingJobSet"),
            "True DefaultFailurePolicy: applying RestartJobSet failure policy action (first failed "
            "job: train-a-1)");
  EXPECT_EQ(told("RestartJobSetFailurePolicyAction"), 1);
  EXPECT_EQ(jobs(), (Strings{"train-a-0", "train-a-1"}));
  EXPECT_NE(api::uid(job("train-a-0")), first) << "the whole set is new";
  EXPECT_EQ(api::label(job("train-a-0"), kRestartAttempt), "1");
  EXPECT_EQ(gang(), "g-1") << "pods of two attempts are no gang";
  get_ready("train-a-0");
  get_ready("train-a-1");
  EXPECT_EQ(condition("RestartingJobSet"), "False JobsReady: all jobs are ready");
  finish("train-a-0", "Failed", "BackoffLimitExceeded");
  EXPECT_EQ(condition("Failed"),
            "True ReachedMaxRestarts: jobset failed due to reaching max number of restarts (first "
            "failed job: train-a-0)");
  EXPECT_EQ(condition("RestartingJobSet"), "False JobSetFailed: jobset failed");
}

TEST_F(JobSets, follow_the_first_rule_that_fits) {
  make(jobset_of_parts({part("a", 1), part("b", 1)}, must_parse(R"({"failurePolicy": {"rules": [
      {"name": "fatal", "action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]},
      {"name": "hosts", "action": "RestartJobSetAndIgnoreMaxRestarts",
       "onJobFailureMessagePatterns": ["maintenance$"], "targetReplicatedJobs": ["b"]}]}})")
                                                         .as_object()));
  finish("train-b-0", "Failed", "BackoffLimitExceeded", "host is in maintenance");
  EXPECT_EQ(json::get_int(set(), {"status", "restarts"}), 1);
  EXPECT_EQ(json::find(set(), {"status", "restartsCountTowardsMax"}), nullptr);
  EXPECT_EQ(condition("RestartingJobSet"),
            "True FailurePolicy_hosts: applying RestartJobSetAndIgnoreMaxRestarts failure policy "
            "action (first failed job: train-b-0)");
  finish("train-a-0", "Failed", "PodFailurePolicy");
  EXPECT_EQ(condition("Failed"),
            "True FailJobSetFailurePolicyAction: applying FailJobSet failure policy action (first "
            "failed job: train-a-0)");
}

TEST_F(JobSets, restart_by_default_where_no_rule_fits) {
  make(jobset_of_parts({part("a", 1), part("b", 1)},
                       must_parse(R"({"failurePolicy": {"maxRestarts": 1,
      "rules": [{"name": "x", "action": "FailJobSet", "targetReplicatedJobs": ["b"],
                 "onJobFailureMessagePatterns": ["disk"]}]}})")
                           .as_object()));
  finish("train-a-0", "Failed", "", "disk full");
  EXPECT_EQ(json::get_int(set(), {"status", "restarts"}), 1) << "a is not what the rule is about";
  finish("train-b-0", "Failed", "", "out of memory");
  EXPECT_TRUE(condition("Failed").starts_with("True ReachedMaxRestarts")) << condition("Failed");
}

TEST_F(JobSets, name_the_job_that_failed_first) {
  make(jobset_of_parts({part("a", 2)}));
  change(server, job_resource(), "train-a-0", job_end("Failed", clock.now() + seconds(5)),
         "status");
  change(server, job_resource(), "train-a-1", job_end("Failed", clock.now()), "status");
  settle();
  EXPECT_TRUE(condition("Failed").ends_with("(first failed job: train-a-1)"))
      << condition("Failed");
}

TEST_F(JobSets, wait_for_what_a_part_depends_on) {
  json::value second = part("second", 1);
  json::set(second, {"dependsOn"}, must_parse(R"([{"name": "first", "status": "Complete"}])"));
  json::value third = part("third", 1);
  json::set(third, {"dependsOn"}, must_parse(R"([{"name": "second", "status": "Ready"}])"));
  make(jobset_of_parts({part("first", 2), std::move(second), std::move(third)}));
  EXPECT_EQ(jobs(), (Strings{"train-first-0", "train-first-1"}));
  get_ready("train-first-0");
  finish("train-first-1", "Complete");
  EXPECT_EQ(jobs().size(), 2U) << "one of two is not complete";
  finish("train-first-0", "Complete");
  EXPECT_EQ(jobs(), (Strings{"train-first-0", "train-first-1", "train-second-0"}));
  get_ready("train-second-0");
  EXPECT_EQ(jobs().back(), "train-third-0");
}

TEST_F(JobSets, start_in_order_where_asked_to) {
  make(jobset_of_parts({part("a", 1), part("b", 1)},
                       {{"startupPolicy", {{"startupPolicyOrder", "InOrder"}}}}));
  EXPECT_EQ(jobs(), (Strings{"train-a-0"}));
  EXPECT_EQ(condition("StartupPolicyInProgress"),
            "True InOrderStartupPolicyInProgress: in order startup policy is in progress");
  get_ready("train-a-0");
  EXPECT_EQ(jobs(), (Strings{"train-a-0", "train-b-0"}));
  EXPECT_EQ(condition("StartupPolicyCompleted"), "none");
  get_ready("train-b-0");
  EXPECT_EQ(condition("StartupPolicyCompleted"),
            "True InOrderStartupPolicyCompleted: in order startup policy has completed");
  EXPECT_TRUE(condition("StartupPolicyInProgress").starts_with("False"));
}

TEST_F(JobSets, are_suspended_and_resumed_with_what_the_template_says_by_then) {
  make(jobset_of_parts({part("a", 1)}));
  EXPECT_EQ(condition("Suspended"), "none") << "what never was is not told";
  change(server, job_resource(), "train-a-0",
         {{"status", {{"startTime", rfc3339(clock.now())}, {"active", 1}}}}, "status");
  patch({{"suspend", true}});
  EXPECT_EQ(json::get_bool(job("train-a-0"), {"spec", "suspend"}), true);
  EXPECT_EQ(condition("Suspended"), "True SuspendedJobs: jobset is suspended");
  EXPECT_EQ(json::get_int(state("a"), {"suspended"}), 1);
  json::value changed = part("a", 1);
  json::object& pod = json::make_object(changed, {"template", "spec", "template"});
  json::make_object(pod, {"spec"})["nodeSelector"] = {{"pool", "gpu"}};
  json::make_object(pod, {"spec"})["tolerations"] = json::array{{{"key", "gpu"}}};
  json::make_object(pod, {"metadata", "labels"})["queue"] = "q";
  patch({{"suspend", false}, {"replicatedJobs", json::array{changed}}});
  const json::value now = job("train-a-0");
  EXPECT_EQ(json::get_bool(now, {"spec", "suspend"}), false);
  EXPECT_EQ(json::find(now, {"status", "startTime"}), nullptr) << "else the template is fixed";
  const auto at = [&](std::initializer_list<std::string_view> path) {
    return json::get_string(*json::find(now, {"spec", "template"}), path);
  };
  EXPECT_EQ(at({"spec", "nodeSelector", "pool"}), "gpu");
  EXPECT_EQ(at({"metadata", "labels", "queue"}), "q");
  EXPECT_EQ(at({"metadata", "labels", kJobSetName}), "train") << "ours stay";
  EXPECT_EQ(json::get_array(now, {"spec", "template", "spec", "tolerations"}).size(), 1U);
  EXPECT_EQ(condition("Suspended"), "False ResumeJobs: jobset is resumed");
}

TEST_F(JobSets, are_resumed_on_the_nodes_that_the_template_wants_by_then) {
  const auto with = [](std::string_view rules, std::string_view key) {
    json::value out = part("a", 1);
    json::make_object(out, {"template", "spec", "template", "spec", "affinity",
                            "nodeAffinity"})[rules] = json::array{{{"key", json::string(key)}}};
    return out;
  };
  make(jobset_of_parts({with("old", "one")}, {{"suspend", true}}));
  patch({{"suspend", false}, {"replicatedJobs", json::array{with("new", "two")}}});
  const json::value now = job("train-a-0");
  EXPECT_EQ(json::get_bool(now, {"spec", "suspend"}), false);
  EXPECT_EQ(json::get_object(now, {"spec", "template", "spec", "affinity", "nodeAffinity"}),
            (json::object{{"new", json::array{{{"key", "two"}}}}}));
}

TEST_F(JobSets, are_made_suspended) {
  make(jobset_of_parts({part("a", 1), part("b", 1)}, {{"suspend", true}}));
  EXPECT_EQ(json::get_bool(job("train-a-0"), {"spec", "suspend"}), true);
  EXPECT_EQ(condition("Suspended"), "True SuspendedJobs: jobset is suspended");
  patch({{"suspend", false}});
  EXPECT_EQ(json::get_bool(job("train-b-0"), {"spec", "suspend"}), false);
}

TEST_F(JobSets, wait_for_the_last_attempt_to_be_gone_where_asked_to) {
  make(jobset_of_parts(
      {part("a", 1), part("b", 1)},
      {{"failurePolicy", {{"maxRestarts", 1}, {"restartStrategy", "BlockingRecreate"}}}}));
  change(server, job_resource(), "train-b-0", {{"metadata", {{"finalizers", {"x/hold"}}}}});
  finish("train-a-0", "Failed");
  EXPECT_EQ(jobs(), (Strings{"train-b-0"})) << "a is not made before b is gone";
  change(server, job_resource(), "train-b-0", {{"metadata", {{"finalizers", nullptr}}}});
  settle();
  EXPECT_EQ(jobs(), (Strings{"train-a-0", "train-b-0"}));
}

TEST_F(JobSets, go_when_their_time_is_over) {
  make(jobset_of_parts({part("a", 1)}, {{"ttlSecondsAfterFinished", 30}}));
  finish("train-a-0", "Complete");
  pass(seconds(29));
  EXPECT_FALSE(set().is_null());
  pass(seconds(2));
  EXPECT_TRUE(set().is_null());
  EXPECT_TRUE(jobs().empty());
}

TEST_F(JobSets, stay_where_their_time_is_longer_than_any) {
  make(jobset_of_parts({part("a", 1)}, {{"ttlSecondsAfterFinished", 9223372036854775807}}));
  finish("train-a-0", "Complete");
  pass(seconds(100));
  EXPECT_FALSE(set().is_null());
}

TEST_F(JobSets, are_left_alone_where_somebody_else_manages_them) {
  make(jobset_of_parts({part("a", 1)}, {{"managedBy", "kueue.x-k8s.io/multikueue"}}));
  EXPECT_TRUE(jobs().empty());
  EXPECT_EQ(json::find(set(), {"status"}), nullptr);
}

TEST_F(JobSets, make_their_jobs_in_several_plans_where_there_are_many) {
  make(jobset_of_parts({part("a", kJobsPerPlan + 20)}));
  EXPECT_EQ(jobs().size(), static_cast<std::size_t>(kJobsPerPlan + 20));
}

// Jobs get ready, fail and end; a person suspends and resumes.
bool step(client::Client& client, Time now, Random& random, int& steps) {
  const auto sets = client.list(jobset_resource(), {}, {})->items;
  if (sets.empty()) return false;
  if (suspended(*sets[0]) || (steps++ < 4 && random.chance(20))) {
    change(client, jobset_resource(), "train", {{"spec", {{"suspend", !suspended(*sets[0])}}}});
    return true;
  }
  for (const Object& job : client.list(job_resource(), {}, {})->items) {
    if (api::controller_of(*job) == nullptr || suspended(*job)) continue;
    if (api::condition_true(*job, "Complete") || api::condition_true(*job, "Failed")) continue;
    if (json::get_int(*job, {"status", "ready"}).value_or(0) == 0) {
      change(client, job_resource(), api::name(*job),
             {{"status", {{"ready", 1}, {"active", 1}, {"startTime", rfc3339(now)}}}}, "status");
      return true;
    }
    const bool fails = steps < 20 && random.chance(30);
    change(client, job_resource(), api::name(*job), job_end(fails ? "Failed" : "Complete", now),
           "status");
    return true;
  }
  return false;
}

TEST(JobSetLaws, hold) {
  int steps = 0;
  std::int64_t restarts = 0;
  control::testing::LawCase laws;
  laws.controller = jobset_controller();
  laws.arrange = [&](client::Client& client, Random& random) {
    steps = 0;
    restarts = 0;
    json::value last = part("b", 1);
    if (random.chance(50)) {
      json::set(last, {"dependsOn"}, must_parse(R"([{"name": "a", "status": "Complete"}])"));
    }
    json::object more{{"failurePolicy", {{"maxRestarts", 3}}}};
    if (random.chance(30)) more["ttlSecondsAfterFinished"] = 5;
    must_write(client, {.resource = jobset_resource(),
                        .ns = "team",
                        .body = jobset_of_parts({part("a", 2), std::move(last)}, std::move(more))});
    must_write(
        client,
        {.resource = job_resource(), .ns = "team", .body = {{"metadata", {{"name", "stranger"}}}}});
  };
  laws.step = [&](client::Client& client, Time now, Random& random) {
    return step(client, now, random, steps);
  };
  laws.never = [&](client::Client& client) -> std::optional<std::string> {
    for (const Object& set : client.list(jobset_resource(), {}, {})->items) {
      const std::int64_t now = json::get_int(*set, {"status", "restarts"}).value_or(0);
      if (now < restarts) return "a set has forgotten restarts";
      restarts = now;
    }
    return {};
  };
  laws.wrong = [](client::Client& client) -> std::optional<std::string> {
    if (!client.get(job_resource(), "team", "stranger")) return "somebody else's job is gone";
    for (const Object& set : client.list(jobset_resource(), {}, {})->items) {
      if (json::get_string(*set, {"status", "terminalState"}).empty()) return "it has not ended";
      if (json::get_int(*set, {"spec", "ttlSecondsAfterFinished"})) return "it is still there";
    }
    return {};
  };
  laws.cuts_max = 10;
  for (const std::string& sentence : control::testing::check_laws(laws)) ADD_FAILURE() << sentence;
}

}  // namespace
}  // namespace skiff::jobsets
