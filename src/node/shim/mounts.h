// Mounting by file descriptor: the target is looked up inside a root that symbolic links cannot
// leave, and a mount appears complete, with its flags, or not at all.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "node/shim/files.h"

namespace skiff::node {

enum class Missing { kIsError, kMakeFolder, kMakeFile };

// `path` as seen by a process whose root is `root`.
Result<Fd> open_in_root(int root, const std::string& path, Missing missing);

struct MountFlags {
  bool read_only = false;
  bool no_devices = false;
  bool no_exec = false;
  bool recursive = true;  // of a bind: with what is mounted below
};

// `path` with no symbolic link in it, as it was when Skiff resolved it: what a pod turned into a
// link since then is an error. Mounting at all needs a newer kernel than openat2, so there is no
// other way for those without it.
Result<Fd> open_resolved(const std::string& path);
// `path` below the folder, with no symbolic link in it; else an invalid one and errno.
Fd open_below(int folder, const std::string& path);
// Binds what the descriptor stands for and returns the root of the new mount; `source` is for
// messages.
Result<Fd> bind_fd(const Fd& from, const std::string& source, int target, const MountFlags& flags);
Result<void> bind_at(const std::string& source, int target, const MountFlags& flags);
using MountOptions = std::vector<std::pair<std::string, std::string>>;
Result<void> mount_at(const std::string& type, const MountOptions& options, int target,
                      const MountFlags& flags);

struct MountEntry {
  std::string path = {};
  std::string type = {};
};
// What is mounted in this namespace, in the order of mounting. `mountinfo` has the form of
// /proc/self/mountinfo.
std::vector<MountEntry> parse_mounts(std::string_view mountinfo);

}  // namespace skiff::node
