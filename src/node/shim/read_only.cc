#include "node/shim/read_only.h"

#include <fcntl.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstdlib>

#include "node/shim/mounts.h"

namespace skiff::node {

Result<RootMounts> RootMounts::look(const std::string& folder) {
  char* real = ::realpath(folder.c_str(), nullptr);
  if (real == nullptr) return os_failure(folder);
  const std::string root = real;
  std::free(real);
  RootMounts out;
  out.mounts_.emplace_back(::open(root.c_str(), O_PATH | O_CLOEXEC));
  if (!out.mounts_.front().valid()) return os_failure(root);
  SKIFF_ASSIGN(const std::string mountinfo, read_file("/proc/self/mountinfo"));
  for (const MountEntry& entry : parse_mounts(mountinfo)) {
    if (!entry.path.starts_with(root + "/")) continue;
    Fd mount(::open(entry.path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (mount.valid()) out.mounts_.push_back(std::move(mount));
  }
  return out;
}

Result<void> RootMounts::make_read_only() const {
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY;
  for (const Fd& mount : mounts_) {
    const int done =
        ::mount_setattr(mount.get(), "", AT_EMPTY_PATH, &attributes, sizeof attributes);
    // A mount that lies under another is not reached by its path, and by nobody in the container.
    const bool covered = done != 0 && errno == EINVAL && &mount != &mounts_.front();
    if (done != 0 && !covered) return os_failure("cannot make the root read-only");
  }
  return {};
}

}  // namespace skiff::node
