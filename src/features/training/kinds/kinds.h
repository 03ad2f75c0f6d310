// The list of training frameworks. A new one is a folder beside this file and a line in kinds.cc.
#pragma once

#include <vector>

#include "api/kind.h"
#include "features/training/engine/job_kind.h"

namespace skiff::training {

// One version of a kind as the API serves it.
struct Served {
  api::Kind api = {};
  schema::Schema schema = {};  // of the whole object; api.schema is its name
};

// A framework's job as the engine sees it and as the API serves it, the kept version first.
struct Framework {
  const JobKind* job = nullptr;
  std::vector<Served> versions = {};
};

std::vector<Framework> frameworks();
// The job kinds alone, for who only has to tell them apart.
const std::vector<const JobKind*>& job_kinds();

}  // namespace skiff::training
