// Where a container's log goes on: PATH is being written, PATH.1, PATH.2, ... are full and older,
// the higher the number the newer. The shim writes them, `kubectl logs` reads them as one.
#pragma once

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string>
#include <vector>

namespace skiff::node {

struct FullLog {
  int number = 0;
  std::string path = {};
};

// Oldest first.
inline std::vector<FullLog> full_logs(const std::string& path) {
  std::vector<FullLog> out;
  const std::filesystem::path whole(path);
  const std::string prefix = whole.filename().native() + ".";
  std::error_code error;
  for (std::filesystem::directory_iterator it(whole.parent_path(), error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename();
    if (!name.starts_with(prefix)) continue;
    FullLog log{.path = it->path()};
    const char* stop = name.data() + name.size();
    const auto read = std::from_chars(name.data() + prefix.size(), stop, log.number);
    if (read.ec == std::errc() && read.ptr == stop && log.number > 0) out.push_back(std::move(log));
  }
  std::ranges::sort(out, {}, &FullLog::number);
  return out;
}

}  // namespace skiff::node
