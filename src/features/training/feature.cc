#include "features/training/feature.h"

#include "features/training/engine/plan.h"
#include "features/training/kinds/kinds.h"

namespace skiff::training {

Feature make() {
  Feature feature;
  for (Framework& framework : frameworks()) {
    for (Served& served : framework.versions) {
      feature.schemas.emplace_back(served.api.schema, std::move(served.schema));
      feature.kinds.push_back(std::move(served.api));
    }
    feature.controllers.push_back(make_controller(*framework.job));
  }
  return feature;
}

}  // namespace skiff::training
