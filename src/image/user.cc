#include "image/user.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <optional>

#include "base/strings.h"
#include "image/files.h"

namespace skiff::image {
namespace {

constexpr off_t kFileMax = 1024 * 1024;

std::optional<int> user_number(std::string_view text) {
  int value = 0;
  const auto end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (text.empty() || read.ec != std::errc{} || read.ptr != end || value < 0) return std::nullopt;
  return value;
}

// The line whose name, or number, is this one.
std::optional<std::vector<std::string_view>> entry(std::string_view file, std::string_view wanted,
                                                   std::size_t fields) {
  for (const std::string_view line : split(file, '\n')) {
    auto parts = split(line, ':');
    if (parts.size() < fields || line.starts_with('#')) continue;
    if (parts[0] == wanted) return parts;
  }
  if (!user_number(wanted)) return std::nullopt;
  for (const std::string_view line : split(file, '\n')) {
    auto parts = split(line, ':');
    if (parts.size() >= fields && parts[2] == wanted) return parts;
  }
  return std::nullopt;
}

int open_in(int root, const std::string& path, std::uint64_t flags) {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how));
}

// Whether this layer hides what the ones below have at the path.
bool hides(int layer, const std::string& path) {
  const Fd there(open_in(layer, path, O_PATH | O_NOFOLLOW));
  struct stat info{};
  if (!there.valid() || ::fstat(there.get(), &info) != 0) return false;
  if (!S_ISDIR(info.st_mode)) return true;
  char value = 0;
  const std::string real = fmt::format("/proc/self/fd/{}", there.get());
  for (const char* key : {"trusted.overlay.opaque", "user.overlay.opaque"}) {
    if (::getxattr(real.c_str(), key, &value, 1) == 1 && value == 'y') return true;
  }
  return false;
}

}  // namespace

Result<User> find_user(const Accounts& accounts, std::string_view wanted) {
  const std::size_t colon = wanted.find(':');
  std::string_view name = wanted.substr(0, colon);
  const std::string_view group = colon == std::string_view::npos ? "" : wanted.substr(colon + 1);
  if (name.empty()) name = "0";
  User out;
  if (const auto line = entry(accounts.passwd, name, 6)) {
    const auto uid = user_number((*line)[2]), gid = user_number((*line)[3]);
    if (!uid || !gid) {
      return fail(Code::kInvalid, fmt::format("user {}: its line in /etc/passwd is broken", name));
    }
    out = {.uid = *uid, .gid = *gid, .home = std::string((*line)[5])};
    if (out.home.empty()) out.home = "/";
  } else if (const auto uid = user_number(name)) {
    out.uid = *uid;
    if (*uid == 0) out.home = "/root";
  } else {
    return fail(Code::kNotFound, fmt::format("unable to find user {}: no matching entries in "
                                             "passwd file",
                                             name));
  }
  if (group.empty()) return out;
  const auto line = entry(accounts.group, group, 3);
  const auto gid = line ? user_number((*line)[2]) : user_number(group);
  if (!gid) {
    return fail(Code::kNotFound, fmt::format("unable to find group {}: no matching entries in "
                                             "group file",
                                             group));
  }
  out.gid = *gid;
  return out;
}

std::string read_from_layers(const std::vector<std::string>& layers, const std::string& path) {
  for (const std::string& layer : layers) {
    const Fd root(::open(layer.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!root.valid()) continue;
    const Fd file(open_in(root.get(), path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
    struct stat info{};
    if (file.valid() && ::fstat(file.get(), &info) == 0) {
      if (!S_ISREG(info.st_mode) || info.st_size > kFileMax) return "";
      std::string text(static_cast<std::size_t>(info.st_size), '\0');
      const ssize_t n = ::pread(file.get(), text.data(), text.size(), 0);
      text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
      return text;
    }
    for (std::filesystem::path at = path; !at.empty(); at = at.parent_path()) {
      if (hides(root.get(), at)) return "";
    }
  }
  return "";
}

Accounts read_accounts(const std::vector<std::string>& layers) {
  return {.passwd = read_from_layers(layers, "etc/passwd"),
          .group = read_from_layers(layers, "etc/group")};
}

}  // namespace skiff::image
