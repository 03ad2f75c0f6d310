#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/core/config.h"
#include "api/core/event.h"
#include "api/core/namespace.h"
#include "api/core/node.h"
#include "api/core/service.h"
#include "api/test_kind.h"

namespace skiff::api {
namespace {

using testing::cells;
using testing::defaulted;
using testing::kNow;
using testing::Lines;
using testing::parsed;

constexpr std::string_view kCreated = R"("creationTimestamp":"2023-11-14T22:17:20Z")";  // 60 s ago

std::vector<std::string> complaints_unprepared(const Kind& kind, const std::string& text,
                                               const json::value* old = nullptr) {
  json::value v = parsed(text);
  if (kind.set_defaults != nullptr) kind.set_defaults(v);
  std::vector<std::string> out;
  for (const Cause& c : kind.validate(v, {.old = old})) out.push_back(c.field + ": " + c.message);
  return out;
}

TEST(Namespace, IsActiveUntilDeleted) {
  json::value ns = defaulted(namespace_kind(), R"({"metadata":{"name":"a"}})");
  namespace_kind().prepare(ns, {});
  EXPECT_EQ(json::serialize(ns),
            R"({"metadata":{"name":"a","labels":{"kubernetes.io/metadata.name":"a"}},)"
            R"("status":{"phase":"Active"},"spec":{"finalizers":["kubernetes"]}})");
  json::value going = defaulted(
      namespace_kind(),
      R"({"metadata":{"name":"a","deletionTimestamp":"2023-11-14T22:17:20Z"},"spec":{}})");
  namespace_kind().prepare(going, {});
  EXPECT_EQ(json::find(going, {"spec", "finalizers"}), nullptr);
}

TEST(Service, Defaults) {
  json::value service =
      defaulted(service_kind(), R"({"spec":{"clusterIP":"None","ports":[{"port":80}]}})");
  service_kind().prepare(service, {});
  EXPECT_EQ(json::serialize(service),
            R"({"spec":{"clusterIP":"None","ports":[{"port":80,"protocol":"TCP","targetPort":80}],)"
            R"("sessionAffinity":"None","type":"ClusterIP","internalTrafficPolicy":"Cluster",)"
            R"("ipFamilies":["IPv4","IPv6"],)"
            R"("ipFamilyPolicy":"RequireDualStack"}})");
}

TEST(Service, Rules) {
  EXPECT_EQ(complaints_unprepared(service_kind(), R"({"spec":{"ports":[{"port":80}]}})"), Lines{});
  EXPECT_EQ(complaints_unprepared(service_kind(), R"({"spec":{"clusterIP":"None"}})"), Lines{});
  EXPECT_EQ(complaints_unprepared(service_kind(), R"({"spec":{}})"),
            Lines{"spec.ports: Required value"});
  EXPECT_EQ(
      complaints_unprepared(service_kind(),
                            R"({"spec":{"type":"Best","ports":[{"port":0},{"port":1,"name":"a"},
                           {"port":1,"name":"a","protocol":"X"}]}})"),
      (Lines{"spec.ports[0].name: Required value",
             "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
             "spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, "
             "inclusive",
             R"(spec.ports[2].name: Duplicate value: "a")",
             R"(spec.ports[2].protocol: Unsupported value: "X": supported values: "SCTP", )"
             R"("TCP", "UDP")",
             R"(spec.type: Unsupported value: "Best": supported values: "ClusterIP", )"
             R"("ExternalName", "LoadBalancer", "NodePort")"}));
  const json::value old = parsed(R"({"spec":{"clusterIP":"10.0.0.1"}})");
  EXPECT_EQ(complaints_unprepared(service_kind(),
                                  R"({"spec":{"clusterIP":"10.0.0.2","clusterIPs":["10.0.0.2"],
                                     "ports":[{"port":1}]}})",
                                  &old),
            Lines{R"(spec.clusterIPs[0]: Invalid value: ["10.0.0.2"]: may not change once set)"});
  EXPECT_EQ(complaints_unprepared(service_kind(), R"({"spec":{"type":"ExternalName","ports":[]}})"),
            Lines{"spec.externalName: Required value"});
  EXPECT_EQ(
      complaints_unprepared(service_kind(), R"({"spec":{"clusterIP":"None","sessionAffinity":"Some",
    "externalTrafficPolicy":"Local","ports":[{"port":1,"nodePort":2}]}})"),
      (Lines{R"(spec.sessionAffinity: Unsupported value: "Some": supported values: )"
             R"("ClientIP", "None")",
             "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
             R"(spec.externalTrafficPolicy: Invalid value: "Local": may only be set for )"
             "externally-accessible services"}));
}

TEST(Service, RangesOfAnOutsideThatMayCome) {
  const auto ranges = [](std::string_view type, std::string_view list, std::string_view note = "") {
    return complaints_unprepared(
        service_kind(), fmt::format(R"({{"metadata":{{"annotations":{{{}}}}},"spec":{{"type":"{}",
                        "ports":[{{"port":1}}],"loadBalancerSourceRanges":[{}]}}}})",
                                    note, type, list));
  };
  constexpr std::string_view kNote =
      R"("service.beta.kubernetes.io/load-balancer-source-ranges":"10.0.0.0/8, y")";
  EXPECT_EQ(ranges("LoadBalancer", R"("10.0.0.0/8"," 2001:db8::/64 ")"), Lines{});
  EXPECT_EQ(ranges("LoadBalancer", R"("10.0.0.0/8","x")"),
            Lines{R"(spec.LoadBalancerSourceRanges[1]: Invalid value: "x": must be a valid CIDR )"
                  "value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"});
  EXPECT_EQ(ranges("ClusterIP", R"("10.0.0.0/8")"),
            Lines{"spec.LoadBalancerSourceRanges: Forbidden: may only be used when `type` is "
                  "'LoadBalancer'"});
  EXPECT_EQ(ranges("LoadBalancer", "", kNote),
            Lines{"metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]: "
                  R"(Invalid value: "y": must be a valid CIDR value, (e.g. 10.9.8.0/24 or )"
                  "2001:db8::/64)"});
}

TEST(Service, Cells) {
  EXPECT_EQ(cells(service_kind(), R"({"metadata":{)" + std::string(kCreated) +
                                      R"(},"spec":{"type":"NodePort","clusterIP":"10.0.0.1",
    "selector":{"a":"b"},"ports":[{"port":80,"protocol":"TCP","nodePort":30000},
    {"port":53,"protocol":"UDP"}]}})"),
            R"(["NodePort","10.0.0.1","<none>","80:30000/TCP,53/UDP","60s","a=b"])");
}

TEST(ConfigMap, Rules) {
  EXPECT_EQ(
      complaints_unprepared(config_map_kind(), R"({"data":{"a.b":"x"},"binaryData":{"c":"AAEC"}})"),
      Lines{});
  const Lines bad = complaints_unprepared(config_map_kind(),
                                          R"({"data":{"a/b":"x","c":"y"},"binaryData":{"c":"?"}})");
  ASSERT_EQ(bad.size(), 3u);
  EXPECT_TRUE(bad[0].starts_with(R"(data[a/b]: Invalid value: "a/b": a valid config key must)"));
  EXPECT_TRUE(bad[1].starts_with("binaryData[c]: Invalid value"));
  EXPECT_TRUE(bad[2].starts_with("data[c]: Invalid value"));
  const json::value old = parsed(R"({"immutable":true,"data":{"a":"1"}})");
  EXPECT_EQ(
      complaints_unprepared(config_map_kind(), R"({"immutable":true,"data":{"a":"2"}})", &old),
      Lines{"data: Forbidden: field is immutable when `immutable` is set"});
  const std::string large(1024 * 1024 + 1, 'x');
  EXPECT_EQ(complaints_unprepared(config_map_kind(), R"({"data":{"a":")" + large + R"("}})").size(),
            1u);
  EXPECT_EQ(cells(config_map_kind(), R"({"data":{"a":"1"},"binaryData":{"b":""}})"),
            R"([2,"<unknown>"])");
}

TEST(Secret, PlainTextBecomesData) {
  EXPECT_EQ(json::serialize(defaulted(secret_kind(),
                                      R"({"data":{"a":"b2xk"},"stringData":{"a":"new","b":"x"}})")),
            R"({"data":{"a":"bmV3","b":"eA=="},"type":"Opaque"})");
}

TEST(Secret, Rules) {
  EXPECT_EQ(complaints_unprepared(secret_kind(), R"({"data":{"a":"hunter2!"}})"),
            Lines{R"(data[a]: Invalid value: "<hidden>": must be base64; put plain text under )"
                  "stringData"});
  EXPECT_EQ(complaints_unprepared(secret_kind(),
                                  R"({"type":"kubernetes.io/tls","stringData":{"tls.crt":"x"}})"),
            Lines{"data[tls.key]: Required value"});
  const json::value old = parsed(R"({"type":"Opaque"})");
  EXPECT_EQ(complaints_unprepared(secret_kind(), R"({"type":"other"})", &old),
            Lines{R"(type: Invalid value: "other": field is immutable)"});
}

TEST(Node, Cells) {
  EXPECT_EQ(cells(node_kind(), R"({"metadata":{)" + std::string(kCreated) +
                                   R"(,"labels":{"node-role.kubernetes.io/worker":"",
    "node-role.kubernetes.io/control-plane":""}},"spec":{"unschedulable":true},"status":{
    "conditions":[{"type":"Ready","status":"True"}],"addresses":[{"type":"InternalIP",
    "address":"10.0.0.9"}],"nodeInfo":{"kubeletVersion":"v1","osImage":"Debian"}}})"),
            R"(["Ready,SchedulingDisabled","control-plane,worker","60s","v1","10.0.0.9","<none>",)"
            R"("Debian","<unknown>","<unknown>"])");
  EXPECT_EQ(json::get_string(defaulted(node_kind(), R"({"status":{"capacity":{"cpu":"2"}}})"),
                             {"status", "allocatable", "cpu"}),
            "2");
}

TEST(Event, CellsAndRules) {
  EXPECT_EQ(cells(event_kind(), R"({"metadata":{"name":"e"},"type":"Normal","reason":"Started",
    "involvedObject":{"kind":"Pod","name":"p","fieldPath":"spec"},"message":"Go\n","count":3,
    "source":{"component":"c","host":"h"},"firstTimestamp":"2023-11-14T22:13:20Z",
    "lastTimestamp":"2023-11-14T22:17:20Z"})"),
            R"(["60s","Normal","Started","pod/p","spec","c, h","Go","5m",3,"e"])");
  EXPECT_EQ(
      complaints_unprepared(event_kind(),
                            R"({"metadata":{"namespace":"a"},"involvedObject":{"namespace":"b"}})"),
      Lines{R"(involvedObject.namespace: Invalid value: "b": does not match event.namespace)"});
  EXPECT_EQ(complaints_unprepared(event_kind(),
                                  R"({"metadata":{"namespace":"default"},"involvedObject":{}})"),
            Lines{});
}

}  // namespace
}  // namespace skiff::api
