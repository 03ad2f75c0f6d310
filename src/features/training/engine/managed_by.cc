#include "features/training/engine/managed_by.h"

namespace skiff::training {

bool managed_here(std::string_view managed_by, std::string_view also) {
  return managed_by.empty() || managed_by == kOwnManager || managed_by == also;
}

}  // namespace skiff::training
