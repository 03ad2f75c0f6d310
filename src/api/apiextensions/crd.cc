#include "api/apiextensions/crd.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "api/apiextensions/crd_schema.h"
#include "api/checks.h"
#include "api/meta.h"
#include "base/names.h"
#include "base/strings.h"
#include "schema/causes.h"

namespace skiff::api {
namespace {

using schema::child;
using schema::entry;

void default_crd_text(json::object& o, std::string_view key, const std::string& text) {
  if (text_in(o, key).empty() && !text.empty()) o[key] = text;
}

void set_crd_defaults(json::value& object) {
  json::object* root = object.if_object();
  json::object* spec = root == nullptr ? nullptr : object_in(*root, "spec");
  if (spec == nullptr) return;
  if (json::object* names = object_in(*spec, "names")) {
    const std::string kind(text_in(*names, "kind"));
    default_crd_text(*names, "singular", lower(kind));
    default_crd_text(*names, "listKind", kind.empty() ? "" : kind + "List");
  }
  json::value& conversion = (*spec)["conversion"];
  if (conversion.is_null()) conversion = json::object{{"strategy", "None"}};
  if (!json::get_array(object, {"status", "storedVersions"}).empty()) return;
  for (const json::value& version : json::get_array(object, {"spec", "versions"})) {
    if (!json::get_bool(version, {"storage"}).value_or(false)) continue;
    const json::string stored(json::get_string(version, {"name"}));
    if (json::object* status = object_in(*root, "status")) {
      (*status)["storedVersions"] = json::array{stored};
    }
    return;
  }
}

// Versions that all say the same are checked once, as if it were said above them; and where there
// is one version only, that is so.
struct Shared {
  bool schema, subresources, columns, selectable;

  static Shared of(const json::array& versions) {
    const auto same = [&](std::string_view field) {
      return std::ranges::all_of(versions, [&](const json::value& v) {
        const json::value* a = json::find(v, {field});
        const json::value* b = json::find(versions[0], {field});
        return a == nullptr || b == nullptr ? a == b : *a == *b;
      });
    };
    return {same("schema"), same("subresources"), same("additionalPrinterColumns"),
            same("selectableFields")};
  }
};

void check_label(std::string_view text, const std::string& path, Causes& out,
                 std::string_view before = "", std::string_view shown = "") {
  for (const std::string& bad : names::check_dns1035_label(text)) {
    out.push_back(schema::invalid(path, json::string(shown.empty() ? text : shown),
                                  std::string(before) + bad));
  }
}

// spec.names, and status.acceptedNames by the same rules but for what must be there.
void check_crd_names(const json::value& names, const std::string& path, Causes& out) {
  for (const std::string_view field : {"plural", "singular"}) {
    const std::string_view text = json::get_string(names, {field});
    if (!text.empty()) check_label(text, child(path, field), out);
  }
  for (const std::string_view field : {"kind", "listKind"}) {
    const std::string_view text = json::get_string(names, {field});
    if (text.empty()) continue;
    check_label(lower(text), child(path, field), out,
                "may have mixed case, but should otherwise match: ", text);
  }
  const auto each = [&](std::string_view field) {
    const json::array& list = json::get_array(names, {field});
    for (std::size_t i = 0; i < list.size(); ++i) {
      check_label(json::get_string(list[i], {}), child(child(path, field), i), out);
    }
  };
  each("shortNames");
  const std::string_view kind = json::get_string(names, {"kind"});
  if (!kind.empty() && kind == json::get_string(names, {"listKind"})) {
    out.push_back(schema::invalid(child(path, "listKind"), json::string(kind),
                                  "kind and listKind may not be the same"));
  }
  each("categories");
}

void check_simple_path(std::string_view text, const std::string& path, Causes& out) {
  if (!text.starts_with('.')) {
    out.push_back(
        schema::invalid(path, json::string(text), "must be a simple json path starting with ."));
  }
}

void check_column(const json::value& column, const std::string& path, Causes& out) {
  if (json::get_string(column, {"name"}).empty()) {
    out.push_back(schema::required(child(path, "name")));
  }
  constexpr std::string_view kTypes = "must be one of boolean,date,integer,number,string";
  const std::string_view type = json::get_string(column, {"type"});
  if (type.empty()) {
    out.push_back(schema::required(child(path, "type"), kTypes));
  } else if (!is_one_of(type, {"boolean", "date", "integer", "number", "string"})) {
    out.push_back(schema::invalid(child(path, "type"), json::string(type), kTypes));
  }
  const std::string_view format = json::get_string(column, {"format"});
  if (!format.empty() && !is_one_of(format, {"byte", "date", "date-time", "double", "float",
                                             "int32", "int64", "password"})) {
    out.push_back(
        schema::invalid(child(path, "format"), json::string(format),
                        "must be one of byte,date,date-time,double,float,int32,int64,password"));
  }
  const std::string_view json_path = json::get_string(column, {"jsonPath"});
  if (json_path.empty()) {
    out.push_back(schema::required(child(path, "JSONPath")));
  } else {
    check_simple_path(json_path, child(path, "JSONPath"), out);
  }
}

void check_columns(const json::value& version, const std::string& path, Causes& out) {
  const json::array& list = json::get_array(version, {"additionalPrinterColumns"});
  for (std::size_t i = 0; i < list.size(); ++i) {
    check_column(list[i], child(child(path, "additionalPrinterColumns"), i), out);
  }
}

void check_subresources(const json::value& version, const std::string& path, Causes& out) {
  const json::value* scale = json::find(version, {"subresources", "scale"});
  if (scale == nullptr || !scale->is_object()) return;
  struct Rule {
    std::string_view field;
    std::vector<std::string_view> below;
    std::string_view why;
  };
  const std::vector<Rule> rules = {
      {"specReplicasPath", {".spec."}, "should be a json path under .spec"},
      {"statusReplicasPath", {".status."}, "should be a json path under .status"},
      {"labelSelectorPath",
       {".spec.", ".status."},
       "should be a json path under either .spec or .status"}};
  for (const Rule& rule : rules) {
    const std::string place = child(path, "subresources.scale." + std::string(rule.field));
    const std::string_view text = json::get_string(*scale, {rule.field});
    if (text.empty()) {
      if (rule.field != "labelSelectorPath") out.push_back(schema::required(place));
    } else if (!text.starts_with('.')) {
      check_simple_path(text, place, out);
    } else if (std::ranges::none_of(rule.below, [&](auto p) { return text.starts_with(p); })) {
      out.push_back(schema::invalid(place, json::string(text), rule.why));
    }
  }
}

// The schema a path of fields leads to, or what is wrong with the path.
Result<const json::value*> follow(const json::value& root, std::string_view path) {
  const json::value* s = &root;
  if (!path.starts_with('.')) {
    return fail(Code::kInvalid, fmt::format("expected [ or . but got: {}",
                                            path.substr(0, path.find_first_of(".["))));
  }
  if (path.find('[') != path.npos) return fail(Code::kInvalid, "array notation is not allowed");
  for (const std::string_view step : split(path.substr(1), '.')) {
    if (step.empty()) return fail(Code::kInvalid, "unexpected end of JSON path");
    const json::value* next = json::find(*s, {"properties", step});
    if (next == nullptr && json::find(*s, {"properties"}) == nullptr) {
      next = json::find(*s, {"additionalProperties"});
    }
    if (next == nullptr) return fail(Code::kInvalid, "does not refer to a valid field");
    s = next;
  }
  return s;
}

void check_selectable(const json::value& version, const std::string& path, Causes& out) {
  constexpr std::size_t kMost = 8;
  const json::array& fields = json::get_array(version, {"selectableFields"});
  const std::string base = child(path, "selectableFields");
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::string place = child(child(base, i), "jsonPath");
    const std::string_view text = json::get_string(fields[i], {"jsonPath"});
    const auto say = [&](const std::string& why) {
      out.push_back(schema::invalid(place, json::string(text), why));
    };
    if (text.empty()) {
      out.push_back(schema::required(place));
      continue;
    }
    const auto found = follow(value_at(version, {"schema", "openAPIV3Schema"}), text);
    if (!found) {
      say("is an invalid path: " + found.error().message);
      continue;
    }
    if (text == ".metadata" || text.starts_with(".metadata.")) {
      say("must not point to fields in metadata");
    }
    if (!is_one_of(json::get_string(**found, {"type"}), {"string", "boolean", "integer"})) {
      say("must point to a field of type string, boolean or integer. Enum string fields and "
          "strings with formats are allowed.");
    }
    if (!seen.insert(text).second) out.push_back(schema::duplicate(place, json::string(text)));
  }
  if (seen.size() > kMost) out.push_back(schema::too_many(base, seen.size(), kMost));
}

void check_schema(const json::value& version, const std::string& path, Causes& out) {
  const json::value* schema = json::find(version, {"schema", "openAPIV3Schema"});
  if (schema == nullptr) return;
  const json::value* status = json::find(version, {"subresources", "status"});
  check_crd_schema(*schema, child(path, "openAPIV3Schema"), status != nullptr && !status->is_null(),
                   out);
}

void check_deprecation(const json::value& version, const std::string& path, Causes& out) {
  const json::value* warning = json::find(version, {"deprecationWarning"});
  if (warning == nullptr || warning->is_null()) return;
  const std::string_view text = json::get_string(*warning, {});
  const auto say = [&](std::string_view why) {
    out.push_back(schema::invalid(child(path, "deprecationWarning"), *warning, why));
  };
  if (!json::get_bool(version, {"deprecated"}).value_or(false)) {
    say("can only be set for deprecated versions");
    return;
  }
  constexpr std::size_t kMostBytes = 256;
  if (text.size() > kMostBytes) say("must be <= 256 characters long");
  if (text.empty()) say("must not be an empty string");
}

void check_crd_versions(const json::value& spec, Causes& out) {
  const json::array& versions = json::get_array(spec, {"versions"});
  const Shared shared = Shared::of(versions);
  for (std::size_t i = 0; i < versions.size(); ++i) {
    if (json::find(versions[i], {"schema", "openAPIV3Schema"}) == nullptr) {
      out.push_back(schema::required(child(child("spec.versions", i), "schema.openAPIV3Schema")));
    }
  }
  std::size_t storage = 0;
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < versions.size(); ++i) {
    const json::value& version = versions[i];
    const std::string path = child("spec.versions", i);
    const std::string_view name = json::get_string(version, {"name"});
    storage += json::get_bool(version, {"storage"}).value_or(false) ? 1 : 0;
    seen.insert(name);
    check_label(name, child(path, "name"), out);
    check_deprecation(version, path, out);
    if (!shared.schema) check_schema(version, child(path, "schema"), out);
    if (!shared.subresources) check_subresources(version, path, out);
    if (!shared.columns) check_columns(version, path, out);
    if (!shared.selectable) check_selectable(version, path, out);
  }
  const json::value all = versions;
  if (seen.size() != versions.size()) {
    out.push_back(schema::invalid("spec.versions", all, "must contain unique version names"));
  }
  if (storage != 1) {
    out.push_back(schema::invalid("spec.versions", all,
                                  "must have exactly one version marked as storage version"));
  }
  // The first one is also known as the version.
  if (const std::string_view first =
          versions.empty() ? "" : json::get_string(versions[0], {"name"});
      !first.empty()) {
    check_label(first, "spec.version", out);
  }
}

void check_shared(const json::value& spec, Causes& out) {
  const json::array& versions = json::get_array(spec, {"versions"});
  if (versions.empty()) return;
  const Shared shared = Shared::of(versions);
  if (shared.schema) check_schema(versions[0], "spec.validation", out);
  if (shared.subresources) check_subresources(versions[0], "spec", out);
  if (shared.columns) check_columns(versions[0], "spec", out);
  if (shared.selectable) check_selectable(versions[0], "spec", out);
}

void check_webhook(const json::value& spec, Causes& out) {
  const std::string path = "spec.conversion";
  const std::size_t before = out.size();
  const auto given = [](const json::value& from, Path at) {
    const json::value* found = json::find(from, at);
    return found != nullptr && !found->is_null() ? found : nullptr;
  };
  const json::value* config = given(spec, {"conversion", "webhook", "clientConfig"});
  if (config == nullptr) {
    out.push_back(schema::required(child(path, "webhookClientConfig"),
                                   "required when strategy is set to Webhook"));
  } else if ((given(*config, {"url"}) == nullptr) == (given(*config, {"service"}) == nullptr)) {
    out.push_back(schema::required(child(path, "webhookClientConfig"),
                                   "exactly one of url or service is required"));
  }
  if (json::get_array(spec, {"conversion", "webhook", "conversionReviewVersions"}).empty()) {
    out.push_back(schema::required(child(path, "conversionReviewVersions")));
  }
  if (out.size() != before) return;
  // The real server would call it; a definition that we would serve wrongly is refused.
  out.push_back(schema::forbidden(child(path, "strategy"),
                                  "conversion webhooks are not served here; use None"));
}

void check_conversion(const json::value& spec, Causes& out) {
  const std::string_view strategy = json::get_string(spec, {"conversion", "strategy"});
  const json::value* webhook = json::find(spec, {"conversion", "webhook"});
  const std::string path = "spec.conversion";
  if (strategy.empty()) {
    out.push_back(schema::required(child(path, "strategy")));
  } else if (strategy == "Webhook") {
    check_webhook(spec, out);
  } else if (strategy != "None") {
    out.push_back(
        schema::unsupported(child(path, "strategy"), json::string(strategy), {"None", "Webhook"}));
  }
  if (strategy != "Webhook" && webhook != nullptr && !webhook->is_null()) {
    out.push_back(schema::forbidden(child(path, "webhookClientConfig"),
                                    "should not be set when strategy is not set to Webhook"));
  }
}

void check_crd_spec(const json::value& spec, Causes& out) {
  const std::string_view group = json::get_string(spec, {"group"});
  if (group.empty()) {
    out.push_back(schema::required("spec.group"));
  } else if (const auto bad = names::check_dns1123_subdomain(group); !bad.empty()) {
    out.push_back(schema::invalid("spec.group", json::string(group), join(bad, ",")));
  } else if (group.find('.') == group.npos) {
    out.push_back(schema::invalid("spec.group", json::string(group),
                                  "should be a domain with at least one dot"));
  }
  const std::string_view scope = json::get_string(spec, {"scope"});
  if (scope.empty()) {
    out.push_back(schema::required("spec.scope"));
  } else if (scope != "Cluster" && scope != "Namespaced") {
    out.push_back(
        schema::unsupported("spec.scope", json::string(scope), {"Cluster", "Namespaced"}));
  }
  check_crd_versions(spec, out);
  const json::value& names = value_at(spec, {"names"});
  for (const std::string_view field : {"plural", "singular", "kind", "listKind"}) {
    if (json::get_string(names, {field}).empty()) {
      out.push_back(schema::required(child("spec.names", field)));
    }
  }
  check_crd_names(names, "spec.names", out);
  check_shared(spec, out);
  check_conversion(spec, out);
}

// Objects may still be kept in a version that was once the one to store.
void check_stored(const json::value& object, Causes& out) {
  const json::array& stored = json::get_array(object, {"status", "storedVersions"});
  const json::array& versions = json::get_array(object, {"spec", "versions"});
  const std::string path = "status.storedVersions";
  if (stored.empty()) {
    out.push_back(schema::invalid(path, nullptr, "must have at least one stored version"));
    return;
  }
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const std::string_view name = json::get_string(stored[i], {});
    const bool known = std::ranges::any_of(
        versions, [&](const json::value& v) { return json::get_string(v, {"name"}) == name; });
    if (known) continue;
    out.push_back(schema::invalid(
        child(path, i), stored[i],
        fmt::format("missing from spec.versions; {0} was previously a storage version, and must "
                    "remain in spec.versions until a storage migration ensures no data remains "
                    "persisted in {0} and removes {0} from status.storedVersions",
                    name)));
  }
}

void check_approval(const json::value& object, const json::value* old, Causes& out) {
  constexpr std::string_view kKey = "api-approved.kubernetes.io";
  const std::string_view group = json::get_string(object, {"spec", "group"});
  const bool community = is_one_of(group, {"k8s.io", "kubernetes.io"}) ||
                         group.ends_with(".k8s.io") || group.ends_with(".kubernetes.io");
  const auto state = [&](const json::value& v) {
    const std::string_view text = annotation(v, kKey);
    if (text.starts_with("unapproved")) return 1;
    if (text.starts_with("https://") || text.starts_with("http://")) return 2;
    return text.empty() ? 0 : 3;
  };
  if (!community || (old != nullptr && state(*old) == state(object))) return;
  const std::string path = entry("metadata.annotations", kKey);
  if (state(object) == 0) {
    out.push_back(schema::required(
        path,
        "protected groups must have approval annotation \"api-approved.kubernetes.io\", see "
        "https://github.com/kubernetes/enhancements/pull/1111"));
  } else if (state(object) == 3) {
    out.push_back(schema::invalid(
        path, json::string(annotation(object, kKey)),
        "protected groups must have approval annotation \"api-approved.kubernetes.io\" with either "
        "a URL or a reason starting with \"unapproved\", see "
        "https://github.com/kubernetes/enhancements/pull/1111"));
  }
}

void check_crd_unchanged(const json::value& object, const json::value& old, Causes& out) {
  const auto unchanged = [&](std::string path, Path steps) {
    check_immutable(json::find(object, steps), json::find(old, steps), std::move(path), out);
  };
  if (condition_true(old, "Established")) {
    unchanged("spec.scope", {"spec", "scope"});
    unchanged("spec.names.kind", {"spec", "names", "kind"});
  }
  unchanged("spec.group", {"spec", "group"});
  unchanged("spec.names.plural", {"spec", "names", "plural"});
}

std::vector<Cause> validate_crd(const json::value& object, const Admission& context) {
  Causes out;
  if (context.subresource == "status") {
    check_crd_names(value_at(object, {"status", "acceptedNames"}), "status.acceptedNames", out);
    return out;
  }
  const json::value& spec = value_at(object, {"spec"});
  const std::string wanted = std::string(json::get_string(spec, {"names", "plural"})) + "." +
                             std::string(json::get_string(spec, {"group"}));
  if (context.old == nullptr && name(object) != wanted) {
    out.push_back(schema::invalid("metadata.name", json::string(name(object)),
                                  "must be spec.names.plural+\".\"+spec.group"));
  }
  check_crd_spec(spec, out);
  if (context.old != nullptr) check_crd_unchanged(object, *context.old, out);
  check_stored(object, out);
  check_approval(object, context.old, out);
  if (json::get_bool(spec, {"preserveUnknownFields"}).value_or(false)) {
    out.push_back(
        schema::invalid("spec.preserveUnknownFields", true,
                        "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
                        "spec.versions[*].schema instead"));
  }
  return out;
}

std::vector<std::string> crd_warnings(const json::value& object, const Admission& context) {
  if (!context.subresource.empty()) return {};
  for (const json::value& version : json::get_array(object, {"spec", "versions"})) {
    const json::value* schema = json::find(version, {"schema", "openAPIV3Schema"});
    if (schema != nullptr && schema_mentions(*schema, "x-kubernetes-validations")) {
      return {
          "x-kubernetes-validations: the rules are stored, but this server does not enforce "
          "them yet"};
    }
  }
  return {};
}

json::array crd_cells(const json::value& object, std::int64_t) {
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
      .columns = {{"Created At", "date", "", 0,
                   "CreationTimestamp is a timestamp representing the server time when this object "
                   "was created. It is not guaranteed to be set in happens-before order across "
                   "separate operations. Clients may not set this value. It is represented in "
                   "RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for "
                   "lists. More info: "
                   "https://git.k8s.io/community/contributors/devel/sig-architecture/"
                   "api-conventions.md#metadata"}},
      .unconditional_update = false,
      .set_defaults = set_crd_defaults,
      .validate = validate_crd,
      .warnings = crd_warnings,
      .cells = crd_cells};
}

}  // namespace skiff::api
