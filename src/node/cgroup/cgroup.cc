#include "node/cgroup/cgroup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/strings.h"

namespace skiff::node {
namespace {

constexpr int kPeriodUs = 100'000;
constexpr const char* kControllers = "+memory +cpu +pids";

Result<void> put(const std::string& path, const std::string& text) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  const bool written = fd >= 0 && ::write(fd, text.data(), text.size()) >= 0;
  const int number = errno;
  if (fd >= 0) ::close(fd);
  if (written) return {};
  return fail(Code::kInternal,
              fmt::format("cannot write {} to {}: {}", text, path, std::strerror(number)));
}

std::string get(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Result<void> make_group(const std::string& root, const std::string& group) {
  std::string path = root;
  for (const std::string_view part : split(group, '/')) {
    path.append("/").append(part);
    if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) {
      return fail(Code::kInternal,
                  fmt::format("cannot make the control group {}: {}", path, std::strerror(errno)));
    }
  }
  return {};
}

bool remove_groups(const std::string& path) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
    if (entry.is_directory(error)) remove_groups(entry.path());
  }
  return ::rmdir(path.c_str()) == 0 || errno == ENOENT;
}

// The value of a "key value" line.
std::int64_t field(const std::string& text, std::string_view key) {
  for (const std::string_view line : split(text, '\n')) {
    if (line.starts_with(key) && line.size() > key.size() && line[key.size()] == ' ') {
      return std::atoll(std::string(line.substr(key.size() + 1)).c_str());
    }
  }
  return 0;
}

}  // namespace

std::int64_t cpu_shares(std::int64_t milli) {
  return std::max<std::int64_t>(2, milli * 1024 / 1000);
}

std::int64_t cpu_weight(std::int64_t shares) {
  if (shares <= 2) return 1;
  if (shares >= 262'144) return 10'000;
  const double l = std::log2(static_cast<double>(shares));
  const double exponent = (l * l + 125.0 * l) / 612.0 - 7.0 / 34.0;
  return static_cast<std::int64_t>(std::ceil(std::pow(10.0, exponent)));
}

std::int64_t cpu_quota_us(std::int64_t milli) {
  return std::max<std::int64_t>(1'000, milli * kPeriodUs / 1000);
}

Cgroups Cgroups::detect(const std::string& root) {
  Cgroups found;
  found.root_ = root;
  if (::access(root.c_str(), W_OK) != 0) return found;
  if (get(root + "/cgroup.controllers").find("memory") != std::string::npos) {
    // In a container the root may hold processes, and then the kernel lets no controller go down.
    found.v2_ = put(root + "/cgroup.subtree_control", kControllers).has_value();
    return found;
  }
  for (const char* controller : {"memory", "cpu", "pids"}) {
    const std::string path = root + "/" + controller;
    if (::access((path + "/cgroup.procs").c_str(), W_OK) == 0) {
      found.hierarchies_.push_back({controller, path});
    }
  }
  return found;
}

Result<void> Cgroups::make(const std::string& group, const CgroupLimits& limits) const {
  if (v2_) {
    SKIFF_TRY(make_group(root_, group));
    return limit_v2(group, limits);
  }
  for (const Hierarchy& h : hierarchies_) SKIFF_TRY(make_group(h.path, group));
  return limit_v1(group, limits);
}

Result<void> Cgroups::limit_v2(const std::string& group, const CgroupLimits& limits) const {
  // A controller works in a group only where every group above it hands the controller down.
  std::string above = root_;
  for (const std::string_view part : split(group, '/')) {
    SKIFF_TRY(put(above + "/cgroup.subtree_control", kControllers));
    above.append("/").append(part);
  }
  if (limits.memory_bytes > 0) {
    SKIFF_TRY(put(above + "/memory.max", std::to_string(limits.memory_bytes)));
    (void)put(above + "/memory.swap.max", "0");
    SKIFF_TRY(put(above + "/memory.oom.group", "1"));
  }
  if (limits.cpu_limit_milli > 0) {
    SKIFF_TRY(put(above + "/cpu.max",
                  fmt::format("{} {}", cpu_quota_us(limits.cpu_limit_milli), kPeriodUs)));
  }
  if (limits.cpu_request_milli > 0) {
    SKIFF_TRY(put(above + "/cpu.weight",
                  std::to_string(cpu_weight(cpu_shares(limits.cpu_request_milli)))));
  }
  if (limits.pids > 0) SKIFF_TRY(put(above + "/pids.max", std::to_string(limits.pids)));
  return {};
}

Result<void> Cgroups::limit_v1(const std::string& group, const CgroupLimits& limits) const {
  for (const Hierarchy& h : hierarchies_) {
    const std::string at = h.path + "/" + group;
    if (h.controller == "memory" && limits.memory_bytes > 0) {
      SKIFF_TRY(put(at + "/memory.limit_in_bytes", std::to_string(limits.memory_bytes)));
      // Absent where the kernel does not account for swap.
      (void)put(at + "/memory.memsw.limit_in_bytes", std::to_string(limits.memory_bytes));
    }
    if (h.controller == "cpu" && limits.cpu_limit_milli > 0) {
      SKIFF_TRY(put(at + "/cpu.cfs_period_us", std::to_string(kPeriodUs)));
      SKIFF_TRY(
          put(at + "/cpu.cfs_quota_us", std::to_string(cpu_quota_us(limits.cpu_limit_milli))));
    }
    if (h.controller == "cpu" && limits.cpu_request_milli > 0) {
      SKIFF_TRY(put(at + "/cpu.shares", std::to_string(cpu_shares(limits.cpu_request_milli))));
    }
    if (h.controller == "pids" && limits.pids > 0) {
      SKIFF_TRY(put(at + "/pids.max", std::to_string(limits.pids)));
    }
  }
  return {};
}

Result<void> Cgroups::enter(const std::string& group) const {
  if (v2_) return put(root_ + "/" + group + "/cgroup.procs", "0");
  for (const Hierarchy& h : hierarchies_) SKIFF_TRY(put(h.path + "/" + group + "/tasks", "0"));
  return {};
}

bool Cgroups::oom_killed(const std::string& group) const {
  const char* file = v2_ ? "/memory.events" : "/memory.oom_control";
  return field(get(folder("memory", group) + file), "oom_kill") > 0;
}

bool Cgroups::remove(const std::string& group) const {
  if (v2_) return remove_groups(root_ + "/" + group);
  bool gone = true;
  for (const Hierarchy& h : hierarchies_) gone = remove_groups(h.path + "/" + group) && gone;
  return gone;
}

std::string Cgroups::folder(const std::string& controller, const std::string& group) const {
  return v2_ ? root_ + "/" + group : root_ + "/" + controller + "/" + group;
}

}  // namespace skiff::node
