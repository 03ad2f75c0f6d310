#include "features/training/kinds/pytorch/torch_versions.h"

#include "features/training/kinds/legacy/legacy_schema.h"
#include "features/training/kinds/legacy/role_list.h"
#include "features/training/kinds/pytorch/pytorch.h"
#include "features/training/kinds/pytorch/torch_schema.h"

namespace skiff::training {
namespace {

bool fits(const json::value& spec) { return schema::read<PyTorchJobSpec>(spec).has_value(); }

constexpr ListVersion kAlpha1{.kind = pytorch,
                              .type_field = "replicaType",
                              .port_field = "masterPort",
                              .status_type_field = "replica_type",
                              .fits = fits};

}  // namespace

std::vector<OldVersion> old_pytorchjob_versions() {
  return {{.version = "v1alpha1",
           .spec_schema = schema::build<TorchJobList>,
           .to_kept = [](json::value& object) { from_role_list(kAlpha1, object); },
           .from_kept = [](json::value& object) { to_role_list(kAlpha1, object); }}};
}

}  // namespace skiff::training
