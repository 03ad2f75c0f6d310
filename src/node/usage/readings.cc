#include "node/usage/readings.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/strings.h"

namespace skiff::node {
namespace {

// Files of the kernel that hold counters are short. Empty where there is none.
std::string get(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::string text;
  char room[8192];
  for (ssize_t n = 0; (n = ::read(fd, room, sizeof room)) > 0;) {
    text.append(room, static_cast<std::size_t>(n));
  }
  ::close(fd);
  return text;
}

std::optional<std::int64_t> number(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  std::int64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc{}) return std::nullopt;
  return value;
}

// The number after a word at the start of a line.
std::optional<std::int64_t> field(std::string_view text, std::string_view word) {
  for (const std::string_view line : split(text, '\n')) {
    if (line.starts_with(word)) return number(line.substr(word.size()));
  }
  return std::nullopt;
}

std::int64_t tick_ns() {
  static const std::int64_t kTick = 1'000'000'000 / std::max(1L, ::sysconf(_SC_CLK_TCK));
  return kTick;
}

std::int64_t page_bytes() {
  static const std::int64_t kPage = ::sysconf(_SC_PAGE_SIZE);
  return kPage;
}

std::int64_t working_set(std::optional<std::int64_t> held, std::optional<std::int64_t> inactive) {
  return std::max<std::int64_t>(0, held.value_or(0) - inactive.value_or(0));
}

// Where the hierarchy that pods are in does not count CPU time.
std::int64_t cpu_of_members(const std::string& members, const std::string& proc) {
  std::int64_t sum = 0;
  for (const std::string_view line : split(members, '\n')) {
    if (line.empty()) continue;
    const auto stat = parse_stat(get(proc + "/" + std::string(line) + "/stat"));
    if (stat) sum += stat->cpu_ns;
  }
  return sum;
}

}  // namespace

std::optional<ProcessStat> parse_stat(std::string_view text) {
  // The name is in brackets and may hold anything, brackets and spaces included.
  const std::size_t end = text.rfind(')');
  if (end == std::string_view::npos || end + 2 > text.size()) return std::nullopt;
  const auto words = split(text.substr(end + 2), ' ');
  constexpr std::size_t kParent = 1, kUser = 11, kWaitedSystem = 14, kResident = 21;
  if (words.size() <= kResident) return std::nullopt;
  ProcessStat out;
  out.parent = static_cast<int>(number(words[kParent]).value_or(0));
  for (std::size_t i = kUser; i <= kWaitedSystem; ++i) {
    out.cpu_ns += number(words[i]).value_or(0) * tick_ns();
  }
  out.resident_bytes = number(words[kResident]).value_or(0) * page_bytes();
  return out;
}

std::optional<Reading> read_group(const Cgroups& cgroups, const std::string& group, bool memory,
                                  const std::string& proc) {
  const std::string at = cgroups.folder("memory", group);
  Reading out;
  if (cgroups.is_v2()) {
    const auto cpu_us = field(get(at + "/cpu.stat"), "usage_usec ");
    if (!cpu_us) return std::nullopt;
    out.cpu_ns = *cpu_us * 1000;
  } else if (const auto cpu = number(get(cgroups.folder("cpu", group) + "/cpuacct.usage"))) {
    out.cpu_ns = *cpu;
  } else {
    const std::string members = get(at + "/cgroup.procs");
    if (members.empty()) return std::nullopt;
    out.cpu_ns = cpu_of_members(members, proc);
  }
  if (!memory) return out;
  const bool v2 = cgroups.is_v2();
  const auto held = number(get(at + (v2 ? "/memory.current" : "/memory.usage_in_bytes")));
  if (!held) return std::nullopt;
  out.memory_bytes = working_set(
      held, field(get(at + "/memory.stat"), v2 ? "inactive_file " : "total_inactive_file "));
  return out;
}

std::vector<std::optional<Reading>> read_trees(const std::vector<int>& pids,
                                               const std::string& proc) {
  std::vector<std::optional<Reading>> out(pids.size());
  if (pids.empty()) return out;
  std::map<int, ProcessStat> all;
  if (DIR* folder = ::opendir(proc.c_str())) {
    while (const dirent* entry = ::readdir(folder)) {
      if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
      const auto stat = parse_stat(get(proc + "/" + entry->d_name + "/stat"));
      if (stat) all[static_cast<int>(number(entry->d_name).value_or(0))] = *stat;
    }
    ::closedir(folder);
  }
  std::map<int, std::size_t> roots;
  for (std::size_t i = 0; i < pids.size(); ++i) roots[pids[i]] = i;
  for (const auto& [pid, stat] : all) {
    // Ids are given anew while we read: such a walk could go round in circles.
    int at = pid;
    for (std::size_t step = 0; at > 1 && step < all.size() && !roots.contains(at); ++step) {
      const auto parent = all.find(at);
      at = parent == all.end() ? 0 : parent->second.parent;
    }
    const auto root = roots.find(at);
    if (root == roots.end() || !all.contains(at)) continue;
    std::optional<Reading>& sum = out[root->second];
    if (!sum) sum.emplace();
    sum->cpu_ns += stat.cpu_ns;
    sum->memory_bytes += stat.resident_bytes;
  }
  return out;
}

std::optional<Reading> read_machine_usage(const std::string& proc) {
  const std::string stat = get(proc + "/stat"), memory = get(proc + "/meminfo");
  const auto total = field(memory, "MemTotal:"), available = field(memory, "MemAvailable:");
  if (!stat.starts_with("cpu ") || !total || !available) return std::nullopt;
  // user nice system idle iowait irq softirq steal; the guests' time is in the first two.
  std::int64_t ticks = 0;
  std::size_t at = 0;
  for (const std::string_view word :
       split(std::string_view(stat).substr(0, stat.find('\n')), ' ')) {
    const auto value = number(word);
    if (!value) continue;
    constexpr std::size_t kIdle = 3, kWait = 4, kSteal = 7;
    if (at != kIdle && at != kWait && at < kSteal) ticks += *value;
    ++at;
  }
  return Reading{.cpu_ns = ticks * tick_ns(),
                 .memory_bytes = std::max<std::int64_t>(0, *total - *available) * 1024};
}

NetworkReading parse_network(std::string_view text) {
  constexpr std::size_t kSent = 8;  // columns behind that of the bytes received
  NetworkReading out;
  for (const std::string_view line : split(text, '\n')) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || trim(line.substr(0, colon)) == "lo") continue;
    std::vector<std::string_view> columns;
    for (const std::string_view column : split(line.substr(colon + 1), ' ')) {
      if (!column.empty()) columns.push_back(column);
    }
    if (columns.size() <= kSent) continue;
    out.received += number(columns[0]).value_or(0);
    out.sent += number(columns[kSent]).value_or(0);
  }
  return out;
}

std::optional<NetworkReading> read_network(int pid, const std::string& proc) {
  if (pid <= 0) return std::nullopt;
  const std::string folder = proc + "/" + std::to_string(pid);
  struct stat theirs{}, ours{};
  if (::stat((folder + "/ns/net").c_str(), &theirs) != 0) return std::nullopt;
  const bool known = ::stat((proc + "/self/ns/net").c_str(), &ours) == 0;
  if (known && theirs.st_ino == ours.st_ino && theirs.st_dev == ours.st_dev) return std::nullopt;
  const std::string text = get(folder + "/net/dev");
  if (text.empty()) return std::nullopt;
  return parse_network(text);
}

}  // namespace skiff::node
