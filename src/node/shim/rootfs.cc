#include "node/shim/rootfs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "node/gpu/device_files.h"
#include "node/shim/files.h"
#include "node/shim/mounts.h"
#include "node/shim/read_only.h"
#include "node/shim/user.h"

namespace skiff::node {
namespace {

// A machine with more file systems than this (automounters) shows the rest read-only or not at all.
constexpr std::size_t kNestedMounts = 64;

// The overlay's option syntax gives these characters a meaning.
std::string escape_option(std::string_view path) {
  std::string out;
  for (const char c : path) {
    if (c == ',' || c == ':' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

// The options of a mount must fit into one page, which the names of many layers do not: each gets
// a short link.
Result<std::string> short_names(const std::vector<std::string>& lowers, const std::string& layer) {
  std::string out;
  SKIFF_TRY(make_folders(fmt::format("layers/{}/l", layer)));
  for (std::size_t i = 0; i < lowers.size(); ++i) {
    const std::string link = fmt::format("layers/{}/l/{}", layer, i);
    if (::symlink(lowers[i].c_str(), link.c_str()) != 0 && errno != EEXIST) return os_failure(link);
    out += (i == 0 ? "" : ":") + link;
  }
  return out;
}

// The current folder must be the pod's: with relative layer paths the options stay short however
// long the path of the data directory is.
Result<void> overlay_at(const std::vector<std::string>& lowers, const std::string& layer,
                        int target) {
  SKIFF_TRY(make_folders("layers/" + layer + "/upper"));
  SKIFF_TRY(make_folders("layers/" + layer + "/work"));
  // The new root of the overlay takes the mode of the upper folder.
  const std::string& lower = lowers.front();
  struct stat below{};
  if (::stat(lower.c_str(), &below) != 0) return os_failure(lower);
  const std::string upper = "layers/" + layer + "/upper";
  // An owner who is nobody in our user namespace stays outside.
  if (::chmod(upper.c_str(), below.st_mode & 07777) != 0 ||
      (::chown(upper.c_str(), below.st_uid, below.st_gid) != 0 && errno != EINVAL)) {
    return os_failure(upper);
  }
  std::string below_all = escape_option(lower);
  if (lowers.size() > 1) {
    SKIFF_ASSIGN(below_all, short_names(lowers, layer));
  }
  // In a user namespace overlayfs keeps its notes where every owner of a file may write.
  const std::string options =
      fmt::format("lowerdir={},upperdir={},workdir=layers/{}/work{}", below_all, upper, layer,
                  own_user_map().whole ? "" : ",userxattr");
  const std::string place = fmt::format("/proc/self/fd/{}", target);
  if (::mount("overlay", place.c_str(), "overlay", 0, options.c_str()) != 0) {
    return os_failure(fmt::format("cannot lay a private layer over {}", lower));
  }
  return {};
}

bool under(const std::string& path, std::string_view folder) {
  return path == folder || (path.starts_with(folder) && path[folder.size()] == '/');
}

// What a container gets from elsewhere, or must not see at all.
bool hidden(const MountEntry& entry, const std::string& pod_folder) {
  for (const std::string_view own : {"/proc", "/sys", "/dev", "/tmp"}) {
    if (under(entry.path, own)) return true;
  }
  static constexpr std::array<std::string_view, 12> kKernelTypes = {
      "proc",    "sysfs",   "cgroup", "cgroup2",     "devtmpfs", "devpts",
      "debugfs", "tracefs", "bpf",    "binfmt_misc", "autofs",   "nsfs"};
  for (const std::string_view type : kKernelTypes) {
    if (entry.type == type) return true;
  }
  return entry.path == "/" || under(entry.path, pod_folder);
}

Result<void> mount_nested(const std::string& pod_folder, int root) {
  SKIFF_ASSIGN(const std::string mountinfo, read_file("/proc/self/mountinfo"));
  std::size_t count = 0;
  for (const MountEntry& entry : parse_mounts(mountinfo)) {
    if (hidden(entry, pod_folder)) continue;
    const auto target = open_in_root(root, entry.path, Missing::kIsError);
    if (!target) continue;  // covered by a later mount
    const std::string layer = std::to_string(++count);
    if (count <= kNestedMounts && overlay_at({entry.path}, layer, target->get())) continue;
    // A single file, or a file system that an overlay cannot stand on. One that cannot even be
    // shown read-only (a dead network mount) leaves an empty folder; it stops no pod.
    (void)bind_at(entry.path, target->get(), {.read_only = true, .recursive = false});
  }
  return {};
}

bool accelerator(std::string_view name, const ContainerSpec& container) {
  if (container.gpus && !gpu_device_shown(name, *container.gpus)) return false;
  return name.starts_with("nvidia") || name == "dri" || name == "kfd" || name == "infiniband" ||
         name.starts_with("accel");
}

// A device of the machine that every container has not got already.
bool foreign_device(const std::filesystem::directory_entry& entry) {
  std::error_code error;
  if (entry.is_symlink(error)) return false;
  const std::string name = entry.path().filename();
  for (const char* own : {"null", "zero", "full", "random", "urandom", "tty", "pts", "ptmx", "shm",
                          "mqueue", "fd", "console"}) {
    if (name == own) return false;
  }
  return entry.is_block_file(error) || entry.is_character_file(error) || entry.is_directory(error);
}

Result<void> mount_dev(int root, const RootRequest& request) {
  const MountFlags plain{.recursive = false};
  SKIFF_ASSIGN(const Fd place, open_in_root(root, "/dev", Missing::kMakeFolder));
  SKIFF_TRY(mount_at("tmpfs", {{"mode", "0755"}, {"size", "64k"}}, place.get(), plain));
  SKIFF_ASSIGN(const Fd dev, open_in_root(root, "/dev", Missing::kIsError));
  struct Node {
    const char* name;
    unsigned minor;
    unsigned major = 1;
  };
  std::vector<std::string> foreign;
  const mode_t old_mask = ::umask(0);
  for (const Node& n : {Node{"null", 3}, Node{"zero", 5}, Node{"full", 7}, Node{"random", 8},
                        Node{"urandom", 9}, Node{"tty", 0, 5}}) {
    if (::mknodat(dev.get(), n.name, S_IFCHR | 0666, ::makedev(n.major, n.minor)) == 0) continue;
    if (errno != EPERM) {
      ::umask(old_mask);
      return os_failure(n.name);
    }
    foreign.emplace_back(n.name);
  }
  ::umask(old_mask);
  // In a user namespace no device is made: the machine's own are shown.
  for (const std::string& name : foreign) {
    SKIFF_ASSIGN(const Fd target, open_in_root(root, "/dev/" + name, Missing::kMakeFile));
    SKIFF_TRY(bind_at("/dev/" + name, target.get(), plain));
  }
  (void)::symlinkat("/proc/self/fd", dev.get(), "fd");
  (void)::symlinkat("/proc/self/fd/0", dev.get(), "stdin");
  (void)::symlinkat("/proc/self/fd/1", dev.get(), "stdout");
  (void)::symlinkat("/proc/self/fd/2", dev.get(), "stderr");
  (void)::symlinkat("pts/ptmx", dev.get(), "ptmx");
  SKIFF_ASSIGN(const Fd pts, open_in_root(root, "/dev/pts", Missing::kMakeFolder));
  SKIFF_TRY(mount_at("devpts", {{"ptmxmode", "0666"}, {"mode", "0620"}}, pts.get(), plain));
  SKIFF_ASSIGN(const Fd shm, open_in_root(root, "/dev/shm", Missing::kMakeFolder));
  // Data loaders pass batches through here, so the usual 64 MiB would break them.
  std::int64_t bytes = request.container.memory_limit_bytes;
  if (struct sysinfo machine{}; bytes <= 0 && ::sysinfo(&machine) == 0) {
    bytes = static_cast<std::int64_t>(machine.totalram / 2 * machine.mem_unit);
  }
  SKIFF_TRY(mount_at("tmpfs", {{"mode", "1777"}, {"size", std::to_string(bytes)}}, shm.get(),
                     {.no_devices = true, .recursive = false}));
  // Accelerators; the rest of the machine's devices is not the pod's business.
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", error)) {
    const std::string name = entry.path().filename();
    const ContainerSpec& container = request.container;
    if (!(container.privileged ? foreign_device(entry) : accelerator(name, container))) continue;
    const Missing kind = entry.is_directory() ? Missing::kMakeFolder : Missing::kMakeFile;
    SKIFF_ASSIGN(const Fd target, open_in_root(root, "/dev/" + name, kind));
    SKIFF_TRY(bind_at(entry.path(), target.get(), {}));
  }
  return {};
}

// What tells of the machine's memory, keys, timers and firmware. Container engines cover the same.
Result<void> cover_the_machine(int root) {
  for (const char* path :
       {"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys",
        "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi", "/proc/timer_list",
        "/proc/timer_stats", "/sys/devices/virtual/powercap", "/sys/firmware"}) {
    const auto place = open_in_root(root, path, Missing::kIsError);
    struct stat info{};
    if (!place || ::fstat(place->get(), &info) != 0) continue;
    const bool folder = S_ISDIR(info.st_mode);
    SKIFF_TRY(folder ? mount_at("tmpfs", {{"mode", "0555"}, {"size", "4k"}}, place->get(),
                                {.read_only = true, .recursive = false})
                     : bind_at("/dev/null", place->get(), {.recursive = false}));
  }
  return {};
}

Result<void> mount_proc_and_sys(int root, bool own_network, bool privileged) {
  const MountFlags safe{.no_devices = true, .no_exec = true, .recursive = false};
  SKIFF_ASSIGN(const Fd proc, open_in_root(root, "/proc", Missing::kMakeFolder));
  SKIFF_TRY(mount_at("proc", {}, proc.get(), safe));
  // The kernel's settings belong to the machine.
  for (const char* path :
       {"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs"}) {
    if (privileged) break;
    const auto inside = open_in_root(root, path, Missing::kIsError);
    if (!inside) continue;
    const std::string source = fmt::format("/proc/self/fd/{}", inside->get());
    SKIFF_TRY(bind_at(source, inside->get(), {.read_only = true, .recursive = false}));
  }
  SKIFF_ASSIGN(const Fd sys, open_in_root(root, "/sys", Missing::kMakeFolder));
  const MountFlags flags{.read_only = !privileged, .no_devices = true, .recursive = false};
  // A new sysfs shows the links of the pod's own network namespace.
  SKIFF_TRY(own_network ? mount_at("sysfs", {}, sys.get(), flags)
                        : bind_at("/sys", sys.get(), flags));
  return privileged ? Result<void>() : cover_the_machine(root);
}

// Skiff's own folder may have been given by a path with links.
std::string real_path(const std::string& path) {
  char* real = ::realpath(path.c_str(), nullptr);
  const std::string out = real == nullptr ? path : real;
  std::free(real);
  return out;
}

Result<void> mount_empty(int place) {
  return mount_at("tmpfs", {{"mode", "0555"}, {"size", "4k"}}, place,
                  {.read_only = true, .recursive = false});
}

// What is mounted may be above a masked folder: a home folder with Skiff's data in it, say.
// `mounted` is the root of the mount itself, which no link leads away from.
Result<void> cover_masked(int mounted, const std::string& source,
                          const std::vector<std::string>& masked) {
  const std::string above = source.ends_with('/') ? source : source + "/";
  for (const std::string& folder : masked) {
    const std::string real = real_path(folder);
    if (!real.starts_with(above)) continue;
    const Fd place = open_below(mounted, real.substr(above.size()));
    if (place.valid()) {
      SKIFF_TRY(mount_empty(place.get()));
    } else if (errno != ENOENT) {
      return os_failure(real);
    }
  }
  return {};
}

// `inside`: a folder in the source, made where absent. What a pod has turned into links there leads
// no further than the source.
Result<void> bind_into(int root, const std::string& source, const std::string& target,
                       const MountFlags& flags, const std::string& inside = {},
                       const std::vector<std::string>& masked = {}) {
  SKIFF_ASSIGN(Fd from, open_resolved(source));
  if (!inside.empty()) {
    SKIFF_ASSIGN(from, open_in_root(from.get(), inside, Missing::kMakeFolder));
  }
  struct stat info{};
  if (::fstat(from.get(), &info) != 0) return os_failure(source);
  const Missing kind = S_ISDIR(info.st_mode) ? Missing::kMakeFolder : Missing::kMakeFile;
  SKIFF_ASSIGN(const Fd place, open_in_root(root, target, kind));
  SKIFF_ASSIGN(const Fd mounted, bind_fd(from, source, place.get(), flags));
  return cover_masked(mounted.get(), source, masked);
}

Result<void> mount_own_places(int root, const RootRequest& request) {
  const std::string pod = real_path(request.pod_folder);
  // An image brings its own, as everywhere.
  if (request.container.layers.empty()) {
    SKIFF_TRY(bind_into(root, pod + "/tmp", "/tmp",
                        {.read_only = request.container.read_only_root, .no_devices = true}));
  }
  for (const char* name : {"hostname", "hosts", "resolv.conf"}) {
    const std::string source = fmt::format("{}/etc/{}", pod, name);
    if (::access(source.c_str(), F_OK) != 0) continue;
    SKIFF_TRY(bind_into(root, source, fmt::format("/etc/{}", name), {}));
  }
  // An image has none of its own, and whom to ask for names is a matter of the machine.
  const std::string resolver = real_path("/etc/resolv.conf");
  if (!request.container.layers.empty() && request.sandbox.resolv_conf.empty() &&
      ::access(resolver.c_str(), F_OK) == 0) {
    SKIFF_TRY(bind_into(root, resolver, "/etc/resolv.conf", {.read_only = true}));
  }
  // In an image's files too, which may be a tree of the machine.
  for (const std::string& folder : request.sandbox.masked) {
    // Where the path goes through a link, its end is what must be covered.
    const auto place = open_in_root(root, real_path(folder), Missing::kIsError);
    if (place) SKIFF_TRY(mount_empty(place->get()));
  }
  if (request.container.rootfs.empty()) return {};
  return cover_masked(root, request.container.rootfs, request.sandbox.masked);
}

Result<void> mount_image_root(const RootRequest& request) {
  const std::string layer = fmt::format("{}.{}", request.container.name, request.container.attempt);
  const Fd place(::open("rootfs", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!place.valid()) return os_failure("rootfs");
  const ContainerSpec& container = request.container;
  if (container.layers.empty()) return overlay_at({container.rootfs}, layer, place.get());
  return overlay_at(container.layers, layer, place.get());
}

// In a user namespace no overlay lies on a folder that has other mounts below it, least of all on
// the root: each of its folders gets one of its own.
Result<void> mount_by_folder(const std::string& pod_folder) {
  SKIFF_TRY(make_folders("layers/0/upper"));
  ::chmod("layers/0/upper", 0755);
  const Fd place(::open("rootfs", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!place.valid()) return os_failure("rootfs");
  SKIFF_TRY(bind_at("layers/0/upper", place.get(), {.recursive = false}));
  const Fd root(::open("rootfs", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return os_failure("rootfs");
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/", error)) {
    const std::string path = entry.path(), name = entry.path().filename();
    if (entry.is_symlink(error)) {
      const std::string target = std::filesystem::read_symlink(path, error);
      (void)::symlinkat(target.c_str(), root.get(), name.c_str());
      continue;
    }
    // What the machine's services keep in /run is not the pod's, which gets its secrets below it.
    const bool own = path == "/run" || hidden({.path = path, .type = ""}, pod_folder);
    const Missing kind = entry.is_directory(error) ? Missing::kMakeFolder : Missing::kMakeFile;
    SKIFF_ASSIGN(const Fd target, open_in_root(root.get(), path, kind));
    if (own) continue;
    if (kind == Missing::kMakeFolder && overlay_at({path}, "0-" + name, target.get())) continue;
    // Likewise: it stops no pod.
    (void)bind_at(path, target.get(), {.read_only = true});
  }
  return {};
}

}  // namespace

Result<void> mount_machine_root(const std::string& pod_folder) {
  if (::chdir(pod_folder.c_str()) != 0) return os_failure(pod_folder);
  SKIFF_TRY(make_folders("rootfs"));
  if (!own_user_map().whole) return mount_by_folder(pod_folder);
  Fd place(::open("rootfs", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!place.valid()) return os_failure("rootfs");
  if (!overlay_at({"/"}, "0", place.get())) {
    // The pod's folder cannot hold an upper layer (it is on an overlay itself, in a container
    // engine say): writes then go to memory, and where that fails too there are none.
    (void)::mount("tmpfs", "layers", "tmpfs", MS_NODEV, "mode=0700");
    if (!overlay_at({"/"}, "0", place.get())) {
      return bind_at("/", place.get(), {.read_only = true});
    }
  }
  place.reset(::open("rootfs", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!place.valid()) return os_failure("rootfs");
  return mount_nested(pod_folder, place.get());
}

Result<void> mount_memory(const std::vector<Mount>& mounts) {
  for (const Mount& m : mounts) {
    if (!m.memory_bytes) continue;
    const Fd place(::open(m.source.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!place.valid()) return os_failure(m.source);
    struct stat own{};
    struct stat parent{};
    if (::fstat(place.get(), &own) != 0 || ::stat((m.source + "/..").c_str(), &parent) != 0) {
      return os_failure(m.source);
    }
    if (own.st_dev != parent.st_dev) continue;  // another container was first
    // As the folder that it covers, which was made for the volume's group.
    MountOptions options{{"mode", fmt::format("{:o}", own.st_mode & 07777)},
                         {"gid", std::to_string(own.st_gid)}};
    if (*m.memory_bytes > 0) options.emplace_back("size", std::to_string(*m.memory_bytes));
    SKIFF_TRY(mount_at("tmpfs", options, place.get(), {.no_devices = true, .recursive = false}));
  }
  return {};
}

Result<void> enter_root(const RootRequest& request) {
  if (::chdir(request.pod_folder.c_str()) != 0) return os_failure(request.pod_folder);
  const bool image = !request.container.rootfs.empty() || !request.container.layers.empty();
  if (image) SKIFF_TRY(mount_image_root(request));
  const Fd root(::open("rootfs", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return os_failure("rootfs");
  SKIFF_ASSIGN(const RootMounts own, RootMounts::look("rootfs"));
  SKIFF_TRY(mount_proc_and_sys(root.get(), request.own_network, request.container.privileged));
  SKIFF_TRY(mount_dev(root.get(), request));
  SKIFF_TRY(mount_own_places(root.get(), request));
  for (const Mount& m : request.container.mounts) {
    const auto mounted = bind_into(root.get(), m.source, m.target, {.read_only = m.read_only},
                                   m.inside, request.sandbox.masked);
    if (!mounted) {
      return fail(Code::kInternal, fmt::format("cannot mount {} at {}: {}", m.source, m.target,
                                               mounted.error().message));
    }
  }
  // Last: it may be inside of a volume.
  SKIFF_TRY(bind_into(root.get(), real_path(request.termination_file),
                      request.container.termination_path, {}));
  // Images name working folders that their layers leave to the engine. Where it cannot be made,
  // entering it says why.
  const std::string& working = request.container.working_dir;
  if (!request.container.layers.empty() && !working.empty()) {
    (void)open_in_root(root.get(), working, Missing::kMakeFolder);
  }
  if (request.container.read_only_root) SKIFF_TRY(own.make_read_only());
  if (::fchdir(root.get()) != 0) return os_failure("rootfs");
  // The old root ends up on top of the new one, from where it is taken away.
  if (::syscall(SYS_pivot_root, ".", ".") != 0) return os_failure("cannot change the root");
  if (::umount2(".", MNT_DETACH) != 0) return os_failure("cannot leave the old root");
  if (::chdir("/") != 0) return os_failure("/");
  return {};
}

}  // namespace skiff::node
