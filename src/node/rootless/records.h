// What is written down of a user's namespaces, and what the machine grants him. Pure.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

namespace skiff::node {

// A process, told from a later one with the same number by when it started.
struct ProcessMark {
  pid_t pid = 0;
  std::string started = {};
  bool operator==(const ProcessMark&) const = default;
};

struct RootlessRecord {
  std::string boot = {};  // numbers of processes mean nothing after a restart of the machine
  ProcessMark holder = {};
  ProcessMark network = {};
  std::string program = {};  // pasta or slirp4netns
  bool operator==(const RootlessRecord&) const = default;
};
std::string to_text(const RootlessRecord& record);
std::optional<RootlessRecord> parse_record(std::string_view text);

// When the process started, from the form of /proc/PID/stat; nothing for one that has ended.
std::optional<std::string> parse_start_time(std::string_view stat);

struct IdRange {
  unsigned first = 0;
  unsigned count = 0;
  bool operator==(const IdRange&) const = default;
};
// The first range of the user, by name or number, from the form of /etc/subuid.
std::optional<IdRange> parse_id_range(std::string_view text, std::string_view name, uid_t uid);

// Whether every name server is on the machine's own loopback, where a namespace does not reach it.
bool only_loopback_servers(std::string_view resolv_conf);

}  // namespace skiff::node
