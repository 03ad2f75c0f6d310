// Which files of /dev a container with some of the machine's NVIDIA GPUs sees. Pure; a header
// alone, because the shim, which must stay small, asks it.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace skiff::node {

// `minors`: the numbers of the container's GPUs. Names that are not NVIDIA's are none of its
// business.
inline bool gpu_device_shown(std::string_view name, const std::vector<int>& minors) {
  constexpr std::string_view kPrefix = "nvidia";
  if (!name.starts_with(kPrefix)) return true;
  const std::string_view rest = name.substr(kPrefix.size());
  const bool numbered =
      !rest.empty() && std::ranges::all_of(rest, [](char c) { return c >= '0' && c <= '9'; });
  // Those without a number (nvidiactl, nvidia-uvm) are for whoever has any.
  if (!numbered) return !minors.empty();
  return std::ranges::any_of(minors, [&](int minor) { return std::to_string(minor) == rest; });
}

}  // namespace skiff::node
