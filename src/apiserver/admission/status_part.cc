// What a write of the sub-resource status may change.
#include <algorithm>

#include "apiserver/writes.h"

namespace skiff::apiserver {
namespace {

void copy_status_member(json::object& to, const json::object& from, std::string_view name) {
  if (const json::value* member = from.if_contains(name)) {
    to[name] = *member;
  } else {
    to.erase(name);
  }
}

// Which words of metadata come with the status. Controllers of Kubernetes' own kinds have always
// been allowed to note things there; custom objects and newer kinds keep theirs.
std::vector<std::string_view> written_metadata(const ServedKind& kind) {
  const std::string key = kind.resource().key();
  if (!kind.kind.schema.starts_with("io.k8s.api.") || key == "volumeattachments.storage.k8s.io") {
    return {};
  }
  std::vector<std::string_view> out = {"labels", "annotations", "finalizers", "ownerReferences"};
  if (key == "deployments.apps") std::erase(out, "labels");
  if (key == "pods") std::erase(out, "ownerReferences");
  return out;
}

}  // namespace

json::value with_status(const ServedKind& kind, const json::value& old, const json::value& sent) {
  json::value next = old;
  copy_status_member(next.as_object(), sent.get_object(), "status");
  const json::object& metadata = json::get_object(sent, {"metadata"});
  for (const std::string_view name : written_metadata(kind)) {
    copy_status_member(json::make_object(next, {"metadata"}), metadata, name);
  }
  return next;
}

}  // namespace skiff::apiserver
