// The kinds PersistentVolume and PersistentVolumeClaim.
#pragma once

#include "api/kind.h"

namespace skiff::api {

Kind persistent_volume_kind();
Kind persistent_volume_claim_kind();

// `inlined`: as it stands in a VolumeAttachment, where there is no claim and no capacity.
std::vector<Cause> validate_volume_spec(const json::value& spec, const std::string& path,
                                        bool inlined);
// Of a claim, and of the claim templates in a pod and a StatefulSet.
std::vector<Cause> validate_claim_spec(const json::value& spec, const std::string& path);

}  // namespace skiff::api
