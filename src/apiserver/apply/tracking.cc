#include "apiserver/apply/tracking.h"

#include "apiserver/apply/ownership.h"

namespace skiff::apiserver {

using schema::FieldSet;

const FieldSet& server_fields() {
  static const FieldSet kFields = FieldSet::of({{"apiVersion"},
                                                {"kind"},
                                                {"metadata", "name"},
                                                {"metadata", "namespace"},
                                                {"metadata", "creationTimestamp"},
                                                {"metadata", "selfLink"},
                                                {"metadata", "uid"},
                                                {"metadata", "clusterName"},
                                                {"metadata", "generation"},
                                                {"metadata", "managedFields"},
                                                {"metadata", "resourceVersion"}});
  return kFields;
}

FieldSet ownable(const FieldSet& fields) {
  static const FieldSet kNever = server_fields().united(FieldSet::of({{"metadata"}}));
  return fields.without(kNever);
}

schema::TypedFields::Change own_changes(const SchemaGate& gate, const FieldWriter& writer,
                                        const json::value& before, const json::value& after) {
  static const FieldSet kNoStatus = server_fields().united(FieldSet::of({{"status"}}));
  const ServedKind& kind = writer.kind;
  const bool no_status = writer.subresource != "status" && kind.kind.has_status;
  schema::TypedFields::Change change = gate.fields(kind).compare(
      before, after, gate.blank(kind), no_status ? kNoStatus : server_fields());
  change.changed = ownable(change.changed);
  return change;
}

void take_from_others(Managed& managed, const schema::TypedFields::Change& change) {
  for (ManagedEntry& entry : managed.entries) {
    if (!entry.fields.meets(change.changed) && !entry.fields.meets(change.removed)) continue;
    entry.set_fields(entry.fields.without(change.changed).without(change.removed));
  }
  managed.drop_empty();
}

void put_managed(const Managed& managed, json::value& object) {
  if (managed.entries.empty()) return;
  json::make_object(object, {"metadata"})["managedFields"] = managed.encode();
}

void give_update(Managed& managed, const FieldWriter& writer, FieldSet fields) {
  if (fields.empty()) return;
  ManagedEntry self{.manager = writer.manager.empty() ? "unknown" : writer.manager,
                    .api_version = writer.kind.resource().api_version(),
                    .subresource = writer.subresource};
  ManagedEntry* known = managed.find(self);
  if (known == nullptr) {
    managed.entries.push_back(std::move(self));
    known = &managed.entries.back();
  }
  known->set_fields(known->fields.united(fields));
  // The real server forgets when a scale was written.
  if (writer.subresource != "scale") known->time = writer.now;
}

namespace {

// What the write starts from: the client's own list, where it sent one that can be read and may
// say so, else the stored one.
Managed starting_point(const FieldWriter& writer, const json::value* stored,
                       const json::value& sent) {
  if (writer.subresource.empty() && !sent.is_null()) {
    if (is_reset(sent)) return {};
    if (auto managed = Managed::decode(sent); managed && !managed->entries.empty()) {
      return std::move(*managed);
    }
  }
  if (stored == nullptr) return {};
  return Managed::decode(*stored).value_or(Managed());
}

bool same_entries_but_times(const json::value* a, const json::value* b) {
  if (a == nullptr || b == nullptr || !a->is_array() || !b->is_array()) return a == b;
  const json::array& left = a->get_array();
  const json::array& right = b->get_array();
  if (left.size() != right.size()) return false;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (!left[i].is_object() || !right[i].is_object()) return false;
    json::object l = left[i].get_object(), r = right[i].get_object();
    l.erase("time");
    r.erase("time");
    if (l != r) return false;
  }
  return true;
}

}  // namespace

void track_update(const SchemaGate& gate, const FieldWriter& writer, const json::value* old,
                  json::value sent, json::value& next) {
  const json::value* stored =
      old == nullptr ? nullptr : json::find(*old, {"metadata", "managedFields"});
  if (old != nullptr && stored == nullptr && sent.is_null()) return;  // never tracked
  static const json::value kNothing = json::object();
  const auto change = own_changes(gate, writer, old == nullptr ? kNothing : *old, next);
  if (sent.is_null() && stored != nullptr && change.changed.empty() && change.removed.empty()) {
    json::make_object(next, {"metadata"})["managedFields"] = *stored;
    return;
  }
  Managed managed = starting_point(writer, stored, sent);
  // Who has asked to forget, or whose object was made before anybody kept count, starts to be
  // tracked with the first apply.
  if (old != nullptr && managed.entries.empty()) return;
  take_from_others(managed, change);
  give_update(managed, writer, change.changed);
  managed.cap();
  put_managed(managed, next);
}

bool same_but_times(const json::value& a, const json::value& b) {
  const json::value* left = json::find(a, {"metadata", "managedFields"});
  const json::value* right = json::find(b, {"metadata", "managedFields"});
  if (!same_entries_but_times(left, right)) return false;
  json::value l = a, r = b;
  take_managed(l);
  take_managed(r);
  return l == r;
}

}  // namespace skiff::apiserver
