#include "api/apiextensions/crd.h"

#include <algorithm>

#include "api/meta.h"
#include "base/names.h"
#include "base/strings.h"
#include "schema/causes.h"
#include "schema/openapi.h"

namespace skiff::api {
namespace {

using schema::child;

void set_defaults(json::value& object) {
  if (!object.is_object()) return;
  const std::string kind(json::get_string(object, {"spec", "names", "kind"}));
  json::object& spec = json::make_object(object, {"spec"});
  spec.emplace("conversion", json::object{{"strategy", "None"}});
  if (kind.empty()) return;
  json::object& names = json::make_object(spec, {"names"});
  names.emplace("singular", lower(kind));
  names.emplace("listKind", kind + "List");
}

void check_names(const json::value& object, std::vector<Cause>& out) {
  const std::string group(json::get_string(object, {"spec", "group"}));
  const std::string plural(json::get_string(object, {"spec", "names", "plural"}));
  if (group.empty()) {
    out.push_back(schema::required("spec.group"));
  } else if (const auto bad = names::check_dns1123_subdomain(group)) {
    out.push_back(schema::invalid("spec.group", json::string(group), *bad));
  }
  if (const auto bad = names::check_dns1035_label(plural)) {
    out.push_back(schema::invalid("spec.names.plural", json::string(plural), *bad));
  }
  if (json::get_string(object, {"spec", "names", "kind"}).empty()) {
    out.push_back(schema::required("spec.names.kind"));
  }
  if (name(object) != plural + "." + group) {
    out.push_back(schema::invalid("metadata.name", json::string(name(object)),
                                  "must be spec.names.plural+\".\"+spec.group"));
  }
  const std::string_view scope = json::get_string(object, {"spec", "scope"});
  if (scope != "Cluster" && scope != "Namespaced") {
    out.push_back(
        schema::unsupported("spec.scope", json::string(scope), {"Cluster", "Namespaced"}));
  }
}

void check_version(const json::value& version, const std::string& path, std::vector<Cause>& out) {
  const std::string_view name = json::get_string(version, {"name"});
  if (const auto bad = names::check_dns1035_label(name)) {
    out.push_back(schema::invalid(child(path, "name"), json::string(name), *bad));
  }
  const std::string place = child(path, "schema.openAPIV3Schema");
  const json::value* text = json::find(version, {"schema", "openAPIV3Schema"});
  if (text == nullptr) {
    out.push_back(schema::required(place, "schemas are required"));
    return;
  }
  const Result<schema::Schema> read = schema::from_openapi(*text, place);
  if (!read) {
    out.push_back(schema::invalid(place, "<schema>", read.error().message));
    return;
  }
  if (read->type != schema::Type::kObject) {
    out.push_back(schema::invalid(child(place, "type"), json::string(schema::type_text(read->type)),
                                  "must be object at the root"));
    return;
  }
  std::ranges::move(schema::check_structural(*read, place), std::back_inserter(out));
}

// Objects are kept under plural and group, and below namespaces or not.
void check_unchanged(const json::value& object, const json::value& old, std::vector<Cause>& out) {
  struct Field {
    std::string_view name;
    std::initializer_list<std::string_view> path;
  };
  for (const Field& field : {Field{"spec.group", {"spec", "group"}},
                             Field{"spec.names.plural", {"spec", "names", "plural"}},
                             Field{"spec.scope", {"spec", "scope"}}}) {
    const std::string_view now = json::get_string(object, field.path);
    if (now == json::get_string(old, field.path)) continue;
    out.push_back(
        schema::invalid(std::string(field.name), json::string(now), "field is immutable"));
  }
}

std::vector<Cause> validate(const json::value& object, const Admission& context) {
  std::vector<Cause> out;
  if (context.subresource == "status") return out;
  check_names(object, out);
  if (context.old != nullptr) check_unchanged(object, *context.old, out);
  const json::array& versions = json::get_array(object, {"spec", "versions"});
  std::size_t storage = 0;
  std::vector<std::string_view> seen;
  for (std::size_t i = 0; i < versions.size(); ++i) {
    const std::string path = child("spec.versions", i);
    check_version(versions[i], path, out);
    const std::string_view name = json::get_string(versions[i], {"name"});
    if (std::ranges::find(seen, name) != seen.end()) {
      out.push_back(schema::duplicate(child(path, "name"), json::string(name)));
    }
    seen.push_back(name);
    storage += json::get_bool(versions[i], {"storage"}).value_or(false) ? 1 : 0;
  }
  if (storage != 1) {
    out.push_back(schema::invalid("spec.versions", storage,
                                  "must have exactly one version marked as storage version"));
  }
  return out;
}

json::array cells(const json::value& object, std::int64_t) {
  return {json::string(json::get_string(object, {"metadata", "creationTimestamp"}))};
}

}  // namespace

Kind crd_kind() {
  return {
      .resource = {"apiextensions.k8s.io", "v1", "customresourcedefinitions",
                   "CustomResourceDefinition", false},
      .singular = "customresourcedefinition",
      .short_names = {"crd", "crds"},
      .categories = {"api-extensions"},
      .has_status = true,
      .schema = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
      .columns = {{"Created At", "string"}},
      .unconditional_update = false,
      .set_defaults = set_defaults,
      .validate = validate,
      .cells = cells};
}

}  // namespace skiff::api
