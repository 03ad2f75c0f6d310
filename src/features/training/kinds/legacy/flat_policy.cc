#include "features/training/kinds/legacy/flat_policy.h"

#include "features/training/kinds/legacy/kept_fields.h"

namespace skiff::training {
namespace {

// Among the kept fields: v1 has no cleanPodPolicy of its own.
constexpr std::string_view kUnset = "cleanPodPolicyUnset";

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
  json::object newer = take_fields(object, kNewerFields);
  const bool unset = newer.erase(kUnset) > 0;
  take_members(newer, version.others);
  json::object policy = take_members(spec, version.policies);
  const json::value* clean = policy.if_contains("cleanPodPolicy");
  if (clean == nullptr && !version.clean_pods.empty()) {
    policy["cleanPodPolicy"] = json::string(version.clean_pods);
  } else if (unset && clean != nullptr && *clean == json::value("None")) {
    policy.erase("cleanPodPolicy");
  }
  if (version.fits == nullptr || version.fits(newer)) put_back(spec, newer);
  if (!policy.empty()) put_back(json::make_object(spec, {"runPolicy"}), policy);
  rename(object, version.statuses, "replicaStatuses");
}

void from_run_policy(const FlatVersion& version, json::value& object) {
  json::object& spec = json::make_object(object, {"spec"});
  json::object flat;
  if (json::value* policy = spec.if_contains("runPolicy");
      policy != nullptr && policy->is_object() && !policy->get_object().empty()) {
    flat = take_members(policy->get_object(), version.policies);
    if (policy->get_object().empty()) spec.erase("runPolicy");
  }
  json::object newer = take_others(spec, version.others);
  // v1 cleans up nothing where it says nothing, and says nothing again on the way back.
  if (!version.clean_pods.empty() && !flat.contains("cleanPodPolicy")) {
    flat["cleanPodPolicy"] = "None";
    newer[kUnset] = true;
  }
  put_back(spec, flat);
  keep_fields(object, kNewerFields, newer);
  rename(object, "replicaStatuses", version.statuses);
}

}  // namespace skiff::training
