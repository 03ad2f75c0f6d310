// Training jobs as a feature: the one value that assembly needs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "api/kind.h"
#include "control/controller.h"
#include "schema/schema.h"

namespace skiff::training {

struct Feature {
  std::vector<api::Kind> kinds = {};
  // By the name that api::Kind::schema gives; to be added to the schema registry.
  std::vector<std::pair<std::string, schema::Schema>> schemas = {};
  std::vector<control::Controller> controllers = {};
};

Feature make();

}  // namespace skiff::training
