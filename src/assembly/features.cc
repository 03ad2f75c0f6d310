#include "assembly/features.h"

#include <memory>

#include "api/kinds.h"
#include "api/skiff/image_mapping.h"
#include "env/posix/zones.h"
#include "features/jobsets/feature.h"
#include "features/trainer/feature.h"
#include "features/training/feature.h"
#include "features/workloads/feature.h"

namespace skiff::assembly {

Features all_features(schema::Registry& registry) {
  Features out;
  out.kinds = api::builtin_kinds();
  out.kinds.push_back(api::image_mapping_kind());

  training::Feature training = training::make();
  for (auto& [name, schema] : training.schemas) registry.add(name, std::move(schema));
  for (api::Kind& kind : training.kinds) {
    out.job_kinds.push_back(kind.resource);
    out.custom_kinds.push_back(kind);
    out.kinds.push_back(std::move(kind));
  }
  for (control::Controller& controller : training.controllers) {
    out.controllers.push_back(std::move(controller));
  }

  jobsets::Feature jobsets = jobsets::make();
  for (auto& [name, schema] : jobsets.schemas) registry.add(name, std::move(schema));
  out.custom_kinds.push_back(jobsets.kind);
  out.kinds.push_back(std::move(jobsets.kind));
  out.controllers.push_back(std::move(jobsets.controller));

  trainer::Feature trainer = trainer::make();
  for (auto& [name, schema] : trainer.schemas) registry.add(name, std::move(schema));
  out.job_kinds.push_back(trainer.kinds.front().resource);
  for (api::Kind& kind : trainer.kinds) {
    out.custom_kinds.push_back(kind);
    out.kinds.push_back(std::move(kind));
  }
  out.controllers.push_back(std::move(trainer.controller));
  out.objects = std::move(trainer.objects);

  out.embedded_controllers =
      workloads::make([zones = std::make_shared<env::posix::Zones>()](const std::string& name) {
        return zones->zone(name);
      });
  return out;
}

}  // namespace skiff::assembly
