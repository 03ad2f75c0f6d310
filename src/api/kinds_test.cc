#include "api/kinds.h"

#include <gtest/gtest.h>

#include "api/builtin.h"
#include "schema/check.h"
#include "schema/definitions.h"
#include "schema/openapi.h"
#include "schema/prune.h"
#include "schema/registry.h"
#include "schema/strategic_merge.h"

namespace skiff::api {
namespace {

const schema::Registry& registry() {
  static const schema::Registry kRegistry(builtin_definitions());
  return kRegistry;
}

// Shapes that a client may send where objects are expected.
const char* const kJunk[] = {
    "null",
    "[]",
    "3",
    R"("x")",
    "{}",
    R"({"metadata":1,"spec":"x","status":[],"data":7,"type":{},"involvedObject":3})",
    R"({"metadata":{"labels":[],"name":4},"spec":{"containers":{},"ports":7,"volumes":"x",
        "names":[],"versions":{},"initContainers":[1,null,[]],"nodeSelector":{"a":1}}})",
    R"({"spec":{"containers":[null,1,{"image":3,"name":[],"resources":[],"ports":[1,{}],"env":[{}],
        "volumeMounts":[7],"livenessProbe":3}],"volumes":[null,{}],"ports":[null,{"port":"x"}],
        "versions":[1,{"schema":{"openAPIV3Schema":[]}}]},"data":{"a":1},"stringData":{"a":2},
        "status":{"containerStatuses":[1,{"state":4}],"conditions":{},"addresses":[3]}})"};

TEST(BuiltinDefinitions, EveryReferenceResolves) {
  const std::vector<std::string> names = registry().names();
  EXPECT_GT(names.size(), 100u);
  for (const std::string& name : names) {
    const std::string text = json::serialize(schema::to_openapi(*registry().find(name)));
    constexpr std::string_view kMark = "#/components/schemas/";
    for (std::size_t at = text.find(kMark); at != text.npos; at = text.find(kMark, at + 1)) {
      const std::size_t start = at + kMark.size();
      const std::string ref = text.substr(start, text.find('"', start) - start);
      EXPECT_NE(registry().find(ref), nullptr) << name << " names " << ref;
    }
  }
}

TEST(BuiltinDefinitions, KnowMergeKeys) {
  const auto patched = schema::apply_strategic_merge(
      registry(), *registry().find("io.k8s.api.core.v1.Pod"),
      *json::parse(R"({"spec":{"containers":[{"name":"a","image":"1"},{"name":"b"}]}})"),
      *json::parse(R"({"spec":{"containers":[{"name":"a","image":"2"}]}})"));
  ASSERT_TRUE(patched);
  EXPECT_EQ(json::serialize(*patched),
            R"({"spec":{"containers":[{"name":"a","image":"2"},{"name":"b"}]}})");
}

TEST(BuiltinDefinitions, FindTypos) {
  json::value pod = *json::parse(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","nme":1},
          "spec":{"containers":[{"name":"c","imagee":"x","env":[{"name":"A","valu":"1"}]}]}})");
  EXPECT_EQ(schema::prune(registry(), *registry().find("io.k8s.api.core.v1.Pod"), pod),
            (std::vector<std::string>{"metadata.nme", "spec.containers[0].imagee",
                                      "spec.containers[0].env[0].valu"}));
}

TEST(BuiltinKinds, AreWhole) {
  for (const Kind& kind : builtin_kinds()) {
    const std::string& name = kind.resource.kind;
    EXPECT_NE(registry().find(kind.schema), nullptr) << name;
    EXPECT_FALSE(kind.singular.empty()) << name;
    EXPECT_FALSE(kind.columns.empty()) << name;
    if (kind.cells != nullptr) {
      EXPECT_EQ(kind.cells(json::object(), 0).size(), kind.columns.size()) << name;
    } else {
      for (const Column& c : kind.columns) EXPECT_FALSE(c.json_path.empty()) << name << c.name;
    }
  }
}

TEST(BuiltinKinds, AnyValueIsSurvived) {
  for (const Kind& kind : builtin_kinds()) {
    for (const char* text : kJunk) {
      json::value object = *json::parse(text);
      if (kind.set_defaults != nullptr) kind.set_defaults(object);
      const json::value once = object;
      if (kind.set_defaults != nullptr) kind.set_defaults(object);
      EXPECT_EQ(object, once) << kind.resource.kind << " " << text;
      if (kind.validate != nullptr) {
        (void)kind.validate(object, {});
        (void)kind.validate(object, {.old = &once});
      }
      if (kind.cells != nullptr) EXPECT_EQ(kind.cells(object, 0).size(), kind.columns.size());
      (void)schema::check(registry(), *registry().find(kind.schema), object);
    }
  }
}

}  // namespace
}  // namespace skiff::api
