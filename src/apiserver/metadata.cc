// The rules of metadata that hold for every kind.
#include <fmt/format.h>

#include "api/meta.h"
#include "apiserver/status.h"
#include "apiserver/writes.h"
#include "base/limits.h"
#include "base/names.h"

namespace skiff::apiserver {
namespace {

names::Complaint check_name(const ServedKind& kind, std::string_view name) {
  const std::string key = kind.resource().key();
  if (key == "namespaces" || key == "statefulsets.apps") return names::check_dns1123_label(name);
  if (key == "services") return names::check_dns1035_label(name);
  if (kind.resource().group == "rbac.authorization.k8s.io" ||
      key == "apiservices.apiregistration.k8s.io") {
    // system:node-reader, v1. and the like: whatever can stand in a path.
    if (name == "." || name == ".." || name.find_first_of("/%") != std::string_view::npos) {
      return "may not be '.' or '..' or contain '/' or '%'";
    }
    return {};
  }
  return names::check_dns1123_subdomain(name);
}

void check_labels(const json::object& labels, std::vector<Cause>& causes) {
  for (const auto& [key, value] : labels) {
    if (auto why = names::check_label_key(key)) {
      causes.push_back(invalid_value("metadata.labels", json::string(key), *why));
    }
    if (!value.is_string()) {
      causes.push_back(invalid_value("metadata.labels", value, "must be a string"));
    } else if (auto bad = names::check_label_value(json::view(value.get_string()))) {
      causes.push_back(invalid_value("metadata.labels", value, *bad));
    }
  }
}

void check_annotations(const json::object& annotations, std::vector<Cause>& causes) {
  std::size_t bytes = 0;
  for (const auto& [key, value] : annotations) {
    // Annotation keys are label keys without regard to case.
    if (auto why = names::check_label_key(key)) {
      causes.push_back(invalid_value("metadata.annotations", json::string(key), *why));
    }
    if (!value.is_string()) {
      causes.push_back(invalid_value("metadata.annotations", value, "must be a string"));
    } else {
      bytes += key.size() + value.get_string().size();
    }
  }
  if (bytes > limits::kAnnotationBytes) {
    causes.push_back({.field = "metadata.annotations",
                      .reason = "FieldValueTooLong",
                      .message = fmt::format("Too long: may not be more than {} bytes",
                                             limits::kAnnotationBytes)});
  }
}

void check_owners(const json::array& owners, std::vector<Cause>& causes) {
  int controllers = 0;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    for (std::string_view field : {"apiVersion", "kind", "name", "uid"}) {
      if (!json::get_string(owners[i], {field}).empty()) continue;
      causes.push_back(required(fmt::format("metadata.ownerReferences[{}].{}", i, field)));
    }
    if (json::get_bool(owners[i], {"controller"}).value_or(false)) ++controllers;
  }
  if (controllers > 1) {
    causes.push_back(invalid_value("metadata.ownerReferences", json::value(owners),
                                   "Only one reference can have Controller set to true"));
  }
}

}  // namespace

std::vector<Cause> check_metadata(const ServedKind& kind, const json::value& object) {
  std::vector<Cause> causes;
  const std::string_view name = api::name(object);
  if (auto why = check_name(kind, name)) {
    causes.push_back(invalid_value("metadata.name", json::string(name), *why));
  }
  for (std::string_view map : {"labels", "annotations"}) {
    const json::value* found = json::find(object, {"metadata", map});
    if (found != nullptr && !found->is_object() && !found->is_null()) {
      causes.push_back(invalid_value(fmt::format("metadata.{}", map), *found, "must be an object"));
    }
  }
  check_labels(json::get_object(object, {"metadata", "labels"}), causes);
  check_annotations(json::get_object(object, {"metadata", "annotations"}), causes);
  check_owners(json::get_array(object, {"metadata", "ownerReferences"}), causes);
  for (const json::value& finalizer : json::get_array(object, {"metadata", "finalizers"})) {
    const auto why = finalizer.is_string()
                         ? names::check_label_key(json::view(finalizer.get_string()))
                         : names::Complaint("must be a string");
    if (why) causes.push_back(invalid_value("metadata.finalizers", finalizer, *why));
  }
  return causes;
}

}  // namespace skiff::apiserver
