#include "api/core/claims.h"

#include <gtest/gtest.h>

#include "api/core/node_selector.h"
#include "api/test_kind.h"

namespace skiff::api {
namespace {

using testing::parsed;

TEST(Claims, APodUsesWhatItNamesAndWhatIsMadeForIt) {
  const json::value pod = parsed(R"({"metadata":{"name":"p"},"spec":{"volumes":[
      {"name":"a","persistentVolumeClaim":{"claimName":"x","readOnly":true}},
      {"name":"b","emptyDir":{}},
      {"name":"c","ephemeral":{"volumeClaimTemplate":{"spec":{"k":1}}}}]}})");
  const auto uses = claims_of(pod);
  ASSERT_EQ(uses.size(), 2U);
  EXPECT_EQ(uses[0].volume, "a");
  EXPECT_EQ(uses[0].claim, "x");
  EXPECT_TRUE(uses[0].read_only);
  EXPECT_EQ(uses[0].claim_template, nullptr);
  EXPECT_EQ(uses[1].claim, "p-c");
  ASSERT_NE(uses[1].claim_template, nullptr);
  EXPECT_EQ(json::get_int(*uses[1].claim_template, {"spec", "k"}), 1);
}

TEST(Claims, AClaimStaysForAPodThatMayUseIt) {
  const auto pod = [](const std::string& metadata, const std::string& spec) {
    return parsed(R"({"metadata":{"name":"p")" + metadata + R"(},"spec":{)" + spec +
                  R"("volumes":[{"name":"a","persistentVolumeClaim":{"claimName":"x"}},
                      {"name":"c","ephemeral":{"volumeClaimTemplate":{}}}]}})");
  };
  const std::string node = R"("nodeName":"n",)";
  const std::string over =
      R"(,"deletionTimestamp":"2026-01-01T00:00:00Z","deletionGracePeriodSeconds":0)";
  EXPECT_FALSE(holds_claim(pod("", ""), "x")) << "it has no node";
  EXPECT_TRUE(holds_claim(pod("", node), "x"));
  EXPECT_TRUE(holds_claim(pod("", node), "p-c"));
  EXPECT_FALSE(holds_claim(pod("", node), "y"));
  EXPECT_TRUE(holds_claim(pod(over, node), "x"));
  EXPECT_FALSE(holds_claim(pod(over, node), "p-c")) << "the pod may be waiting for it";
}

TEST(Claims, TheOldAnnotationNamesTheClassToo) {
  EXPECT_EQ(storage_class(parsed(R"({"spec":{"storageClassName":"a"}})")), "a");
  EXPECT_EQ(storage_class(parsed(R"({"metadata":{"annotations":{
      "volume.beta.kubernetes.io/storage-class":"b"}},"spec":{"storageClassName":"a"}})")),
            "b");
  EXPECT_EQ(storage_class(parsed(R"({"spec":{}})")), "");
}

TEST(Claims, ABoundClaimSaysSoTwice) {
  const std::string annotated =
      R"({"metadata":{"annotations":{"pv.kubernetes.io/bind-completed":"yes"}})";
  EXPECT_TRUE(bound(parsed(annotated + R"(,"status":{"phase":"Bound"}})")));
  EXPECT_FALSE(bound(parsed(annotated + R"(,"status":{"phase":"Lost"}})")));
  EXPECT_FALSE(bound(parsed(R"({"status":{"phase":"Bound"}})")));
}

TEST(NodeSelector, OneOfItsTermsMustHold) {
  const json::value node =
      parsed(R"({"metadata":{"name":"n1","labels":{"zone":"a","cores":"8"}}})");
  const auto selects = [&](const std::string& terms) {
    return selects_node(parsed(R"({"nodeSelectorTerms":[)" + terms + "]}"), node);
  };
  const auto expression = [](const std::string& key, const std::string& op,
                             const std::string& values) {
    return R"({"matchExpressions":[{"key":")" + key + R"(","operator":")" + op + R"(","values":[)" +
           values + "]}]}";
  };
  EXPECT_TRUE(selects(expression("zone", "In", R"("b","a")")));
  EXPECT_FALSE(selects(expression("zone", "NotIn", R"("a")")));
  EXPECT_TRUE(selects(expression("cores", "Gt", R"("7")")));
  EXPECT_FALSE(selects(expression("cores", "Lt", R"("8")")));
  EXPECT_TRUE(selects(expression("rack", "DoesNotExist", "")));
  EXPECT_TRUE(selects(expression("rack", "Exists", "") + "," + expression("zone", "Exists", "")));
  EXPECT_TRUE(
      selects(R"({"matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}]})"));
  EXPECT_FALSE(selects("{}"));
  EXPECT_FALSE(selects(""));
}

TEST(NodeSelector, AVolumeWithoutAnAffinityReachesEveryNode) {
  const json::value node = parsed(R"({"metadata":{"name":"n1","labels":{"h":"a"}}})");
  EXPECT_TRUE(volume_reaches_node(parsed(R"({"spec":{}})"), node));
  const auto bound_to = [](const std::string& host) {
    return parsed(R"({"spec":{"nodeAffinity":{"required":{"nodeSelectorTerms":[
        {"matchExpressions":[{"key":"h","operator":"In","values":[")" +
                  host + R"("]}]}]}}}})");
  };
  EXPECT_TRUE(volume_reaches_node(bound_to("a"), node));
  EXPECT_FALSE(volume_reaches_node(bound_to("b"), node));
}

}  // namespace
}  // namespace skiff::api
