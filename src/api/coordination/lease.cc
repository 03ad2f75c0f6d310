#include "api/coordination/lease.h"

#include "api/cells.h"

namespace skiff::api {
namespace {

json::array lease_cells(const json::value& object, std::int64_t now_s) {
  return {json::string(json::get_string(object, {"spec", "holderIdentity"})),
          json::string(age_cell(object, now_s))};
}

}  // namespace

Kind lease_kind() {
  return {.resource = {"coordination.k8s.io", "v1", "leases", "Lease", true},
          .singular = "lease",
          .has_generation = false,
          .schema = "io.k8s.api.coordination.v1.Lease",
          .columns = {{"Holder", "string"}, {"Age", "string"}},
          .lazy = true,
          .unconditional_update = false,
          .cells = lease_cells};
}

}  // namespace skiff::api
