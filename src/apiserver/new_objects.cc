// What the server itself writes into a new object of a kind that it has duties for.
#include <algorithm>

#include "api/meta.h"
#include "apiserver/writes.h"

namespace skiff::apiserver {
namespace {

json::object condition(std::string_view type, std::string_view reason, std::string_view message,
                       const std::string& now) {
  return {{"type", json::string(type)},
          {"status", "True"},
          {"lastTransitionTime", json::string(now)},
          {"reason", json::string(reason)},
          {"message", json::string(message)}};
}

// A definition is served from the moment it is written, so it says so from its first revision.
void prepare_definition(json::value& object, const std::string& now) {
  const json::value names = json::get_object(object, {"spec", "names"});
  json::array stored;
  for (const json::value& version : json::get_array(object, {"spec", "versions"})) {
    if (json::get_bool(version, {"storage"}).value_or(false)) {
      stored.emplace_back(json::string(json::get_string(version, {"name"})));
    }
  }
  object.get_object()["status"] = json::object{
      {"conditions",
       json::array{condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
                   condition("Established", "InitialNamesAccepted",
                             "the initial names have been accepted", now)}},
      {"acceptedNames", names},
      {"storedVersions", std::move(stored)}};
  json::object& metadata = json::make_object(object, {"metadata"});
  json::value& finalizers = metadata["finalizers"];
  if (!finalizers.is_array()) finalizers.emplace_array();
  finalizers.get_array().emplace_back(json::string(kCrdFinalizer));
}

// Objects may still be kept in every version that was ever the one to store.
void follow_definition(json::value& object) {
  const json::value names = json::get_object(object, {"spec", "names"});
  json::array stored = json::get_array(object, {"status", "storedVersions"});
  for (const json::value& version : json::get_array(object, {"spec", "versions"})) {
    const json::value name = json::string(json::get_string(version, {"name"}));
    const bool storage = json::get_bool(version, {"storage"}).value_or(false);
    if (storage && std::ranges::count(stored, name) == 0) stored.push_back(name);
  }
  json::object& status = json::make_object(object, {"status"});
  status["acceptedNames"] = names;
  status["storedVersions"] = std::move(stored);
}

}  // namespace

void follow_spec(const ServedKind& kind, json::value& object) {
  if (kind.resource().key() == kCrdKey) follow_definition(object);
}

void prepare_new(const ServedKind& kind, json::value& object, const std::string& now) {
  if (kind.resource().key() == kCrdKey) prepare_definition(object, now);
}

}  // namespace skiff::apiserver
