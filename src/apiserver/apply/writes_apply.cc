// Server-side apply as a verb: what stands between a request and apply_config().
#include <fmt/format.h>

#include <algorithm>

#include "api/meta.h"
#include "apiserver/apply/tracking.h"
#include "apiserver/status.h"
#include "apiserver/upkeep/fit.h"
#include "apiserver/writes.h"
#include "base/strings.h"

namespace skiff::apiserver {
namespace {

// apps/v1, Kind=Deployment; /v1, Kind=Pod; whatever the body says.
std::string kind_text(const json::value& body) {
  const std::string_view version = api::api_version(body);
  return fmt::format("{}{}, Kind={}", version.find('/') == std::string_view::npos ? "/" : "",
                     version, api::kind(body));
}

const api::Resource& kind_of_body(const WriteRequest& request) {
  static const api::Resource kScale{.group = "autoscaling", .version = "v1", .kind = "Scale"};
  return request.subresource == "scale" ? kScale : request.kind->resource();
}

// The configuration that an applied Scale is of the object it belongs to.
json::value config_of_scale(const WriteRequest& request) {
  const api::Resource& r = request.kind->resource();
  json::value config = json::object{{"apiVersion", r.api_version()}, {"kind", r.kind}};
  if (const json::value* metadata = json::find(request.body, {"metadata"})) {
    config.get_object()["metadata"] = *metadata;
  }
  const json::value* replicas = json::find(request.body, {"spec", "replicas"});
  if (replicas == nullptr || !request.kind->kind.scale) return config;
  std::string_view path = request.kind->kind.scale->spec;
  if (path.starts_with('.')) path.remove_prefix(1);
  json::value* at = &config;
  for (const std::string_view step : split(path, '.')) {
    if (!at->is_object()) at->emplace_object();
    at = &at->get_object()[step];
  }
  *at = *replicas;
  return config;
}

Result<void> check_apply_body(const WriteRequest& request) {
  const api::Resource& r = kind_of_body(request);
  if (!request.body.is_object()) {
    return fail(Code::kBadRequest,
                fmt::format("error decoding YAML: error unmarshaling JSON: while decoding JSON: "
                            "json: cannot unmarshal {} into Go value of type "
                            "map[string]interface {{}}",
                            json::type_name(request.body)));
  }
  if (api::api_version(request.body) != r.api_version() || api::kind(request.body) != r.kind) {
    return fail(Code::kBadRequest, fmt::format("invalid object type: {}", kind_text(request.body)));
  }
  const json::value* managed = json::find(request.body, {"metadata", "managedFields"});
  if (managed != nullptr && !managed->is_null()) {
    return fail(Code::kBadRequest, "metadata.managedFields must be nil");
  }
  return {};
}

bool managed_in(const json::value& object, std::string_view api_version) {
  return std::ranges::any_of(json::get_array(object, {"metadata", "managedFields"}),
                             [&](const json::value& entry) {
                               return json::get_string(entry, {"apiVersion"}) == api_version;
                             });
}

}  // namespace

Error uid_changed(const WriteRequest& request, std::string_view uid) {
  const Cause cause = invalid_value("metadata.uid", json::string(uid), "field is immutable");
  Error error = invalid(request.kind->resource(), request.name, {cause});
  // The real server finds it twice and says it once.
  error.causes.push_back(cause);
  return error;
}

void Writes::record_owners(const WriteRequest& request, const json::value* old, json::value sent,
                           json::value& next) const {
  if (request.applied) {
    if (!sent.is_null()) json::make_object(next, {"metadata"})["managedFields"] = std::move(sent);
    return;
  }
  // The real server cannot count fields that the kept version has no place for, and stops to.
  const ServedKind& kind = *request.kind;
  if (old != nullptr && kind.custom && kind.converts() && kind.kept_schema &&
      managed_in(*old, kind.storage_api_version()) && !fits_custom(*kind.kept_schema, next)) {
    return;
  }
  // What is owned is what will be shown, zeros and all; the rules that come after this see the
  // object without them.
  json::value written = next;
  gate_.complete_view(*request.kind, written);
  // Whoever makes an object does not own the status that the server gives it.
  if (old == nullptr && request.kind->kind.has_status) written.as_object().erase("status");
  track_update(gate_,
               {.kind = *request.kind,
                .subresource = request.subresource,
                .manager = request.manager,
                .now = stamp()},
               old, std::move(sent), written);
  if (json::value managed = take_managed(written); !managed.is_null()) {
    json::make_object(next, {"metadata"})["managedFields"] = std::move(managed);
  }
}

Result<Outcome> Writes::apply(Transaction& txn, const WriteRequest& request) {
  const api::Resource& resource = request.kind->resource();
  SKIFF_TRY(check_apply_body(request));
  const Object old = txn.get(key_of(request));
  if (old == nullptr && !request.subresource.empty()) {
    return std::unexpected(not_found(resource, request.name));
  }
  if (old != nullptr) {
    SKIFF_TRY(check_preconditions(request, *old));
    txn.require(key_of(request));
  }
  const FieldWriter writer{.kind = *request.kind,
                           .subresource = request.subresource,
                           .manager = request.manager,
                           .now = stamp()};
  json::value shown;
  if (old != nullptr) request.kind->from_storage(shown = *old);
  SKIFF_ASSIGN(
      json::value next,
      apply_config(gate_, writer, request.force, old == nullptr ? nullptr : &shown,
                   request.subresource == "scale" ? config_of_scale(request) : request.body));
  txn.warnings.insert(txn.warnings.end(), request.warnings.begin(), request.warnings.end());
  WriteRequest write = request;
  write.applied = true;
  const std::string_view uid = api::uid(request.body);
  if (old == nullptr) {
    if (!uid.empty()) {
      return std::unexpected(conflict(
          resource, request.name,
          fmt::format("uid mismatch: the provided object specified uid {}, and no existing object "
                      "was found",
                      uid)));
    }
    json::make_object(next, {"metadata"}).erase("resourceVersion");
    write.verb = Verb::kCreate;
    write.body = std::move(next);
    return create(txn, write);
  }
  if (!uid.empty() && uid != api::uid(*old)) {
    return std::unexpected(uid_changed(request, uid));
  }
  SKIFF_TRY(match_body(request, next));
  SKIFF_TRY(gate_.check_types(*request.kind, next));
  Result<Outcome> outcome = replace(txn, write, *old, std::move(next));
  if (outcome && request.subresource == "scale") outcome->scale_of = request.kind;
  return outcome;
}

}  // namespace skiff::apiserver
