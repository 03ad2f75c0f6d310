// Storage as a feature: the controller and the class that assembly needs.
#pragma once

#include "control/controller.h"
#include "features/storage/storage.h"

namespace skiff::storage {

// Not for a cluster that has its own kube-controller-manager.
control::GlobalController make(StorageOptions options);

// `standard`: what a claim that names no class gets.
client::Write default_class();

}  // namespace skiff::storage
