// Bodies in protobuf: what the real server writes must read as the JSON that it writes.
#include "apiserver/wire/protobuf.h"

#include <gtest/gtest.h>

#include <fstream>

#include "api/builtin.h"
#include "api/meta.h"
#include "apiserver/wire/proto.h"
#include "base/base64.h"

namespace skiff::apiserver {
namespace {

const schema::Registry& registry() {
  static const schema::Registry kAll(api::builtin_definitions());
  return kAll;
}

// What Go's zero values look like in JSON. They are not on the wire or cannot be told from absence.
bool zero(const json::value& v) {
  if (v.is_object()) {
    for (const auto& member : v.get_object()) {
      if (!zero(member.value())) return false;
    }
    return true;
  }
  return v.is_null() || v == json::value(0) || v == json::value(false) || v == json::value("") ||
         (v.is_array() && v.get_array().empty());
}

void expect_same(const json::value& read, const json::value& wanted, const std::string& path) {
  if (wanted.is_object() && read.is_object()) {
    for (const auto& member : wanted.get_object()) {
      const std::string at = path + "." + std::string(member.key());
      const json::value* found = read.get_object().if_contains(member.key());
      if (found != nullptr) {
        expect_same(*found, member.value(), at);
      } else {
        EXPECT_TRUE(zero(member.value())) << at << " is lost: " << json::serialize(member.value());
      }
    }
    for (const auto& member : read.get_object()) {
      EXPECT_TRUE(wanted.get_object().contains(member.key()) || zero(member.value()))
          << path << " has " << std::string_view(member.key()) << " too many";
    }
    return;
  }
  if (wanted.is_array() && read.is_array()) {
    ASSERT_EQ(read.get_array().size(), wanted.get_array().size()) << path;
    for (std::size_t i = 0; i < wanted.get_array().size(); ++i) {
      expect_same(read.get_array()[i], wanted.get_array()[i], path + "[" + std::to_string(i) + "]");
    }
    return;
  }
  EXPECT_EQ(json::serialize(read), json::serialize(wanted)) << path;
}

TEST(Protobuf, ReadsWhatTheRealServerWrites) {
  std::ifstream file(SKIFF_SOURCE_DIR "/src/apiserver/wire/protobuf_vectors.txt");
  int count = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    const std::size_t space = line.find(' ');
    const auto bytes = base64::decode(line.substr(0, space));
    ASSERT_TRUE(bytes);
    const json::value wanted = json::parse(line.substr(space + 1)).value();
    SCOPED_TRACE(api::kind(wanted));
    const auto read = decode_protobuf(registry(), *bytes);
    ASSERT_TRUE(read) << read.error().message;
    expect_same(*read, wanted, "");
    ++count;
  }
  EXPECT_EQ(count, 23);
}

std::string envelope(std::string_view version, std::string_view kind, const proto::Writer& object) {
  proto::Writer type, out;
  type.text(1, version);
  type.text(2, kind);
  out.message(1, type);
  out.message(2, object);
  return std::string("k8s\0", 4) + out.bytes();
}

TEST(Protobuf, KeepsTheZeroOfAPointerOnly) {
  proto::Writer spec, deployment;
  spec.integer(1, 0);  // replicas: a pointer
  spec.integer(5, 0);  // minReadySeconds: not one
  deployment.message(2, spec);
  const auto read = decode_protobuf(registry(), envelope("apps/v1", "Deployment", deployment));
  ASSERT_TRUE(read);
  EXPECT_EQ(json::serialize(*read),
            R"({"spec":{"replicas":0},"apiVersion":"apps/v1","kind":"Deployment"})");
}

TEST(Protobuf, ReadsSchemasOfDefinitions) {
  // additionalProperties: true; items: [{type: string}]; dependencies: {a: [b, c]}; maximum: 2.5
  proto::Writer allows, text, items, names, entry, schema, validation, version, spec, definition;
  allows.flag(1, true);
  text.text(5, "string");
  items.message(2, text);
  names.text(2, "b");
  names.text(2, "c");
  entry.text(1, "a");
  entry.message(2, names);
  schema.message(30, allows);
  schema.message(24, items);
  schema.message(32, entry);
  schema.real(9, 2.5);
  validation.message(1, schema);
  version.text(1, "v1");
  version.message(4, validation);
  spec.message(7, version);
  definition.message(2, spec);
  const auto read = decode_protobuf(
      registry(), envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", definition));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(json::serialize(json::get_array(*read, {"spec", "versions"})[0].at("schema")),
            R"({"openAPIV3Schema":{"additionalProperties":true,"items":[{"type":"string"}],)"
            R"("dependencies":{"a":["b","c"]},"maximum":2.5E0}})");
}

TEST(Protobuf, RefusesWhatIsNone) {
  const auto message = [](std::string_view bytes) {
    const auto read = decode_protobuf(registry(), bytes);
    return read ? "read" : read.error().message;
  };
  EXPECT_EQ(
      message("{}"),
      "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]");
  const std::string whole = envelope("v1", "ConfigMap", [] {
    proto::Writer meta, object;
    meta.text(1, "a");
    object.message(1, meta);
    return object;
  }());
  EXPECT_EQ(message(whole), "read");
  for (std::size_t cut = 5; cut < whole.size(); ++cut) {
    EXPECT_NE(message(whole.substr(0, cut)), "") << "no crash at " << cut;
  }
  EXPECT_EQ(message(whole.substr(0, whole.size() - 1)),
            "the protobuf body is damaged: the envelope is cut off");
  proto::Writer wrong;
  wrong.text(3, "\xff");
  EXPECT_EQ(message(envelope("v1", "Secret", wrong)),
            "the protobuf body is damaged: a text is not UTF-8");
  EXPECT_EQ(message(envelope("sea.example.org/v1", "Boat", wrong)),
            "Boat of sea.example.org/v1 is understood as application/json or application/yaml, not "
            "as protobuf");
}

TEST(Protobuf, HasAnEndToItsDepth) {
  // JSONSchemaProps.not.not.not...
  proto::Writer inner;
  for (int i = 0; i < 5000; ++i) {
    proto::Writer outer;
    outer.message(28, inner);
    inner = outer;
  }
  proto::Writer validation, version, spec, definition;
  validation.message(1, inner);
  version.message(4, validation);
  spec.message(7, version);
  definition.message(2, spec);
  const auto read = decode_protobuf(
      registry(), envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", definition));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "the protobuf body is damaged: it is nested too deep");
}

}  // namespace
}  // namespace skiff::apiserver
