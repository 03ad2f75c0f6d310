#include "features/trainer/gang.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "api/meta.h"
#include "features/trainer/builtin_runtimes.h"
#include "features/trainer/jobset_of.h"
#include "features/trainer/testing/objects.h"

namespace skiff::trainer {
namespace {

using testing::must_parse;

json::value gang_job() {
  json::value out = testing::trainjob(R"({"trainer": {"numNodes": 2}})");
  json::set(out, {"metadata", "uid"}, "u-1");
  return out;
}

// Each part with the number that its pods are told, those in no gang without one.
std::string gangs_of(const json::value& runtime) {
  std::string out;
  const json::value jobset = jobset_of(gang_job(), runtime);
  for (const json::value& part : json::get_array(jobset, {"spec", "replicatedJobs"})) {
    const auto mark = [&](std::string_view name) {
      return json::get_string(part,
                              {"template", "spec", "template", "metadata", "annotations", name});
    };
    out += json::get_string(part, {"name"});
    const std::string_view min = mark("scheduling.skiff.dev/gang-min");
    const std::string_view gang = mark("scheduling.skiff.dev/gang");
    EXPECT_EQ(gang, min.empty() ? "" : "u-1");
    if (!min.empty()) out += "=" + std::string(min);
    out += " ";
  }
  return out;
}

json::array& gang_parts_of(json::value& runtime) {
  return json::make_object(runtime, {"spec", "template", "spec"})["replicatedJobs"].as_array();
}

void add_part(json::value& runtime, std::string_view name, std::string_view depends_on = "[]") {
  json::value part = must_parse(R"({"replicas": 2, "template": {"spec": {"parallelism": 2,
      "template": {"spec": {"containers": [{"name": "main", "image": "x"}]}}}}})");
  json::set(part, {"name"}, json::string(name));
  json::set(part, {"dependsOn"}, must_parse(depends_on));
  gang_parts_of(runtime).push_back(std::move(part));
}

json::value grouped(json::value runtime) {
  json::set(runtime, {"spec", "podGroupPolicy"},
            must_parse(R"({"coscheduling": {"scheduleTimeoutSeconds": 60}})"));
  return runtime;
}

json::value mpi_runtime_of() {
  for (const client::Write& write : builtin_objects()) {
    if (json::get_string(write.body, {"metadata", "name"}) == "deepspeed-distributed") {
      json::value out = write.body;
      json::set(out, {"spec", "mlPolicy", "mpi", "runLauncherAsNode"}, false);
      return out;
    }
  }
  return {};
}

std::string launcher_waits_for(const json::value& runtime) {
  std::string out;
  const json::value jobset = jobset_of(gang_job(), runtime);
  for (const json::value& part : json::get_array(jobset, {"spec", "replicatedJobs"})) {
    if (json::get_string(part, {"name"}) != "launcher") continue;
    for (const json::value& wanted : json::get_array(part, {"dependsOn"})) {
      out += json::get_string(wanted, {"name"});
      out += " ";
    }
  }
  return out;
}

TEST(GangOfATrainJob, is_the_part_that_trains_where_nobody_asks_for_more) {
  json::value runtime = testing::runtime();
  add_part(runtime, "beside");
  EXPECT_EQ(gangs_of(runtime), "node=2 beside ");
}

TEST(GangOfATrainJob, is_all_that_runs_at_the_same_time_with_a_pod_group_policy) {
  json::value runtime = testing::runtime_with_initializer();
  add_part(runtime, "beside");
  add_part(runtime, "after", R"([{"name": "node", "status": "Complete"}])");
  add_part(runtime, "later", R"([{"name": "beside", "status": "Ready"}])");
  // Four pods are two replicas of two.
  EXPECT_EQ(gangs_of(grouped(runtime)), "dataset-initializer node=6 beside=6 after later ");
}

TEST(GangOfATrainJob, tells_each_job_how_many_of_it_are_its_own) {
  json::value runtime = testing::runtime_with_initializer();
  add_part(runtime, "beside");
  std::string out;
  const json::value jobset = jobset_of(gang_job(), grouped(runtime));
  for (const json::value& part : json::get_array(jobset, {"spec", "replicatedJobs"})) {
    out += json::get_string(part, {"name"});
    out += "=";
    out += json::get_string(part, {"template", "spec", "template", "metadata", "annotations",
                                   "scheduling.skiff.dev/gang-share"});
    out += " ";
  }
  EXPECT_EQ(out, "dataset-initializer= node=2 beside=2 ") << "of the two Jobs each, not of both";
}

TEST(GangOfATrainJob, leaves_out_what_something_before_it_needs) {
  json::value runtime = testing::runtime_with_initializer();
  json::value server = must_parse(R"({"name": "server", "template": {"spec": {"template": {
      "spec": {"containers": [{"name": "main", "image": "x"}]}}}}})");
  gang_parts_of(runtime).insert(gang_parts_of(runtime).begin(), std::move(server));
  gang_parts_of(runtime)[1].as_object()["dependsOn"] =
      must_parse(R"([{"name": "server", "status": "Ready"}])");
  EXPECT_EQ(gangs_of(grouped(runtime)), "server dataset-initializer node=2 ")
      << "the initializer runs while the nodes are not there yet";
}

TEST(GangOfATrainJob, leaves_out_parts_that_start_one_after_the_other) {
  json::value runtime = testing::runtime();
  add_part(runtime, "second");
  json::set(runtime, {"spec", "template", "spec", "startupPolicy"},
            must_parse(R"({"startupPolicyOrder": "InOrder"})"));
  EXPECT_EQ(gangs_of(grouped(runtime)), "node=2 second ");
}

TEST(GangOfAnMpi, has_the_launcher_which_need_not_wait_for_nodes_that_its_shell_waits_for) {
  const json::value runtime = mpi_runtime_of();
  EXPECT_EQ(gangs_of(runtime), "node=3 launcher=3 ");
  EXPECT_EQ(launcher_waits_for(runtime), "");
}

TEST(GangOfAnMpi, starts_when_both_may_start) {
  json::value runtime = mpi_runtime_of();
  json::value first = must_parse(R"({"name": "fetch", "template": {"spec": {"template": {
      "spec": {"containers": [{"name": "main", "image": "x"}]}}}}})");
  gang_parts_of(runtime).insert(gang_parts_of(runtime).begin(), std::move(first));
  gang_parts_of(runtime)[1].as_object()["dependsOn"] =
      must_parse(R"([{"name": "fetch", "status": "Complete"}])");
  EXPECT_EQ(gangs_of(runtime), "fetch node=3 launcher=3 ");
  EXPECT_EQ(launcher_waits_for(runtime), "fetch ") << "what its nodes wait for";
  gang_parts_of(runtime)[1].as_object().erase("dependsOn");
  gang_parts_of(runtime)[2].as_object()["dependsOn"] =
      must_parse(R"([{"name": "fetch", "status": "Complete"}])");
  EXPECT_EQ(gangs_of(runtime), "fetch node=3 launcher=3 ") << "nodes are there first and wait";
}

TEST(GangOfAnMpi, has_the_launcher_that_is_there_before_its_nodes) {
  json::value runtime = mpi_runtime_of();
  add_part(runtime, "fetch");
  json::array& parts = gang_parts_of(runtime);
  std::ranges::rotate(parts, parts.end() - 1);
  parts[1].as_object()["dependsOn"] = must_parse(R"([{"name": "fetch", "status": "Complete"}])");
  parts[2].as_object().erase("dependsOn");
  EXPECT_EQ(gangs_of(runtime), "fetch node=3 launcher=3 ");
}

TEST(GangOfAnMpi, is_the_nodes_where_each_waits_for_something_else) {
  json::value runtime = mpi_runtime_of();
  add_part(runtime, "fetch");
  add_part(runtime, "build");
  json::array& parts = gang_parts_of(runtime);
  std::ranges::rotate(parts, parts.end() - 2);
  parts[2].as_object()["dependsOn"] = must_parse(R"([{"name": "fetch", "status": "Complete"}])");
  parts[3].as_object()["dependsOn"] = must_parse(R"([{"name": "build", "status": "Complete"}])");
  EXPECT_EQ(gangs_of(runtime), "fetch build node=2 launcher ");
}

TEST(GangOfAnMpi, leaves_the_launcher_to_wait_for_nodes_that_say_when_they_are_ready) {
  json::value runtime = mpi_runtime_of();
  json::object& node = json::make_object(gang_parts_of(runtime)[0],
                                         {"template", "spec", "template", "spec"})["containers"]
                           .as_array()[0]
                           .as_object();
  node["command"] = json::array{"serve"};
  node["readinessProbe"] = must_parse(R"({"exec": {"command": ["true"]}})");
  EXPECT_EQ(gangs_of(runtime), "node=2 launcher ");
  EXPECT_EQ(launcher_waits_for(runtime), "node ");
}

TEST(GangOfAnMpi, leaves_out_a_launcher_that_runs_after_the_nodes) {
  json::value runtime = mpi_runtime_of();
  gang_parts_of(runtime)[1].as_object()["dependsOn"] =
      must_parse(R"([{"name": "node", "status": "Complete"}])");
  EXPECT_EQ(gangs_of(grouped(runtime)), "node=2 launcher ");
}

}  // namespace
}  // namespace skiff::trainer
