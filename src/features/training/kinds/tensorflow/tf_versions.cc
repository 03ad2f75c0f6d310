#include "features/training/kinds/tensorflow/tf_versions.h"

#include "features/training/kinds/legacy/flat_policy.h"
#include "features/training/kinds/legacy/legacy_schema.h"
#include "features/training/kinds/legacy/role_list.h"
#include "features/training/kinds/tensorflow/tensorflow.h"
#include "features/training/kinds/tensorflow/tf_schema.h"

namespace skiff::training {
namespace {

// These differed in how much of the run policy they had. All of them show all of it: whatever the
// older ones lacked their readers pass over.
constexpr auto kTFPolicies = {
    std::string_view("cleanPodPolicy"), std::string_view("ttlSecondsAfterFinished"),
    std::string_view("activeDeadlineSeconds"), std::string_view("backoffLimit")};
constexpr auto kTFOthers = {std::string_view("tfReplicaSpecs")};

bool fits_tensorflow(const json::value& spec) { return schema::read<TFJobSpec>(spec).has_value(); }

constexpr FlatVersion kTFBeta{
    .policies = kTFPolicies, .others = kTFOthers, .fits = fits_tensorflow, .clean_pods = "Running"};
constexpr FlatVersion kTFAlpha2{.policies = kTFPolicies,
                                .others = kTFOthers,
                                .fits = fits_tensorflow,
                                .clean_pods = "Running",
                                .statuses = "tfReplicaStatuses"};
constexpr ListVersion kTFAlpha1{.kind = tensorflow,
                                .type_field = "tfReplicaType",
                                .port_field = "tfPort",
                                .status_type_field = "tf_replica_type",
                                .termination = "chief",
                                .fits = fits_tensorflow};

template <const FlatVersion& kVersion>
OldVersion flat_tensorflow(std::string_view name) {
  return {.version = std::string(name),
          .spec_schema = schema::build<FlatTFJobSpec>,
          .to_kept = [](json::value& object) { to_run_policy(kVersion, object); },
          .from_kept = [](json::value& object) { from_run_policy(kVersion, object); }};
}

}  // namespace

std::vector<OldVersion> old_tfjob_versions() {
  return {flat_tensorflow<kTFBeta>("v1beta2"),
          flat_tensorflow<kTFBeta>("v1beta1"),
          flat_tensorflow<kTFAlpha2>("v1alpha2"),
          {.version = "v1alpha1",
           .spec_schema = schema::build<TFJobList>,
           .to_kept = [](json::value& object) { from_role_list(kTFAlpha1, object); },
           .from_kept = [](json::value& object) { to_role_list(kTFAlpha1, object); },
           .validate =
               [](const json::value& object, const api::Admission& context) {
                 return validate_role_list(kTFAlpha1, object, context);
               }}};
}

}  // namespace skiff::training
