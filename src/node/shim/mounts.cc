#include "node/shim/mounts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/strings.h"

namespace skiff::node {
namespace {

int open_beneath(int root, const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT;
  return static_cast<int>(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how));
}

int make_missing(int parent, const std::string& name, bool folder) {
  if (folder) return ::mkdirat(parent, name.c_str(), 0755);
  const int fd = ::openat(parent, name.c_str(), O_CREAT | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0644);
  // A link to nowhere (the machine's /etc/resolv.conf, say) is replaced in the pod's own layer.
  if (fd < 0 && errno == ELOOP && ::unlinkat(parent, name.c_str(), 0) == 0) {
    return make_missing(parent, name, folder);
  }
  if (fd >= 0) ::close(fd);
  return fd < 0 ? -1 : 0;
}

Result<void> attach(const Fd& mount, int target, const MountFlags& flags, std::string_view what) {
  mount_attr attributes{};
  if (flags.read_only) attributes.attr_set |= MOUNT_ATTR_RDONLY;
  if (flags.no_devices) attributes.attr_set |= MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID;
  if (flags.no_exec) attributes.attr_set |= MOUNT_ATTR_NOEXEC;
  const unsigned depth = flags.recursive ? AT_RECURSIVE : 0;
  if (attributes.attr_set != 0 && ::mount_setattr(mount.get(), "", AT_EMPTY_PATH | depth,
                                                  &attributes, sizeof attributes) != 0) {
    return os_failure(fmt::format("cannot set the flags of the mount of {}", what));
  }
  if (::move_mount(mount.get(), "", target, "",
                   MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) != 0) {
    return os_failure(fmt::format("cannot mount {}", what));
  }
  return {};
}

// Spaces and the like are written as three octal digits.
std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      out.push_back(static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                      (text[i + 3] - '0')));
      i += 3;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

}  // namespace

Result<Fd> open_in_root(int root, const std::string& path, Missing missing) {
  Fd found(open_beneath(root, path));
  if (found.valid()) return found;
  if (missing == Missing::kIsError || errno != ENOENT) return os_failure(path);
  const std::vector<std::string_view> parts = split(path, '/');
  std::string done;
  Fd at(open_beneath(root, "/"));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].empty() || parts[i] == ".") continue;
    if (parts[i] == "..") return fail(Code::kInvalid, fmt::format("{}: has a \"..\"", path));
    done.append("/").append(parts[i]);
    Fd next(open_beneath(root, done));
    if (!next.valid()) {
      const bool folder = i + 1 < parts.size() || missing == Missing::kMakeFolder;
      if (make_missing(at.get(), std::string(parts[i]), folder) != 0) return os_failure(done);
      next.reset(open_beneath(root, done));
    }
    if (!next.valid()) return os_failure(done);
    at = std::move(next);
  }
  return at;
}

Result<Fd> open_resolved(const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS;
  Fd found(static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how)));
  if (!found.valid()) return os_failure(path);
  return found;
}

Fd open_below(int folder, const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  return Fd(static_cast<int>(::syscall(SYS_openat2, folder, path.c_str(), &how, sizeof how)));
}

Result<Fd> bind_fd(const Fd& from, const std::string& source, int target, const MountFlags& flags) {
  const unsigned depth = flags.recursive ? AT_RECURSIVE : 0;
  Fd tree(::open_tree(from.get(), "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | depth));
  if (!tree.valid()) return os_failure(source);
  SKIFF_TRY(attach(tree, target, flags, source));
  return tree;
}

Result<void> bind_at(const std::string& source, int target, const MountFlags& flags) {
  const unsigned depth = flags.recursive ? AT_RECURSIVE : 0;
  const Fd tree(::open_tree(AT_FDCWD, source.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | depth));
  if (!tree.valid()) return os_failure(source);
  return attach(tree, target, flags, source);
}

Result<void> mount_at(const std::string& type, const MountOptions& options, int target,
                      const MountFlags& flags) {
  const Fd context(::fsopen(type.c_str(), FSOPEN_CLOEXEC));
  if (!context.valid()) return os_failure(type);
  for (const auto& [key, value] : options) {
    const bool set =
        value.empty()
            ? ::fsconfig(context.get(), FSCONFIG_SET_FLAG, key.c_str(), nullptr, 0) == 0
            : ::fsconfig(context.get(), FSCONFIG_SET_STRING, key.c_str(), value.c_str(), 0) == 0;
    if (!set) return os_failure(fmt::format("{} does not take {}={}", type, key, value));
  }
  if (::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
    return os_failure(fmt::format("cannot make a file system of type {}", type));
  }
  const Fd made(::fsmount(context.get(), FSMOUNT_CLOEXEC, 0));
  if (!made.valid()) return os_failure(type);
  return attach(made, target, flags, type);
}

std::vector<MountEntry> parse_mounts(std::string_view mountinfo) {
  std::vector<MountEntry> out;
  for (const std::string_view line : split(mountinfo, '\n')) {
    // id parent device root PATH options [optional...] - TYPE source options
    const std::vector<std::string_view> words = split(line, ' ');
    if (words.size() < 7) continue;
    for (std::size_t i = 6; i + 1 < words.size(); ++i) {
      if (words[i] != "-") continue;
      out.push_back({.path = unescape(words[4]), .type = std::string(words[i + 1])});
      break;
    }
  }
  return out;
}

}  // namespace skiff::node
