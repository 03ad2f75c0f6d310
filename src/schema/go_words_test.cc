#include "schema/go_words.h"

#include <gtest/gtest.h>

namespace skiff::schema {
namespace {

TEST(GoWords, PrintMapsInOrderAndTextBare) {
  EXPECT_EQ(go_text(json::parse(R"({"b":[1,"x",null],"a":{"c":true,"d":1.5},"e":{}})").value()),
            "map[a:map[c:true d:1.5] b:[1 x <nil>] e:map[]]");
  EXPECT_EQ(go_text("text"), "text");
}

TEST(GoWords, SayWhatDoesNotFitTheType) {
  const Registry registry;
  Schema text{.type = Type::kString};
  Schema count{.type = Type::kInteger, .format = "int32"};
  Schema list{.type = Type::kArray, .items = std::make_shared<Schema>(text)};
  Schema labels{.type = Type::kObject, .additional = std::make_shared<Schema>(text)};
  Schema whole{.type = Type::kObject};
  whole.add_property("name") = text;
  whole.add_property("count") = count;
  whole.add_property("list") = list;
  whole.add_property("labels") = labels;
  const auto say = [&](const char* json) {
    return restore_error(registry, whole, json::parse(json).value()).value_or("fits");
  };
  EXPECT_EQ(say(R"({"name":"a","count":2,"list":["x"],"labels":{"k":"v"},"more":5})"), "fits");
  EXPECT_EQ(say(R"({"name":null,"count":2.0})"), "fits");
  EXPECT_EQ(say(R"("x")"), "cannot restore struct from: string");
  EXPECT_EQ(say(R"({"name":5})"), "cannot convert int64 to string");
  EXPECT_EQ(say(R"({"name":true})"), "unrecognized type: string");
  EXPECT_EQ(say(R"({"count":"5"})"), "unrecognized type: int32");
  EXPECT_EQ(say(R"({"count":1.5})"), "cannot convert float64 to int32");
  EXPECT_EQ(say(R"({"list":{"a":"b"}})"), "cannot restore slice from map");
  EXPECT_EQ(say(R"({"list":["a",5]})"), "cannot convert int64 to string");
  EXPECT_EQ(say(R"({"labels":["a"]})"), "cannot restore map from slice");
}

}  // namespace
}  // namespace skiff::schema
