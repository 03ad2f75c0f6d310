#include "api/networking/networking.h"

#include <gtest/gtest.h>

#include "api/test_kind.h"

namespace skiff::api {
namespace {

using testing::cells;
using testing::complaints;
using testing::defaulted;
using testing::Lines;
using testing::parsed;
using testing::warned;

std::string ingress(std::string_view spec) {
  return R"({"metadata":{"name":"a"},"spec":)" + std::string(spec) + "}";
}

std::string path(std::string_view text, std::string_view type = "Prefix") {
  return R"({"rules":[{"http":{"paths":[{"path":")" + std::string(text) + R"(","pathType":")" +
         std::string(type) + R"(","backend":{"service":{"name":"s","port":{"number":80}}}}]}}]})";
}

TEST(Ingress, Rules) {
  EXPECT_EQ(complaints(ingress_kind(), ingress(path("/a"))), Lines{});
  EXPECT_EQ(complaints(ingress_kind(), ingress("{}")),
            Lines{"spec: Invalid value: null: either `defaultBackend` or `rules` must be "
                  "specified"});
  EXPECT_EQ(complaints(ingress_kind(), ingress(path("a/../b"))),
            (Lines{R"(spec.rules[0].http.paths[0].path: Invalid value: "a/../b": must be an )"
                   "absolute path",
                   R"(spec.rules[0].http.paths[0].path: Invalid value: "a/../b": must not contain )"
                   "'/../'"}));
  EXPECT_EQ(complaints(ingress_kind(), ingress(path("/a", "Fuzzy"))),
            Lines{R"(spec.rules[0].http.paths[0].pathType: Unsupported value: "Fuzzy": supported )"
                  R"(values: "Exact", "ImplementationSpecific", "Prefix")"});
  EXPECT_EQ(
      complaints(ingress_kind(), ingress(R"({"rules":[{"host":"10.0.0.1"},{"host":"*.a.org"},)"
                                         R"({"host":"*a.org"}]})"))
          .size(),
      2u);
  EXPECT_EQ(complaints(ingress_kind(), ingress(R"({"rules":[{"http":{"paths":[{"path":"/"}]}}]})")),
            Lines{"spec.rules[0].http.paths[0].pathType: Required value: pathType must be "
                  "specified"});
  EXPECT_EQ(complaints(ingress_kind(), ingress(R"({"rules":[{"http":{}}]})")),
            Lines{"spec.rules[0].http.paths: Required value"});
}

TEST(Ingress, Backends) {
  const auto with = [](std::string_view backend) {
    return complaints(ingress_kind(),
                      ingress(R"({"defaultBackend":)" + std::string(backend) + "}"));
  };
  EXPECT_EQ(with(R"({"service":{"name":"s","port":{"name":"web"}}})"), Lines{});
  EXPECT_EQ(with("{}"), Lines{"spec.defaultBackend: Invalid value: \"\": resource or service "
                              "backend is required"});
  EXPECT_EQ(with(R"({"service":{"name":"s"}})"),
            Lines{"spec.defaultBackend: Required value: port name or number is required"});
  EXPECT_EQ(with(R"({"service":{"port":{"name":"a","number":1}}})"),
            (Lines{"spec.defaultBackend.service.name: Required value",
                   "spec.defaultBackend: Invalid value: \"\": cannot set both port name & port "
                   "number"}));
  EXPECT_EQ(
      with(R"({"resource":{"kind":"a/b"}})"),
      (Lines{R"(spec.defaultBackend.resource.kind: Invalid value: "a/b": may not contain '/')",
             "spec.defaultBackend.resource.name: Required value"}));
  EXPECT_EQ(with(R"({"resource":{},"service":{}})"),
            Lines{"spec.defaultBackend: Invalid value: \"\": cannot set both resource and service "
                  "backends"});
}

TEST(Ingress, ClassByAnnotation) {
  const std::string text =
      R"({"metadata":{"name":"a","annotations":{"kubernetes.io/ingress.class":"x"}},"spec":{)"
      R"("defaultBackend":{"service":{"name":"s","port":{"number":1}}})";
  EXPECT_EQ(complaints(ingress_kind(), text + R"(,"ingressClassName":"y"}})"),
            Lines{R"(annotations.kubernetes.io/ingress.class: Invalid value: "x": must match )"
                  "`ingressClassName` when both are specified"});
  EXPECT_EQ(warned(ingress_kind(), text + "}}"),
            Lines{R"(annotation "kubernetes.io/ingress.class" is deprecated, please use )"
                  "'spec.ingressClassName' instead"});
}

TEST(Ingress, StatusAndCells) {
  const json::value old = parsed("{}");
  EXPECT_EQ(
      complaints(ingress_kind(),
                 R"({"status":{"loadBalancer":{"ingress":[{"ip":"1.2.3"},{"hostname":)"
                 R"("1.2.3.4"}]}}})",
                 &old, "status"),
      (Lines{R"(status.loadBalancer.ingress[0].ip: Invalid value: "1.2.3": must be a valid )"
             "IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
             R"(status.loadBalancer.ingress[1].hostname: Invalid value: "1.2.3.4": must be a )"
             "DNS name, not an IP address"}));
  EXPECT_EQ(cells(ingress_kind(),
                  R"({"spec":{"ingressClassName":"n","rules":[{"host":"a"},{"host":"b"},)"
                  R"({"host":"c"},{"host":"d"}],"tls":[{}]},"status":{"loadBalancer":{"ingress":[)"
                  R"({"ip":"10.0.0.2"},{"ip":"10.0.0.1"}]}}})"),
            R"(["n","a,b,c + 1 more...","10.0.0.1,10.0...","80, 443","<unknown>"])");
  EXPECT_EQ(cells(ingress_kind(), "{}"), R"(["<none>","*","","80","<unknown>"])");
}

TEST(IngressClass, Rules) {
  const auto with = [](std::string_view spec, const json::value* old = nullptr) {
    return complaints(ingress_class_kind(), R"({"spec":)" + std::string(spec) + "}", old);
  };
  EXPECT_EQ(with(R"({"controller":"a.org/b"})"), Lines{});
  EXPECT_EQ(with("{}"), Lines{"spec.controller: Required value"});
  EXPECT_EQ(with(R"({"controller":"a.org/b","parameters":{"kind":"K","name":"n","scope":)"
                 R"("Namespace"}})"),
            Lines{"spec.parameters.namespace: Required value: `parameters.scope` is set to "
                  "'Namespace'"});
  EXPECT_EQ(
      with(R"({"controller":"a.org/b","parameters":{"kind":"K","name":"n","namespace":"x"}})"),
      Lines{"spec.parameters.namespace: Forbidden: `parameters.scope` is set to 'Cluster'"});
  const json::value old = parsed(R"({"spec":{"controller":"a.org/b"}})");
  EXPECT_EQ(with(R"({"controller":"a.org/c"})", &old),
            Lines{R"(spec.controller: Invalid value: "a.org/c": field is immutable)"});
  EXPECT_EQ(
      cells(ingress_class_kind(),
            R"({"spec":{"controller":"c","parameters":{"kind":"K","apiGroup":"g","name":"n"}}})"),
      R"(["c","K.g/n","<unknown>"])");
}

TEST(NetworkPolicy, Defaults) {
  const json::value v =
      defaulted(network_policy_kind(), R"({"spec":{"egress":[{"ports":[{"port":53}]}]}})");
  EXPECT_EQ(json::serialize(v),
            R"({"spec":{"egress":[{"ports":[{"port":53,"protocol":"TCP"}]}],"podSelector":{},)"
            R"("policyTypes":["Ingress","Egress"]}})");
}

TEST(NetworkPolicy, Rules) {
  const auto with = [](std::string_view rule) {
    return complaints(network_policy_kind(), R"({"spec":{"ingress":[)" + std::string(rule) + "]}}");
  };
  EXPECT_EQ(with(R"({"from":[{"ipBlock":{"cidr":"10.0.0.0/8","except":["10.1.0.0/16"]}}],)"
                 R"("ports":[{"port":"web"},{"port":1,"endPort":5}]})"),
            Lines{});
  EXPECT_EQ(with(R"({"from":[{}]})"),
            Lines{"spec.ingress[0].from[0]: Required value: must specify a peer"});
  EXPECT_EQ(with(R"({"from":[{"podSelector":{},"ipBlock":{"cidr":"10.0.0.0/8"}}]})"),
            Lines{"spec.ingress[0].from[0]: Forbidden: may not specify both ipBlock and another "
                  "peer"});
  EXPECT_EQ(with(R"({"from":[{"ipBlock":{"cidr":"10.0.0.0/8","except":["11.0.0.0/16","x"]}}]})"),
            (Lines{R"(spec.ingress[0].from[0].ipBlock.except[0]: Invalid value: "11.0.0.0/16": )"
                   "must be a strict subset of `cidr`",
                   R"(spec.ingress[0].from[0].ipBlock.except[1]: Invalid value: "x": must be a )"
                   "valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"}));
  EXPECT_EQ(with(R"({"ports":[{"port":9,"endPort":5},{"endPort":5},{"port":"a","endPort":1},)"
                 R"({"port":0,"protocol":"ICMP"}]})"),
            (Lines{"spec.ingress[0].ports[0].endPort: Invalid value: 9: must be greater than or "
                   "equal to `port`",
                   "spec.ingress[0].ports[1].endPort: Invalid value: 5: may not be specified when "
                   "`port` is not specified",
                   "spec.ingress[0].ports[2].endPort: Invalid value: 1: may not be specified when "
                   "`port` is non-numeric",
                   R"(spec.ingress[0].ports[3].protocol: Unsupported value: "ICMP": supported )"
                   R"(values: "TCP", "UDP", "SCTP")",
                   "spec.ingress[0].ports[3].port: Invalid value: 0: must be between 1 and 65535, "
                   "inclusive"}));
}

TEST(NetworkPolicy, WarnsOfBlocksInUnusualForms) {
  const auto with = [](std::string_view cidr) {
    return warned(network_policy_kind(), R"({"spec":{"ingress":[{"from":[{"ipBlock":{"cidr":")" +
                                             std::string(cidr) + R"("}}]}]}})");
  };
  EXPECT_EQ(with("10.0.0.0/8"), Lines{});
  EXPECT_EQ(
      with("10.0.0.1/8"),
      Lines{R"(spec.ingress[0].from[0].ipBlock.cidr: CIDR value "10.0.0.1/8" is ambiguous in )"
            R"(this context (should be "10.0.0.0/8" or "10.0.0.1/32"?))"});
  EXPECT_EQ(
      with("010.0.0.0/8"),
      Lines{R"(spec.ingress[0].from[0].ipBlock.cidr: non-standard CIDR value "010.0.0.0/8" )"
            R"(will be considered invalid in a future Kubernetes release: use "10.0.0.0/8")"});
  EXPECT_EQ(with("2001:DB8::/32"),
            Lines{R"(spec.ingress[0].from[0].ipBlock.cidr: IPv6 CIDR value "2001:DB8::/32" should )"
                  R"(be in RFC 5952 canonical format ("2001:db8::/32"))"});
}

}  // namespace
}  // namespace skiff::api
