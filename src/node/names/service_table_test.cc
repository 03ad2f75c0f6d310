#include "node/names/service_table.h"

#include <gtest/gtest.h>

namespace skiff::node {
namespace {

Object table_object(std::string_view text) {
  auto parsed = json::parse(text);
  EXPECT_TRUE(parsed) << text;
  return std::make_shared<const json::value>(std::move(*parsed));
}

Object service(std::string_view spec) {
  return table_object(R"({"metadata":{"namespace":"n","name":"s"},"spec":)" + std::string(spec) +
                      "}");
}

Object slice(std::string_view ports, std::string_view endpoints) {
  return table_object(R"({"metadata":{"namespace":"n","name":"s-1",
      "labels":{"kubernetes.io/service-name":"s"}},"addressType":"IPv4","ports":)" +
                      std::string(ports) + R"(,"endpoints":)" + std::string(endpoints) + "}");
}

const std::uint32_t kIp = *parse_ip("10.96.0.7"), kA = *parse_ip("10.0.0.1"),
                    kB = *parse_ip("10.0.0.2");

TEST(ServiceTable, APortLeadsToTheSamePortByNameOfReadyEndpoints) {
  const auto table = build_service_table(
      {service(R"({"clusterIP":"10.96.0.7","sessionAffinity":"ClientIP","ports":[
          {"name":"web","port":80,"nodePort":30080},{"name":"dns","port":53,"protocol":"UDP"}]})")},
      {slice(R"([{"name":"web","port":8080},{"name":"dns","port":5353}])",
             R"([{"addresses":["10.0.0.2"],"conditions":{"ready":true}},
                 {"addresses":["10.0.0.1"]},
                 {"addresses":["10.0.0.3"],"conditions":{"ready":false}}])")});
  const std::vector<ServicePort> wanted = {
      {.ips = {kIp},
       .port = 80,
       .node_port = 30080,
       .sticky = true,
       .targets = {{kA, 8080}, {kB, 8080}}},
      {.ips = {kIp}, .udp = true, .port = 53, .sticky = true, .targets = {{kA, 5353}, {kB, 5353}}}};
  EXPECT_EQ(table, wanted);
}

TEST(ServiceTable, TheLoopbackIsLedToOnlyWhereItIsThePodsOwn) {
  const std::vector<Object> services = {
      service(R"({"clusterIP":"10.96.0.7","ports":[{"name":"web","port":80}]})")};
  const std::vector<Object> slices = {
      slice(R"([{"name":"web","port":8080}])",
            R"([{"addresses":["127.0.0.1"]},{"addresses":["127.64.0.9"]}])")};
  EXPECT_TRUE(build_service_table(services, slices)[0].targets.empty());
  const std::vector<ServiceTarget> pods = {{*parse_ip("127.64.0.9"), 8080}};
  EXPECT_EQ(build_service_table(services, slices, {}, true)[0].targets, pods);
}

TEST(ServiceTable, TheApiStandsBehindItsOwnService) {
  const Object kubernetes = table_object(R"({"metadata":{"namespace":"default","name":"kubernetes"},
      "spec":{"clusterIP":"10.96.0.7","ports":[{"name":"https","port":443}]}})");
  const ServiceTarget api{kA, 6443};
  EXPECT_EQ(build_service_table({kubernetes}, {}, api),
            (std::vector<ServicePort>{{.ips = {kIp}, .port = 443, .targets = {api}},
                                      {.ips = {kIp}, .port = 6443, .targets = {api}}}));
  EXPECT_EQ(build_service_table({kubernetes}, {}, {kA, 443}).size(), 1U) << "one port, not two";
  const auto nowhere = build_service_table({kubernetes}, {});
  ASSERT_EQ(nowhere.size(), 1U);
  EXPECT_TRUE(nowhere[0].targets.empty());
  const Object other = table_object(R"({"metadata":{"namespace":"n","name":"kubernetes"},
      "spec":{"clusterIP":"10.96.0.7","ports":[{"port":443}]}})");
  EXPECT_TRUE(build_service_table({other}, {}, api)[0].targets.empty()) << "another namespace's";
}

TEST(ServiceTable, WhereNoneIsReadyThoseThatEndStillServe) {
  const auto spec = R"({"clusterIP":"10.96.0.7","ports":[{"port":80}]})";
  const auto ending = R"({"addresses":["10.0.0.1"],
      "conditions":{"ready":false,"serving":true,"terminating":true}})";
  const auto table = build_service_table(
      {service(spec)}, {slice(R"([{"port":8080}])", "[" + std::string(ending) + "]")});
  EXPECT_EQ(table.at(0).targets, (std::vector<ServiceTarget>{{kA, 8080}}));
  const auto both = build_service_table(
      {service(spec)},
      {slice(R"([{"port":8080}])", "[" + std::string(ending) + R"(,{"addresses":["10.0.0.2"]}])")});
  EXPECT_EQ(both.at(0).targets, (std::vector<ServiceTarget>{{kB, 8080}}));
}

TEST(ServiceTable, AddressesOfTheOutsideAreNobodysToTake) {
  const auto table = build_service_table(
      {service(R"({"clusterIP":"10.96.0.7","externalIPs":["9.9.9.9"],"ports":[{"port":53}]})")},
      {slice(R"([{"port":53}])", R"([{"addresses":["10.0.0.1"]}])")});
  ASSERT_EQ(table.size(), 1u);
  EXPECT_EQ(table[0].ips, std::vector{kIp});
}

TEST(ServiceTable, WhatHasNoAddressIsNotLed) {
  EXPECT_TRUE(build_service_table({service(R"({"clusterIP":"None","ports":[{"port":80}]})"),
                                   service(R"({"type":"ExternalName","externalName":"x"})")},
                                  {})
                  .empty());
  const auto empty =
      build_service_table({service(R"({"clusterIP":"10.96.0.7","ports":[{"port":80}]})")}, {});
  ASSERT_EQ(empty.size(), 1U);
  EXPECT_TRUE(empty[0].targets.empty()) << "connections are refused";
}

}  // namespace
}  // namespace skiff::node
