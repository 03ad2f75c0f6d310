// What the scheduler knows: pods that wait, nodes, and what is taken on them.
//
// Books keeps it up to date change by change, so that its cost follows what waits and what runs;
// finished pods leave nothing behind.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/core/claims.h"
#include "base/json.h"
#include "base/time.h"
#include "control/cache.h"

namespace skiff::scheduler {

// Amounts in thousandths, by the resource's number in Snapshot::resources.
using Amounts = std::vector<std::int64_t>;
// 0 of what is not listed.
inline std::int64_t amount_at(const Amounts& amounts, std::size_t resource) {
  return resource < amounts.size() ? amounts[resource] : 0;
}
using Requests = std::vector<std::pair<std::size_t, std::int64_t>>;

// Number 0 of every snapshot is the count of pods itself.
inline constexpr std::size_t kPodCount = 0;
// With a protocol and a number: a port of the machine, of which every node has one.
inline constexpr std::string_view kHostPort = "hostPort/";

inline constexpr std::string_view kGangAnnotation = "scheduling.skiff.dev/gang";
// Of a pod that waits: how many pods of its gang must run at the same time now, itself among them.
// The scheduler counts those that have a node and have not ended. Who makes the pods tells a true
// number, and those that wait a new one when some are done or are no longer wanted: only the maker
// knows which of those that ended are to run again.
inline constexpr std::string_view kGangMinAnnotation = "scheduling.skiff.dev/gang-min";
inline constexpr std::string_view kPodGroupLabel = "scheduling.x-k8s.io/pod-group";

struct Pod {
  control::Key key = {};
  Object object = {};
  Requests requests = {};
  std::int64_t priority = 0;
  Time created = {};
  std::string gang = {};  // namespace/name; empty: the pod stands alone
  std::size_t gang_min = 0;
  std::vector<api::ClaimUse> claims = {};
  // Equal for pods that fit on the same nodes.
  std::string signature = {};
};
using PodPtr = std::shared_ptr<const Pod>;

// A pod of a gang that has a node and has neither ended nor been marked for deletion, as it was
// when last seen.
struct Member {
  control::Key key = {};
  std::string uid = {};
  std::string resource_version = {};
};
using MemberPtr = std::shared_ptr<const Member>;

struct Node {
  std::string name = {};
  Object object = {};
  bool ready = true;
  bool unschedulable = false;
  Amounts allocatable = {};
  bool tainted = false;  // by a taint that keeps pods away
};
using NodePtr = std::shared_ptr<const Node>;

struct Snapshot {
  std::vector<std::string> resources = {"pods"};
  std::map<std::string, NodePtr> nodes = {};
  std::map<std::string, Amounts> used = {};  // by node, also of nodes that are gone
  // Of that, by pods that do not end by themselves.
  std::map<std::string, Amounts> lasting = {};
  std::map<control::Key, PodPtr> pending = {};
  std::map<std::string, std::map<control::Key, MemberPtr>> placed = {};  // by gang
  std::map<control::Key, Object> claims = {};
  std::map<control::Key, std::size_t> claim_users = {};  // pods that run with a claim
  std::map<std::string, Object> volumes = {};
  std::map<std::string, Object> classes = {};
};

class Books {
 public:
  void pod_changed(const Object& before, const Object& after);
  void node_changed(const Object& before, const Object& after);
  void claim_changed(const Object& before, const Object& after);
  void volume_changed(const Object& before, const Object& after);
  void class_changed(const Object& before, const Object& after);
  const Snapshot& snapshot() const { return snapshot_; }

 private:
  // What a pod that has a node takes away.
  struct Held {
    std::string node = {};
    Requests requests = {};
    bool lasting = false;
    std::vector<control::Key> claims = {};
    std::string gang = {};
    MemberPtr member = {};  // of that gang
  };
  std::size_t number(std::string_view resource);
  Requests requests_of(const json::value& pod);
  void hold(const control::Key& key, const Held& held, int sign);

  Snapshot snapshot_ = {};
  std::map<std::string, std::size_t, std::less<>> numbers_ = {{"pods", kPodCount}};
  std::map<control::Key, Held> held_ = {};
};

}  // namespace skiff::scheduler
