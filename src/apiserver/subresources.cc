// The sub-resources that write something other than the object they are given.
#include <fmt/format.h>

#include "api/meta.h"
#include "apiserver/status.h"
#include "apiserver/writes.h"

namespace skiff::apiserver {
namespace {

void set_true_condition(json::value& object, std::string_view type, const std::string& now) {
  json::object& status = json::make_object(object, {"status"});
  json::value& list = status["conditions"];
  if (!list.is_array()) list.emplace_array();
  json::object condition{{"type", json::string(type)},
                         {"status", "True"},
                         {"lastProbeTime", nullptr},
                         {"lastTransitionTime", json::string(now)}};
  for (json::value& existing : list.get_array()) {
    if (json::get_string(existing, {"type"}) != type) continue;
    existing = std::move(condition);
    return;
  }
  list.get_array().emplace_back(std::move(condition));
}

json::value success() {
  return json::object{{"kind", "Status"},
                      {"apiVersion", "v1"},
                      {"metadata", json::object()},
                      {"status", "Success"},
                      {"code", 201}};
}

}  // namespace

Result<Outcome> Writes::bind(Transaction& txn, const WriteRequest& request) {
  const api::Resource& resource = request.kind->resource();
  Outcome outcome{.status = 201, .key = key_of(request), .answer = success()};
  const Object old = txn.get(outcome.key);
  if (old == nullptr) return std::unexpected(not_found(resource, request.name));
  const std::string_view node = json::get_string(request.body, {"target", "name"});
  if (node.empty()) {
    return std::unexpected(invalid({.version = "v1", .plural = "bindings", .kind = "Binding"},
                                   request.name, {required("target.name")}));
  }
  SKIFF_TRY(check_preconditions(request, *old));
  // The body's own metadata may name which pod is meant.
  const std::string_view uid = api::uid(request.body);
  if (!uid.empty() && uid != api::uid(*old)) {
    return std::unexpected(
        conflict(resource, request.name,
                 fmt::format("Precondition failed: UID in precondition: {}, UID in object meta: {}",
                             uid, api::uid(*old))));
  }
  if (api::deleting(*old)) {
    return std::unexpected(conflict(
        resource, request.name,
        fmt::format("pod {} is being deleted, cannot be assigned to a host", request.name)));
  }
  if (const std::string_view bound = json::get_string(*old, {"spec", "nodeName"}); !bound.empty()) {
    return std::unexpected(
        conflict(resource, request.name,
                 fmt::format("pod {} is already assigned to node \"{}\"", request.name, bound)));
  }
  json::value next = *old;
  json::set(next, {"spec", "nodeName"}, json::string(node));
  set_true_condition(next, "PodScheduled", stamp());
  txn.put(outcome.key, std::move(next));
  return outcome;
}

Result<Outcome> Writes::finalize(Transaction& txn, const WriteRequest& request) {
  Outcome outcome{.key = key_of(request)};
  const Object old = txn.get(outcome.key);
  if (old == nullptr) {
    return std::unexpected(not_found(request.kind->resource(), request.name));
  }
  json::value body = request.body;
  SKIFF_TRY(match_body(request, body));
  if (const std::string_view given = api::resource_version(body);
      !given.empty() && given != api::resource_version(*old)) {
    return std::unexpected(modified(request.kind->resource(), request.name));
  }
  json::value next = *old;
  json::set(next, {"spec", "finalizers"}, json::get_array(body, {"spec", "finalizers"}));
  if (next == *old) return outcome;
  const bool free = api::deleting(next) && !has_finalizers(next) &&
                    json::get_array(next, {"spec", "finalizers"}).empty();
  if (free) {
    txn.remove(outcome.key);
    outcome.answer = std::move(next);
  } else {
    txn.put(outcome.key, std::move(next));
  }
  return outcome;
}

}  // namespace skiff::apiserver
