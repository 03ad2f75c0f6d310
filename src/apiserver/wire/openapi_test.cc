// OpenAPI v2 and v3: what old and new kubectl read before they write.
#include <set>

#include "apiserver/test_world.h"
#include "apiserver/wire/names.h"
#include "apiserver/wire/openapi_v2.h"
#include "apiserver/wire/proto.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kOldGnostic =
    "application/com.github.googleapis.gnostic.OpenAPIv2@68f4ded+protobuf";

void add_boats(World& world) {
  world.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
             std::string(kBoats));
}

std::string definition_named(const json::value& document, std::string_view name) {
  const json::value* found = json::find(document, {"definitions", name});
  return found == nullptr ? "" : json::serialize(*found);
}

TEST(OpenApiV2, TellsTheSchemasAsOldClientsReadThem) {
  World world;
  add_boats(world);
  const auto [status, document] = world.call("GET", "/openapi/v2", "", "", "application/json");
  ASSERT_EQ(status, 200);
  EXPECT_EQ(json::get_string(document, {"swagger"}), "2.0");
  EXPECT_EQ(definition_named(document, "io.k8s.apimachinery.pkg.util.intstr.IntOrString"),
            R"({"format":"int-or-string","type":"string"})");
  EXPECT_EQ(definition_named(document, "io.k8s.apimachinery.pkg.api.resource.Quantity"),
            R"({"type":"string"})");
  const std::string config = definition_named(document, "io.k8s.api.core.v1.ConfigMap");
  EXPECT_NE(config.find(R"("x-kubernetes-group-version-kind":[{"group":"","version":"v1",)"
                        R"("kind":"ConfigMap"}])"),
            std::string::npos)
      << config;
  EXPECT_NE(config.find(R"("binaryData":{"type":"object","additionalProperties":{"type":"string",)"
                        R"("format":"byte"}})"),
            std::string::npos)
      << config;
  const json::value boat =
      json::parse(definition_named(document, "org.example.sea.v1.Boat")).value();
  EXPECT_EQ(json::serialize(*json::find(boat, {"properties", "spec", "required"})), R"(["crew"])");
  // kubectl cannot read unknown fields beside known ones.
  EXPECT_EQ(json::serialize(*json::find(boat, {"properties", "status"})),
            R"({"x-kubernetes-preserve-unknown-fields":true})");
  EXPECT_EQ(json::get_string(boat, {"properties", "metadata", "$ref"}),
            "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
}

void collect_references(const json::value& at, std::set<std::string>& out) {
  if (const json::object* object = at.if_object()) {
    for (const auto& member : *object) {
      if (member.key() == "$ref" && member.value().is_string()) {
        out.insert(std::string(json::view(member.value().get_string())));
      }
      collect_references(member.value(), out);
    }
  }
  if (const json::array* array = at.if_array()) {
    for (const json::value& item : *array) collect_references(item, out);
  }
}

TEST(OpenApiV2, RefersOnlyToWhatIsThere) {
  World world;
  add_boats(world);
  const json::value document = world.call("GET", "/openapi/v2", "", "", "application/json").second;
  std::set<std::string> references;
  collect_references(document, references);
  EXPECT_GT(references.size(), 50u);
  for (const std::string& reference : references) {
    ASSERT_TRUE(reference.starts_with("#/definitions/")) << reference;
    EXPECT_NE(definition_named(document, reference.substr(14)), "") << reference;
  }
}

// The names in a gnostic list of named things, in field `number` of the message.
std::set<std::string> named(std::string_view bytes, std::uint32_t number) {
  std::set<std::string> out;
  proto::Reader reader(bytes);
  for (proto::Field field; !reader.done();) {
    if (!reader.next(field)) ADD_FAILURE() << "no protobuf";
    if (field.number != number) continue;
    proto::Reader entry(field.bytes);
    proto::Field name;
    if (entry.next(name)) out.insert(std::string(name.bytes));
  }
  return out;
}

std::string_view part(std::string_view bytes, std::uint32_t number) {
  proto::Reader reader(bytes);
  for (proto::Field field; !reader.done();) {
    if (!reader.next(field)) break;
    if (field.number == number) return field.bytes;
  }
  return {};
}

TEST(OpenApiV2, IsProtobufForKubectl) {
  World world;
  add_boats(world);
  for (const std::string_view accept :
       {kOldGnostic,
        std::string_view("application/com.github.proto-openapi.spec.v2@v1.0+protobuf")}) {
    SCOPED_TRACE(accept);
    const http::Response response =
        world.server->handle(world.request("GET", "/openapi/v2", "", "", std::string(accept)));
    ASSERT_EQ(response.status, 200);
    EXPECT_EQ(http::header(response.headers, "Content-Type"), kOpenApiV2Type);
    EXPECT_EQ(part(response.body, 1), "2.0");
    EXPECT_TRUE(named(part(response.body, 9), 1).contains("org.example.sea.v1.Boat"));
    EXPECT_TRUE(named(part(response.body, 9), 1).contains("io.k8s.api.core.v1.Pod"));
    EXPECT_TRUE(named(part(response.body, 8), 2)
                    .contains("/api/v1/namespaces/{namespace}/pods/{name}/status"));
    http::Request again = world.request("GET", "/openapi/v2", "", "", std::string(accept));
    again.headers.emplace_back("If-None-Match", http::header(response.headers, "ETag"));
    EXPECT_EQ(world.server->handle(again).status, 304);
  }
  EXPECT_EQ(world.server->handle(world.request("GET", "/openapi/v2", "", "", "text/plain")).status,
            406);
}

TEST(OpenApiV2, WritesEachKeywordWhereGnosticHasIt) {
  const json::object definition_of_a =
      json::parse(R"({"type":"object","required":["x"],"minimum":1,"maxLength":3,"enum":["u"],
                      "properties":{"x":{"$ref":"#/definitions/A"}},"x-e":{"k":1}})")
          .value()
          .as_object();
  const std::string bytes = gnostic_definition("A", definition_of_a);
  const std::string_view schema = part(part(bytes, 1), 2);
  EXPECT_EQ(part(part(schema, 22), 1), "object");
  EXPECT_EQ(part(schema, 19), "x");
  EXPECT_EQ(part(part(schema, 20), 2), "\"u\"");
  EXPECT_EQ(part(part(part(part(schema, 25), 1), 2), 1), "#/definitions/A");
  EXPECT_EQ(part(part(schema, 31), 1), "x-e");
  EXPECT_EQ(part(part(part(schema, 31), 2), 2), R"({"k":1})");
}

TEST(OpenApiV3, SaysOfEveryPatchThatFieldsAreValidated) {
  World world;
  add_boats(world);
  const json::value index = world.call("GET", "/openapi/v3").second;
  int patches = 0;
  for (const auto& entry : json::get_object(index, {"paths"})) {
    const json::value document =
        world.call("GET", std::string(json::get_string(entry.value(), {"serverRelativeURL"})))
            .second;
    for (const auto& path : json::get_object(document, {"paths"})) {
      const json::value* patch = json::find(path.value(), {"patch"});
      if (patch == nullptr) continue;
      ++patches;
      EXPECT_NE(json::serialize(*patch).find("\"fieldValidation\""), std::string::npos)
          << std::string_view(path.key());
      EXPECT_NE(json::serialize(*patch).find("\"dryRun\""), std::string::npos);
    }
  }
  EXPECT_GT(patches, 10);
}

TEST(OpenApiV3, IsTaggedAndKept) {
  World world;
  const json::value index = world.call("GET", "/openapi/v3").second;
  const std::string url(json::get_string(index, {"paths", "api/v1", "serverRelativeURL"}));
  world.call("GET", url);
  const std::string tag(http::header(world.last.headers, "ETag"));
  EXPECT_NE(url.find(tag.substr(1, tag.size() - 2)), std::string::npos);
  http::Request again = world.request("GET", url);
  again.headers.emplace_back("If-None-Match", tag);
  EXPECT_EQ(world.server->handle(again).status, 304);
}

TEST(Names, AreThoseOfTheRealServer) {
  // As /api/v1 and /apis/apps/v1 of a kube-apiserver say.
  EXPECT_EQ(storage_version_hash("", "v1", "ConfigMap"), "qFsyl6wFWjQ=");
  EXPECT_EQ(storage_version_hash("", "v1", "Endpoints"), "fWeeMqaN/OA=");
  EXPECT_EQ(storage_version_hash("apps", "v1", "ControllerRevision"), "85nkx63pcBU=");
  EXPECT_EQ(storage_version_hash("sea.example.org", "v1", "Boat"), "Y80LX5rEfpk=");
  EXPECT_EQ(builtin_definition("rbac.authorization.k8s.io", "v1", "Role"),
            "io.k8s.api.rbac.v1.Role");
}

}  // namespace
}  // namespace skiff::apiserver
