// JobSets as a feature: the one value that assembly needs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "api/kind.h"
#include "control/controller.h"
#include "schema/schema.h"

namespace skiff::jobsets {

// The name of a JobSet's spec in the schema registry, for kinds that hold one.
inline constexpr std::string_view kSpecSchema = "io.x-k8s.jobset.v1alpha2.JobSetSpec";

struct Feature {
  api::Kind kind = {};
  // By name, to be added to the schema registry.
  std::vector<std::pair<std::string, schema::Schema>> schemas = {};
  control::Controller controller = {};
};

Feature make();

}  // namespace skiff::jobsets
