#include "features/trainer/gang.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "api/meta.h"
#include "features/trainer/merge.h"
#include "features/trainer/mpi.h"
#include "features/trainer/trainjob.h"

namespace skiff::trainer {
namespace {

// Read by the scheduler.
constexpr std::string_view kGangAnnotation = "scheduling.skiff.dev/gang";
constexpr std::string_view kGangMinAnnotation = "scheduling.skiff.dev/gang-min";
// Read by the controller of Jobs: how many of them each Job brings.
constexpr std::string_view kGangShareAnnotation = "scheduling.skiff.dev/gang-share";
// Of a part, by the schema of JobSets.
constexpr std::size_t kMostDependencies = 5;

using Names = std::set<std::string, std::less<>>;
using Order = std::map<std::string, Names, std::less<>>;

std::string name_of(const json::value& part) {
  return std::string(json::get_string(part, {"name"}));
}

json::value* gang_part_named(json::array& parts, std::string_view name) {
  const auto found = std::ranges::find(parts, name, name_of);
  return found == parts.end() ? nullptr : &*found;
}

// Ready is then more than to run.
bool has_probes(const json::value& part) {
  const json::value* pod = json::find(part, {"template", "spec", "template", "spec"});
  if (pod == nullptr) return false;
  if (!json::get_array(*pod, {"readinessGates"}).empty()) return true;
  for (const std::string_view list : {"containers", "initContainers"}) {
    for (const json::value& container : json::get_array(*pod, {list})) {
      for (const std::string_view probe : {"readinessProbe", "startupProbe"}) {
        if (json::find(container, {probe}) != nullptr) return true;
      }
    }
  }
  return false;
}

// The remote shell waits until a node runs, so the launcher need not wait for that: it starts with
// the nodes, and there is room for it where there is room for them.
void start_with_nodes(json::array& parts) {
  const json::value* node = gang_part_named(parts, kNode);
  json::value* launcher = gang_part_named(parts, kLauncher);
  if (node == nullptr || launcher == nullptr || has_probes(*node)) return;
  json::array kept;
  bool waits = false;
  for (const json::value& wanted : json::get_array(*launcher, {"dependsOn"})) {
    const bool is_node = json::get_string(wanted, {"name"}) == kNode;
    if (is_node && json::get_string(wanted, {"status"}) == "Ready") {
      waits = true;
    } else {
      kept.push_back(wanted);
    }
  }
  if (!waits) return;
  for (const json::value& wanted : json::get_array(*node, {"dependsOn"})) {
    const bool there = std::ranges::any_of(
        kept, [&](const json::value& other) { return name_of(other) == name_of(wanted); });
    if (!there) kept.push_back(wanted);
  }
  if (kept.size() > kMostDependencies) return;
  json::object& fields = launcher->as_object();
  if (kept.empty()) {
    fields.erase("dependsOn");
  } else {
    fields["dependsOn"] = std::move(kept);
  }
}

// What each part waits for, and what that waits for. Parts wait only for those before them.
Order order_of(const json::object& spec, const json::array& parts) {
  const bool in_order =
      json::get_string(spec, {"startupPolicy", "startupPolicyOrder"}) == "InOrder";
  Order out;
  Names earlier;
  for (const json::value& part : parts) {
    Names all = in_order ? earlier : Names();
    for (const json::value& wanted : json::get_array(part, {"dependsOn"})) {
      const Names& before = out[name_of(wanted)];
      all.insert(before.begin(), before.end());
      all.insert(name_of(wanted));
    }
    out[name_of(part)] = std::move(all);
    earlier.insert(name_of(part));
  }
  return out;
}

// The part that the others are compared with: of an MPI's two the one that is made last. Empty
// where none trains.
std::string first_member(const json::value& runtime, json::array& parts, const Order& order) {
  if (runs_mpi(runtime) && gang_part_named(parts, kNode) != nullptr) {
    const Names& node = order.find(kNode)->second;
    const auto launcher = order.find(kLauncher);
    const bool apart =
        launcher == order.end() || launcher->second.contains(kNode) || node.contains(kLauncher);
    const bool last = !apart && std::ranges::includes(launcher->second, node);
    return std::string(last ? kLauncher : kNode);
  }
  const auto trainer = std::ranges::find(parts, kTrainerStep, step_of);
  return trainer == parts.end() ? std::string() : name_of(*trainer);
}

bool has_group(const json::value& runtime) {
  return !json::get_object(runtime, {"spec", "podGroupPolicy"}).empty();
}

std::int64_t pods_per_job(const json::value& part) {
  return json::get_int(part, {"template", "spec", "parallelism"}).value_or(1);
}

std::int64_t pods_of(const json::value& part) {
  return json::get_int(part, {"replicas"}).value_or(1) * pods_per_job(part);
}

}  // namespace

void form_gang(const json::value& trainjob, const json::value& runtime, json::object& spec) {
  json::array& parts = array_at(spec, "replicatedJobs");
  if (runs_mpi(runtime)) start_with_nodes(parts);
  const Order order = order_of(spec, parts);
  const std::string first = first_member(runtime, parts, order);
  if (first.empty()) return;
  const Names& before = order.find(first)->second;
  const auto is_member = [&](const json::value& part) {
    const std::string name = name_of(part);
    if (name == first) return true;
    const bool trains = step_of(part) == kTrainerStep ||
                        (runs_mpi(runtime) && (name == kNode || name == kLauncher));
    if (!trains && !has_group(runtime)) return false;
    // Made no later than the first member, which does not wait for it.
    return !before.contains(name) && std::ranges::includes(before, order.find(name)->second);
  };
  std::int64_t pods = 0;
  for (const json::value& part : parts) pods += is_member(part) ? pods_of(part) : 0;
  for (json::value& part : parts) {
    if (!is_member(part)) continue;
    json::object& annotations =
        json::make_object(part, {"template", "spec", "template", "metadata", "annotations"});
    annotations[kGangAnnotation] = json::string(api::uid(trainjob));
    annotations[kGangMinAnnotation] = std::to_string(pods);
    annotations[kGangShareAnnotation] = std::to_string(pods_per_job(part));
  }
}

}  // namespace skiff::trainer
