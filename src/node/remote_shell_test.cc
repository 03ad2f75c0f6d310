#include "node/remote_shell.h"

#include <gtest/gtest.h>

namespace skiff::node {
namespace {

json::value pod_asking(std::string_view asks) {
  return {{"metadata", {{"annotations", {{kRemoteShellAnnotation, json::string(asks)}}}}}};
}

std::vector<Mount> mounts(const json::value& pod, const std::string& binary = "/bin/skiff",
                          const json::value& container = json::object{}, ContainerSpec spec = {}) {
  add_remote_shell(pod, container, binary, spec);
  return spec.mounts;
}

json::value container_with(std::string_view path) {
  return {{"volumeMounts", json::array{json::object{{"mountPath", json::string(path)}}}}};
}

TEST(RemoteShell, IsThisBinaryReadOnly) {
  const auto got = mounts(pod_asking("true"));
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].source, "/bin/skiff");
  EXPECT_EQ(got[0].target, "/opt/kube/kubectl");
  EXPECT_TRUE(got[0].read_only);
}

TEST(RemoteShell, IsGivenToNobodyWhoDoesNotAsk) {
  EXPECT_TRUE(mounts(json::object{}).empty());
  EXPECT_TRUE(mounts(pod_asking("false")).empty());
  EXPECT_TRUE(mounts(pod_asking("")).empty());
}

TEST(RemoteShell, NeedsABinary) { EXPECT_TRUE(mounts(pod_asking("true"), "").empty()); }

TEST(RemoteShell, LeavesAPlaceThatThePodUsesItself) {
  for (const char* path : {"/opt/kube/kubectl", "/opt/kube", "/opt/kube/", "/opt"}) {
    EXPECT_TRUE(mounts(pod_asking("true"), "/bin/skiff", container_with(path)).empty()) << path;
  }
  for (const char* path : {"/opt/kubernetes", "/opt/kube/kube", "/data", "/opt/kube/kubectl.old"}) {
    EXPECT_EQ(mounts(pod_asking("true"), "/bin/skiff", container_with(path)).size(), 1u) << path;
  }
  const ContainerSpec mapped{.mounts = {{.source = "/x", .target = "/opt/kube"}}};
  EXPECT_EQ(mounts(pod_asking("true"), "/bin/skiff", json::object{}, mapped).size(), 1u)
      << "the mapping's own";
}

}  // namespace
}  // namespace skiff::node
