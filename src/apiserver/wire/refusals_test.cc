// Deletes, lists and warnings, in the words of kube-apiserver v1.34.4.
#include <fmt/format.h>

#include "api/meta.h"
#include "apiserver/request_body.h"
#include "apiserver/test_world.h"

namespace skiff::apiserver {
namespace {

const std::string kRefusedMapsPath = "/api/v1/namespaces/default/configmaps";

std::string refusal_message(const std::pair<int, json::value>& answer) {
  return fmt::format("{} {}", answer.first, json::get_string(answer.second, {"message"}));
}

std::vector<std::string> warnings(const http::Response& response) {
  std::vector<std::string> out;
  for (const auto& [name, value] : response.headers) {
    if (name == "Warning") out.push_back(value);
  }
  return out;
}

TEST(DeleteOptions, ThatCannotBeReadHaveNoReason) {
  World world;
  struct Case {
    const char* body;
    const char* message;
  };
  for (const Case& c : {
           Case{R"({"kind":"Pod"})",
                R"(500 no kind "Pod" is registered for version "meta.k8s.io/v1" in scheme )"
                R"("pkg/runtime/scheme.go:110")"},
           {R"({"kind":"Pod","apiVersion":"v1"})",
            R"(500 no kind "Pod" is registered for version "v1" in scheme )"
            R"("pkg/runtime/scheme.go:110")"},
           {R"({"gracePeriodSeconds":"x"})",
            "500 json: cannot unmarshal string into Go struct field "
            "DeleteOptions.gracePeriodSeconds of type int64"},
           {R"({"preconditions":{"uid":5}})",
            "500 json: cannot unmarshal number into Go struct field "
            "Preconditions.preconditions.uid of type types.UID"},
           {R"({"dryRun":[5]})",
            "500 json: cannot unmarshal number into Go struct field DeleteOptions.dryRun of type "
            "string"},
           {"[]",
            "500 couldn't get version/kind; json parse error: json: cannot unmarshal array into "
            "Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; "
            "Kind string \"json:\\\"kind,omitempty\\\"\" }"},
           {"text",
            "500 couldn't get version/kind; json parse error: invalid character 'e' in literal "
            "true (expecting 'r')"},
           {R"({"surprise":1})", R"(404 configmaps "none" not found)"},
           {" ", "500 couldn't get version/kind; json parse error: unexpected end of JSON input"},
           {R"({"kind":5})",
            "500 couldn't get version/kind; json parse error: json: cannot unmarshal number into "
            "Go struct field .kind of type string"},
           {R"({"apiVersion":"a/b/c"})", "500 unexpected GroupVersion string: a/b/c"},
           {R"({"gracePeriodSeconds":1.5})",
            "500 json: cannot unmarshal number 1.5 into Go struct field "
            "DeleteOptions.gracePeriodSeconds of type int64"},
           {"null", R"(404 configmaps "none" not found)"},
       }) {
    const auto answer = world.call("DELETE", kRefusedMapsPath + "/none", c.body);
    EXPECT_EQ(refusal_message(answer), c.message);
    if (answer.first == 500) EXPECT_EQ(json::find(answer.second, {"reason"}), nullptr) << c.body;
  }
}

TEST(DeleteOptions, OfNamespacesAndViewsNameOtherThings) {
  World world;
  constexpr const char* kOther = R"({"preconditions":{"uid":"other"}})";
  world.call("POST", "/api/v1/namespaces", R"({"metadata":{"name":"n"}})");
  EXPECT_TRUE(refusal_message(world.call("DELETE", "/api/v1/namespaces/n", kOther))
                  .starts_with("409 Operation cannot be fulfilled on namespaces \"n\": "
                               "Precondition failed: UID in precondition: other, UID in object "
                               "meta: "));
  const std::string events = "/apis/events.k8s.io/v1/namespaces/default/events";
  EXPECT_EQ(world
                .call("POST", events,
                      R"({"metadata":{"name":"e"},"eventTime":"2024-01-01T00:00:00.000000Z",
                           "action":"a","reason":"r","type":"Normal","reportingController":"c.d/e",
                           "reportingInstance":"i","regarding":{"namespace":"default"}})")
                .first,
            201);
  const auto answer = world.call("DELETE", events + "/e", kOther);
  EXPECT_TRUE(
      refusal_message(answer).starts_with("409 Operation cannot be fulfilled on Event \"e\": the "
                                          "UID in the precondition (other) does not match"))
      << refusal_message(answer);
  EXPECT_EQ(json::find(answer.second, {"details", "group"}), nullptr);
}

TEST(Namespaces, ThatEndRefuseAnObjectByItsName) {
  World world;
  world.call("POST", "/api/v1/namespaces", R"({"metadata":{"name":"n"}})");
  world.call("POST", "/api/v1/namespaces/n/configmaps",
             R"({"metadata":{"name":"held","finalizers":["example.org/a"]}})");
  world.call("DELETE", "/api/v1/namespaces/n");
  EXPECT_EQ(refusal_message(world.call("POST", "/api/v1/namespaces/n/configmaps",
                                       R"({"metadata":{"name":"late"}})")),
            R"(403 configmaps "late" is forbidden: unable to create new content in namespace n )"
            "because it is being terminated");
}

TEST(Warnings, ComeWithRefusalsToo) {
  World world;
  world.call("DELETE", "/apis/batch/v1/namespaces/default/jobs/none");
  EXPECT_EQ(world.last.status, 404);
  ASSERT_EQ(warnings(world.last).size(), 1u);
  EXPECT_TRUE(warnings(world.last)[0].starts_with("299 - \"child pods are preserved by default"));
  world.call("DELETE", "/apis/batch/v1/namespaces/default/jobs/none?propagationPolicy=Background");
  EXPECT_EQ(warnings(world.last).size(), 0u);
}

TEST(Warnings, AboutAGoodObjectAreForGoodObjects) {
  World world;
  const auto make = [&](const char* name) {
    return world
        .call("POST", "/apis/apps/v1/namespaces/default/deployments",
              fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{
                  "selector":{{"matchLabels":{{"a":"b"}}}},"template":{{"metadata":{{
                  "labels":{{"a":"b"}}}},
                  "spec":{{"containers":[{{"name":"c","image":"x"}}]}}}}}}}})",
                          name))
        .first;
  };
  EXPECT_EQ(make("with.dot"), 201);
  EXPECT_EQ(warnings(world.last).size(), 1u);
  EXPECT_EQ(make("Upper.x"), 422);
  EXPECT_EQ(warnings(world.last).size(), 0u);
}

TEST(Warnings, AreCutOnlyWhereAllOfThemAreTooMuch) {
  const std::string three_hundred(300, 'x');
  http::Response few;
  add_warnings({three_hundred, "b", "b"}, few);
  EXPECT_EQ(warnings(few),
            (std::vector<std::string>{"299 - \"" + three_hundred + "\"", "299 - \"b\""}));
  std::vector<std::string> all;
  for (int i = 0; i < 40; ++i) all.push_back(fmt::format("{:02}{}", i, three_hundred));
  http::Response many;
  add_warnings(all, many);
  ASSERT_EQ(warnings(many).size(), 16u) << "as many as fit into 4096 characters";
  EXPECT_EQ(warnings(many)[15], "299 - \"15" + std::string(254, 'x') + "\"");
  std::string wide;
  for (int i = 0; i < 300; ++i) wide += "\xc3\xa9";
  http::Response words;
  all.insert(all.begin(), wide);
  add_warnings(all, words);
  EXPECT_EQ(warnings(words)[0].size(), std::string("299 - \"\"").size() + 512)
      << "characters, not bytes";
}

TEST(Lists, SayWhatTheyCannotSelect) {
  World world;
  const auto list = [&](const std::string& target) {
    return refusal_message(world.call("GET", target));
  };
  EXPECT_EQ(list(kRefusedMapsPath + "?fieldSelector=spec.x%3D1"),
            R"(400 "spec.x" is not a known field selector: only "metadata.name", )"
            R"("metadata.namespace")");
  EXPECT_EQ(list(World::pods("?fieldSelector=spec.x%3D1")),
            "400 field label not supported: spec.x");
  EXPECT_EQ(list("/apis/batch/v1/jobs?fieldSelector=spec.x%3D1"),
            R"(400 field label "spec.x" not supported for Job)");
  EXPECT_EQ(list(kRefusedMapsPath + "?labelSelector=a%20b"),
            "400 unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt");
  EXPECT_EQ(list(kRefusedMapsPath + "?resourceVersion=-1"),
            R"(400 invalid resource version: resourceVersion: Invalid value: "-1": )"
            R"(strconv.ParseUint: parsing "-1": invalid syntax)");
  EXPECT_EQ(list(kRefusedMapsPath + "?continue=garbage"),
            R"(400 invalid continue token: continue key is not valid: invalid character )"
            R"('\u0081' looking for beginning of value)");
}

TEST(Lists, FromTheCacheHaveNoPages) {
  World world;
  for (const char* name : {"a", "b", "c"}) world.call("POST", World::pods(), world.pod(name));
  const auto count = [&](const char* query) {
    return json::get_array(world.call("GET", World::pods(query)).second, {"items"}).size();
  };
  EXPECT_EQ(count("?limit=2"), 2u);
  EXPECT_EQ(count("?limit=2&resourceVersion=0"), 3u);
  EXPECT_EQ(count("?limit=2&resourceVersion=1"), 2u);
}

TEST(Watches, BookmarkTwoSecondsBeforeTheEnd) {
  World world;
  const auto open = [&](const char* query) {
    return world.server->handle(world.request("GET", World::pods(query)));
  };
  const http::Response brief = open(
      "?watch=1&allowWatchBookmarks=true&resourceVersion=1&"
      "timeoutSeconds=1");
  std::string bytes;
  world.clock.advance(std::chrono::seconds(2));
  EXPECT_FALSE(brief.stream->pull(bytes, [] {}));
  EXPECT_EQ(bytes, "") << "too short for a bookmark";
  const http::Response longer = open(
      "?watch=1&allowWatchBookmarks=true&resourceVersion=1&"
      "timeoutSeconds=10");
  world.clock.advance(std::chrono::seconds(7));
  EXPECT_TRUE(longer.stream->pull(bytes, [] {}));
  EXPECT_EQ(bytes, "");
  world.clock.advance(std::chrono::seconds(1));
  EXPECT_TRUE(longer.stream->pull(bytes, [] {}));
  EXPECT_TRUE(bytes.starts_with(R"({"type":"BOOKMARK")")) << bytes;
  bytes.clear();
  world.clock.advance(std::chrono::seconds(2));
  EXPECT_FALSE(longer.stream->pull(bytes, [] {}));
  EXPECT_EQ(bytes, "") << "only once";
}

TEST(PartialMetadata, OfADaemonSetAloneLeavesOutWhatIsAFieldToTheServer) {
  World world;
  const std::string sets = "/apis/apps/v1/namespaces/default/daemonsets";
  const json::value made = world
                               .call("POST", sets, R"({"metadata":{"name":"d"},"spec":{
          "selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},
          "spec":{"containers":[{"name":"c","image":"x"}]}}}})")
                               .second;
  constexpr std::string_view kCount = "deprecated.daemonset.template.generation";
  EXPECT_EQ(json::get_string(made, {"metadata", "annotations", kCount}), "1");
  const auto alone = [&] {
    return world
        .call("GET", sets + "/d", "", "application/json",
              "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
        .second;
  };
  EXPECT_EQ(json::find(alone(), {"metadata", "annotations"}), nullptr);
  world.call("PATCH", sets + "/d", R"({"metadata":{"annotations":{"x":"y"}}})",
             "application/merge-patch+json");
  EXPECT_EQ(json::serialize(*json::find(alone(), {"metadata", "annotations"})), R"({"x":"y"})");
}

}  // namespace
}  // namespace skiff::apiserver
