#include "node/host_ports.h"

#include <gtest/gtest.h>

namespace skiff::node {
namespace {

Object pod_with_port(const std::string& port, const std::string& list = "containers",
                     const std::string& more = "") {
  auto parsed =
      json::parse(R"({"spec":{")" + list + R"(":[{"ports":[)" + port + "]" + more + "}]}}");
  EXPECT_TRUE(parsed);
  return std::make_shared<const json::value>(std::move(*parsed));
}

const char* const kPort = R"({"containerPort":80,"hostPort":8080})";

TEST(HostPorts, OneOfTheMachinesPortsIsForOnePod) {
  EXPECT_TRUE(port_clash(*pod_with_port(kPort), {pod_with_port(kPort)}));
  EXPECT_FALSE(port_clash(*pod_with_port(kPort), {}));
  EXPECT_FALSE(port_clash(*pod_with_port(kPort),
                          {pod_with_port(R"({"containerPort":80,"hostPort":8081})")}));
  EXPECT_FALSE(port_clash(*pod_with_port(kPort), {pod_with_port(R"({"containerPort":8080})")}))
      << "of the pod alone";
}

TEST(HostPorts, ProtocolsAndAddressesAreToldApart) {
  EXPECT_FALSE(
      port_clash(*pod_with_port(kPort),
                 {pod_with_port(R"({"containerPort":80,"hostPort":8080,"protocol":"UDP"})")}));
  const Object here = pod_with_port(R"({"containerPort":80,"hostPort":8080,"hostIP":"127.0.0.1"})");
  const Object there =
      pod_with_port(R"({"containerPort":80,"hostPort":8080,"hostIP":"192.0.2.1"})");
  EXPECT_FALSE(port_clash(*here, {there}));
  EXPECT_TRUE(port_clash(*here, {here}));
  EXPECT_TRUE(port_clash(*here, {pod_with_port(kPort)})) << "all addresses";
  EXPECT_TRUE(port_clash(
      *pod_with_port(R"({"containerPort":80,"hostPort":8080,"hostIP":"0.0.0.0"})"), {there}));
}

TEST(HostPorts, ContainersThatEndBeforeTheOthersStartHoldNone) {
  EXPECT_FALSE(port_clash(*pod_with_port(kPort), {pod_with_port(kPort, "initContainers")}));
  EXPECT_TRUE(port_clash(*pod_with_port(kPort),
                         {pod_with_port(kPort, "initContainers", R"(,"restartPolicy":"Always")")}));
  EXPECT_TRUE(wants_host_ports(*pod_with_port(kPort)));
  EXPECT_FALSE(wants_host_ports(*pod_with_port(kPort, "initContainers")));
}

}  // namespace
}  // namespace skiff::node
