// Definitions of the built-in Kubernetes types, for schema::Registry, and the names of those that
// our own kinds refer to.
#pragma once

#include <string_view>

namespace skiff::api {

// In the form of schema/definitions.h; lives as long as the program.
std::string_view builtin_definitions();

inline constexpr std::string_view kPodTemplateSpec = "io.k8s.api.core.v1.PodTemplateSpec";
inline constexpr std::string_view kObjectMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
inline constexpr std::string_view kDeleteOptions =
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

}  // namespace skiff::api
