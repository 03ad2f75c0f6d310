// The figures of pods: how many in a second, how soon one runs, what one costs while it runs.
#pragma once

#include <string>
#include <string_view>

namespace skiff::bench {

struct PodsBench {
  std::string binary = {};
  std::string folder = {};  // of the bench; data folders are made in it
  double sync_ms = 0;
};

// What the kernel alone takes for the same program: fork and exec, with and without namespaces.
void process_floors(int times);
// 1,000 pods of /bin/true from the first create to the last Succeeded.
// `only`: plain, host or own; empty for all.
void pod_rates(const PodsBench& bench, int pods, std::string_view only);
// A few pods in a second: from create to the program's own first look at the clock.
void pod_latency(const PodsBench& bench, int per_second, int seconds);
// Pods that run and do nothing: what of ours is in memory because of them.
void pod_memory(const PodsBench& bench, int pods);

}  // namespace skiff::bench
