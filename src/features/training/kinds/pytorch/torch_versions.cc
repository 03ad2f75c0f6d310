#include "features/training/kinds/pytorch/torch_versions.h"

#include "features/training/kinds/legacy/flat_policy.h"
#include "features/training/kinds/legacy/legacy_schema.h"
#include "features/training/kinds/legacy/role_list.h"
#include "features/training/kinds/pytorch/pytorch.h"
#include "features/training/kinds/pytorch/torch_schema.h"

namespace skiff::training {
namespace {

bool fits_pytorch(const json::value& spec) {
  return schema::read<PyTorchJobSpec>(spec).has_value();
}

// As TFJob's, but for what they clean up where nobody says: nothing, as v1.
constexpr auto kPyTorchPolicies = {
    std::string_view("cleanPodPolicy"), std::string_view("ttlSecondsAfterFinished"),
    std::string_view("activeDeadlineSeconds"), std::string_view("backoffLimit")};
constexpr auto kPyTorchOthers = {std::string_view("pytorchReplicaSpecs")};
constexpr FlatVersion kPyTorchBeta{
    .policies = kPyTorchPolicies, .others = kPyTorchOthers, .fits = fits_pytorch};
constexpr FlatVersion kPyTorchAlpha2{.policies = kPyTorchPolicies,
                                     .others = kPyTorchOthers,
                                     .fits = fits_pytorch,
                                     .statuses = "pytorchReplicaStatuses"};
constexpr ListVersion kPyTorchAlpha1{.kind = pytorch,
                                     .type_field = "replicaType",
                                     .port_field = "masterPort",
                                     .status_type_field = "replica_type",
                                     .termination = "master",
                                     .fits = fits_pytorch};

template <const FlatVersion& kVersion>
OldVersion flat_pytorch(std::string_view name) {
  return {.version = std::string(name),
          .spec_schema = schema::build<FlatPyTorchJobSpec>,
          .to_kept = [](json::value& object) { to_run_policy(kVersion, object); },
          .from_kept = [](json::value& object) { from_run_policy(kVersion, object); }};
}

}  // namespace

std::vector<OldVersion> old_pytorchjob_versions() {
  return {flat_pytorch<kPyTorchBeta>("v1beta2"),
          flat_pytorch<kPyTorchBeta>("v1beta1"),
          flat_pytorch<kPyTorchAlpha2>("v1alpha2"),
          {.version = "v1alpha1",
           .spec_schema = schema::build<TorchJobList>,
           .to_kept = [](json::value& object) { from_role_list(kPyTorchAlpha1, object); },
           .from_kept = [](json::value& object) { to_role_list(kPyTorchAlpha1, object); },
           .validate =
               [](const json::value& object, const api::Admission& context) {
                 return validate_role_list(kPyTorchAlpha1, object, context);
               }}};
}

}  // namespace skiff::training
