// A pod's priority is that of its class, or of the one class that says it is everybody's default.
#include <fmt/format.h>

#include "api/meta.h"
#include "apiserver/admission/rules.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kPriorityClassResource = "priorityclasses.scheduling.k8s.io";

std::int64_t value_of(const json::value& priority_class) {
  return json::get_int(priority_class, {"value"}).value_or(0);
}

// Of several the one with the lowest value.
Object default_class(const AdmissionRequest& request) {
  Object best;
  for (const Object& candidate : request.txn.list(kPriorityClassResource, "")) {
    if (!json::get_bool(*candidate, {"globalDefault"}).value_or(false)) continue;
    if (best == nullptr || value_of(*best) > value_of(*candidate)) best = candidate;
  }
  return best;
}

void keep(json::object& spec, const json::value& old, std::string_view field) {
  const json::value* before = json::find(old, {"spec", field});
  if (before != nullptr && !spec.contains(field)) spec[field] = *before;
}

Result<Object> priority_class_of(const AdmissionRequest& request) {
  const std::string name(json::get_string(request.object, {"spec", "priorityClassName"}));
  if (name.empty()) return default_class(request);
  const Object found =
      request.txn.get({.resource = std::string(kPriorityClassResource), .name = name});
  if (found != nullptr) return found;
  return std::unexpected(
      refused_unnamed(request, fmt::format("no PriorityClass with name {} was found", name)));
}

}  // namespace

Result<void> resolve_priority(const AdmissionRequest& request) {
  if (!request.plain("pods")) return {};
  json::object& spec = json::make_object(request.object, {"spec"});
  if (!request.creates()) {
    // The server's own words may be left out of an update.
    keep(spec, *request.old, "priority");
    keep(spec, *request.old, "preemptionPolicy");
    return {};
  }
  SKIFF_ASSIGN(const Object chosen, priority_class_of(request));
  const std::int64_t priority = chosen == nullptr ? 0 : value_of(*chosen);
  const auto given = json::get_int(request.object, {"spec", "priority"});
  if (given && *given != priority) {
    return std::unexpected(refused_unnamed(
        request, fmt::format("the integer value of priority ({}) must not be provided in pod spec; "
                             "priority admission controller computed {} from the given "
                             "PriorityClass name",
                             *given, priority)));
  }
  spec["priority"] = priority;
  const std::string policy(chosen == nullptr ? "PreemptLowerPriority"
                                             : json::get_string(*chosen, {"preemptionPolicy"}));
  if (chosen != nullptr) spec["priorityClassName"] = json::string(api::name(*chosen));
  if (policy.empty()) return {};
  const std::string_view wanted = json::get_string(request.object, {"spec", "preemptionPolicy"});
  if (!wanted.empty() && wanted != policy) {
    return std::unexpected(refused_unnamed(
        request,
        fmt::format("the string value of PreemptionPolicy ({}) must not be provided in pod spec; "
                    "priority admission controller computed {} from the given PriorityClass name",
                    wanted, policy)));
  }
  spec["preemptionPolicy"] = policy;
  return {};
}

Result<void> check_priority_class(const AdmissionRequest& request) {
  if (!request.plain(kPriorityClassResource)) return {};
  if (!json::get_bool(request.object, {"globalDefault"}).value_or(false)) return {};
  const Object other = default_class(request);
  if (other == nullptr || (!request.creates() && api::name(*other) == api::name(request.object))) {
    return {};
  }
  return std::unexpected(
      refused(request, fmt::format("PriorityClass {} is already marked as default. Only one "
                                   "default can exist",
                                   api::name(*other))));
}

}  // namespace skiff::apiserver
