// Who owns what after a write: an update takes what it changes, an apply what it says.
#pragma once

#include <string>
#include <string_view>

#include "apiserver/apply/managed.h"
#include "apiserver/schema_gate.h"
#include "base/json.h"
#include "base/result.h"

namespace skiff::apiserver {

// Whose write it is.
struct FieldWriter {
  const ServedKind& kind;
  std::string subresource = {};
  std::string manager = {};
  std::string now = {};  // metav1.Time
};

// After a create, update or patch: puts metadata.managedFields into `next`. `old` is null on
// create; `sent` is what the client gave as managedFields, taken out of `next` before.
void track_update(const SchemaGate& gate, const FieldWriter& writer, const json::value* old,
                  json::value sent, json::value& next);

// Server-side apply: the object that `config` makes of `old`, with its new managedFields. `old` is
// null where there is none yet. kConflict with a cause for each field that another owns with
// another value, unless `force`.
Result<json::value> apply_config(const SchemaGate& gate, const FieldWriter& writer, bool force,
                                 const json::value* old, const json::value& config);

// The objects differ in nothing but when managers wrote last, which is no reason for a write.
bool same_but_times(const json::value& a, const json::value& b);

}  // namespace skiff::apiserver
