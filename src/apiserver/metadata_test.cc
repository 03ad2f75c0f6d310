// What the metadata of every kind is asked for. The sentences are those of kube-apiserver v1.34.4.
#include <fmt/format.h>

#include "api/meta.h"
#include "apiserver/test_world.h"

namespace skiff::apiserver {
namespace {

class Metadata : public ::testing::Test {
 protected:
  std::pair<int, json::value> map(std::string_view metadata, std::string_view query = "") {
    return world.call("POST", fmt::format("/api/v1/namespaces/default/configmaps{}", query),
                      fmt::format(R"({{"metadata":{}}})", metadata));
  }
  std::pair<int, json::value> boat(std::string_view metadata) {
    return world.call("POST", "/apis/sea.example.org/v1/namespaces/default/boats",
                      fmt::format(R"({{"apiVersion":"sea.example.org/v1","kind":"Boat",)"
                                  R"("metadata":{},"spec":{{"crew":1}}}})",
                                  metadata));
  }
  void declare_boats() {
    world.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
               std::string(kBoats));
  }
  std::vector<std::string> warnings() const {
    std::vector<std::string> out;
    for (const auto& [name, text] : world.last.headers) {
      if (name == "Warning") out.push_back(text);
    }
    return out;
  }
  static std::vector<std::string> causes(const json::value& answer) {
    std::vector<std::string> out;
    for (const json::value& cause : json::get_array(answer, {"details", "causes"})) {
      out.push_back(fmt::format("{}: {}", json::get_string(cause, {"field"}),
                                json::get_string(cause, {"message"})));
    }
    return out;
  }
  using Lines = std::vector<std::string>;
  World world;
};

TEST_F(Metadata, A_value_of_another_type_cannot_be_read_at_all) {
  for (const char* bad :
       {R"({"name":7})", R"({"name":"a","labels":["a"]})", R"({"name":"a","labels":{"a":1}})",
        R"({"name":"a","creationTimestamp":"yesterday"})", R"({"name":"a","uid":5})",
        R"({"name":"a","finalizers":"x"})", R"({"name":"a","ownerReferences":[1]})"}) {
    const auto [code, answer] = map(bad);
    EXPECT_EQ(code, 400) << bad;
    EXPECT_EQ(json::get_string(answer, {"reason"}), "BadRequest") << bad;
    EXPECT_TRUE(json::get_string(answer, {"message"})
                    .starts_with("ConfigMap in version \"v1\" cannot be handled as a ConfigMap: "))
        << bad;
  }
  EXPECT_EQ(map(R"({"name":"a","labels":null,"creationTimestamp":null})").first, 201);
}

TEST_F(Metadata, Of_a_custom_object_it_is_read_by_the_same_types) {
  declare_boats();
  for (const char* bad :
       {R"({"name":7})", R"({"name":"a","labels":["a"]})", R"({"name":"a","labels":{"a":1}})",
        R"({"name":"a","creationTimestamp":"yesterday"})", R"({"name":"a","uid":5})"}) {
    const auto [code, answer] = boat(bad);
    EXPECT_EQ(code, 400) << bad;
    EXPECT_TRUE(json::get_string(answer, {"message"})
                    .starts_with("Boat in version \"v1\" cannot be handled as a Boat: metadata."))
        << json::serialize(answer);
  }
}

TEST_F(Metadata, Wrong_types_are_found_before_anything_is_put_in_their_place) {
  const auto post = [&](const char* path, const char* body) {
    return world.call("POST", fmt::format("/api/v1/namespaces/default/{}", path), body).first;
  };
  EXPECT_EQ(post("pods", R"({"metadata":{"name":"a"},"spec":["x"]})"), 400);
  EXPECT_EQ(post("services", R"({"metadata":{"name":"a"},"spec":"text"})"), 400);
  EXPECT_EQ(post("secrets", R"({"metadata":{"name":"a"},"data":-1})"), 400);
  EXPECT_EQ(post("pods", R"({"metadata":{"name":"a"},"spec":{},"status":[]})"), 400);
  // Nor does it matter whether the object is there.
  EXPECT_EQ(world.call("PUT", World::pods("/a"), R"({"metadata":{"name":"a"},"spec":7})").first,
            400);
}

TEST_F(Metadata, A_finalizer_says_whose_it_is) {
  const auto [code, answer] = map(R"({"name":"a","finalizers":["x","foregroundDeletion"]})");
  EXPECT_EQ(code, 422);
  EXPECT_EQ(causes(answer),
            Lines{R"(metadata.finalizers[0]: Invalid value: "x": name is neither a standard )"
                  "finalizer name nor is it fully qualified"});
  EXPECT_EQ(causes(map(R"({"name":"a","finalizers":["orphan","foregroundDeletion"]})").second),
            Lines{R"(metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: )"
                  "finalizer orphan and foregroundDeletion cannot be both set"});
  EXPECT_EQ(map(R"({"name":"a","finalizers":["example.org/x"]})").first, 201);
}

TEST_F(Metadata, A_custom_object_is_only_warned_of_a_finalizer_of_nobody) {
  declare_boats();
  EXPECT_EQ(boat(R"({"name":"a","finalizers":["x","b.c"]})").first, 201);
  EXPECT_EQ(warnings(),
            (Lines{R"(299 - "metadata.finalizers: \"b.c\": prefer a domain-qualified finalizer )"
                   R"(name including a path (/) to avoid accidental conflicts with other )"
                   R"(finalizer writers")",
                   R"(299 - "metadata.finalizers: \"x\": prefer a domain-qualified finalizer )"
                   R"(name to avoid accidental conflicts with other finalizer writers")"}));
  world.call("PATCH", "/apis/sea.example.org/v1/namespaces/default/boats/a",
             R"({"spec":{"crew":2}})", "application/merge-patch+json");
  EXPECT_EQ(warnings(), Lines{}) << "those that were there are not new";
}

TEST_F(Metadata, Owners_are_named_in_full_and_one_of_them_controls) {
  EXPECT_EQ(causes(map(R"({"name":"a","ownerReferences":[{"kind":"Pod","name":"x"}]})").second),
            (Lines{R"(metadata.ownerReferences.apiVersion: Invalid value: "": version must not be )"
                   "empty",
                   R"(metadata.ownerReferences.uid: Invalid value: "": must not be empty)"}));
  const char* two = R"({"name":"a","ownerReferences":[
    {"apiVersion":"v1","kind":"Pod","name":"x","uid":"u","controller":true},
    {"apiVersion":"v1","kind":"Pod","name":"y","uid":"v","controller":true}]})";
  EXPECT_TRUE(
      json::get_string(map(two).second, {"message"})
          .ends_with("Only one reference can have Controller set to true. Found \"true\" in "
                     "references for Pod/x and Pod/y"));
  EXPECT_TRUE(json::get_string(map(R"({"name":"a","ownerReferences":[
        {"apiVersion":"v1","kind":"Event","name":"x","uid":"u"}]})")
                                   .second,
                               {"message"})
                  .ends_with("/v1, Kind=Event is disallowed from being an owner"));
}

TEST_F(Metadata, Nothing_new_has_a_revision) {
  const auto [code, answer] = map(R"({"name":"a","resourceVersion":"5"})");
  EXPECT_EQ(code, 500);
  EXPECT_EQ(json::get_string(answer, {"message"}),
            "resourceVersion should not be set on objects to be created");
  EXPECT_EQ(json::find(answer, {"reason"}), nullptr);
  EXPECT_EQ(map(R"({"name":"a","resourceVersion":"5"})", "?dryRun=All").first, 201);
  EXPECT_EQ(map(R"({"name":"a","resourceVersion":"0"})").first, 201);
}

TEST_F(Metadata, What_belongs_to_no_namespace_loses_one_that_it_names) {
  const auto [code, made] = world.call("POST", "/api/v1/namespaces",
                                       R"({"metadata":{"name":"a","namespace":"elsewhere"}})");
  EXPECT_EQ(code, 201);
  EXPECT_EQ(json::find(made, {"metadata", "namespace"}), nullptr);
  EXPECT_EQ(map(R"({"name":"a","namespace":"elsewhere"})").first, 400);
}

TEST_F(Metadata, A_name_is_told_everything_that_is_wrong_with_it) {
  const std::string name(300, '-');
  const auto found = causes(map(fmt::format(R"({{"name":"{}"}})", name)).second);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_TRUE(found[0].ends_with("must be no more than 253 characters"));
  EXPECT_TRUE(found[1].contains("a lowercase RFC 1123 subdomain must consist of"));
  EXPECT_EQ(causes(world
                       .call("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles",
                             R"({"metadata":{"name":"a/b%"}})")
                       .second),
            (Lines{R"(metadata.name: Invalid value: "a/b%": may not contain '/')",
                   R"(metadata.name: Invalid value: "a/b%": may not contain '%')"}));
  EXPECT_EQ(causes(map(R"({"generateName":"A-"})").second).front(),
            "metadata.generateName: Invalid value: \"A-\": a lowercase RFC 1123 subdomain must "
            "consist of lower case alphanumeric characters, '-' or '.', and must start and end "
            "with an alphanumeric character (e.g. 'example.com', regex used for validation is "
            R"('[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'))");
  EXPECT_EQ(map(R"({"generateName":"a-"})").first, 201);
}

TEST_F(Metadata, Labels_made_of_a_bad_name_are_complained_of_where_they_stand) {
  const auto [code, answer] =
      world.call("POST", "/apis/batch/v1/namespaces/default/jobs",
                 R"({"metadata":{"name":"-a"},"spec":{"template":{"spec":{"restartPolicy":"Never",
                 "containers":[{"name":"a","image":"x"}]}}}})");
  EXPECT_EQ(code, 422);
  std::vector<std::string> fields;
  for (const json::value& cause : json::get_array(answer, {"details", "causes"})) {
    fields.emplace_back(json::get_string(cause, {"field"}));
  }
  EXPECT_EQ(fields, (Lines{"metadata.name", "spec.template.labels", "spec.template.labels"}));
  // The same about two labels is one sentence.
  const std::string_view message = json::get_string(answer, {"message"});
  EXPECT_EQ(message.find("spec.template.labels"), message.rfind("spec.template.labels"));
}

TEST_F(Metadata, An_empty_list_or_map_is_shown_as_it_was_sent) {
  EXPECT_EQ(causes(world
                       .call("POST", "/apis/networking.k8s.io/v1/namespaces/default/ingresses",
                             R"({"metadata":{"name":"a"},"spec":{"rules":[]}})")
                       .second),
            Lines{"spec: Invalid value: []: either `defaultBackend` or `rules` must be specified"});
  EXPECT_EQ(causes(world
                       .call("POST", "/api/v1/persistentvolumes",
                             R"({"metadata":{"name":"a"},"spec":{"capacity":{},
                             "accessModes":["ReadWriteOnce"],"hostPath":{"path":"/data"}}})")
                       .second),
            (Lines{"spec.capacity: Required value",
                   "spec.capacity: Unsupported value: {}: supported values: \"storage\""}));
}

TEST_F(Metadata, An_event_is_judged_as_the_kind_it_is_kept_as) {
  const auto [code, answer] = world.call(
      "POST", "/apis/events.k8s.io/v1/namespaces/default/events",
      R"({"metadata":{"name":"a"},"regarding":{"namespace":"default","name":"x","kind":"Pod"},
      "reason":"r","action":"a","eventTime":"2026-01-01T00:00:00.000000Z","reportingInstance":"i",
      "reportingController":"example.org/me"})");
  EXPECT_EQ(code, 422);
  EXPECT_TRUE(json::get_string(answer, {"message"}).starts_with("Event \"a\" is invalid: "));
  EXPECT_EQ(json::find(answer, {"details", "group"}), nullptr);
}

TEST_F(Metadata, An_owner_named_twice_is_kept_once) {
  const auto [code, made] = map(
      R"({"name":"m","ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u"},
          {"apiVersion":"v1","kind":"Pod","name":"p","uid":"u"}]})");
  EXPECT_EQ(code, 201);
  EXPECT_EQ(json::get_array(made, {"metadata", "ownerReferences"}).size(), 1U);
  ASSERT_EQ(warnings().size(), 1U);
  EXPECT_TRUE(warnings()[0].contains("duplicate UID(s) observed: u")) << warnings()[0];
}

TEST_F(Metadata, Versions_of_owners_and_generations_are_checked) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(
      causes(map(R"({"name":"m","ownerReferences":[{"apiVersion":"a/b/c","kind":"Pod",
                           "name":"p","uid":"u"}]})")
                 .second),
      Lines{R"(metadata.ownerReferences.apiVersion: Invalid value: "a/b/c": version must not )"
            "be empty"});
  EXPECT_EQ(causes(map(R"({"name":"m","generation":-5})").second),
            Lines{"metadata.generation: Invalid value: -5: must be greater than or equal to 0"});
  EXPECT_EQ(map(R"({"name":"m","generation":1e3})").first, 400) << "Go reads no 1e3 as a number";
}

TEST_F(Metadata, Values_are_quoted_as_Go_quotes_them) {
  const auto [code, answer] = map(R"({"name":"a\nb\u0001"})");
  EXPECT_EQ(code, 422);
  EXPECT_TRUE(json::get_string(answer, {"message"})
                  .starts_with(R"(ConfigMap "a\nb\x01" is invalid: metadata.name: Invalid value: )"
                               R"("a\nb\x01": )"))
      << json::get_string(answer, {"message"});
}

}  // namespace
}  // namespace skiff::apiserver
