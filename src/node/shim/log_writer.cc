#include "node/shim/log_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <vector>

#include "base/limits.h"

namespace skiff::node {
namespace {

void append_entry(std::string_view stamp, std::string_view stream, char tag, std::string_view text,
                  std::string& out) {
  out.append(stamp).append(" ").append(stream).append(" ");
  out.push_back(tag);
  out.push_back(' ');
  out.append(text).push_back('\n');
}

}  // namespace

void append_log_lines(std::string_view stamp, std::string_view stream, std::string_view data,
                      std::string& rest, std::string& out) {
  while (!data.empty()) {
    const std::size_t room = limits::kLogLineBytes - rest.size();
    const std::size_t end = data.find('\n');
    // A newline exactly at the limit still belongs to the piece: no empty entry follows it.
    if (end != std::string_view::npos && end <= room) {
      rest.append(data.substr(0, end));
      append_entry(stamp, stream, 'F', rest, out);
      rest.clear();
      data.remove_prefix(end + 1);
    } else if (data.size() > room) {
      rest.append(data.substr(0, room));
      append_entry(stamp, stream, 'P', rest, out);
      rest.clear();
      data.remove_prefix(room);
    } else {
      rest.append(data);
      return;
    }
  }
}

void append_bars(std::string_view stamp, std::string_view stream, std::string& rest,
                 std::string& out) {
  if (rest.size() < 2) return;
  const std::size_t end = rest.rfind('\r', rest.size() - 2);
  if (end == std::string::npos) return;
  append_entry(stamp, stream, 'P', std::string_view(rest).substr(0, end + 1), out);
  rest.erase(0, end + 1);
}

std::string log_stamp() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  ::gmtime_r(&now.tv_sec, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     now.tv_nsec);
}

void LogPipe::copy_to(Fd listener) {
  if (!pipe_.valid()) return;
  // Those that went away while nothing was said.
  std::erase_if(listeners_, [](const Fd& old) {
    pollfd look{.fd = old.get(), .events = 0, .revents = 0};
    return ::poll(&look, 1, 0) == 1 && (look.revents & POLLERR) != 0;
  });
  constexpr int kListenerBytes = 1024 * 1024;
  ::fcntl(listener.get(), F_SETPIPE_SZ, kListenerBytes);
  ::fcntl(listener.get(), F_SETFL, O_NONBLOCK);
  listeners_.push_back(std::move(listener));
}

bool LogPipe::drain(int log_fd, std::size_t bytes_max) {
  char piece[32 * 1024];
  for (std::size_t done = 0; pipe_.valid() && done < bytes_max;) {
    const ssize_t n = ::read(pipe_.get(), piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return true;
    if (n <= 0) {
      finish(log_fd);
      return false;
    }
    done += static_cast<std::size_t>(n);
    std::erase_if(listeners_, [&](const Fd& listener) {
      return ::write(listener.get(), piece, static_cast<std::size_t>(n)) != n;
    });
    std::string out;
    const std::string stamp = log_stamp();
    append_log_lines(stamp, stream_, {piece, static_cast<std::size_t>(n)}, rest_, out);
    append_bars(stamp, stream_, rest_, out);
    // A full disk loses lines, never the program: there is nobody to tell.
    (void)write_all(log_fd, out);
  }
  return pipe_.valid();
}

void LogPipe::finish(int log_fd) {
  if (!rest_.empty()) {
    std::string out;
    append_entry(log_stamp(), stream_, 'P', rest_, out);
    rest_.clear();
    (void)write_all(log_fd, out);
  }
  pipe_.reset();
  listeners_.clear();
}

std::string log_tail(std::string_view lines) {
  constexpr std::size_t kLines = 80;
  constexpr std::size_t kBytes = 2048;
  std::vector<std::string> texts;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    // "TIME STREAM F|P TEXT"
    const std::size_t stream = line.find(' ');
    const std::size_t tag = stream == line.npos ? line.npos : line.find(' ', stream + 1);
    if (tag == line.npos || tag + 2 >= line.size() || line[tag + 2] != ' ') continue;
    const std::string_view name = line.substr(stream + 1, tag - stream - 1);
    if (name != "stdout" && name != "stderr") continue;
    texts.push_back(std::string(line.substr(tag + 3)) + (line[tag + 1] == 'F' ? "\n" : ""));
  }
  std::string out;
  for (std::size_t i = texts.size() > kLines ? texts.size() - kLines : 0; i < texts.size(); ++i) {
    out += texts[i];
  }
  if (out.size() > kBytes) out.erase(0, out.size() - kBytes);
  return out;
}

}  // namespace skiff::node
