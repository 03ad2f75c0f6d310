// The list of features, and what they bring together.
#pragma once

#include <vector>

#include "api/kind.h"
#include "client/client.h"
#include "control/controller.h"
#include "schema/registry.h"

namespace skiff::assembly {

struct Features {
  std::vector<api::Kind> kinds = {};  // built-in ones first
  std::vector<control::Controller> controllers = {};
  // Of built-in kinds: with the embedded server only, because a cluster runs its own.
  std::vector<control::Controller> embedded_controllers = {};
  // Created at every start where they are absent: what a user changed stays as it is.
  std::vector<client::Write> objects = {};
  std::vector<api::Resource> job_kinds = {};  // what the status page lists as jobs

  // What a cluster must be taught by a CustomResourceDefinition.
  std::vector<api::Kind> custom_kinds = {};
};

// Adds the features' schemas to the registry.
Features all_features(schema::Registry& registry);

}  // namespace skiff::assembly
