#include "features/training/kinds/kinds.h"

#include "features/training/engine/job_schema.h"
#include "features/training/engine/validation.h"
#include "features/training/kinds/pytorch/pytorch.h"
#include "features/training/kinds/tensorflow/tensorflow.h"

namespace skiff::training {
namespace {

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
      framework<tensorflow>(),
      framework<pytorch>(),
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
