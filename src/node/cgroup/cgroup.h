// Limits on processes by control groups: version 2 where it has the controllers, else the version 1
// hierarchies (memory, cpu, pids), else none at all.
//
// A group is named by a path relative to the root of every hierarchy, such as
// skiff-1a2b/pod-UID/main. The kernel's files are the only state: any process may take over.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace skiff::node {

struct CgroupLimits {
  std::int64_t memory_bytes = 0;  // 0: none
  std::int64_t cpu_limit_milli = 0;
  std::int64_t cpu_request_milli = 0;
  std::int64_t pids = 0;
};

class Cgroups {
 public:
  // Looks at what is mounted under `root`; the kernel has it at /sys/fs/cgroup.
  static Cgroups detect(const std::string& root = "/sys/fs/cgroup");

  bool usable() const { return v2_ || !hierarchies_.empty(); }
  bool is_v2() const { return v2_; }
  // Makes the group and its parents and sets the limits.
  Result<void> make(const std::string& group, const CgroupLimits& limits) const;
  // Puts the calling process, which must have one thread, into the group. Only moving oneself is
  // cheap: for any other process the kernel waits until all processors have passed a quiet state,
  // which takes milliseconds.
  Result<void> enter(const std::string& group) const;
  // Whether the kernel killed a process of the group for want of memory.
  bool oom_killed(const std::string& group) const;
  // Removes the group and the empty groups in it; false where processes are still inside.
  bool remove(const std::string& group) const;
  // The folder of a group in a controller's hierarchy, for tests and metrics.
  std::string folder(const std::string& controller, const std::string& group) const;

 private:
  struct Hierarchy {
    std::string controller = {};
    std::string path = {};
  };

  Result<void> limit_v1(const std::string& group, const CgroupLimits& limits) const;
  Result<void> limit_v2(const std::string& group, const CgroupLimits& limits) const;

  std::string root_ = {};
  bool v2_ = false;
  std::vector<Hierarchy> hierarchies_ = {};
};

// Kubernetes' numbers: shares of a thousandth of a CPU, and quota in a period of 100 ms.
std::int64_t cpu_shares(std::int64_t milli);
std::int64_t cpu_weight(std::int64_t shares);
std::int64_t cpu_quota_us(std::int64_t milli);

}  // namespace skiff::node
