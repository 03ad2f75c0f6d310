// The rules of metadata that hold for every kind.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "api/checks.h"
#include "api/meta.h"
#include "apiserver/status.h"
#include "apiserver/writes.h"
#include "base/names.h"
#include "base/strings.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kOrphanFinalizer = "orphan";
constexpr std::string_view kForegroundFinalizer = "foregroundDeletion";

names::Complaints check_name(const ServedKind& kind, std::string_view name) {
  const std::string key = kind.resource().key();
  if (key == "namespaces" || key == "statefulsets.apps") return names::check_dns1123_label(name);
  if (key == "services") return names::check_dns1035_label(name);
  // system:node-reader, v1. and the like: whatever can stand in a path.
  if (kind.resource().group == "rbac.authorization.k8s.io" ||
      key == "apiservices.apiregistration.k8s.io") {
    return names::check_path_segment(name);
  }
  return names::check_dns1123_subdomain(name);
}

// What is left of generateName once something stands behind it.
std::string finished(std::string_view prefix) {
  std::string name(prefix);
  if (name.size() > 1 && name.ends_with('-')) name.back() = 'a';
  return name;
}

void check_names(const ServedKind& kind, const json::value& object, std::vector<Cause>& causes) {
  const std::string_view prefix = json::get_string(object, {"metadata", "generateName"});
  if (!prefix.empty()) {
    for (const std::string& bad : check_name(kind, finished(prefix))) {
      causes.push_back(invalid_value("metadata.generateName", json::string(prefix), bad));
    }
  }
  const std::string_view name = api::name(object);
  for (const std::string& bad : check_name(kind, name)) {
    causes.push_back(invalid_value("metadata.name", json::string(name), bad));
  }
}

void check_owner(const json::value& owner, std::vector<Cause>& causes) {
  constexpr std::string_view kPath = "metadata.ownerReferences";
  const std::string_view version = json::get_string(owner, {"apiVersion"});
  if (version.empty() || version.ends_with('/') || std::ranges::count(version, '/') > 1) {
    causes.push_back(invalid_value(fmt::format("{}.apiVersion", kPath), json::string(version),
                                   "version must not be empty"));
  }
  for (const std::string_view field : {"kind", "name", "uid"}) {
    if (!json::get_string(owner, {field}).empty()) continue;
    causes.push_back(invalid_value(fmt::format("{}.{}", kPath, field), "", "must not be empty"));
  }
  if (version == "v1" && json::get_string(owner, {"kind"}) == "Event") {
    causes.push_back(invalid_value(std::string(kPath), owner,
                                   "/v1, Kind=Event is disallowed from being an owner"));
  }
}

void check_owners(const json::array& owners, std::vector<Cause>& causes) {
  std::string controller;
  for (const json::value& owner : owners) {
    check_owner(owner, causes);
    if (!json::get_bool(owner, {"controller"}).value_or(false)) continue;
    const std::string who =
        fmt::format("{}/{}", json::get_string(owner, {"kind"}), json::get_string(owner, {"name"}));
    if (controller.empty()) {
      controller = who;
      continue;
    }
    causes.push_back(
        invalid_value("metadata.ownerReferences", json::value(owners),
                      fmt::format("Only one reference can have Controller set to true. Found "
                                  "\"true\" in references for {} and {}",
                                  controller, who)));
  }
}

// Custom kinds, and the few built-in ones that are not of Kubernetes' own repository, are only
// warned of a finalizer that says nothing about whose it is.
bool wants_qualified(const ServedKind& kind) {
  const std::string& group = kind.resource().group;
  return !kind.custom && group != "apiextensions.k8s.io" && group != "admissionregistration.k8s.io";
}

bool stands_alone(std::string_view finalizer) {
  return !finalizer.contains('/') && finalizer != kOrphanFinalizer &&
         finalizer != kForegroundFinalizer && finalizer != "kubernetes";
}

void check_finalizer_names(const ServedKind& kind, const json::array& list, bool created,
                           std::vector<Cause>& causes) {
  const std::vector<std::string> finalizers = json::strings(list);
  if (created) {
    for (const std::string& finalizer : finalizers) {
      for (const std::string& bad : names::check_label_key(finalizer)) {
        causes.push_back(invalid_value("metadata.finalizers", json::string(finalizer), bad));
      }
    }
    if (std::ranges::count(finalizers, kOrphanFinalizer) > 0 &&
        std::ranges::count(finalizers, kForegroundFinalizer) > 0) {
      causes.push_back(invalid_value("metadata.finalizers", json::value(list),
                                     fmt::format("finalizer {} and {} cannot be both set",
                                                 kOrphanFinalizer, kForegroundFinalizer)));
    }
  }
  if (!wants_qualified(kind)) return;
  for (std::size_t i = 0; i < finalizers.size(); ++i) {
    if (!stands_alone(finalizers[i])) continue;
    causes.push_back(
        invalid_value(fmt::format("metadata.finalizers[{}]", i), json::string(finalizers[i]),
                      "name is neither a standard finalizer name nor is it fully qualified"));
  }
}

}  // namespace

std::vector<Cause> check_metadata(const ServedKind& kind, const json::value& object, bool created) {
  std::vector<Cause> causes;
  if (created) check_names(kind, object, causes);
  api::check_labels(json::get_object(object, {"metadata", "labels"}), "metadata.labels", causes);
  api::check_annotations(json::get_object(object, {"metadata", "annotations"}),
                         "metadata.annotations", causes);
  check_owners(json::get_array(object, {"metadata", "ownerReferences"}), causes);
  check_finalizer_names(kind, json::get_array(object, {"metadata", "finalizers"}), created, causes);
  return causes;
}

void drop_doubled_owners(json::value& object, std::vector<std::string>& warnings) {
  const json::array& owners = json::get_array(object, {"metadata", "ownerReferences"});
  json::array kept;
  std::vector<std::string> doubled;
  for (const json::value& owner : owners) {
    if (std::ranges::find(kept, owner) == kept.end()) {
      kept.push_back(owner);
    } else {
      doubled.emplace_back(json::get_string(owner, {"uid"}));
    }
  }
  if (doubled.empty()) return;
  warnings.push_back(
      fmt::format(".metadata.ownerReferences contains duplicate entries; API server dedups owner "
                  "references in 1.20+, and may reject such requests as early as 1.24; please fix "
                  "your requests; duplicate UID(s) observed: {}",
                  join(doubled, ", ")));
  json::set(object, {"metadata", "ownerReferences"}, std::move(kept));
}

void warn_of_metadata(const ServedKind& kind, const json::value& object, const json::value* old,
                      std::vector<std::string>& warnings) {
  if (!kind.custom) return;
  const auto finalizers = [](const json::value& of) {
    return json::strings(json::get_array(of, {"metadata", "finalizers"}));
  };
  const auto known = old == nullptr ? std::vector<std::string>() : finalizers(*old);
  const auto given = finalizers(object);
  for (const std::string& finalizer : std::set<std::string>(given.begin(), given.end())) {
    if (!stands_alone(finalizer) || std::ranges::count(known, finalizer) > 0) continue;
    warnings.push_back(
        fmt::format("metadata.finalizers: \"{}\": prefer a domain-qualified finalizer name {}to "
                    "avoid accidental conflicts with other finalizer writers",
                    finalizer, finalizer.contains('.') ? "including a path (/) " : ""));
  }
}

}  // namespace skiff::apiserver
