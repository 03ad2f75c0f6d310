#include "features/training/kinds/kinds.h"

#include <fmt/format.h>

#include "features/training/engine/job_schema.h"
#include "features/training/engine/validation.h"
#include "features/training/kinds/jax/jax.h"
#include "features/training/kinds/paddle/paddle.h"
#include "features/training/kinds/pytorch/pytorch.h"
#include "features/training/kinds/tensorflow/tensorflow.h"
#include "features/training/kinds/xgboost/xgboost.h"

namespace skiff::training {
namespace {

std::optional<api::ScalePaths> scale_paths(const JobKind& job) {
  if (!job.scales) return {};
  return api::ScalePaths{.spec = fmt::format(".spec.{}.Worker.replicas", job.replicas_field),
                         .status = ".status.replicaStatuses.Worker.active",
                         .selector = ".status.replicaStatuses.Worker.selector"};
}

// api::Kind holds plain functions, so that each framework gets its own instance of this one.
template <const JobKind& (*kJob)()>
Framework framework() {
  const JobKind& job = kJob();
  return {
      .job = &job,
      .api = {.resource = job.resource,
              .singular = job.singular,
              .categories = {"all"},
              .has_status = true,
              .scale = scale_paths(job),
              .schema = "org.kubeflow." + job.resource.version + "." + job.resource.kind,
              .columns =
                  {{.name = "State", .type = "string", .json_path = ".status.conditions[-1:].type"},
                   {.name = "Age", .type = "date", .json_path = ".metadata.creationTimestamp"}},
              .unconditional_update = false,
              .validate =
                  [](const json::value& object, const api::Admission& context) {
                    return validate_job(kJob(), object, context);
                  }},
      .schema = schema::object_schema(job.spec_schema(), schema::build<JobStatus>())};
}

}  // namespace

std::vector<Framework> frameworks() {
  return {
      framework<tensorflow>(), framework<pytorch>(), framework<xgboost>(),
      framework<jax>(),        framework<paddle>(),
  };
}

const std::vector<const JobKind*>& job_kinds() {
  static const std::vector<const JobKind*> kKinds = [] {
    std::vector<const JobKind*> out;
    for (const Framework& framework : frameworks()) out.push_back(framework.job);
    return out;
  }();
  return kKinds;
}

}  // namespace skiff::training
