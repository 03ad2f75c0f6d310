#include "apiserver/scale.h"

#include <fmt/format.h>

#include "api/meta.h"
#include "apiserver/reads.h"
#include "apiserver/status.h"
#include "apiserver/writes.h"
#include "base/selectors.h"
#include "base/strings.h"

namespace skiff::apiserver {
namespace {

const ServedKind& scale_kind() {
  static const ServedKind kKind = [] {
    ServedKind kind{.storage_group = "autoscaling", .storage_version = "v1"};
    kind.kind.resource = {"autoscaling", "v1", "scales", "Scale", true};
    kind.kind.schema = "io.k8s.api.autoscaling.v1.Scale";
    return kind;
  }();
  return kKind;
}

std::vector<std::string_view> steps(std::string_view path) {
  if (path.starts_with('.')) path.remove_prefix(1);
  return split(path, '.');
}

const json::value* follow_scale_path(const json::value& object, std::string_view path) {
  const json::value* at = &object;
  for (const std::string_view step : steps(path)) {
    at = json::find(*at, {step});
    if (at == nullptr) return nullptr;
  }
  return at->is_null() ? nullptr : at;
}

// As Go prints a value and its type.
std::string go_text(const json::value& v) {
  if (v.is_string()) return std::string(json::view(v.get_string()));
  if (v.is_double()) return fmt::format("{}", v.get_double());
  return json::serialize(v);
}

std::string_view go_type_of_value(const json::value& v) {
  if (v.is_string()) return "string";
  if (v.is_bool()) return "bool";
  if (v.is_double()) return "float64";
  if (v.is_object()) return "map[string]interface {}";
  if (v.is_array()) return "[]interface {}";
  return v.is_null() ? "<nil>" : "int64";
}

std::string accessor_error(std::string_view path, const json::value& found,
                           std::string_view wanted) {
  return fmt::format("{} accessor error: {} is of the type {}, expected {}", path, go_text(found),
                     go_type_of_value(found), wanted);
}

Error wrong_type(std::string_view path, const json::value& found, std::string_view wanted) {
  return {.code = Code::kInternal,
          .message = "Internal error occurred: " + accessor_error(path, found, wanted)};
}

// What stands at the path; a complaint where something on the way is no object.
struct Found {
  const json::value* value = nullptr;
  std::string complaint = {};
};

Found look_up(const json::value& object, std::string_view path) {
  const json::value* at = &object;
  std::string walked;
  for (const std::string_view step : steps(path)) {
    if (!at->is_object()) {
      if (at->is_null()) return {};
      return {.complaint = accessor_error(walked, *at, "map[string]interface{}")};
    }
    at = json::find(*at, {step});
    if (at == nullptr) return {};
    walked += fmt::format(".{}", step);
  }
  return {.value = at};
}

void check_replicas(const json::value& object, const std::string& path,
                    std::vector<Cause>& causes) {
  const Found found = look_up(object, path);
  const auto say = [&](std::int64_t n, std::string_view why) {
    causes.push_back(invalid_value(path, n, std::string(why)));
  };
  if (!found.complaint.empty()) return say(0, found.complaint);
  if (found.value == nullptr) return;
  if (!found.value->is_int64() && !found.value->is_uint64()) {
    return say(0, accessor_error(path, *found.value, "int64"));
  }
  const std::int64_t n = json::get_int(*found.value, {}).value_or(INT64_MAX);
  if (n < 0) say(n, "should be a non-negative integer");
  if (n > INT32_MAX) say(n, fmt::format("should be less than or equal to {}", INT32_MAX));
}

Result<std::int64_t> replicas_at(const json::value& object, std::string_view path) {
  const json::value* found = follow_scale_path(object, path);
  if (found == nullptr) return 0;
  const auto n = json::get_int(*found, {});
  if (!n) return std::unexpected(wrong_type(path, *found, "int64"));
  return *n;
}

Result<std::string> selector_at(const json::value& object, std::string_view path) {
  const json::value* found = path.empty() ? nullptr : follow_scale_path(object, path);
  if (found == nullptr) return "";
  if (found->is_string()) return std::string(json::view(found->get_string()));
  if (!found->is_object()) return std::unexpected(wrong_type(path, *found, "string"));
  const auto selector = LabelSelector::from_object(*found);
  if (!selector) return fail(Code::kBadRequest, selector.error().message);
  return selector->text();
}

// Without regard to whether the replicas are given.
Result<json::value> read_scale(const ServedKind& kind, const json::value& object) {
  const api::ScalePaths& paths = *kind.kind.scale;
  SKIFF_ASSIGN(const std::int64_t wanted, replicas_at(object, paths.spec));
  SKIFF_ASSIGN(const std::int64_t present, replicas_at(object, paths.status));
  SKIFF_ASSIGN(const std::string selector, selector_at(object, paths.selector));
  json::object metadata;
  for (const std::string_view field :
       {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}) {
    const json::value* v = json::find(object, {"metadata", field});
    if (v != nullptr) metadata[field] = *v;
  }
  json::object spec, status{{"replicas", present}};
  if (wanted != 0) spec["replicas"] = wanted;
  if (!selector.empty()) status["selector"] = selector;
  return json::object{{"kind", "Scale"},
                      {"apiVersion", "autoscaling/v1"},
                      {"metadata", std::move(metadata)},
                      {"spec", std::move(spec)},
                      {"status", std::move(status)}};
}

void put_replicas(json::value& object, std::string_view path, std::int64_t replicas) {
  json::value* at = &object;
  for (const std::string_view step : steps(path)) {
    if (!at->is_object()) at->emplace_object();
    at = &at->get_object()[step];
  }
  *at = replicas;
}

}  // namespace

Result<json::value> scale_of(const ServedKind& kind, const json::value& stored) {
  json::value shown = stored;
  kind.from_storage(shown);
  const std::string& path = kind.kind.scale->spec;
  if (kind.custom && follow_scale_path(shown, path) == nullptr) {
    return fail(
        Code::kInternal,
        fmt::format("Internal error occurred: the spec replicas field \"{}\" does not exist",
                    path));
  }
  return read_scale(kind, shown);
}

json::value scale_or_null(const ServedKind& kind, const json::value& stored) {
  auto scale = scale_of(kind, stored);
  return scale ? std::move(*scale) : json::value();
}

http::Response get_scale(const store::Store& store, const ServedKind& kind, const store::Key& key) {
  const store::EntryPtr entry = store.get(key);
  if (!entry) {
    http::Response response = error_response(not_found(kind.resource(), key.name));
    hold_until_visible(store, store.revision(), response);
    return response;
  }
  const auto scale = scale_of(kind, *entry->value());
  http::Response response =
      scale ? json_response(200, json::serialize(*scale)) : error_response(scale.error());
  hold_until_visible(store, entry->revision(), response);
  return response;
}

std::vector<Cause> check_scale(const ServedKind& kind, const json::value& object,
                               std::string_view subresource) {
  if (!kind.kind.scale) return {};
  std::vector<Cause> causes;
  const api::ScalePaths& paths = *kind.kind.scale;
  if (subresource != "status") check_replicas(object, paths.spec, causes);
  check_replicas(object, paths.status, causes);
  if (paths.selector.empty()) return causes;
  const Found found = look_up(object, paths.selector);
  if (!found.complaint.empty()) {
    causes.push_back(invalid_value(paths.selector, "", found.complaint));
  } else if (found.value != nullptr && !found.value->is_string()) {
    causes.push_back(
        invalid_value(paths.selector, "", accessor_error(paths.selector, *found.value, "string")));
  }
  return causes;
}

Result<Outcome> Writes::scale(Transaction& txn, const WriteRequest& request) {
  const ServedKind& kind = *request.kind;
  const api::Resource& resource = kind.resource();
  const Object old = txn.get(key_of(request));
  if (old == nullptr) return std::unexpected(not_found(resource, request.name));
  SKIFF_TRY(check_preconditions(request, *old));
  json::value next = *old;
  kind.from_storage(next);
  SKIFF_ASSIGN(const json::value before, read_scale(kind, next));

  WriteRequest as_scale = request;
  as_scale.kind = &scale_kind();
  json::value scale = request.body;
  if (request.verb == Verb::kPatch) {
    SKIFF_ASSIGN(scale, gate_.patch(scale_kind(), request.patch, before, request.body));
  } else if (request.verb != Verb::kUpdate) {
    return std::unexpected(method_not_allowed());
  }
  SKIFF_TRY(match_body(as_scale, scale));
  SKIFF_TRY(check_unknown(as_scale, scale, txn.warnings));
  SKIFF_TRY(gate_.check_types(scale_kind(), scale));
  const auto wanted = json::get_int(scale, {"spec", "replicas"});
  if (!kind.custom && wanted.value_or(0) < 0) {
    return std::unexpected(
        invalid(scale_kind().resource(), request.name,
                {invalid_value("spec.replicas", *wanted, "must be greater than or equal to 0")}));
  }
  if (const std::string_view uid = api::uid(scale); !uid.empty() && uid != api::uid(*old)) {
    api::Resource place = resource;
    place.plural += "/scale";
    return std::unexpected(
        conflict(place, request.name,
                 fmt::format("Precondition failed: UID in precondition: {}, UID in object meta: {}",
                             uid, api::uid(*old))));
  }
  put_replicas(next, kind.kind.scale->spec, wanted.value_or(0));
  json::object& metadata = json::make_object(next, {"metadata"});
  metadata["resourceVersion"] = json::string(api::resource_version(scale));
  WriteRequest as_object = request;
  as_object.duplicated.clear();
  as_object.text = {};
  as_object.validation = FieldValidation::kIgnore;
  SKIFF_ASSIGN(Outcome outcome, replace(txn, as_object, *old, std::move(next)));
  outcome.scale_of = &kind;
  return outcome;
}

}  // namespace skiff::apiserver
