// Checkers of what a feature promises, on worlds made by hand: the platform's own are shown to fail
// by whole runs in world_test.cc.
#include <gtest/gtest.h>

#include <set>

#include "api/meta.h"
#include "base/json.h"
#include "scheduler/snapshot.h"
#include "sim/checker.h"

namespace skiff::sim {
namespace {

Object object(std::string_view text) {
  auto parsed = json::parse(text);
  EXPECT_TRUE(parsed) << text;
  return std::make_shared<const json::value>(std::move(*parsed));
}

// A pod of job "j" in the place worker-INDEX.
std::string pod(std::string_view name, std::string_view index, std::string_view phase,
                std::string_view cluster = "[\"a\",\"b\"]") {
  json::value out = json::object{
      {"metadata",
       {{"name", json::string(name)},
        {"labels",
         {{"training.kubeflow.org/replica-type", "worker"},
          {"training.kubeflow.org/replica-index", json::string(index)}}},
        {"ownerReferences",
         {json::object{{"kind", "TFJob"}, {"name", "j"}, {"uid", "u"}, {"controller", true}}}}}},
      {"spec",
       {{"containers",
         {json::object{{"env",
                        {json::object{{"name", "TF_CONFIG"},
                                      {"value", R"({"cluster":{"worker":)" + std::string(cluster) +
                                                    R"(},"task":{"index":)" + std::string(index) +
                                                    "}}"}}}}}}}}},
      {"status", {{"phase", json::string(phase)}}}};
  return json::serialize(out);
}

struct Case {
  std::string_view what;
  std::string_view noticed_by;  // empty: all is well
  std::string_view spec;
  std::string_view status;
  std::vector<std::string> pods;
};

std::vector<Case> cases() {
  return {
      {"two workers, one done",
       "",
       R"({"runPolicy":{"backoffLimit":2}})",
       R"({"restarts":2,"replicaHistory":{"Worker":{"succeeded":"1"}}})",
       {pod("a", "0", "Running"), pod("b", "1", "Succeeded")}},
      {"two pods in one place",
       "job-slots",
       "{}",
       "{}",
       {pod("a", "0", "Running"), pod("b", "0", "Running")}},
      {"a replica that was done runs again",
       "job-success",
       "{}",
       R"({"replicaHistory":{"Worker":{"succeeded":"1"}}})",
       {pod("a", "0", "Running"), pod("b", "1", "Running")}},
      {"more pods replaced than allowed",
       "job-limit",
       R"({"runPolicy":{"backoffLimit":2}})",
       R"({"restarts":3})",
       {pod("a", "0", "Running")}},
      {"a success that is counted and not remembered",
       "job-memory",
       "{}",
       R"({"replicaStatuses":{"Worker":{"succeeded":1}}})",
       {pod("a", "0", "Succeeded")}},
      {"more workers counted than there ever were",
       "job-counts",
       R"({"tfReplicaSpecs":{"Worker":{"replicas":1}}})",
       R"({"replicaStatuses":{"Worker":{"active":2}}})",
       {pod("a", "0", "Running")}},
      {"two members see different clusters",
       "job-cluster",
       "{}",
       "{}",
       {pod("a", "0", "Running"), pod("b", "1", "Running", "[\"a\",\"c\"]")}},
  };
}

View view_of(const Case& c) {
  View view{.roots = {"tfjobs.kubeflow.org"}};
  view.objects["tfjobs.kubeflow.org"] = {
      object(R"({"kind":"TFJob","metadata":{"name":"j","uid":"u"},"spec":)" + std::string(c.spec) +
             R"(,"status":)" + std::string(c.status) + "}")};
  for (const std::string& text : c.pods) view.objects["pods"].push_back(object(text));
  return view;
}

TEST(Checkers, each_promise_of_training_jobs_is_noticed_when_broken) {
  for (const Case& c : cases()) {
    const View view = view_of(c);
    for (const auto& checker : all_checkers()) {
      if (!checker->name().starts_with("job-")) continue;
      EXPECT_EQ(checker->check(view).has_value(), checker->name() == c.noticed_by)
          << c.what << ": " << checker->name();
    }
  }
}

TEST(Checkers, each_checker_of_training_jobs_has_a_case) {
  std::set<std::string_view> noticed;
  for (const Case& c : cases()) noticed.insert(c.noticed_by);
  for (const auto& checker : all_checkers()) {
    if (checker->name().starts_with("job-")) EXPECT_TRUE(noticed.contains(checker->name()));
  }
}

// Pods of gang "g" that asks for `min` now: "a>n1", or with how they ended: "a>n1=Succeeded".
View gang_of(std::string_view min, const std::vector<std::string>& pods) {
  View view;
  for (const std::string& text : pods) {
    const std::size_t place = text.find('>');
    const std::size_t phase = text.find('=');
    const std::string name = text.substr(0, place);
    json::value pod = json::object{{"metadata",
                                    {{"name", name},
                                     {"uid", name},
                                     {"annotations",
                                      {{scheduler::kGangAnnotation, "g"},
                                       {scheduler::kGangMinAnnotation, json::string(min)}}}}},
                                   {"spec", json::object{}},
                                   {"status", json::object{}}};
    if (place != std::string::npos) {
      json::set(pod, {"spec", "nodeName"}, json::string(text.substr(place + 1, phase - place - 1)));
    }
    if (phase != std::string::npos) {
      json::set(pod, {"status", "phase"}, json::string(text.substr(phase + 1)));
    }
    view.objects["pods"].push_back(object(json::serialize(pod)));
  }
  return view;
}

bool gangs_complain(std::initializer_list<View> views) {
  for (const auto& checker : all_checkers()) {
    if (checker->name() != "gangs") continue;
    for (const View& view : views) {
      if (checker->check(view)) return true;
    }
  }
  return false;
}

TEST(Checkers, pods_that_have_ended_are_no_part_of_a_gang_that_starts) {
  const View whole = gang_of("4", {"a>n1", "b>n1", "c>n1", "d>n1"});
  const View three_lost = gang_of("3", {"a>n1=Succeeded", "b2", "c2", "d2"});
  EXPECT_FALSE(gangs_complain({whole, three_lost}));
  EXPECT_FALSE(gangs_complain(
      {whole, three_lost, gang_of("3", {"a>n1=Succeeded", "b2>n1", "c2>n1", "d2>n1"})}));
  EXPECT_TRUE(gangs_complain(
      {whole, three_lost, gang_of("3", {"a>n1=Succeeded", "b2>n1", "c2>n1", "d2"})}));
  EXPECT_TRUE(gangs_complain({gang_of("2", {"a>n1", "b"})}));
}

TEST(Checkers, members_that_end_when_the_others_have_just_started_were_there) {
  EXPECT_FALSE(gangs_complain({gang_of("2", {"a>n1", "b>n1"}), gang_of("2", {"a>n1", "b2"}),
                               gang_of("2", {"a>n1=Failed", "b2>n1"})}));
}

}  // namespace
}  // namespace skiff::sim
