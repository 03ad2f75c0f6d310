// How Kubernetes names things that only machines read: definitions of schemas, storage versions.
#pragma once

#include <string>
#include <string_view>

namespace skiff::apiserver {

// io.k8s.api.apps.v1.Deployment for Deployment of apps/v1: the definition of a built-in kind.
std::string builtin_definition(std::string_view group, std::string_view version,
                               std::string_view kind);

// Tells whether two servers keep a kind in the same version: eight bytes of a SHA-256, in base64.
std::string storage_version_hash(std::string_view group, std::string_view version,
                                 std::string_view kind);

}  // namespace skiff::apiserver
