#include "api/apiextensions/crd.h"

#include <gtest/gtest.h>

#include "api/test_kind.h"

namespace skiff::api {
namespace {

using testing::complaints;
using testing::defaulted;
using testing::Lines;
using testing::parsed;
using testing::warned;

std::string definition(std::string_view schema, std::string_view version_more = "",
                       std::string_view spec_more = "") {
  return R"({"metadata":{"name":"boats.sea.org"},"spec":{"group":"sea.org","scope":"Namespaced",)"
         R"("names":{"plural":"boats","kind":"Boat"},"versions":[{"name":"v1","served":true,)"
         R"("storage":true,"schema":{"openAPIV3Schema":)" +
         std::string(schema) + "}" + std::string(version_more) + "}]" + std::string(spec_more) +
         "}}";
}

Lines with_schema(std::string_view schema) { return complaints(crd_kind(), definition(schema)); }

// Complaints about one property of an object, with the place shortened to "p".
Lines with_property(std::string_view schema) {
  const std::string place = "spec.validation.openAPIV3Schema.properties[p]";
  Lines out = with_schema(R"({"type":"object","properties":{"p":)" + std::string(schema) + "}}");
  for (std::string& line : out) {
    const std::size_t at = line.find(place);
    if (at != std::string::npos) line.replace(at, place.size(), "p");
  }
  return out;
}

TEST(Crd, Defaults) {
  const json::value crd = defaulted(crd_kind(), definition(R"({"type":"object"})"));
  EXPECT_EQ(json::get_string(crd, {"spec", "names", "singular"}), "boat");
  EXPECT_EQ(json::get_string(crd, {"spec", "names", "listKind"}), "BoatList");
  EXPECT_EQ(json::get_string(crd, {"spec", "conversion", "strategy"}), "None");
  EXPECT_EQ(with_schema(R"({"type":"object"})"), Lines{});
}

TEST(Crd, NamesAndVersions) {
  EXPECT_EQ(
      complaints(crd_kind(), R"({"metadata":{"name":"x"},"spec":{"group":"sea","scope":"Big",)"
                             R"("names":{"plural":"boats","kind":"Boat"},"versions":[)"
                             R"({"name":"v1","schema":{"openAPIV3Schema":{"type":"object"}}},)"
                             R"({"name":"v1"}]}})")
          .size(),
      7u);
  const Lines lines = complaints(
      crd_kind(),
      R"({"metadata":{"name":"."},"spec":{"names":{"shortNames":["A"]},"versions":[]}})");
  EXPECT_EQ(lines[0], "spec.group: Required value");
  EXPECT_EQ(lines[1], "spec.scope: Required value");
  EXPECT_EQ(lines[2],
            "spec.versions: Invalid value: []: must have exactly one version marked as storage "
            "version");
  EXPECT_EQ(lines[3], "spec.names.plural: Required value");
  EXPECT_EQ(lines[6], "spec.names.listKind: Required value");
  EXPECT_TRUE(lines[7].starts_with("spec.names.shortNames[0]: Invalid value: \"A\": a DNS-1035"));
}

TEST(Crd, SchemasAreStructural) {
  EXPECT_EQ(with_property("{}"),
            Lines{"p.type: Required value: must not be empty for specified object fields"});
  EXPECT_EQ(with_property(R"({"type":"array"})"),
            Lines{"p.items: Required value: must be specified"});
  EXPECT_EQ(with_property(R"({"type":"array","items":{}})"),
            Lines{"p.items.type: Required value: must not be empty for specified array items"});
  EXPECT_EQ(with_property(R"({"x-kubernetes-int-or-string":true})"), Lines{});
  EXPECT_EQ(with_property(R"({"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},)"
                          R"({"type":"string"}]})"),
            Lines{});
  EXPECT_EQ(with_property(R"({"type":"string","anyOf":[{"type":"string","description":"x"}]})"),
            (Lines{"p.anyOf[0].description: Forbidden: must be empty to be structural",
                   "p.anyOf[0].type: Forbidden: must be empty to be structural"}));
  EXPECT_EQ(with_schema(R"({"type":"object","allOf":[{"properties":{"a":{"minimum":1}}}]})"),
            Lines{"spec.validation.openAPIV3Schema.properties[a]: Required value: because it is "
                  "defined in spec.validation.openAPIV3Schema.allOf[0].properties[a]"});
  EXPECT_EQ(
      with_schema(R"({"type":"string"})"),
      Lines{R"(spec.validation.openAPIV3Schema.type: Invalid value: "string": must be object )"
            "at the root"});
  EXPECT_EQ(
      with_schema(R"({"type":"object","properties":{"metadata":{"type":"object",)"
                  R"("properties":{"labels":{"type":"object"}}}}})"),
      Lines{"spec.validation.openAPIV3Schema.properties[metadata]: Forbidden: must not specify "
            "anything other than name and generateName, but metadata is implicitly "
            "specified"});
  EXPECT_EQ(with_property(R"({"type":"object","x-kubernetes-embedded-resource":true})"),
            Lines{"p.properties: Required value: must not be empty if "
                  "x-kubernetes-embedded-resource is true without "
                  "x-kubernetes-preserve-unknown-fields"});
}

TEST(Crd, SchemasUseWhatIsSupported) {
  EXPECT_EQ(with_property(R"({"$ref":"x"})"), Lines{"p.$ref: Forbidden: $ref is not supported"});
  EXPECT_EQ(with_property(R"({"type":"array","items":{"type":"string"},"uniqueItems":true})"),
            Lines{"p.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime "
                  "complexity becomes quadratic"});
  EXPECT_EQ(
      with_property(R"({"type":"object","properties":{"a":{"type":"string"}},)"
                    R"("additionalProperties":{"type":"string"}})"),
      Lines{"p.additionalProperties: Forbidden: additionalProperties and properties are mutual "
            "exclusive"});
  EXPECT_EQ(with_property(R"({"type":"string","pattern":"("})"),
            Lines{"p.pattern: Invalid value: \"(\": must "
                  "be a valid regular expression, but isn't: error parsing regexp: missing closing "
                  "): `(`"});
  EXPECT_EQ(with_property(R"({"type":"string","default":5})"),
            Lines{"p.default: Invalid value: "
                  "\"integer\":  in body must be of type string: \"integer\""});
  EXPECT_EQ(with_property(R"({"type":"thing"})"),
            Lines{R"(p.type: Unsupported value: "thing": supported values: "array", "boolean", )"
                  R"("integer", "number", "object", "string")"});
}

TEST(Crd, ListsAreMapsBySomeKey) {
  EXPECT_EQ(with_property(R"({"type":"array","x-kubernetes-list-type":"map",)"
                          R"("x-kubernetes-list-map-keys":["k"],"items":{"type":"object",)"
                          R"("required":["k"],"properties":{"k":{"type":"string"}}}})"),
            Lines{});
  EXPECT_EQ(with_property(R"({"type":"array","x-kubernetes-list-type":"map","items":)"
                          R"({"type":"object"}})"),
            Lines{"p.x-kubernetes-list-map-keys: Required value: must not be empty if "
                  "x-kubernetes-list-type is map"});
  EXPECT_EQ(
      with_property(R"({"type":"array","x-kubernetes-list-type":"map",)"
                    R"("x-kubernetes-list-map-keys":["k","x"],"items":{"type":"object",)"
                    R"("properties":{"k":{"type":"string","nullable":true}}}})"),
      (Lines{R"(p.x-kubernetes-list-map-keys: Invalid value: ["k","x"]: entries must all be )"
             "names of item properties",
             "p.items.properties[k].default: Required value: this property is in "
             "x-kubernetes-list-map-keys, so it must have a default or be a required property",
             "p.items.properties[k].nullable: Forbidden: this property is in "
             "x-kubernetes-list-map-keys, so it cannot be nullable"}));
  EXPECT_EQ(with_property(R"({"type":"array","x-kubernetes-list-type":"set","items":)"
                          R"({"type":"object"}})"),
            Lines{"p.items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a "
                  "list with x-kubernetes-list-type=set"});
  EXPECT_EQ(with_property(R"({"type":"string","x-kubernetes-list-type":"set"})"),
            Lines{R"(p.type: Invalid value: "string": must be array if x-kubernetes-list-type is )"
                  "specified"});
}

TEST(Crd, DefaultsFitTheirPlace) {
  EXPECT_EQ(with_property(R"({"type":"integer","default":1})"), Lines{});
  const Lines wrong = with_property(R"({"type":"integer","default":"x"})");
  ASSERT_EQ(wrong.size(), 1u);
  EXPECT_TRUE(wrong[0].starts_with("p.default: Invalid value: \"string\": ")) << wrong[0];
  EXPECT_EQ(with_property(R"({"type":"object","default":{"b":1},"properties":{"a":)"
                          R"({"type":"string"}}})"),
            Lines{R"(p.default: Invalid value: {"b":1}: must not have unknown fields)"});
  EXPECT_EQ(
      with_schema(R"({"type":"object","properties":{"kind":{"type":"string","default":)"
                  R"("Boat"}}})"),
      Lines{"spec.validation.openAPIV3Schema.properties[kind].default: Forbidden: must not be "
            "set in top-level kind"});
}

TEST(Crd, ColumnsScaleAndFields) {
  const auto with = [](std::string_view more) {
    return complaints(crd_kind(),
                      definition(R"({"type":"object","properties":{"spec":{"type":"object",)"
                                 R"("properties":{"color":{"type":"string"},"list":{"type":)"
                                 R"("array","items":{"type":"string"}}}}}})",
                                 more));
  };
  EXPECT_EQ(with(R"(,"additionalPrinterColumns":[{"type":"date","jsonPath":"x"}])"),
            (Lines{"spec.additionalPrinterColumns[0].name: Required value",
                   R"(spec.additionalPrinterColumns[0].JSONPath: Invalid value: "x": must be a )"
                   "simple json path starting with ."}));
  EXPECT_EQ(with(R"(,"subresources":{"scale":{"specReplicasPath":".x","labelSelectorPath":)"
                 R"(".metadata.a"}})"),
            (Lines{R"(spec.subresources.scale.specReplicasPath: Invalid value: ".x": should be a )"
                   "json path under .spec",
                   "spec.subresources.scale.statusReplicasPath: Required value",
                   R"(spec.subresources.scale.labelSelectorPath: Invalid value: ".metadata.a": )"
                   "should be a json path under either .spec or .status"}));
  EXPECT_EQ(with(R"(,"selectableFields":[{"jsonPath":".spec.color"}])"), Lines{});
  EXPECT_EQ(
      with(R"(,"selectableFields":[{"jsonPath":".spec.none"},{"jsonPath":".spec.list"}])"),
      (Lines{R"(spec.selectableFields[0].jsonPath: Invalid value: ".spec.none": is an invalid )"
             "path: does not refer to a valid field",
             R"(spec.selectableFields[1].jsonPath: Invalid value: ".spec.list": must point to )"
             "a field of type string, boolean or integer. Enum string fields and strings with "
             "formats are allowed."}));
}

TEST(Crd, Updates) {
  json::value old = defaulted(crd_kind(), definition(R"({"type":"object"})"));
  json::set(old, {"status", "conditions"},
            json::array{json::object{{"type", "Established"}, {"status", "True"}}});
  json::value next = old;
  json::set(next, {"spec", "scope"}, "Cluster");
  const auto causes = crd_kind().validate(next, {.old = &old});
  ASSERT_EQ(causes.size(), 1u);
  EXPECT_EQ(causes[0].field, "spec.scope");
  EXPECT_EQ(causes[0].message, "Invalid value: \"Cluster\": field is immutable");
  // A version that may still be on disk cannot go.
  json::set(old, {"status", "storedVersions"}, json::array{"v0", "v1"});
  const auto dropped = crd_kind().validate(old, {.old = &old});
  ASSERT_EQ(dropped.size(), 1u);
  EXPECT_EQ(dropped[0].field, "status.storedVersions[0]");
}

TEST(Crd, WhatIsNotServed) {
  EXPECT_EQ(complaints(crd_kind(), definition(R"({"type":"object"})", "",
                                              R"(,"conversion":{"strategy":"Webhook"})")),
            (Lines{"spec.conversion.webhookClientConfig: Required value: required when strategy is "
                   "set to Webhook",
                   "spec.conversion.conversionReviewVersions: Required value"}));
  EXPECT_EQ(complaints(crd_kind(), definition(R"({"type":"object"})", "",
                                              R"(,"conversion":{"strategy":"Webhook","webhook":{
                                      "clientConfig":{},"conversionReviewVersions":["v1"]}})")),
            Lines{"spec.conversion.webhookClientConfig: Required value: exactly one of url or "
                  "service is required"});
  EXPECT_EQ(complaints(crd_kind(), definition(R"({"type":"object"})", "",
                                              R"(,"conversion":{"strategy":"Webhook","webhook":{
                                      "clientConfig":{"url":"https://x"},
                                      "conversionReviewVersions":["v1"]}})")),
            Lines{"spec.conversion.strategy: Forbidden: conversion webhooks are not served here; "
                  "use None"});
  EXPECT_EQ(complaints(crd_kind(),
                       definition(R"({"type":"object"})", "", R"(,"preserveUnknownFields":true)")),
            Lines{"spec.preserveUnknownFields: Invalid value: true: cannot set to true, set "
                  "x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema "
                  "instead"});
  EXPECT_EQ(warned(crd_kind(), definition(R"({"type":"object"})")), Lines{});
  EXPECT_EQ(
      warned(crd_kind(), definition(R"({"type":"object","properties":{"spec":{"type":"object",)"
                                    R"("x-kubernetes-validations":[{"rule":"true"}]}}})"))
          .size(),
      1u);
}

}  // namespace
}  // namespace skiff::api
