#include "features/training/kinds/kinds.h"

#include <fmt/format.h>

#include "features/training/engine/job_schema.h"
#include "features/training/engine/validation.h"
#include "features/training/kinds/jax/jax.h"
#include "features/training/kinds/mpi/mpi.h"
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

std::string schema_name(const api::Resource& resource) {
  return "org.kubeflow." + resource.version + "." + resource.kind;
}

// api::Kind holds plain functions, so that each framework gets its own instance of this one.
template <const JobKind& (*kJob)()>
api::Kind kept_kind() {
  const JobKind& job = kJob();
  return {
      .resource = job.resource,
      .singular = job.singular,
      .categories = {"all"},
      .has_status = true,
      .scale = scale_paths(job),
      .schema = schema_name(job.resource),
      .columns =
          {{.name = "State", .type = "string", .json_path = ".status.conditions[-1:].type"},
           {.name = "Age", .type = "date", .json_path = ".metadata.creationTimestamp"},
           {.name = "Queue",
            .type = "string",
            .json_path = ".spec.runPolicy.schedulingPolicy.queue",
            .priority = 1},
           {.name = "Step", .type = "integer", .json_path = ".status.progress.step", .priority = 1},
           {.name = "Percent",
            .type = "integer",
            .json_path = ".status.progress.percent",
            .priority = 1},
           {.name = "End",
            .type = "string",
            .json_path = ".status.progress.estimatedCompletionTime",
            .priority = 1}},
      .unconditional_update = false,
      .validate =
          [](const json::value& object, const api::Admission& context) {
            return validate_job(kJob(), object, context);
          },
      .warnings =
          [](const json::value& object, const api::Admission& context) {
            if (kJob().warnings == nullptr || !context.subresource.empty()) {
              return std::vector<std::string>{};
            }
            return kJob().warnings(object);
          }};
}

Served old_kind(const api::Kind& kept, const OldVersion& old) {
  api::Kind kind = kept;
  kind.resource.version = old.version;
  kind.schema = schema_name(kind.resource);
  kind.scale = {};
  kind.to_storage = old.to_kept;
  kind.from_storage = old.from_kept;
  if (old.validate != nullptr) kind.validate = old.validate;
  if (old.deprecated) {
    kind.deprecation =
        fmt::format("{} {} is deprecated; use {} {}", kind.resource.api_version(),
                    kind.resource.kind, kept.resource.api_version(), kind.resource.kind);
  }
  // The status is the engine's: what it writes must pass, in the words of any version.
  schema::Schema status{.type = schema::Type::kObject, .preserve_unknown = true};
  return {.api = std::move(kind),
          .schema = schema::object_schema(old.spec_schema(), std::move(status))};
}

template <const JobKind& (*kJob)()>
Framework framework() {
  const JobKind& job = kJob();
  Framework out{.job = &job};
  out.versions.push_back(
      {.api = kept_kind<kJob>(),
       .schema = schema::object_schema(job.spec_schema(), schema::build<JobStatus>())});
  const api::Kind kept = out.versions.front().api;
  for (const OldVersion& old : job.old_versions) out.versions.push_back(old_kind(kept, old));
  return out;
}

}  // namespace

std::vector<Framework> frameworks() {
  return {
      framework<tensorflow>(), framework<pytorch>(), framework<xgboost>(),
      framework<jax>(),        framework<paddle>(),  framework<mpi>(),
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
