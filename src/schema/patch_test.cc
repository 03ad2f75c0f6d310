#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/limits.h"
#include "schema/json_patch.h"
#include "schema/merge_patch.h"
#include "schema/strategic_merge.h"

namespace skiff::schema {
namespace {

TEST(JsonPatch, Applies) {
  struct Case {
    const char* name;
    const char* document;
    const char* patch;
    const char* result;  // null: refused
  };
  const Case cases[] = {
      {"add a member", R"({"a":1})", R"([{"op":"add","path":"/b","value":2}])", R"({"a":1,"b":2})"},
      {"add in the middle", R"({"a":[1,3]})", R"([{"op":"add","path":"/a/1","value":2}])",
       R"({"a":[1,2,3]})"},
      {"add at the end", R"({"a":[1]})", R"([{"op":"add","path":"/a/-","value":2}])",
       R"({"a":[1,2]})"},
      {"add null", R"({})", R"([{"op":"add","path":"/a","value":null}])", R"({"a":null})"},
      {"remove", R"({"a":1,"b":2,"c":3})", R"([{"op":"remove","path":"/a"}])", R"({"b":2,"c":3})"},
      {"remove an item", R"({"a":[1,2,3]})", R"([{"op":"remove","path":"/a/1"}])",
       R"({"a":[1,3]})"},
      {"replace", R"({"a":1})", R"([{"op":"replace","path":"/a","value":2}])", R"({"a":2})"},
      {"replace the whole", R"({"a":1})", R"([{"op":"replace","path":"","value":[]}])", "[]"},
      {"move", R"({"a":{"x":1},"b":{}})", R"([{"op":"move","from":"/a/x","path":"/b/y"}])",
       R"({"a":{},"b":{"y":1}})"},
      {"copy", R"({"a":{"x":1}})", R"([{"op":"copy","from":"/a","path":"/b"}])",
       R"({"a":{"x":1},"b":{"x":1}})"},
      {"copy what is not there", R"({"a":{}})", R"([{"op":"copy","from":"/a/x","path":"/b"}])",
       R"({"a":{},"b":null})"},
      {"copy out of nothing", R"({})", R"([{"op":"copy","from":"/a/x","path":"/b"}])", nullptr},
      {"copy the whole", R"({"a":1})", R"([{"op":"copy","from":"","path":"/b"}])", nullptr},
      {"test", R"({"a":1})", R"([{"op":"test","path":"/a","value":1}])", R"({"a":1})"},
      {"escaped names", R"({"a/b":{"c~d":1}})", R"([{"op":"remove","path":"/a~1b/c~0d"}])",
       R"({"a/b":{}})"},
      {"a test that fails", R"({"a":1})", R"([{"op":"test","path":"/a","value":2}])", nullptr},
      {"no such member", R"({})", R"([{"op":"remove","path":"/a"}])", nullptr},
      {"no such parent", R"({})", R"([{"op":"add","path":"/a/b","value":1}])", nullptr},
      {"past the end", R"({"a":[]})", R"([{"op":"add","path":"/a/1","value":1}])", nullptr},
      {"an index with a leading zero", R"({"a":[1]})", R"([{"op":"remove","path":"/a/00"}])",
       R"({"a":[]})"},
      {"counted from the end", R"({"a":[1,2,3]})", R"([{"op":"remove","path":"/a/-1"}])",
       R"({"a":[1,2]})"},
      {"before the beginning", R"({"a":[1]})", R"([{"op":"remove","path":"/a/-2"}])", nullptr},
      {"replace what is not there", R"({"a":{}})", R"([{"op":"replace","path":"/a/b","value":2}])",
       R"({"a":{"b":2}})"},
      {"replace an item that is not there", R"({"a":[]})",
       R"([{"op":"replace","path":"/a/0","value":2}])", nullptr},
      {"what is not there is null", R"({})", R"([{"op":"test","path":"/a","value":null}])", "{}"},
      {"into itself", R"({"a":{}})", R"([{"op":"move","from":"/a","path":"/a/b"}])", nullptr},
      {"an unknown operation", R"({})", R"([{"op":"burn","path":"/a"}])", nullptr},
      {"no value", R"({})", R"([{"op":"add","path":"/a"}])", R"({"a":null})"},
      {"no path", R"({})", R"([{"op":"add","value":1}])", nullptr},
      {"a tilde that escapes nothing", R"({})", R"([{"op":"add","path":"/~2","value":1}])",
       R"({"~2":1})"},
      {"a path without a slash", R"({})", R"([{"op":"add","path":"x","value":1}])", nullptr},
      {"no list", R"({})", R"({"op":"add"})", nullptr},
      {"remove the whole", R"({"a":1})", R"([{"op":"remove","path":""}])", nullptr},
      {"add the whole", R"({"a":1})", R"([{"op":"add","path":"","value":{}}])", nullptr},
  };
  for (const Case& c : cases) {
    const auto got = apply_json_patch(*json::parse(c.document), *json::parse(c.patch));
    ASSERT_EQ(got.has_value(), c.result != nullptr) << c.name;
    if (got) EXPECT_EQ(json::serialize(*got), c.result) << c.name;
  }
}

TEST(JsonPatch, TellsAPatchThatIsNoneFromOneThatDoesNotFit) {
  const auto error = [](const char* patch) {
    return apply_json_patch(json::object(), *json::parse(patch)).error();
  };
  EXPECT_EQ(error(R"({"op":"add"})").code, Code::kBadRequest);
  EXPECT_EQ(error(R"({"op":"add"})").message,
            "error decoding patch: json: cannot unmarshal object into Go value of type "
            "[]handlers.jsonPatchOp");
  EXPECT_EQ(error("[5]").message,
            "error decoding patch: json: cannot unmarshal number into Go value of type "
            "handlers.jsonPatchOp");
  EXPECT_EQ(error(R"([{"op":["add"]}])").message,
            "error decoding patch: json: cannot unmarshal array into Go struct field "
            "jsonPatchOp.op of type string");
  for (const char* patch : {R"([{"op":"sing","path":"/x"}])", R"([{"path":"/x"}])",
                            R"([{"op":"add","path":"x","value":1}])"}) {
    EXPECT_EQ(error(patch).code, Code::kInvalid) << patch;
  }
}

TEST(JsonPatch, IsBounded) {
  json::array many;
  for (std::size_t i = 0; i <= limits::kJsonPatchOperations; ++i) {
    many.push_back(json::object{{"op", "test"}, {"path", ""}, {"value", nullptr}});
  }
  EXPECT_EQ(apply_json_patch(nullptr, many).error().code, Code::kTooLarge);
  json::array doubling;
  for (int i = 0; i < 60; ++i) {
    doubling.push_back(
        json::object{{"op", "copy"}, {"from", "/a"}, {"path", "/a/x" + std::to_string(i)}});
  }
  EXPECT_EQ(apply_json_patch(*json::parse(R"({"a":{"b":1}})"), doubling).error().code,
            Code::kTooLarge);
}

// Each operation is as deep as a body may be, but they put their values into each other: a tower of
// 3,000 times that depth ended the process when it was taken down.
TEST(JsonPatch, SmallBodiesKillTheServerByMovesThatBuildATower) {
  const auto tower = [](int depth) {
    std::string out = "1";
    for (int i = 0; i < depth; ++i) out = R"({"a":)" + out + "}";
    return out;
  };
  std::string below;
  for (int i = 0; i < 100; ++i) below += "/a";
  for (const char* op : {"move", "copy"}) {
    std::string patch = fmt::format(R"([{{"op":"add","path":"/z0","value":{0}}},
        {{"op":"add","path":"/z1","value":{0}}},
        {{"op":"{1}","from":"/z0","path":"/z1{2}"}}])",
                                    tower(100), op, below);
    const auto got = apply_json_patch(json::object(), *json::parse(patch));
    ASSERT_FALSE(got) << op;
    EXPECT_NE(got.error().message.find("nested too deeply"), std::string::npos)
        << got.error().message;
  }
  const auto fits = [&](int depth) {
    const std::string patch =
        fmt::format(R"([{{"op":"add","path":"/z","value":{}}}])", tower(depth));
    return apply_json_patch(json::object(), *json::parse(patch)).has_value();
  };
  EXPECT_TRUE(fits(static_cast<int>(limits::kJsonDepth) - 3)) << "parsed, so three around it";
}

TEST(MergePatch, Applies) {
  json::value v = *json::parse(R"({"a":{"b":1,"c":2},"d":[1],"e":5})");
  apply_merge_patch(v,
                    *json::parse(R"({"a":{"b":null,"x":{"y":null,"z":1}},"d":[2],"e":{"f":1}})"));
  EXPECT_EQ(json::serialize(v), R"({"a":{"c":2,"x":{"z":1}},"d":[2],"e":{"f":1}})");
}

TEST(MergePatch, MadePatchLeadsThere) {
  const json::value from = *json::parse(R"({"a":{"b":1,"c":2},"d":[1],"e":5})");
  const json::value to = *json::parse(R"({"a":{"c":3},"d":[1],"f":{"g":1}})");
  const json::value patch = make_merge_patch(from, to);
  EXPECT_EQ(json::serialize(patch), R"({"a":{"c":3,"b":null},"f":{"g":1},"e":null})");
  json::value v = from;
  apply_merge_patch(v, patch);
  EXPECT_EQ(v, to);
  EXPECT_EQ(json::serialize(make_merge_patch(from, from)), "{}");
}

constexpr std::string_view kPatchDefinitions = R"(test.Pod object
 args [s]
 containers [@test.Container] pk=name ps=merge
 finalizers [s] ps=merge
 labels {s}
 volumes [@test.Volume] pk=name ps=merge,retainKeys
test.Container object
 env [@test.Env] pk=name ps=merge
 image s
 name s
test.Env object
 name s
 value s
test.Volume object
 emptyDir o
 hostPath o
 name s
)";

TEST(StrategicMerge, Applies) {
  struct Case {
    const char* name;
    const char* document;
    const char* patch;
    const char* result;  // null: refused
  };
  const Case cases[] = {
      {"items merge by key",
       R"({"containers":[{"name":"a","image":"1"},{"name":"b","image":"1"}]})",
       R"({"containers":[{"name":"b","image":"2"},{"name":"c","image":"3"}]})",
       R"({"containers":[{"name":"a","image":"1"},{"name":"b","image":"2"},{"name":"c","image":"3"}]})"},
      {"items merge below items",
       R"({"containers":[{"name":"a","env":[{"name":"X","value":"1"},{"name":"Y","value":"1"}]}]})",
       R"({"containers":[{"name":"a","env":[{"name":"Y","value":"2"}]}]})",
       R"({"containers":[{"name":"a","env":[{"name":"X","value":"1"},{"name":"Y","value":"2"}]}]})"},
      {"an item is deleted", R"({"containers":[{"name":"a"},{"name":"b"}]})",
       R"({"containers":[{"name":"a","$patch":"delete"}]})", R"({"containers":[{"name":"b"}]})"},
      {"a list is replaced", R"({"containers":[{"name":"a"},{"name":"b"}]})",
       R"({"containers":[{"$patch":"replace"},{"name":"c"}]})", R"({"containers":[{"name":"c"}]})"},
      {"a map is replaced", R"({"labels":{"a":"1","b":"2"}})",
       R"({"labels":{"$patch":"replace","c":"3"}})", R"({"labels":{"c":"3"}})"},
      {"null removes", R"({"labels":{"a":"1","b":"2"}})", R"({"labels":{"a":null,"z":null}})",
       R"({"labels":{"b":"2"}})"},
      {"a plain list is replaced", R"({"args":["a"]})", R"({"args":["b"]})", R"({"args":["b"]})"},
      {"a list of scalars merges where the schema says so", R"({"finalizers":["a"]})",
       R"({"finalizers":["b","a"]})", R"({"finalizers":["b","a"]})"},
      {"what a patch adds comes first", R"({"finalizers":["a"]})", R"({"finalizers":["b"]})",
       R"({"finalizers":["b","a"]})"},
      {"scalars are deleted", R"({"finalizers":["a","b"]})",
       R"({"$deleteFromPrimitiveList/finalizers":["a"]})", R"({"finalizers":["b"]})"},
      {"retained keys", R"({"volumes":[{"name":"v","emptyDir":{}}]})",
       R"({"volumes":[{"name":"v","hostPath":{"p":"/"},"$retainKeys":["name","hostPath"]}]})",
       R"({"volumes":[{"name":"v","hostPath":{"p":"/"}}]})"},
      {"an order for a merged list", R"({"containers":[{"name":"a"},{"name":"s"},{"name":"b"}]})",
       R"({"containers":[{"name":"c"}],"$setElementOrder/containers":[{"name":"b"},{"name":"c"},{"name":"a"}]})",
       R"({"containers":[{"name":"s"},{"name":"b"},{"name":"c"},{"name":"a"}]})"},
      {"an order alone", R"({"containers":[{"name":"a"},{"name":"b"}]})",
       R"({"$setElementOrder/containers":[{"name":"b"},{"name":"a"}]})",
       R"({"containers":[{"name":"b"},{"name":"a"}]})"},
      {"into nothing", R"({})",
       R"({"containers":[{"name":"a","env":[{"name":"X"}]}],"labels":{"x":null}})",
       R"({"containers":[{"name":"a","env":[{"name":"X"}]}],"labels":{}})"},
      {"into another type", R"({"labels":{"a":"1"}})", R"({"labels":"text"})",
       R"({"labels":"text"})"},
      {"a directive about nothing", R"({})",
       R"({"labels":{"$patch":"replace","a":"1"},"containers":[{"name":"a","$patch":"delete"}]})",
       R"({"containers":[]})"},
      {"an item without its key", R"({"containers":[]})", R"({"containers":[{"image":"x"}]})",
       nullptr},
      {"an unknown directive", R"({})", R"({"$patch":"burn"})", nullptr},
      {"a field that looks like a directive", R"({})", R"({"$x":1})", R"({"$x":1})"},
      {"a directive of a wrong type", R"({"a":[]})", R"({"$retainKeys":1})", nullptr},
      {"no object", R"({})", R"([])", nullptr},
  };
  const Registry registry(kPatchDefinitions);
  const SchemaPtr pod = registry.find("test.Pod");
  for (const Case& c : cases) {
    const auto got =
        apply_strategic_merge(registry, *pod, *json::parse(c.document), *json::parse(c.patch));
    ASSERT_EQ(got.has_value(), c.result != nullptr) << c.name;
    if (got) EXPECT_EQ(json::serialize(*got), c.result) << c.name;
  }
}

TEST(StrategicMerge, SaysWhatTheRealServerSays) {
  const Registry registry(kPatchDefinitions);
  const SchemaPtr pod = registry.find("test.Pod");
  const auto error = [&](const char* patch) {
    return apply_strategic_merge(registry, *pod, *json::parse(R"({"containers":[],"labels":{}})"),
                                 *json::parse(patch))
        .error();
  };
  EXPECT_EQ(error(R"({"containers":[{"image":"x"}]})").message,
            "map: map[image:x] does not contain declared merge key: name");
  EXPECT_EQ(error(R"({"containers":[{"image":"x"}]})").code, Code::kUnknown);
  EXPECT_EQ(error(R"({"labels":{"$patch":"merge"}})").message,
            "unknown patch type: merge in map: map[$patch:merge]");
  EXPECT_EQ(error(R"({"$deleteFromPrimitiveList/finalizers":1})").message,
            "invalid patch format of primitive list");
  EXPECT_EQ(error(R"({"$setElementOrder/finalizers":1})").message,
            "invalid patch format of setElementOrder list");
  EXPECT_EQ(error(R"({"$retainKeys":1})").code, Code::kBadRequest);
  EXPECT_EQ(error(R"({"containers":[{"name":"a","$patch":"merge"}]})").message,
            "merging lists cannot yet be specified in the patch");
  EXPECT_EQ(error(R"({"containers":[{"name":"a"},"x"]})").message,
            "list element types are not identical: [[] [map[name:a] x]]");
  EXPECT_EQ(error(R"({"containers":[[1]]})").code, Code::kInvalid);
  EXPECT_EQ(error(R"({"containers":[{"name":"c"}],"$setElementOrder/containers":[{"name":"b"}]})")
                .message,
            "The order in patch list:\n[map[name:c]]\n doesn't match $setElementOrder list:\n"
            "[map[name:b]]\n");
}

}  // namespace
}  // namespace skiff::schema
