// Persistent volume claims as pods, the scheduler and the storage controllers speak of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace skiff::api {

inline constexpr std::string_view kLocalProvisioner = "skiff.dev/local-path";
inline constexpr std::string_view kProvisionedBy = "pv.kubernetes.io/provisioned-by";
inline constexpr std::string_view kSelectedNode = "volume.kubernetes.io/selected-node";
inline constexpr std::string_view kBindCompleted = "pv.kubernetes.io/bind-completed";
// Held by a provisioned volume until its folder has been dealt with.
inline constexpr std::string_view kFolderFinalizer = "skiff.dev/volume-folder";

struct ClaimUse {
  std::string volume = {};  // of the pod
  std::string claim = {};
  bool read_only = false;
  const json::value* claim_template = nullptr;  // in the pod: an ephemeral volume's
};
std::vector<ClaimUse> claims_of(const json::value& pod);

// Of a claim or a volume; empty: none.
std::string_view storage_class(const json::value& object);
bool bound(const json::value& claim);  // for good: both sides say so
bool waits_for_consumer(const json::value& storage_class);

}  // namespace skiff::api
