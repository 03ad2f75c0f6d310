// Simulated nodes: each runs the pods bound to it by a script, as a kubelet would report them.
//
// What runs on a node outlives the API server: after a restart the node reports again whatever the
// server no longer knows.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "client/client.h"
#include "env/env.h"
#include "sim/checker.h"
#include "sim/workload.h"

namespace skiff::sim {

class Nodes {
 public:
  Nodes(const env::Clock& clock, Random& random, Workload& workload);

  void add(std::string name, unsigned cpus);
  // Looks at the world as it is on disk and reports what has happened. Returns how long until more
  // happens.
  Duration step(client::Client& client, const View& view, bool calm);

  void slow(Random& random, unsigned factor);
  void lose(Random& random, Duration how_long);
  void calm();
  void power_cut();

 private:
  struct Node {
    unsigned cpus = 1;
    unsigned factor = 1;
    Duration lost_until = {};
    Duration renews = {};  // its lease
  };
  // The containers of one pod, by the pod's uid.
  struct Process {
    std::string node = {};
    PodScript script = {};
    Duration begins = {};
    Duration ends = {};
    unsigned restarts = 0;
    bool killed = false;  // by the loss of its node
    Duration stops = {};  // of a pod that is being deleted
    unsigned address = 0;
  };
  void register_node(client::Client& client, const std::string& name, const Node& node,
                     const json::value* known);
  void renew_lease(client::Client& client, const std::string& name, Node& node);
  void reclaim(client::Client& client, const View& view);
  void serve(client::Client& client, const json::value& pod);
  void begin(Process& process, const json::value& pod, Duration delay);
  void report(client::Client& client, const json::value& pod, const Process& process);
  void stop(client::Client& client, const json::value& pod, Process& process);
  void note(Duration at);

  const env::Clock& clock_;
  Random& random_;
  Workload& workload_;
  std::map<std::string, Node> nodes_ = {};
  std::map<std::string, Process> processes_ = {};
  bool calm_ = false;
  unsigned addresses_ = 0;
  Duration next_ = {};
};

}  // namespace skiff::sim
