// Server-side apply and managedFields through the whole server. What is expected was answered by
// a kube-apiserver v1.34.4 to the same requests.
#include "api/meta.h"
#include "apiserver/apply/managed.h"
#include "apiserver/test_world.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kApplyType = "application/apply-patch+yaml";
constexpr std::string_view kMergeType = "application/merge-patch+json";

constexpr std::string_view kFleet = R"({
  "apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
  "metadata":{"name":"boats.sea.example.org"},
  "spec":{"group":"sea.example.org","scope":"Namespaced",
    "names":{"plural":"boats","singular":"boat","kind":"Boat"},
    "versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},
      "schema":{"openAPIV3Schema":{"type":"object","properties":{
        "spec":{"type":"object","properties":{
          "crew":{"type":"integer"},"sail":{"type":"string","default":"lug"},
          "tags":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
          "decks":{"type":"array","x-kubernetes-list-type":"map",
            "x-kubernetes-list-map-keys":["level","side"],
            "items":{"type":"object","required":["level"],"properties":{
              "level":{"type":"integer"},"side":{"type":"string","default":"port"},
              "guns":{"type":"integer"}}}},
          "atom":{"type":"object","x-kubernetes-map-type":"atomic","properties":{
            "a":{"type":"string"},"b":{"type":"string"}}},
          "list":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"}}}},
          "map":{"type":"object","additionalProperties":{"type":"object",
            "properties":{"q":{"type":"integer"}}}},
          "any":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
          "ios":{"x-kubernetes-int-or-string":true}}},
        "status":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}]}})";

constexpr std::string_view kLoose = R"({
  "apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
  "metadata":{"name":"looses.sea.example.org"},
  "spec":{"group":"sea.example.org","scope":"Namespaced",
    "names":{"plural":"looses","singular":"loose","kind":"Loose"},
    "versions":[{"name":"v1","served":true,"storage":true,
      "schema":{"openAPIV3Schema":{"type":"object",
        "x-kubernetes-preserve-unknown-fields":true}}}]}})";

constexpr std::string_view kFull =
    R"({"crew":3,"tags":["x","y"],"decks":[{"level":1,"guns":4},{"level":2,"side":"lee"}],)"
    R"("atom":{"a":"1"},"list":[{"a":"1"}],"map":{"m":{"q":1},"n":{}},)"
    R"("any":{"p":{"q":[1,2]},"r":1},"ios":"5%"})";

class ApplyTest : public ::testing::Test {
 protected:
  using Answer = std::pair<int, json::value>;

  static std::string maps(std::string_view rest = "") {
    return "/api/v1/namespaces/default/configmaps" + std::string(rest);
  }
  static std::string map(std::string_view more, std::string_view metadata = "") {
    return R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m")" +
           std::string(metadata) + "}" + std::string(more) + "}";
  }
  static std::string sea(std::string_view kind, std::string_view spec, std::string_view more = "") {
    return R"({"apiVersion":"sea.example.org/v1","kind":")" + std::string(kind) +
           R"(","metadata":{"name":"b"},"spec":)" + std::string(spec) + std::string(more) + "}";
  }
  static std::string boats(std::string_view rest = "") {
    return "/apis/sea.example.org/v1/namespaces/default/boats" + std::string(rest);
  }
  static std::string looses(std::string_view rest = "") {
    return "/apis/sea.example.org/v1/namespaces/default/looses" + std::string(rest);
  }

  Answer apply(const std::string& path, const std::string& body, std::string_view manager = "one",
               std::string_view more = "") {
    return world.call("PATCH", path + "?fieldManager=" + std::string(manager) + std::string(more),
                      body, std::string(kApplyType));
  }
  Answer merge(const std::string& path, const std::string& body, std::string_view manager) {
    return world.call("PATCH", path + "?fieldManager=" + std::string(manager), body,
                      std::string(kMergeType));
  }
  void wait_a_second() { world.clock.advance(std::chrono::seconds(1)); }

  // Each entry as: who, how, whether it has a time, and the fields.
  static std::vector<std::string> owners(const json::value& object) {
    std::vector<std::string> out;
    for (const json::value& e : json::get_array(object, {"metadata", "managedFields"})) {
      std::string line(json::get_string(e, {"manager"}));
      line += " " + std::string(json::get_string(e, {"operation"}));
      if (const auto sub = json::get_string(e, {"subresource"}); !sub.empty()) {
        line += "/" + std::string(sub);
      }
      if (json::find(e, {"time"}) == nullptr) line += " timeless";
      line += " " + json::serialize(*json::find(e, {"fieldsV1"}));
      out.push_back(line);
    }
    return out;
  }
  static std::string part(const json::value& object, std::string_view name) {
    const json::value* found = json::find(object, {name});
    return found == nullptr ? "" : json::serialize(*found);
  }
  static std::string message(const Answer& answer) {
    return std::string(json::get_string(answer.second, {"message"}));
  }
  using Owners = std::vector<std::string>;

  World world;
};

TEST_F(ApplyTest, CreatesWhatIsAbsentAndChangesNothingTheSecondTime) {
  const std::string body = map(R"(,"data":{"x":"1","y":"2"})", R"(,"labels":{"l":"1"})");
  const Answer first = apply(maps("/m"), body);
  EXPECT_EQ(first.first, 201);
  EXPECT_EQ(
      owners(first.second),
      Owners{R"(one Apply {"f:data":{"f:x":{},"f:y":{}},"f:metadata":{"f:labels":{"f:l":{}}}})"});
  wait_a_second();
  const Answer second = apply(maps("/m"), body);
  EXPECT_EQ(second.first, 200);
  EXPECT_EQ(second.second, first.second);
  EXPECT_EQ(json::get_string(*json::find(first.second, {"metadata"}), {"resourceVersion"}),
            json::get_string(*json::find(second.second, {"metadata"}), {"resourceVersion"}));
}

TEST_F(ApplyTest, AnEntryHasTheKeysOfTheRealServerInItsOrder) {
  const Answer made = apply(maps("/m"), map(R"(,"data":{"x":"1"})"));
  std::string keys;
  for (const auto& member :
       json::get_array(made.second, {"metadata", "managedFields"})[0].get_object()) {
    keys += std::string(member.key()) + " ";
  }
  EXPECT_EQ(keys, "manager operation apiVersion time fieldsType fieldsV1 ");
}

TEST_F(ApplyTest, SaysWhoOwnsWhatAnotherWants) {
  apply(maps("/m"), map(R"(,"data":{"x":"1","y":"2"})", R"(,"labels":{"l":"1"})"));
  const Answer one = apply(maps("/m"), map(R"(,"data":{"x":"9"})"), "two");
  EXPECT_EQ(one.first, 409);
  EXPECT_EQ(json::serialize(one.second),
            R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",)"
            R"("message":"Apply failed with 1 conflict: conflict with \"one\": .data.x",)"
            R"("reason":"Conflict","details":{"causes":[{"reason":"FieldManagerConflict",)"
            R"("message":"conflict with \"one\"","field":".data.x"}]},"code":409})");
  const Answer three =
      apply(maps("/m"), map(R"(,"data":{"x":"9","y":"8"})", R"(,"labels":{"l":"2"})"), "two");
  EXPECT_EQ(message(three),
            "Apply failed with 3 conflicts: conflicts with \"one\":\n- .data.x\n- .data.y\n"
            "- .metadata.labels.l");
  EXPECT_EQ(json::get_array(three.second, {"details", "causes"}).size(), 3U);
}

TEST_F(ApplyTest, SharesTakesByForceAndDrops) {
  apply(maps("/m"), map(R"(,"data":{"x":"1","y":"2"})", R"(,"labels":{"l":"1"})"));
  wait_a_second();
  // Who only agrees has never changed anything, so has no time.
  EXPECT_EQ(
      owners(apply(maps("/m"), map(R"(,"data":{"x":"1"})"), "two").second),
      (Owners{R"(two Apply timeless {"f:data":{"f:x":{}}})",
              R"(one Apply {"f:data":{"f:x":{},"f:y":{}},"f:metadata":{"f:labels":{"f:l":{}}}})"}));
  const Answer forced = apply(maps("/m"), map(R"(,"data":{"x":"9"})"), "two", "&force=true");
  EXPECT_EQ(owners(forced.second),
            (Owners{R"(one Apply {"f:data":{"f:y":{}},"f:metadata":{"f:labels":{"f:l":{}}}})",
                    R"(two Apply {"f:data":{"f:x":{}}})"}));
  EXPECT_EQ(part(forced.second, "data"), R"({"x":"9","y":"2"})");
  const Answer dropped = apply(maps("/m"), map(R"(,"data":{})"));
  EXPECT_EQ(part(dropped.second, "data"), R"({"x":"9"})");
  EXPECT_EQ(json::find(dropped.second, {"metadata", "labels"}), nullptr);
  EXPECT_EQ(owners(dropped.second),
            (Owners{R"(one Apply {"f:data":{}})", R"(two Apply {"f:data":{"f:x":{}}})"}));
  const Answer all = apply(maps("/m"), map(""), "two");
  EXPECT_EQ(part(all.second, "data"), "");
  EXPECT_EQ(owners(all.second), Owners{R"(one Apply {"f:data":{}})"});
}

TEST_F(ApplyTest, UpdatesOwnWhatTheyChange) {
  const Answer made = world.call(
      "POST", maps("?fieldManager=tester"),
      map(R"(,"data":{"x":"1","y":"2"})",
          R"(,"labels":{"a":"b"},"annotations":{"n":"v"},"finalizers":["example.org/f"])"));
  EXPECT_EQ(
      owners(made.second),
      Owners{
          R"(tester Update {"f:data":{".":{},"f:x":{},"f:y":{}},"f:metadata":{"f:annotations":{".":{},"f:n":{}},"f:finalizers":{".":{},"v:\"example.org/f\"":{}},"f:labels":{".":{},"f:a":{}}}})"});
  EXPECT_EQ(message(apply(maps("/m"), map(R"(,"data":{"x":"9"})"))),
            "Apply failed with 1 conflict: conflict with \"tester\" using v1: .data.x");
  EXPECT_EQ(
      owners(merge(maps("/m"), R"({"data":{"y":"3","z":"4"}})", "patcher").second),
      (Owners{
          R"(patcher Update {"f:data":{"f:y":{},"f:z":{}}})",
          R"(tester Update {"f:data":{".":{},"f:x":{}},"f:metadata":{"f:annotations":{".":{},"f:n":{}},"f:finalizers":{".":{},"v:\"example.org/f\"":{}},"f:labels":{".":{},"f:a":{}}}})"}));
  EXPECT_EQ(
      message(apply(maps("/m"), map(R"(,"data":{"x":"9","y":"9"})", R"(,"labels":{"a":"c"})"))),
      "Apply failed with 3 conflicts: conflicts with \"patcher\" using v1:\n- .data.y\n"
      "conflicts with \"tester\" using v1:\n- .data.x\n- .metadata.labels.a");
  const Answer put = world.call("PUT", maps("/m?fieldManager=putter"),
                                map(R"(,"data":{"x":"5"})", R"(,"finalizers":["example.org/f"])"));
  EXPECT_EQ(
      owners(put.second),
      (Owners{
          R"(putter Update {"f:data":{"f:x":{}}})",
          R"(tester Update {"f:data":{},"f:metadata":{"f:finalizers":{".":{},"v:\"example.org/f\"":{}}}})"}));
  wait_a_second();
  EXPECT_EQ(merge(maps("/m"), R"({"data":{"x":"5"}})", "noop").second, put.second);
}

TEST_F(ApplyTest, TheManagerIsNamedByTheClientOrItsProgram) {
  http::Request request = world.request("POST", maps(), map(""));
  request.headers.emplace_back("User-Agent", "kubectl/v1.34.4 (linux/amd64)");
  const auto made = json::parse(world.server->handle(request).body);
  ASSERT_TRUE(made);
  EXPECT_TRUE(owners(*made).empty());  // nothing to own
  EXPECT_EQ(owners(merge(maps("/m"), R"({"data":{"x":"5"}})", "").second), Owners{});
  world.call("DELETE", maps("/m"));
  EXPECT_EQ(owners(world.call("POST", maps(), map(R"(,"data":{"a":"b"})")).second),
            Owners{R"(unknown Update {"f:data":{".":{},"f:a":{}}})"});
}

TEST_F(ApplyTest, ForgetsOwnersWhenAskedAndStartsAgainWithTheFirstApply) {
  world.call("POST", maps("?fieldManager=tester"),
             map(R"(,"data":{"x":"5"})", R"(,"finalizers":["example.org/f"])"));
  const Answer reset = world.call(
      "PATCH", maps("/m"), R"([{"op":"replace","path":"/metadata/managedFields","value":[{}]}])",
      "application/json-patch+json");
  EXPECT_EQ(reset.first, 200);
  EXPECT_EQ(owners(reset.second), Owners{});
  EXPECT_EQ(owners(merge(maps("/m"), R"({"data":{"w":"5"}})", "untracked").second), Owners{});
  EXPECT_EQ(
      owners(apply(maps("/m"), map(R"(,"data":{"x":"5"})")).second),
      (Owners{
          R"(one Apply timeless {"f:data":{"f:x":{}}})",
          R"(before-first-apply Update {"f:data":{".":{},"f:w":{},"f:x":{}},"f:metadata":{"f:finalizers":{".":{},"v:\"example.org/f\"":{}}}})"}));
  EXPECT_EQ(message(apply(maps("/m"), map(R"(,"data":{"w":"0"})"))),
            "Apply failed with 1 conflict: conflict with \"before-first-apply\" using v1: .data.w");
  EXPECT_EQ(owners(merge(maps("/m"), R"({"metadata":{"managedFields":[]}})", "x").second),
            Owners{});
}

TEST_F(ApplyTest, TakesAClientsOwnListWhereItCanBeRead) {
  apply(maps("/m"), map("", R"(,"labels":{"a":"1"})"));
  const auto put = [&](std::string_view operation) {
    return world.call("PUT", maps("/m?fieldManager=tester"),
                      map(R"(,"data":{"a":"b"})",
                          R"(,"labels":{"a":"1"},"managedFields":[{"manager":"x","operation":")" +
                              std::string(operation) +
                              R"(","apiVersion":"v1","fieldsType":"FieldsV1",)"
                              R"("fieldsV1":{"f:data":{"f:a":{}}}}])"));
  };
  EXPECT_EQ(owners(put("Bogus").second),
            (Owners{R"(one Apply {"f:metadata":{"f:labels":{"f:a":{}}}})",
                    R"(tester Update {"f:data":{".":{},"f:a":{}}})"}));
  EXPECT_EQ(owners(put("Update").second), Owners{R"(x Update timeless {"f:data":{"f:a":{}}})"});
  EXPECT_EQ(owners(merge(maps("/m"), R"({"metadata":{"managedFields":null}})", "y").second),
            Owners{R"(x Update timeless {"f:data":{"f:a":{}}})"});
}

TEST_F(ApplyTest, TenUpdatersAtMost) {
  world.call("POST", maps("?fieldManager=m0"), map(R"(,"data":{"k0":"1"})"));
  Answer last;
  for (int i = 1; i <= 12; ++i) {
    const std::string n = std::to_string(i);
    last = merge(maps("/m"), R"({"data":{"k)" + n + R"(":"1"}})", "m" + n);
  }
  const Owners all = owners(last.second);
  ASSERT_EQ(all.size(), 10U);
  EXPECT_EQ(
      all[0],
      R"(ancient-changes Update {"f:data":{".":{},"f:k0":{},"f:k1":{},"f:k10":{},"f:k11":{}}})");
  EXPECT_EQ(all[1], R"(m12 Update {"f:data":{"f:k12":{}}})");
  EXPECT_EQ(all[9], R"(m9 Update {"f:data":{"f:k9":{}}})");
}

TEST_F(ApplyTest, RefusesWithTheRealServersWords) {
  const struct {
    const char* name;
    std::string path, body;
    int status;
    const char* message;
  } cases[] = {
      {"managedFields in the body", maps("/m?fieldManager=a"), map("", R"(,"managedFields":[])"),
       400, "metadata.managedFields must be nil"},
      {"no kind", maps("/m?fieldManager=a"), R"({"metadata":{"name":"m"}})", 400,
       "invalid object type: /, Kind="},
      {"an empty body", maps("/m?fieldManager=a"), "", 400, "invalid object type: /, Kind="},
      {"another kind", maps("/m?fieldManager=a"),
       R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"m"}})", 400,
       "invalid object type: /v1, Kind=Secret"},
      {"another version", maps("/m?fieldManager=a"),
       R"({"apiVersion":"apps/v1beta1","kind":"Deployment"})", 400,
       "invalid object type: apps/v1beta1, Kind=Deployment"},
      {"an unknown field", maps("/m?fieldManager=a"), map(R"(,"spec":{"a":1})"), 500,
       "failed to create typed patch object (/m; /v1, Kind=ConfigMap): .spec: field not declared "
       "in "
       "schema"},
      {"a wrong type", maps("/m?fieldManager=a"), map(R"(,"data":{"a":1})"), 500,
       "failed to create typed patch object (/m; /v1, Kind=ConfigMap): .data.a: expected string, "
       "got &value.valueUnstructured{Value:1}"},
      {"no map", maps("/m?fieldManager=a"), map(R"(,"data":"x")"), 500,
       "failed to create typed patch object (/m; /v1, Kind=ConfigMap): .data: expected map, got "
       "&{x}"},
      {"a list", maps("/m?fieldManager=a"), "- a\n", 400,
       "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal "
       "array into Go value of type map[string]interface {}"},
      {"no YAML", maps("/m?fieldManager=a"), "a: b: c: d", 400,
       "error decoding YAML: error converting YAML to JSON: yaml: mapping values are not allowed "
       "in "
       "this context"},
      {"a uid of nothing", maps("/m?fieldManager=a"), map("", R"(,"uid":"123")"), 409,
       "Operation cannot be fulfilled on configmaps \"m\": uid mismatch: the provided object "
       "specified uid 123, and no existing object was found"},
      {"another name", maps("/other?fieldManager=a"), map(""), 400,
       "the name of the object (m) does not match the name on the URL (other)"},
      {"another namespace", maps("/m?fieldManager=a"), map("", R"(,"namespace":"kube-system")"),
       400,
       "the namespace of the provided object does not match the namespace sent on the request"},
      {"no such namespace", "/api/v1/namespaces/nowhere/configmaps/m?fieldManager=a", map(""), 404,
       "namespaces \"nowhere\" not found"},
      {"no manager", maps("/m"), map(""), 422,
       "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for "
       "apply patch"},
      {"a status of nothing", World::pods("/p9/status?fieldManager=a"),
       R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p9"},"status":{"message":"x"}})", 404,
       "pods \"p9\" not found"},
      {"an item twice", World::pods("/p?fieldManager=a"),
       R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},
           "spec":{"containers":[{"name":"c","image":"i"},{"name":"c","image":"j"}]}})",
       500,
       "failed to create typed patch object (/p; /v1, Kind=Pod): .spec.containers: duplicate "
       "entries for key [name=\"c\"]"},
      {"a field too many, deep", World::pods("/p?fieldManager=a"),
       R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"bar":2}})", 500,
       "failed to create typed patch object (/p; /v1, Kind=Pod): .spec.bar: field not declared in "
       "schema"},
  };
  for (const auto& c : cases) {
    const Answer answer = world.call("PATCH", c.path, c.body, std::string(kApplyType));
    EXPECT_EQ(answer.first, c.status) << c.name;
    EXPECT_EQ(message(answer), c.message) << c.name;
    EXPECT_EQ(json::find(answer.second, {"reason"}) == nullptr, c.status == 500) << c.name;
  }
  EXPECT_EQ(message(world.call("PATCH", maps("/m?force=true"), "{}", std::string(kMergeType))),
            "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for "
            "non-apply patch");
  EXPECT_EQ(
      world.call("PATCH", maps("/m?fieldManager=a"), map(""), "application/apply-patch+json").first,
      415);
  EXPECT_EQ(
      message(apply(maps("/m"), map(""), std::string(129, 'x'))),
      "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Too long: may not be more than "
      "128 bytes");
  EXPECT_EQ(message(apply(maps("/m"), map(""), "a%01b")),
            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Invalid value: \"a\\x01b\": "
            "invalid character U+0001 (at position 1)");
  EXPECT_EQ(world.call("GET", maps("/m")).first, 404);
}

TEST_F(ApplyTest, PreconditionsStandInTheBody) {
  // Where there is nothing, a version of nothing is no obstacle.
  EXPECT_EQ(apply(maps("/m"), map("", R"(,"resourceVersion":"1")")).first, 201);
  EXPECT_EQ(apply(maps("/m"), R"({"apiVersion":"v1","kind":"ConfigMap"})").first, 200);
  const Answer old = apply(maps("/m"), map(R"(,"data":{"a":"b"})", R"(,"resourceVersion":"1")"));
  EXPECT_EQ(old.first, 409);
  EXPECT_EQ(message(old),
            "Operation cannot be fulfilled on configmaps \"m\": the object has been modified; "
            "please apply your changes to the latest version and try again");
  const Answer other = apply(maps("/m"), map("", R"(,"uid":"123")"));
  EXPECT_EQ(other.first, 422);
  EXPECT_EQ(message(other),
            "ConfigMap \"m\" is invalid: metadata.uid: Invalid value: \"123\": field is immutable");
  EXPECT_EQ(json::get_array(other.second, {"details", "causes"}).size(), 2U);
}

TEST_F(ApplyTest, KeysGivenTwiceAreAsFieldValidationSays) {
  const std::string body =
      "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\ndata:\n  a: x\n  a: z\n";
  const Answer strict = apply(maps("/m"), body, "one", "&fieldValidation=Strict");
  EXPECT_EQ(strict.first, 400);
  EXPECT_EQ(message(strict),
            "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n"
            "  line 7: key \"a\" already set in map");
  const Answer warned = apply(maps("/m"), body);
  EXPECT_EQ(warned.first, 201);
  EXPECT_EQ(part(warned.second, "data"), R"({"a":"z"})");
  EXPECT_NE(http::header(world.last.headers, "Warning").find("line 7: key"), std::string::npos);
  apply(maps("/m"), body, "one", "&fieldValidation=Ignore");
  EXPECT_EQ(http::header(world.last.headers, "Warning"), "");
}

TEST_F(ApplyTest, ADryRunOwnsNothing) {
  const Answer dry = apply(maps("/m"), map(R"(,"data":{"a":"b"})"), "one", "&dryRun=All");
  EXPECT_EQ(dry.first, 201);
  EXPECT_EQ(owners(dry.second), Owners{R"(one Apply {"f:data":{"f:a":{}}})"});
  EXPECT_EQ(world.call("GET", maps("/m")).first, 404);
}

TEST_F(ApplyTest, ListsWithKeysOfACustomKind) {
  ASSERT_EQ(world
                .call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                      std::string(kFleet))
                .first,
            201);
  EXPECT_EQ(
      owners(world.call("POST", boats("?fieldManager=tester"), sea("Boat", kFull)).second),
      Owners{
          R"(tester Update {"f:spec":{".":{},"f:any":{".":{},"f:p":{".":{},"f:q":{}},"f:r":{}},"f:atom":{},"f:crew":{},"f:decks":{".":{},"k:{\"level\":1,\"side\":\"port\"}":{".":{},"f:guns":{},"f:level":{},"f:side":{}},"k:{\"level\":2,\"side\":\"lee\"}":{".":{},"f:level":{},"f:side":{}}},"f:ios":{},"f:list":{},"f:map":{".":{},"f:m":{".":{},"f:q":{}},"f:n":{}},"f:sail":{},"f:tags":{".":{},"v:\"x\"":{},"v:\"y\"":{}}}})"});
  world.call("DELETE", boats("/b"));
  EXPECT_EQ(
      owners(apply(boats("/b"), sea("Boat", kFull)).second),
      Owners{
          R"(one Apply {"f:spec":{"f:any":{"f:p":{".":{},"f:q":{}},"f:r":{}},"f:atom":{},"f:crew":{},"f:decks":{"k:{\"level\":1,\"side\":\"port\"}":{".":{},"f:guns":{},"f:level":{}},"k:{\"level\":2,\"side\":\"lee\"}":{".":{},"f:level":{},"f:side":{}}},"f:ios":{},"f:list":{},"f:map":{"f:m":{".":{},"f:q":{}},"f:n":{}},"f:tags":{"v:\"x\"":{},"v:\"y\"":{}}}})"});
  const Answer second = apply(
      boats("/b"),
      sea("Boat",
          R"({"tags":["z","x"],"decks":[{"level":2,"side":"lee","guns":1},{"level":3}],"any":{"p":{"z":1}}})"),
      "two");
  EXPECT_EQ(
      part(*json::find(second.second, {"spec"}), "decks"),
      R"([{"level":1,"guns":4,"side":"port"},{"level":2,"side":"lee","guns":1},{"level":3,"side":"port"}])");
  EXPECT_EQ(part(*json::find(second.second, {"spec"}), "tags"), R"(["z","x","y"])");
  const Answer dropped =
      apply(boats("/b"), sea("Boat", R"({"crew":3,"tags":["y"],"decks":[{"level":1}]})"));
  const json::value& spec = *json::find(dropped.second, {"spec"});
  EXPECT_EQ(
      *json::parse(R"({"any":{"p":{"z":1}},"crew":3,"decks":[{"level":1,"side":"port"},)"
                   R"({"guns":1,"level":2,"side":"lee"},{"level":3,"side":"port"}],"sail":"lug",)"
                   R"("tags":["z","x","y"]})"),
      spec)
      << json::serialize(spec);
  EXPECT_EQ(
      owners(dropped.second),
      (Owners{
          R"(one Apply {"f:spec":{"f:crew":{},"f:decks":{"k:{\"level\":1,\"side\":\"port\"}":{".":{},"f:level":{}}},"f:tags":{"v:\"y\"":{}}}})",
          R"(two Apply {"f:spec":{"f:any":{"f:p":{".":{},"f:z":{}}},"f:decks":{"k:{\"level\":2,\"side\":\"lee\"}":{".":{},"f:guns":{},"f:level":{},"f:side":{}},"k:{\"level\":3,\"side\":\"port\"}":{".":{},"f:level":{}}},"f:tags":{"v:\"x\"":{},"v:\"z\"":{}}}})"}));
  EXPECT_EQ(message(apply(boats("/b"), sea("Boat", R"({"atom":{"b":"2"},"crew":4})"), "two")),
            "Apply failed with 1 conflict: conflict with \"one\": .spec.crew");
  EXPECT_EQ(message(apply(boats("/b"), sea("Boat", R"({"tags":["x","x"]})"), "two")),
            "failed to create typed patch object (/b; sea.example.org/v1, Kind=Boat): .spec.tags: "
            "duplicate entries for key [=\"x\"]");
}

TEST_F(ApplyTest, StatusIsOwnedOnItsOwnPathOnly) {
  world.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
             std::string(kFleet));
  EXPECT_EQ(owners(apply(boats("/b"), sea("Boat", R"({"crew":3})", R"(,"status":{"s":1})")).second),
            Owners{R"(one Apply {"f:spec":{"f:crew":{}}})"});
  wait_a_second();
  const Answer status = apply(boats("/b/status"),
                              sea("Boat", R"({"crew":7})", R"(,"status":{"s":{"t":[1]}})"), "stat");
  EXPECT_EQ(part(status.second, "status"), R"({"s":{"t":[1]}})");
  EXPECT_EQ(part(status.second, "spec"), R"({"crew":3,"sail":"lug"})");
  EXPECT_EQ(owners(status.second),
            (Owners{R"(one Apply {"f:spec":{"f:crew":{}}})",
                    R"(stat Apply/status {"f:status":{"f:s":{".":{},"f:t":{}}}})"}));
  // Who says a status on the object's path has changed something, though it does not count.
  const Answer again =
      apply(boats("/b"), sea("Boat", R"({"crew":3})", R"(,"status":{"s":1})"), "three");
  EXPECT_EQ(owners(again.second).back(), R"(three Apply {"f:spec":{"f:crew":{}}})");
  const Answer patched = merge(boats("/b/status"), R"({"status":{"u":1,"s":{"v":2}}})", "up");
  EXPECT_EQ(owners(patched.second).back(),
            R"(up Update/status {"f:status":{"f:s":{"f:v":{}},"f:u":{}}})");
}

TEST_F(ApplyTest, WithoutASchemaOwnershipFollowsTheValues) {
  world.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
             std::string(kLoose));
  EXPECT_EQ(owners(apply(looses("/b"), sea("Loose", R"({"a":{"b":[1],"c":{}},"d":null})")).second),
            Owners{R"(one Apply {"f:spec":{".":{},"f:a":{".":{},"f:b":{},"f:c":{}},"f:d":{}}})"});
  EXPECT_EQ(message(apply(looses("/b"), sea("Loose", R"({"a":{"b":[2]},"e":1})"), "two")),
            "Apply failed with 1 conflict: conflict with \"one\": .spec.a.b");
  const Answer dropped = apply(looses("/b"), sea("Loose", R"({"a":{"c":{}}})"));
  EXPECT_EQ(part(dropped.second, "spec"), R"({"a":{"c":{}}})");
  EXPECT_EQ(owners(dropped.second),
            Owners{R"(one Apply {"f:spec":{".":{},"f:a":{".":{},"f:c":{}}}})"});
  EXPECT_EQ(owners(merge(looses("/b"), R"({"spec":{"a":5,"f":{"g":1}}})", "mp").second),
            (Owners{R"(one Apply {"f:spec":{}})",
                    R"(mp Update {"f:spec":{"f:a":{},"f:f":{".":{},"f:g":{}}}})"}));
}

TEST_F(ApplyTest, FinalizersAndOwnersAreOwnedOneByOne) {
  const auto owner =
      R"(,"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"q","uid":"u1"}])";
  EXPECT_EQ(
      owners(apply(maps("/m"),
                   map("", std::string(R"(,"labels":{"a":"1"},"finalizers":["x.y/z"])") + owner))
                 .second),
      Owners{
          R"(one Apply {"f:metadata":{"f:finalizers":{"v:\"x.y/z\"":{}},"f:labels":{"f:a":{}},"f:ownerReferences":{"k:{\"uid\":\"u1\"}":{}}}})"});
  const Answer second = apply(maps("/m"), map("", R"(,"finalizers":["x.y/w"])"), "two");
  EXPECT_EQ(part(*json::find(second.second, {"metadata"}), "finalizers"), R"(["x.y/z","x.y/w"])");
  const Answer dropped = apply(maps("/m"), map("", R"(,"labels":{"a":"1"})"));
  EXPECT_EQ(part(*json::find(dropped.second, {"metadata"}), "finalizers"), R"(["x.y/w"])");
  EXPECT_EQ(json::find(dropped.second, {"metadata", "ownerReferences"}), nullptr);
  EXPECT_EQ(owners(apply(maps("/m"), map(""), "two").second),
            Owners{R"(one Apply {"f:metadata":{"f:labels":{"f:a":{}}}})"});
}

TEST_F(ApplyTest, WhoComesFromClientSideApplyHasNoConflictsWithOneself) {
  const std::string said =
      R"({\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"m\"},\"data\":{\"k\":\"1\"}})";
  world.call("POST", maps("?fieldManager=kubectl-client-side-apply"),
             map(R"(,"data":{"k":"1","o":"1"})",
                 R"(,"annotations":{"kubectl.kubernetes.io/last-applied-configuration":")" + said +
                     R"("})"));
  const Answer moved = apply(maps("/m"), map(R"(,"data":{"k":"2"})"), "kubectl");
  EXPECT_EQ(moved.first, 200);
  EXPECT_EQ(json::get_string(moved.second, {"metadata", "annotations",
                                            "kubectl.kubernetes.io/last-applied-configuration"}),
            "{\"apiVersion\":\"v1\",\"data\":{\"k\":\"2\"},\"kind\":\"ConfigMap\",\"metadata\":"
            "{\"name\":\"m\"}}\n");
  EXPECT_EQ(message(apply(maps("/m"), map(R"(,"data":{"o":"2","k":"3"})"), "kubectl")),
            "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using v1: "
            ".data.o");
  EXPECT_EQ(apply(maps("/m"), map(R"(,"data":{"k":"5"})"), "other").first, 409);
}

TEST_F(ApplyTest, APodsFieldsAreTheRealServers) {
  const Answer made = world.call(
      "POST", World::pods("?fieldManager=tester"),
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p1","labels":{"app":"x"}},"spec":
          {"containers":[{"name":"c","image":"i:1","ports":[{"containerPort":80}],
           "env":[{"name":"A","value":"1"}],"resources":{"limits":{"cpu":"1"}}}],
           "tolerations":[{"key":"k","operator":"Exists"}],
           "volumes":[{"name":"v","emptyDir":{}}]}})");
  EXPECT_EQ(
      owners(made.second),
      Owners{
          R"(tester Update {"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:env":{".":{},"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:ports":{".":{},"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:protocol":{}}},"f:resources":{".":{},"f:limits":{".":{},"f:cpu":{}},"f:requests":{".":{},"f:cpu":{}}},"f:terminationMessagePath":{},"f:terminationMessagePolicy":{}}},"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},"f:terminationGracePeriodSeconds":{},"f:tolerations":{},"f:volumes":{".":{},"k:{\"name\":\"v\"}":{".":{},"f:emptyDir":{},"f:name":{}}}}})"});
  const Answer status =
      world.call("PATCH", World::pods("/p1/status?fieldManager=kubelet"),
                 R"({"status":{"phase":"Running","podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"}],
          "conditions":[{"type":"Ready","status":"True"}],"containerStatuses":[{"name":"c",
          "ready":true,"restartCount":0,"image":"i:1","imageID":"","state":{"running":{}}}]}})",
                 "application/strategic-merge-patch+json");
  EXPECT_EQ(
      owners(status.second).at(0),
      R"(kubelet Update/status {"f:status":{"f:conditions":{".":{},"k:{\"type\":\"Ready\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}}},"f:containerStatuses":{},"f:phase":{},"f:podIP":{},"f:podIPs":{".":{},"k:{\"ip\":\"10.0.0.1\"}":{".":{},"f:ip":{}}}}})");
  const std::string image =
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p1"},"spec":{"containers":[{"name":"c","image":"i:2"}]}})";
  EXPECT_EQ(message(apply(World::pods("/p1"), image)),
            "Apply failed with 1 conflict: conflict with \"tester\" using v1: "
            ".spec.containers[name=\"c\"].image");
  const Answer forced = apply(World::pods("/p1"), image, "one", "&force=true");
  EXPECT_EQ(
      owners(forced.second).at(0),
      R"(one Apply {"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{},"f:name":{}}}}})");
}

TEST_F(ApplyTest, CodeInThisProcessAppliesToo) {
  client::Write write{.verb = client::Verb::kApply,
                      .resource = {.version = "v1", .plural = "configmaps", .kind = "ConfigMap"},
                      .ns = "default",
                      .name = "m",
                      .body = *json::parse(map(R"(,"data":{"a":"b"})")),
                      .field_manager = "inside"};
  auto made = world.server->transact({write});
  ASSERT_TRUE(made[0]) << made[0].error().message;
  EXPECT_EQ(owners(*made[0]), Owners{R"(inside Apply {"f:data":{"f:a":{}}})"});
  write.field_manager = "other";
  write.body = *json::parse(map(R"(,"data":{"a":"c"})"));
  EXPECT_EQ(world.server->transact({write})[0].error().code, Code::kConflict);
  write.force = true;
  EXPECT_TRUE(world.server->transact({write})[0]);
}

TEST_F(ApplyTest, ObjectsFromBeforeStayUntrackedUntilTheyAreApplied) {
  world.call("POST", maps(), map(R"(,"data":{"a":"b"})"));
  Transaction txn(*world.store);
  const store::Key key{.resource = "configmaps", .ns = "default", .name = "m"};
  json::value old = *txn.get(key);
  take_managed(old);
  txn.put(key, old);
  ASSERT_TRUE(txn.commit(store::Sync::kLazy));
  world.flush();
  EXPECT_EQ(owners(merge(maps("/m"), R"({"data":{"c":"d"}})", "x").second), Owners{});
}

TEST(Managed, RefusesEntriesThatSayTooLittle) {
  const std::pair<const char*, const char*> cases[] = {
      {R"([{"manager":"a"}])", "operation must be `Apply` or `Update`"},
      {R"([{"operation":"Update"}])", "apiVersion must not be empty"},
      {R"([{"operation":"Update","apiVersion":"v1"}])",
       "missing fieldsType in managed fields entry 0"},
      {R"([{"operation":"Update","apiVersion":"v1","fieldsType":"V2"}])",
       "invalid fieldsType \"V2\" in managed fields entry 0"},
      {"{}", "managedFields must be a list"},
  };
  for (const auto& [text, error] : cases) {
    const json::value list = *json::parse(text);
    const auto managed = Managed::decode(list);
    ASSERT_FALSE(managed) << text;
    EXPECT_EQ(managed.error().message, error);
  }
}

TEST(Managed, SortsAppliersFirstThenByAgeAndName) {
  Managed managed;
  const auto add = [&](std::string name, bool applied, std::string time) {
    managed.entries.push_back({.manager = std::move(name),
                               .applied = applied,
                               .api_version = "v1",
                               .time = std::move(time),
                               .fields = schema::FieldSet::of({{"a"}})});
  };
  add("d", false, "2026-01-01T00:00:00Z");
  add("c", false, "2026-01-01T00:00:00Z");
  add("b", true, "2026-01-02T00:00:00Z");
  add("e", true, "");
  add("a", false, "2026-01-03T00:00:00Z");
  std::string order;
  for (const json::value& e : managed.encode()) order += json::get_string(e, {"manager"});
  EXPECT_EQ(order, "ebcda");
}

TEST(Managed, CapKeepsWhatIsOwnedAndAtMostTenUpdaters) {
  for (int updaters = 1; updaters < 25; ++updaters) {
    Managed managed;
    schema::FieldSet all;
    for (int i = 0; i < updaters; ++i) {
      const std::string field = "f" + std::to_string(i);
      schema::FieldSet fields;
      fields.insert({schema::PathElement::field(field)});
      all = all.united(fields);
      managed.entries.push_back({.manager = i % 7 == 3 ? "ancient-changes" : field,
                                 .api_version = i % 5 == 4 ? "v2" : "v1",
                                 .time = "2026-01-01T00:00:0" + std::to_string(i % 10) + "Z",
                                 .fields = fields});
      for (std::size_t j = 0; j + 1 < managed.entries.size(); ++j) {
        if (!managed.entries[j].same_manager(managed.entries.back())) continue;
        managed.entries[j].set_fields(managed.entries[j].fields.united(fields));
        managed.entries.pop_back();
        break;
      }
    }
    managed.cap();
    EXPECT_LE(managed.entries.size(), 10U) << updaters;
    schema::FieldSet left;
    for (const ManagedEntry& e : managed.entries) left = left.united(e.fields);
    EXPECT_EQ(left, all) << updaters;
  }
}

}  // namespace
}  // namespace skiff::apiserver
