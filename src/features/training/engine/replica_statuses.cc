#include "features/training/engine/replica_statuses.h"

#include <fmt/format.h>

#include "features/training/engine/job_kind.h"
#include "features/training/engine/labels.h"

namespace skiff::training {
namespace {

json::object& statuses_of(json::object& status) {
  return json::make_object(status, {"replicaStatuses"});
}

void put_count(json::object& entry, std::string_view key, std::int64_t n) {
  // Upstream leaves zeros out; so do we, so that both print the same.
  if (n > 0) {
    entry[key] = n;
  } else {
    entry.erase(key);
  }
}

}  // namespace

void write_replica_statuses(const Job& job, const std::vector<RoleCount>& counts,
                            json::object& status) {
  json::object fresh;
  for (const RoleCount& count : counts) {
    json::object& entry = fresh[count.role->name].emplace_object();
    put_count(entry, "active", count.active);
    put_count(entry, "succeeded", count.succeeded);
    put_count(entry, "failed", count.failed);
    if (!job.kind->scales) continue;
    entry["selector"] = fmt::format("{}={},{}={},{}={}", kJobLabel, job.name, kOperatorLabel,
                                    job.kind->controller, kRoleLabel, count.role->lower);
  }
  status["replicaStatuses"] = std::move(fresh);
}

void settle_succeeded(json::object& status) {
  for (auto& [name, entry] : statuses_of(status)) {
    const std::int64_t active = json::get_int(entry, {"active"}).value_or(0);
    if (active == 0) continue;
    const std::int64_t succeeded = json::get_int(entry, {"succeeded"}).value_or(0);
    put_count(entry.as_object(), "succeeded", succeeded + active);
    put_count(entry.as_object(), "active", 0);
  }
}

void write_active(const std::vector<RoleCount>& counts, json::object& status) {
  json::object& statuses = statuses_of(status);
  for (const RoleCount& count : counts) {
    json::value* entry = statuses.if_contains(count.role->name);
    if (entry == nullptr || !entry->is_object()) continue;
    put_count(entry->get_object(), "active", count.active);
  }
}

}  // namespace skiff::training
