#include "features/training/kinds/legacy/flat_policy.h"

#include "features/training/kinds/legacy/kept_fields.h"

namespace skiff::training {
namespace {

void rename(json::value& object, std::string_view from, std::string_view to) {
  if (from == to || json::find(object, {"status", from}) == nullptr) return;
  json::object& status = json::make_object(object, {"status"});
  json::value moved = std::move(status[from]);
  status.erase(from);
  status[to] = std::move(moved);
}

}  // namespace

void to_run_policy(const FlatVersion& version, json::value& object) {
  json::object& spec = json::make_object(object, {"spec"});
  const json::object newer = take_fields(object, kNewerFields);
  json::object policy = take_members(spec, version.policies);
  if (!version.clean_pods.empty() && !policy.contains("cleanPodPolicy")) {
    policy["cleanPodPolicy"] = json::string(version.clean_pods);
  }
  put_back(spec, newer);
  if (!policy.empty()) put_back(json::make_object(spec, {"runPolicy"}), policy);
  rename(object, version.statuses, "replicaStatuses");
}

void from_run_policy(const FlatVersion& version, json::value& object) {
  json::object& spec = json::make_object(object, {"spec"});
  json::object flat;
  if (json::value* policy = spec.if_contains("runPolicy");
      policy != nullptr && policy->is_object()) {
    flat = take_members(policy->get_object(), version.policies);
    if (policy->get_object().empty()) spec.erase("runPolicy");
  }
  const json::object newer = take_others(spec, version.others);
  put_back(spec, flat);
  keep_fields(object, kNewerFields, newer);
  rename(object, "replicaStatuses", version.statuses);
}

}  // namespace skiff::training
