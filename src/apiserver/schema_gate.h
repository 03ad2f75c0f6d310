// What the schema of a kind does to its objects on the way in: unknown fields go, defaults come,
// rules are checked. The one place where the API server meets schema/.
#pragma once

#include <string>
#include <vector>

#include "apiserver/kinds.h"
#include "base/json.h"
#include "base/result.h"
#include "schema/registry.h"

namespace skiff::apiserver {

enum class PatchType { kJson, kMerge, kStrategic };

class SchemaGate {
 public:
  explicit SchemaGate(const schema::Registry& registry) : registry_(registry) {}

  // Removes what the schema does not know and returns the paths of it: spec.anchor.
  std::vector<std::string> prune(const ServedKind& kind, json::value& object) const;
  void set_defaults(const ServedKind& kind, json::value& object) const;
  // By the schema: 400 where a built-in kind cannot be decoded, 422 where a rule is broken.
  Result<void> check(const ServedKind& kind, const json::value& object) const;
  // By the kind's own rules; `old` is null on create.
  std::vector<Cause> validate(const ServedKind& kind, const json::value& object,
                              const json::value* old, std::string_view subresource) const;
  Result<json::value> patch(const ServedKind& kind, PatchType type, const json::value& object,
                            const json::value& patch) const;
  // The schemas an OpenAPI document needs for the kind, by name. `name` becomes the kind's own.
  json::object components(const ServedKind& kind, std::string& name) const;
  // Adds a definition and all that it refers to, where they are not there yet.
  void add_component(const std::string& definition, json::object& components) const;
  const schema::Registry& registry() const { return registry_; }

 private:
  schema::SchemaPtr schema_of(const ServedKind& kind) const;  // null: anything goes

  const schema::Registry& registry_;
};

}  // namespace skiff::apiserver
