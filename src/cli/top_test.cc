#include <gtest/gtest.h>

#include "cli/testing/objects.h"
#include "cli/top_text.h"

namespace skiff::cli {
namespace {

using testing::object;

const std::vector<Object>& metered_pods() {
  static const std::vector<Object> kPods = {
      object(R"({"metadata":{"name":"web","namespace":"team"},"containers":[
        {"name":"app","usage":{"cpu":"1500000n","memory":"2048Ki"}},
        {"name":"log","usage":{"cpu":"250m","memory":"1Mi"}}]})"),
      object(R"({"metadata":{"name":"db","namespace":"default"},"containers":[
        {"name":"db","usage":{"cpu":"1","memory":"100Ki"}}]})")};
  return kPods;
}

TEST(TopPods, AddsUpContainersAndRoundsAsKubectlDoes) {
  EXPECT_EQ(top_pods(metered_pods(), {}), R"(NAME   CPU(cores)   MEMORY(bytes)
db     1000m        0Mi
web    252m         3Mi
)");
}

TEST(TopPods, ShowsNamespacesAndContainers) {
  EXPECT_EQ(top_pods(metered_pods(), {.containers = true, .with_namespace = true}),
            R"(NAMESPACE   POD   NAME   CPU(cores)   MEMORY(bytes)
default     db    db     1000m        0Mi
team        web   app    2m           2Mi
team        web   log    250m         1Mi
)");
}

TEST(TopPods, TheLargestComesFirst) {
  EXPECT_EQ(top_pods(metered_pods(), {.sort_by = "memory", .with_header = false}),
            "web   252m    3Mi\ndb    1000m   0Mi\n");
  EXPECT_EQ(top_pods(metered_pods(), {.sort_by = "cpu", .with_header = false}),
            "db    1000m   0Mi\nweb   252m    3Mi\n");
}

TEST(TopNodes, SharesAreOfWhatIsAllocatable) {
  const std::vector<Object> metrics = {
      object(R"({"metadata":{"name":"b"},"usage":{"cpu":"500000000n","memory":"1048576Ki"}})"),
      object(R"({"metadata":{"name":"c"},"usage":{"cpu":"1m","memory":"1Mi"}})")};
  const std::vector<Object> nodes = {
      object(R"({"metadata":{"name":"a"},"status":{}})"),
      object(R"({"metadata":{"name":"b"},"status":{"allocatable":{"cpu":"4","memory":"4Gi"}}})")};
  EXPECT_EQ(top_nodes(metrics, nodes, {.sort_by = "cpu"}),
            R"(NAME   CPU(cores)   CPU(%)      MEMORY(bytes)   MEMORY(%)
b      500m         12%         1024Mi          25%
c      1m           <unknown>   1Mi             <unknown>
a      <unknown>    <unknown>   <unknown>       <unknown>
)");
}

TEST(TopNodes, GpusAreShownWhereThereAreAny) {
  const std::vector<Object> metrics = {
      object(R"({"metadata":{"name":"a"},"usage":{"cpu":"1","memory":"1Mi"}})"),
      object(R"({"metadata":{"name":"b"},"usage":{"cpu":"1","memory":"1Mi",
             "nvidia.com/gpu":"1250m","nvidia.com/gpu.memory":"3072Ki"}})")};
  EXPECT_EQ(
      top_nodes(metrics, {}, {}),
      R"(NAME   CPU(cores)   CPU(%)      MEMORY(bytes)   MEMORY(%)   GPU(%)   GPU-MEMORY(bytes)
a      1000m        <unknown>   1Mi             <unknown>   <none>   <none>
b      1000m        <unknown>   1Mi             <unknown>   125%     3Mi
)");
}

TEST(TopReplicas, ShowGpusAndNetworkWhereTheyAreKnown) {
  const auto replica = [](const char* index, const char* usage) {
    return object(std::string(R"({"metadata":{"name":"j-worker-)") + index +
                  R"(","labels":{"training.kubeflow.org/job-name":"j",)" +
                  R"("training.kubeflow.org/replica-type":"worker",)" +
                  R"("training.kubeflow.org/replica-index":")" + index +
                  R"("}},"containers":[{"name":"c","usage":)" + usage + "}]}");
  };
  const Object plain = replica("1", R"({"cpu":"250m","memory":"2Mi"})");
  EXPECT_EQ(top_replicas({plain}, {}), R"(JOB   REPLICA    CPU(cores)   MEMORY(bytes)
j     worker-1   250m         2Mi
)");
  const Object whole = replica(
      "0", R"({"cpu":"1","memory":"1Mi","nvidia.com/gpu":"750m","nvidia.com/gpu.memory":"2Mi",)"
           R"("skiff.dev/network-in":"2500000","skiff.dev/network-out":"300"})");
  EXPECT_EQ(
      top_replicas({plain, whole}, {}),
      R"(JOB   REPLICA    CPU(cores)   MEMORY(bytes)   GPU(%)   GPU-MEMORY(bytes)   NET-IN      NET-OUT
j     worker-0   1000m        1Mi             75%      2Mi                 2.5MB/s     0.3kB/s
j     worker-1   250m         2Mi             <none>   <none>              <unknown>   <unknown>
)");
}

}  // namespace
}  // namespace skiff::cli
