#include "features/jobsets/feature.h"

#include "features/jobsets/jobset.h"
#include "features/jobsets/jobset_schema.h"
#include "features/jobsets/jobset_status.h"
#include "features/jobsets/plan.h"

namespace skiff::jobsets {
namespace {

constexpr std::string_view kSchema = "io.x-k8s.jobset.v1alpha2.JobSet";

api::Kind kind() {
  return {.resource = jobset_resource(),
          .singular = "jobset",
          .has_status = true,
          .schema = std::string(kSchema),
          .columns = {{.name = "TerminalState",
                       .type = "string",
                       .json_path = ".status.terminalState",
                       .description = "Final state of JobSet"},
                      {.name = "Restarts",
                       .type = "string",
                       .json_path = ".status.restarts",
                       .description = "Number of restarts"},
                      {.name = "Completed",
                       .type = "string",
                       .json_path = ".status.conditions[?(@.type==\"Completed\")].status"},
                      {.name = "Suspended",
                       .type = "string",
                       .json_path = ".spec.suspend",
                       .description = "JobSet suspended"},
                      {.name = "Age",
                       .type = "date",
                       .json_path = ".metadata.creationTimestamp",
                       .description = "Time this JobSet was created"}},
          .unconditional_update = false,
          .set_defaults = set_defaults,
          .validate = validate};
}

}  // namespace

Feature make() {
  Feature out{.kind = kind(), .controller = jobset_controller()};
  out.schemas.emplace_back(std::string(kSpecSchema), schema::build<JobSetSpec>());
  out.schemas.emplace_back(
      std::string(kSchema),
      schema::object_schema(schema::build<JobSetSpec>(), schema::build<JobSetStatus>()));
  return out;
}

}  // namespace skiff::jobsets
