#include "node/shim/log_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "node/log_files.h"

namespace skiff::node {
namespace {

int open_log(const std::string& path, int flags) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | flags, 0640);
}

}  // namespace

Result<LogFile> LogFile::open(const std::string& path, std::int64_t bytes_max) {
  LogFile out;
  out.path_ = path;
  out.bytes_max_ = bytes_max;
  out.file_.reset(open_log(path, 0));
  if (!out.file_.valid()) return os_failure(path);
  if (const auto full = full_logs(path); !full.empty()) out.last_ = full.back().number;
  return out;
}

void LogFile::rotate_where_full() {
  struct stat info{};
  if (!file_.valid() || ::fstat(file_.get(), &info) != 0 || info.st_size < bytes_max_) return;
  const auto name = [&](int number) { return fmt::format("{}.{}", path_, number); };
  if (::rename(path_.c_str(), name(last_ + 1).c_str()) != 0) return;
  Fd fresh(open_log(path_, O_EXCL));
  if (!fresh.valid()) {
    ::rename(name(last_ + 1).c_str(), path_.c_str());
    return;
  }
  file_ = std::move(fresh);
  ++last_;
  if (last_ >= limits::kLogFiles) ::unlink(name(last_ - limits::kLogFiles + 1).c_str());
}

}  // namespace skiff::node
