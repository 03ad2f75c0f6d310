// What the schema of a kind does to its objects on the way in: unknown fields go, defaults come,
// rules are checked. The one place where the API server meets schema/.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "apiserver/kinds.h"
#include "base/json.h"
#include "base/result.h"
#include "schema/registry.h"
#include "schema/typed_fields.h"

namespace skiff::apiserver {

enum class PatchType { kJson, kMerge, kStrategic, kApply };

// A patch that leads to something that is no object of its kind. The sentence shows the strategic
// patch, or what any other has led to.
Error invalid_patch(PatchType type, const json::value& patch, const json::value& patched,
                    std::string_view why);

class SchemaGate {
 public:
  explicit SchemaGate(const schema::Registry& registry) : registry_(registry) {}

  // Removes what the schema does not know and returns the paths of it: spec.anchor.
  std::vector<std::string> prune(const ServedKind& kind, json::value& object) const;
  // On what a Go server would have read: see schema/canonical.h.
  void set_defaults(const ServedKind& kind, json::value& object) const;
  // The last change before validation, in the version the object is kept in: as a Go server writes
  // it. What is kept and what is new can then be compared.
  void complete(const ServedKind& kind, json::value& object) const;
  // 400 where a Go server could not decode it: all of a built-in kind, the metadata of any.
  Result<void> check_types(const ServedKind& kind, const json::value& object) const;
  // 422 where a rule of the schema of another kind is broken.
  Result<void> check(const ServedKind& kind, const json::value& object) const;
  // The same for an object of a custom kind, in the version of the request, with what is wrong
  // given to be told together with what metadata lacks.
  Result<std::vector<Cause>> judge(const ServedKind& kind, const json::value& object,
                                   std::string_view subresource) const;
  // By the kind's own rules; adds what the client should be told of a good object.
  std::vector<Cause> validate(const ServedKind& kind, const json::value& object,
                              const api::Admission& context,
                              std::vector<std::string>& warnings) const;
  Result<json::value> patch(const ServedKind& kind, PatchType type, const json::value& object,
                            const json::value& patch) const;
  // 422 where a built-in kind cannot be decoded from what the patch has made of it. A strategic
  // merge patch says in vain that the object is of another kind.
  Result<void> check_patched(const ServedKind& kind, PatchType type, const json::value& patch,
                             json::value& patched) const;
  // The object as this view of its kind is written by a Kubernetes server.
  void complete_view(const ServedKind& kind, json::value& object) const;
  // What an object of the kind has before anything is put into it: nobody comes to own a Pod's
  // `spec` by filling it, since it was there; in a custom object it was not.
  const json::value& blank(const ServedKind& kind) const;
  // What server-side apply sees of objects of the kind.
  schema::TypedFields fields(const ServedKind& kind) const { return {registry_, schema_of(kind)}; }
  // The schemas an OpenAPI document needs for the kind, by name. `name` becomes the kind's own.
  json::object components(const ServedKind& kind, std::string& name) const;
  // Adds a definition and all that it refers to, where they are not there yet.
  void add_component(const std::string& definition, json::object& components) const;
  const schema::Registry& registry() const { return registry_; }

 private:
  schema::SchemaPtr schema_of(const ServedKind& kind) const;  // null: anything goes

  const schema::Registry& registry_;
  mutable std::mutex blanks_lock_;
  mutable std::map<std::string, json::value, std::less<>> blanks_;  // by schema; never change
};

}  // namespace skiff::apiserver
