#include "node/streams/logs.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "node/log_files.h"

namespace skiff::node {
namespace {

// More than the longest entry, so that every block has a boundary between entries in it.
constexpr std::int64_t kBlockBytes = 128 * 1024;
static_assert(kBlockBytes > 4 * static_cast<std::int64_t>(limits::kLogLineBytes));
// How often `ended` is asked where nothing is written.
constexpr int kEndedPollMs = 100;

// One line of a log file, without its newline. Views into the file's bytes.
struct Entry {
  std::string_view stamp = {};
  std::string_view stream = {};
  bool full = true;
  std::string_view text = {};
};

// A line of another form is shown as it is: somebody may have written into the file.
Entry parse_entry(std::string_view line) {
  const std::size_t first = line.find(' ');
  const std::size_t second = first == line.npos ? first : line.find(' ', first + 1);
  if (second == line.npos || second + 3 > line.size() || line[second + 2] != ' ') {
    return {.text = line};
  }
  return {.stamp = line.substr(0, first),
          .stream = line.substr(first + 1, second - first - 1),
          .full = line[second + 1] != 'P',
          .text = line.substr(second + 3)};
}

// How far the file that is being written has come. Another inode: the one before it is full.
struct Growth {
  ino_t file = 0;  // 0: there is none
  std::int64_t bytes = 0;
  bool operator==(const Growth&) const = default;
};

Growth growth_of(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return {};
  return {.file = info.st_ino, .bytes = info.st_size};
}

Growth growth_of(int fd) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) return {};
  return {.file = info.st_ino, .bytes = info.st_size};
}

std::string read_block(int fd, std::int64_t from, std::int64_t bytes) {
  std::string block(static_cast<std::size_t>(bytes), '\0');
  std::size_t have = 0;
  while (have < block.size()) {
    const ssize_t n = ::pread(fd, block.data() + have, block.size() - have,
                              from + static_cast<std::int64_t>(have));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    have += static_cast<std::size_t>(n);
  }
  block.resize(have);
  return block;
}

// Lines that are counted from the end of a log backwards, through one file after another.
struct Tail {
  std::int64_t lines = 0;
  std::int64_t count = 0;
  bool last = true;  // the next entry is the very last one
};

// Where the wanted lines begin in this file; nothing: all of it and more. Reads backwards, a block
// at a time.
std::optional<std::int64_t> tail_offset(int fd, std::int64_t size, Tail& tail) {
  if (tail.lines <= 0) return size;
  std::int64_t end = size;  // always a boundary between entries
  while (end > 0) {
    const std::int64_t from = std::max<std::int64_t>(0, end - kBlockBytes);
    const std::string block = read_block(fd, from, end - from);
    const std::size_t skipped = from == 0 ? 0 : block.find('\n') + 1;
    std::size_t stop = block.size();
    while (stop > skipped) {
      const std::size_t newline = stop < 2 ? block.npos : block.rfind('\n', stop - 2);
      const std::size_t start = newline == block.npos ? 0 : std::max(skipped, newline + 1);
      const Entry entry = parse_entry(std::string_view(block).substr(start, stop - 1 - start));
      // The pieces of a line come before its end; a line still being written counts too.
      if (entry.full || tail.last) ++tail.count;
      tail.last = false;
      if (tail.count > tail.lines) return from + static_cast<std::int64_t>(stop);
      stop = start;
    }
    const std::int64_t next = from + static_cast<std::int64_t>(skipped);
    if (next >= end) return end;  // no boundary in a whole block: not a log file of ours
    end = next;
  }
  return std::nullopt;
}

class File {
 public:
  explicit File(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

// The files of a log that come after `after` (0: all), oldest first; the one that is being written
// is the last. A file that was read stays open and keeps its inode, so it is known again by that;
// one that is no longer there was too old to be kept, and all that is there comes after it.
std::vector<File> later_files(const std::string& path, ino_t after) {
  while (true) {
    const std::vector<FullLog> full = full_logs(path);
    std::vector<File> out;
    for (const FullLog& log : full) {
      File file(log.path);
      if (file.fd() < 0) continue;
      if (after != 0 && growth_of(file.fd()).file == after) {
        out.clear();
      } else {
        out.push_back(std::move(file));
      }
    }
    File current(path);
    const bool same = current.fd() >= 0 && growth_of(current.fd()).file == after;
    if (current.fd() >= 0 && !same) out.push_back(std::move(current));
    // Set aside while this looked: what was the current one may be missing between the two.
    const std::vector<FullLog> now = full_logs(path);
    const int newest = full.empty() ? 0 : full.back().number;
    if ((now.empty() ? 0 : now.back().number) == newest) return out;
  }
}

}  // namespace

// Streams that wait for their file to grow, and the thread that wakes them.
class LogReader::Waiters {
 public:
  Waiters()
      : inotify_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)),
        kick_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
        thread_([this] { run(); }) {}

  ~Waiters() {
    ::close(inotify_);
    ::close(kick_);
  }

  void wait(const void* owner, const std::string& path, Growth seen, std::function<bool()> ended,
            std::function<void()> wake) {
    {
      const std::lock_guard lock(mutex_);
      const int watch = ::inotify_add_watch(inotify_, path.c_str(), IN_MODIFY | IN_ONESHOT);
      (void)watch;  // without it (too many watches) the poll of `ended` looks at the size as well
      waiting_.push_back({owner, path, seen, std::move(ended), std::move(wake)});
    }
    kick();
  }

  // A reader that went away must not be woken, nor be remembered until its container ends.
  void forget(const void* owner) {
    const std::lock_guard lock(mutex_);
    std::erase_if(waiting_, [owner](const Waiter& w) { return w.owner == owner; });
  }

  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    kick();
    thread_.join();
  }

  bool closed() {
    const std::lock_guard lock(mutex_);
    return closed_;
  }

 private:
  struct Waiter {
    const void* owner;
    std::string path;
    Growth seen;
    std::function<bool()> ended;
    std::function<void()> wake;
  };

  void kick() const {
    const std::uint64_t one = 1;
    (void)!::write(kick_, &one, sizeof one);
  }

  void run() {
    bool going = true;
    while (going) {
      std::vector<std::function<void()>> wakes;
      int timeout = -1;
      {
        const std::lock_guard lock(mutex_);
        going = !closed_;
        std::erase_if(waiting_, [&](Waiter& w) {
          const bool due = closed_ || growth_of(w.path) != w.seen || (w.ended && w.ended());
          if (due) wakes.push_back(std::move(w.wake));
          return due;
        });
        if (!waiting_.empty()) timeout = kEndedPollMs;
      }
      for (auto& wake : wakes) wake();
      if (!going) return;
      pollfd fds[] = {{inotify_, POLLIN, 0}, {kick_, POLLIN, 0}};
      (void)::poll(fds, 2, timeout);
      char ignored[4096];
      while (::read(inotify_, ignored, sizeof ignored) > 0) {
      }
      while (::read(kick_, ignored, sizeof ignored) > 0) {
      }
    }
  }

  const int inotify_;
  const int kick_;
  std::mutex mutex_;
  bool closed_ = false;
  std::vector<Waiter> waiting_;
  std::thread thread_;  // last: it uses all of the above
};

namespace {

class LogStream : public http::Stream {
 public:
  LogStream(std::shared_ptr<LogReader::Waiters> waiters, LogRequest request)
      : waiters_(std::move(waiters)), request_(std::move(request)) {
    if (request_.since) {
      since_ = rfc3339_micro(*request_.since);
      since_.pop_back();  // the Z: stamps have more decimals
    }
    if (request_.limit_bytes) left_ = *request_.limit_bytes;
  }

  ~LogStream() override { waiters_->forget(this); }

  bool pull(std::string& out, std::function<void()> wake) override {
    // Asked before reading: what was written before the end is then surely seen.
    const bool over =
        !request_.follow || waiters_->closed() || (request_.ended && request_.ended());
    const std::size_t before = out.size();
    bool more = true;
    while (out.size() == before && more && left_ > 0) more = read_some(out);
    if (left_ <= 0) return false;
    if (out.size() != before) return true;
    if (over) return false;
    waiters_->wait(this, request_.path, seen_, request_.ended, std::move(wake));
    return true;
  }

 private:
  // False: the log has no further whole entry.
  bool read_some(std::string& out) {
    if (!open_files()) return false;
    // Looked at before the file is read: a file that is full by now is not written to any more.
    seen_ = growth_of(request_.path);
    const Growth own = growth_of(files_.front().fd());
    const std::int64_t bytes = std::min(kBlockBytes, own.bytes - offset_);
    const std::string block =
        bytes <= 0 ? std::string() : read_block(files_.front().fd(), offset_, bytes);
    const std::size_t end = block.rfind('\n');
    if (end == block.npos) return next_file(own.file);
    offset_ += static_cast<std::int64_t>(end) + 1;
    std::string_view rest = std::string_view(block).substr(0, end + 1);
    while (!rest.empty() && left_ > 0) {
      const std::size_t newline = rest.find('\n');
      append(parse_entry(rest.substr(0, newline)), out);
      rest.remove_prefix(newline + 1);
    }
    return true;
  }

  // The first file has no more: false where it is the one that is being written.
  bool next_file(ino_t own) {
    if (files_.size() == 1) {
      if (seen_.file == 0 || seen_.file == own) return false;
      for (File& file : later_files(request_.path, own)) files_.push_back(std::move(file));
      if (files_.size() == 1) return false;
    }
    files_.pop_front();
    offset_ = 0;
    return true;
  }

  bool open_files() {
    if (!files_.empty()) return true;
    for (File& file : later_files(request_.path, 0)) files_.push_back(std::move(file));
    if (files_.empty()) return false;
    if (!request_.tail_lines) return true;
    Tail tail{.lines = *request_.tail_lines};
    for (auto file = files_.rbegin(); file != files_.rend(); ++file) {
      const auto offset = tail_offset(file->fd(), growth_of(file->fd()).bytes, tail);
      if (!offset) continue;
      offset_ = *offset;
      files_.erase(files_.begin(), file.base() - 1);
      break;
    }
    return true;
  }

  void append(const Entry& entry, std::string& out) {
    if (!since_.empty() && entry.stamp.substr(0, since_.size()) < since_) return;
    const std::size_t before = out.size();
    bool& inside = entry.stream == "stderr" ? inside_stderr_ : inside_stdout_;
    if (request_.timestamps && !inside) out.append(entry.stamp).append(" ");
    inside = !entry.full;
    out.append(entry.text);
    if (entry.full) out.push_back('\n');
    const auto added = static_cast<std::int64_t>(out.size() - before);
    if (added > left_) out.resize(before + static_cast<std::size_t>(left_));
    left_ -= std::min(added, left_);
  }

  const std::shared_ptr<LogReader::Waiters> waiters_;
  const LogRequest request_;
  std::string since_ = {};
  std::int64_t left_ = INT64_MAX;
  std::deque<File> files_ = {};  // yet to be read, oldest first
  std::int64_t offset_ = 0;      // in the first of them
  Growth seen_ = {};
  bool inside_stdout_ = false;  // the last piece did not end its line
  bool inside_stderr_ = false;
};

}  // namespace

LogReader::LogReader() : waiters_(std::make_shared<Waiters>()) {}

LogReader::~LogReader() { waiters_->close(); }

std::unique_ptr<http::Stream> LogReader::open(LogRequest request) {
  return std::make_unique<LogStream>(waiters_, std::move(request));
}

}  // namespace skiff::node
