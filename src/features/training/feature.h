// Training jobs as a feature: the one value that assembly needs.
#pragma once

#include <vector>

#include "api/kind.h"
#include "control/controller.h"

namespace skiff::training {

struct Feature {
  std::vector<api::Kind> kinds = {};
  std::vector<control::Controller> controllers = {};
};

Feature make();

}  // namespace skiff::training
