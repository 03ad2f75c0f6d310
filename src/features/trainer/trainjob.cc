#include "features/trainer/trainjob.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/meta.h"

namespace skiff::trainer {

const api::Resource& trainjob_resource() {
  static const api::Resource kResource{.group = std::string(kGroup),
                                       .version = "v1alpha1",
                                       .plural = "trainjobs",
                                       .kind = "TrainJob"};
  return kResource;
}

const api::Resource& runtime_resource() {
  static const api::Resource kResource{.group = std::string(kGroup),
                                       .version = "v1alpha1",
                                       .plural = "trainingruntimes",
                                       .kind = "TrainingRuntime"};
  return kResource;
}

const api::Resource& cluster_runtime_resource() {
  static const api::Resource kResource{.group = std::string(kGroup),
                                       .version = "v1alpha1",
                                       .plural = "clustertrainingruntimes",
                                       .kind = "ClusterTrainingRuntime",
                                       .namespaced = false};
  return kResource;
}

const api::Resource& jobset_resource() {
  static const api::Resource kResource{
      .group = "jobset.x-k8s.io", .version = "v1alpha2", .plural = "jobsets", .kind = "JobSet"};
  return kResource;
}

const api::Resource& config_map_resource() {
  static const api::Resource kResource{
      .version = "v1", .plural = "configmaps", .kind = "ConfigMap"};
  return kResource;
}

const api::Resource* runtime_kind(const json::value& trainjob) {
  const std::string_view group =
      json::get_string(trainjob, {"spec", "runtimeRef", "apiGroup"}, kGroup);
  const std::string_view kind =
      json::get_string(trainjob, {"spec", "runtimeRef", "kind"}, cluster_runtime_resource().kind);
  for (const api::Resource* known : {&runtime_resource(), &cluster_runtime_resource()}) {
    if (group == known->group && kind == known->kind) return known;
  }
  return nullptr;
}

std::string runtime_kind_text(const json::value& trainjob) {
  return fmt::format(
      "{}.{}",
      json::get_string(trainjob, {"spec", "runtimeRef", "kind"}, cluster_runtime_resource().kind),
      json::get_string(trainjob, {"spec", "runtimeRef", "apiGroup"}, kGroup));
}

const json::array& parts(const json::value& runtime) {
  return json::get_array(runtime, {"spec", "template", "spec", "replicatedJobs"});
}

std::string_view step_of(const json::value& part) {
  return json::get_string(part, {"template", "metadata", "labels", kStepLabel});
}

const json::array& containers(const json::value& part) {
  return json::get_array(part, {"template", "spec", "template", "spec", "containers"});
}

namespace {

json::array* patches_of(json::value& trainjob) {
  if (!trainjob.is_object()) return nullptr;
  json::value* spec = trainjob.get_object().if_contains("spec");
  if (spec == nullptr || !spec->is_object()) return nullptr;
  json::value* list = spec->get_object().if_contains("runtimePatches");
  return list == nullptr ? nullptr : list->if_array();
}

json::object without_time(const json::value& patch) {
  json::object out = patch.is_object() ? patch.get_object() : json::object();
  out.erase("time");
  return out;
}

}  // namespace

void stamp_patches(json::value& trainjob, const api::Admission& context) {
  json::array* patches = patches_of(trainjob);
  if (patches == nullptr || !context.subresource.empty()) return;
  static const json::array kNone;
  const json::array& before =
      context.old == nullptr ? kNone : json::get_array(*context.old, {"spec", "runtimePatches"});
  for (json::value& patch : *patches) {
    if (!patch.is_object()) continue;
    const auto old = std::ranges::find_if(before, [&](const json::value& other) {
      return json::get_string(other, {"manager"}) == json::get_string(patch, {"manager"});
    });
    json::object& fields = patch.get_object();
    if (old == before.end()) {
      if (!fields.contains("time")) fields["time"] = json::string(context.now);
    } else if (without_time(*old) != without_time(patch)) {
      fields["time"] = json::string(context.now);
    } else if (const json::value* time = json::find(*old, {"time"})) {
      fields["time"] = *time;
    }
  }
}

}  // namespace skiff::trainer
