#include "features/training/engine/managed_by.h"

namespace skiff::training {

bool managed_here(std::string_view managed_by) {
  return managed_by.empty() || managed_by == kOwnManager;
}

}  // namespace skiff::training
