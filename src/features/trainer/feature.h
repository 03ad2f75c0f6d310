// TrainJobs as a feature: the one value that assembly needs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "api/kind.h"
#include "client/client.h"
#include "control/controller.h"
#include "schema/schema.h"

namespace skiff::trainer {

struct Feature {
  std::vector<api::Kind> kinds = {};  // TrainJob first
  // By the name that api::Kind::schema gives. They refer to the JobSet's, which features/jobsets
  // brings.
  std::vector<std::pair<std::string, schema::Schema>> schemas = {};
  control::Controller controller = {};
  std::vector<client::Write> objects = {};  // to be created where absent
};

Feature make();

}  // namespace skiff::trainer
