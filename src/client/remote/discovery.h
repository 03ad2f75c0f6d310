// Which kinds an API server has, from what it says about itself. Pure: the caller asks the server.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/kind.h"
#include "base/json.h"

namespace skiff::client {

// The Accept header that asks for everything in one answer and takes the old form where there is
// none.
extern const std::string_view kDiscoveryAccept;

struct Discovered {
  api::Kind kind = {};
  std::vector<std::string> verbs = {};
  std::vector<std::string> subresources = {};
};

bool is_aggregated(const json::value& answer);
// From an APIGroupDiscoveryList, in the server's order: preferred versions first.
std::vector<Discovered> kinds_of_aggregated(const json::value& list);

// The paths of the group versions that an APIVersions or APIGroupList names, preferred first.
std::vector<std::string> version_paths(const json::value& answer);
// From the APIResourceList of one group version.
std::vector<Discovered> kinds_of_version(const json::value& list);

}  // namespace skiff::client
