#include "api/kinds.h"

#include "api/apiextensions/crd.h"
#include "api/authentication/authentication.h"
#include "api/authorization/authorization.h"
#include "api/coordination/lease.h"
#include "api/core/config.h"
#include "api/core/event.h"
#include "api/core/namespace.h"
#include "api/core/node.h"
#include "api/core/pod.h"
#include "api/core/service.h"
#include "api/core/service_account.h"

namespace skiff::api {

const std::vector<Kind>& builtin_kinds() {
  static const std::vector<Kind> kKinds{
      namespace_kind(),
      pod_kind(),
      service_kind(),
      config_map_kind(),
      secret_kind(),
      event_kind(),
      node_kind(),
      service_account_kind(),
      lease_kind(),
      crd_kind(),
      token_review_kind(),
      self_subject_review_kind(),
      subject_access_review_kind(),
      self_subject_access_review_kind(),
      local_subject_access_review_kind(),
      self_subject_rules_review_kind(),
  };
  return kKinds;
}

}  // namespace skiff::api
