#include "api/kinds.h"

#include "api/admissionregistration/webhooks.h"
#include "api/apiextensions/crd.h"
#include "api/apiregistration/api_service.h"
#include "api/apps/apps.h"
#include "api/authentication/authentication.h"
#include "api/authorization/authorization.h"
#include "api/autoscaling/autoscaling.h"
#include "api/batch/batch.h"
#include "api/certificates/signing_request.h"
#include "api/coordination/lease.h"
#include "api/core/config.h"
#include "api/core/endpoints.h"
#include "api/core/event.h"
#include "api/core/namespace.h"
#include "api/core/node.h"
#include "api/core/pod.h"
#include "api/core/quota.h"
#include "api/core/replication.h"
#include "api/core/service.h"
#include "api/core/service_account.h"
#include "api/core/volumes.h"
#include "api/discovery/endpoint_slice.h"
#include "api/events/event_view.h"
#include "api/networking/networking.h"
#include "api/node/runtime_class.h"
#include "api/policy/budget.h"
#include "api/rbac/rbac.h"
#include "api/scheduling/priority_class.h"
#include "api/storage/storage.h"

namespace skiff::api {
namespace {

std::vector<Kind> core_kinds() {
  return {namespace_kind(),
          pod_kind(),
          service_kind(),
          config_map_kind(),
          secret_kind(),
          event_kind(),
          node_kind(),
          service_account_kind(),
          endpoints_kind(),
          limit_range_kind(),
          persistent_volume_kind(),
          persistent_volume_claim_kind(),
          pod_template_kind(),
          replication_controller_kind(),
          resource_quota_kind(),
          lease_kind(),
          crd_kind()};
}

std::vector<Kind> question_kinds() {
  return {token_review_kind(),
          self_subject_review_kind(),
          subject_access_review_kind(),
          self_subject_access_review_kind(),
          local_subject_access_review_kind(),
          self_subject_rules_review_kind()};
}

std::vector<Kind> all_kinds() {
  std::vector<Kind> out;
  for (const auto group : {
           core_kinds,
           question_kinds,
           events_kinds,
           apps_kinds,
           autoscaling_kinds,
           batch_kinds,
           networking_kinds,
           admissionregistration_kinds,
           apiregistration_kinds,
           certificates_kinds,
           discovery_kinds,
           node_kinds,
           policy_kinds,
           rbac_kinds,
           scheduling_kinds,
           storage_kinds,
       }) {
    for (Kind& kind : group()) out.push_back(std::move(kind));
  }
  return out;
}

}  // namespace

const std::vector<Kind>& builtin_kinds() {
  static const std::vector<Kind> kKinds = all_kinds();
  return kKinds;
}

}  // namespace skiff::api
