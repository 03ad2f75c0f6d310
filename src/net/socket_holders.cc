#include "net/socket_holders.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace skiff::net {
namespace {

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};
using Folder = std::unique_ptr<DIR, CloseFolder>;

Folder open_folder(int at, const char* path) {
  const int fd = ::openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return {};
  Folder out(::fdopendir(fd));
  if (!out) ::close(fd);
  return out;
}

std::optional<int> as_number(const char* name) {
  int out = 0;
  const std::string_view text(name);
  const auto read = std::from_chars(text.data(), text.data() + text.size(), out);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) return {};
  return out;
}

class Search {
 public:
  Search(int proc, std::uint64_t inode, std::size_t most)
      : proc_(proc), wanted_(fmt::format("socket:[{}]", inode)), left_(most) {}

  bool exhausted() const { return left_ == 0; }

  // A process that we may not look at holds nothing that we could find.
  bool holds(pid_t process) {
    const Folder folder = open_folder(proc_, fmt::format("{}/fd", process).c_str());
    if (!folder) return false;
    char link[64];
    while (const dirent* entry = ::readdir(folder.get())) {
      if (!as_number(entry->d_name)) continue;
      if (left_ == 0) return false;
      --left_;
      const ssize_t size = ::readlinkat(::dirfd(folder.get()), entry->d_name, link, sizeof link);
      if (size > 0 && std::string_view(link, static_cast<std::size_t>(size)) == wanted_) {
        return true;
      }
    }
    return false;
  }

 private:
  const int proc_;
  const std::string wanted_;
  std::size_t left_;
};

}  // namespace

bool only_held_by(std::uint64_t inode, const std::function<bool(pid_t)>& good, std::size_t most) {
  const Folder proc = open_folder(AT_FDCWD, "/proc");
  if (!proc) return false;
  Search search(::dirfd(proc.get()), inode, most);
  const pid_t self = ::getpid();
  bool held = search.holds(self);
  if (held && !good(self)) return false;
  while (const dirent* entry = ::readdir(proc.get())) {
    const auto process = as_number(entry->d_name);
    if (!process || *process == self || !search.holds(*process)) continue;
    if (!good(*process)) return false;
    held = true;
  }
  return held && !search.exhausted();
}

}  // namespace skiff::net
