#include "node/shim/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/strings.h"

namespace skiff::node {

std::unexpected<Error> os_failure(std::string_view what) {
  const int number = errno;
  const Code code = number == ENOENT ? Code::kNotFound : Code::kInternal;
  return fail(code, fmt::format("{}: {}", what, std::strerror(number)));
}

Result<std::string> read_file(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return os_failure(path);
  std::string text;
  char piece[8192];
  while (true) {
    const ssize_t n = ::read(file.get(), piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return os_failure(path);
    if (n == 0) return text;
    text.append(piece, static_cast<std::size_t>(n));
  }
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

Result<void> write_plain(const std::string& path, std::string_view text) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file.valid() || !write_all(file.get(), text)) return os_failure(path);
  return {};
}

namespace {

std::string temporary_name(const std::string& folder, const std::string& name) {
  return folder + "/." + name + ".tmp";
}

Result<void> put_in_place(const std::string& folder, const std::string& name, std::string_view text,
                          bool synced) {
  const std::string path = folder + "/" + name;
  const std::string temporary = temporary_name(folder, name);
  {
    // What is there may be the room that was kept for this: it is written over, then cut.
    const Fd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    if (!file.valid() || !write_all(file.get(), text)) return os_failure(temporary);
    if (::ftruncate(file.get(), static_cast<off_t>(text.size())) != 0) return os_failure(temporary);
    if (synced && ::fdatasync(file.get()) != 0) return os_failure(temporary);
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) return os_failure(path);
  if (!synced) return {};
  const Fd parent(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent.valid() || ::fsync(parent.get()) != 0) return os_failure(folder);
  return {};
}

}  // namespace

Result<void> write_atomically(const std::string& folder, const std::string& name,
                              std::string_view text) {
  return put_in_place(folder, name, text, true);
}

Result<void> replace_file(const std::string& folder, const std::string& name,
                          std::string_view text) {
  return put_in_place(folder, name, text, false);
}

void keep_room(const std::string& folder, const std::string& name, std::int64_t bytes) {
  const Fd file(::open(temporary_name(folder, name).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (file.valid()) (void)::fallocate(file.get(), 0, 0, bytes);
}

Result<void> make_folders(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return fail(Code::kInternal, fmt::format("{}: {}", path, error.message()));
  return {};
}

void remove_tree(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

std::string boot_id() {
  const auto text = read_file("/proc/sys/kernel/random/boot_id");
  return text ? std::string(trim(*text)) : std::string();
}

}  // namespace skiff::node
