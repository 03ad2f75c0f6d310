#include "api/coordination/lease.h"

namespace skiff::api {

Kind lease_kind() {
  return {.resource = {"coordination.k8s.io", "v1", "leases", "Lease", true},
          .singular = "lease",
          .has_generation = false,
          .schema = "io.k8s.api.coordination.v1.Lease",
          .columns = {{"Holder", "string", ".spec.holderIdentity"},
                      {"Age", "date", ".metadata.creationTimestamp"}},
          .lazy = true,
          .unconditional_update = false};
}

}  // namespace skiff::api
