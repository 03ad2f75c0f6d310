#include "apiserver/admission/test_admission.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kPriorityClassKey = "priorityclasses.scheduling.k8s.io";

class PodFilling : public ::testing::Test {
 protected:
  void priority_class(std::string name, std::string_view body) {
    world.put(std::string(kPriorityClassKey), "", std::move(name), body);
  }
  std::string with(std::string_view more) {
    return std::string(kOneContainer) + "," + std::string(more);
  }
  AdmissionWorld world;
};

TEST_F(PodFilling, Without_classes_the_priority_is_zero_and_preempts) {
  const auto [code, pod] = world.run("p", kOneContainer);
  ASSERT_EQ(code, 201);
  EXPECT_EQ(json::get_int(pod, {"spec", "priority"}), 0);
  EXPECT_EQ(json::get_string(pod, {"spec", "preemptionPolicy"}), "PreemptLowerPriority");
  EXPECT_EQ(json::find(pod, {"spec", "priorityClassName"}), nullptr);
}

TEST_F(PodFilling, A_class_gives_its_value_and_policy) {
  priority_class("high", R"({"value":1000,"preemptionPolicy":"Never"})");
  const auto [code, pod] = world.run("p", with(R"("priorityClassName":"high")"));
  ASSERT_EQ(code, 201);
  EXPECT_EQ(json::get_int(pod, {"spec", "priority"}), 1000);
  EXPECT_EQ(json::get_string(pod, {"spec", "preemptionPolicy"}), "Never");
}

TEST_F(PodFilling, The_lowest_of_the_default_classes_is_everybodys) {
  priority_class("a", R"({"value":20,"globalDefault":true})");
  priority_class("b", R"({"value":10,"globalDefault":true})");
  priority_class("c", R"({"value":1})");
  const auto [code, pod] = world.run("p", kOneContainer);
  ASSERT_EQ(code, 201);
  EXPECT_EQ(json::get_int(pod, {"spec", "priority"}), 10);
  EXPECT_EQ(json::get_string(pod, {"spec", "priorityClassName"}), "b");
}

TEST_F(PodFilling, Priorities_that_contradict_their_class_are_refused) {
  priority_class("high", R"({"value":1000,"preemptionPolicy":"Never"})");
  EXPECT_EQ(world.message(world.run("p", with(R"("priorityClassName":"none")"))),
            "pods \"p\" is forbidden: no PriorityClass with name none was found");
  EXPECT_EQ(world.message(world.run("p", with(R"("priorityClassName":"high","priority":7)"))),
            "pods \"p\" is forbidden: the integer value of priority (7) must not be provided in "
            "pod spec; priority admission controller computed 1000 from the given PriorityClass "
            "name");
  EXPECT_EQ(world.message(world.run("p", with(R"("priorityClassName":"high",)"
                                              R"("preemptionPolicy":"PreemptLowerPriority")"))),
            "pods \"p\" is forbidden: the string value of PreemptionPolicy (PreemptLowerPriority) "
            "must not be provided in pod spec; priority admission controller computed Never from "
            "the given PriorityClass name");
}

TEST_F(PodFilling, An_update_may_leave_out_what_the_server_filled_in) {
  const auto [code, pod] = world.run("p", kOneContainer);
  ASSERT_EQ(code, 201);
  json::value again = pod;
  json::make_object(again, {"spec"}).erase("priority");
  json::make_object(again, {"spec"}).erase("preemptionPolicy");
  json::make_object(again, {"spec"}).erase("tolerations");
  const auto [code2, same] = world.call("PUT", World::pods("/p"), json::serialize(again));
  EXPECT_EQ(code2, 200) << json::serialize(same);
  EXPECT_EQ(api::resource_version(same), api::resource_version(pod));
}

TEST_F(PodFilling, A_pod_stays_five_minutes_on_a_node_that_is_lost) {
  const auto [code, pod] = world.run(
      "p", with(R"("tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists"}])"));
  ASSERT_EQ(code, 201);
  EXPECT_EQ(json::serialize(json::value(json::get_array(pod, {"spec", "tolerations"}))),
            R"([{"key":"node.kubernetes.io/not-ready","operator":"Exists"},)"
            R"({"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute",)"
            R"("tolerationSeconds":300}])");
  const auto [code2, all] = world.run("q", with(R"("tolerations":[{"operator":"Exists"}])"));
  ASSERT_EQ(code2, 201);
  EXPECT_EQ(json::get_array(all, {"spec", "tolerations"}).size(), 1u);
}

TEST_F(PodFilling, A_runtime_class_adds_its_overhead_and_its_nodes) {
  world.put("runtimeclasses.node.k8s.io", "", "vm",
            R"({"handler":"vm","overhead":{"podFixed":{"memory":"64Mi"}},
                "scheduling":{"nodeSelector":{"vm":"yes"},
                "tolerations":[{"key":"vm","operator":"Exists"}]}})");
  const auto [code, pod] = world.run("p", with(R"("runtimeClassName":"vm")"));
  ASSERT_EQ(code, 201) << json::serialize(pod);
  EXPECT_EQ(json::get_string(pod, {"spec", "overhead", "memory"}), "64Mi");
  EXPECT_EQ(json::get_string(pod, {"spec", "nodeSelector", "vm"}), "yes");
  EXPECT_EQ(json::get_array(pod, {"spec", "tolerations"}).size(), 3u);
  EXPECT_EQ(world.message(world.run("q", with(R"("runtimeClassName":"none")"))),
            "pods \"q\" is forbidden: pod rejected: RuntimeClass \"none\" not found");
  EXPECT_EQ(
      world.message(world.run("q", with(R"("runtimeClassName":"vm","nodeSelector":{"vm":"no"})"))),
      "pods \"q\" is forbidden: conflict: runtimeClass.scheduling.nodeSelector[vm] = yes; "
      "pod.spec.nodeSelector[vm] = no");
  EXPECT_EQ(world.message(world.run("q", with(R"("overhead":{"cpu":"1"})"))),
            "pods \"q\" is forbidden: pod rejected: Pod Overhead set without corresponding "
            "RuntimeClass defined Overhead");
  EXPECT_EQ(
      world.message(world.run("q", with(R"("runtimeClassName":"vm","overhead":{"memory":"1Mi"})"))),
      "pods \"q\" is forbidden: pod rejected: Pod's Overhead doesn't match RuntimeClass's "
      "defined Overhead");
}

}  // namespace
}  // namespace skiff::apiserver
