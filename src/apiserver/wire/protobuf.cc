#include "apiserver/wire/protobuf.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <map>
#include <memory>

#include "api/fields.h"
#include "api/meta.h"
#include "apiserver/wire/names.h"
#include "apiserver/wire/proto.h"
#include "base/base64.h"
#include "base/strings.h"
#include "base/time.h"

namespace skiff::apiserver {
namespace {

using proto::Field;
using proto::Reader;
using proto::WireType;
using schema::Schema;
using schema::Type;

constexpr std::string_view kMagic("k8s\0", 4);
constexpr int kDepth = 100;

constexpr std::string_view kMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.";
constexpr std::string_view kExtensions =
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.";

// What a field number of a message means: a property, or a message whose properties stand here.
struct Message;
struct Member {
  std::string_view name = {};
  bool pointer = false;
  std::shared_ptr<Message> inlined = {};
};
struct Message {
  std::map<std::uint32_t, Member> members = {};
};
using Messages = std::map<std::string_view, Message>;

void add_member(Message& message, std::string_view word) {
  const std::size_t equals = word.find('=');
  Member member{.name = word.substr(0, equals), .pointer = word.ends_with('?')};
  std::string_view path = word.substr(equals + 1);
  Message* at = &message;
  while (true) {
    std::uint32_t number = 0;
    const auto read = std::from_chars(path.data(), path.data() + path.size(), number);
    path.remove_prefix(static_cast<std::size_t>(read.ptr - path.data()));
    if (!path.starts_with('.')) {
      at->members[number] = std::move(member);
      return;
    }
    path.remove_prefix(1);
    std::shared_ptr<Message>& inner = at->members[number].inlined;
    if (!inner) inner = std::make_shared<Message>();
    at = inner.get();
  }
}

const Messages& messages() {
  static const Messages kAll = [] {
    Messages all;
    for (const std::string_view line : split(api::builtin_fields(), '\n')) {
      if (line.empty() || line.starts_with('#')) continue;
      const auto words = split(line, ' ');
      for (std::size_t i = 1; i < words.size(); ++i) add_member(all[words[0]], words[i]);
    }
    return all;
  }();
  return kAll;
}

std::unexpected<Error> broken(std::string_view why) {
  return fail(Code::kBadRequest, fmt::format("the protobuf body is damaged: {}", why));
}

// The one field of a small message that stands for a scalar: Quantity, RawExtension, JSON.
Result<std::string_view> only_bytes(std::string_view bytes) {
  std::string_view found;
  Reader reader(bytes);
  for (Field field; !reader.done();) {
    if (!reader.next(field)) return broken("a field is cut off");
    if (field.number == 1) found = field.bytes;
  }
  return found;
}

Result<json::value> raw_json(std::string_view bytes) {
  SKIFF_ASSIGN(const std::string_view text, only_bytes(bytes));
  if (text.empty()) return json::value();
  return json::parse(text);
}

Result<json::value> time_text(std::string_view bytes, bool micro) {
  std::int64_t seconds = 0, nanos = 0;
  Reader reader(bytes);
  for (Field field; !reader.done();) {
    if (!reader.next(field)) return broken("a time is cut off");
    if (field.number == 1) seconds = static_cast<std::int64_t>(field.value);
    if (field.number == 2) nanos = static_cast<std::int64_t>(field.value);
  }
  // No time at all, which JSON leaves out.
  if (bytes.empty()) return json::value();
  // The years 1 to 9999: what RFC 3339 can write.
  if (seconds < -62'135'596'800 || seconds > 253'402'300'799 || nanos < 0 || nanos > 999'999'999) {
    return broken("a time is out of range");
  }
  const Time time(std::chrono::seconds(seconds) + std::chrono::microseconds(nanos / 1000));
  return json::string(micro ? rfc3339_micro(time) : rfc3339(time));
}

Result<json::value> int_or_string(std::string_view bytes, bool pointer) {
  bool text = false;
  std::int64_t number = 0;
  std::string_view word;
  Reader reader(bytes);
  for (Field field; !reader.done();) {
    if (!reader.next(field)) return broken("a field is cut off");
    if (field.number == 1) text = field.value == 1;
    if (field.number == 2) number = static_cast<std::int32_t>(field.value);
    if (field.number == 3) word = field.bytes;
  }
  if (text) return json::string(word);
  if (number == 0 && !pointer) return json::value();
  return number;
}

json::value zero_of(const Schema& schema) {
  switch (schema.type) {
    case Type::kInteger:
    case Type::kNumber:
      return 0;
    case Type::kBoolean:
      return false;
    case Type::kString:
      return "";
    case Type::kArray:
      return json::array();
    default:
      return json::object();
  }
}

// Whole numbers are written as such in JSON.
json::value json_number(double value) {
  constexpr double kExact = 9007199254740992.0;
  const bool whole = value >= -kExact && value <= kExact &&
                     value == static_cast<double>(static_cast<std::int64_t>(value));
  return whole ? json::value(static_cast<std::int64_t>(value)) : json::value(value);
}

class Decoder {
 public:
  explicit Decoder(const schema::Registry& registry) : registry_(registry) {}

  Result<void> message(std::string_view bytes, const Message& message, const Schema& schema,
                       json::object& out, int depth) {
    if (depth > kDepth) return broken("it is nested too deep");
    Reader reader(bytes);
    for (Field field; !reader.done();) {
      if (!reader.next(field)) return broken("a field is cut off");
      const auto found = message.members.find(field.number);
      if (found == message.members.end()) continue;  // newer than what we know
      const Member& member = found->second;
      if (member.inlined) {
        SKIFF_TRY(this->message(field.bytes, *member.inlined, schema, out, depth + 1));
        continue;
      }
      const Schema* place = schema.property(member.name);
      if (place != nullptr) SKIFF_TRY(property(field, member, *place, out, depth));
    }
    return {};
  }

  // The message of a definition; an empty object where it has no fields that we know.
  Result<json::value> object(std::string_view bytes, const std::string& definition, int depth) {
    const schema::SchemaPtr schema = registry_.find(definition);
    const auto found = messages().find(definition);
    json::object out;
    if (schema && found != messages().end()) {
      SKIFF_TRY(message(bytes, found->second, *schema, out, depth));
    }
    return out;
  }

 private:
  Result<void> property(const Field& field, const Member& member, const Schema& place,
                        json::object& out, int depth) {
    if (place.type == Type::kArray) {
      SKIFF_ASSIGN(json::value item, value(field, *place.items, true, depth + 1));
      json::value& list = out[member.name];
      if (!list.is_array()) list.emplace_array();
      list.get_array().push_back(std::move(item));
      return {};
    }
    if (place.additional) {
      json::value& map = out[member.name];
      if (!map.is_object()) map.emplace_object();
      return map_entry(field.bytes, *place.additional, map.get_object(), depth + 1);
    }
    SKIFF_ASSIGN(json::value read, value(field, place, member.pointer, depth + 1));
    if (read.is_null()) return {};
    // Go writes zeros where JSON leaves the field out.
    if (!member.pointer && !read.is_object() && read == zero_of(place)) return {};
    out[member.name] = std::move(read);
    return {};
  }

  Result<void> map_entry(std::string_view bytes, const Schema& place, json::object& out,
                         int depth) {
    std::string key;
    json::value read;
    Reader reader(bytes);
    for (Field field; !reader.done();) {
      if (!reader.next(field)) return broken("a map is cut off");
      if (field.number == 1) key = field.bytes;
      if (field.number != 2) continue;
      if (place.type == Type::kArray) {
        SKIFF_ASSIGN(read, wrapped_list(field.bytes, *place.items, depth + 1));
      } else {
        SKIFF_ASSIGN(read, value(field, place, true, depth + 1));
      }
    }
    schema::SchemaPtr holder;
    out[key] = read.is_null() ? zero_of(registry_.resolve(place, holder)) : std::move(read);
    return {};
  }

  // Protobuf has no map of lists: a message with the list as its only field stands between.
  Result<json::value> wrapped_list(std::string_view bytes, const Schema& items, int depth) {
    json::array out;
    Reader reader(bytes);
    for (Field field; !reader.done();) {
      if (!reader.next(field)) return broken("a list is cut off");
      if (field.number != 1) continue;
      SKIFF_ASSIGN(json::value item, value(field, items, true, depth + 1));
      out.push_back(std::move(item));
    }
    return out;
  }

  // Null: nothing stands here.
  Result<json::value> value(const Field& field, const Schema& place, bool pointer, int depth) {
    if (!place.ref.empty()) return named(field.bytes, place.ref, pointer, depth);
    switch (place.type) {
      case Type::kInteger:
        return static_cast<std::int64_t>(field.value);
      case Type::kBoolean:
        return field.value != 0;
      case Type::kNumber:
        return json_number(std::bit_cast<double>(field.value));
      case Type::kString:
        if (place.format == "byte") return json::string(base64::encode(field.bytes));
        return json::string(field.bytes);
      default:
        return json::object();
    }
  }

  Result<json::value> named(std::string_view bytes, const std::string& name, bool pointer,
                            int depth) {
    const std::string_view word = std::string_view(name).substr(name.rfind('.') + 1);
    if (name.starts_with(kMeta) && (word == "Time" || word == "MicroTime")) {
      return time_text(bytes, word == "MicroTime");
    }
    if (name == "io.k8s.apimachinery.pkg.api.resource.Quantity") {
      SKIFF_ASSIGN(const std::string_view text, only_bytes(bytes));
      return json::string(text.empty() ? "0" : text);
    }
    if (name == "io.k8s.apimachinery.pkg.util.intstr.IntOrString") {
      return int_or_string(bytes, pointer);
    }
    if (word == "RawExtension" || word == "FieldsV1") return raw_json(bytes);
    if (name.starts_with(kExtensions)) {
      if (word == "JSON") return raw_json(bytes);
      if (word.starts_with("JSONSchemaPropsOr")) return schema_or(bytes, word, depth);
    }
    return object(bytes, name, depth);
  }

  // JSONSchemaPropsOrArray, -OrStringArray and -OrBool: a schema, or several, or names, or a
  // boolean. In the last the schema is field 2, in the others field 1.
  Result<json::value> schema_or(std::string_view bytes, std::string_view word, int depth) {
    const std::string definition = std::string(kExtensions) + "JSONSchemaProps";
    json::value out;
    Reader reader(bytes);
    for (Field field; !reader.done();) {
      if (!reader.next(field)) return broken("a schema is cut off");
      if (field.type == WireType::kVarint) {
        if (out.is_null()) out = field.value != 0;
        continue;
      }
      json::value read = json::string(field.bytes);
      if (field.number == 1 || word != "JSONSchemaPropsOrStringArray") {
        SKIFF_ASSIGN(read, object(field.bytes, definition, depth + 1));
      }
      if (field.number == 1 || word == "JSONSchemaPropsOrBool") {
        out = std::move(read);
        continue;
      }
      if (!out.is_array()) out.emplace_array();
      out.get_array().push_back(std::move(read));
    }
    return out;
  }

  const schema::Registry& registry_;
};

struct Envelope {
  std::string api_version = {};
  std::string kind = {};
  std::string_view raw = {};
};

Result<Envelope> open_envelope(std::string_view bytes) {
  Envelope out;
  Reader reader(bytes);
  for (Field field; !reader.done();) {
    if (!reader.next(field)) return broken("the envelope is cut off");
    if (field.number == 2) out.raw = field.bytes;
    if (field.number != 1) continue;
    Reader type(field.bytes);
    for (Field inner; !type.done();) {
      if (!type.next(inner)) return broken("the envelope is cut off");
      if (inner.number == 1) out.api_version = inner.bytes;
      if (inner.number == 2) out.kind = inner.bytes;
    }
  }
  return out;
}

}  // namespace

Result<json::value> decode_protobuf(const schema::Registry& registry, std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) {
    return fail(Code::kBadRequest,
                "provided data does not appear to be a protobuf message, expected prefix [107 56 "
                "115 0]");
  }
  SKIFF_ASSIGN(const Envelope envelope, open_envelope(bytes.substr(kMagic.size())));
  const std::size_t slash = envelope.api_version.find('/');
  const bool core = slash == std::string::npos;
  const std::string definition = builtin_definition(
      core ? "" : envelope.api_version.substr(0, slash),
      core ? envelope.api_version : envelope.api_version.substr(slash + 1), envelope.kind);
  if (registry.find(definition) == nullptr) {
    return fail(Code::kUnsupportedMediaType,
                fmt::format("{} of {} is understood as application/json or application/yaml, not "
                            "as protobuf",
                            envelope.kind, envelope.api_version));
  }
  SKIFF_ASSIGN(json::value object, Decoder(registry).object(envelope.raw, definition, 0));
  object.as_object()["apiVersion"] = envelope.api_version;
  object.as_object()["kind"] = envelope.kind;
  // Protobuf's text may be any bytes; ours is UTF-8.
  if (!json::parse(json::serialize(object))) return broken("a text is not UTF-8");
  return object;
}

}  // namespace skiff::apiserver
