#include "features/training/feature.h"

#include "features/training/engine/plan.h"
#include "features/training/kinds/kinds.h"

namespace skiff::training {

Feature make() {
  Feature feature;
  for (Framework& framework : frameworks()) {
    feature.schemas.emplace_back(framework.api.schema, std::move(framework.schema));
    feature.kinds.push_back(std::move(framework.api));
    feature.controllers.push_back(make_controller(*framework.job));
  }
  return feature;
}

}  // namespace skiff::training
