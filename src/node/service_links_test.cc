#include "node/service_links.h"

#include <gtest/gtest.h>

namespace skiff::node {
namespace {

Services object(const std::string& ns, std::string_view text) {
  auto parsed = json::parse(text);
  EXPECT_TRUE(parsed) << text;
  return {{{ns, "my-db"}, std::make_shared<const json::value>(std::move(*parsed))}};
}

Services service(const std::string& ns, const std::string& address) {
  return object(ns, R"({"metadata":{"name":"my-db"},"spec":{"clusterIP":")" + address +
                        R"(","ports":[{"port":80,"name":"web-1"},{"port":53,"protocol":"UDP"}]}})");
}

const json::value kPod = *json::parse(R"({"metadata":{"name":"p","namespace":"ns"},"spec":{}})");

TEST(ServiceLinks, NameTheAddressAndEveryPortOfAService) {
  const Variables expected = {{"MY_DB_SERVICE_HOST", "10.96.0.7"},
                              {"MY_DB_SERVICE_PORT", "80"},
                              {"MY_DB_SERVICE_PORT_WEB_1", "80"},
                              {"MY_DB_PORT", "tcp://10.96.0.7:80"},
                              {"MY_DB_PORT_80_TCP", "tcp://10.96.0.7:80"},
                              {"MY_DB_PORT_80_TCP_PROTO", "tcp"},
                              {"MY_DB_PORT_80_TCP_PORT", "80"},
                              {"MY_DB_PORT_80_TCP_ADDR", "10.96.0.7"},
                              {"MY_DB_PORT_53_UDP", "udp://10.96.0.7:53"},
                              {"MY_DB_PORT_53_UDP_PROTO", "udp"},
                              {"MY_DB_PORT_53_UDP_PORT", "53"},
                              {"MY_DB_PORT_53_UDP_ADDR", "10.96.0.7"}};
  EXPECT_EQ(service_links(kPod, service("ns", "10.96.0.7")), expected);
}

TEST(ServiceLinks, AreOfServicesOfThePodsNamespaceThatHaveAnAddress) {
  EXPECT_TRUE(service_links(kPod, service("other", "10.96.0.7")).empty());
  EXPECT_TRUE(service_links(kPod, service("ns", "None")).empty());
  EXPECT_TRUE(service_links(kPod, service("ns", "")).empty());
  EXPECT_TRUE(service_links(kPod, object("ns", R"({"metadata":{"name":"my-db"},
      "spec":{"type":"ExternalName","externalName":"b.example"}})"))
                  .empty());
}

TEST(ServiceLinks, AreLeftOutWhereThePodSaysSo) {
  const json::value pod = *json::parse(
      R"({"metadata":{"name":"p","namespace":"ns"},"spec":{"enableServiceLinks":false}})");
  EXPECT_TRUE(service_links(pod, service("ns", "10.96.0.7")).empty());
}

}  // namespace
}  // namespace skiff::node
