#include "api/apiregistration/api_service.h"

#include <gtest/gtest.h>

#include "api/meta.h"
#include "api/test_kind.h"

namespace skiff::api {
namespace {

using testing::cells;
using testing::complaints;
using testing::defaulted;
using testing::Lines;
using testing::parsed;

Kind api_service() { return apiregistration_kinds()[0]; }

const std::string kLocal = R"({"metadata":{"name":"v1.apps"},"spec":{"group":"apps",
    "version":"v1","groupPriorityMinimum":17800,"versionPriority":15}})";
const std::string kFar = R"({"metadata":{"name":"v1.metrics.k8s.io"},"spec":{
    "group":"metrics.k8s.io","version":"v1","groupPriorityMinimum":100,"versionPriority":100,
    "service":{"namespace":"kube-system","name":"metrics"}}})";

TEST(ApiService, OfThisServerIsAvailableFromTheStart) {
  json::value v = parsed(kLocal);
  api_service().prepare(v, {.now = "2026-01-01T00:00:00Z"});
  EXPECT_EQ(json::serialize(*json::find(v, {"status", "conditions"})),
            R"([{"type":"Available","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z",)"
            R"("reason":"Local","message":"Local APIServices are always available"}])");
  EXPECT_EQ(complaints(api_service(), kLocal), Lines{});
}

TEST(ApiService, OfAnotherServerIsKeptAndSaidNotToBeServed) {
  json::value v = defaulted(api_service(), kFar);
  api_service().prepare(v, {.now = "2026-01-01T00:00:00Z"});
  EXPECT_EQ(json::get_int(v, {"spec", "service", "port"}), 443);
  const json::object* condition = api::condition(v, "Available");
  ASSERT_NE(condition, nullptr);
  EXPECT_EQ(condition->at("status"), "False");
  EXPECT_EQ(condition->at("reason"), "NotAggregated");
  EXPECT_EQ(complaints(api_service(), kFar), Lines{});
}

TEST(ApiService, ThatStaysWhatItIsKeepsItsCondition) {
  json::value v = parsed(kLocal);
  api_service().prepare(v, {.now = "2026-01-01T00:00:00Z"});
  const json::value before = v;
  api_service().prepare(v, {.old = &before, .now = "2026-01-02T00:00:00Z"});
  EXPECT_EQ(v, before);
  // The user's words about the status are the user's.
  v.at("status").as_object()["conditions"] = json::array();
  api_service().prepare(v, {.old = &before, .subresource = "status"});
  EXPECT_TRUE(json::get_array(v, {"status", "conditions"}).empty());
}

TEST(ApiService, IsNamedByItsVersionAndGroup) {
  EXPECT_EQ(
      complaints(api_service(), R"({"metadata":{"name":"x"},"spec":{"group":"Apps","version":"V1",
                "groupPriorityMinimum":20001,"versionPriority":0}})"),
      (Lines{R"(metadata.name: Invalid value: "x": must be )"
             R"(`spec.version+"."+spec.group`: "V1.Apps")",
             "spec.group: Invalid value: \"Apps\": a lowercase RFC 1123 subdomain must "
             "consist of lower case alphanumeric characters, '-' or '.', and must start and "
             "end with an alphanumeric character (e.g. 'example.com', regex used for "
             "validation is "
             "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
             "spec.version: Invalid value: \"V1\": a DNS-1035 label must consist of lower "
             "case alphanumeric characters or '-', start with an alphabetic character, and "
             "end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used "
             "for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
             "spec.groupPriorityMinimum: Invalid value: 20001: must be positive and less "
             "than 20000",
             "spec.versionPriority: Invalid value: 0: must be positive and less than 1000"}));
  EXPECT_EQ(complaints(api_service(), R"({"metadata":{"name":"v2."},"spec":{"version":"v2",
                "groupPriorityMinimum":1,"versionPriority":1}})"),
            Lines{"spec.group: Required value: only v1 may have an empty group and it better be "
                  "legacy kube"});
}

TEST(ApiService, OfThisServerNeedsNoTrustAndOfAnotherAnAddress) {
  EXPECT_EQ(complaints(api_service(), R"({"metadata":{"name":"v1.apps"},"spec":{"group":"apps",
                "version":"v1","groupPriorityMinimum":1,"versionPriority":1,"caBundle":"YWJj",
                "insecureSkipTLSVerify":true}})"),
            (Lines{"spec.caBundle: Invalid value: \"3 bytes\": local APIServices may not have a "
                   "caBundle",
                   "spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not "
                   "have insecureSkipTLSVerify"}));
  EXPECT_EQ(complaints(api_service(), R"({"metadata":{"name":"v1.a.b"},"spec":{"group":"a.b",
                "version":"v1","groupPriorityMinimum":1,"versionPriority":1,"caBundle":"YWJj",
                "insecureSkipTLSVerify":true,"service":{"port":70000}}})"),
            (Lines{"spec.service.namespace: Required value", "spec.service.name: Required value",
                   "spec.service.port: Invalid value: 70000: port is not valid: must be between 1 "
                   "and 65535, inclusive",
                   "spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle "
                   "is present"}));
}

TEST(ApiService, HasAStatusOfThreeWords) {
  const json::value old = parsed(kLocal);
  EXPECT_EQ(complaints(api_service(), R"({"status":{"conditions":[{"type":"Available",
                "status":"Perhaps"}]}})",
                       &old, "status"),
            Lines{"status.conditions[0].status: Unsupported value: \"Perhaps\": supported values: "
                  "\"True\", \"False\", \"Unknown\""});
}

TEST(ApiService, ShowsWhoAnswersAndWhetherAnybodyDoes) {
  EXPECT_EQ(cells(api_service(), R"({"spec":{}})"), R"(["Local","Unknown","<unknown>"])");
  EXPECT_EQ(cells(api_service(), R"({"spec":{"service":{"namespace":"a","name":"b"}},
                "status":{"conditions":[{"type":"Available","status":"False","reason":"Why"}]}})"),
            R"x(["a/b","False (Why)","<unknown>"])x");
  EXPECT_EQ(cells(api_service(), R"({"spec":{},"status":{"conditions":[{"type":"Available",
                "status":"True","reason":"Local"}]}})"),
            R"(["Local","True","<unknown>"])");
}

}  // namespace
}  // namespace skiff::api
