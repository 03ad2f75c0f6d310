// The rules, defaults and cells of kinds outside core/v1, and of core kinds that only lie there.
#include <gtest/gtest.h>

#include <algorithm>

#include "api/kinds.h"
#include "api/test_kind.h"

namespace skiff::api {
namespace {

using testing::kNow;
using testing::Lines;
using testing::parsed;

const Kind& kind_named(std::string_view name, std::string_view group = "*") {
  const auto& all = builtin_kinds();
  const auto at = std::ranges::find_if(all, [&](const Kind& k) {
    return k.resource.kind == name && (group == "*" || k.resource.group == group);
  });
  EXPECT_NE(at, all.end()) << name;
  return *at;
}

json::value defaulted_of(std::string_view name, std::string_view text) {
  json::value v = parsed(text);
  if (kind_named(name).set_defaults != nullptr) kind_named(name).set_defaults(v);
  return v;
}

Lines complaints_of(std::string_view name, std::string_view text, std::string_view before = {},
                    std::string_view subresource = {}) {
  const json::value object = defaulted_of(name, text);
  const json::value old = before.empty() ? json::value() : defaulted_of(name, before);
  Lines out;
  for (const Cause& c : kind_named(name).validate(
           object, {.old = before.empty() ? nullptr : &old, .subresource = subresource})) {
    out.push_back(c.field + ": " + c.message);
  }
  return out;
}

std::string cells_of(std::string_view name, std::string_view text) {
  return json::serialize(kind_named(name).cells(parsed(text), kNow));
}

TEST(Quota, Rules) {
  EXPECT_EQ(complaints_of("ResourceQuota", R"({"spec":{"hard":{"pods":"3","requests.cpu":"1"}}})"),
            Lines{});
  EXPECT_EQ(complaints_of("ResourceQuota", R"({"spec":{"hard":{"pods":"1500m","beer":"1",
    "cpu":"-1"},"scopes":["BestEffort","NotBestEffort"]}})"),
            (Lines{R"(spec.hard[pods]: Invalid value: "1500m": must be an integer)",
                   R"(spec.hard[beer]: Invalid value: "beer": must be a standard resource type or )"
                   "fully qualified",
                   R"(spec.hard[beer]: Invalid value: "beer": must be a standard resource for )"
                   "quota",
                   R"(spec.hard[cpu]: Invalid value: "-1": must be greater than or equal to 0)",
                   R"(spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: unsupported )"
                   "scope applied to resource",
                   R"(spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: conflicting )"
                   "scopes"}));
  EXPECT_EQ(
      complaints_of("ResourceQuota", R"({"spec":{"scopes":["Terminating"]}})", R"({"spec":{}})"),
      Lines{R"(spec.scopes: Invalid value: ["Terminating"]: field is immutable)"});
}

TEST(Quota, Cells) {
  EXPECT_EQ(cells_of("ResourceQuota", R"({"status":{"hard":{"pods":"3","limits.cpu":"2",
    "cpu":"1"},"used":{"pods":"1"}}})"),
            R"(["cpu: 0/1, pods: 1/3","limits.cpu: 0/2","<unknown>"])");
}

TEST(LimitRange, DefaultsFollowTheBounds) {
  EXPECT_EQ(json::serialize(defaulted_of("LimitRange", R"({"spec":{"limits":[{"type":"Container",
    "max":{"cpu":"2"},"min":{"memory":"1Mi"}},{"type":"Pod","max":{"cpu":"2"}}]}})")),
            R"({"spec":{"limits":[{"type":"Container","max":{"cpu":"2"},"min":{"memory":"1Mi"},)"
            R"("default":{"cpu":"2"},"defaultRequest":{"cpu":"2","memory":"1Mi"}},)"
            R"({"type":"Pod","max":{"cpu":"2"}}]}})");
}

TEST(LimitRange, Rules) {
  EXPECT_EQ(complaints_of("LimitRange", R"({"spec":{"limits":[{"type":"Container",
    "max":{"cpu":"1"},"min":{"cpu":"2"},"default":{"cpu":"1"},"defaultRequest":{"cpu":"2"}}]}})"),
            (Lines{R"(spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than )"
                   "max value 1",
                   R"(spec.limits[0].defaultRequest[cpu]: Invalid value: "2": default request )"
                   "value 2 is greater than max value 1",
                   R"(spec.limits[0].defaultRequest[cpu]: Invalid value: "2": default request )"
                   "value 2 is greater than default limit value 1",
                   R"(spec.limits[0].default[cpu]: Invalid value: "2": min value 2 is greater )"
                   "than default value 1"}));
  EXPECT_EQ(
      complaints_of("LimitRange", R"({"spec":{"limits":[{"type":"Pod","default":{"cpu":"1"}},
    {"type":"Pod"},{"type":"PersistentVolumeClaim"},{"type":"Moon"}]}})"),
      (Lines{"spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'",
             R"(spec.limits[1].type: Duplicate value: "Pod")",
             "spec.limits[2].limits: Required value: either minimum or maximum storage value "
             "is required, but neither was provided",
             R"(spec.limits[3].type: Invalid value: "Moon": must be a standard limit type or )"
             "fully qualified"}));
}

TEST(Volumes, Rules) {
  EXPECT_EQ(complaints_of("PersistentVolume", R"({"spec":{"capacity":{"storage":"1Gi"},
    "accessModes":["ReadWriteOnce"],"hostPath":{"path":"/a"}}})"),
            Lines{});
  EXPECT_EQ(complaints_of("PersistentVolume", R"({"spec":{"hostPath":{"path":"/a/../b"},
    "nfs":{},"volumeMode":"Tape"}})"),
            (Lines{"spec.accessModes: Required value", "spec.capacity: Required value",
                   R"(spec.capacity: Unsupported value: null: supported values: "storage")",
                   R"(spec.hostPath.path: Invalid value: "/a/../b": must not contain '..')",
                   "spec.nfs: Forbidden: may not specify more than 1 volume type",
                   R"(spec.volumeMode: Unsupported value: "Tape": supported values: "Block", )"
                   R"("Filesystem")"}));
  EXPECT_EQ(complaints_of("PersistentVolumeClaim", R"({"spec":{"accessModes":["Some"]}})"),
            (Lines{R"(spec.accessModes: Unsupported value: "Some": supported values: )"
                   R"("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")",
                   "spec.resources[storage]: Required value"}));
  const std::string_view claim = R"({"spec":{"accessModes":["ReadWriteOnce"],
    "resources":{"requests":{"storage":"2Gi"}}},"status":{"phase":"Bound"}})";
  EXPECT_EQ(complaints_of("PersistentVolumeClaim", R"({"spec":{"accessModes":["ReadWriteMany"],
    "resources":{"requests":{"storage":"2Gi"}}},"status":{"phase":"Bound"}})",
                          claim),
            Lines{"spec: Forbidden: spec is immutable after creation except resources.requests and "
                  "volumeAttributesClassName for bound claims"});
  EXPECT_EQ(complaints_of("PersistentVolumeClaim", R"({"spec":{"accessModes":["ReadWriteOnce"],
    "resources":{"requests":{"storage":"3Gi"}}},"status":{"phase":"Bound"}})",
                          claim),
            Lines{});
}

TEST(Volumes, Cells) {
  EXPECT_EQ(
      cells_of("PersistentVolume", R"({"spec":{"capacity":{"storage":"1Gi"},
    "accessModes":["ReadWriteMany","ReadWriteOnce"],"persistentVolumeReclaimPolicy":"Retain",
    "claimRef":{"namespace":"a","name":"b"},"storageClassName":"fast"},
    "status":{"phase":"Bound"}})"),
      R"(["1Gi","RWO,RWX","Retain","Bound","a/b","fast","<unset>","","<unknown>","<unset>"])");
}

TEST(Endpoints, RulesAndCells) {
  EXPECT_EQ(complaints_of("Endpoints", R"({"subsets":[{"addresses":[{"ip":"127.0.0.1"}],
    "ports":[{"port":80},{"port":0,"name":"b"}]},{}]})"),
            (Lines{R"(subsets[0].addresses[0].ip: Invalid value: "127.0.0.1": may not be in the )"
                   "loopback range (127.0.0.0/8, ::1/128)",
                   "subsets[0].ports[0].name: Required value",
                   "subsets[0].ports[1].port: Invalid value: 0: must be between 1 and 65535, "
                   "inclusive",
                   "subsets[1]: Required value: must specify `addresses` or `notReadyAddresses`"}));
  EXPECT_EQ(cells_of("Endpoints", R"({"subsets":[{"addresses":[{"ip":"1.2.3.4"},{"ip":"1.2.3.5"}],
    "ports":[{"port":80},{"port":81}]}]})"),
            R"(["1.2.3.4:80,1.2.3.5:80,1.2.3.4:81 + 1 more...","<unknown>"])");
}

TEST(EndpointSlice, RulesAndCells) {
  EXPECT_EQ(complaints_of("EndpointSlice", R"({"endpoints":[{}],"ports":[{"port":1},{"port":2}]})"),
            (Lines{"addressType: Required value", R"(ports[1].name: Duplicate value: "")",
                   "endpoints[0].addresses: Required value: must contain at least 1 address"}));
  EXPECT_EQ(complaints_of("EndpointSlice", R"({"addressType":"IPv4",
    "endpoints":[{"addresses":["::1","x"]}]})"),
            (Lines{R"(endpoints[0].addresses: Invalid value: "::1": must be an IPv4 address)",
                   R"(endpoints[0].addresses[0]: Invalid value: "::1": may not be in the loopback )"
                   "range (127.0.0.0/8, ::1/128)",
                   R"(endpoints[0].addresses[1]: Invalid value: "x": must be a valid IP address, )"
                   "(e.g. 10.9.8.7 or 2001:db8::ffff)"}));
  EXPECT_EQ(cells_of("EndpointSlice", R"({"addressType":"IPv4"})"),
            R"(["IPv4","<unset>","<unset>","<unknown>"])");
}

TEST(ReplicationController, TakesItsSelectorFromTheTemplate) {
  const json::value rc = defaulted_of("ReplicationController", R"({"spec":{"template":{
    "metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"x"}]}}}})");
  EXPECT_EQ(json::get_string(rc, {"spec", "selector", "a"}), "b");
  EXPECT_EQ(json::get_string(rc, {"metadata", "labels", "a"}), "b");
  EXPECT_EQ(json::get_int(rc, {"spec", "replicas"}), 1);
  // A template is not a pod yet.
  EXPECT_EQ(json::find(rc, {"spec", "template", "spec", "enableServiceLinks"}), nullptr);
  EXPECT_EQ(
      complaints_of("ReplicationController", R"({"spec":{"replicas":-1,"selector":{"a":"c"},
    "template":{"metadata":{"labels":{"a":"b"}},"spec":{"restartPolicy":"Never",
    "containers":[{"name":"c","image":"x"}]}}}})"),
      (Lines{"spec.replicas: Invalid value: -1: must be greater than or equal to 0",
             R"(spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not )"
             "match template `labels`",
             R"(spec.template.spec.restartPolicy: Unsupported value: "Never": supported )"
             R"(values: "Always")"}));
}

TEST(Rbac, Rules) {
  EXPECT_EQ(complaints_of("Role", R"({"rules":[{"nonResourceURLs":["/a"]},{"verbs":["get"]}]})"),
            (Lines{"rules[0].verbs: Required value: verbs must contain at least one value",
                   R"(rules[0].nonResourceURLs: Invalid value: ["/a"]: namespaced rules cannot )"
                   "apply to non-resource URLs",
                   "rules[1].apiGroups: Required value: resource rules must supply at least one "
                   "api group",
                   "rules[1].resources: Required value: resource rules must supply at least one "
                   "resource"}));
  const std::string_view good = R"({"roleRef":{"kind":"ClusterRole","name":"a"},
    "subjects":[{"kind":"User","name":"u"}]})";
  EXPECT_EQ(complaints_of("ClusterRoleBinding", good), Lines{});
  EXPECT_EQ(json::get_string(defaulted_of("ClusterRoleBinding", good), {"roleRef", "apiGroup"}),
            "rbac.authorization.k8s.io");
  EXPECT_EQ(json::get_string(defaulted_of("ClusterRoleBinding", "{}"), {"roleRef", "apiGroup"}),
            "rbac.authorization.k8s.io");
  EXPECT_EQ(complaints_of("ClusterRoleBinding", R"({"roleRef":{"kind":"Role"},
    "subjects":[{"kind":"ServiceAccount","name":"s"},{"kind":"Robot"}]})"),
            (Lines{R"(roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole")",
                   "roleRef.name: Required value", "subjects[0].namespace: Required value",
                   "subjects[1].name: Required value",
                   R"(subjects[1].kind: Unsupported value: "Robot": supported values: )"
                   R"("ServiceAccount", "User", "Group")"}));
  EXPECT_EQ(
      complaints_of("ClusterRoleBinding", R"({"roleRef":{"kind":"ClusterRole","name":"b"}})", good),
      Lines{R"(roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io",)"
            R"("Kind":"ClusterRole","Name":"b"}: cannot change roleRef)"});
}

TEST(PriorityClass, Rules) {
  EXPECT_EQ(complaints_of("PriorityClass", R"({"metadata":{"name":"a"},"value":1000000001})"),
            Lines{"value: Forbidden: maximum allowed value of a user defined priority is "
                  "1000000000"});
  EXPECT_EQ(complaints_of("PriorityClass", R"({"metadata":{"name":"system-x"},"value":1})"),
            Lines{"metadata.name: Forbidden: priority class names with 'system-' prefix are "
                  "reserved for system use only. error: system-x is not a known system priority "
                  "class"});
  EXPECT_EQ(complaints_of("PriorityClass", R"({"metadata":{"name":"a"},"value":2})",
                          R"({"metadata":{"name":"a"},"value":1})"),
            Lines{"value: Forbidden: may not be changed in an update."});
}

TEST(DisruptionBudget, RulesAndCells) {
  EXPECT_EQ(complaints_of("PodDisruptionBudget", R"({"spec":{"minAvailable":"120%"}})"),
            Lines{R"(spec.minAvailable: Invalid value: "120%": must not be greater than 100%)"});
  EXPECT_EQ(complaints_of("PodDisruptionBudget", R"({"spec":{"maxUnavailable":-1,"selector":{
    "matchExpressions":[{"key":"a","operator":"In"}]}}})"),
            (Lines{"spec.maxUnavailable: Invalid value: -1: must be greater than or equal to 0",
                   "spec.selector.matchExpressions[0].values: Required value: must be specified "
                   "when `operator` is 'In' or 'NotIn'"}));
  EXPECT_EQ(cells_of("PodDisruptionBudget", R"({"spec":{"minAvailable":2}})"),
            R"(["2","N/A",0,"<unknown>"])");
}

TEST(Storage, Rules) {
  EXPECT_EQ(complaints_of("StorageClass", R"({"reclaimPolicy":"Recycle"})"),
            (Lines{"provisioner: Required value",
                   R"(reclaimPolicy: Unsupported value: "Recycle": supported values: "Delete", )"
                   R"("Retain")"}));
  EXPECT_EQ(complaints_of("StorageClass", R"({"provisioner":"b"})", R"({"provisioner":"a"})"),
            Lines{"provisioner: Forbidden: updates to provisioner are forbidden."});
  EXPECT_EQ(complaints_of("CSINode", R"({"spec":{"drivers":[{"name":"d"}]}})"),
            Lines{"spec.drivers[0].nodeID: Required value"});
  EXPECT_EQ(complaints_of("VolumeAttachment", R"({"spec":{"attacher":"a","nodeName":"n",
    "source":{}}})"),
            Lines{"spec.source: Required value: must specify exactly one of inlineVolumeSpec and "
                  "persistentVolumeName"});
  EXPECT_EQ(
      complaints_of("CSIStorageCapacity", R"({"storageClassName":"","capacity":"-1"})").size(), 2U);
  EXPECT_EQ(complaints_of("CSIStorageCapacity", R"({"storageClassName":"a","capacity":"1Gi"})"),
            Lines{});
  EXPECT_EQ(complaints_of("CSIStorageCapacity", R"({"storageClassName":"b"})",
                          R"({"storageClassName":"a"})"),
            Lines{R"(storageClassName: Invalid value: "b": field is immutable)"});
  EXPECT_EQ(json::get_string(defaulted_of("CSIDriver", "{}"), {"spec", "fsGroupPolicy"}),
            "ReadWriteOnceWithFSType");
}

TEST(Webhooks, Rules) {
  EXPECT_EQ(complaints_of("ValidatingWebhookConfiguration", R"({"webhooks":[{"name":"a.b",
    "rules":[{"operations":["*","CREATE"],"apiGroups":[""],"apiVersions":["v1"],
    "resources":["pods/*","pods/x"]}],"clientConfig":{"url":"http://h/p?q"},
    "timeoutSeconds":31}]})"),
            (Lines{R"(webhooks[0].name: Invalid value: "a.b": should be a domain with at least )"
                   "three segments separated by dots",
                   R"(webhooks[0].rules[0].operations: Invalid value: ["*","CREATE"]: if '*' is )"
                   "present, must not specify other operations",
                   R"(webhooks[0].rules[0].resources[1]: Invalid value: "pods/x": if 'pods/*' is )"
                   "present, must not specify pods/x",
                   "webhooks[0].sideEffects: Required value: must specify one of None, "
                   "NoneOnDryRun",
                   "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be "
                   "between 1 and 30 seconds",
                   R"(webhooks[0].clientConfig.url: Invalid value: "http": 'https' is the only )"
                   "allowed URL scheme; desired format: https://host[/path]",
                   R"(webhooks[0].clientConfig.url: Invalid value: "q": query parameters are not )"
                   "permitted in the URL",
                   "webhooks[0].admissionReviewVersions: Required value: must specify one of v1, "
                   "v1beta1"}));
  const json::value made = defaulted_of(
      "MutatingWebhookConfiguration",
      R"({"kind":"MutatingWebhookConfiguration","webhooks":[{"clientConfig":{"service":{}}}]})");
  EXPECT_EQ(json::serialize(json::get_array(made, {"webhooks"}).at(0)),
            R"({"clientConfig":{"service":{"port":443}},"failurePolicy":"Fail",)"
            R"("matchPolicy":"Equivalent","namespaceSelector":{},"objectSelector":{},)"
            R"("timeoutSeconds":10,"reinvocationPolicy":"Never"})");
}

TEST(SigningRequest, RulesAndPreparation) {
  // "-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----"
  const std::string pem =
      "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0"
      "t";
  const std::string good =
      R"({"spec":{"request":")" + pem + R"(","signerName":"a.org/s","usages":["client auth"]}})";
  EXPECT_EQ(complaints_of("CertificateSigningRequest", good), Lines{});
  EXPECT_EQ(complaints_of("CertificateSigningRequest", R"({"spec":{"signerName":"a",
    "expirationSeconds":1}})"),
            (Lines{R"(spec.request: Invalid value: "": PEM block type must be CERTIFICATE REQUEST)",
                   "spec.usages: Required value",
                   R"(spec.signerName: Invalid value: "a": must be a fully qualified domain and )"
                   "path of the form 'example.com/signer-name'",
                   "spec.expirationSeconds: Invalid value: 1: may not specify a duration less than "
                   "600 seconds (10 minutes)"}));
  json::value fresh = parsed(R"({"spec":{"username":"liar"},"status":{"certificate":"x"}})");
  const json::value user = parsed(R"({"username":"ann","groups":["g"]})");
  kind_named("CertificateSigningRequest").prepare(fresh, {.now = "T", .user = &user});
  EXPECT_EQ(json::serialize(fresh), R"({"spec":{"username":"ann","groups":["g"]}})");
  json::value approved = parsed(
      R"({"spec":{"username":"eve"},"status":{"conditions":[{"type":"Approved","status":"True"}]}})");
  kind_named("CertificateSigningRequest")
      .prepare(approved, {.old = &fresh, .subresource = "approval", .now = "T"});
  EXPECT_EQ(json::get_string(approved, {"spec", "username"}), "ann");
  EXPECT_EQ(json::get_string(json::get_array(approved, {"status", "conditions"}).at(0),
                             {"lastTransitionTime"}),
            "T");
}

TEST(RuntimeClass, Rules) {
  EXPECT_EQ(complaints_of("RuntimeClass", R"({"handler":"b"})", R"({"handler":"a"})"),
            Lines{R"(handler: Invalid value: "b": field is immutable)"});
  EXPECT_EQ(complaints_of("RuntimeClass", R"({"handler":"a","scheduling":{"tolerations":[
    {"key":"k"},{"key":"k"}]}})"),
            Lines{R"(scheduling.tolerations[1]: Duplicate value: {"key":"k"})"});
}

}  // namespace
}  // namespace skiff::api
