#include "features/trainer/feature.h"

#include "features/trainer/builtin_runtimes.h"
#include "features/trainer/plan.h"
#include "features/trainer/runtime_schema.h"
#include "features/trainer/trainjob.h"
#include "features/trainer/trainjob_schema.h"
#include "features/trainer/trainjob_status.h"

namespace skiff::trainer {
namespace {

std::string schema_name(const api::Resource& resource) {
  return "org.kubeflow.trainer.v1alpha1." + resource.kind;
}

const api::Column kAge{.name = "Age", .type = "date", .json_path = ".metadata.creationTimestamp"};

api::Kind trainjob_kind() {
  return {
      .resource = trainjob_resource(),
      .singular = "trainjob",
      .has_status = true,
      .schema = schema_name(trainjob_resource()),
      .columns = {{.name = "State", .type = "string", .json_path = ".status.conditions[-1:].type"},
                  kAge},
      .unconditional_update = false,
      .prepare = stamp_patches,
      .validate = validate_trainjob};
}

api::Kind runtime_kind_of(const api::Resource& resource, std::string singular) {
  return {.resource = resource,
          .singular = std::move(singular),
          .schema = schema_name(resource),
          .columns = {kAge},
          .unconditional_update = false,
          .validate = validate_runtime};
}

}  // namespace

Feature make() {
  Feature out{.controller = trainjob_controller(), .objects = builtin_objects()};
  out.kinds = {trainjob_kind(), runtime_kind_of(runtime_resource(), "trainingruntime"),
               runtime_kind_of(cluster_runtime_resource(), "clustertrainingruntime")};
  out.schemas.emplace_back(
      schema_name(trainjob_resource()),
      schema::object_schema(schema::build<TrainJobSpec>(), schema::build<TrainJobStatus>()));
  for (const api::Resource* resource : {&runtime_resource(), &cluster_runtime_resource()}) {
    out.schemas.emplace_back(schema_name(*resource),
                             schema::object_schema(schema::build<RuntimeSpec>(), std::nullopt));
  }
  return out;
}

}  // namespace skiff::trainer
