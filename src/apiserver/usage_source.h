// What the API server asks of whoever runs pods: what nodes and containers use now.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/time.h"

namespace skiff::apiserver {

struct Used {
  std::int64_t cpu_nano = 0;  // thousand-millionths of a CPU, the mean over the window
  std::int64_t memory_bytes = 0;
};

struct Measured {
  Time at = {};
  Duration window = {};
};

struct ContainerUsage {
  std::string name = {};
  Used used = {};
  std::map<std::string, std::string> more = {};  // of other resources, as quantities
};

// Only where every running container of it has been measured.
struct PodUsage {
  std::string ns = {};
  std::string name = {};
  std::string uid = {};
  Measured measured = {};
  std::vector<ContainerUsage> containers = {};
};

struct NodeUsage {
  std::string name = {};
  Measured measured = {};
  Used used = {};
  std::map<std::string, std::string> more = {};  // of other resources, as quantities
};

struct Usage {
  std::vector<NodeUsage> nodes = {};
  std::vector<PodUsage> pods = {};
};

// From any thread.
using UsageSource = std::function<Usage()>;

}  // namespace skiff::apiserver
