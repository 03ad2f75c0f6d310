#include "api/core/service_account.h"

#include "api/cells.h"

namespace skiff::api {
namespace {

json::array service_account_cells(const json::value& object, std::int64_t now_s) {
  return {json::get_array(object, {"secrets"}).size(), json::string(age_cell(object, now_s))};
}

}  // namespace

Kind service_account_kind() {
  return {.resource = {"", "v1", "serviceaccounts", "ServiceAccount", true},
          .singular = "serviceaccount",
          .short_names = {"sa"},
          .returns_deleted = true,
          .has_generation = false,
          .subresources = {{.name = "token",
                            .kind = "TokenRequest",
                            .verbs = {"create"},
                            .group = "authentication.k8s.io",
                            .version = "v1"}},
          .schema = "io.k8s.api.core.v1.ServiceAccount",
          .columns = {{"Secrets", "string"}, {"Age", "string"}},
          .cells = service_account_cells};
}

}  // namespace skiff::api
