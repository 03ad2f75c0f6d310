// The kernel's counters of CPU and memory: of control groups, of processes, of the machine.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "node/cgroup/cgroup.h"
#include "node/runtime.h"

namespace skiff::node {

// Of a control group, by its path below the root of every hierarchy; memory only where asked for.
// Nothing where it is gone.
std::optional<Reading> read_group(const Cgroups& cgroups, const std::string& group, bool memory,
                                  const std::string& proc = "/proc");

// Of each of these processes with all that descend from it; one walk through /proc for all.
std::vector<std::optional<Reading>> read_trees(const std::vector<int>& pids,
                                               const std::string& proc = "/proc");

// Of the whole machine: time that its processors worked, memory that is not available.
std::optional<Reading> read_machine_usage(const std::string& proc = "/proc");

// Bytes that came and went over the network since it is there.
struct NetworkReading {
  std::int64_t received = 0;
  std::int64_t sent = 0;
};
// Of the network that this process sees, its loopback left out. Nothing where that is the machine's
// own, which says nothing about one pod, or where the process is gone.
std::optional<NetworkReading> read_network(int pid, const std::string& proc = "/proc");
// The text of /proc/PID/net/dev.
NetworkReading parse_network(std::string_view text);

// One line of /proc/PID/stat. Its times are those of the process and of the children it waited for.
struct ProcessStat {
  int parent = 0;
  std::int64_t cpu_ns = 0;
  std::int64_t resident_bytes = 0;
};
std::optional<ProcessStat> parse_stat(std::string_view text);

}  // namespace skiff::node
