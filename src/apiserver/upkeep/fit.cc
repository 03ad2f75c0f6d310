#include "apiserver/upkeep/fit.h"

#include "schema/defaults.h"
#include "schema/prune.h"
#include "schema/registry.h"

namespace skiff::apiserver {
namespace {

// Schemas of definitions refer to nothing; what metadata holds is unknown here, and so left alone.
const schema::Registry& nothing_known() {
  static const schema::Registry kNone;
  return kNone;
}

}  // namespace

void fit_custom(const schema::Schema& schema, json::value& object) {
  schema::prune(nothing_known(), schema, object);
  schema::prune_nulls(nothing_known(), schema, object);
  schema::apply_defaults(nothing_known(), schema, object);
}

bool fits_custom(const schema::Schema& schema, const json::value& object) {
  json::value copy = object;
  return schema::prune(nothing_known(), schema, copy).empty();
}

}  // namespace skiff::apiserver
