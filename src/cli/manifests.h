// Reading manifests, and the three-way merge behind `apply`.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace skiff::cli {

// The objects of a YAML or JSON file, of every such file of a folder, or of standard input ("-").
// Lists are taken apart. An error names the file and the line.
Result<std::vector<json::value>> read_manifests(const std::string& path);

inline constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

// The manifest with itself in the annotation that kubectl reads, so that both can be used in turn.
json::value with_last_applied(const json::value& manifest);

// The merge patch that brings `live` to `manifest`: fields of the manifest are set, fields that the
// last manifest had and this one has not are removed, everything else stays. Empty: nothing to do.
json::object three_way_patch(const json::value& live, const json::value& manifest);

}  // namespace skiff::cli
