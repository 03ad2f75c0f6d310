#include "node/volumes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/limits.h"
#include "base/strings.h"

namespace skiff::node {
namespace {

namespace fs = std::filesystem;

std::unexpected<Error> io_error(std::string_view what, const std::string& path, int error) {
  return fail(Code::kInternal, fmt::format("cannot {} {}: {}", what, path, std::strerror(error)));
}

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

// Whoever is not root can give nothing away, and all of a pod is his own.
Result<void> give_to_group(const std::string& path, std::optional<int> group) {
  if (!group || ::geteuid() != 0) return {};
  const int done = ::chown(path.c_str(), static_cast<uid_t>(-1), static_cast<gid_t>(*group));
  if (done != 0 && errno == EINVAL) return {};  // nobody in our user namespace
  if (done != 0) {
    return io_error("give to its group", path, errno);
  }
  return {};
}

Result<void> write_file(const std::string& path, const std::string& data, int mode) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (fd.get() < 0) return io_error("create", path, errno);
  std::size_t done = 0;
  while (done < data.size()) {
    const ssize_t n = ::write(fd.get(), data.data() + done, data.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error("write", path, errno);
    done += static_cast<std::size_t>(n);
  }
  // The mode is the user's word: the umask has no say in it.
  if (::fchmod(fd.get(), static_cast<mode_t>(mode)) != 0) return io_error("chmod", path, errno);
  return {};
}

// What is there now is what is asked for, byte for byte and mode for mode.
bool holds(const std::string& data_folder, const Volume& volume) {
  std::size_t present = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator it(data_folder, error), end; !error && it != end;
       it.increment(error)) {
    if (!it->is_directory(error)) ++present;
  }
  std::set<std::string> paths;
  for (const VolumeFile& file : volume.files) {
    paths.insert(file.path);
    const std::string path = data_folder + "/" + file.path;
    struct stat info = {};
    if (::stat(path.c_str(), &info) != 0 || (info.st_mode & 0777) != mode_t(file.mode))
      return false;
    std::ifstream in(path, std::ios::binary);
    const std::string now((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    if (now != file.data) return false;
  }
  return !error && present == paths.size();
}

Result<void> swap_link(const std::string& folder, const std::string& name,
                       const std::string& target) {
  const std::string temporary = folder + "/..tmp_" + name;
  ::unlink(temporary.c_str());
  if (::symlink(target.c_str(), temporary.c_str()) != 0) {
    return io_error("link", temporary, errno);
  }
  const std::string path = folder + "/" + name;
  if (::rename(temporary.c_str(), path.c_str()) != 0) return io_error("rename", path, errno);
  return {};
}

// A folder name that is not taken: ..1, ..2, ...
std::string fresh_folder(const std::string& folder) {
  for (int n = 1;; ++n) {
    std::string name = fmt::format("..{}", n);
    std::error_code error;
    if (!fs::exists(folder + "/" + name, error)) return name;
  }
}

// Every name leads into ..data, and nothing else is there: neither names of before, nor folders of
// files that were being written when Skiff or the disk gave up.
Result<void> link_names(const std::string& folder, const std::set<std::string>& names,
                        const std::string& current) {
  std::error_code error;
  for (const std::string& name : names) {
    if (fs::is_symlink(folder + "/" + name, error)) continue;
    SKIFF_TRY(swap_link(folder, name, "..data/" + name));
  }
  std::vector<fs::path> stale;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    if (!names.contains(name) && name != "..data" && name != current) stale.push_back(it->path());
  }
  for (const fs::path& path : stale) fs::remove_all(path, error);
  return {};
}

Result<void> make_files(const std::string& folder, const Volume& volume) {
  std::error_code error;
  const std::string data = folder + "/..data";
  std::map<std::string, const VolumeFile*> last;  // a later source wins over an earlier one
  std::set<std::string> names;
  for (const VolumeFile& file : volume.files) {
    last[file.path] = &file;
    names.insert(file.path.substr(0, file.path.find('/')));
  }
  if (fs::exists(data, error) && holds(data, volume)) {
    return link_names(folder, names, fs::read_symlink(data, error).string());
  }
  const std::string fresh = fresh_folder(folder);
  fs::create_directory(folder + "/" + fresh, error);
  if (error) return io_error("create", folder + "/" + fresh, error.value());
  for (const auto& [path, file] : last) {
    const fs::path full = fs::path(folder) / fresh / path;
    fs::create_directories(full.parent_path(), error);
    if (error) return io_error("create", full.parent_path().string(), error.value());
    SKIFF_TRY(write_file(full.string(), file->data, file->mode));
    SKIFF_TRY(give_to_group(full.string(), volume.group));
  }
  SKIFF_TRY(swap_link(folder, "..data", fresh));
  return link_names(folder, names, fresh);
}

Result<std::string> make_host_path(const Volume& volume, const std::vector<std::string>& hidden) {
  const std::string& path = volume.host_path;
  if (path.empty() || path.front() != '/') {
    return fail(Code::kInvalid,
                fmt::format("volume \"{}\": hostPath must be an absolute path", volume.name));
  }
  const auto told = [&](const Error& error) {
    return fail(error.code, fmt::format("volume \"{}\": {}", volume.name, error.message));
  };
  const auto place = shown_path(path, hidden);
  if (!place) return told(place.error());
  std::error_code error;
  if (volume.host_type == "DirectoryOrCreate") fs::create_directories(*place, error);
  if (volume.host_type == "FileOrCreate") {
    // Not through a link to nowhere, which the check cannot see the end of.
    const Fd made(::open(place->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  }
  const auto shown = shown_path(*place, hidden);
  if (!shown) return told(shown.error());
  const std::string& real = *shown;
  const bool folder = volume.host_type.starts_with("Directory");
  const bool file = volume.host_type.starts_with("File");
  if ((folder && !fs::is_directory(real, error)) || (file && !fs::is_regular_file(real, error)) ||
      !fs::exists(real, error)) {
    return fail(Code::kNotFound, fmt::format("volume \"{}\": there is no {} {} on this machine",
                                             volume.name, file ? "file" : "folder", path));
  }
  return real;
}

// Made when it is first used, for containers of any user; who uses it later finds it as it was
// left.
Result<std::string> make_claim_folder(const std::string& path) {
  std::error_code error;
  if (fs::create_directories(path, error) && ::chmod(path.c_str(), 0777) != 0) {
    return io_error("chmod", path, errno);
  }
  if (error) return io_error("create", path, error.value());
  return shown_path(path, {});
}

int open_inside(int root, const std::string& path, std::uint64_t flags) {
  open_how how = {};
  how.flags = flags | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how));
}

std::unexpected<Error> refused_sub_path(std::string_view sub, int error) {
  return fail(Code::kInvalid,
              fmt::format("subPath \"{}\" cannot be used: {}", sub,
                          error == EXDEV ? "it leaves its volume" : std::strerror(error)));
}

// The real path of `sub` in the volume, made as a folder where absent. Symlinks are followed only
// as long as they stay inside, and the answer holds none, so that a container cannot turn a link
// into a way out between this check and the mount.
Result<std::string> sub_path(const std::string& volume, std::string_view sub) {
  const auto refuse = [&](int error) { return refused_sub_path(sub, error); };
  if (!stays_inside(sub)) return refuse(EXDEV);
  const Fd root(::open(volume.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat whole{};
  if (root.get() < 0 || ::fstat(root.get(), &whole) != 0) return refuse(errno);
  std::string at;
  for (const std::string_view part : split(sub, '/')) {
    if (part.empty() || part == ".") continue;
    const std::string parent = at.empty() ? "." : at;
    at = at.empty() ? std::string(part) : at + "/" + std::string(part);
    const Fd there(open_inside(root.get(), at, O_PATH));
    if (there.get() >= 0) continue;
    if (errno != ENOENT) return refuse(errno);
    const Fd folder(open_inside(root.get(), parent, O_PATH | O_DIRECTORY));
    if (folder.get() < 0) return refuse(errno);
    if (::mkdirat(folder.get(), std::string(part).c_str(), 0755) != 0) return refuse(errno);
    // Whoever may write into the volume may write into what is made of it; the umask has no say.
    const Fd made(::openat(folder.get(), std::string(part).c_str(),
                           O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (made.get() < 0 || ::fchmod(made.get(), whole.st_mode & 07777) != 0) return refuse(errno);
  }
  const Fd end(open_inside(root.get(), at.empty() ? "." : at, O_PATH));
  if (end.get() < 0) return refuse(errno);
  std::error_code error;
  const fs::path real = fs::read_symlink(fmt::format("/proc/self/fd/{}", end.get()), error);
  if (error) return refuse(error.value());
  return real.string();
}

}  // namespace

Result<std::string> shown_path(const std::string& path, const std::vector<std::string>& hidden) {
  if (!path.starts_with('/')) {
    return fail(Code::kInvalid, fmt::format("\"{}\" is not an absolute path", path));
  }
  const auto resolve = [](const std::string& given) {
    std::error_code error;
    std::string real = fs::weakly_canonical(given, error).string();
    while (real.size() > 1 && real.ends_with('/')) real.pop_back();
    return error ? std::string() : real;
  };
  std::string real = resolve(path);
  if (real.empty()) return fail(Code::kInvalid, fmt::format("{} cannot be resolved", path));
  for (const std::string& folder : hidden) {
    const std::string closed = resolve(folder);
    // What is above it may be mounted: there the hidden folder is covered.
    if ((real + "/").starts_with(closed + "/")) {
      return fail(Code::kInvalid,
                  fmt::format("{} is Skiff's own data and cannot be mounted", path));
    }
  }
  return real;
}

Result<std::string> make_volume(const std::string& pod_folder, const Volume& volume,
                                const std::vector<std::string>& hidden) {
  if (volume.kind == VolumeKind::kHostPath) return make_host_path(volume, hidden);
  if (volume.kind == VolumeKind::kClaim) return make_claim_folder(volume.host_path);
  if (!stays_inside(volume.name) || volume.name.find('/') != std::string::npos) {
    return fail(Code::kInvalid, fmt::format("volume \"{}\": not a usable name", volume.name));
  }
  std::error_code error;
  fs::create_directories(pod_folder + "/volumes/" + volume.name, error);
  if (error) return io_error("create", pod_folder + "/volumes/" + volume.name, error.value());
  SKIFF_ASSIGN(const std::string folder, shown_path(pod_folder + "/volumes/" + volume.name, {}));
  if (volume.kind == VolumeKind::kEmptyDir || volume.kind == VolumeKind::kMemory) {
    // Containers may run as any user, and the folder is the pod's own.
    SKIFF_TRY(give_to_group(folder, volume.group));
    // What is made in there belongs to the volume's group again.
    const mode_t mode = volume.group ? 02777 : 0777;
    if (::chmod(folder.c_str(), mode) != 0) return io_error("chmod", folder, errno);
    return folder;
  }
  SKIFF_TRY(make_files(folder, volume));
  return folder;
}

std::optional<VolumeLimit> exceeded(const std::string& pod_folder,
                                    const std::vector<VolumeLimit>& limits) {
  for (const VolumeLimit& limit : limits) {
    std::int64_t bytes = 0;
    std::error_code error;
    for (fs::recursive_directory_iterator it(pod_folder + "/volumes/" + limit.volume,
                                             fs::directory_options::skip_permission_denied, error),
         end;
         !error && it != end; it.increment(error)) {
      struct stat info = {};
      // What is on disk counts, not the length of a file with holes; links are not followed.
      if (::lstat(it->path().c_str(), &info) == 0) bytes += info.st_blocks * 512;
      if (bytes > limit.bytes) return limit;
    }
  }
  return std::nullopt;
}

Result<std::vector<Mount>> container_mounts(const json::value& container,
                                            const std::map<std::string, Place>& volumes,
                                            const Variables& variables) {
  std::vector<Mount> out;
  for (const json::value& mount : json::get_array(container, {"volumeMounts"})) {
    const std::string name(json::get_string(mount, {"name"}));
    const auto volume = volumes.find(name);
    if (volume == volumes.end()) {
      return fail(Code::kInvalid,
                  fmt::format("volumeMounts names volume \"{}\", which the pod does "
                              "not have",
                              name));
    }
    Mount made{.source = volume->second.path,
               .target = std::string(json::get_string(mount, {"mountPath"})),
               .read_only =
                   volume->second.read_only || json::get_bool(mount, {"readOnly"}).value_or(false),
               .memory_bytes = volume->second.memory_bytes};
    std::string sub(json::get_string(mount, {"subPath"}));
    if (const std::string_view text = json::get_string(mount, {"subPathExpr"}); !text.empty()) {
      SKIFF_ASSIGN(sub, expand(text, variables));
      if (sub.size() > limits::kPathBytes) {
        return fail(Code::kInvalid, fmt::format("subPathExpr of volume \"{}\" expands to more than "
                                                "{} bytes; no path can be longer",
                                                name, limits::kPathBytes));
      }
    }
    if (!sub.empty() && made.memory_bytes) {
      // The file system is the pod's: only in there can its folders be looked up.
      if (!stays_inside(sub)) return refused_sub_path(sub, EXDEV);
      made.inside = std::move(sub);
    } else if (!sub.empty()) {
      // Before, so that nothing is made there, and after, as links may have led elsewhere.
      SKIFF_TRY(shown_path(made.source + "/" + sub, volume->second.hidden));
      SKIFF_ASSIGN(made.source, sub_path(made.source, sub));
      SKIFF_TRY(shown_path(made.source, volume->second.hidden));
    }
    out.push_back(std::move(made));
  }
  return out;
}

}  // namespace skiff::node
