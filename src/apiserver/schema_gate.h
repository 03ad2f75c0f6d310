// What the schema of a kind does to its objects on the way in: unknown fields go, defaults come,
// rules are checked. The one place where the API server meets schema/.
#pragma once

#include <string>
#include <vector>

#include "apiserver/kinds.h"
#include "base/json.h"
#include "base/result.h"
#include "schema/schema.h"

namespace skiff::apiserver {

enum class PatchType { kJson, kMerge, kStrategic };

class SchemaGate {
 public:
  explicit SchemaGate(const schema::Registry& registry) : registry_(registry) {}

  // Removes what the schema does not know and returns the paths of it: spec.anchor.
  std::vector<std::string> prune(const ServedKind& kind, json::value& object) const;
  void set_defaults(const ServedKind& kind, json::value& object) const;
  // Schema and rules of the kind; `old` is null on create.
  std::vector<Cause> validate(const ServedKind& kind, const json::value& object,
                              const json::value* old, std::string_view subresource) const;
  Result<json::value> patch(const ServedKind& kind, PatchType type, const json::value& object,
                            const json::value& patch) const;
  // Component schemas that describe the kind: name -> OpenAPI v3 schema; the first is the kind's.
  json::object components(const ServedKind& kind, std::string& name) const;

 private:
  schema::Ref schema_of(const ServedKind& kind) const;

  const schema::Registry& registry_;
};

}  // namespace skiff::apiserver
