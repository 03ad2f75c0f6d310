#include "apiserver/protobuf.h"

#include <fmt/format.h>

#include <cstdint>
#include <span>

#include "base/base64.h"
#include "base/time.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kMagic("k8s\0", 4);
constexpr int kDepth = 32;

enum class Type { kText, kBytes, kInt, kBool, kTime, kMessage, kTextMap, kBytesMap };

struct Field {
  std::uint32_t number = 0;
  std::string_view name = {};
  Type type = Type::kText;
  bool repeated = false;
  std::span<const Field> message = {};
};

constexpr Field kOwnerReference[] = {{5, "apiVersion"},
                                     {1, "kind"},
                                     {3, "name"},
                                     {4, "uid"},
                                     {6, "controller", Type::kBool},
                                     {7, "blockOwnerDeletion", Type::kBool}};
constexpr Field kMeta[] = {{1, "name"},
                           {2, "generateName"},
                           {3, "namespace"},
                           {5, "uid"},
                           {6, "resourceVersion"},
                           {11, "labels", Type::kTextMap},
                           {12, "annotations", Type::kTextMap},
                           {13, "ownerReferences", Type::kMessage, true, kOwnerReference},
                           {14, "finalizers", Type::kText, true}};
constexpr Field kNamespaceSpec[] = {{1, "finalizers", Type::kText, true}};
constexpr Field kNamespace[] = {{1, "metadata", Type::kMessage, false, kMeta},
                                {2, "spec", Type::kMessage, false, kNamespaceSpec}};
constexpr Field kConfigMap[] = {{1, "metadata", Type::kMessage, false, kMeta},
                                {2, "data", Type::kTextMap},
                                {3, "binaryData", Type::kBytesMap},
                                {4, "immutable", Type::kBool}};
constexpr Field kSecret[] = {{1, "metadata", Type::kMessage, false, kMeta},
                             {2, "data", Type::kBytesMap},
                             {3, "type"},
                             {4, "stringData", Type::kTextMap},
                             {5, "immutable", Type::kBool}};
constexpr Field kLocalReference[] = {{1, "name"}};
constexpr Field kServiceAccount[] = {{1, "metadata", Type::kMessage, false, kMeta},
                                     {3, "imagePullSecrets", Type::kMessage, true, kLocalReference},
                                     {4, "automountServiceAccountToken", Type::kBool}};
constexpr Field kPreconditions[] = {{1, "uid"}, {2, "resourceVersion"}};
constexpr Field kDeleteOptions[] = {{1, "gracePeriodSeconds", Type::kInt},
                                    {2, "preconditions", Type::kMessage, false, kPreconditions},
                                    {3, "orphanDependents", Type::kBool},
                                    {4, "propagationPolicy"},
                                    {5, "dryRun", Type::kText, true}};
constexpr Field kTarget[] = {{1, "kind"}, {2, "namespace"}, {3, "name"}, {4, "uid"}};
constexpr Field kBinding[] = {{1, "metadata", Type::kMessage, false, kMeta},
                              {2, "target", Type::kMessage, false, kTarget}};
constexpr Field kLeaseSpec[] = {{1, "holderIdentity"},
                                {2, "leaseDurationSeconds", Type::kInt},
                                {3, "acquireTime", Type::kTime},
                                {4, "renewTime", Type::kTime},
                                {5, "leaseTransitions", Type::kInt}};
constexpr Field kLease[] = {{1, "metadata", Type::kMessage, false, kMeta},
                            {2, "spec", Type::kMessage, false, kLeaseSpec}};
constexpr Field kTypeMeta[] = {{1, "apiVersion"}, {2, "kind"}};
constexpr Field kEnvelope[] = {{1, "typeMeta", Type::kMessage, false, kTypeMeta},
                               {2, "raw", Type::kBytes}};
constexpr Field kTimestamp[] = {{1, "seconds", Type::kInt}, {2, "nanos", Type::kInt}};
constexpr Field kTextEntry[] = {{1, "key"}, {2, "value"}};
constexpr Field kBytesEntry[] = {{1, "key"}, {2, "value", Type::kBytes}};

struct Known {
  std::string_view kind = {};
  std::span<const Field> message = {};
};
constexpr Known kKnown[] = {
    {"Namespace", kNamespace},           {"ConfigMap", kConfigMap}, {"Secret", kSecret},
    {"ServiceAccount", kServiceAccount}, {"Binding", kBinding},     {"Lease", kLease},
    {"DeleteOptions", kDeleteOptions}};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  bool done() const { return rest_.empty(); }

  bool varint(std::uint64_t& out) {
    out = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      out |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool bytes(std::uint64_t count, std::string_view& out) {
    if (count > rest_.size()) return false;
    out = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return true;
  }

 private:
  std::string_view rest_;
};

Result<json::object> read_message(std::string_view bytes, std::span<const Field> fields, int depth);

std::unexpected<Error> broken() { return fail(Code::kBadRequest, "the protobuf body is damaged"); }

const Field* known_field(std::span<const Field> fields, std::uint64_t number) {
  for (const Field& field : fields) {
    if (field.number == number) return &field;
  }
  return nullptr;
}

Result<json::value> read_time(std::string_view bytes, int depth) {
  SKIFF_ASSIGN(const json::object stamp, read_message(bytes, kTimestamp, depth));
  const json::value v(stamp);
  const std::int64_t seconds = json::get_int(v, {"seconds"}).value_or(0);
  const std::int64_t nanos = json::get_int(v, {"nanos"}).value_or(0);
  // The year 9999: what RFC 3339 can write.
  if (seconds < 0 || seconds > 253'402'300'799) return broken();
  return json::string(
      rfc3339_micro(Time(std::chrono::seconds(seconds) + std::chrono::microseconds(nanos / 1000))));
}

// Adds one field's value to the object, where fields may repeat.
Result<void> read_field(const Field& field, std::string_view bytes, json::object& out, int depth) {
  if (field.type == Type::kTextMap || field.type == Type::kBytesMap) {
    const bool text = field.type == Type::kTextMap;
    SKIFF_ASSIGN(json::object entry, read_message(bytes, text ? kTextEntry : kBytesEntry, depth));
    const json::value v(entry);
    json::make_object(out, {field.name})[json::get_string(v, {"key"})] =
        json::string(json::get_string(v, {"value"}));
    return {};
  }
  json::value value;
  if (field.type == Type::kMessage) {
    SKIFF_ASSIGN(value, read_message(bytes, field.message, depth));
  } else if (field.type == Type::kTime) {
    SKIFF_ASSIGN(value, read_time(bytes, depth));
  } else if (field.type == Type::kBytes) {
    value = json::string(base64::encode(bytes));
  } else {
    value = json::string(bytes);
  }
  // Go writes empty strings where JSON leaves the field out.
  if (value.is_string() && value.get_string().empty() && !field.repeated) return {};
  if (!field.repeated) {
    out[field.name] = std::move(value);
    return {};
  }
  json::value& list = out[field.name];
  if (!list.is_array()) list.emplace_array();
  list.get_array().push_back(std::move(value));
  return {};
}

Result<json::object> read_message(std::string_view bytes, std::span<const Field> fields,
                                  int depth) {
  if (depth > kDepth) return broken();
  json::object out;
  Reader reader(bytes);
  while (!reader.done()) {
    std::uint64_t tag = 0, number = 0;
    std::string_view piece;
    if (!reader.varint(tag)) return broken();
    const Field* field = known_field(fields, tag >> 3);
    switch (tag & 7) {
      case 0:
        if (!reader.varint(number)) return broken();
        if (field != nullptr && field->type == Type::kBool) out[field->name] = number != 0;
        if (field != nullptr && field->type == Type::kInt) {
          out[field->name] = static_cast<std::int64_t>(number);
        }
        break;
      case 1:
      case 5:
        if (!reader.bytes((tag & 7) == 1 ? 8 : 4, piece)) return broken();
        break;
      case 2:
        if (!reader.varint(number) || !reader.bytes(number, piece)) return broken();
        if (field != nullptr && field->type != Type::kInt && field->type != Type::kBool) {
          SKIFF_TRY(read_field(*field, piece, out, depth + 1));
        }
        break;
      default:
        return broken();
    }
  }
  return out;
}

}  // namespace

Result<json::value> decode_protobuf(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) return broken();
  SKIFF_ASSIGN(const json::value envelope, read_message(bytes.substr(kMagic.size()), kEnvelope, 0));
  const std::string_view kind = json::get_string(envelope, {"typeMeta", "kind"});
  for (const Known& known : kKnown) {
    if (known.kind != kind) continue;
    const auto raw = base64::decode(json::get_string(envelope, {"raw"}));
    SKIFF_ASSIGN(json::object object, read_message(raw.value_or(""), known.message, 0));
    object["apiVersion"] = json::string(json::get_string(envelope, {"typeMeta", "apiVersion"}));
    object["kind"] = json::string(kind);
    return object;
  }
  return fail(Code::kUnsupportedMediaType,
              fmt::format("{} is understood as application/json or application/yaml, not as "
                          "protobuf",
                          kind));
}

}  // namespace skiff::apiserver
