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
// Whether the claim must stay for this pod: only one that has a node can be using it. A claim that
// was made for the pod itself goes once the pod is shut down, for the pod may be waiting for it.
bool holds_claim(const json::value& pod, std::string_view claim);

// Of a claim or a volume; empty: none.
std::string_view storage_class(const json::value& object);
bool bound(const json::value& claim);  // for good: both sides say so
// Why the local provisioner cannot make what the claim asks for; empty: it can.
std::string_view cannot_provision(const json::value& claim);
bool waits_for_consumer(const json::value& storage_class);

}  // namespace skiff::api
