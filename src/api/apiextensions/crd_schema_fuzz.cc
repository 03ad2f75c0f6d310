// The schema of a CRD as a user writes it, before anybody has read it.
#include "api/apiextensions/crd_schema.h"
#include "api/apiextensions/structural.h"
#include "base/fuzz.h"
#include "base/json.h"

SKIFF_FUZZ(text) {
  using namespace skiff;
  const auto schema = json::parse(text);
  if (!schema) return;
  for (const bool has_status : {false, true}) {
    api::Causes causes;
    api::check_crd_schema(*schema, "openAPIV3Schema", has_status, causes);
    for (const Cause& cause : causes) SKIFF_CHECK(!cause.field.empty(), "a complaint has a place");
  }
  api::Causes causes;
  api::check_structural(*schema, "openAPIV3Schema", causes);
  (void)api::schema_mentions(*schema, "x-kubernetes-validations");
}
