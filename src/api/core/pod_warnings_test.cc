#include "api/core/pod_warnings.h"

#include <gtest/gtest.h>

#include "api/core/pod.h"
#include "api/test_kind.h"
#include "base/limits.h"

namespace skiff::api {
namespace {

using testing::Lines;
using testing::parsed;

Lines of(const std::string& spec, const std::string& metadata = "") {
  return pod_warnings(parsed(R"({"metadata":{)" + metadata + R"(},"spec":{)" + spec + "}}"), "");
}

TEST(PodWarnings, AreSilentAboutAnOrdinaryPod) {
  EXPECT_EQ(of(R"("nodeSelector":{"kubernetes.io/os":"linux"},"containers":[{"name":"a","image":"x",
    "env":[{"name":"A","value":"1"},{"name":"B","value":"$(A)2"}],"ports":[{"containerPort":80,
    "protocol":"TCP","name":"web"}],"resources":{"requests":{"memory":"1Gi","cpu":"100m"}}}])"),
            Lines{});
}

TEST(PodWarnings, TellOfOldLabelsWhereverTheyStand) {
  EXPECT_EQ(of(R"("nodeSelector":{"beta.kubernetes.io/os":"linux"})"),
            Lines{R"(spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use )"
                  R"("kubernetes.io/os" instead)"});
  EXPECT_EQ(of(R"("affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":
      {"nodeSelectorTerms":[{"matchExpressions":[{"key":"app.kubernetes.io/created-by"}]}]}}})"),
            Lines{"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
                  "nodeSelectorTerms[0].matchExpressions[0].key: app.kubernetes.io/created-by is "
                  "deprecated since v1.9"});
  EXPECT_EQ(of(R"("topologySpreadConstraints":[{"topologyKey":"node-role.kubernetes.io/master"}])"),
            (Lines{"spec.topologySpreadConstraints[0].topologyKey: node-role.kubernetes.io/master "
                   "is use \"node-role.kubernetes.io/control-plane\" instead",
                   "spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results "
                   "in matching no pod"}));
}

TEST(PodWarnings, TellOfFractionsOfBytes) {
  EXPECT_EQ(of(R"("containers":[{"name":"a","resources":{"limits":{"memory":"1500m"},
                  "requests":{"memory":"100m","cpu":"100m","ephemeral-storage":"0.5"}}}])"),
            (Lines{"spec.containers[0].resources.limits[memory]: fractional byte value \"1500m\" "
                   "is invalid, must be an integer",
                   "spec.containers[0].resources.requests[memory]: fractional byte value \"100m\" "
                   "is invalid, must be an integer",
                   "spec.containers[0].resources.requests[ephemeral-storage]: fractional byte "
                   "value \"500m\" is invalid, must be an integer"}));
}

TEST(PodWarnings, TellOfVariablesThatHideOthers) {
  const auto env = [](const std::string& second) {
    return of(R"("containers":[{"name":"a","env":[{"name":"X","value":"1"},)" + second + "]}]");
  };
  const Lines hides{
      "spec.containers[0].env[1]: hides previous definition of \"X\", which may be "
      "dropped when using apply"};
  const std::string itself = R"x({"name":"X","value":"$(X)"})x";
  const std::string more = R"x({"name":"X","value":"$(X):more"})x";
  EXPECT_EQ(env(R"({"name":"X","value":"2"})"), hides);
  EXPECT_EQ(env(itself), hides);
  EXPECT_EQ(env(R"({"name":"X","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}})"), hides);
  EXPECT_EQ(env(more), Lines{});
}

TEST(PodWarnings, TellOfPortsThatMeet) {
  EXPECT_EQ(of(R"("containers":[{"ports":[{"containerPort":80,"protocol":"TCP","name":"a"}]},
      {"ports":[{"containerPort":80,"protocol":"TCP","name":"a"},{"containerPort":80,
       "protocol":"UDP"},{"containerPort":80,"protocol":"UDP","hostPort":80}]}])"),
            (Lines{"spec.containers[1].ports[0]: duplicate port definition with "
                   "spec.containers[0].ports[0]",
                   "spec.containers[1].ports[2]: overlapping port definition with "
                   "spec.containers[1].ports[1]",
                   "spec.containers[1].ports[0]: duplicate port name \"a\" with "
                   "spec.containers[0].ports[0], services and probes that select ports by name "
                   "will use spec.containers[0].ports[0]"}));
}

// Every pair was told: of 20,000 ports that is 200 million sentences.
TEST(PodWarnings, SmallBodiesKillTheServerByPairsOfPortsAndFiles) {
  std::string ports, items;
  for (int i = 0; i < 20'000; ++i) {
    ports += (i == 0 ? "" : ",") + std::string(R"({"containerPort":80})");
    items += (i == 0 ? "" : ",") + std::string(R"({"key":"k","path":"p"})");
  }
  EXPECT_EQ(of(R"("containers":[{"name":"a","ports":[)" + ports + "]}]").size(),
            limits::kNamedWarnings);
  EXPECT_EQ(
      of(R"("volumes":[{"name":"v","configMap":{"name":"m","items":[)" + items + "]}}]").size(),
      limits::kNamedWarnings);
}

TEST(PodWarnings, TellOfVolumesThatAreGoneOrHideFiles) {
  EXPECT_EQ(of(R"("volumes":[{"name":"v","gitRepo":{}},{"name":"w","storageos":{}}])"),
            (Lines{"spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in "
                   "v1.33+",
                   "spec.volumes[1].storageOS: deprecated in v1.22, non-functional in v1.25+"}));
  EXPECT_EQ(of(R"("volumes":[{"name":"v","configMap":{"name":"m","items":[
      {"key":"a","path":"x"},{"key":"b","path":"x/y"},{"key":"c","path":"xy"}]}}])"),
            Lines{R"(volume "v" (ConfigMap "m"): overlapping paths: "x/y" with "x")"});
  EXPECT_EQ(of(R"("volumes":[{"name":"v","projected":{"sources":[{},
      {"serviceAccountToken":{"path":"t"}},{"secret":{"name":"s","items":[{"path":"t"}]}}]}}])"),
            (Lines{R"(volume "v" (Projected) has no sources provided)",
                   R"(volume "v" (Projected): overlapping paths: "t" (Secret "s") with "t" )"
                   R"((ServiceAccountToken))"}));
}

TEST(PodWarnings, OfATemplateComeOnCreateAndWhenItsSpecChanges) {
  const std::string text =
      R"({"metadata":{"name":"d"},"spec":{"template":{"spec":{"terminationGracePeriodSeconds":-1}}}})";
  const Lines expected{
      "spec.template.spec.terminationGracePeriodSeconds: must be >= 0; negative "
      "values are invalid and will be treated as 1"};
  const json::value object = parsed(text), other = parsed(R"({"spec":{"replicas":2}})");
  EXPECT_EQ(workload_warnings(object, {}), expected);
  EXPECT_EQ(workload_warnings(object, {.old = &object}), Lines{});
  EXPECT_EQ(workload_warnings(object, {.old = &other}), expected);
  EXPECT_EQ(workload_warnings(object, {.old = &other, .subresource = "status"}), Lines{});
}

}  // namespace
}  // namespace skiff::api
