#include "api/skiff/image_mapping.h"

namespace skiff::api {
namespace {

void absolute(std::vector<Cause>& causes, const json::value& spec, std::string_view field) {
  const std::string_view path = json::get_string(spec, {field});
  if (path.empty() || path.front() == '/') return;
  causes.push_back({.field = "spec." + std::string(field),
                    .reason = "FieldValueInvalid",
                    .message = "must be an absolute path"});
}

std::vector<Cause> validate_image_mapping(const json::value& object, const Admission&) {
  std::vector<Cause> causes;
  const json::value* spec = json::find(object, {"spec"});
  if (spec == nullptr || json::get_string(*spec, {"pattern"}).empty()) {
    causes.push_back({.field = "spec.pattern",
                      .reason = "FieldValueRequired",
                      .message = "name the images meant, for example gcr.io/your-project/*"});
    return causes;
  }
  const int targets = (json::get_bool(*spec, {"host"}).value_or(false) ? 1 : 0) +
                      (json::get_string(*spec, {"rootfs"}).empty() ? 0 : 1) +
                      (json::get_string(*spec, {"venv"}).empty() ? 0 : 1);
  if (targets != 1) {
    causes.push_back({.field = "spec",
                      .reason = "FieldValueInvalid",
                      .message = "give exactly one of host: true, rootfs and venv"});
  }
  for (const std::string_view field : {"rootfs", "venv", "workingDir"}) {
    absolute(causes, *spec, field);
  }
  std::size_t index = 0;
  for (const json::value& mount : json::get_array(*spec, {"mounts"})) {
    const std::string field = "spec.mounts[" + std::to_string(index++) + "].";
    for (const std::string_view end : {"source", "target"}) {
      const std::string_view path = json::get_string(mount, {end});
      if (!path.empty() && path.front() == '/') continue;
      causes.push_back({.field = field + std::string(end),
                        .reason = "FieldValueInvalid",
                        .message = "must be an absolute path"});
    }
  }
  return causes;
}

}  // namespace

Kind image_mapping_kind() {
  Kind kind;
  kind.resource = {.group = "skiff.dev",
                   .version = "v1",
                   .plural = "imagemappings",
                   .kind = "ImageMapping",
                   .namespaced = false};
  kind.singular = "imagemapping";
  kind.short_names = {"im"};
  kind.columns = {
      {.name = "Pattern", .type = "string", .json_path = ".spec.pattern"},
      {.name = "Host", .type = "boolean", .json_path = ".spec.host"},
      {.name = "Rootfs", .type = "string", .json_path = ".spec.rootfs"},
      {.name = "Venv", .type = "string", .json_path = ".spec.venv"},
      {.name = "Age", .type = "date", .json_path = ".metadata.creationTimestamp"},
  };
  kind.unconditional_update = false;
  kind.validate = validate_image_mapping;
  return kind;
}

}  // namespace skiff::api
