// The form in which a Kubernetes server keeps and shows an object of a built-in kind: what a trip
// through its Go types makes of it. Objects of other kinds are left as they came.
#pragma once

#include "base/json.h"
#include "schema/registry.h"
#include "schema/schema.h"

namespace skiff::schema {

// As it is read: null is absent, and so is a zero that no pointer tells from absent and that is not
// always written as a list or map. Quantities and times get their one form. Comes before defaults,
// since a server fills in what is zero.
void normalize(const Registry& registry, const Schema& schema, json::value& object);

// As it is written, and so after everything else: what Go writes even where it is zero is there
// (status: {}, resources: {}, eventTime: null), and empty lists and maps are not.
// An empty list or map that is always written stays where it is asked to.
enum class Empty { kGoes, kStays };
void complete(const Registry& registry, const Schema& schema, json::value& object,
              Empty empty = Empty::kGoes);

}  // namespace skiff::schema
