// Which GPU belongs to which container, and what a container sees of those it got. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace skiff::node {

inline constexpr std::string_view kGpuResource = "nvidia.com/gpu";

struct Gpu {
  std::string uuid = {};
  std::string name = {};
  int minor = 0;  // of its device file: /dev/nvidia0
  std::int64_t memory_bytes = 0;
};

struct GpuLoad {
  int busy_percent = 0;
  std::int64_t memory_bytes = 0;
};

class GpuBook {
 public:
  explicit GpuBook(std::vector<Gpu> gpus) : gpus_(std::move(gpus)) {}

  const std::vector<Gpu>& all() const { return gpus_; }
  // The GPUs of this container: those it has already, else free ones, the first of the machine
  // first. `init`: an init container that ends before the next begins, so that what it had is there
  // for the pod's others. The error says who has them.
  Result<std::vector<Gpu>> take(const std::string& pod_uid, const std::string& container,
                                std::int64_t count, bool init);
  // The pod has ended.
  void release(std::string_view pod_uid);

  // What the pod has, to be kept with it: {"main": {"gpus": ["GPU-1"], "init": false}}.
  json::object kept(std::string_view pod_uid) const;
  // From an earlier life. What cannot be read is left out.
  void hold(const std::string& pod_uid, const json::value& kept);

  std::size_t free() const;

 private:
  struct Claim {
    std::vector<std::string> uuids = {};
    bool init = false;
  };
  bool taken(const std::string& uuid) const;

  std::vector<Gpu> gpus_;
  std::map<std::string, std::map<std::string, Claim>, std::less<>> claims_ = {};  // by pod
};

// What a container is told of its GPUs, none included.
std::vector<std::pair<std::string, std::string>> gpu_variables(const std::vector<Gpu>& gpus);
// How many a container of a pod asks for.
std::int64_t gpus_wanted(const json::value& container);
// Labels of the node, as NVIDIA's own discovery gives them.
std::map<std::string, std::string> gpu_labels(const std::vector<Gpu>& gpus);
// What is used of all GPUs together, as quantities by resource.
std::map<std::string, std::string> gpu_usage(const std::vector<GpuLoad>& loads);

}  // namespace skiff::node
