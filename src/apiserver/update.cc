#include <fmt/format.h>

#include <algorithm>

#include "api/meta.h"
#include "apiserver/admission/admission.h"
#include "apiserver/apply/tracking.h"
#include "apiserver/status.h"
#include "apiserver/writes.h"

namespace skiff::apiserver {
namespace {

// What only the server decides; a client's value is replaced by the old one without complaint.
constexpr std::string_view kServerMetadata[] = {
    "uid",        "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
    "generation", "resourceVersion",   "generateName"};

void copy_server_member(json::object& to, const json::object& from, std::string_view name) {
  const json::value* member = from.if_contains(name);
  if (member != nullptr) {
    to[name] = *member;
  } else {
    to.erase(name);
  }
}

std::vector<Cause> check_added_finalizers(const json::value& old, const json::value& next) {
  if (!api::deleting(old)) return {};
  const std::vector<std::string> before =
      json::strings(json::get_array(old, {"metadata", "finalizers"}));
  std::string added;
  for (const std::string& f : json::strings(json::get_array(next, {"metadata", "finalizers"}))) {
    if (std::ranges::count(before, f) > 0) continue;
    if (!added.empty()) added += ", ";
    added += fmt::format("\"{}\"", f);
  }
  if (added.empty()) return {};
  return {forbidden_value("metadata.finalizers",
                          fmt::format("no new finalizers can be added if the object is being "
                                      "deleted, found new finalizers []string{{{}}}",
                                      added))};
}

// Whether anything outside metadata (and status, where it is a sub-resource) differs.
bool spec_changed(const ServedKind& kind, const json::value& a, const json::value& b) {
  const auto strip = [&](json::object o) {
    for (std::string_view name : {"metadata", "apiVersion", "kind"}) o.erase(name);
    if (kind.kind.has_status) o.erase("status");
    return o;
  };
  if (kind.kind.annotations_count && json::get_object(a, {"metadata", "annotations"}) !=
                                         json::get_object(b, {"metadata", "annotations"})) {
    return true;
  }
  return strip(a.get_object()) != strip(b.get_object());
}

// A body that carries a resourceVersion or a uid means that very object and state.
Result<void> check_same_object(const WriteRequest& request, const json::value& old,
                               const json::value& next) {
  const api::Resource& resource = request.kind->resource();
  if (const std::string_view given = api::resource_version(next);
      !given.empty() && given != "0" && given != api::resource_version(old)) {
    return std::unexpected(modified(resource, request.name));
  }
  if (const std::string_view given = api::uid(next); !given.empty() && given != api::uid(old)) {
    if (request.verb == Verb::kPatch) return std::unexpected(uid_changed(request, given));
    return std::unexpected(
        conflict(resource, request.name,
                 fmt::format("Precondition failed: UID in precondition: {}, UID in object meta: {}",
                             given, api::uid(old))));
  }
  return {};
}

bool writes_status(const WriteRequest& request) {
  return request.subresource == "status" || request.subresource == "approval";
}

// Takes from `next` only what this request may change; the rest stays as it was. `shown` is `old`
// in the version of the request.
void keep_the_rest(const WriteRequest& request, const json::value& old, const json::value& shown,
                   json::value& next) {
  const ServedKind& kind = *request.kind;
  if (writes_status(request)) {
    json::value whole = with_status(kind, shown, next);
    take_managed(whole);
    next = std::move(whole);
  } else if (request.subresource == "ephemeralcontainers" || request.subresource == "resize") {
    json::value whole = old;
    take_pod_part(request.subresource, next, whole);
    next = std::move(whole);
  } else {
    json::object& root = next.get_object();
    json::object& metadata = json::make_object(root, {"metadata"});
    const json::object& before = json::get_object(shown, {"metadata"});
    for (std::string_view name : kServerMetadata) copy_server_member(metadata, before, name);
    if (kind.kind.has_status) copy_server_member(root, shown.get_object(), "status");
  }
}

// The kind's own preparation of the admitted object, then everything that is wrong with it at once.
// `broken` is what its schema found.
Result<void> check_update(const SchemaGate& gate, const AdmissionRequest& admission,
                          std::vector<Cause> broken) {
  const WriteRequest& request = admission.request;
  const ServedKind& kind = *request.kind;
  const json::value& old = *admission.old;
  json::value& next = admission.object;
  const json::value user = kind.kind.prepare ? user_info(request.user) : json::value();
  const api::Admission context{.old = &old,
                               .subresource = request.subresource,
                               .now = admission.now,
                               .user = &user,
                               .sent = request.verb == Verb::kUpdate ? &request.body : nullptr};
  if (kind.kind.prepare != nullptr) kind.kind.prepare(next, context);
  const std::vector<Cause> metadata = check_metadata(kind, next, false);
  const std::vector<Cause> changes = check_added_finalizers(old, next);
  std::vector<std::string> hints;
  std::vector<Cause> own = std::move(broken);
  for (Cause& cause : gate.validate(kind, next, context, hints)) own.push_back(std::move(cause));
  if (!metadata.empty() || !changes.empty() || !own.empty()) {
    return std::unexpected(invalid_update(request, metadata, changes, own));
  }
  Warnings& warnings = admission.txn.warnings;
  warnings.insert(warnings.end(), hints.begin(), hints.end());
  warn_of_metadata(kind, next, &old, warnings);
  return {};
}

}  // namespace

bool released(const ServedKind& kind, const json::value& object) {
  if (!api::deleting(object) || has_finalizers(object)) return false;
  const std::string key = kind.resource().key();
  if (key == "pods") {
    return json::get_int(object, {"metadata", "deletionGracePeriodSeconds"}).value_or(0) == 0;
  }
  if (key == "namespaces") return json::get_array(object, {"spec", "finalizers"}).empty();
  return true;
}

Result<Outcome> Writes::update(Transaction& txn, const WriteRequest& request) {
  SKIFF_TRY(gate_.check_types(*request.kind, request.body));
  const Object old = txn.get(key_of(request));
  if (old == nullptr) {
    return std::unexpected(not_found(request.kind->resource(), request.name));
  }
  json::value next = request.body;
  SKIFF_TRY(match_body(request, next));
  SKIFF_TRY(check_preconditions(request, *old));
  txn.require(key_of(request));
  const std::string_view version = api::resource_version(next);
  if (version.empty() && request.resource_version.empty() &&
      !request.kind->kind.unconditional_update) {
    api::Resource named = request.kind->resource();
    named.kind = named.plural;  // the real server says the resource here
    return std::unexpected(
        invalid(named, request.name,
                {invalid_value("metadata.resourceVersion", 0, "must be specified for an update")}));
  }
  return replace(txn, request, *old, std::move(next));
}

Result<Outcome> Writes::patch(Transaction& txn, const WriteRequest& request) {
  const ServedKind& kind = *request.kind;
  const Object old = txn.get(key_of(request));
  if (old == nullptr) return std::unexpected(not_found(kind.resource(), request.name));
  SKIFF_TRY(check_preconditions(request, *old));
  txn.require(key_of(request));
  json::value shown = *old;
  kind.from_storage(shown);
  SKIFF_ASSIGN(json::value next, gate_.patch(kind, request.patch, shown, request.body));
  SKIFF_TRY(gate_.check_patched(kind, request.patch, request.body, next));
  if (api::name(next).empty()) {
    return fail(
        Code::kBadRequest,
        fmt::format("the name of the object ({} based on URL) was undeterminable: name must "
                    "be provided",
                    request.name));
  }
  SKIFF_TRY(gate_.check_types(kind, next));
  SKIFF_TRY(match_body(request, next));
  return replace(txn, request, *old, std::move(next));
}

Result<Outcome> Writes::replace(Transaction& txn, const WriteRequest& request,
                                const json::value& old, json::value next) {
  const ServedKind& kind = *request.kind;
  SKIFF_TRY(check_same_object(request, old, next));
  Outcome outcome{.key = key_of(request)};
  json::value sent = take_managed(next);
  drop_doubled_owners(next, txn.warnings);
  SKIFF_TRY(check_unknown(request, next, txn.warnings));
  json::value room;
  if (kind.converts()) kind.from_storage(room = old);
  const json::value& shown = kind.converts() ? room : old;
  keep_the_rest(request, old, shown, next);
  gate_.set_defaults(kind, next);
  record_owners(request, &shown, std::move(sent), next);
  if (request.subresource.empty()) follow_spec(txn, kind, next, stamp());
  if (hooks_.guard) SKIFF_TRY(hooks_.guard(request, next, &old));
  SKIFF_ASSIGN(std::vector<Cause> broken, gate_.judge(kind, next, request.subresource));
  kind.to_storage(next);
  // What the kept version has no place for goes below, but the client did change it.
  const bool changed = kind.custom && kind.converts() && spec_changed(kind, old, next);
  const AdmissionRequest admission{.txn = txn,
                                   .request = request,
                                   .object = next,
                                   .old = &old,
                                   .now = stamp(),
                                   .suffix = [this] { return new_suffix(); },
                                   .uid = [this] { return new_uid(); }};
  SKIFF_TRY(admit(admission, txn.warnings));
  gate_.complete(kind, next);
  SKIFF_TRY(check_update(gate_, admission, std::move(broken)));
  SKIFF_TRY(approve(admission, txn.warnings));
  // An answer, but no write and no event.
  if ((next == old && !changed) || (request.applied && same_but_times(next, old))) return outcome;
  if (!writes_status(request) && kind.kind.has_generation &&
      (changed || spec_changed(kind, old, next))) {
    const std::int64_t generation = json::get_int(old, {"metadata", "generation"}).value_or(0);
    json::set(next, {"metadata", "generation"}, generation + 1);
  }
  if (released(kind, next)) {
    txn.remove(outcome.key);
    outcome.answer = std::move(next);
    return outcome;
  }
  txn.put(outcome.key, std::move(next));
  return outcome;
}

}  // namespace skiff::apiserver
