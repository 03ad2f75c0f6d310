// Server-side apply as a verb: what stands between a request and apply_config().
#include <fmt/format.h>

#include "api/meta.h"
#include "apiserver/apply/tracking.h"
#include "apiserver/status.h"
#include "apiserver/writes.h"

namespace skiff::apiserver {
namespace {

// apps/v1, Kind=Deployment; /v1, Kind=Pod; whatever the body says.
std::string kind_text(const json::value& body) {
  const std::string_view version = api::api_version(body);
  return fmt::format("{}{}, Kind={}", version.find('/') == std::string_view::npos ? "/" : "",
                     version, api::kind(body));
}

Result<void> check_body(const WriteRequest& request) {
  const api::Resource& r = request.kind->resource();
  if (!request.body.is_object()) {
    return fail(Code::kBadRequest,
                fmt::format("error decoding YAML: error unmarshaling JSON: while decoding JSON: "
                            "json: cannot unmarshal {} into Go value of type "
                            "map[string]interface {{}}",
                            json::type_name(request.body)));
  }
  if (api::api_version(request.body) != r.api_version() || api::kind(request.body) != r.kind) {
    return fail(Code::kBadRequest,
                fmt::format("invalid object type: {}", kind_text(request.body)));
  }
  const json::value* managed = json::find(request.body, {"metadata", "managedFields"});
  if (managed != nullptr && !managed->is_null()) {
    return fail(Code::kBadRequest, "metadata.managedFields must be nil");
  }
  return {};
}

Error uid_changed(const WriteRequest& request, std::string_view uid) {
  const Cause cause =
      invalid_value("metadata.uid", json::string(uid), "field is immutable");
  Error error = invalid(request.kind->resource(), request.name, {cause});
  // The real server finds it twice and says it once.
  error.causes.push_back(cause);
  return error;
}

Result<Outcome> with_warnings(const WriteRequest& request, Result<Outcome> outcome) {
  if (outcome) {
    outcome->warnings.insert(outcome->warnings.begin(), request.warnings.begin(),
                             request.warnings.end());
  }
  return outcome;
}

}  // namespace

void Writes::record_owners(const WriteRequest& request, const json::value* old, json::value sent,
                           json::value& next) const {
  if (request.applied) {
    if (!sent.is_null()) json::make_object(next, {"metadata"})["managedFields"] = std::move(sent);
    return;
  }
  gate_.complete_view(*request.kind, next);
  track_update(gate_,
               {.kind = *request.kind,
                .subresource = request.subresource,
                .manager = request.manager,
                .now = stamp()},
               old, std::move(sent), next);
}

Result<Outcome> Writes::apply(Transaction& txn, const WriteRequest& request) {
  const api::Resource& resource = request.kind->resource();
  SKIFF_TRY(check_body(request));
  const Object old = txn.get(key_of(request));
  if (old == nullptr && !request.subresource.empty()) {
    return std::unexpected(not_found(resource, request.name));
  }
  if (old != nullptr) SKIFF_TRY(check_preconditions(request, *old));
  const FieldWriter writer{.kind = *request.kind,
                           .subresource = request.subresource,
                           .manager = request.manager,
                           .now = stamp()};
  json::value shown;
  if (old != nullptr) request.kind->from_storage(shown = *old);
  SKIFF_ASSIGN(json::value next,
               apply_config(gate_, writer, request.force, old == nullptr ? nullptr : &shown,
                            request.body));
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
    return with_warnings(request, create(txn, write));
  }
  if (!uid.empty() && uid != api::uid(*old)) {
    return std::unexpected(uid_changed(request, uid));
  }
  SKIFF_TRY(match_body(request, next));
  return with_warnings(request, replace(txn, write, *old, std::move(next)));
}

}  // namespace skiff::apiserver
