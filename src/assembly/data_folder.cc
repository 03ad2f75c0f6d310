#include "assembly/data_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace skiff::assembly {
namespace {

using namespace std::chrono_literals;

// A Skiff that was just killed may still be ending its threads; its lock goes with the last one.
bool take_lock(int fd) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

// The lock is the first file that a Skiff makes; behind `up -d` its log is there even before.
bool is_data_folder(const std::filesystem::path& path) {
  if (std::filesystem::exists(path / "lock")) return true;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    // Images may be loaded before the first start.
    const auto name = entry.path().filename();
    if (name != "skiff.log" && name != "images") return false;
  }
  return true;
}

}  // namespace

Result<DataFolder> DataFolder::open(const std::string& path) {
  std::error_code error;
  const std::filesystem::path full = std::filesystem::absolute(path, error).lexically_normal();
  const bool made = std::filesystem::create_directories(full, error);
  if (error)
    return fail(Code::kInternal,
                fmt::format("cannot make the data folder {}: {}", path, error.message()));
  const std::filesystem::path real = std::filesystem::canonical(full, error);
  if (!made && !is_data_folder(real)) {
    return fail(
        Code::kConflict,
        fmt::format("{} is not empty and no data folder of Skiff's; choose another with --data",
                    path));
  }
  chmod(real.c_str(), 0700);
  const std::string lock_path = real.string() + "/lock";
  const int fd = ::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) {
    return fail(Code::kInternal,
                fmt::format("cannot write in {}: {}; choose another folder with --data", path,
                            std::strerror(errno)));
  }
  if (!take_lock(fd)) {
    char pid[32] = {};
    const ssize_t n = read(fd, pid, sizeof pid - 1);
    close(fd);
    return fail(Code::kConflict,
                fmt::format("Skiff already runs with the data folder {} (pid {}); stop it with: "
                            "skiff down --data {}",
                            real.string(), n > 0 ? std::string(pid) : "unknown", real.string()));
  }
  const std::string pid = std::to_string(getpid());
  if (ftruncate(fd, 0) != 0 || pwrite(fd, pid.data(), pid.size(), 0) < 0) {
    close(fd);
    return fail(Code::kInternal,
                fmt::format("cannot write {}: {}", lock_path, std::strerror(errno)));
  }
  return DataFolder(real.string(), fd);
}

DataFolder::DataFolder(DataFolder&& other) noexcept
    : path_(std::move(other.path_)), lock_(other.lock_) {
  other.lock_ = -1;
}

DataFolder::~DataFolder() {
  if (lock_ >= 0) close(lock_);
}

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return fail(Code::kNotFound, fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Result<void> write_file(const std::string& path, const std::string& text, int mode) {
  const std::string temporary = path + ".new";
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
  const auto failed = [&](const char* what) {
    const std::string why = std::strerror(errno);
    if (fd >= 0) close(fd);
    return fail(Code::kInternal, fmt::format("cannot {} {}: {}", what, path, why));
  };
  if (fd < 0) return failed("create");
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = write(fd, text.data() + done, text.size() - done);
    if (n < 0) return failed("write");
    done += static_cast<std::size_t>(n);
  }
  if (fsync(fd) != 0) return failed("sync");
  close(fd);
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    return fail(Code::kInternal,
                fmt::format("cannot rename to {}: {}", path, std::strerror(errno)));
  }
  return {};
}

}  // namespace skiff::assembly
