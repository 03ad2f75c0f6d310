// What the life cycle of nodes is planned from, kept change by change.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/kind.h"
#include "base/json.h"
#include "base/time.h"

namespace skiff::nodes {

const api::Resource& node_resource();
const api::Resource& lease_resource();
const api::Resource& pod_resource();

using PodName = std::pair<std::string, std::string>;  // namespace, name
using Pods = std::map<PodName, Object>;
// All that matters of a pod that has ended: thousands of them are kept.
struct Ended {
  std::string uid = {};
  std::optional<Time> created = {};
  bool evicted = false;
  bool leaving = false;  // deleted, and nobody wants to do anything before it goes
};
using EndedPods = std::map<PodName, Ended>;

struct World {
  Time awake = {};  // since when this process looks on without a standstill
  std::map<std::string, Object, std::less<>> nodes = {};
  // By node; under "" those without one.
  std::map<std::string, Pods, std::less<>> pods = {};
  std::map<std::string, EndedPods, std::less<>> ended = {};
  // By node: since when it is silent, that is when its lease or its status was last seen to change.
  std::map<std::string, Time, std::less<>> heard = {};
  // By name of a node that pods are bound to: since when it is missing.
  std::map<std::string, Time, std::less<>> missing = {};
  // By node, taint and effect: since when, as seen from here.
  std::map<std::string, Time, std::less<>> tainted = {};
};
std::string taint_key(const json::value& node, const json::value& taint);

class Books {
 public:
  static std::vector<api::Resource> watched();

  void changed(std::size_t which, const Object& before, const Object& after);
  // The world as it is at `now`: what is new since the last look is dated.
  const World& look(Time now);

 private:
  void pod_changed(const Object& before, const Object& after);
  void date_heartbeats(Time now, bool slept);

  World world_ = {};
  std::map<std::string, Object, std::less<>> leases_ = {};
  std::map<std::string, std::string, std::less<>> beats_ = {};  // by node: what was last heard
  std::optional<Time> last_look_ = {};
};

}  // namespace skiff::nodes
