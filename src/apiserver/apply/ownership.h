// Steps that updates and applies share on the way to new managedFields.
#pragma once

#include "apiserver/apply/managed.h"
#include "apiserver/apply/tracking.h"
#include "schema/typed_fields.h"

namespace skiff::apiserver {

// What only the server writes, so that nobody owns it.
const schema::FieldSet& server_fields();
schema::FieldSet ownable(const schema::FieldSet& fields);

// What differs between two states of an object, of what can be owned on the writer's path: the
// status only on its own.
schema::TypedFields::Change own_changes(const SchemaGate& gate, const FieldWriter& writer,
                                        const json::value& before, const json::value& after);
// Who owned a field that was changed or removed does so no more.
void take_from_others(Managed& managed, const schema::TypedFields::Change& change);
// The writer, as an updater, owns these besides what it did.
void give_update(Managed& managed, const FieldWriter& writer, schema::FieldSet fields);
void put_managed(const Managed& managed, json::value& object);

}  // namespace skiff::apiserver
