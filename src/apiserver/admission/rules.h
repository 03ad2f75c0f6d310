// Every admission rule by name. Those of the first group fill in, those of the second only judge.
#pragma once

#include <string_view>

#include "apiserver/admission/admission.h"

namespace skiff::apiserver {

Result<void> set_container_limits(const AdmissionRequest& request);  // LimitRanger
Result<void> use_service_account(const AdmissionRequest& request);   // ServiceAccount
Result<void> resolve_priority(const AdmissionRequest& request);      // Priority
void tolerate_lost_nodes(const AdmissionRequest& request);           // DefaultTolerationSeconds
Result<void> apply_runtime_class(const AdmissionRequest& request);   // RuntimeClass
void choose_storage_class(const AdmissionRequest& request);          // DefaultStorageClass
void protect_storage(const AdmissionRequest& request);               // StorageObjectInUseProtection

Result<void> check_limits(const AdmissionRequest& request);          // LimitRanger
Result<void> check_priority_class(const AdmissionRequest& request);  // Priority
Result<void> check_claim_resize(const AdmissionRequest& request);    // PersistentVolumeClaimResize
Result<void> check_pod_security(const AdmissionRequest& request, Warnings& warnings);
Result<void> charge_quotas(const AdmissionRequest& request);  // ResourceQuota

// 403 as the real server words it. A rule that runs before a name is generated shows what the name
// is generated from.
Error refused(const AdmissionRequest& request, std::string_view why);
Error refused_unnamed(const AdmissionRequest& request, std::string_view why);

}  // namespace skiff::apiserver
