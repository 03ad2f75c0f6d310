// Writes and reads of objects through Server::handle.
#include "apiserver/server.h"

#include "api/meta.h"
#include "apiserver/test_world.h"

namespace skiff::apiserver {
namespace {

std::string text_at(const json::value& v, std::initializer_list<std::string_view> path) {
  return std::string(json::get_string(v, path));
}

TEST(Create, FillsWhatTheServerOwns) {
  World world;
  const auto [status, pod] = world.call("POST", World::pods(), world.pod("a"));
  ASSERT_EQ(status, 201) << world.last.body;
  EXPECT_EQ(api::name(pod), "a");
  EXPECT_EQ(api::ns(pod), "default");
  EXPECT_EQ(api::uid(pod).size(), 36u);
  EXPECT_EQ(json::get_int(pod, {"metadata", "generation"}), 1);
  EXPECT_EQ(text_at(pod, {"metadata", "creationTimestamp"}), "2026-01-01T00:00:00Z");
  EXPECT_EQ(text_at(pod, {"status", "phase"}), "Pending");
  EXPECT_GT(api::revision(pod), 0u);
  EXPECT_EQ(world.call("GET", World::pods("/a")).second, pod);
}

TEST(Create, AnswerWaitsForTheDisk) {
  World world;
  const http::Response response =
      world.server->handle(world.request("POST", World::pods(), world.pod("a")));
  EXPECT_GT(response.after_revision, world.store->visible());
  const http::Response read = world.server->handle(world.request("GET", World::pods("/a")));
  EXPECT_EQ(read.after_revision, response.after_revision);
  world.flush();
  EXPECT_EQ(world.server->handle(world.request("GET", World::pods("/a"))).after_revision, 0u);
}

TEST(Create, GeneratesNames) {
  World world;
  const std::string body =
      R"({"metadata":{"generateName":"job-"},"spec":{"containers":[{"name":"c","image":"x"}]}})";
  const auto [status, pod] = world.call("POST", World::pods(), body);
  ASSERT_EQ(status, 201) << world.last.body;
  EXPECT_TRUE(api::name(pod).starts_with("job-"));
  EXPECT_EQ(api::name(pod).size(), 9u);
}

struct BadCreate {
  const char* name;
  const char* target;
  const char* body;
  int status;
  const char* message;
};

TEST(Create, RefusesWithTheRealSentence) {
  const BadCreate cases[] = {
      {"a namespace that does not exist", "/api/v1/namespaces/nope/configmaps",
       R"({"metadata":{"name":"a"}})", 404, "namespaces \"nope\" not found"},
      {"another kind than the URL", "/api/v1/namespaces/default/configmaps",
       R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}})", 400, "cannot be handled as"},
      {"another version than the URL", "/api/v1/namespaces/default/configmaps",
       R"({"apiVersion":"v2","kind":"ConfigMap","metadata":{"name":"a"}})", 400,
       "ConfigMap in version \"v2\" cannot be handled as a ConfigMap: no kind \"ConfigMap\" is "
       "registered for version \"v2\" in scheme \"pkg/runtime/scheme.go:110\""},
      {"another namespace than the URL", "/api/v1/namespaces/default/configmaps",
       R"({"metadata":{"name":"a","namespace":"b"}})", 400,
       "the namespace of the provided object does not match the namespace sent on the request"},
      {"no name", "/api/v1/namespaces/default/configmaps", R"({"metadata":{}})", 422,
       "metadata.name: Required value: name or generateName is required"},
      {"a bad name", "/api/v1/namespaces/default/configmaps", R"({"metadata":{"name":"A_b"}})", 422,
       "metadata.name: Invalid value: \"A_b\""},
      {"an unknown field, strictly", "/api/v1/namespaces/default/configmaps?fieldValidation=Strict",
       R"({"metadata":{"name":"a"},"dat":{}})", 400,
       "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: "
       "unknown field \"dat\""},
      {"a body that is no JSON", "/api/v1/namespaces/default/configmaps", "{", 400,
       "the object provided is unrecognized (must be of type ConfigMap): couldn't get "
       "version/kind; "
       "json parse error: unexpected end of JSON input ({)"},
      {"no body", "/api/v1/namespaces/default/configmaps", "", 400,
       "json parse error: unexpected end of JSON input (<empty>)"},
      {"a resourceVersion", "/api/v1/namespaces/default/configmaps",
       R"({"metadata":{"name":"a","resourceVersion":"3"}})", 500,
       "resourceVersion should not be set on objects to be created"},
  };
  for (const BadCreate& c : cases) {
    SCOPED_TRACE(c.name);
    World world;
    const auto [status, answer] = world.call("POST", c.target, c.body);
    EXPECT_EQ(status, c.status);
    EXPECT_EQ(api::kind(answer), "Status");
    EXPECT_NE(text_at(answer, {"message"}).find(c.message), std::string::npos) << world.last.body;
  }
}

TEST(Create, WarnsAboutUnknownFieldsAndPrunesThem) {
  World world;
  const auto [status, answer] = world.call("POST", "/api/v1/namespaces/default/configmaps",
                                           R"({"metadata":{"name":"a"},"dat":{"k":"v"}})");
  EXPECT_EQ(status, 201);
  EXPECT_EQ(http::header(world.last.headers, "Warning"), R"(299 - "unknown field \"dat\"")");
  EXPECT_EQ(json::find(answer, {"dat"}), nullptr);
}

TEST(Create, IsNotAllowedOnAnObject) {
  World world;
  EXPECT_EQ(world.call("POST", World::pods("/a"), world.pod("a")).first, 405);
  EXPECT_EQ(world.call("GET", World::pods("/a")).first, 404);
}

TEST(Create, TwiceIsAlreadyExists) {
  World world;
  world.call("POST", World::pods(), world.pod("a"));
  const auto [status, answer] = world.call("POST", World::pods(), world.pod("a"));
  EXPECT_EQ(status, 409);
  EXPECT_EQ(text_at(answer, {"message"}), "pods \"a\" already exists");
  EXPECT_EQ(text_at(answer, {"reason"}), "AlreadyExists");
}

TEST(Write, RefusalWaitsForTheStateItTellsOf) {
  World world;
  const json::value old = world.call("POST", World::pods(), world.pod("old")).second;
  world.call("POST", World::pods(), world.pod("gone"));
  world.server->handle(world.request("POST", World::pods(), world.pod("a")));
  world.server->handle(world.request("DELETE", World::pods("/gone")));
  world.server->handle(world.request("PATCH", World::pods("/old"),
                                     R"({"metadata":{"labels":{"x":"y"}}})",
                                     "application/merge-patch+json"));
  const http::Request cases[] = {world.request("POST", World::pods(), world.pod("a")),
                                 world.request("DELETE", World::pods("/gone")),
                                 world.request("PUT", World::pods("/old"), json::serialize(old))};
  const int statuses[] = {409, 404, 409};
  for (std::size_t i = 0; i < std::size(cases); ++i) {
    SCOPED_TRACE(cases[i].method);
    const http::Response response = world.server->handle(cases[i]);
    EXPECT_EQ(response.status, statuses[i]) << response.body;
    EXPECT_EQ(response.after_revision, world.store->revision());
  }
}

TEST(Create, DryRunWritesNothing) {
  World world;
  const store::Revision before = world.store->revision();
  EXPECT_EQ(world.call("POST", World::pods("?dryRun=All"), world.pod("a")).first, 201);
  EXPECT_EQ(world.store->revision(), before);
  EXPECT_EQ(world.call("GET", World::pods("/a")).first, 404);
}

TEST(Create, TakesANamespaceInProtobufAsKubectlSendsIt) {
  World world;
  const unsigned char bytes[] = {
      0x6b, 0x38, 0x73, 0x00, 0x0a, 0x0f, 0x0a, 0x02, 0x76, 0x31, 0x12, 0x09, 0x4e, 0x61, 0x6d,
      0x65, 0x73, 0x70, 0x61, 0x63, 0x65, 0x12, 0x1f, 0x0a, 0x17, 0x0a, 0x07, 0x68, 0x61, 0x72,
      0x62, 0x6f, 0x75, 0x72, 0x12, 0x00, 0x1a, 0x00, 0x22, 0x00, 0x2a, 0x00, 0x32, 0x00, 0x38,
      0x00, 0x42, 0x00, 0x12, 0x00, 0x1a, 0x02, 0x0a, 0x00, 0x1a, 0x00, 0x22, 0x00};
  const auto [status, answer] =
      world.call("POST", "/api/v1/namespaces?fieldManager=kubectl-create&fieldValidation=Strict",
                 std::string(reinterpret_cast<const char*>(bytes), sizeof bytes),
                 "application/vnd.kubernetes.protobuf",
                 "application/vnd.kubernetes.protobuf,application/json");
  ASSERT_EQ(status, 201) << world.last.body;
  EXPECT_EQ(api::name(answer), "harbour");
  EXPECT_EQ(text_at(answer, {"status", "phase"}), "Active");
  EXPECT_EQ(api::label(answer, "kubernetes.io/metadata.name"), "harbour");
}

TEST(Update, CountsGenerationsAndKeepsWhatTheServerOwns) {
  World world;
  json::value object = world.call("POST", World::pods(), world.pod("a")).second;
  const std::string uid(api::uid(object));
  json::set(object, {"spec", "activeDeadlineSeconds"}, 60);
  json::set(object, {"status", "phase"}, "Running");
  json::set(object, {"metadata", "creationTimestamp"}, "2001-01-01T00:00:00Z");
  auto [status, next] = world.call("PUT", World::pods("/a"), json::serialize(object));
  ASSERT_EQ(status, 200) << world.last.body;
  EXPECT_EQ(json::get_int(next, {"metadata", "generation"}), 2);
  EXPECT_EQ(text_at(next, {"status", "phase"}), "Pending");
  EXPECT_EQ(text_at(next, {"metadata", "creationTimestamp"}), "2026-01-01T00:00:00Z");
  EXPECT_EQ(api::uid(next), uid);

  json::set(next, {"metadata", "labels", "x"}, "y");
  std::tie(status, next) = world.call("PUT", World::pods("/a"), json::serialize(next));
  EXPECT_EQ(status, 200);
  EXPECT_EQ(json::get_int(next, {"metadata", "generation"}), 2) << "labels are no new generation";
}

TEST(Update, ThatChangesNothingWritesNothing) {
  World world;
  const json::value object = world.call("POST", World::pods(), world.pod("a")).second;
  const store::Revision before = world.store->revision();
  const auto [status, next] = world.call("PUT", World::pods("/a"), json::serialize(object));
  EXPECT_EQ(status, 200);
  EXPECT_EQ(next, object);
  EXPECT_EQ(world.store->revision(), before);
}

TEST(Update, OfAStaleVersionIsAConflict) {
  World world;
  const json::value object = world.call("POST", World::pods(), world.pod("a")).second;
  world.call("PATCH", World::pods("/a"), R"({"metadata":{"labels":{"x":"y"}}})",
             "application/merge-patch+json");
  const auto [status, answer] = world.call("PUT", World::pods("/a"), json::serialize(object));
  EXPECT_EQ(status, 409);
  EXPECT_EQ(text_at(answer, {"message"}),
            "Operation cannot be fulfilled on pods \"a\": the object has been modified; please "
            "apply your changes to the latest version and try again");
}

TEST(Status, LeavesTheSpecAlone) {
  World world;
  json::value object = world.call("POST", World::pods(), world.pod("a")).second;
  json::set(object, {"status", "phase"}, "Running");
  json::set(object, {"spec", "activeDeadlineSeconds"}, 60);
  json::set(object, {"metadata", "labels", "x"}, "y");
  const auto [status, next] = world.call("PUT", World::pods("/a/status"), json::serialize(object));
  ASSERT_EQ(status, 200) << world.last.body;
  EXPECT_EQ(text_at(next, {"status", "phase"}), "Running");
  EXPECT_EQ(json::find(next, {"spec", "activeDeadlineSeconds"}), nullptr);
  EXPECT_EQ(api::label(next, "x"), "y");  // controllers may note things there
  EXPECT_EQ(json::get_int(next, {"metadata", "generation"}), 1);
}

TEST(Patch, KnowsThreeFormsBesidesApply) {
  World world;
  world.call("POST", World::pods(), world.pod("a"));
  auto [status, pod] =
      world.call("PATCH", World::pods("/a?fieldManager=kubectl-label"),
                 R"({"metadata":{"labels":{"x":"y"}}})", "application/merge-patch+json");
  EXPECT_EQ(status, 200) << world.last.body;
  EXPECT_EQ(api::label(pod, "x"), "y");
  std::tie(status, pod) = world.call(
      "PATCH", World::pods("/a"),
      R"({"spec":{"containers":[{"name":"c","image":"z"}]},"metadata":{"annotations":{"k":"v"}}})",
      "application/strategic-merge-patch+json");
  ASSERT_EQ(status, 200) << world.last.body;
  EXPECT_EQ(text_at(json::get_array(pod, {"spec", "containers"})[0], {"image"}), "z");
  EXPECT_EQ(json::get_array(json::get_array(pod, {"spec", "containers"})[0], {"command"}).size(),
            1u);
  std::tie(status, pod) =
      world.call("PATCH", World::pods("/a"), R"([{"op":"remove","path":"/metadata/labels/x"}])",
                 "application/json-patch+json");
  EXPECT_EQ(status, 200);
  EXPECT_EQ(api::label(pod, "x"), "");
  EXPECT_EQ(world.call("PATCH", World::pods("/a"), "{}", "application/apply-patch+cbor").first,
            415);
}

TEST(Delete, RemovesAnUnscheduledPodAtOnce) {
  World world;
  world.call("POST", World::pods(), world.pod("p"));
  const auto [status, answer] = world.call(
      "DELETE", World::pods("/p"), R"({"gracePeriodSeconds":0,"propagationPolicy":"Background"})");
  EXPECT_EQ(status, 200);
  EXPECT_EQ(api::kind(answer), "Pod");
  EXPECT_EQ(json::get_int(answer, {"metadata", "deletionGracePeriodSeconds"}), 0);
  EXPECT_EQ(world.call("GET", World::pods("/p")).first, 404);
  EXPECT_EQ(world.call("DELETE", World::pods("/p")).first, 404);
  EXPECT_EQ(world.last.body,
            R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",)"
            R"("message":"pods \"p\" not found","reason":"NotFound",)"
            R"("details":{"name":"p","kind":"pods"},"code":404})");
}

TEST(Delete, LeavesABoundPodToItsAgentForTheGraceTime) {
  World world;
  world.call("POST", World::pods(), world.pod("p"));
  EXPECT_EQ(world.call("POST", World::pods("/p/binding"), R"({"target":{"name":"n1"}})").first,
            201);
  const json::value bound = world.call("GET", World::pods("/p")).second;
  EXPECT_EQ(text_at(bound, {"spec", "nodeName"}), "n1");
  EXPECT_TRUE(api::condition_true(bound, "PodScheduled"));
  EXPECT_EQ(world.call("POST", World::pods("/p/binding"), R"({"target":{"name":"n2"}})").first,
            409);

  const auto [status, answer] = world.call("DELETE", World::pods("/p"));
  EXPECT_EQ(status, 200);
  EXPECT_EQ(text_at(answer, {"metadata", "deletionTimestamp"}), "2026-01-01T00:00:30Z");
  EXPECT_EQ(json::get_int(answer, {"metadata", "deletionGracePeriodSeconds"}), 30);
  EXPECT_EQ(world.call("GET", World::pods("/p")).first, 200);
  world.call("DELETE", World::pods("/p"), R"({"gracePeriodSeconds":0})");
  EXPECT_EQ(world.call("GET", World::pods("/p")).first, 404);
}

TEST(Delete, WaitsForFinalizersAndAllowsNoNewOnes) {
  World world;
  const std::string maps = "/api/v1/namespaces/default/configmaps";
  world.call("POST", maps, R"({"metadata":{"name":"a","finalizers":["x/y"]}})");
  EXPECT_EQ(world.call("DELETE", maps + "/a").first, 200);
  auto [status, object] = world.call("GET", maps + "/a");
  EXPECT_EQ(status, 200);
  EXPECT_TRUE(api::deleting(object));
  EXPECT_EQ(world
                .call("PATCH", maps + "/a", R"({"metadata":{"finalizers":["x/y","x/z"]}})",
                      "application/merge-patch+json")
                .first,
            422);
  EXPECT_EQ(world
                .call("PATCH", maps + "/a", R"({"metadata":{"finalizers":null}})",
                      "application/merge-patch+json")
                .first,
            200);
  EXPECT_EQ(world.call("GET", maps + "/a").first, 404);
}

TEST(Delete, ChecksPreconditions) {
  World world;
  world.call("POST", World::pods(), world.pod("p"));
  const auto [status, answer] =
      world.call("DELETE", World::pods("/p"), R"({"preconditions":{"uid":"other"}})");
  EXPECT_EQ(status, 409);
  EXPECT_NE(text_at(answer, {"message"}).find("the UID in the precondition (other) does not match"),
            std::string::npos);
}

TEST(Delete, LeavesTheServersOwnNamespaces) {
  World world;
  for (std::string_view name : kPermanentNamespaces) {
    SCOPED_TRACE(name);
    const std::string target = "/api/v1/namespaces/" + std::string(name);
    const auto [status, answer] = world.call("DELETE", target);
    EXPECT_EQ(status, 403);
    EXPECT_EQ(
        text_at(answer, {"message"}),
        "namespaces \"" + std::string(name) + "\" is forbidden: this namespace may not be deleted");
    EXPECT_FALSE(api::deleting(world.call("GET", target).second));
  }
}

TEST(Delete, EmptiesASelectedCollection) {
  World world;
  world.call("POST", World::pods(), world.pod("a", R"(,"labels":{"t":"1"})"));
  world.call("POST", World::pods(), world.pod("b"));
  EXPECT_EQ(world.call("DELETE", World::pods("?labelSelector=t%3D1")).first, 200);
  EXPECT_EQ(world.call("GET", World::pods("/a")).first, 404);
  EXPECT_EQ(world.call("GET", World::pods("/b")).first, 200);
}

TEST(Definitions, AreServedAtOnce) {
  World world;
  const std::string boats = "/apis/sea.example.org/v1/namespaces/default/boats";
  EXPECT_EQ(world.call("GET", boats).first, 404);
  const auto [made, crd] = world.call(
      "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", std::string(kBoats));
  ASSERT_EQ(made, 201) << world.last.body;
  EXPECT_TRUE(api::condition_true(crd, "Established"));
  EXPECT_TRUE(api::condition_true(crd, "NamesAccepted"));

  EXPECT_EQ(world.call("GET", boats + "/a").first, 404);
  EXPECT_EQ(text_at(world.call("GET", boats + "/a").second, {"message"}),
            "boats.sea.example.org \"a\" not found");
  const auto [status, boat] =
      world.call("POST", boats + "?fieldValidation=Strict",
                 R"({"apiVersion":"sea.example.org/v1","kind":"Boat",)"
                 R"("metadata":{"name":"a","namespace":"default"},"spec":{"crew":3}})");
  ASSERT_EQ(status, 201) << world.last.body;
  EXPECT_EQ(text_at(boat, {"spec", "sail"}), "lug");
  const auto [bad, answer] =
      world.call("POST", boats + "?fieldValidation=Strict",
                 R"({"apiVersion":"sea.example.org/v1","kind":"Boat","metadata":{"name":"b"},)"
                 R"("spec":{"anchor":"x","crew":0}})");
  EXPECT_EQ(bad, 400);
  EXPECT_EQ(text_at(answer, {"message"}),
            "Boat in version \"v1\" cannot be handled as a Boat: strict decoding error: unknown "
            "field \"spec.anchor\"");
  EXPECT_EQ(world
                .call("POST", boats,
                      R"({"apiVersion":"sea.example.org/v1","kind":"Boat",)"
                      R"("metadata":{"name":"b"},"spec":{"crew":0}})")
                .first,
            422);
  EXPECT_EQ(world.call("PATCH", boats + "/a", "{}", "application/strategic-merge-patch+json").first,
            415);
  json::value unversioned = boat;
  unversioned.at("metadata").as_object().erase("resourceVersion");
  EXPECT_EQ(world.call("PUT", boats + "/a", json::serialize(unversioned)).first, 422);

  world.call("DELETE",
             "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
             "boats.sea.example.org");
  world.collect();
  EXPECT_EQ(world.call("GET", boats + "/a").first, 404);
  EXPECT_TRUE(world.store->list("boats.sea.example.org").entries.empty());
  EXPECT_EQ(world.server->kinds()->by_key("boats.sea.example.org"), nullptr);
}

TEST(Metrics, CountWhateverMethodsClientsInvent) {
  World world;
  for (int i = 0; i < 300; ++i) world.call("X" + std::to_string(i), "/version");
  world.call("GET", "/version");
  world.call("GET", "/metrics");
  EXPECT_NE(world.last.body.find(R"({verb="other",code="405"} 300)"), std::string::npos)
      << world.last.body;
  EXPECT_NE(world.last.body.find(R"({verb="get",code="200"} 1)"), std::string::npos);
}

TEST(Metrics, ShowWhatOthersCount) {
  World world;
  world.server->set_metrics([] { return std::string("jobs_total 7\n"); });
  world.call("GET", "/metrics");
  EXPECT_TRUE(world.last.body.ends_with("\njobs_total 7\n")) << world.last.body;
  EXPECT_NE(world.last.body.find("skiff_store_objects"), std::string::npos) << "and our own";
}

TEST(Bootstrap, FollowsAnotherPort) {
  World world;
  const auto port = [&] {
    const json::value service =
        world.call("GET", "/api/v1/namespaces/default/services/kubernetes").second;
    return json::get_int(json::get_array(service, {"spec", "ports"}).at(0), {"targetPort"});
  };
  EXPECT_EQ(port(), 7443);
  Server moved(*world.store, api::builtin_kinds(), world.registry, world.clock, 8,
               {.api_port = 9443});
  ASSERT_TRUE(moved.bootstrap());
  EXPECT_EQ(port(), 9443);
  const store::Revision before = world.store->revision();
  ASSERT_TRUE(moved.bootstrap());
  EXPECT_EQ(world.store->revision(), before) << "nothing to do the second time";
}

TEST(Definitions, ShowEachObjectInTheVersionAskedFor) {
  World world;
  const std::string definition =
      "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/boats.sea.example.org";
  world.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
             std::string(kBoats));
  const auto boats = [](std::string_view version, std::string_view rest = "") {
    return "/apis/sea.example.org/" + std::string(version) + "/namespaces/default/boats" +
           std::string(rest);
  };
  world.call("POST", boats("v1"),
             R"({"apiVersion":"sea.example.org/v1","kind":"Boat",)"
             R"("metadata":{"name":"a"},"spec":{"crew":1}})");
  json::value crd = world.call("GET", definition).second;
  json::array& versions = crd.at("spec").at("versions").as_array();
  json::value second = versions[0];
  versions[0].as_object()["storage"] = false;
  second.as_object()["name"] = "v2";
  versions.push_back(second);
  crd.at("spec").at("names").as_object()["shortNames"] = json::array{"bo"};
  const auto [status, changed] = world.call("PUT", definition, json::serialize(crd));
  ASSERT_EQ(status, 200) << world.last.body;
  EXPECT_EQ(json::strings(json::get_array(changed, {"status", "storedVersions"})),
            (std::vector<std::string>{"v1", "v2"}));
  EXPECT_EQ(json::strings(json::get_array(changed, {"status", "acceptedNames", "shortNames"})),
            (std::vector<std::string>{"bo"}));

  world.call("POST", boats("v2"),
             R"({"apiVersion":"sea.example.org/v2","kind":"Boat",)"
             R"("metadata":{"name":"b"},"spec":{"crew":1}})");
  for (std::string_view version : {"v1", "v2"}) {
    const std::string shown = "sea.example.org/" + std::string(version);
    for (std::string_view name : {"/a", "/b"}) {
      SCOPED_TRACE(shown + std::string(name));
      EXPECT_EQ(api::api_version(world.call("GET", boats(version, name)).second), shown);
    }
    const json::value list = world.call("GET", boats(version)).second;
    for (const json::value& item : json::get_array(list, {"items"})) {
      EXPECT_EQ(api::api_version(item), shown);
    }
  }
  // Moving to the new storage version is no change of the spec.
  const json::value moved =
      world
          .call("PATCH", boats("v2", "/a"), R"({"metadata":{"labels":{"x":"y"}}})",
                "application/merge-patch+json")
          .second;
  EXPECT_EQ(json::get_int(moved, {"metadata", "generation"}), 1);

  crd = changed;
  crd.at("spec").as_object()["scope"] = "Cluster";
  EXPECT_EQ(world.call("PUT", definition, json::serialize(crd)).first, 422);
  EXPECT_NE(world.last.body.find("spec.scope: Invalid value: \\\"Cluster\\\": field is immutable"),
            std::string::npos)
      << world.last.body;
}

TEST(Transact, IsAllOrNone) {
  World world;
  const api::Resource maps{.version = "v1", .plural = "configmaps", .kind = "ConfigMap"};
  const client::Write first{.resource = maps,
                            .ns = "default",
                            .body = json::parse(R"({"metadata":{"name":"a"}})").value()};
  client::Write second{.verb = client::Verb::kMergePatch,
                       .resource = maps,
                       .ns = "default",
                       .name = "a",
                       .body = json::parse(R"({"data":{"k":"v"}})").value()};
  const store::Revision before = world.store->revision();
  auto results = world.server->transact({first, second});
  ASSERT_EQ(results.size(), 2u);
  ASSERT_TRUE(results[1]) << results[1].error().message;
  EXPECT_EQ(json::get_string(*results[1], {"data", "k"}), "v");
  EXPECT_EQ(world.store->revision(), before + 1);

  second.name = "none";
  client::Write third = first;
  third.body = json::parse(R"({"metadata":{"name":"b"}})").value();
  results = world.server->transact({third, second});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_FALSE(results[0]);
  EXPECT_EQ(results[1].error().code, Code::kNotFound);
  EXPECT_EQ(world.call("GET", "/api/v1/namespaces/default/configmaps/b").first, 404);
}

TEST(Logs, ChooseTheContainerAndSayWhyThereAreNone) {
  World world;
  world.call("POST", World::pods(), world.pod("p"));
  EXPECT_EQ(world.call("GET", World::pods("/p/log?container=c")).first, 204);
  EXPECT_EQ(world.call("GET", World::pods("/p/log?container=d")).first, 400);
  world.call("POST", World::pods("/p/binding"), R"({"target":{"name":"n1"}})");
  const auto [status, answer] = world.call("GET", World::pods("/p/log"));
  EXPECT_EQ(status, 400);
  EXPECT_EQ(text_at(answer, {"message"}),
            "container \"c\" in pod \"p\" is waiting to start: ContainerCreating");
}

}  // namespace
}  // namespace skiff::apiserver
