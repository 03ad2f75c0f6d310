#include "schema/canonical.h"

#include <gtest/gtest.h>

namespace skiff::schema {
namespace {

constexpr std::string_view kTypes = R"(Time s:date-time
MicroTime s:date-time
Quantity quantity
Port int-or-string
io.k8s.apimachinery.pkg.runtime.RawExtension o
Inner object
 count*~ i:int32
 limits {@Quantity}
 name~ s
Outer object
 at @Time
 born? @Time
 fine @MicroTime
 flag b
 inner @Inner
 list~ [s]
 maybe* @Inner
 names [s]
 on* b
 parts [@Inner]
 port @Port
 raw @io.k8s.apimachinery.pkg.runtime.RawExtension
 ready* @Time
 size @Quantity
)";

json::value parsed(std::string_view text) {
  auto v = json::parse(text);
  EXPECT_TRUE(v) << text;
  return *v;
}

class Canonical : public ::testing::Test {
 protected:
  Registry registry{kTypes};
  std::string normal(std::string_view text) {
    json::value v = parsed(text);
    normalize(registry, *registry.find("Outer"), v);
    return json::serialize(v);
  }
  json::value completed(std::string_view text) {
    json::value v = parsed(text);
    complete(registry, *registry.find("Outer"), v);
    return v;
  }
};

TEST_F(Canonical, WhatIsZeroIsAbsentUnlessAPointerTells) {
  EXPECT_EQ(normal(R"({"flag":false,"names":[],"inner":{},"port":0,"list":null,"on":null})"), "{}");
  EXPECT_EQ(normal(R"({"flag":true,"on":false,"maybe":{}})"),
            R"({"flag":true,"on":false,"maybe":{}})");
  EXPECT_EQ(normal(R"({"inner":{"name":"","limits":{}}})"), "{}");
}

TEST_F(Canonical, AnEmptyListThatIsAlwaysWrittenIsToldFromNone) {
  EXPECT_EQ(normal(R"({"list":[],"names":[]})"), R"({"list":[]})");
  json::value v = parsed(R"({"list":[],"names":[]})");
  complete(registry, *registry.find("Outer"), v, Empty::kStays);
  EXPECT_EQ(json::serialize(v.at("list")), "[]");
  EXPECT_FALSE(v.get_object().contains("names"));
}

TEST_F(Canonical, QuantitiesAndTimesHaveOneForm) {
  EXPECT_EQ(normal(R"({"inner":{"limits":{"a":"1000m","b":0.5,"c":"1024Ki"}}})"),
            R"({"inner":{"limits":{"a":"1","b":"500m","c":"1Mi"}}})");
  EXPECT_EQ(normal(R"({"at":"2023-11-14T23:17:20.5+01:00","fine":"2023-11-14T22:17:20Z"})"),
            R"({"at":"2023-11-14T22:17:20Z","fine":"2023-11-14T22:17:20.000000Z"})");
}

TEST_F(Canonical, NullInAListIsAZeroValue) {
  EXPECT_EQ(normal(R"({"names":["a",null],"parts":[null]})"), R"({"names":["a",""],"parts":[{}]})");
}

TEST_F(Canonical, WrongTypesAndRawValuesAreLeftAlone) {
  EXPECT_EQ(normal(R"({"flag":"","names":0,"inner":[],"size":"x","at":"noon"})"),
            R"({"flag":"","names":0,"inner":[],"size":"x","at":"noon"})");
  EXPECT_EQ(normal(R"({"raw":{"a":null,"b":""}})"), R"({"raw":{"a":null,"b":""}})");
}

TEST_F(Canonical, WhatGoAlwaysWritesIsThere) {
  EXPECT_EQ(completed("{}"),
            parsed(R"({"at":null,"fine":null,"inner":{"count":null,"name":""},"list":null,"port":0,
                       "raw":null,"size":"0"})"));
  EXPECT_EQ(json::get_array(completed(R"({"parts":[{}]})"), {"parts"}).at(0),
            parsed(R"({"count":null,"name":""})"));
  // An empty list is stored as none at all.
  EXPECT_EQ(completed(R"({"names":[],"list":[]})"), completed("{}"));
  const json::value once = completed(R"({"maybe":{},"inner":{"limits":{}}})");
  json::value twice = once;
  complete(registry, *registry.find("Outer"), twice);
  EXPECT_EQ(once, twice);
}

TEST_F(Canonical, OtherKindsAreLeftAsTheyCame) {
  registry.add("Own", Schema{.type = Type::kObject});
  json::value v = parsed(R"({"a":null,"b":""})");
  normalize(registry, *registry.find("Own"), v);
  complete(registry, *registry.find("Own"), v);
  EXPECT_EQ(v, parsed(R"({"a":null,"b":""})"));
}

}  // namespace
}  // namespace skiff::schema
