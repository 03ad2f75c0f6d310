#include "node/process/untrusted.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <optional>

#include "base/strings.h"
#include "node/shim/shim.h"

namespace skiff::node {
namespace {

// Deeper than processes of people are; a pod must not make us look for long.
constexpr int kMostAncestors = 256;

std::string proc_text(pid_t process, std::string_view name) {
  std::ifstream file(fmt::format("/proc/{}/{}", process, name));
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Ancestor {
  std::string name = {};
  pid_t parent = 0;
};

std::optional<Ancestor> read_ancestor(pid_t process) {
  Ancestor out;
  const std::string status = proc_text(process, "status");
  for (const std::string_view line : split(status, '\n')) {
    if (line.starts_with("Name:\t")) out.name = line.substr(6);
    if (!line.starts_with("PPid:\t")) continue;
    const std::string_view digits = line.substr(6);
    const auto end = digits.data() + digits.size();
    if (std::from_chars(digits.data(), end, out.parent).ptr != end) return {};
    return out;
  }
  return {};
}

struct Descent {
  pid_t shim = 0;     // the nearest; 0: none
  bool ours = false;  // this process is an ancestor, or the process itself
};

// Nothing where a process on the way has gone or the way is too long.
std::optional<Descent> descent_of(pid_t process) {
  Descent out;
  for (int i = 0; i < kMostAncestors; ++i) {
    // The parent of our first process, and of what was put into our process namespace from outside.
    if (process == 0) return out;
    const auto found = read_ancestor(process);
    if (!found) return {};
    out.ours = out.ours || process == ::getpid();
    if (out.shim == 0 && found->name == kShimName) out.shim = process;
    process = found->parent;
  }
  return {};
}

}  // namespace

std::set<std::string> pod_groups(std::string_view cgroups) {
  static constexpr std::string_view kSkiff = "skiff-", kPod = "pod";
  static constexpr std::size_t kDigits = 8;
  std::set<std::string> out;
  for (const std::string_view line : split(cgroups, '\n')) {
    const auto parts = split(line, '/');
    std::string path;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      path += fmt::format("{}/", parts[i]);
      if (parts[i].starts_with(kSkiff) && parts[i].size() == kSkiff.size() + kDigits &&
          parts[i + 1].starts_with(kPod)) {
        out.insert(fmt::format("{}{}", path, parts[i + 1]));
      }
    }
  }
  return out;
}

bool is_server(std::string_view program, std::string_view command_line) {
  const std::string_view file = program.substr(program.rfind('/') + 1);
  const auto words = split(command_line, '\0');
  return file.starts_with("skiff") && std::ranges::find(words, "up") != words.end();
}

bool is_untrusted(pid_t process) {
  const auto theirs = descent_of(process);
  const auto ours = descent_of(::getpid());
  if (!theirs || !ours || theirs->ours || theirs->shim != ours->shim) return true;
  const std::string groups = proc_text(process, "cgroup");
  // A zombie or one that is gone; kernels without control groups have no such file for anybody.
  const std::string own_groups = proc_text(::getpid(), "cgroup");
  if (groups.empty() != own_groups.empty()) return true;
  if (!std::ranges::includes(pod_groups(own_groups), pod_groups(groups))) return true;
  char program[4096];
  const ssize_t size =
      ::readlink(fmt::format("/proc/{}/exe", process).c_str(), program, sizeof program);
  if (size <= 0) return true;
  return is_server({program, static_cast<std::size_t>(size)}, proc_text(process, "cmdline"));
}

}  // namespace skiff::node
