#include "schema/typed_fields.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "schema/openapi.h"

namespace skiff::schema {
namespace {

constexpr std::string_view kTypedFieldsDefinitions =
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta object\n"
    " finalizers [s] lt=set ps=merge\n"
    " labels {s}\n"
    " name s\n"
    " ownerReferences [@Owner] lt=map lk=uid pk=uid ps=merge\n"
    "Owner object mt=atomic\n"
    " name s\n"
    " uid! s\n"
    "io.k8s.apimachinery.pkg.runtime.RawExtension o\n"
    "Pod object\n"
    " apiVersion s\n"
    " kind s\n"
    " metadata @io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta\n"
    " spec @PodSpec\n"
    " status o\n"
    "PodSpec object\n"
    " containers [@Container] lt=map lk=name pk=name ps=merge\n"
    " nodeSelector {s} mt=atomic\n"
    " raw @io.k8s.apimachinery.pkg.runtime.RawExtension\n"
    " replicas i:int32\n"
    " host b\n"
    " selector @Selector\n"
    "Selector object mt=atomic\n"
    " matchLabels {s}\n"
    "Container object\n"
    " image s\n"
    " name! s\n"
    " args [s]\n"
    " limit @Quantity\n"
    " ports [@Port] lt=map lk=containerPort,protocol\n"
    "Quantity quantity\n"
    "Port object\n"
    " containerPort! i:int32\n"
    " hostPort i:int32\n"
    " protocol s default=\"TCP\"";

constexpr std::string_view kBoat = R"({"type":"object","properties":{"spec":{"type":"object",
  "properties":{"crew":{"type":"integer"},
    "tags":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
    "decks":{"type":"array","x-kubernetes-list-type":"map",
      "x-kubernetes-list-map-keys":["level","side"],"items":{"type":"object","properties":{
        "level":{"type":"integer"},"side":{"type":"string","default":"port"},
        "guns":{"type":"integer"}}}},
    "atom":{"type":"object","x-kubernetes-map-type":"atomic","properties":{"a":{"type":"string"}}},
    "list":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"}}}},
    "map":{"type":"object","additionalProperties":{"type":"object",
      "properties":{"q":{"type":"integer"}}}},
    "any":{"type":"object","x-kubernetes-preserve-unknown-fields":true,
      "properties":{"known":{"type":"object","properties":{"x":{"type":"integer"}}}}},
    "ios":{"x-kubernetes-int-or-string":true}}}}})";

class TypedFieldsTest : public testing::Test {
 protected:
  static json::value parse(std::string_view text) {
    auto parsed = json::parse(text);
    EXPECT_TRUE(parsed) << text;
    return parsed ? *parsed : json::value();
  }
  static std::string text(const FieldSet& set) { return json::serialize(set.to_json()); }
  static SchemaPtr read(std::string_view openapi) {
    auto schema = from_openapi(parse(openapi));
    EXPECT_TRUE(schema) << schema.error().message;
    return std::make_shared<const Schema>(std::move(*schema));
  }

  Registry registry{kTypedFieldsDefinitions};
  TypedFields pod{registry, registry.find("Pod")};
  TypedFields boat{registry, read(kBoat)};
  TypedFields loose{registry, nullptr};
};

TEST_F(TypedFieldsTest, LeavesOfABuiltInObject) {
  EXPECT_EQ(
      text(pod.leaf_set(parse(
          R"({"apiVersion":"v1","metadata":{"name":"p","labels":{"a":"b"},"finalizers":["f"],
                    "ownerReferences":[{"uid":"1","name":"o"}]},
                    "spec":{"containers":[{"name":"c","image":"i","args":["x"],"limit":"1",
                      "ports":[{"containerPort":80}]}],"nodeSelector":{"a":"b"},
                      "raw":{"a":{"b":1}},"selector":{"matchLabels":{"x":"y"}}},"status":{}})"))),
      R"({"f:apiVersion":{},"f:metadata":{"f:finalizers":{"v:\"f\"":{}},)"
      R"("f:labels":{"f:a":{}},"f:name":{},"f:ownerReferences":{"k:{\"uid\":\"1\"}":{}}},)"
      R"("f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:args":{},"f:image":{},)"
      R"("f:limit":{},"f:name":{},"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":)"
      R"({".":{},"f:containerPort":{}}}}},"f:nodeSelector":{},"f:raw":{},"f:selector":{}},)"
      R"("f:status":{}})");
}

TEST_F(TypedFieldsTest, LeavesOfACustomObject) {
  EXPECT_EQ(
      text(boat.leaf_set(parse(
          R"({"spec":{"crew":3,"tags":["x","y"],"decks":[{"level":1,"guns":4},
              {"level":2,"side":"lee"}],"atom":{"a":"1"},"list":[{"a":"1"}],
              "map":{"m":{"q":1},"n":{}},"any":{"p":{"q":[1,2]},"r":1,"known":{"x":1,"y":{"z":2}}},
              "ios":"5%"}})"))),
      R"({"f:spec":{"f:any":{"f:known":{"f:x":{},"f:y":{".":{},"f:z":{}}},"f:p":{".":{},"f:q":{}},)"
      R"("f:r":{}},"f:atom":{},"f:crew":{},"f:decks":{"k:{\"level\":1,\"side\":\"port\"}":)"
      R"({".":{},"f:guns":{},"f:level":{}},"k:{\"level\":2,\"side\":\"lee\"}":{".":{},"f:level":{},)"
      R"("f:side":{}}},"f:ios":{},"f:list":{},"f:map":{"f:m":{".":{},"f:q":{}},"f:n":{}},)"
      R"("f:tags":{"v:\"x\"":{},"v:\"y\"":{}}}})");
}

TEST_F(TypedFieldsTest, LeavesOfAnObjectWithoutSchemaAreDeduced) {
  EXPECT_EQ(text(loose.leaf_set(parse(
                R"({"metadata":{"labels":{"a":"b"}},"spec":{"a":{"b":[1],"c":{}},"d":null}})"))),
            R"({"f:metadata":{"f:labels":{"f:a":{}}},)"
            R"("f:spec":{".":{},"f:a":{".":{},"f:b":{},"f:c":{}},"f:d":{}}})");
}

TEST_F(TypedFieldsTest, AnItemThatStandsTwiceIsOwnedWhole) {
  EXPECT_EQ(
      text(boat.leaf_set(parse(
          R"({"spec":{"decks":[{"level":1,"guns":1},{"level":1,"guns":2}],"tags":["x","x"]}})"))),
      R"({"f:spec":{"f:decks":{"k:{\"level\":1,\"side\":\"port\"}":{}},)"
      R"("f:tags":{"v:\"x\"":{}}}})");
}

struct Compared {
  const char* name;
  const char* before;
  const char* after;
  const char* changed;
  const char* removed;
};

TEST_F(TypedFieldsTest, ComparesBuiltInObjects) {
  const Compared cases[] = {
      {"nothing", R"({"spec":{"replicas":1}})", R"({"spec":{"replicas":1}})", "{}", "{}"},
      {"a number is a number", R"({"spec":{"replicas":1}})", R"({"spec":{"replicas":1.0}})", "{}",
       "{}"},
      {"a new field", R"({"spec":{}})", R"({"spec":{"replicas":1}})",
       R"({"f:spec":{"f:replicas":{}}})", "{}"},
      {"another value", R"({"spec":{"replicas":2}})", R"({"spec":{"replicas":1}})",
       R"({"f:spec":{"f:replicas":{}}})", "{}"},
      {"a field that goes", R"({"spec":{"replicas":2}})", R"({"spec":{}})", "{}",
       R"({"f:spec":{"f:replicas":{}}})"},
      {"a map that comes", R"({"metadata":{}})", R"({"metadata":{"labels":{"a":"b"}}})",
       R"({"f:metadata":{"f:labels":{".":{},"f:a":{}}}})", "{}"},
      {"a map that goes", R"({"metadata":{"labels":{"a":"b"}}})", R"({"metadata":{}})", "{}",
       R"({"f:metadata":{"f:labels":{".":{},"f:a":{}}}})"},
      {"an empty map that comes", R"({"metadata":{}})", R"({"metadata":{"labels":{}}})",
       R"({"f:metadata":{"f:labels":{}}})", "{}"},
      {"an item that comes", R"({"spec":{"containers":[]}})",
       R"({"spec":{"containers":[{"name":"c","image":"i"}]}})",
       R"({"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{},"f:name":{}}}}})",
       "{}"},
      {"an item that changes",
       R"({"spec":{"containers":[{"name":"c","image":"i"},{"name":"d","image":"i"}]}})",
       R"({"spec":{"containers":[{"name":"d","image":"j"},{"name":"c","image":"i"}]}})",
       R"({"f:spec":{"f:containers":{"k:{\"name\":\"d\"}":{"f:image":{}}}}})", "{}"},
      {"an item that goes", R"({"spec":{"containers":[{"name":"c"},{"name":"d"}]}})",
       R"({"spec":{"containers":[{"name":"d"}]}})", "{}",
       R"({"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:name":{}}}}})"},
      {"a list that is one value", R"({"spec":{"containers":[{"name":"c","args":["a"]}]}})",
       R"({"spec":{"containers":[{"name":"c","args":["a","b"]}]}})",
       R"({"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{"f:args":{}}}}})", "{}"},
      {"a map that is one value", R"({"spec":{"selector":{"matchLabels":{"a":"b"}}}})",
       R"({"spec":{"selector":{"matchLabels":{"a":"c"}}}})", R"({"f:spec":{"f:selector":{}}})",
       "{}"},
      {"a set", R"({"metadata":{"finalizers":["a","b"]}})",
       R"({"metadata":{"finalizers":["b","c"]}})",
       R"({"f:metadata":{"f:finalizers":{"v:\"c\"":{}}}})",
       R"({"f:metadata":{"f:finalizers":{"v:\"a\"":{}}}})"},
      {"free form", R"({"status":{"a":{"b":1}}})", R"({"status":{"a":{"c":1}}})",
       R"({"f:status":{"f:a":{"f:c":{}}}})", R"({"f:status":{"f:a":{"f:b":{}}}})"},
      {"another shape", R"({"status":{"a":{"b":1}}})", R"({"status":{"a":5}})",
       R"({"f:status":{"f:a":{}}})", R"({"f:status":{"f:a":{"f:b":{}}}})"},
      {"twice before and after", R"({"metadata":{"finalizers":["a","a"]}})",
       R"({"metadata":{"finalizers":["a","a","a"]}})",
       R"({"f:metadata":{"f:finalizers":{"v:\"a\"":{}}}})", "{}"},
      {"twice before", R"({"metadata":{"finalizers":["a","a"]}})",
       R"({"metadata":{"finalizers":["a"]}})", R"({"f:metadata":{"f:finalizers":{"v:\"a\"":{}}}})",
       R"({"f:metadata":{"f:finalizers":{"v:\"a\"":{}}}})"},
      {"null comes for nothing", R"({"spec":{"replicas":null}})", R"({"spec":{"replicas":1}})",
       R"({"f:spec":{"f:replicas":{}}})", "{}"},
  };
  for (const Compared& c : cases) {
    const auto change = pod.compare(parse(c.before), parse(c.after));
    EXPECT_EQ(text(change.changed), c.changed) << c.name;
    EXPECT_EQ(text(change.removed), c.removed) << c.name;
  }
}

TEST_F(TypedFieldsTest, WhatABlankObjectHasIsNotNew) {
  const json::value blank = parse(R"({"metadata":{},"spec":{"containers":null},"status":{}})");
  const json::value after =
      parse(R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c"}]},"status":{"a":1}})");
  EXPECT_EQ(text(pod.compare(blank, after).changed), text(pod.compare({}, after, blank).changed));
  EXPECT_EQ(text(pod.compare(json::object(), after, blank).changed),
            R"({"f:metadata":{"f:name":{}},"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":)"
            R"({".":{},"f:name":{}}}},"f:status":{"f:a":{}}})");
  // Without it the parts themselves are.
  EXPECT_EQ(text(pod.compare(json::object(), parse(R"({"status":{"a":1}})")).changed),
            R"({"f:status":{".":{},"f:a":{}}})");
  EXPECT_TRUE(pod.compare(json::object(), parse(R"({"status":{}})"), blank).changed.empty());
}

TEST_F(TypedFieldsTest, IgnoredFieldsAreNotCompared) {
  const FieldSet ignored = FieldSet::of({{"status"}, {"metadata", "labels"}});
  const auto change = pod.compare(
      parse(R"({"metadata":{"labels":{"a":"b"}},"status":{"x":1}})"),
      parse(R"({"metadata":{"labels":{"a":"c"},"name":"n"},"status":{"y":1}})"), {}, ignored);
  EXPECT_EQ(text(change.changed), R"({"f:metadata":{"f:name":{}}})");
  EXPECT_TRUE(change.removed.empty());
}

struct Merged {
  const char* name;
  const char* live;
  const char* config;
  const char* result;
};

TEST_F(TypedFieldsTest, MergesAConfiguration) {
  const Merged cases[] = {
      {"fields side by side", R"({"spec":{"crew":1}})", R"({"spec":{"ios":2}})",
       R"({"spec":{"crew":1,"ios":2}})"},
      {"the configuration wins", R"({"spec":{"crew":1}})", R"({"spec":{"crew":2}})",
       R"({"spec":{"crew":2}})"},
      {"a whole value is replaced", R"({"spec":{"list":[{"a":"1"}],"atom":{"a":"1"}}})",
       R"({"spec":{"list":[],"atom":{}}})", R"({"spec":{"list":[],"atom":{}}})"},
      {"a set keeps the new order first", R"({"spec":{"tags":["x","y"]}})",
       R"({"spec":{"tags":["z","x"]}})", R"({"spec":{"tags":["z","x","y"]}})"},
      {"new items at the end", R"({"spec":{"tags":["a","b"]}})", R"({"spec":{"tags":["c"]}})",
       R"({"spec":{"tags":["a","b","c"]}})"},
      {"shared ones in the new order", R"({"spec":{"tags":["a","b","c"]}})",
       R"({"spec":{"tags":["c","a"]}})", R"({"spec":{"tags":["b","c","a"]}})"},
      {"new ones between", R"({"spec":{"tags":["a","b"]}})", R"({"spec":{"tags":["a","x","b"]}})",
       R"({"spec":{"tags":["a","x","b"]}})"},
      {"items by key", R"({"spec":{"decks":[{"level":1,"side":"port","guns":2}]}})",
       R"({"spec":{"decks":[{"level":2},{"level":1,"guns":3}]}})",
       R"({"spec":{"decks":[{"level":2},{"level":1,"side":"port","guns":3}]}})"},
      {"live ones that stand twice are replaced by one", R"({"spec":{"tags":["a","a","b"]}})",
       R"({"spec":{"tags":["a"]}})", R"({"spec":{"tags":["a","b"]}})"},
      {"empty over nothing", R"({"spec":{}})", R"({"spec":{"map":{}}})", R"({"spec":{"map":{}}})"},
      {"empty over something keeps it", R"({"spec":{"map":{"m":{"q":1}}}})",
       R"({"spec":{"map":{}}})", R"({"spec":{"map":{"m":{"q":1}}}})"},
      {"another shape", R"({"spec":{"any":{"p":{"a":1}}}})", R"({"spec":{"any":{"p":[1]}}})",
       R"({"spec":{"any":{"p":[1]}}})"},
  };
  for (const Merged& c : cases) {
    const auto merged = boat.merge(parse(c.live), parse(c.config));
    ASSERT_TRUE(merged) << c.name;
    EXPECT_EQ(json::serialize(*merged), c.result) << c.name;
  }
}

TEST_F(TypedFieldsTest, TakesFieldsOut) {
  const Merged cases[] = {
      {"a field", R"({"spec":{"crew":1,"ios":2}})", R"({"f:spec":{"f:crew":{}}})",
       R"({"spec":{"ios":2}})"},
      {"an item", R"({"spec":{"tags":["x","y"]}})", R"({"f:spec":{"f:tags":{"v:\"x\"":{}}}})",
       R"({"spec":{"tags":["y"]}})"},
      {"a field of an item", R"({"spec":{"decks":[{"level":1,"guns":2},{"level":2,"guns":2}]}})",
       R"({"f:spec":{"f:decks":{"k:{\"level\":1,\"side\":\"port\"}":{"f:guns":{}}}}})",
       R"({"spec":{"decks":[{"level":1},{"level":2,"guns":2}]}})"},
      {"what is emptied stays as null", R"({"spec":{"tags":["x"],"crew":1}})",
       R"({"f:spec":{"f:tags":{"v:\"x\"":{}}}})", R"({"spec":{"tags":null,"crew":1}})"},
      {"nothing", R"({"spec":{"crew":1}})", "{}", R"({"spec":{"crew":1}})"},
  };
  for (const Merged& c : cases) {
    const auto fields = FieldSet::from_json(parse(c.config));
    ASSERT_TRUE(fields) << c.name;
    EXPECT_EQ(json::serialize(boat.remove(parse(c.live), *fields)), c.result) << c.name;
  }
}

TEST_F(TypedFieldsTest, SaysWhatCannotBeApplied) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"spec":{"foo":1}})", ".spec.foo: field not declared in schema"},
      {R"({"spec":{"replicas":"x"}})",
       ".spec.replicas: expected numeric (int or float), got string"},
      {R"({"metadata":{"labels":{"a":1}}})",
       ".metadata.labels.a: expected string, got &value.valueUnstructured{Value:1}"},
      {R"({"metadata":{"labels":"x"}})", ".metadata.labels: expected map, got &{x}"},
      {R"({"spec":{"host":"x"}})", ".spec.host: expected boolean, got &{x}"},
      {R"({"spec":{"containers":{"a":1}}})", ".spec.containers: expected list, got &{map[a:1]}"},
      {R"({"spec":{"containers":[{"name":"c","limit":[1,"a"]}]}})",
       ".spec.containers[name=\"c\"].limit: expected any scalar, got &{[1 a]}"},
      {R"({"spec":{"containers":[{"name":"c"},{"name":"c"}]}})",
       ".spec.containers: duplicate entries for key [name=\"c\"]"},
      {R"({"metadata":{"finalizers":["a","a"]}})",
       ".metadata.finalizers: duplicate entries for key [=\"a\"]"},
      {R"({"metadata":{"finalizers":[{}]}})",
       ".metadata.finalizers: element 0: associative list without keys has an element that's a map "
       "type"},
      {R"({"spec":{"containers":[null]}})",
       ".spec.containers: element 0: associative list with keys may not have a null element"},
      {R"({"spec":{"replicas":"x","host":1}})",
       "errors:\n  .spec.replicas: expected numeric (int or float), got string\n"
       "  .spec.host: expected boolean, got &{1}"},
  };
  for (const auto& [config, error] : cases) {
    const auto checked = pod.check(parse(config));
    ASSERT_FALSE(checked) << config;
    EXPECT_EQ(checked.error().message, error);
  }
  // An item whose key is a plain field of the server's type has it, if only as "".
  EXPECT_TRUE(pod.check(parse(R"({"spec":{"containers":[{"image":"i"}]}})")));
  const auto keyless = boat.check(parse(R"({"spec":{"decks":[{"guns":1}]}})"));
  EXPECT_TRUE(keyless);
  EXPECT_TRUE(pod.check(parse(R"({"spec":{"raw":{"x":[1,{"y":null}]},"replicas":null}})")));
  EXPECT_FALSE(boat.check(parse(R"({"status":{}})")));
  EXPECT_TRUE(loose.check(parse(R"({"spec":{"a":[{}]}})")));
}

TEST_F(TypedFieldsTest, NamedFieldsAreHadWithWhatIsBelow) {
  const auto set = FieldSet::from_json(parse(
      R"({"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{"f:ports":{"k:{\"containerPort\":1}":{".":{}}}}}},"f:status":{"f:x":{"f:y":{}}}})"));
  EXPECT_EQ(text(pod.with_parents(*set)),
            R"({"f:metadata":{".":{},"f:labels":{".":{},"f:a":{}}},"f:spec":{".":{},)"
            R"("f:containers":{".":{},"k:{\"name\":\"c\"}":{"f:ports":{".":{},)"
            R"("k:{\"containerPort\":1}":{}}}}},"f:status":{".":{},"f:x":{"f:y":{}}}})");
}

TEST_F(TypedFieldsTest, WhatBecameOneValueIsOwnedAsOne) {
  const auto set = FieldSet::from_json(
      parse(R"({"f:spec":{"f:atom":{"f:a":{}},"f:crew":{},"f:list":{"i:0":{"f:a":{}}},)"
            R"("f:tags":{"v:\"x\"":{}},"f:any":{"f:p":{"f:q":{}}}}})"));
  EXPECT_EQ(text(boat.reconciled(*set)),
            R"({"f:spec":{"f:any":{"f:p":{"f:q":{}}},"f:atom":{},"f:crew":{},"f:list":{},)"
            R"("f:tags":{"v:\"x\"":{}}}})");
}

// An object of the boats' schema with some of its fields.
json::value random_boat(Random& random) {
  json::object spec;
  const auto number = [&] { return static_cast<std::int64_t>(random.below(3)); };
  const auto letter = [&] { return json::string(1, static_cast<char>('a' + random.below(3))); };
  if (random.chance(50)) spec["crew"] = number();
  spec["ios"] = random.chance(50) ? json::value(number()) : json::value(letter());
  if (random.chance(50)) spec["atom"] = json::object{{"a", letter()}};
  if (random.chance(50)) spec["list"] = json::array{json::object{{"a", letter()}}};
  if (random.chance(50)) spec["map"] = json::object{{letter(), json::object{{"q", number()}}}};
  if (random.chance(50)) {
    spec["any"] = json::object{{letter(), json::object{{letter(), number()}}}, {"z", number()}};
  }
  if (random.chance(60)) {
    json::array tags;
    for (const char* tag : {"x", "y", "z"}) {
      if (random.chance(50)) tags.emplace_back(tag);
    }
    if (random.chance(50)) std::reverse(tags.begin(), tags.end());
    if (!tags.empty()) spec["tags"] = std::move(tags);
  }
  if (random.chance(60)) {
    json::array decks;
    for (std::int64_t level = 0; level < 3; ++level) {
      if (random.chance(50)) continue;
      json::object deck{{"level", level}};
      if (random.chance(50)) deck["side"] = "lee";
      if (random.chance(50)) deck["guns"] = number();
      decks.emplace_back(std::move(deck));
    }
    if (!decks.empty()) spec["decks"] = std::move(decks);
  }
  return json::object{{"spec", std::move(spec)}};
}

TEST_F(TypedFieldsTest, LawsOfRandomObjects) {
  Random random(5);
  for (int round = 0; round < 400; ++round) {
    const json::value a = random_boat(random), b = random_boat(random);
    const std::string both = json::serialize(a) + " " + json::serialize(b);
    const FieldSet leaves = boat.leaf_set(a);
    ASSERT_EQ(*FieldSet::from_json(leaves.to_json()), leaves) << both;
    ASSERT_TRUE(boat.check(a)) << both;
    ASSERT_EQ(boat.reconciled(leaves), leaves) << both;
    // Merging twice is merging once, and what was merged is there.
    const json::value once = *boat.merge(a, b);
    ASSERT_EQ(*boat.merge(once, b), once) << both;
    ASSERT_TRUE(boat.compare(once, *boat.merge(once, b)).changed.empty()) << both;
    ASSERT_TRUE(boat.leaf_set(b).without(boat.leaf_set(once)).empty()) << both;
    ASSERT_TRUE(boat.compare(a, once).removed.empty()) << both;
    // A comparison tells everything that must be taken and given.
    const auto change = boat.compare(a, b);
    ASSERT_EQ(change.changed.empty() && change.removed.empty(),
              boat.compare(b, a).changed.empty() && boat.compare(b, a).removed.empty())
        << both;
    ASSERT_FALSE(change.removed.meets(boat.leaf_set(b))) << both;
    // Taking out all leaves leaves nothing.
    ASSERT_TRUE(boat.leaf_set(boat.remove(a, boat.with_parents(leaves))).empty()) << both;
  }
}

}  // namespace
}  // namespace skiff::schema
