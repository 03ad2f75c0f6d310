// Whether a job is ours to run (spec.runPolicy.managedBy).
#pragma once

#include <string_view>

namespace skiff::training {

inline constexpr std::string_view kOwnManager = "kubeflow.org/training-operator";
inline constexpr std::string_view kMultiKueue = "kueue.x-k8s.io/multikueue";

// An empty value means ours, as does `also`, the kind's own name for us. Any other than our own,
// known or not, means somebody else's.
bool managed_here(std::string_view managed_by, std::string_view also = {});

}  // namespace skiff::training
