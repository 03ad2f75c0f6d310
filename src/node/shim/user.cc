#include "node/shim/user.h"

#include <fmt/format.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/strings.h"
#include "node/shim/files.h"

namespace skiff::node {
namespace {

std::optional<int> number(std::string_view text) {
  int out = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), out);
  const bool whole = read.ec == std::errc() && read.ptr == text.data() + text.size();
  return whole ? std::optional(out) : std::nullopt;
}

void hand_over(int fd, uid_t uid) {
  struct stat info{};
  // Only what was made for this program, a pipe or a terminal: /dev/null is others' too.
  if (::fstat(fd, &info) != 0 || (!S_ISFIFO(info.st_mode) && ::isatty(fd) == 0)) return;
  (void)!::fchown(fd, uid, info.st_gid);
}

}  // namespace

Account find_account(int uid, std::string_view passwd, std::string_view group) {
  Account out;
  std::string_view name;
  for (const std::string_view line : split(passwd, '\n')) {
    // name:password:uid:gid:...
    const std::vector<std::string_view> words = split(line, ':');
    if (words.size() < 4 || number(words[2]) != uid) continue;
    name = words[0];
    out.gid = number(words[3]).value_or(0);
    break;
  }
  if (name.empty()) return out;
  for (const std::string_view line : split(group, '\n')) {
    // name:password:gid:member,member
    const std::vector<std::string_view> words = split(line, ':');
    const auto gid = words.size() < 4 ? std::nullopt : number(words[2]);
    if (!gid) continue;
    const std::vector<std::string_view> members = split(words[3], ',');
    if (std::find(members.begin(), members.end(), name) != members.end()) {
      out.groups.push_back(*gid);
    }
  }
  return out;
}

std::vector<int> all_groups(const ContainerSpec& spec, const Account& account) {
  std::vector<int> out = {spec.gid.value_or(account.gid)};
  const auto add = [&](int gid) {
    if (std::find(out.begin(), out.end(), gid) == out.end()) out.push_back(gid);
  };
  for (const int gid : spec.groups) add(gid);
  if (spec.own_groups) {
    for (const int gid : account.groups) add(gid);
  }
  return out;
}

UserMap parse_user_map(std::string_view text) {
  std::vector<int> numbers;  // inside, outside, how many; the last of all users does not fit
  for (const std::string_view word : split(text.substr(0, text.find('\n')), ' ')) {
    if (!word.empty()) numbers.push_back(number(word).value_or(-1));
  }
  const bool one_line =
      text.find('\n') == std::string_view::npos || text.find('\n') + 1 == text.size();
  if (numbers.size() != 3 || (one_line && numbers[0] == 0 && numbers[1] == 0 && numbers[2] == -1)) {
    return {};
  }
  return {.whole = false, .single = one_line && numbers[2] == 1, .outside = numbers[1]};
}

UserMap own_user_map() { return parse_user_map(read_file("/proc/self/uid_map").value_or("")); }

Result<void> become_user(const ContainerSpec& spec) {
  if (own_user_map().single) return {};
  const auto uid = static_cast<uid_t>(spec.uid.value_or(0));
  const std::string passwd = read_file("/etc/passwd").value_or("");
  const std::string group = read_file("/etc/group").value_or("");
  const std::vector<int> groups =
      all_groups(spec, find_account(static_cast<int>(uid), passwd, group));
  const std::vector<gid_t> gids(groups.begin(), groups.end());
  if (uid != 0) {
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) hand_over(fd, uid);
  }
  if (::setgroups(gids.size(), gids.data()) != 0 || ::setresgid(gids[0], gids[0], gids[0]) != 0) {
    return os_failure(fmt::format("cannot become group {}", gids[0]));
  }
  if (::setresuid(uid, uid, uid) != 0) return os_failure(fmt::format("cannot become user {}", uid));
  return {};
}

}  // namespace skiff::node
