#include "apiserver/admission/amounts.h"
#include "apiserver/admission/test_admission.h"

namespace skiff::apiserver {
namespace {

class LimitRanges : public ::testing::Test {
 protected:
  void limit(std::string_view item, std::string name = "lr") {
    world.put("limitranges", "default", std::move(name),
              R"({"spec":{"limits":[)" + std::string(item) + "]}}");
  }
  AdmissionWorld world;
};

TEST_F(LimitRanges, A_container_that_says_nothing_gets_the_defaults_and_the_pod_a_note) {
  limit(R"({"type":"Container","default":{"cpu":"500m","memory":"1Gi"},
            "defaultRequest":{"cpu":"100m"}})");
  const auto [code, pod] = world.run("p", kOneContainer);
  ASSERT_EQ(code, 201);
  const json::value& container = json::get_array(pod, {"spec", "containers"})[0];
  EXPECT_EQ(json::serialize(json::get_object(container, {"resources", "limits"})),
            R"({"cpu":"500m","memory":"1Gi"})");
  EXPECT_EQ(json::serialize(json::get_object(container, {"resources", "requests"})),
            R"({"cpu":"100m"})");
  EXPECT_EQ(json::get_string(pod, {"metadata", "annotations", "kubernetes.io/limit-ranger"}),
            "LimitRanger plugin set: cpu request for container c; cpu, memory limit for container "
            "c");
  EXPECT_EQ(json::get_string(pod, {"status", "qosClass"}), "Burstable");
}

TEST_F(LimitRanges, What_a_container_says_stays) {
  limit(R"({"type":"Container","default":{"cpu":"500m"}})");
  const auto [code, pod] = world.run("p", container_with(R"({"limits":{"cpu":"2"}})"));
  ASSERT_EQ(code, 201);
  EXPECT_EQ(json::get_string(json::get_array(pod, {"spec", "containers"})[0],
                             {"resources", "limits", "cpu"}),
            "2");
  EXPECT_EQ(json::find(pod, {"metadata", "annotations", "kubernetes.io/limit-ranger"}), nullptr);
}

struct LimitRangesCase {
  std::string_view what, item, resources, message;
};

TEST_F(LimitRanges, Bounds_are_told_in_the_words_of_the_real_server) {
  const LimitRangesCase kCases[] = {
      {"no request", R"({"type":"Container","min":{"cpu":"100m"}})", "{}",
       "minimum cpu usage per Container is 100m.  No request is specified"},
      {"small request", R"({"type":"Container","min":{"cpu":"100m"}})",
       R"({"requests":{"cpu":"50m"}})",
       "minimum cpu usage per Container is 100m, but request is 50m"},
      {"no limit", R"({"type":"Container","max":{"memory":"1Gi"}})", "{}",
       "maximum memory usage per Container is 1Gi.  No limit is specified"},
      {"large limit", R"({"type":"Container","max":{"memory":"1Gi"}})",
       R"({"requests":{"memory":"1Mi"},"limits":{"memory":"2Gi"}})",
       "maximum memory usage per Container is 1Gi, but limit is 2Gi"},
      {"ratio", R"({"type":"Container","maxLimitRequestRatio":{"cpu":"2"}})",
       R"({"requests":{"cpu":"100m"},"limits":{"cpu":"500m"}})",
       "cpu max limit to request ratio per Container is 2, but provided ratio is 5.000000"},
      {"ratio without request", R"({"type":"Container","maxLimitRequestRatio":{"cpu":"2"}})", "{}",
       "cpu max limit to request ratio per Container is 2, but no request is specified or request "
       "is 0"},
      {"pod", R"({"type":"Pod","max":{"cpu":"1"}})",
       R"({"requests":{"cpu":"2"},"limits":{"cpu":"3"}})",
       "maximum cpu usage per Pod is 1, but limit is 3"},
      {"two at once", R"({"type":"Container","min":{"cpu":"1","memory":"1Gi"}})", "{}",
       "[minimum cpu usage per Container is 1.  No request is specified, minimum memory usage per "
       "Container is 1Gi.  No request is specified]"}};
  for (const LimitRangesCase& c : kCases) {
    AdmissionWorld fresh;
    fresh.put("limitranges", "default", "lr",
              R"({"spec":{"limits":[)" + std::string(c.item) + "]}}");
    const auto answer = fresh.run("p", container_with(c.resources));
    EXPECT_EQ(answer.first, 403) << c.what;
    EXPECT_EQ(fresh.message(answer), "pods \"p\" is forbidden: " + std::string(c.message))
        << c.what;
    EXPECT_EQ(json::get_string(answer.second, {"reason"}), "Forbidden");
    EXPECT_EQ(json::get_string(answer.second, {"details", "kind"}), "pods");
  }
}

TEST_F(LimitRanges, What_is_within_the_bounds_comes_in_and_other_namespaces_are_free) {
  limit(R"({"type":"Container","min":{"cpu":"100m"},"max":{"cpu":"1"}})");
  EXPECT_EQ(
      world.run("p", container_with(R"({"requests":{"cpu":"200m"},"limits":{"cpu":"1"}})")).first,
      201);
  const auto elsewhere =
      world.call("POST", "/api/v1/namespaces/kube-system/pods", world.pod("free"));
  EXPECT_EQ(elsewhere.first, 201);
}

TEST_F(LimitRanges, An_update_of_a_pod_is_not_judged_again) {
  ASSERT_EQ(world.run("p", kOneContainer).first, 201);
  limit(R"({"type":"Container","min":{"cpu":"100m"}})");
  const auto answer = world.call("PATCH", World::pods("/p"), R"({"metadata":{"labels":{"a":"b"}}})",
                                 "application/merge-patch+json");
  EXPECT_EQ(answer.first, 200);
}

std::string sum(std::string_view spec, Side side, Overhead overhead = Overhead::kWithout) {
  return json::serialize(write_amounts(pod_amounts(text_to_json(spec), side, overhead)));
}

TEST(PodAmounts, Containers_add_up_and_an_init_container_may_ask_for_more) {
  EXPECT_EQ(sum(R"({"containers":[{"resources":{"requests":{"cpu":"1"}}},
                                  {"resources":{"requests":{"cpu":"500m","memory":"1Gi"}}}],
                    "initContainers":[{"resources":{"requests":{"cpu":"2"}}}]})",
                Side::kRequests),
            R"({"cpu":"2","memory":"1Gi"})");
}

TEST(PodAmounts, A_restartable_init_container_stands_beside_all_that_come_after_it) {
  EXPECT_EQ(sum(R"({"containers":[{"resources":{"requests":{"cpu":"1"}}}],
                    "initContainers":[
                      {"restartPolicy":"Always","resources":{"requests":{"cpu":"1"}}},
                      {"resources":{"requests":{"cpu":"3"}}}]})",
                Side::kRequests),
            R"({"cpu":"4"})");
}

TEST(PodAmounts, What_is_said_for_the_whole_pod_wins_and_overhead_comes_on_top) {
  EXPECT_EQ(sum(R"({"containers":[{"resources":{"requests":{"cpu":"1"}}}],
                    "resources":{"requests":{"cpu":"5"}},
                    "overhead":{"cpu":"250m","memory":"1Mi"}})",
                Side::kRequests, Overhead::kWith),
            R"({"cpu":"5250m","memory":"1Mi"})");
  EXPECT_EQ(sum(R"({"containers":[{"resources":{"limits":{"cpu":"1"}}}],
                    "overhead":{"cpu":"1","memory":"1Mi"}})",
                Side::kLimits, Overhead::kWith),
            R"({"cpu":"2"})");
}

}  // namespace
}  // namespace skiff::apiserver
