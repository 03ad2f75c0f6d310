#include "node/progress/progress_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.h"

namespace skiff::node {

ProgressFiles::Piece ProgressFiles::read_on(const std::string& path, Place& place) {
  Piece out;
  if (path.empty()) return out;
  // Most looks find nothing new: that costs one call.
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return out;
  if (info.st_ino == place.inode && info.st_size == place.offset) return out;
  // Between the two calls the program may have put something else there: a link, a pipe.
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return out;
  // A new file, or one that was emptied.
  if (info.st_ino != place.inode || info.st_size < place.offset) {
    out.follows = place.inode == 0;
    place = {.inode = info.st_ino};
  }
  if (info.st_size - place.offset > kLookBytes) {
    place.offset = info.st_size - kLookBytes;
    out.follows = false;
    out.inside = true;
  }
  out.bytes.resize(static_cast<std::size_t>(info.st_size - place.offset));
  std::size_t have = 0;
  while (have < out.bytes.size()) {
    const ssize_t n = ::pread(fd.get(), out.bytes.data() + have, out.bytes.size() - have,
                              place.offset + static_cast<std::int64_t>(have));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    have += static_cast<std::size_t>(n);
  }
  out.bytes.resize(have);
  place.offset += static_cast<std::int64_t>(have);
  return out;
}

void ProgressFiles::look(const std::string& log, const std::string& file, Time now) {
  const Piece own = read_on(file, file_);
  if (!own.follows) scan_.skip_file(own.inside);
  scan_.file_bytes(own.bytes, now);
  const Piece said = read_on(log, log_);
  if (!said.follows) scan_.skip_log(said.inside);
  scan_.log_bytes(said.bytes);
}

}  // namespace skiff::node
