#include <fmt/format.h>

#include <algorithm>

#include "api/meta.h"
#include "apiserver/admission/admission.h"
#include "apiserver/apply/managed.h"
#include "apiserver/status.h"
#include "apiserver/writes.h"
#include "base/limits.h"

namespace skiff::apiserver {
namespace {

constexpr int kNameAttempts = 8;
// What is left of a name's 63 characters for the part that generateName gives.
constexpr std::size_t kGeneratedPrefixBytes = 58;

Result<void> check_target_namespace(Transaction& txn, const WriteRequest& request,
                                    std::string_view name) {
  const Object ns = txn.get({.resource = "namespaces", .name = request.ns});
  if (ns == nullptr) {
    return std::unexpected(not_found({.version = "v1", .plural = "namespaces"}, request.ns));
  }
  if (!api::deleting(*ns)) {
    txn.require({.resource = "namespaces", .name = request.ns});
    return {};
  }
  Error error = forbidden(
      request.kind->resource(), name,
      fmt::format("unable to create new content in namespace {} because it is being terminated",
                  request.ns));
  error.causes.push_back({.field = "metadata.namespace",
                          .reason = "NamespaceTerminating",
                          .message = fmt::format("namespace {} is being terminated", request.ns)});
  return std::unexpected(std::move(error));
}

// Nothing new has a revision; what is no number is none.
Result<void> check_unwritten(const json::value& object) {
  if (api::revision(object) == 0) return {};
  return fail(Code::kUnknown, "resourceVersion should not be set on objects to be created");
}

}  // namespace

Result<void> Writes::choose_name(Transaction& txn, const WriteRequest& request,
                                 json::value& object) {
  const api::Resource& resource = request.kind->resource();
  store::Key key{.resource = request.kind->storage_key(), .ns = request.ns};
  if (key.name = api::name(object); !key.name.empty()) {
    const Object there = txn.get(key);
    if (there == nullptr) return {};
    Error error = already_exists(resource, key.name);
    if (api::deleting(*there)) error.message = "object is being deleted: " + error.message;
    return std::unexpected(std::move(error));
  }
  const std::string_view prefix = json::get_string(object, {"metadata", "generateName"});
  if (prefix.empty()) {
    return std::unexpected(
        invalid(resource, "", {required("metadata.name", "name or generateName is required")}));
  }
  const std::string start(prefix.substr(0, kGeneratedPrefixBytes));
  for (int attempt = 0; attempt < kNameAttempts; ++attempt) {
    key.name = start + new_suffix();
    if (txn.get(key) == nullptr) {
      json::set(object, {"metadata", "name"}, json::string(key.name));
      return {};
    }
  }
  return std::unexpected(already_exists(resource, key.name));
}

Result<Outcome> Writes::create(Transaction& txn, const WriteRequest& request) {
  const ServedKind& kind = *request.kind;
  if (!request.subresource.empty() || kind.resource().namespaced == request.ns.empty()) {
    return std::unexpected(method_not_allowed());
  }
  json::value object = request.body;
  SKIFF_TRY(gate_.check_types(kind, object));
  SKIFF_TRY(match_body(request, object));
  if (kind.resource().namespaced) {
    SKIFF_TRY(check_target_namespace(txn, request, api::name(object)));
  }

  Outcome outcome{.status = 201};
  json::value sent = take_managed(object);
  SKIFF_TRY(check_unknown(request, object, txn.warnings));
  drop_doubled_owners(object, txn.warnings);
  SKIFF_TRY(choose_name(txn, request, object));
  json::object& metadata = json::make_object(object, {"metadata"});
  for (std::string_view gone : {"deletionTimestamp", "deletionGracePeriodSeconds"}) {
    metadata.erase(gone);
  }
  const std::string now = stamp();
  metadata["uid"] = new_uid();
  metadata["creationTimestamp"] = now;
  metadata.erase("generation");
  if (kind.kind.has_generation) metadata["generation"] = 1;
  if (kind.kind.has_status) object.get_object().erase("status");
  gate_.set_defaults(kind, object);
  record_owners(request, nullptr, std::move(sent), object);
  prepare_new(txn, kind, object, now);
  if (hooks_.guard) SKIFF_TRY(hooks_.guard(request, object, nullptr));
  SKIFF_ASSIGN(std::vector<Cause> broken, gate_.judge(kind, object, request.subresource));
  kind.to_storage(object);
  const AdmissionRequest admission{.txn = txn,
                                   .request = request,
                                   .object = object,
                                   .now = now,
                                   .suffix = [this] { return new_suffix(); },
                                   .uid = [this] { return new_uid(); }};
  SKIFF_TRY(admit(admission, txn.warnings));
  gate_.complete(kind, object);
  const json::value user = kind.kind.prepare ? user_info(request.user) : json::value();
  const api::Admission context{.now = now, .user = &user, .sent = &request.body};
  // Before labels are made of a name that may be bad.
  std::vector<Cause> causes = check_metadata(kind, object, true);
  if (const auto sent_generation = json::get_int(request.body, {"metadata", "generation"});
      sent_generation.value_or(0) < 0) {
    causes.push_back(invalid_value("metadata.generation", *sent_generation,
                                   "must be greater than or equal to 0"));
  }
  if (kind.kind.prepare != nullptr) kind.kind.prepare(object, context);
  std::ranges::move(broken, std::back_inserter(causes));
  std::vector<std::string> hints;
  for (Cause& cause : gate_.validate(kind, object, context, hints))
    causes.push_back(std::move(cause));
  const std::string name(api::name(object));
  if (!causes.empty()) return std::unexpected(invalid_object(kind, name, std::move(causes)));
  txn.warnings.insert(txn.warnings.end(), hints.begin(), hints.end());
  warn_of_metadata(kind, object, nullptr, txn.warnings);

  SKIFF_TRY(approve(admission, txn.warnings));
  if (!request.dry_run) SKIFF_TRY(check_unwritten(object));
  outcome.key = {.resource = kind.storage_key(), .ns = request.ns, .name = name};
  txn.put(outcome.key, std::move(object));
  if (hooks_.created) hooks_.created(txn, request, *txn.get(outcome.key));
  return outcome;
}

}  // namespace skiff::apiserver
