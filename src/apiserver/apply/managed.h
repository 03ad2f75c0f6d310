// metadata.managedFields, read: who owns which fields of an object, since when.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "schema/field_set.h"

namespace skiff::apiserver {

struct ManagedEntry {
  std::string manager = {};
  bool applied = false;  // by server-side apply, not by an update
  std::string api_version = {};
  std::string time = {};  // may be empty
  std::string subresource = {};
  schema::FieldSet fields = {};
  // The text that `fields` were read from, while they are still the same.
  const json::value* raw = nullptr;

  // An applier is one whatever version it uses, an updater is one in each.
  bool same_manager(const ManagedEntry& other) const;
  void set_fields(schema::FieldSet next);
};

class Managed {
 public:
  // Of a list or null. The value must outlive what is made of it.
  static Result<Managed> decode(const json::value& list);
  // Applied first, then by time and name, as the real server sorts them.
  json::array encode() const;

  ManagedEntry* find(const ManagedEntry& like);
  // Entries that own nothing go.
  void drop_empty();
  // At most ten updaters: the oldest become one.
  void cap();

  std::vector<ManagedEntry> entries = {};
};

// [] or [{}]: how a client asks to forget who owns what.
bool is_reset(const json::value& list);
// Takes metadata.managedFields out of an object; null where it has none.
json::value take_managed(json::value& object);

}  // namespace skiff::apiserver
