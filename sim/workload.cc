#include "sim/workload.h"

#include <fmt/format.h>

#include "api/meta.h"
#include "sim/checker.h"

namespace skiff::sim {

std::optional<std::string> Workload::unsettled(const View& view) const {
  for (const std::string& resource : view.roots) {
    for (const Object& root : view.of(resource)) {
      if (finished(*root) && !api::deleting(*root)) continue;
      return fmt::format("{} {} has not finished", resource, api::name(*root));
    }
  }
  return std::nullopt;
}

}  // namespace skiff::sim
