#include "apiserver/wire/names.h"

#include <fmt/format.h>

#include "base/base64.h"
#include "base/sha256.h"

namespace skiff::apiserver {

std::string builtin_definition(std::string_view group, std::string_view version,
                               std::string_view kind) {
  if (kind == "DeleteOptions" || group == "meta.k8s.io") {
    return fmt::format("io.k8s.apimachinery.pkg.apis.meta.v1.{}", kind);
  }
  if (group == "apiextensions.k8s.io") {
    return fmt::format("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{}.{}", version,
                       kind);
  }
  const std::string_view package = group.empty() ? "core" : group.substr(0, group.find('.'));
  return fmt::format("io.k8s.api.{}.{}.{}", package, version, kind);
}

std::string storage_version_hash(std::string_view group, std::string_view version,
                                 std::string_view kind) {
  const std::string digest = sha256(fmt::format("{}/{}/{}", group, version, kind));
  return base64::encode(std::string_view(digest).substr(0, 8));
}

}  // namespace skiff::apiserver
