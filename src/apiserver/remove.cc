#include <fmt/format.h>

#include <algorithm>

#include "api/meta.h"
#include "apiserver/status.h"
#include "apiserver/writes.h"

namespace skiff::apiserver {
namespace {

constexpr std::int64_t kPodGraceSeconds = 30;

json::value deleted_status(const ServedKind& kind, const json::value& object) {
  json::object details{{"name", json::string(api::name(object))}};
  if (!kind.resource().group.empty()) details["group"] = kind.resource().group;
  details["kind"] = kind.resource().plural;
  details["uid"] = json::string(api::uid(object));
  return json::object{{"kind", "Status"},
                      {"apiVersion", "v1"},
                      {"metadata", json::object()},
                      {"status", "Success"},
                      {"details", std::move(details)}};
}

// How long the pod may take to stop. One that no agent holds is gone at once.
std::int64_t pod_grace(const json::value& pod, const DeleteOptions& options) {
  const std::string_view phase = json::get_string(pod, {"status", "phase"});
  if (json::get_string(pod, {"spec", "nodeName"}).empty() || phase == "Succeeded" ||
      phase == "Failed") {
    return 0;
  }
  const std::int64_t wanted = options.grace_period_s.value_or(
      json::get_int(pod, {"spec", "terminationGracePeriodSeconds"}).value_or(kPodGraceSeconds));
  return std::max<std::int64_t>(wanted, 0);
}

Result<std::string> propagation_finalizer(const WriteRequest& request) {
  const std::string& policy = request.remove.propagation;
  if (policy == "Foreground") return "foregroundDeletion";
  if (policy == "Orphan") return "orphan";
  if (policy == "Background") return "";
  if (!policy.empty()) {
    return fail(
        Code::kBadRequest,
        fmt::format("propagationPolicy \"{}\" is none of Orphan, Background, Foreground", policy));
  }
  const std::string key = request.kind->resource().key();
  return key == "replicationcontrollers" || key == "jobs.batch" ? "orphan" : "";
}

// Whether or not there is such an object.
void warn_of_orphans(const WriteRequest& request, std::vector<std::string>& warnings) {
  if (request.kind->resource().key() != "jobs.batch" || !request.remove.propagation.empty()) return;
  warnings.emplace_back(
      "child pods are preserved by default when jobs are deleted; set "
      "propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress "
      "this warning");
}

void add_deletion_finalizer(json::value& object, const std::string& finalizer) {
  if (finalizer.empty()) return;
  json::object& metadata = json::make_object(object, {"metadata"});
  json::value& list = metadata["finalizers"];
  if (!list.is_array()) list.emplace_array();
  if (std::ranges::count(json::strings(list.get_array()), finalizer) == 0) {
    list.get_array().emplace_back(json::string(finalizer));
  }
}

bool held(const ServedKind& kind, const json::value& object, std::int64_t grace_s) {
  if (has_finalizers(object) || grace_s > 0) return true;
  return kind.resource().key() == "namespaces" &&
         !json::get_array(object, {"spec", "finalizers"}).empty();
}

}  // namespace

Result<Outcome> Writes::remove(Transaction& txn, const WriteRequest& request) {
  const ServedKind& kind = *request.kind;
  if (!request.subresource.empty()) return std::unexpected(method_not_allowed());
  warn_of_orphans(request, txn.warnings);
  Outcome outcome{.key = key_of(request)};
  const Object old = txn.get(outcome.key);
  if (old == nullptr) return std::unexpected(not_found(kind.resource(), request.name));
  SKIFF_TRY(check_preconditions(request, *old));
  if (kind.resource().key() == "namespaces" &&
      std::ranges::count(kPermanentNamespaces, request.name) > 0) {
    return std::unexpected(
        forbidden(kind.resource(), request.name, "this namespace may not be deleted"));
  }

  if (json::value marked = *old; begin_removal(kind, marked, stamp())) {
    txn.put(outcome.key, std::move(marked));
    return outcome;
  }

  const bool pod = kind.resource().key() == "pods";
  const std::int64_t grace = pod ? pod_grace(*old, request.remove) : 0;
  json::value next = *old;
  SKIFF_ASSIGN(const std::string finalizer, propagation_finalizer(request));
  if (!api::deleting(*old)) add_deletion_finalizer(next, finalizer);
  const std::int64_t running =
      json::get_int(*old, {"metadata", "deletionGracePeriodSeconds"}).value_or(0);
  // A second delete may only shorten the wait.
  if (!api::deleting(*old) || grace < running) {
    json::object& metadata = json::make_object(next, {"metadata"});
    metadata["deletionTimestamp"] = rfc3339(clock_.now() + std::chrono::seconds(grace));
    if (kind.resource().key() != "namespaces") metadata["deletionGracePeriodSeconds"] = grace;
    const auto generation = json::get_int(*old, {"metadata", "generation"});
    if (generation && !api::deleting(*old)) metadata["generation"] = *generation + 1;
  }
  if (kind.resource().key() == "namespaces") {
    json::set(next, {"status", "phase"}, "Terminating");
  }
  if (!held(kind, next, grace)) {
    txn.remove(outcome.key);
    outcome.answer = pod                         ? std::move(next)
                     : kind.kind.returns_deleted ? json::value(*old)
                                                 : deleted_status(kind, *old);
    return outcome;
  }
  if (next != *old) txn.put(outcome.key, std::move(next));
  return outcome;
}

}  // namespace skiff::apiserver
