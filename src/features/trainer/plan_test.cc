#include "features/trainer/plan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "api/meta.h"
#include "control/runtime.h"
#include "control/testing/laws.h"
#include "control/testing/memory_server.h"
#include "env/sim/clock.h"
#include "features/trainer/builtin_runtimes.h"
#include "features/trainer/testing/objects.h"
#include "features/trainer/trainjob.h"

namespace skiff::trainer {
namespace {

using std::chrono::seconds;
using testing::must_parse;
using testing::trainjob;

void must_write_trainjob(client::Client& client, const client::Write& write) {
  const Result<json::value> result = client.write(write);
  ASSERT_TRUE(result.has_value()) << result.error().message;
}

void change_trainjob(client::Client& client, const api::Resource& resource, std::string_view name,
                     json::value body, std::string_view subresource = {}) {
  must_write_trainjob(client, {.verb = client::Verb::kMergePatch,
                               .resource = resource,
                               .ns = "team",
                               .name = std::string(name),
                               .subresource = std::string(subresource),
                               .body = std::move(body)});
}

json::value jobset_end(std::string_view type, Time at, std::string_view reason) {
  return {{"status",
           {{"conditions", json::array{json::object{{"type", json::string(type)},
                                                    {"status", "True"},
                                                    {"reason", json::string(reason)},
                                                    {"message", "so it is"},
                                                    {"lastTransitionTime", rfc3339(at)}}}}}}};
}

struct TrainJobs : ::testing::Test {
  env::sim::Clock clock = env::sim::Clock();
  control::testing::MemoryServer server{clock};
  control::Runtime runtime{server, clock};

  TrainJobs() { runtime.add(trainjob_controller()); }

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
  void make_runtime(json::value object = testing::runtime()) {
    must_write_trainjob(server,
                        {.resource = cluster_runtime_resource(), .body = std::move(object)});
    settle();
  }
  void make(std::string_view spec = "{}") {
    must_write_trainjob(server,
                        {.resource = trainjob_resource(), .ns = "team", .body = trainjob(spec)});
    settle();
  }
  void patch(json::value spec) {
    change_trainjob(server, trainjob_resource(), "mnist", {{"spec", std::move(spec)}});
    settle();
  }
  void tell(json::value body) {
    change_trainjob(server, jobset_resource(), "mnist", std::move(body), "status");
    settle();
  }
  json::value get(const api::Resource& resource, std::string_view name = "mnist") {
    Result<json::value> found = server.get(resource, "team", name);
    return found ? *std::move(found) : json::value();
  }
  json::value job() { return get(trainjob_resource()); }
  json::value jobset() { return get(jobset_resource()); }
  std::string condition(std::string_view type) {
    const json::value object = job();
    const json::object* found = api::condition(object, type);
    if (found == nullptr) return "none";
    const json::value c(*found);
    return fmt::format("{} {}: {}", json::get_string(c, {"status"}),
                       json::get_string(c, {"reason"}), json::get_string(c, {"message"}));
  }
  int told(std::string_view reason, std::string_view part_of_message = {}) {
    const api::Resource events{.version = "v1", .plural = "events", .kind = "Event"};
    const auto list = server.list(events, {}, {})->items;
    return static_cast<int>(std::ranges::count_if(list, [&](const Object& e) {
      return json::get_string(*e, {"reason"}) == reason &&
             json::get_string(*e, {"message"}).find(part_of_message) != std::string_view::npos;
    }));
  }
  std::int64_t nodes() {
    const json::value set = jobset();
    const json::array& parts = json::get_array(set, {"spec", "replicatedJobs"});
    return parts.empty() ? 0
                         : json::get_int(parts[0], {"template", "spec", "parallelism"}).value_or(0);
  }
};

TEST_F(TrainJobs, become_a_jobset_under_their_runtime) {
  make_runtime();
  make(R"({"trainer": {"numNodes": 3}})");
  EXPECT_TRUE(api::controlled_by(jobset(), api::uid(job())));
  EXPECT_EQ(nodes(), 3);
  EXPECT_EQ(json::find(job(), {"status"}), nullptr) << "nothing has happened yet";
}

TEST_F(TrainJobs, use_a_runtime_of_their_namespace_where_they_say_so) {
  make_runtime();
  json::value own = testing::runtime(R"({"numNodes": 7})");
  json::set(own, {"kind"}, "TrainingRuntime");
  must_write_trainjob(server, {.resource = runtime_resource(), .ns = "other", .body = own});
  make(R"({"runtimeRef": {"name": "torch", "kind": "TrainingRuntime"}})");
  EXPECT_TRUE(jobset().is_null()) << "that of another namespace is not meant";
  must_write_trainjob(server, {.resource = runtime_resource(), .ns = "team", .body = own});
  settle();
  EXPECT_EQ(nodes(), 7);
}

TEST_F(TrainJobs, wait_for_a_runtime_and_say_so) {
  make();
  EXPECT_TRUE(jobset().is_null());
  EXPECT_GE(told("TrainJobResourcesCreationFailed",
                 "clustertrainingruntimes.trainer.kubeflow.org \"torch\" not found"),
            1);
  make_runtime();
  EXPECT_EQ(nodes(), 2);
}

TEST_F(TrainJobs, fail_where_there_is_no_such_kind_of_runtime) {
  make(R"({"runtimeRef": {"name": "x", "kind": "Runtime"}})");
  EXPECT_EQ(condition("Failed"),
            "True TrainingRuntimeNotSupported: unsupported runtime: Runtime.trainer.kubeflow.org");
}

TEST_F(TrainJobs, fail_where_job_and_runtime_do_not_go_together) {
  make_runtime();
  make(R"({"trainer": {"env": [{"name": "PET_NNODES", "value": "9"}]}})");
  EXPECT_TRUE(condition("Failed").starts_with("True Invalid: spec.trainer.env: Invalid value"))
      << condition("Failed");
  EXPECT_TRUE(condition("Failed").ends_with("invalid envs configured: [PET_NNODES]"));
  EXPECT_TRUE(jobset().is_null());
}

TEST_F(TrainJobs, that_have_a_jobset_are_not_judged_again) {
  make_runtime();
  make();
  patch(must_parse(R"({"trainer": {"env": [{"name": "PET_NNODES", "value": "9"}]}})"));
  EXPECT_EQ(condition("Failed"), "none") << "a rule may be younger than the job";
  EXPECT_EQ(nodes(), 2);
}

TEST_F(TrainJobs, keep_no_runtime_that_they_do_not_fit) {
  json::value wrong = testing::runtime();
  json::set(wrong, {"spec", "mlPolicy", "torch", "envInjection"},
            must_parse(R"({"targets": [{"jobName": "node", "containerNames": ["ghost"]}]})"));
  make_runtime(std::move(wrong));
  make();
  EXPECT_TRUE(condition("Failed").starts_with("True Invalid: spec.runtimeRef"))
      << condition("Failed");
  EXPECT_TRUE(get(config_map_resource(), "mnist-runtime-snapshot").is_null());
  must_write_trainjob(
      server, {.verb = client::Verb::kMergePatch,
               .resource = cluster_runtime_resource(),
               .name = "torch",
               .body = must_parse(R"({"spec": {"mlPolicy": {"torch": {"envInjection": null}}}})")});
  settle();
  EXPECT_EQ(condition("Failed"), "none") << "who puts the runtime right is heard";
  EXPECT_EQ(nodes(), 2);
  EXPECT_FALSE(get(config_map_resource(), "mnist-runtime-snapshot").is_null());
}

TEST_F(TrainJobs, with_a_patch_that_is_no_map_become_a_jobset) {
  make_runtime();
  make(R"({"runtimePatches": [{"manager": "a.b/c",
      "trainingRuntimeSpec": {"template": {"spec": "x"}}}]})");
  EXPECT_EQ(nodes(), 2) << "what is stored may be older than the rule that refuses it";
}

TEST_F(TrainJobs, keep_the_runtime_they_were_taken_up_with) {
  make_runtime();
  make(R"({"suspend": true})");
  EXPECT_FALSE(get(config_map_resource(), "mnist-runtime-snapshot").is_null());
  json::value changed = testing::runtime(R"({"numNodes": 9, "torch": {}})");
  must_write_trainjob(server, {.verb = client::Verb::kMergePatch,
                               .resource = cluster_runtime_resource(),
                               .name = "torch",
                               .body = {{"spec", *json::find(changed, {"spec"})}}});
  settle();
  patch({{"suspend", false}});
  EXPECT_EQ(nodes(), 2);
  EXPECT_EQ(json::get_bool(jobset(), {"spec", "suspend"}), false);
}

TEST_F(TrainJobs, are_suspended_and_resumed) {
  make_runtime();
  make(R"({"suspend": true})");
  EXPECT_EQ(json::get_bool(jobset(), {"spec", "suspend"}), true);
  EXPECT_EQ(condition("Suspended"), "True Suspended: TrainJob is suspended");
  patch(must_parse(R"({"suspend": false, "runtimePatches": [{"manager": "a.b/c",
      "trainingRuntimeSpec": {"template": {
        "metadata": {"labels": {"queue": "q"}},
        "spec": {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec": {
          "nodeSelector": {"zone": "a"}}}}}}]}}}}]})"));
  EXPECT_EQ(condition("Suspended"), "False Resumed: TrainJob is resumed");
  EXPECT_EQ(json::get_bool(jobset(), {"spec", "suspend"}), false);
  const json::value set = jobset();
  EXPECT_EQ(json::get_string(json::get_array(set, {"spec", "replicatedJobs"})[0],
                             {"template", "spec", "template", "spec", "nodeSelector", "zone"}),
            "a");
  EXPECT_EQ(api::label(set, "queue"), "q");
  patch({{"suspend", true}});
  EXPECT_EQ(json::get_bool(jobset(), {"spec", "suspend"}), true);
}

TEST_F(TrainJobs, leave_a_jobset_that_runs_as_it_is) {
  make_runtime();
  make();
  const std::string before(api::resource_version(jobset()));
  patch({{"trainer", {{"numNodes", 5}}}});
  EXPECT_EQ(api::resource_version(jobset()), before);
}

TEST_F(TrainJobs, make_the_jobset_again_where_somebody_deleted_it) {
  make_runtime();
  make();
  must_write_trainjob(server, {.verb = client::Verb::kDelete,
                               .resource = jobset_resource(),
                               .ns = "team",
                               .name = "mnist",
                               .body = json::object{}});
  settle();
  EXPECT_EQ(nodes(), 2);
}

TEST_F(TrainJobs, tell_what_the_jobset_tells) {
  make_runtime();
  make();
  tell({{"status",
         {{"replicatedJobsStatus", json::array{{{"name", "node"},
                                                {"ready", 1},
                                                {"succeeded", 0},
                                                {"failed", 0},
                                                {"active", 1},
                                                {"suspended", 0},
                                                {"jobRestarts", json::array{0}}}}}}}});
  const json::value now = job();
  EXPECT_EQ(json::get_array(now, {"status", "jobsStatus"}), (json::array{{{"name", "node"},
                                                                          {"ready", 1},
                                                                          {"succeeded", 0},
                                                                          {"failed", 0},
                                                                          {"active", 1},
                                                                          {"suspended", 0}}}));
  const Time at = clock.now() - seconds(3);
  tell(jobset_end("Completed", at, "AllJobsCompleted"));
  EXPECT_EQ(condition("Complete"), "True AllJobsCompleted: so it is");
  EXPECT_EQ(
      json::get_string(json::value(*api::condition(job(), "Complete")), {"lastTransitionTime"}),
      rfc3339(at));
}

TEST_F(TrainJobs, fail_with_their_jobset_and_stay_so) {
  make_runtime();
  make();
  tell(jobset_end("Failed", clock.now(), "FailedJobs"));
  EXPECT_EQ(condition("Failed"), "True FailedJobs: so it is");
  const std::string before(api::resource_version(job()));
  pass(seconds(100));
  EXPECT_EQ(api::resource_version(job()), before);
}

TEST_F(TrainJobs, do_not_run_again_when_the_jobset_of_a_failed_job_goes) {
  make_runtime();
  make();
  tell(jobset_end("Failed", clock.now(), "FailedJobs"));
  must_write_trainjob(server, {.verb = client::Verb::kDelete,
                               .resource = jobset_resource(),
                               .ns = "team",
                               .name = "mnist",
                               .body = json::object{}});
  settle();
  EXPECT_EQ(condition("Failed"), "True FailedJobs: so it is");
  EXPECT_TRUE(jobset().is_null());
}

TEST_F(TrainJobs, end_at_their_deadline) {
  make_runtime();
  make(R"({"activeDeadlineSeconds": 30})");
  pass(seconds(29));
  EXPECT_EQ(condition("Failed"), "none");
  pass(seconds(2));
  EXPECT_EQ(condition("Failed"), "True DeadlineExceeded: TrainJob exceeded its active deadline");
  EXPECT_TRUE(jobset().is_null()) << "and it is not made again";
  pass(seconds(10));
  EXPECT_TRUE(jobset().is_null());
}

TEST_F(TrainJobs, may_have_more_time_than_there_is) {
  make_runtime();
  make(R"({"activeDeadlineSeconds": 9223372036854775807})");
  pass(seconds(100));
  EXPECT_EQ(condition("Failed"), "none");
  EXPECT_EQ(nodes(), 2);
}

TEST_F(TrainJobs, have_their_whole_time_again_when_they_are_resumed) {
  make_runtime();
  make(R"({"activeDeadlineSeconds": 30, "suspend": true})");
  pass(seconds(100));
  EXPECT_EQ(condition("Failed"), "none") << "no time passes for what is suspended";
  patch({{"suspend", false}});
  pass(seconds(29));
  EXPECT_EQ(condition("Failed"), "none");
  pass(seconds(2));
  EXPECT_TRUE(condition("Failed").starts_with("True DeadlineExceeded"));
}

TEST_F(TrainJobs, are_left_alone_where_somebody_else_manages_them) {
  make_runtime();
  make(R"({"managedBy": "kueue.x-k8s.io/multikueue"})");
  EXPECT_TRUE(jobset().is_null());
  EXPECT_EQ(json::find(job(), {"status"}), nullptr);
}

TEST(BuiltinRuntimes, are_good_and_have_what_the_sdk_asks_for) {
  int runtimes = 0;
  for (const client::Write& write : builtin_objects()) {
    if (write.resource != cluster_runtime_resource()) continue;
    ++runtimes;
    EXPECT_EQ(validate_runtime(write.body, {}), std::vector<Cause>{});
    EXPECT_NE(api::label(write.body, kFrameworkLabel), "");
    EXPECT_NE(json::find(write.body, {"spec", "mlPolicy"}), nullptr);
    EXPECT_EQ(check_against(trainjob(), write.body), std::vector<Cause>{});
  }
  EXPECT_EQ(runtimes, 6);
}

// The JobSet does as JobSets do; a person suspends and resumes.
bool step(client::Client& client, Time now, Random& random, int& steps) {
  const auto jobs = client.list(trainjob_resource(), {}, {})->items;
  const bool suspended = json::get_bool(*jobs[0], {"spec", "suspend"}).value_or(false);
  if (api::condition_true(*jobs[0], "Failed") || api::condition_true(*jobs[0], "Complete")) {
    return false;
  }
  if (suspended || (steps++ < 6 && random.chance(30))) {
    change_trainjob(client, trainjob_resource(), "mnist", {{"spec", {{"suspend", !suspended}}}});
    return true;
  }
  const auto sets = client.list(jobset_resource(), {}, {})->items;
  for (const Object& set : sets) {
    if (api::controller_of(*set) == nullptr) continue;
    if (steps < 4 || random.chance(50)) return true;  // it runs on
    change_trainjob(client, jobset_resource(), api::name(*set),
                    jobset_end(random.chance(30) ? "Failed" : "Completed", now, "Over"), "status");
    return true;
  }
  return false;
}

TEST(TrainJobLaws, hold) {
  int steps = 0;
  bool was_over = false;
  control::testing::LawCase laws;
  laws.controller = trainjob_controller();
  laws.arrange = [&](client::Client& client, Random& random) {
    steps = 0;
    was_over = false;
    must_write_trainjob(client,
                        {.resource = cluster_runtime_resource(), .body = testing::runtime()});
    must_write_trainjob(
        client, {.resource = trainjob_resource(),
                 .ns = "team",
                 .body = trainjob(random.chance(30) ? R"({"activeDeadlineSeconds": 8})" : "{}")});
    must_write_trainjob(client, {.resource = jobset_resource(),
                                 .ns = "team",
                                 .body = {{"metadata", {{"name", "stranger"}}}}});
  };
  laws.step = [&](client::Client& client, Time now, Random& random) {
    return step(client, now, random, steps);
  };
  laws.never = [&](client::Client& client) -> std::optional<std::string> {
    for (const Object& job : client.list(trainjob_resource(), {}, {})->items) {
      const bool over =
          api::condition_true(*job, "Complete") || api::condition_true(*job, "Failed");
      if (was_over && !over) return "a job was over and is not any more";
      was_over = over;
    }
    return {};
  };
  laws.wrong = [](client::Client& client) -> std::optional<std::string> {
    if (!client.get(jobset_resource(), "team", "stranger")) return "somebody else's set is gone";
    for (const Object& job : client.list(trainjob_resource(), {}, {})->items) {
      if (!api::condition_true(*job, "Complete") && !api::condition_true(*job, "Failed")) {
        return "the job has not ended";
      }
    }
    return {};
  };
  laws.cuts_max = 10;
  for (const std::string& sentence : control::testing::check_laws(laws)) ADD_FAILURE() << sentence;
}

}  // namespace
}  // namespace skiff::trainer
