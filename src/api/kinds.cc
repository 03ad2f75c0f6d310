#include "api/kinds.h"

#include <algorithm>

#include "api/apiextensions/crd.h"
#include "api/apps/apps.h"
#include "api/batch/batch.h"
#include "api/coordination/lease.h"
#include "api/core/config.h"
#include "api/core/event.h"
#include "api/core/namespace.h"
#include "api/core/node.h"
#include "api/core/pod.h"
#include "api/core/service.h"
#include "api/core/service_account.h"
#include "api/networking/networking.h"

namespace skiff::api {

const std::vector<Kind>& builtin_kinds() {
  static const std::vector<Kind> kKinds = [] {
    std::vector<Kind> all{
        namespace_kind(), pod_kind(),  service_kind(),         config_map_kind(), secret_kind(),
        event_kind(),     node_kind(), service_account_kind(), lease_kind(),      crd_kind(),
    };
    const auto add = [&](std::vector<Kind> group) {
      std::ranges::move(group, std::back_inserter(all));
    };
    add(apps_kinds());
    add(batch_kinds());
    add(networking_kinds());
    return all;
  }();
  return kKinds;
}

}  // namespace skiff::api
