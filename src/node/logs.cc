#include "node/logs.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/limits.h"

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

std::int64_t size_of(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 ? info.st_size : 0;
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

// Where the last `lines` lines of the file begin. Reads backwards, a block at a time.
std::int64_t tail_offset(int fd, std::int64_t size, std::int64_t lines) {
  if (lines <= 0) return size;
  std::int64_t end = size;  // always a boundary between entries
  std::int64_t count = 0;
  bool last = true;
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
      if (entry.full || last) ++count;
      last = false;
      if (count > lines) return from + static_cast<std::int64_t>(stop);
      stop = start;
    }
    const std::int64_t next = from + static_cast<std::int64_t>(skipped);
    if (next >= end) return end;  // no boundary in a whole block: not a log file of ours
    end = next;
  }
  return 0;
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

  void wait(const void* owner, const std::string& path, std::int64_t seen,
            std::function<bool()> ended, std::function<void()> wake) {
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
    std::int64_t seen;
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
          const bool due = closed_ || size_of(w.path) != w.seen || (w.ended && w.ended());
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

  ~LogStream() override {
    waiters_->forget(this);
    if (fd_ >= 0) ::close(fd_);
  }

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
    waiters_->wait(this, request_.path, size_, request_.ended, std::move(wake));
    return true;
  }

 private:
  // False: the file has no further whole entry.
  bool read_some(std::string& out) {
    if (!open_file()) return false;
    size_ = size_of(request_.path);
    const std::int64_t bytes = std::min(kBlockBytes, size_ - offset_);
    if (bytes <= 0) return false;
    const std::string block = read_block(fd_, offset_, bytes);
    const std::size_t end = block.rfind('\n');
    if (end == block.npos) return false;
    offset_ += static_cast<std::int64_t>(end) + 1;
    std::string_view rest = std::string_view(block).substr(0, end + 1);
    while (!rest.empty() && left_ > 0) {
      const std::size_t newline = rest.find('\n');
      append(parse_entry(rest.substr(0, newline)), out);
      rest.remove_prefix(newline + 1);
    }
    return true;
  }

  bool open_file() {
    if (fd_ >= 0) return true;
    fd_ = ::open(request_.path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0) return false;
    if (request_.tail_lines) {
      offset_ = tail_offset(fd_, size_of(request_.path), *request_.tail_lines);
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
  int fd_ = -1;
  std::int64_t offset_ = 0;
  std::int64_t size_ = 0;
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
