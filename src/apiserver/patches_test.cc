// What is answered to patches and updates that lead nowhere. The sentences are those of
// kube-apiserver v1.34.4.
#include <fmt/format.h>

#include "api/meta.h"
#include "apiserver/test_world.h"

namespace skiff::apiserver {
namespace {

constexpr const char* kStrategic = "application/strategic-merge-patch+json";
constexpr const char* kMerge = "application/merge-patch+json";
constexpr const char* kJsonPatch = "application/json-patch+json";

struct Patches : ::testing::Test {
  Patches() { world.call("POST", World::pods(), world.pod("p")); }

  json::value refused(int status, const char* type, const char* patch, const char* query = "") {
    const auto [got, answer] =
        world.call("PATCH", World::pods("/p") + query, patch, type, "application/json");
    EXPECT_EQ(got, status) << patch << "\n" << json::serialize(answer);
    return answer;
  }
  static std::string message(const json::value& answer) {
    return std::string(json::get_string(answer, {"message"}));
  }
  std::vector<std::string> warnings() const {
    std::vector<std::string> out;
    for (const auto& [name, value] : world.last.headers) {
      if (name == "Warning") out.push_back(value);
    }
    return out;
  }

  World world;
};

TEST_F(Patches, AStrategicPatchOfAnotherTypeIsShownAsGoPrintsIt) {
  json::value answer = refused(422, kStrategic, R"({"spec":"text"})");
  EXPECT_EQ(
      message(answer),
      R"( "" is invalid: patch: Invalid value: "map[spec:text]": cannot restore struct from: )"
      "string");
  EXPECT_EQ(json::serialize(answer.at("details")),
            R"({"causes":[{"reason":"FieldValueInvalid","message":"Invalid value: )"
            R"(\"map[spec:text]\": cannot restore struct from: string","field":"patch"}]})");
  answer = refused(422, kStrategic, R"({"spec":{"containers":{"name":"one"}}})");
  EXPECT_TRUE(message(answer).ends_with(
      R"("map[spec:map[containers:map[name:one]]]": cannot restore slice from map)"));
}

TEST_F(Patches, AnyOtherPatchIsShownByWhatItLedTo) {
  for (const auto& [type, patch] :
       {std::pair<const char*, const char*>{kMerge, R"({"spec":"text"})"},
        {kJsonPatch, R"([{"op":"add","path":"/metadata/labels","value":"text"}])"},
        {kMerge, R"({"kind":"Other"})"}}) {
    const json::value answer = refused(422, type, patch);
    EXPECT_TRUE(message(answer).starts_with(R"( "" is invalid: patch: Invalid value: "{\")"))
        << message(answer);
    EXPECT_EQ(json::get_string(answer, {"details", "name"}), "");
  }
  EXPECT_TRUE(message(refused(422, kMerge, R"({"kind":"Other"})"))
                  .ends_with(R"(no kind "Other" is registered for version "v1" in scheme )"
                             R"("pkg/runtime/scheme.go:110")"));
}

TEST_F(Patches, AStrategicPatchSaysInVainWhatKindItIs) {
  const json::value answer = refused(200, kStrategic, R"({"kind":"Other","apiVersion":"v9"})");
  EXPECT_EQ(api::kind(answer), "Pod");
  EXPECT_EQ(api::api_version(answer), "v1");
}

TEST_F(Patches, DirectivesThatMakeNoSenseHaveNoReason) {
  for (const char* patch :
       {R"({"spec":{"$patch":"sideways"}})", R"({"spec":{"containers":[{"image":"x"}]}})"}) {
    EXPECT_EQ(json::find(refused(500, kStrategic, patch), {"reason"}), nullptr) << patch;
  }
}

TEST_F(Patches, AJsonPatchThatDoesNotFitIsInvalid) {
  EXPECT_EQ(
      json::get_string(refused(422, kJsonPatch, R"([{"op":"sing","path":"/x"}])"), {"reason"}),
      "Invalid");
  EXPECT_EQ(message(refused(400, kJsonPatch, R"({"op":"add"})")),
            "error decoding patch: json: cannot unmarshal object into Go value of type "
            "[]handlers.jsonPatchOp");
}

TEST_F(Patches, AnObjectCannotLoseItsName) {
  EXPECT_EQ(message(refused(400, kJsonPatch, R"([{"op":"replace","path":"","value":{}}])")),
            "the name of the object (p based on URL) was undeterminable: name must be provided");
}

TEST_F(Patches, StrictlyAnUnknownFieldIsAnInvalidPatch) {
  const json::value answer =
      refused(422, kStrategic, R"({"surprise":1})", "?fieldValidation=Strict");
  EXPECT_EQ(message(answer),
            R"( "" is invalid: patch: Invalid value: "map[surprise:1]": strict decoding error: )"
            R"(unknown field "surprise")");
}

TEST_F(Patches, ARefusedOneStillWarns) {
  refused(422, kMerge, R"({"spec":{"containers":[{"name":"d","image":"x","surprise":1}]}})");
  EXPECT_EQ(warnings(),
            (std::vector<std::string>{R"(299 - "unknown field \"spec.containers[0].surprise\"")"}));
}

TEST_F(Patches, BadMetadataIsListedAsOftenAsItIsLookedAt) {
  const auto causes = [&](const std::string& target) {
    const json::value answer =
        world.call("PATCH", target, R"({"metadata":{"labels":{"$x":"y"}}})", kMerge).second;
    EXPECT_EQ(message(answer).find("metadata.labels"), message(answer).rfind("metadata.labels"))
        << "said once: " << message(answer);
    return json::get_array(answer, {"details", "causes"}).size();
  };
  EXPECT_EQ(causes(World::pods("/p")), 4u);
  const std::string sets = "/apis/apps/v1/namespaces/default/replicasets";
  EXPECT_EQ(world
                .call("POST", sets,
                      R"({"metadata":{"name":"r"},"spec":{"selector":{"matchLabels":{"a":"b"}},
                           "template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[
                             {"name":"c","image":"x"}]}}}})")
                .first,
            201);
  EXPECT_EQ(causes(sets + "/r"), 3u);
}

TEST_F(Patches, ANewFinalizerOfADeletedObjectIsRefusedTwice) {
  const std::string maps = "/api/v1/namespaces/default/configmaps";
  world.call("POST", maps, R"({"metadata":{"name":"m","finalizers":["example.org/a"]}})");
  world.call("DELETE", maps + "/m");
  const json::value answer =
      world
          .call("PATCH", maps + "/m",
                R"({"metadata":{"finalizers":["example.org/a","example.org/b"]}})", kMerge)
          .second;
  EXPECT_EQ(json::get_array(answer, {"details", "causes"}).size(), 2u);
  EXPECT_EQ(message(world.call("POST", maps, R"({"metadata":{"name":"m"}})").second),
            R"(object is being deleted: configmaps "m" already exists)");
}

TEST(Generation, OfAnEndpointSliceCountsLabelsButNotAnnotations) {
  World world;
  const std::string slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
  const auto generation = [](const std::pair<int, json::value>& answer) {
    return json::get_int(answer.second, {"metadata", "generation"}).value_or(-1);
  };
  EXPECT_EQ(generation(world.call("POST", slices,
                                  R"({"metadata":{"name":"s"},"addressType":"IPv4",
                                      "endpoints":[{"addresses":["10.1.2.3"]}]})")),
            1);
  const auto patch = [&](const char* body) {
    return generation(world.call("PATCH", slices + "/s", body, kMerge));
  };
  EXPECT_EQ(patch(R"({"metadata":{"annotations":{"a":"b"}}})"), 1);
  EXPECT_EQ(patch(R"({"metadata":{"labels":{"a":"b"}}})"), 2);
  EXPECT_EQ(patch(R"({"endpoints":[]})"), 3);
  EXPECT_EQ(patch(R"({"endpoints":[]})"), 3);
}

TEST(Generation, OfAPriorityClassNeverGrows) {
  World world;
  const std::string classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
  world.call("POST", classes, R"({"metadata":{"name":"high"},"value":5})");
  const json::value patched =
      world.call("PATCH", classes + "/high", R"({"description":"x"})", kMerge).second;
  EXPECT_EQ(json::get_string(patched, {"description"}), "x");
  EXPECT_EQ(json::get_int(patched, {"metadata", "generation"}), 1);
}

}  // namespace
}  // namespace skiff::apiserver
