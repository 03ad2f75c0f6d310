#include "api/mpi.h"

#include <gtest/gtest.h>

namespace skiff::mpi {
namespace {

TEST(RemoteShell, TakesHostsForPods) {
  EXPECT_TRUE(remote_shell("").ends_with("exec \"$kubectl\" exec \"$pod\" -- /bin/sh -c \"$*\"\n"));
  const std::string script = remote_shell("trainer");
  EXPECT_TRUE(script.starts_with("#!/bin/sh\n"));
  EXPECT_TRUE(script.ends_with("exec \"$pod\" -c trainer -- /bin/sh -c \"$*\"\n"));
  EXPECT_EQ(script.find("configmap"), std::string::npos);
}

TEST(RemoteShell, LooksThePodOfAHostUp) {
  const std::string script = remote_shell_by_map("mnist-mpi-hostfile", "node");
  EXPECT_NE(script.find("get configmap mnist-mpi-hostfile -o 'jsonpath={.data.pods}'"),
            std::string::npos);
  EXPECT_EQ(script.find("@MAP@"), std::string::npos);
  EXPECT_EQ(script.find("get pod "), std::string::npos) << "the launcher may not";
  EXPECT_TRUE(script.ends_with("exec \"$pod\" -c node -- /bin/sh -c \"$*\"\n"));
}

TEST(WaitingContainer, HasAProgramOnlyWhereItHadOne) {
  json::object idle{{"name", "node"}, {"readinessProbe", {{"exec", json::object{}}}}};
  make_wait(idle);
  EXPECT_EQ(idle.at("command").as_array().at(0), "/bin/sh");
  EXPECT_TRUE(idle.contains("readinessProbe")) << "it asks for no sshd";
  json::object busy{{"args", json::array{"serve"}}};
  const json::object before = busy;
  make_wait(busy);
  EXPECT_EQ(busy, before);
}

}  // namespace
}  // namespace skiff::mpi
