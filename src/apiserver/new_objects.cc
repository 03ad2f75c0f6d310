// What the server itself writes into an object of a kind that it has duties for: the status of a
// CustomResourceDefinition, which is served from the moment it is written.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "api/meta.h"
#include "apiserver/writes.h"
#include "base/strings.h"

namespace skiff::apiserver {
namespace {

struct Condition {
  bool good = true;
  std::string reason = {};
  std::string message = {};
};

void set_crd_condition(json::value& object, std::string_view type, const Condition& condition,
                       const std::string& now) {
  json::object& status = json::make_object(object, {"status"});
  json::value& list = status["conditions"];
  if (!list.is_array()) list.emplace_array();
  json::object next{{"type", json::string(type)},
                    {"status", condition.good ? "True" : "False"},
                    {"lastTransitionTime", now},
                    {"reason", condition.reason},
                    {"message", condition.message}};
  for (json::value& existing : list.get_array()) {
    if (json::get_string(existing, {"type"}) != type) continue;
    if (json::get_string(existing, {"status"}) == json::get_string(next, {"status"})) {
      next["lastTransitionTime"] = existing.get_object()["lastTransitionTime"];
    }
    existing = std::move(next);
    return;
  }
  list.get_array().emplace_back(std::move(next));
}

std::string in_use(std::string_view name) { return fmt::format("\"{}\" is already in use", name); }

// Takes over one name; the condition says why not.
void take(std::string_view field, std::string_view reason, const std::set<std::string>& taken,
          const json::value& wanted, json::object& accepted, Condition& condition) {
  const std::string name(json::get_string(wanted, {field}));
  const json::value* own = accepted.if_contains(field);
  const bool mine = own != nullptr && own->is_string() && json::view(own->get_string()) == name;
  if (!mine && taken.contains(name)) {
    condition = {.good = false, .reason = std::string(reason), .message = in_use(name)};
  } else if (!name.empty()) {
    accepted[field] = name;
  }
}

void take_short_names(const std::set<std::string>& taken, const json::value& wanted,
                      json::object& accepted, Condition& condition) {
  const json::array& names = json::get_array(wanted, {"shortNames"});
  const json::value* own = accepted.if_contains("shortNames");
  const std::vector<std::string> mine = own != nullptr && own->is_array()
                                            ? json::strings(own->get_array())
                                            : std::vector<std::string>();
  std::vector<std::string> refused;
  for (const std::string& name : json::strings(names)) {
    if (std::ranges::count(mine, name) == 0 && taken.contains(name))
      refused.push_back(in_use(name));
  }
  if (!refused.empty()) {
    const std::string all = join(refused, ", ");
    condition = {.good = false,
                 .reason = "ShortNamesConflict",
                 .message = refused.size() == 1 ? all : "[" + all + "]"};
  } else if (names.empty()) {
    accepted.erase("shortNames");
  } else {
    accepted["shortNames"] = names;
  }
}

// Objects may still be kept in every version that was ever the one to store.
void follow_versions(json::value& definition) {
  json::array stored = json::get_array(definition, {"status", "storedVersions"});
  for (const json::value& version : json::get_array(definition, {"spec", "versions"})) {
    const json::value name = json::string(json::get_string(version, {"name"}));
    const bool storage = json::get_bool(version, {"storage"}).value_or(false);
    if (storage && std::ranges::count(stored, name) == 0) stored.push_back(name);
  }
  json::make_object(definition, {"status"})["storedVersions"] = std::move(stored);
}

void add_crd_finalizer(json::value& definition) {
  json::object& metadata = json::make_object(definition, {"metadata"});
  json::value& finalizers = metadata["finalizers"];
  if (!finalizers.is_array()) finalizers.emplace_array();
  const json::string name(kCrdFinalizer);
  if (std::ranges::count(finalizers.get_array(), json::value(name)) == 0) {
    finalizers.get_array().emplace_back(name);
  }
}

}  // namespace

void accept_names(json::value& definition, const HeldNames& taken, const std::string& now) {
  const json::value wanted = json::get_object(definition, {"spec", "names"});
  json::object& accepted = json::make_object(definition, {"status", "acceptedNames"});
  Condition names{.reason = "NoConflicts", .message = "no conflicts found"};
  take("plural", "PluralConflict", taken.resources, wanted, accepted, names);
  take("singular", "SingularConflict", taken.resources, wanted, accepted, names);
  take_short_names(taken.resources, wanted, accepted, names);
  take("kind", "KindConflict", taken.kinds, wanted, accepted, names);
  take("listKind", "ListKindConflict", taken.kinds, wanted, accepted, names);
  const json::array& categories = json::get_array(wanted, {"categories"});
  if (categories.empty()) {
    accepted.erase("categories");
  } else {
    accepted["categories"] = categories;
  }
  set_crd_condition(definition, "NamesAccepted", names, now);
  if (api::condition_true(definition, "Established")) return;
  Condition established{.reason = "InitialNamesAccepted",
                        .message = "the initial names have been accepted"};
  if (!names.good) {
    established = {.good = false, .reason = "NotAccepted", .message = "not all names are accepted"};
  }
  set_crd_condition(definition, "Established", established, now);
}

void Writes::follow_spec(Transaction& txn, const ServedKind& kind, json::value& object,
                         const std::string& now) {
  if (kind.resource().key() != kCrdKey) return;
  follow_versions(object);
  accept_names(object, definitions_.taken(txn, json::get_string(object, {"spec", "group"})), now);
}

void Writes::prepare_new(Transaction& txn, const ServedKind& kind, json::value& object,
                         const std::string& now) {
  if (kind.resource().key() != kCrdKey) return;
  object.get_object().erase("status");
  follow_spec(txn, kind, object, now);
}

bool begin_removal(const ServedKind& kind, json::value& object, const std::string& now) {
  if (kind.resource().key() != kCrdKey || api::deleting(object)) return false;
  json::make_object(object, {"metadata"})["deletionTimestamp"] = now;
  add_crd_finalizer(object);
  set_crd_condition(
      object, "Terminating",
      {.reason = "InstanceDeletionPending",
       .message = "CustomResourceDefinition marked for deletion; CustomResource deletion "
                  "will begin soon"},
      now);
  return true;
}

}  // namespace skiff::apiserver
