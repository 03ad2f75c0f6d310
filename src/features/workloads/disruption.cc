#include "features/workloads/disruption.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "api/meta.h"
#include "base/selectors.h"
#include "features/workloads/pods.h"
#include "features/workloads/replica_set.h"
#include "features/workloads/stateful_set.h"

namespace skiff::workloads {
namespace {

// An eviction that was granted is believed in for so long; then the pod counts again.
constexpr Duration kDeletionTimeout = std::chrono::minutes(2);
// A word that everything has.
constexpr std::string_view kAny = "*";
constexpr std::string_view kCondition = "DisruptionAllowed";

// Which of Observed::seen is what; other owners of pods come after them.
enum Seen : std::size_t { kPods, kReplicaSets, kDeployments };

std::string_view owner_uid(const json::value& object) {
  const json::object* owner = api::controller_of(object);
  const json::value* uid = owner == nullptr ? nullptr : owner->if_contains("uid");
  return uid != nullptr && uid->is_string() ? json::view(uid->get_string()) : std::string_view();
}

class BudgetPlan {
 public:
  BudgetPlan(const control::Observed& observed, const LabelSelector& selector, Time now)
      : budget_(*observed.root), now_(now) {
    for (const Object& pod : observed.seen[kPods]) {
      if (selector.matches_object(*pod)) pods_.push_back(pod);
    }
    // Looked up once for each pod: by uid, not by going through all of the namespace.
    for (std::size_t which = kReplicaSets; which < observed.seen.size(); ++which) {
      for (const Object& object : observed.seen[which]) {
        (which == kDeployments ? deployments_ : owners_).emplace(api::uid(*object), object.get());
      }
    }
  }

  control::Plan make() {
    if (pods_.empty()) note("NoPods", "No matching pods found");
    expect();
    json::object disrupted = still_disrupted();
    const auto healthy = std::ranges::count_if(pods_, [&](const Object& pod) {
      return !api::deleting(*pod) && !disrupted.contains(api::name(*pod)) && ready(*pod);
    });
    json::object status = json::get_object(budget_, {"status"});
    if (failure_.empty()) {
      status["currentHealthy"] = healthy;
      status["desiredHealthy"] = desired_;
      status["expectedPods"] = expected_;
      status["observedGeneration"] = int_at(budget_, {"metadata", "generation"});
      status["disruptionsAllowed"] =
          expected_ > 0 ? std::max<std::int64_t>(0, healthy - desired_) : 0;
    } else {
      status["disruptionsAllowed"] = 0;
    }
    if (disrupted.empty()) {
      status.erase("disruptedPods");
    } else {
      status["disruptedPods"] = std::move(disrupted);
    }
    tell(status);
    json::value after = std::move(status);
    const json::value* before = json::find(budget_, {"status"});
    if (before == nullptr || *before != after) plan_.status = std::move(after);
    return std::move(plan_);
  }

 private:
  // How many pods there should be, and how many of them healthy.
  void expect() {
    const json::value* most = json::find(budget_, {"spec", "maxUnavailable"});
    const json::value* least = json::find(budget_, {"spec", "minAvailable"});
    if (most != nullptr) {
      expected_ = wanted_by_controllers();
      desired_ = std::max<std::int64_t>(0, expected_ - scaled(most, expected_, true));
    } else if (least != nullptr && least->is_int64()) {
      expected_ = static_cast<std::int64_t>(pods_.size());
      desired_ = least->get_int64();
    } else if (least != nullptr) {
      expected_ = wanted_by_controllers();
      desired_ = scaled(least, expected_, true);
    }
  }

  // The sizes of all that control a pod of ours.
  std::int64_t wanted_by_controllers() {
    std::map<std::string_view, std::int64_t> sizes;
    bool unmanaged = false;
    for (const Object& pod : pods_) {
      const std::string_view owner = owner_uid(*pod);
      if (owner.empty()) {
        unmanaged = true;
        continue;
      }
      const json::value* controller = controller_of(owner);
      if (controller == nullptr) {
        failure_ = fmt::format("found no controllers for pod \"{}\"", api::name(*pod));
        note("CalculateExpectedPodCountFailed",
             "Failed to calculate the number of expected pods: " + failure_, true);
        return 0;
      }
      sizes[api::uid(*controller)] = int_at(*controller, {"spec", "replicas"}, 1);
    }
    if (unmanaged) {
      note("UnmanagedPods",
           "Pods selected by this PodDisruptionBudget were found to be unmanaged. As a result, the "
           "status of the PDB cannot be calculated correctly, which may result in undefined "
           "behavior. To account for these pods please set \".spec.minAvailable\" field of the PDB "
           "to an integer value.",
           true);
    }
    std::int64_t out = 0;
    for (const auto& [uid, size] : sizes) out += size;
    return out;
  }

  const json::value* controller_of(std::string_view uid) const {
    const auto owner = owners_.find(uid);
    if (owner == owners_.end()) return nullptr;
    // While a Deployment rolls, its size counts and not that of each of its sets.
    const auto deployment = deployments_.find(owner_uid(*owner->second));
    return deployment == deployments_.end() ? owner->second : deployment->second;
  }

  // Evictions that were granted and of which nothing has been seen yet.
  json::object still_disrupted() {
    json::object out;
    const json::object& known = json::get_object(budget_, {"status", "disruptedPods"});
    for (const Object& pod : pods_) {
      const json::value* since = known.if_contains(api::name(*pod));
      if (since == nullptr || !since->is_string() || api::deleting(*pod)) continue;
      const auto at = parse_time(json::view(since->get_string()));
      if (!at || *at + kDeletionTimeout < now_) continue;
      sooner(plan_.requeue_after, *at + kDeletionTimeout - now_ + std::chrono::milliseconds(1));
      out[api::name(*pod)] = *since;
    }
    return out;
  }

  void tell(json::object& status) const {
    const bool allowed = status["disruptionsAllowed"].as_int64() > 0;
    json::object condition{{"type", kCondition},
                           {"status", allowed ? "True" : "False"},
                           {"reason", !failure_.empty() ? "SyncFailed"
                                      : allowed         ? "SufficientPods"
                                                        : "InsufficientPods"},
                           {"message", failure_},
                           {"lastTransitionTime", rfc3339(now_)}};
    if (status.contains("observedGeneration")) {
      condition["observedGeneration"] = status["observedGeneration"];
    }
    json::array kept;
    for (const json::value& other : json::get_array(budget_, {"status", "conditions"})) {
      if (json::get_string(other, {"type"}) != kCondition) {
        kept.push_back(other);
      } else if (json::get_string(other, {"status"}) == (allowed ? "True" : "False")) {
        condition["lastTransitionTime"] =
            json::string(json::get_string(other, {"lastTransitionTime"}));
      }
    }
    kept.push_back(std::move(condition));
    status["conditions"] = std::move(kept);
  }

  void note(std::string reason, std::string message, bool warning = false) {
    plan_.notes.push_back({warning, std::move(reason), std::move(message)});
  }

  const json::value& budget_;
  const Time now_;
  control::Plan plan_ = {};
  std::vector<Object> pods_ = {};
  std::map<std::string_view, const json::value*> owners_ = {};       // by uid
  std::map<std::string_view, const json::value*> deployments_ = {};  // by uid
  std::int64_t expected_ = 0;
  std::int64_t desired_ = 0;
  std::string failure_ = {};
};

std::vector<std::string> any_budget(const json::value&) { return {std::string(kAny)}; }

}  // namespace

const api::Resource& budget_resource() {
  static const api::Resource kResource{.group = "policy",
                                       .version = "v1",
                                       .plural = "poddisruptionbudgets",
                                       .kind = "PodDisruptionBudget"};
  return kResource;
}

control::Plan plan_budget(const control::Observed& observed, Time now) {
  if (api::deleting(*observed.root)) return {};
  // Without a selector it is about no pod, with an empty one about all.
  const json::value* wanted = json::find(*observed.root, {"spec", "selector"});
  const auto selector = wanted == nullptr ? Result<LabelSelector>(LabelSelector())
                                          : LabelSelector::from_object(*wanted);
  if (!selector) return {};
  return BudgetPlan(observed, *selector, now).make();
}

control::Controller budget_controller() {
  const auto selected = [](const json::value& budget) {
    const json::value* selector = json::find(budget, {"spec", "selector"});
    if (selector == nullptr || !selector->is_object()) return std::vector<std::string>{};
    std::vector<std::string> out = label_words(json::get_object(*selector, {"matchLabels"}));
    out.emplace_back(kAny);
    return out;
  };
  const auto has = [](const json::value& pod) {
    std::vector<std::string> out = label_words(json::get_object(pod, {"metadata", "labels"}));
    out.emplace_back(kAny);
    return out;
  };
  return {.name = "controllermanager",
          .root = budget_resource(),
          .seen = {{.resource = pod_resource(), .wants = selected, .has = has},
                   {.resource = replica_set_resource(), .wants = any_budget, .has = any_budget},
                   {.resource = deployment_resource(), .wants = any_budget, .has = any_budget},
                   {.resource = stateful_set_resource(), .wants = any_budget, .has = any_budget},
                   {.resource = replication_controller_resource(),
                    .wants = any_budget,
                    .has = any_budget}},
          .plan = plan_budget};
}

}  // namespace skiff::workloads
