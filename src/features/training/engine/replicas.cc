#include "features/training/engine/replicas.h"

#include <charconv>
#include <utility>

#include "api/meta.h"
#include "features/training/engine/job_kind.h"
#include "features/training/engine/labels.h"

namespace skiff::training {
namespace {

std::int64_t read_number(std::string_view text, std::int64_t fallback) {
  std::int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  return error == std::errc{} && end == text.data() + text.size() && n >= 0 ? n : fallback;
}

// Creation times have one second's resolution, so that the uid has to decide between pods of the
// same second; any order does as long as every plan sees the same.
bool older(const json::value& a, const json::value& b) {
  return std::pair(json::get_string(a, {"metadata", "creationTimestamp"}), api::uid(a)) <
         std::pair(json::get_string(b, {"metadata", "creationTimestamp"}), api::uid(b));
}

Slot* find_slot(Replicas& replicas, const json::value& object) {
  const json::object& labels = json::get_object(object, {"metadata", "labels"});
  const json::value* type = labels.if_contains(kRoleLabel);
  const json::value* place = labels.if_contains(kIndexLabel);
  if (type == nullptr || !type->is_string() || place == nullptr || !place->is_string()) {
    return nullptr;
  }
  const std::int64_t index = read_number(json::view(place->get_string()), -1);
  for (RoleSlots& role : replicas.roles) {
    if (role.role->lower != json::view(type->get_string())) continue;
    if (index < 0 || index >= static_cast<std::int64_t>(role.slots.size())) return nullptr;
    return &role.slots[static_cast<std::size_t>(index)];
  }
  return nullptr;
}

ReplicaPod read_pod(const json::value& pod) {
  return {.object = &pod,
          .phase = read_phase(pod),
          .deleting = api::deleting(pod),
          .attempt = read_number(api::annotation(pod, kAttemptAnnotation), 0)};
}

// Of the pod's first container, whatever its name.
std::int64_t first_exit_code(const json::value& pod) {
  const json::array& containers = json::get_array(pod, {"spec", "containers"});
  if (containers.empty()) return kNoExitCode;
  for (const json::value& status : json::get_array(pod, {"status", "containerStatuses"})) {
    if (json::get_string(status, {"name"}) != json::get_string(containers[0], {"name"})) continue;
    return json::get_int(status, {"state", "terminated", "exitCode"}).value_or(kNoExitCode);
  }
  return kNoExitCode;
}

void place_pod(Replicas& replicas, const json::value& pod) {
  Slot* slot = find_slot(replicas, pod);
  if (slot == nullptr) {
    replicas.surplus_pods.push_back(&pod);
    return;
  }
  const json::value* loser = nullptr;
  if (slot->pod.object == nullptr || older(pod, *slot->pod.object)) {
    loser = std::exchange(slot->pod.object, nullptr);
    slot->pod = read_pod(pod);
  } else {
    loser = &pod;
  }
  if (loser != nullptr) replicas.surplus_pods.push_back(loser);
}

void place_service(Replicas& replicas, const json::value& service) {
  Slot* slot = find_slot(replicas, service);
  if (slot == nullptr) {
    replicas.surplus_services.push_back(&service);
  } else if (slot->service == nullptr) {
    slot->service = &service;
  } else if (older(service, *slot->service)) {
    replicas.surplus_services.push_back(std::exchange(slot->service, &service));
  } else {
    replicas.surplus_services.push_back(&service);
  }
}

}  // namespace

Replicas sort_replicas(const Job& job, const std::vector<Object>& pods,
                       const std::vector<Object>& services) {
  Replicas replicas;
  replicas.roles.reserve(job.roles.size());
  for (const Role& role : job.roles) {
    replicas.roles.push_back({.role = &role, .slots = {}});
    replicas.roles.back().slots.resize(static_cast<std::size_t>(role.replicas));
  }
  for (const Object& pod : pods) place_pod(replicas, *pod);
  for (const Object& service : services) place_service(replicas, *service);
  return replicas;
}

Phase read_phase(const json::value& pod) {
  const std::string_view phase = json::get_string(pod, {"status", "phase"});
  if (phase == "Running") return Phase::kRunning;
  if (phase == "Succeeded") return Phase::kSucceeded;
  if (phase == "Failed") return Phase::kFailed;
  return Phase::kPending;
}

std::int64_t exit_code(const Job& job, const json::value& pod) {
  for (const json::value& status : json::get_array(pod, {"status", "containerStatuses"})) {
    if (json::get_string(status, {"name"}) != job.kind->container) continue;
    return json::get_int(status, {"state", "terminated", "exitCode"}).value_or(kNoExitCode);
  }
  return job.kind->any_container ? first_exit_code(pod) : kNoExitCode;
}

std::int64_t container_restarts(const json::value& pod) {
  std::int64_t sum = 0;
  for (const std::string_view list : {"initContainerStatuses", "containerStatuses"}) {
    for (const json::value& status : json::get_array(pod, {"status", list})) {
      sum += json::get_int(status, {"restartCount"}).value_or(0);
    }
  }
  return sum;
}

}  // namespace skiff::training
