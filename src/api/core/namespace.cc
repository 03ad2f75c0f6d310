#include "api/core/namespace.h"

#include "api/cells.h"
#include "api/meta.h"

namespace skiff::api {
namespace {

constexpr std::string_view kNamespaceNameLabel = "kubernetes.io/metadata.name";

// Once it is being deleted, an empty list of finalizers means that it may go.
void prepare_namespace(json::value& object, const Admission&) {
  if (!object.is_object() || deleting(object)) return;
  json::object& spec = json::make_object(object, {"spec"});
  const json::value* list = spec.if_contains("finalizers");
  if (list == nullptr || list->is_null()) spec["finalizers"] = json::array{"kubernetes"};
}

void set_namespace_defaults(json::value& object) {
  if (!object.is_object()) return;
  if (const std::string_view n = name(object); !n.empty()) {
    json::set(object, {"metadata", "labels", kNamespaceNameLabel}, json::string(n));
  }
  if (json::get_string(object, {"status", "phase"}).empty()) {
    json::set(object, {"status", "phase"}, "Active");
  }
}

json::array namespace_cells(const json::value& object, std::int64_t now_s) {
  return {json::string(json::get_string(object, {"status", "phase"})),
          json::string(age_cell(object, now_s))};
}

}  // namespace

Kind namespace_kind() {
  return {.resource = {"", "v1", "namespaces", "Namespace", false},
          .singular = "namespace",
          .short_names = {"ns"},
          .returns_deleted = true,
          .has_status = true,
          .has_generation = false,
          .subresources = {{"finalize", "Namespace", {"update"}}},
          // Emptying the whole list of namespaces by one request is not offered, as in Kubernetes.
          .verbs = {"create", "delete", "get", "list", "patch", "update", "watch"},
          .schema = "io.k8s.api.core.v1.Namespace",
          .columns = {{"Status", "string"}, {"Age", "string"}},
          .selectable = {"status.phase"},
          .set_defaults = set_namespace_defaults,
          .prepare = prepare_namespace,
          .cells = namespace_cells};
}

}  // namespace skiff::api
