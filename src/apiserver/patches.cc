// What a patch makes of an object, and whether that can still be read as one.
#include <fmt/format.h>

#include "api/meta.h"
#include "apiserver/schema_gate.h"
#include "apiserver/status.h"
#include "schema/check.h"
#include "schema/go_words.h"
#include "schema/json_patch.h"
#include "schema/merge_patch.h"
#include "schema/strategic_merge.h"

namespace skiff::apiserver {

Result<json::value> SchemaGate::patch(const ServedKind& kind, PatchType type,
                                      const json::value& object, const json::value& patch) const {
  if (type == PatchType::kJson) return schema::apply_json_patch(object, patch);
  if (!patch.is_object()) return fail(Code::kBadRequest, "the patch must be an object");
  if (type == PatchType::kMerge) {
    json::value next = object;
    schema::apply_merge_patch(next, patch);
    return next;
  }
  const schema::SchemaPtr schema = schema_of(kind);
  static const schema::Schema kAnything;
  return schema::apply_strategic_merge(registry_, schema ? *schema : kAnything, object, patch);
}

Error invalid_patch(PatchType type, const json::value& patch, const json::value& patched,
                    std::string_view why) {
  const std::string value =
      type == PatchType::kStrategic ? schema::go_text(patch) : json::serialize(patched);
  return invalid({}, "", {invalid_value("patch", json::string(value), why)});
}

Result<void> SchemaGate::check_patched(const ServedKind& kind, PatchType type,
                                       const json::value& patch, json::value& patched) const {
  const schema::SchemaPtr schema = schema_of(kind);
  if (!schema || !schema->builtin) return {};
  const auto refuse = [&](std::string_view why) {
    return std::unexpected(invalid_patch(type, patch, patched, why));
  };
  if (!patched.is_object()) return refuse("the patch leaves no object");
  const api::Resource& r = kind.resource();
  json::object& root = patched.get_object();
  if (type == PatchType::kStrategic) {
    // It is put into an object of the kind, whatever it says that it is.
    root["apiVersion"] = r.api_version();
    root["kind"] = r.kind;
    if (const auto why = schema::restore_error(registry_, *schema, patched)) return refuse(*why);
  }
  const std::string_view word = api::kind(patched), version = api::api_version(patched);
  if ((!word.empty() && word != r.kind) || (!version.empty() && version != r.api_version())) {
    return refuse(
        fmt::format("no kind \"{}\" is registered for version \"{}\" in scheme "
                    "\"pkg/runtime/scheme.go:110\"",
                    word, version));
  }
  const std::vector<Cause> causes = schema::check(registry_, *schema, patched);
  if (causes.empty()) return {};
  return refuse(fmt::format("{}: {}", causes.front().field, causes.front().message));
}

}  // namespace skiff::apiserver
