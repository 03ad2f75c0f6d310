// Which volume satisfies a claim.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "base/json.h"
#include "base/quantity.h"
#include "features/storage/world.h"

namespace skiff::storage {

Quantity requested(const json::value& claim);
Quantity capacity(const json::value& volume);

// The volume names this claim as its own; a uid is compared where the volume has one.
bool claimed_by(const json::value& volume, const json::value& claim);

// Why a volume that the claim names cannot be its volume, in kube-controller-manager's words.
std::optional<std::string> mismatch(const json::value& volume, const json::value& claim);

// The volume that was reserved for the claim, else the smallest free one that will do. Where the
// claim still `waits` for its consumer, only a reserved one. With a node: one that reaches it.
// Volumes in `taken` are promised to others.
Object best_volume(const World& world, const json::value& claim, bool waits, const Object& node,
                   const std::set<std::string, std::less<>>& taken);

}  // namespace skiff::storage
