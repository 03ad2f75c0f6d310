#include "schema/check.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/limits.h"
#include "schema/causes.h"
#include "schema/defaults.h"
#include "schema/openapi.h"
#include "schema/prune.h"

namespace skiff::schema {
namespace {

constexpr std::string_view kCheckDefinitions = R"(# a comment
test.Pod object
 metadata @test.Meta
 spec @test.PodSpec
test.Meta object
 labels {s}
 name s
test.PodSpec object
 containers! [@test.Container] lt=map lk=name pk=name ps=merge
 limits {@test.Quantity}
 start s:date-time
 port int-or-string
test.Container object
 count i:int32
 name! s
 protocol s default="TCP"
test.Quantity quantity
)";

Schema boat() {
  return *from_openapi(*json::parse(R"({"type":"object","properties":{"spec":{"type":"object",
    "required":["name"],"properties":{
      "name":{"type":"string","pattern":"^[a-z]+$","maxLength":5,"minLength":2},
      "crew":{"type":"integer","minimum":1,"maximum":9,"default":3},
      "kind":{"type":"string","enum":["sail","motor"]},
      "load":{"type":"number","exclusiveMinimum":true,"minimum":0,"multipleOf":0.5},
      "ports":{"type":"array","maxItems":3,"minItems":1,"x-kubernetes-list-type":"set",
               "items":{"type":"string"}},
      "masts":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["id"],
               "items":{"type":"object","properties":{"id":{"type":"integer"},
                        "sail":{"type":"string","default":"main"}}}},
      "any":{"x-kubernetes-preserve-unknown-fields":true},
      "soft":{"type":"string","nullable":true},
      "door":{"x-kubernetes-int-or-string":true},
      "tags":{"type":"object","additionalProperties":{"type":"string"},"maxProperties":2},
      "one":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},
             "oneOf":[{"required":["a"]},{"required":["b"]}]},
      "inner":{"type":"object","x-kubernetes-embedded-resource":true,
               "x-kubernetes-preserve-unknown-fields":true},
      "opts":{"type":"object","default":{},"properties":{"x":{"type":"integer","default":7}}}
    }}}})"));
}

std::vector<std::string> sentences(const std::vector<Cause>& causes) {
  std::vector<std::string> out;
  for (const Cause& c : causes) out.push_back(c.field + ": " + c.message);
  return out;
}

TEST(Check, CustomResources) {
  struct Case {
    const char* name;
    const char* spec;
    std::vector<std::string> causes;
  };
  const Case cases[] = {
      {"a good one",
       R"({"name":"abc","crew":2,"load":1.5,"ports":["a"],"soft":null,"door":"x"})",
       {}},
      {"a required field", "{}", {"spec.name: Required value"}},
      {"a wrong type",
       R"({"name":"abc","crew":"two"})",
       {R"(spec.crew: Invalid value: "string": spec.crew in body must be of type integer: "string")"}},
      {"null where it may not be",
       R"({"name":null})",
       {R"(spec.name: Invalid value: "null": spec.name in body must be of type string: "null")"}},
      {"too small",
       R"({"name":"abc","crew":0})",
       {"spec.crew: Invalid value: 0: spec.crew in body should be greater than or equal to 1"}},
      {"too large",
       R"({"name":"abc","crew":10})",
       {"spec.crew: Invalid value: 10: spec.crew in body should be less than or equal to 9"}},
      {"an exclusive bound",
       R"({"name":"abc","load":0})",
       {"spec.load: Invalid value: 0: spec.load in body should be greater than 0"}},
      {"a multiple",
       R"({"name":"abc","load":0.7})",
       {"spec.load: Invalid value: 0.7: spec.load in body should be a multiple of 0.5"}},
      {"not in the list",
       R"({"name":"abc","kind":"row"})",
       {R"(spec.kind: Unsupported value: "row": supported values: "sail", "motor")"}},
      {"a pattern and a length",
       R"({"name":"ABCDEF"})",
       {"spec.name: Too long: may not be more than 5 bytes",
        R"(spec.name: Invalid value: "ABCDEF": spec.name in body should match '^[a-z]+$')"}},
      {"a set with a double",
       R"({"name":"abc","ports":["a","a"]})",
       {R"(spec.ports[1]: Duplicate value: "a")"}},
      {"a list map with a double",
       R"({"name":"abc","masts":[{"id":1},{"id":1}]})",
       {R"(spec.masts[1]: Duplicate value: {"id":1})"}},
      {"too many",
       R"({"name":"abc","ports":["a","b","c","d"]})",
       {"spec.ports: Too many: 4: must have at most 3 items"}},
      {"too few",
       R"({"name":"abc","ports":[]})",
       {"spec.ports: Invalid value: 0: spec.ports in body should have at least 1 items"}},
      {"one of", R"({"name":"abc","one":{"a":"x"}})", {}},
      {"both of one of",
       R"({"name":"abc","one":{"a":"x","b":"y"}})",
       {R"(spec.one: Invalid value: {"a":"x","b":"y"}: "spec.one" must validate one and only one)"
        " schema (oneOf)"}},
      {"int or string",
       R"({"name":"abc","door":true})",
       {R"(spec.door: Invalid value: "boolean": spec.door in body must be of type integer,string: "boolean")"}},
      {"an embedded resource",
       R"({"name":"abc","inner":{"kind":"X"}})",
       {"spec.inner.apiVersion: Required value: must not be empty"}},
  };
  const Registry registry;
  const Schema schema = boat();
  for (const Case& c : cases) {
    json::value object;
    json::set(object, {"spec"}, *json::parse(c.spec));
    EXPECT_EQ(sentences(check(registry, schema, object)), c.causes) << c.name;
  }
}

TEST(Check, TheWholeAnswer) {
  const Registry registry;
  const auto got = check_object(
      registry, boat(), *json::parse(R"({"metadata":{"name":"b"},"spec":{"name":"abc","crew":0}})"),
      "Boat", "sea.example.org", "v1");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().message,
            "Boat.sea.example.org \"b\" is invalid: spec.crew: Invalid value: 0: spec.crew in body "
            "should be greater than or equal to 1");
  EXPECT_EQ(got.error().causes[0].reason, "FieldValueInvalid");
  EXPECT_EQ(http_code(got.error().code), 422);
}

TEST(Check, BuiltInsAreCheckedForTypes) {
  const Registry registry(kCheckDefinitions);
  const auto says = [&](const char* text) {
    const auto got =
        check_object(registry, *registry.find("test.Pod"), *json::parse(text), "Pod", "", "v1");
    return got ? std::string("fine") : got.error().message;
  };
  EXPECT_EQ(says(R"({"spec":{"limits":{"cpu":"500m","gpu":1},"port":80,"containers":null}})"),
            "fine");
  EXPECT_EQ(says(R"({"spec":{}})"), "fine");
  EXPECT_EQ(says(R"({"spec":{"containers":[{"count":"x"}]}})"),
            "Pod in version \"v1\" cannot be handled as a Pod: spec.containers[0].count: Invalid "
            "value: \"string\": spec.containers[0].count in body must be of type integer: "
            "\"string\"");
  EXPECT_NE(says(R"({"spec":{"limits":{"cpu":"lots"}}})").find("quantities must match"),
            std::string::npos);
  EXPECT_NE(says(R"({"spec":{"start":"soon"}})"), "fine");
  EXPECT_NE(says(R"({"spec":{"containers":[{"count":3000000000}]}})"), "fine");
}

TEST(Check, APodTemplateInsideACustomResourceNeedsItsFields) {
  const Registry registry(kCheckDefinitions);
  Schema job;
  job.type = Type::kObject;
  job.add_property("pod").ref = "test.Pod";
  EXPECT_EQ(
      sentences(check(registry, job, *json::parse(R"({"pod":{"spec":{"containers":[{}]}}})"))),
      std::vector<std::string>{"pod.spec.containers[0].name: Required value"});
}

TEST(Prune, RemovesAndReports) {
  const Registry registry(kCheckDefinitions);
  json::value pod = *json::parse(R"({"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"a":"b"}},
    "extra":1,"spec":{"containers":[{"name":"c","imagee":"x"}],"hostt":2}})");
  EXPECT_EQ(prune(registry, *registry.find("test.Pod"), pod),
            (std::vector<std::string>{"extra", "spec.containers[0].imagee", "spec.hostt"}));
  EXPECT_EQ(json::serialize(pod),
            R"({"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"a":"b"}},)"
            R"("spec":{"containers":[{"name":"c"}]}})");
  json::value b = *json::parse(R"({"apiVersion":"x","kind":"Boat","metadata":{"name":"b"},
    "spec":{"name":"abc","any":{"deep":1},"tags":{"x":"y"},"anchor":1,
    "inner":{"apiVersion":"v1","kind":"K","metadata":{"name":"i"},"free":1}}})");
  EXPECT_EQ(prune(registry, boat(), b), std::vector<std::string>{"spec.anchor"});
  const Error e = strict_error("Boat", "v1",
                               field_warnings(std::vector<std::string>{"twice"}, {"spec.anchor"}));
  EXPECT_EQ(e.message,
            "Boat in version \"v1\" cannot be handled as a Boat: strict decoding error: twice, "
            "unknown field \"spec.anchor\"");
}

TEST(Prune, TellsOfDoublesAndStrangersInTheOrderOfTheText) {
  EXPECT_EQ(
      field_warnings(R"({"labels":{"a":1,"a":2},"more":{"x":1,"x":2},"data":1,"data":2,
    "more":3,"last":[{"y":1}]})",
                     {"more", "last[0].y"}),
      (std::vector<std::string>{R"(duplicate field "labels.a")", R"(unknown field "more")",
                                R"(duplicate field "data")", R"(unknown field "last[0].y")"}));
  EXPECT_TRUE(field_warnings(R"({"a":1,"b":{"a":1}})", {}).empty());
}

TEST(Causes, WhatIsFoundTwiceIsSaidOnce) {
  const Cause a = required("a"), b = required("b");
  const Error once = invalid_error("Boat", "", "x", {a, a});
  EXPECT_EQ(once.message, "Boat \"x\" is invalid: a: Required value");
  EXPECT_EQ(once.causes.size(), 2u);
  EXPECT_EQ(invalid_error("Boat", "sea", "x", {a, b, a}).message,
            "Boat.sea \"x\" is invalid: [a: Required value, b: Required value]");
}

TEST(Causes, AreListedWithinABound) {
  std::vector<Cause> many;
  for (int i = 0; i < 3'000; ++i) many.push_back(required(child("a", i)));
  const Error error = invalid_error("Boat", "", "x", many);
  EXPECT_EQ(error.causes.size(), limits::kNamedCauses);
  EXPECT_TRUE(error.message.ends_with("a[999]: Required value, and others, too many to be listed]"))
      << error.message.substr(error.message.size() - 100);
}

TEST(Causes, PathsAreCut) {
  const std::string key(5'000, 'k');
  const std::string path = child("spec", key);
  EXPECT_EQ(path.size(), limits::kFieldPathBytes + 3);
  EXPECT_TRUE(path.ends_with("k..."));
  EXPECT_EQ(child(path, "more"), path);
  EXPECT_EQ(child(path, 7), path);
  EXPECT_EQ(entry(path, "more"), path);
  EXPECT_EQ(entry("spec", key).size(), limits::kFieldPathBytes + 3);
  std::string wide;
  for (int i = 0; i < 2'000; ++i) wide += "ü";
  EXPECT_TRUE(json::parse(json::serialize(json::string(child("abc", wide)))))
      << "whole characters only";
}

// Each of the fields was told with the whole path, of which one key is as long as the body: 220 KB
// took 2.3 GB. And each erasure of one of a hundred thousand fields moved all others.
TEST(Prune, SmallBodiesKillTheServerByManyFieldsBelowALongKey) {
  std::string twice, strange;
  for (int i = 0; i < 20'000; ++i) {
    twice += R"("a":1,)";
    strange += fmt::format(R"("u{}":1,)", i);
  }
  const std::string text = R"({")" + std::string(100'000, 'k') + R"(":{)" + twice + R"("z":1}})";
  const std::vector<std::string> found = duplicate_fields(text);
  EXPECT_EQ(found.size(), limits::kNamedFields);
  EXPECT_LT(found.front().size(), 2 * limits::kFieldPathBytes);
  const Registry registry(kCheckDefinitions);
  json::value boat_object = *json::parse(R"({"spec":{)" + strange + R"("name":"n"}})");
  const std::vector<std::string> removed = prune(registry, boat(), boat_object);
  EXPECT_EQ(removed.size(), limits::kNamedFields);
  EXPECT_EQ(removed.front(), "spec.u0");
  EXPECT_EQ(json::serialize(boat_object), R"({"spec":{"name":"n"}})") << "all of them are gone";
}

TEST(Prune, FindsFieldsGivenTwice) {
  EXPECT_EQ(duplicate_fields(R"({"a":1,"b":{"c":"a","c":2,"\u0063":3},"l":[{"x":1},{"x":1,"x":2}],
    "a":{"q":"\"}{,"}})"),
            (std::vector<std::string>{R"(duplicate field "b.c")", R"(duplicate field "b.c")",
                                      R"(duplicate field "l[1].x")", R"(duplicate field "a")"}));
  EXPECT_TRUE(duplicate_fields(R"({"a":{"b":1},"c":{"b":1},"d":["a","a"]})").empty());
  for (const char* broken : {"", "{", "\"", "{\"", "]]}", "{\"a\\"}) (void)duplicate_fields(broken);
}

TEST(Defaults, FillWhatIsAbsent) {
  const Registry registry(kCheckDefinitions);
  json::value b = *json::parse(R"({"spec":{"name":"abc","crew":null,"masts":[{"id":1}]}})");
  apply_defaults(registry, boat(), b);
  EXPECT_EQ(json::serialize(b),
            R"({"spec":{"name":"abc","crew":3,"masts":[{"id":1,"sail":"main"}],"opts":{"x":7}}})");
  const json::value once = b;
  apply_defaults(registry, boat(), b);
  EXPECT_EQ(b, once);
  json::value pod = *json::parse(R"({"spec":{"containers":[{"name":"c"}]}})");
  apply_defaults(registry, *registry.find("test.Pod"), pod);
  EXPECT_EQ(json::get_string(pod.at("spec").at("containers").at(0), {"protocol"}), "TCP");
}

TEST(OpenApi, RoundTrip) {
  const Schema schema = boat();
  const json::object text = to_openapi(schema);
  EXPECT_EQ(to_openapi(*from_openapi(text)), text);
}

TEST(OpenApi, RefusesWhatItCannotRead) {
  for (const char* text :
       {R"([])", R"({"type":"thing"})", R"({"type":"object","properties":[]})",
        R"({"type":"string","pattern":"("})", R"({"items":3})", R"({"enum":1})",
        R"({"required":"a"})", R"({"$ref":"elsewhere"})", R"({"x-kubernetes-list-type":"heap"})"}) {
    EXPECT_FALSE(from_openapi(*json::parse(text))) << text;
  }
}

TEST(Registry, NamesComeAndGo) {
  Registry registry(kCheckDefinitions);
  EXPECT_EQ(registry.names().size(), 5u);
  EXPECT_EQ(registry.find("nobody"), nullptr);
  const SchemaPtr spec = registry.find("test.PodSpec");
  EXPECT_EQ(spec->property("containers")->patch_merge_key, "name");
  EXPECT_TRUE(spec->property("containers")->merges_lists());
  EXPECT_TRUE(spec->requires_property("containers"));
  registry.add("test.PodSpec", {.type = Type::kString});
  EXPECT_EQ(registry.find("test.PodSpec")->type, Type::kString);
  EXPECT_EQ(spec->type, Type::kObject);
  registry.remove("test.PodSpec");
  EXPECT_EQ(registry.find("test.PodSpec"), nullptr);
}

}  // namespace
}  // namespace skiff::schema
