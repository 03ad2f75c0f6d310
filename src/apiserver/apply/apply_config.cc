// Server-side apply, as a function over values.
#include <fmt/format.h>

#include <algorithm>

#include "api/meta.h"
#include "apiserver/apply/last_applied.h"
#include "apiserver/apply/ownership.h"

namespace skiff::apiserver {
namespace {

using schema::FieldSet;
using schema::TypedFields;

constexpr std::string_view kBeforeFirstApply = "before-first-apply";
constexpr std::string_view kKubectl = "kubectl";

struct Conflict {
  const ManagedEntry* owner = nullptr;
  FieldSet fields = {};
};

std::string describe_owner(const ManagedEntry& owner, std::string_view version) {
  std::string out = json::serialize(json::string(owner.manager));
  if (!owner.subresource.empty()) {
    out += fmt::format(" with subresource {}", json::serialize(json::string(owner.subresource)));
  }
  if (!owner.applied) out += fmt::format(" using {}", version);
  return out;
}

Error conflict_error(const FieldWriter& writer, const std::vector<Conflict>& conflicts) {
  Error error{.code = Code::kConflict};
  std::string list, only;
  for (const Conflict& conflict : conflicts) {
    // A scale has owners of its own, in its own version.
    const std::string owner = describe_owner(*conflict.owner, writer.subresource == "scale"
                                                                  ? "autoscaling/v1"
                                                                  : conflict.owner->api_version);
    if (!list.empty()) list += '\n';
    list += fmt::format("conflicts with {}:", owner);
    conflict.fields.each([&](const FieldSet::Path& path) {
      const std::string field = FieldSet::text(path);
      list += "\n- " + field;
      only = fmt::format("conflict with {}: {}", owner, field);
      error.causes.push_back({.field = field,
                              .reason = "FieldManagerConflict",
                              .message = fmt::format("conflict with {}", owner)});
    });
  }
  const std::size_t count = error.causes.size();
  error.message = count == 1 ? fmt::format("Apply failed with 1 conflict: {}", only)
                             : fmt::format("Apply failed with {} conflicts: {}", count, list);
  return error;
}

// What a configuration may set on this path: not the status of the object on its own path, on the
// status path nothing else.
json::value settable(const FieldWriter& writer, json::value config) {
  json::object& root = config.get_object();
  if (writer.subresource == "status") {
    json::object kept;
    for (const std::string_view name : {"apiVersion", "kind", "status"}) {
      if (const json::value* v = root.if_contains(name)) kept[name] = *v;
    }
    json::object& metadata = kept["metadata"].emplace_object();
    for (const std::string_view name : {"name", "namespace", "uid", "resourceVersion"}) {
      if (const json::value* v = json::find(root, {"metadata", name})) metadata[name] = *v;
    }
    return kept;
  }
  if (writer.kind.kind.has_status) root.erase("status");
  return config;
}

// Takes out of `merged` what this manager applied before and does not now, unless somebody else
// owns it.
json::value prune(const TypedFields& typed, const json::value& merged, const Managed& managed,
                  const FieldSet& last) {
  if (last.empty()) return merged;
  const FieldSet before = typed.with_parents(last);
  FieldSet owned;
  for (const ManagedEntry& entry : managed.entries) owned = owned.united(entry.fields);
  const FieldSet all = typed.with_parents(typed.leaf_set(merged));
  const auto left = [&](const json::value& v) { return typed.with_parents(typed.leaf_set(v)); };
  json::value pruned = typed.remove(merged, before);
  pruned = typed.remove(merged, all.without(left(pruned).united(typed.with_parents(owned))));
  pruned = typed.remove(merged, all.without(left(pruned)).common(before));
  return pruned.is_null() ? json::value(json::object()) : pruned;
}

bool has_nulls(const json::value& v) {
  if (const json::object* o = v.if_object()) {
    return std::ranges::any_of(*o, [](const auto& m) { return has_nulls(m.value()); });
  }
  if (const json::array* a = v.if_array()) return std::ranges::any_of(*a, has_nulls);
  return v.is_null();
}

// What pruning has emptied goes, once nobody needs to know any more that it was not taken out.
void drop_nulls(json::value& v) {
  if (json::array* a = v.if_array()) {
    for (json::value& item : *a) drop_nulls(item);
    a->erase(std::remove_if(a->begin(), a->end(), [](const auto& i) { return i.is_null(); }),
             a->end());
  }
  json::object* o = v.if_object();
  if (o == nullptr) return;
  std::vector<std::string> gone;
  for (auto& member : *o) {
    drop_nulls(member.value());
    if (member.value().is_null()) gone.emplace_back(member.key());
  }
  for (const std::string& key : gone) o->stable_erase(o->find(key));
}

class Apply {
 public:
  Apply(const SchemaGate& gate, const FieldWriter& writer, const json::value* old)
      : gate_(gate),
        writer_(writer),
        typed_(gate.fields(writer.kind)),
        exists_(old != nullptr),
        live_(old != nullptr ? *old : gate.blank(writer.kind)) {
    stored_ = take_managed(live_);
    live_.get_object()["apiVersion"] = writer.kind.resource().api_version();
    live_.get_object()["kind"] = writer.kind.resource().kind;
  }

  // `said` is the configuration before that was left out of it which this path does not set: to
  // the real server who says something new there has changed something.
  Result<json::value> run(const json::value& config, const json::value& said, bool force) {
    auto managed = Managed::decode(stored_);
    if (!managed) {
      return fail(Code::kUnknown,
                  fmt::format("failed to decode managed fields: {}", managed.error().message));
    }
    if (managed->entries.empty() && exists_) start_tracking(*managed);
    if (writer_.kind.custom) {
      for (ManagedEntry& entry : managed->entries) {
        entry.set_fields(typed_.reconciled(entry.fields));
      }
    }
    SKIFF_ASSIGN(const json::value merged, typed_.merge(live_, config));
    ManagedEntry self{.manager = writer_.manager,
                      .applied = true,
                      .api_version = writer_.kind.resource().api_version(),
                      .subresource = writer_.subresource};
    FieldSet last;
    if (const ManagedEntry* known = managed->find(self)) {
      last = known->fields;
      self.time = known->time;
    }
    std::erase_if(managed->entries, [&](const ManagedEntry& e) { return e.same_manager(self); });
    self.fields = typed_.leaf_set(config);
    managed->entries.push_back(self);
    json::value next = prune(typed_, merged, *managed, last);
    managed->entries.pop_back();

    const auto change = own_changes(gate_, writer_, live_, next);
    if (!force) SKIFF_TRY(check_conflicts(*managed, change, config));
    take_from_others(*managed, change);
    self.fields = ownable(self.fields);
    if (!has_nulls(live_) && !has_nulls(config)) drop_nulls(next);
    if (writer_.subresource != "scale" && (next != live_ || changes(said, config, merged))) {
      self.time = writer_.now;
    }
    if (!self.fields.empty()) managed->entries.push_back(std::move(self));
    if (writer_.manager == kKubectl) renew_last_applied(config, next);
    put_managed(*managed, next);
    return next;
  }

 private:
  bool changes(const json::value& said, const json::value& config,
               const json::value& merged) const {
    if (said == config) return false;
    const auto all = typed_.merge(live_, said);
    return all && *all != merged;
  }

  // Everything there was before the first apply belongs to nobody in particular.
  void start_tracking(Managed& managed) const {
    FieldWriter before = writer_;
    before.manager = kBeforeFirstApply;
    give_update(managed, before, own_changes(gate_, writer_, json::object(), live_).changed);
  }

  Result<void> check_conflicts(const Managed& managed, const TypedFields::Change& change,
                               const json::value& config) const {
    std::vector<Conflict> conflicts;
    for (const ManagedEntry& entry : managed.entries) {
      FieldSet fields = entry.fields.common(change.changed);
      if (!fields.empty()) conflicts.push_back({.owner = &entry, .fields = std::move(fields)});
    }
    if (writer_.manager == kKubectl && !conflicts.empty()) {
      // What kubectl applied from its side is kubectl's, whoever is written down for it.
      const FieldSet own = last_applied_fields(typed_, live_, api::api_version(config));
      for (Conflict& conflict : conflicts) conflict.fields = conflict.fields.without(own);
      std::erase_if(conflicts, [](const Conflict& c) { return c.fields.empty(); });
    }
    if (conflicts.empty()) return {};
    std::ranges::sort(conflicts, {}, [](const Conflict& c) {
      return std::tie(c.owner->manager, c.owner->applied, c.owner->api_version,
                      c.owner->subresource);
    });
    return std::unexpected(conflict_error(writer_, conflicts));
  }

  const SchemaGate& gate_;
  const FieldWriter& writer_;
  TypedFields typed_;
  bool exists_;
  json::value live_;
  json::value stored_;
};

}  // namespace

Result<json::value> apply_config(const SchemaGate& gate, const FieldWriter& writer, bool force,
                                 const json::value* old, const json::value& config) {
  const api::Resource& r = writer.kind.resource();
  if (const auto checked = gate.fields(writer.kind).check(config); !checked) {
    return fail(Code::kUnknown,
                fmt::format("failed to create typed patch object ({}/{}; {}/{}, Kind={}): {}",
                            api::ns(config), api::name(config), r.group, r.version, r.kind,
                            checked.error().message));
  }
  return Apply(gate, writer, old).run(settable(writer, config), config, force);
}

}  // namespace skiff::apiserver
