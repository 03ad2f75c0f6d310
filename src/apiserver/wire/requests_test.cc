// What requests are answered that ask for something which is not there or makes no sense. The
// sentences are those of kube-apiserver v1.34.4.
#include <fmt/format.h>

#include "api/meta.h"
#include "apiserver/test_world.h"

namespace skiff::apiserver {
namespace {

constexpr const char* kJson = "application/json";

struct Refusal {
  const char* method;
  std::string target;
  const char* type;
  std::string body;
  int status;
  const char* message;
};

void check(World& world, const std::vector<Refusal>& cases) {
  for (const Refusal& c : cases) {
    SCOPED_TRACE(fmt::format("{} {} {}", c.method, c.target, c.body));
    const auto [status, answer] = world.call(c.method, c.target, c.body, c.type);
    EXPECT_EQ(status, c.status);
    EXPECT_EQ(json::get_string(answer, {"message"}), c.message);
    EXPECT_EQ(json::get_int(answer, {"code"}), c.status);
  }
}

TEST(Bodies, AreRefusedWithTheRealSentence) {
  World world;
  const std::string pods = World::pods(), x = World::pods("/x");
  check(world,
        {{"POST", pods, kJson, R"({"a":)", 400,
          "the object provided is unrecognized (must be of type Pod): couldn't get version/kind; "
          "json parse error: unexpected end of JSON input ({\"a\":)"},
         {"POST", pods, kJson, "[]", 400,
          "the object provided is unrecognized (must be of type Pod): couldn't get version/kind; "
          "json parse error: json: cannot unmarshal array into Go value of type struct { "
          "APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string "
          "\"json:\\\"kind,omitempty\\\"\" } (5b5d)"},
         {"POST", pods, kJson, "hello", 400,
          "the object provided is unrecognized (must be of type Pod): couldn't get version/kind; "
          "json parse error: invalid character 'h' looking for beginning of value (68656c6c6f)"},
         {"POST", pods, kJson, R"({"apiVersion":7,"kind":"Pod"})", 400,
          "the object provided is unrecognized (must be of type Pod): couldn't get version/kind; "
          "json parse error: json: cannot unmarshal number into Go struct field .apiVersion of "
          "type string ({\"apiVersion\":7,\"kind\":\"Pod\"})"},
         {"POST", pods, kJson, R"({"kind":"Foo","apiVersion":"v1"})", 400,
          "Foo in version \"v1\" cannot be handled as a Pod: no kind \"Foo\" is registered for "
          "version \"v1\" in scheme \"pkg/runtime/scheme.go:110\""},
         {"POST", pods, kJson, R"({"kind":"Service","apiVersion":"v1"})", 400,
          "Service in version \"v1\" cannot be handled as a Pod: converting (v1.Service) to "
          "(core.Pod): unknown conversion"},
         {"POST", pods, kJson, R"({"kind":"Pod","apiVersion":"v1","metadata":7})", 400,
          "Pod in version \"v1\" cannot be handled as a Pod: json: cannot unmarshal number into Go "
          "struct field Pod.metadata of type v1.ObjectMeta"},
         {"POST", pods, kJson, R"({"metadata":{"namespace":"x","name":"a"}})", 400,
          "the namespace of the provided object does not match the namespace sent on the request"},
         {"POST", pods, "text/plain", "{}", 415,
          "the body of the request was in an unknown format - accepted media types include: "
          "application/json, application/yaml, application/vnd.kubernetes.protobuf"},
         {"POST", pods, "application/vnd.kubernetes.protobuf", "{}", 400,
          "the object provided is unrecognized (must be of type Pod): provided data does not "
          "appear to be a protobuf message, expected prefix [107 56 115 0] ({})"},
         {"PUT", x, kJson, "{}", 400,
          "the name of the object (x based on URL) was undeterminable: name must be provided"},
         {"PUT", x, kJson, R"({"metadata":{"name":"y"}})", 400,
          "the name of the object (y) does not match the name on the URL (x)"},
         {"PATCH", x, kJson, "{}", 415, "415: Unsupported Media Type"},
         {"DELETE", x, kJson, R"({"kind":"Foo","apiVersion":"v1"})", 500,
          "no kind \"Foo\" is registered for version \"v1\" in scheme "
          "\"pkg/runtime/scheme.go:110\""}});
}

TEST(Bodies, OfPatchesAreRefusedWithTheRealSentence) {
  World world;
  const std::string x = World::pods("/x");
  const char *merge = "application/merge-patch+json", *list = "application/json-patch+json",
             *strategic = "application/strategic-merge-patch+json";
  check(world, {{"PATCH", x, merge, "{", 400, "error decoding patch: unexpected end of JSON input"},
                {"PATCH", x, merge, "", 400, "error decoding patch: unexpected end of JSON input"},
                {"PATCH", x, merge, "[]", 400,
                 "error decoding patch: json: cannot unmarshal array into Go value of type "
                 "map[string]interface {}"},
                {"PATCH", x, strategic, "{", 400, "unexpected end of JSON input"},
                {"PATCH", x, strategic, "5", 400,
                 "json: cannot unmarshal number into Go value of type map[string]interface {}"},
                {"PATCH", x, list, "{}", 400,
                 "error decoding patch: json: cannot unmarshal object into Go value of type "
                 "[]handlers.jsonPatchOp"},
                {"PATCH", x, list, "[]", 404, "pods \"x\" not found"}});
}

TEST(Bodies, AreReadAsGoReadsThem) {
  World world;
  const std::string maps = "/api/v1/namespaces/default/configmaps";
  check(world, {{"POST", maps, kJson, "null", 422,
                 "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName "
                 "is required"}});
  const json::value half =
      world.call("POST", maps, R"({"metadata":{"name":"half"},"data":{"a":"\ud800"}})").second;
  EXPECT_EQ(json::get_string(half, {"data", "a"}), "\xEF\xBF\xBD");
  const json::value twice =
      world
          .call("POST", maps,
                R"({"metadata":{"name":"twice"},"data":{"x":"y"},"data":{"z":"w"},"more":1})")
          .second;
  EXPECT_EQ(json::serialize(twice.at("data")), R"({"x":"y","z":"w"})");
  std::vector<std::string> warnings;
  for (const auto& [name, text] : world.last.headers) {
    if (name == "Warning") warnings.push_back(text);
  }
  EXPECT_EQ(warnings, (std::vector<std::string>{R"(299 - "duplicate field \"data\"")",
                                                R"(299 - "unknown field \"more\"")"}));
  const auto [status, deep] =
      world.call("POST", maps, R"({"data":)" + std::string(500, '[') + std::string(500, ']') + "}");
  EXPECT_EQ(status, 400);
  EXPECT_TRUE(json::get_string(deep, {"message"}).contains("cannot be handled as a ConfigMap"));
}

TEST(Bodies, InYamlMayGiveAKeyTwiceButAreWarned) {
  World world;
  const std::string maps = "/api/v1/namespaces/default/configmaps";
  const std::string body = "metadata: {name: a}\ndata: {k: '1', k: '2'}\n";
  const auto [status, made] = world.call("POST", maps, body, "application/yaml");
  EXPECT_EQ(status, 201);
  EXPECT_EQ(json::get_string(made, {"data", "k"}), "2");
  EXPECT_EQ(http::header(world.last.headers, "Warning"),
            R"(299 - "yaml: unmarshal errors:   line 2: key \"k\" already set in map")");
  const auto [refused, why] =
      world.call("POST", maps + "?fieldValidation=Strict", body, "application/yaml");
  EXPECT_EQ(refused, 400);
  EXPECT_TRUE(json::get_string(why, {"message"}).contains("already set in map"));
}

TEST(Warnings, ThatAKindIsDeprecatedComeFirst) {
  World world;
  world.call("POST", "/api/v1/namespaces/default/endpoints",
             R"({"metadata":{"name":"a"},"surprise":1})");
  std::vector<std::string> warnings;
  for (const auto& [name, text] : world.last.headers) {
    if (name == "Warning") warnings.push_back(text);
  }
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_TRUE(warnings[0].contains("is deprecated"));
  EXPECT_TRUE(warnings[1].contains("surprise"));
}

TEST(Bodies, OfCustomKindsMustSayWhatTheyAre) {
  World world;
  world.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
             std::string(kBoats));
  const std::string boats = "/apis/sea.example.org/v1/namespaces/default/boats";
  check(world,
        {{"POST", boats, kJson, "{}", 400,
          "the object provided is unrecognized (must be of type Boat): Object 'Kind' is missing in "
          "'{}' ({})"},
         {"POST", boats, kJson, R"({"kind":"Foo","apiVersion":"sea.example.org/v1"})", 422,
          "Foo.sea.example.org \"\" is invalid: kind: Invalid value: \"Foo\": must be Boat"},
         {"POST", boats, kJson, R"({"kind":"Boat","apiVersion":"v1"})", 400,
          "the API version in the data (v1) does not match the expected API version "
          "(sea.example.org/v1)"},
         {"PATCH", boats + "/x", "application/strategic-merge-patch+json", "{}", 415,
          "the body of the request was in an unknown format - accepted media types include: "
          "application/json-patch+json, application/merge-patch+json, "
          "application/apply-patch+yaml"},
         {"GET", boats + "/x/foo", kJson, "", 404, "boats.sea.example.org \"x\" not found"}});
}

TEST(Options, AreRefusedWithTheRealSentence) {
  World world;
  const std::string pods = World::pods(), x = World::pods("/x");
  check(
      world,
      {{"POST", pods + "?dryRun=X", kJson, "{}", 422,
        "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"X\"]: supported "
        "values: \"All\""},
       {"POST", pods + "?dryRun=All&dryRun=X", kJson, "{}", 422,
        "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"All\",\"X\"]: "
        "supported values: \"All\""},
       {"PUT", x + "?fieldValidation=X", kJson, "{}", 422,
        "UpdateOptions.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: \"X\": "
        "supported values: \"\", \"Ignore\", \"Strict\", \"Warn\""},
       {"POST", pods + "?fieldManager=%01", kJson, "{}", 422,
        "CreateOptions.meta.k8s.io \"\" is invalid: fieldManager: Invalid value: \"\\x01\": "
        "invalid character U+0001 (at position 0)"},
       {"POST", pods + "?fieldManager=" + std::string(129, 'a'), kJson, "{}", 422,
        "CreateOptions.meta.k8s.io \"\" is invalid: fieldManager: Too long: may not be more than "
        "128 bytes"},
       {"PATCH", x + "?force=true", "application/merge-patch+json", "{}", 422,
        "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for "
        "non-apply patch"},
       {"DELETE", x + "?propagationPolicy=Foo", kJson, "", 422,
        "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: "
        "\"Foo\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""},
       {"DELETE", x + "?gracePeriodSeconds=Foo", kJson, "", 400,
        "strconv.ParseInt: parsing \"Foo\": invalid syntax"},
       {"DELETE", x + "?propagationPolicy=Orphan&orphanDependents=true", kJson, "", 422,
        "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Invalid value: \"Orphan\": "
        "orphanDependents and deletionPropagation cannot be both set"},
       // A body speaks for the query.
       {"DELETE", x + "?propagationPolicy=Foo", kJson, R"({"kind":"DeleteOptions"})", 404,
        "pods \"x\" not found"}});
  EXPECT_EQ(
      json::get_string(world.call("POST", pods + "?dryRun=X", "{}").second, {"details", "kind"}),
      "CreateOptions");
}

TEST(ListOptions, AreRefusedWithTheRealSentence) {
  World world;
  const auto list = [](std::string_view query) { return World::pods("?" + std::string(query)); };
  check(
      world,
      {{"GET", list("limit=x"), kJson, "", 400, "strconv.ParseInt: parsing \"x\": invalid syntax"},
       {"GET", list("timeoutSeconds=99999999999999999999"), kJson, "", 400,
        "strconv.ParseInt: parsing \"99999999999999999999\": value out of range"},
       {"GET", list("resourceVersion=abc"), kJson, "", 400,
        "invalid resource version: resourceVersion: Invalid value: \"abc\": strconv.ParseUint: "
        "parsing \"abc\": invalid syntax"},
       {"GET", list("resourceVersionMatch=Exact"), kJson, "", 422,
        "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: "
        "resourceVersionMatch is forbidden unless resourceVersion is provided"},
       {"GET", list("resourceVersionMatch=Foo&resourceVersion=1"), kJson, "", 422,
        "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Unsupported value: "
        "\"Foo\": supported values: \"Exact\", \"NotOlderThan\", \"\""},
       {"GET", list("resourceVersionMatch=Exact&resourceVersion=0"), kJson, "", 422,
        "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: "
        "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""},
       {"GET", list("sendInitialEvents=true"), kJson, "", 422,
        "ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: "
        "sendInitialEvents is forbidden for list"},
       {"GET", list("watch=1&sendInitialEvents=true&resourceVersionMatch=Exact"), kJson, "", 422,
        "ListOptions.meta.k8s.io \"\" is invalid: [resourceVersionMatch: Forbidden: "
        "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan, "
        "resourceVersionMatch: Unsupported value: \"Exact\": supported values: "
        "\"NotOlderThan\"]"},
       {"GET", list("watch=1&resourceVersionMatch=NotOlderThan"), kJson, "", 422,
        "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: "
        "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"},
       {"GET", list("watch=1&continue=x"), kJson, "", 422,
        "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: "
        "resourceVersionMatch is forbidden when continue is provided"},
       {"GET", list("watch=1&resourceVersion=x"), kJson, "", 500,
        "resourceVersion: Invalid value: \"x\": strconv.ParseUint: parsing \"x\": invalid "
        "syntax"},
       {"GET",
        list("continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJ4In0&"
             "resourceVersion=7"),
        kJson, "", 400, "specifying resource version is not allowed when using continue"},
       {"GET", list("continue=e30"), kJson, "", 400,
        "invalid continue token: continue key is not valid: server does not recognize this "
        "encoded version "},
       {"GET", "/api/v1/watch/namespaces/default/pods/x?fieldSelector=metadata.name%3Dy", kJson, "",
        400, "fieldSelector metadata.name doesn't match requested name"}});
  EXPECT_EQ(world.call("GET", list("limit=-1")).first, 200);
  const json::value late = world.call("GET", list("resourceVersion=99999999")).second;
  EXPECT_EQ(json::serialize(late.at("details")),
            R"({"causes":[{"reason":"ResourceVersionTooLarge",)"
            R"("message":"Too large resource version"}],"retryAfterSeconds":1})");
  world.call("GET", list("watch=1&resourceVersion=x"));
  EXPECT_EQ(world.last.body.find("\"reason\""), std::string::npos);
}

struct Path {
  const char* method;
  const char* target;
  int status;
  const char* body;  // how it begins
};

TEST(Router, RefusesLikeTheRealOne) {
  World world;
  world.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
             std::string(kBoats));
  constexpr const char* kText = "404 page not found\n";
  constexpr const char* kNone =
      R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":)"
      R"("the server could not find the requested resource","reason":"NotFound","details":{},)"
      R"("code":404})";
  constexpr const char* kMethod =
      R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the )"
      R"(server does not allow this method on the requested resource","reason":)"
      R"("MethodNotAllowed","details":{},"code":405})";
  const Path cases[] = {
      {"GET", "/api/v1/foo", 404, kNone},
      {"GET", "/api/v1/namespaces/default/foo", 404, kNone},
      {"GET", "/api/v2", 404, kNone},
      {"GET", "/api/v2/pods", 404, kNone},
      {"GET", "/apis/foo/v1", 404, kText},
      {"GET", "/apis/foo/v1/bar", 404, kText},
      {"GET", "/apis/coordination.k8s.io/v7/leases", 404, kNone},
      {"GET", "/apis/sea.example.org/v1/foo", 404, kText},
      {"GET", "/apis/sea.example.org/v7", 404, kText},
      {"GET", "/apis/sea.example.org/v7/boats", 404, kText},
      {"GET", "/api/v1/namespaces/default/pods/x/foo", 404, kNone},
      {"GET", "/api/v1/namespaces/default/nodes", 404, kNone},
      {"GET", "/api/v1/pods/x", 404, kNone},
      {"POST", "/api/v1/namespaces/default/pods/x", 405, kMethod},
      {"POST", "/api/v1/pods", 405, kMethod},
      {"DELETE", "/api/v1/pods", 405, kMethod},
      {"PUT", "/api/v1/namespaces/default/pods", 405, kMethod},
      {"PATCH", "/api/v1/namespaces/default/pods", 405, kMethod},
      {"OPTIONS", "/api/v1/namespaces/default/pods", 405, kMethod},
      {"TRACE", "/api/v1/namespaces/default/pods", 405, kMethod},
      {"HEAD", "/api/v1/namespaces/default/pods", 405, kMethod},
      {"HEAD", "/api/v1/namespaces/default/pods/x/log", 405, kMethod},
      {"POST", "/version", 405, kMethod},
      {"POST", "/api/v1/watch/pods", 405, kMethod},
      {"GET", "/foo", 404, kText},
      {"GET", "/livez/ping", 200, "ok"},
      {"GET", "/readyz/etcd", 200, "ok"},
      {"GET", "/readyz/foo", 404, kText},
      {"GET", "/readyz?verbose&exclude=store", 200,
       "[+]ping ok\n[+]store excluded: ok\nreadyz check passed\n"},
  };
  for (const Path& c : cases) {
    SCOPED_TRACE(fmt::format("{} {}", c.method, c.target));
    const http::Response response = world.server->handle(world.request(c.method, c.target));
    EXPECT_EQ(response.status, c.status);
    EXPECT_EQ(response.body, c.body);
  }
}

TEST(Router, WhatIsBehindAProxyIsOfItsOwnForm) {
  World world;
  const std::string pod = "/api/v1/namespaces/default/pods/x/proxy";
  const auto asks_for_the_pod = [&](const char* method, const std::string& target) {
    const http::Response response = world.server->handle(world.request(method, target));
    return response.body.find(R"(pods \"x\" not found)") != std::string::npos;
  };
  EXPECT_TRUE(asks_for_the_pod("GET", pod + "//a//b"));
  EXPECT_TRUE(asks_for_the_pod("GET", "http://host" + pod + "/a"));
  EXPECT_TRUE(asks_for_the_pod("HEAD", pod + "/a"));
  EXPECT_FALSE(asks_for_the_pod("GET", "/" + pod + "/a"));
}

TEST(Router, NamesEveryRequest) {
  World world;
  const auto id = [&](http::Request request) {
    return std::string(http::header(world.server->handle(request).headers, "Audit-Id"));
  };
  const std::string first = id(world.request("GET", "/version"));
  EXPECT_EQ(first.size(), 36u);
  EXPECT_NE(first, id(world.request("GET", "/version")));
  http::Request named = world.request("GET", "/version");
  named.headers.emplace_back("Audit-ID", "mine");
  EXPECT_EQ(id(named), "mine");
}

struct Accepted {
  const char* accept;
  const char* target;
  int status;
  const char* type;
  const char* body;  // how it begins
};

TEST(Negotiation, FollowsTheAcceptHeader) {
  World world;
  world.call("POST", World::pods(), world.pod("a"));
  const std::string list = World::pods(), one = World::pods("/a");
  constexpr const char* kNone =
      R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":)"
      R"("only the following media types are accepted: application/json, application/yaml")";
  constexpr const char* kRouter =
      R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":)"
      R"("406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, )"
      R"(application/json;stream=watch","reason":"NotAcceptable","details":{},"code":406})";
  constexpr const char* kYaml = "application/yaml";
  const Accepted cases[] = {
      {"*/*", list.c_str(), 200, kJson, R"({"kind":"PodList")"},
      {"application/vnd.kubernetes.protobuf,application/json", list.c_str(), 200, kJson,
       R"({"kind":"PodList")"},
      {"application/vnd.kubernetes.protobuf", list.c_str(), 406, kJson, kNone},
      {"text/plain", list.c_str(), 406, kJson, kRouter},
      {"application/*;q=0.1,text/plain", list.c_str(), 406, kJson, kRouter},
      {"application/yaml", list.c_str(), 200, kYaml, "apiVersion: v1\nitems:\n- apiVersion: v1\n"},
      {"application/json;q=0.5,application/yaml;q=0.9", one.c_str(), 200, kYaml,
       "apiVersion: v1\nkind: Pod\n"},
      {"application/json;as=Foo;g=meta.k8s.io;v=v1", list.c_str(), 406, kJson, kNone},
      {"application/json;as=Table;g=meta.k8s.io;v=v2", list.c_str(), 406, kJson, kNone},
      {"application/json;as=Table;g=meta.k8s.io;v=v2,application/json", list.c_str(), 200, kJson,
       R"({"kind":"PodList")"},
      {"application/yaml;as=Table;g=meta.k8s.io;v=v1", list.c_str(), 200, kYaml,
       "apiVersion: meta.k8s.io/v1\ncolumnDefinitions:\n"},
      {"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", list.c_str(), 406, kJson,
       R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"you )"
       R"x(requested PartialObjectMetadata, but the requested object is a list (*core.PodList)")x"},
      {"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", one.c_str(), 200, kJson,
       R"({"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1")"},
      {"application/yaml", "/api/v1/namespaces/default/pods/none", 404, kYaml,
       "apiVersion: v1\ncode: 404\n"},
      {"application/yaml", "/api/v1/namespaces/default/pods?watch=1", 406, kYaml,
       "apiVersion: v1\ncode: 406\n"},
      {"application/yaml", "/apis/coordination.k8s.io/v1", 200, kYaml, "apiVersion: v1\n"},
  };
  for (const Accepted& c : cases) {
    SCOPED_TRACE(fmt::format("{} {}", c.accept, c.target));
    const http::Response response =
        world.server->handle(world.request("GET", c.target, "", kJson, c.accept));
    EXPECT_EQ(response.status, c.status);
    EXPECT_EQ(http::header(response.headers, "Content-Type"), c.type);
    EXPECT_TRUE(response.body.starts_with(c.body)) << response.body.substr(0, 400);
  }
}

TEST(Negotiation, IndentsForPeople) {
  World world;
  const auto indented = [&](const std::string& target, const char* agent) {
    http::Request request = world.request("GET", target);
    request.headers.emplace_back("User-Agent", agent);
    return world.server->handle(request).body.contains("\n  ");
  };
  EXPECT_TRUE(indented("/api/v1/nodes", "curl/8.5.0"));
  EXPECT_FALSE(indented("/api/v1/nodes?pretty=false", "curl/8.5.0"));
  EXPECT_FALSE(indented("/api/v1/nodes", "kubectl/v1.34.4"));
  EXPECT_TRUE(indented("/api/v1/nodes?pretty=true", "kubectl/v1.34.4"));
  EXPECT_FALSE(indented("/api/v1/nodes?pretty=nonsense", "curl/8.5.0"));
}

}  // namespace
}  // namespace skiff::apiserver
