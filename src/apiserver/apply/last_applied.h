// The annotation in which kubectl keeps what it applied from its own side, for those who move from
// there to server-side apply.
#pragma once

#include "base/json.h"
#include "schema/typed_fields.h"

namespace skiff::apiserver {

// The fields of `live` that are as the annotation says; none without one or of another version.
schema::FieldSet last_applied_fields(const schema::TypedFields& typed, const json::value& live,
                                     std::string_view api_version);
// Where `object` has the annotation, it says from now on what `config` is.
void renew_last_applied(const json::value& config, json::value& object);

}  // namespace skiff::apiserver
