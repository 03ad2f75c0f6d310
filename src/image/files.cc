#include "image/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace skiff::image {

void Fd::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

std::unexpected<Error> os_failure(std::string_view what) {
  const int number = errno;
  const Code code = number == ENOENT ? Code::kNotFound : Code::kInternal;
  return fail(code, fmt::format("{}: {}", what, std::strerror(number)));
}

Result<std::string> read_file(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return os_failure(path);
  std::string text;
  char piece[16 * 1024];
  while (true) {
    const ssize_t n = ::read(file.get(), piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return os_failure(path);
    if (n == 0) return text;
    text.append(piece, static_cast<std::size_t>(n));
  }
}

Result<void> write_all(int fd, std::string_view bytes, std::string_view name) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return os_failure(name);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Result<void> make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return fail(Code::kInternal, fmt::format("{}: {}", path, error.message()));
  return {};
}

Result<void> replace_file(const std::string& path, std::string_view text) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = path.substr(0, slash);
  const std::string temporary =
      fmt::format("{}/.{}.{}", folder, path.substr(slash + 1), ::gettid());
  {
    const Fd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!file.valid()) return os_failure(temporary);
    SKIFF_TRY(write_all(file.get(), text, temporary));
    if (::fdatasync(file.get()) != 0) return os_failure(temporary);
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) return os_failure(path);
  const Fd parent(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent.valid() || ::fsync(parent.get()) != 0) return os_failure(folder);
  return {};
}

}  // namespace skiff::image
