#include "image/unpack.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/strings.h"
#include "image/files.h"
#include "image/tar.h"

namespace skiff::image {
namespace {

constexpr std::string_view kWhiteout = ".wh.";
constexpr std::string_view kOpaque = ".wh..wh..opq";
constexpr std::string_view kAufs = ".wh..wh.";

int open_inside(int root, const std::string& path, std::uint64_t flags) {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const char* name = path.empty() ? "." : path.c_str();
  return static_cast<int>(::syscall(SYS_openat2, root, name, &how, sizeof how));
}

// The parts of a path without "." and empty ones. Nothing where one is "..": no honest archive
// needs it.
std::optional<std::vector<std::string>> parts_of(std::string_view path) {
  std::vector<std::string> out;
  for (const std::string_view part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == ".." || part.find('\0') != std::string_view::npos) return std::nullopt;
    out.emplace_back(part);
  }
  return out;
}

class Unpacker {
 public:
  Unpacker(int root, TarReader& tar) : root_(root), tar_(tar) {}

  Result<void> take(const TarEntry& entry) {
    auto parts = parts_of(entry.path);
    if (!parts) return refuse(entry, "its path leads out of the image");
    if (parts->empty()) return attributes(entry, root_, ".");
    const std::string name = std::move(parts->back());
    parts->pop_back();
    SKIFF_ASSIGN(const Fd parent, make_parent(*parts));
    if (name == kOpaque) return make_opaque(parent.get(), ".");
    if (name.starts_with(kAufs)) return {};
    if (name.starts_with(kWhiteout)) return white_out(parent.get(), name.substr(4), entry);
    return put(entry, parent.get(), name);
  }

  // Last: every new file touches its folder.
  void set_times() const {
    for (const auto& [path, mtime] : folders_) {
      const Fd folder(open_inside(root_, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
      if (folder.valid()) set_time(folder.get(), ".", mtime);
    }
  }

 private:
  static std::unexpected<Error> refuse(const TarEntry& entry, std::string_view why) {
    return fail(Code::kInvalid, fmt::format("the layer's file \"{}\": {}", entry.path, why));
  }

  Result<Fd> make_parent(const std::vector<std::string>& parts) const {
    const std::string whole = join(parts, "/");
    Fd there(open_inside(root_, whole, O_PATH | O_DIRECTORY));
    if (there.valid()) return there;
    if (errno != ENOENT) return os_failure(whole);
    std::string path;
    Fd parent(open_inside(root_, "", O_PATH | O_DIRECTORY));
    for (const std::string& part : parts) {
      path += (path.empty() ? "" : "/") + part;
      Fd next(open_inside(root_, path, O_PATH | O_DIRECTORY));
      if (!next.valid() && errno == ENOENT) {
        if (::mkdirat(parent.get(), part.c_str(), 0755) != 0) return os_failure(path);
        next.reset(open_inside(root_, path, O_PATH | O_DIRECTORY));
      }
      if (!next.valid()) return os_failure(path);
      parent = std::move(next);
    }
    return parent;
  }

  static Result<void> make_opaque(int parent, const char* name) {
    const Fd folder(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder.valid()) return os_failure("cannot hide a folder of the layers below");
    // The second is what overlayfs looks for in a user namespace, where the first is forbidden.
    for (const char* key : {"trusted.overlay.opaque", "user.overlay.opaque"}) {
      if (::fsetxattr(folder.get(), key, "y", 1, 0) == 0) return {};
      if (errno != EPERM) break;
    }
    return os_failure("cannot hide a folder of the layers below");
  }

  static Result<void> white_out(int parent, const std::string& name, const TarEntry& entry) {
    if (name.empty() || name == "." || name == "..") return refuse(entry, "it hides nothing");
    struct stat info{};
    if (::fstatat(parent, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) {
      // This layer has one of its own, which hides the others by itself unless it is a folder.
      return S_ISDIR(info.st_mode) ? make_opaque(parent, name.c_str()) : Result<void>();
    }
    if (::mknodat(parent, name.c_str(), S_IFCHR, ::makedev(0, 0)) != 0) {
      return os_failure("cannot hide a file of the layers below");
    }
    return {};
  }

  static std::string descriptor_path(int fd, const std::string& name) {
    return fmt::format("/proc/self/fd/{}/{}", fd, name);
  }

  Result<void> put(const TarEntry& entry, int parent, const std::string& name) {
    struct stat old{};
    bool hides = false;
    if (::fstatat(parent, name.c_str(), &old, AT_SYMLINK_NOFOLLOW) == 0) {
      const bool both_folders = S_ISDIR(old.st_mode) && entry.type == TarType::kFolder;
      if (both_folders) return folder_attributes(entry, parent, name);
      hides = S_ISCHR(old.st_mode);
      std::error_code error;
      std::filesystem::remove_all(descriptor_path(parent, name), error);
      if (error) return refuse(entry, error.message());
    }
    switch (entry.type) {
      case TarType::kFolder:
        if (::mkdirat(parent, name.c_str(), 0755) != 0) return os_failure(entry.path);
        // It came after its own whiteout: the folder below must not show through.
        if (hides) SKIFF_TRY(make_opaque(parent, name.c_str()));
        return folder_attributes(entry, parent, name);
      case TarType::kFile:
        return put_file(entry, parent, name);
      case TarType::kSymLink:
        if (::symlinkat(entry.link.c_str(), parent, name.c_str()) != 0) {
          return os_failure(entry.path);
        }
        return attributes(entry, parent, name);
      case TarType::kHardLink:
        return put_link(entry, parent, name);
      case TarType::kFifo:
        if (::mkfifoat(parent, name.c_str(), 0600) != 0) return os_failure(entry.path);
        return attributes(entry, parent, name);
      case TarType::kCharDevice:
      case TarType::kBlockDevice:
        return {};
    }
    return {};
  }

  Result<void> folder_attributes(const TarEntry& entry, int parent, const std::string& name) {
    folders_.emplace_back(entry.path, entry.mtime);
    return attributes(entry, parent, name);
  }

  Result<void> put_file(const TarEntry& entry, int parent, const std::string& name) {
    const Fd file(
        ::openat(parent, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file.valid()) return os_failure(entry.path);
    std::vector<char> piece(128 * 1024);
    while (true) {
      SKIFF_ASSIGN(const std::size_t n, tar_.read(piece.data(), piece.size()));
      if (n == 0) break;
      SKIFF_TRY(write_all(file.get(), {piece.data(), n}, entry.path));
    }
    return attributes(entry, parent, name);
  }

  Result<void> put_link(const TarEntry& entry, int parent, const std::string& name) const {
    auto parts = parts_of(entry.link);
    if (!parts || parts->empty()) return refuse(entry, "it is a link to what is outside the image");
    const std::string last = std::move(parts->back());
    parts->pop_back();
    const Fd from(open_inside(root_, join(*parts, "/"), O_PATH | O_DIRECTORY));
    if (!from.valid() || ::linkat(from.get(), last.c_str(), parent, name.c_str(), 0) != 0) {
      return os_failure(fmt::format("{}: cannot link to {}", entry.path, entry.link));
    }
    return {};
  }

  static void set_time(int parent, const std::string& name, std::int64_t mtime) {
    const timespec when{.tv_sec = mtime, .tv_nsec = 0};
    const timespec both[2] = {when, when};
    (void)::utimensat(parent, name.c_str(), both, AT_SYMLINK_NOFOLLOW);
  }

  // Owner first: a change of it takes set-user-id bits and capabilities away.
  Result<void> attributes(const TarEntry& entry, int parent, const std::string& name) {
    // An owner who is nobody in our user namespace: it is ours then.
    if (::fchownat(parent, name.c_str(), entry.uid, entry.gid, AT_SYMLINK_NOFOLLOW) != 0 &&
        errno != EINVAL) {
      return os_failure(entry.path);
    }
    if (entry.type == TarType::kSymLink) {
      set_time(parent, name, entry.mtime);
      return {};
    }
    const Fd file(::openat(parent, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!file.valid()) return os_failure(entry.path);
    const std::string path = fmt::format("/proc/self/fd/{}", file.get());
    if (::chmod(path.c_str(), entry.mode) != 0) return os_failure(entry.path);
    for (const auto& [key, value] : entry.xattrs) {
      // Others are orders to the kernel: overlayfs takes its own from trusted.*.
      if (key != "security.capability" && !key.starts_with("user.")) continue;
      // A file system without attributes still has the files.
      (void)::setxattr(path.c_str(), key.c_str(), value.data(), value.size(), 0);
    }
    set_time(parent, name, entry.mtime);
    return {};
  }

  const int root_;
  TarReader& tar_;
  std::vector<std::pair<std::string, std::int64_t>> folders_ = {};
};

}  // namespace

Result<void> unpack_layer(Source& source, const std::string& folder) {
  const Fd root(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return os_failure(folder);
  TarReader tar(source);
  Unpacker unpacker(root.get(), tar);
  while (true) {
    SKIFF_ASSIGN(const auto entry, tar.next());
    if (!entry) break;
    SKIFF_TRY(unpacker.take(*entry));
  }
  unpacker.set_times();
  return {};
}

}  // namespace skiff::image
