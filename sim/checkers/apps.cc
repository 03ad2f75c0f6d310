// What must hold of apps at any time, however old the caches are: no more pods than were ever asked
// for, StatefulSets in order, one daemon for each node, no more CronJobs' jobs at once than
// allowed. And in calm times, when only controllers take pods away: as many ready as the rollout
// promises.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "api/meta.h"
#include "sim/checkers/checkers.h"
#include "sim/workloads/app_state.h"

namespace skiff::sim::checkers {
namespace {

using Sentence = std::optional<std::string>;

std::int64_t size_of(const json::value& root) {
  return json::get_int(root, {"spec", "replicas"}).value_or(1);
}

// What a controller made itself: what it adopted it may have more of than it wants.
class Births {
 public:
  std::vector<Object> of(const std::vector<Object>& objects, const json::value& owner) {
    std::vector<Object> out;
    for (const Object& object : objects) {
      if (!api::controlled_by(*object, api::uid(owner))) continue;
      const auto [first, fresh] = first_.emplace(api::uid(*object), api::uid(owner));
      if (first->second == api::uid(owner)) out.push_back(object);
    }
    return out;
  }
  // What nobody controls now is nobody's child later.
  void note_orphans(const std::vector<Object>& objects) {
    for (const Object& object : objects) {
      if (api::controller_of(*object) == nullptr) first_.emplace(api::uid(*object), "");
    }
  }

 private:
  std::map<std::string, std::string, std::less<>> first_ = {};  // controller's uid by object's uid
};

std::vector<Object> alive(std::vector<Object> pods) {
  std::erase_if(pods, [](const Object& pod) { return !pod_lives(*pod); });
  return pods;
}

// The most that a Deployment is to have with its surge.
std::int64_t size_with_surge(const json::value& root) {
  const json::value* surge = json::find(root, {"spec", "strategy", "rollingUpdate", "maxSurge"});
  return size_of(root) + share(surge, size_of(root), true);
}

// No set has more pods than it was ever to have.
class AppReplicas : public Checker {
 public:
  std::string_view name() const override { return "app-replicas"; }

  Sentence check(const View& view) override {
    births_.note_orphans(view.of("pods"));
    for (const char* resource :
         {"replicasets.apps", "replicationcontrollers", "statefulsets.apps"}) {
      for (const Object& set : view.of(resource)) {
        std::int64_t& largest = largest_[std::string(api::uid(*set))];
        largest = std::max({largest, size_of(*set), size_above(view, *set)});
        const std::size_t pods = alive(births_.of(view.of("pods"), *set)).size();
        if (std::cmp_less_equal(pods, largest)) continue;
        return fmt::format("{} made {} pods and was never to have more than {}", api::name(*set),
                           pods, largest);
      }
    }
    return std::nullopt;
  }

 private:
  // What a Deployment writes into its sets may change twice between two looks; people's words are
  // seen each time.
  static std::int64_t size_above(const View& view, const json::value& set) {
    for (const Object& root : view.of("deployments.apps")) {
      if (api::controlled_by(set, api::uid(*root))) return size_with_surge(*root);
    }
    return 0;
  }

  Births births_ = {};
  std::map<std::string, std::int64_t> largest_ = {};
};

// A pod of an ordered StatefulSet is made when all before it have been ready.
class AppOrder : public Checker {
 public:
  std::string_view name() const override { return "app-order"; }

  Sentence check(const View& view) override {
    for (const Object& set : view.of("statefulsets.apps")) {
      if (json::get_string(*set, {"spec", "podManagementPolicy"}) == "Parallel") continue;
      if (auto wrong = check_set(view, *set)) return wrong;
    }
    // Those of others, too: who adopts one has not made it.
    for (const Object& pod : view.of("pods")) known_.emplace(api::uid(*pod));
    return std::nullopt;
  }

 private:
  Sentence check_set(const View& view, const json::value& set) {
    std::set<std::string>& were_ready = ready_[std::string(api::uid(set))];
    const std::int64_t start = json::get_int(set, {"spec", "ordinals", "start"}).value_or(0);
    const std::vector<Object> pods = controlled_by(view.of("pods"), set);
    for (const Object& pod : pods) {
      if (pod_ready(*pod)) were_ready.emplace(api::name(*pod));
    }
    for (const Object& pod : pods) {
      if (known_.contains(std::string(api::uid(*pod)))) continue;
      for (std::int64_t i = start;; ++i) {
        const std::string before = fmt::format("{}-{}", api::name(set), i);
        // Beyond the last member: what is left of another size.
        if (before == api::name(*pod) || i >= start + size_of(set)) break;
        if (were_ready.contains(before)) continue;
        return fmt::format("{} was made before {} was ready", api::name(*pod), before);
      }
    }
    return std::nullopt;
  }

  std::map<std::string, std::set<std::string>> ready_ = {};  // names of pods by the set's uid
  std::set<std::string> known_ = {};                         // uids of pods
};

// The sets of a Deployment together are never larger than it was to be with its surge; one that
// recreates never has pods of two sets.
class AppSurge : public Checker {
 public:
  std::string_view name() const override { return "app-surge"; }

  Sentence check(const View& view) override {
    births_.note_orphans(view.of("replicasets.apps"));
    for (const Object& root : view.of("deployments.apps")) {
      std::int64_t& most = most_[std::string(api::uid(*root))];
      most = std::max(most, size_with_surge(*root));
      std::int64_t sum = 0;
      std::size_t populated = 0;
      for (const Object& set : births_.of(view.of("replicasets.apps"), *root)) {
        sum += size_of(*set);
        populated += alive(controlled_by(view.of("pods"), *set)).empty() ? 0 : 1;
      }
      if (sum > most) {
        return fmt::format("the sets of {} are to have {} pods, at most {} are allowed",
                           api::name(*root), sum, most);
      }
      if (json::get_string(*root, {"spec", "strategy", "type"}) == "Recreate" && populated > 1) {
        return fmt::format("{} recreates and has pods of {} sets", api::name(*root), populated);
      }
    }
    return std::nullopt;
  }

 private:
  Births births_ = {};
  std::map<std::string, std::int64_t> most_ = {};
};

// One daemon for each node, or two while one of them is to replace the other.
class AppDaemons : public Checker {
 public:
  std::string_view name() const override { return "app-daemons"; }

  Sentence check(const View& view) override {
    births_.note_orphans(view.of("pods"));
    for (const Object& set : view.of("daemonsets.apps")) {
      const json::value* surge =
          json::find(*set, {"spec", "updateStrategy", "rollingUpdate", "maxSurge"});
      const std::size_t most = share(surge, 1, true) > 0 ? 2 : 1;
      std::map<std::string_view, std::size_t> on_node;
      for (const Object& pod : alive(births_.of(view.of("pods"), *set))) {
        const std::string_view node = json::get_string(*pod, {"spec", "nodeName"});
        if (node.empty() || ++on_node[node] <= most) continue;
        return fmt::format("{} has {} pods on {}", api::name(*set), on_node[node], node);
      }
    }
    return std::nullopt;
  }

 private:
  Births births_ = {};
};

// A CronJob that forbids or replaces has one job at a time.
class AppCron : public Checker {
 public:
  std::string_view name() const override { return "app-cron"; }

  Sentence check(const View& view) override {
    for (const Object& cron : view.of("cronjobs.batch")) {
      const std::string_view policy = json::get_string(*cron, {"spec", "concurrencyPolicy"});
      const auto runs = [&](const Object& job) {
        return !job_ended(*job) && (policy == "Forbid" || !api::deleting(*job));
      };
      const auto jobs = controlled_by(view.of("jobs.batch"), *cron);
      const auto running = std::ranges::count_if(jobs, runs);
      if ((policy == "Forbid" || policy == "Replace") && running > 1) {
        return fmt::format("{} runs {} jobs at once and its policy is {}", api::name(*cron),
                           running, policy);
      }
    }
    return std::nullopt;
  }
};

// While only controllers take pods away, as many stay ready as the strategy of an update says.
class AppAvailable : public Checker {
 public:
  std::string_view name() const override { return "app-available"; }

  Sentence check(const View& view) override {
    for (const char* resource : {"deployments.apps", "statefulsets.apps", "daemonsets.apps"}) {
      for (const Object& root : view.of(resource)) {
        const auto now = promised(view, *root);
        if (!now) continue;
        const auto [least, fresh] = least_.emplace(api::uid(*root), *now);
        // Before the calm everything was settled as it was then; another size takes its time.
        least->second = view.calm ? std::min(least->second, *now) : *now;
        if (!view.calm) continue;
        const std::int64_t ready = count_ready(view, *root);
        if (ready >= least->second) continue;
        return fmt::format("{} {} has {} ready pods, {} are promised", api::kind(*root),
                           api::name(*root), ready, least->second);
      }
    }
    return std::nullopt;
  }

 private:
  // Nothing: it promises none.
  static std::optional<std::int64_t> promised(const View& view, const json::value& root) {
    const std::string_view kind = api::kind(root);
    if (kind == "StatefulSet") {
      if (json::get_string(root, {"spec", "updateStrategy", "type"}) == "OnDelete") return {};
      return size_of(root) - 1;
    }
    if (kind == "DaemonSet") {
      const auto nodes = static_cast<std::int64_t>(nodes_ready(view, root).size());
      return nodes -
             share(json::find(root, {"spec", "updateStrategy", "rollingUpdate", "maxUnavailable"}),
                   nodes, true);
    }
    const json::value* limits = json::find(root, {"spec", "strategy", "rollingUpdate"});
    if (limits == nullptr) return std::nullopt;
    const std::int64_t missing =
        share(json::find(*limits, {"maxUnavailable"}), size_of(root), false);
    const std::int64_t surge = share(json::find(*limits, {"maxSurge"}), size_of(root), true);
    return size_of(root) - (missing == 0 && surge == 0 ? 1 : missing);
  }

  static std::set<std::string_view> nodes_ready(const View& view, const json::value& set) {
    std::set<std::string_view> out;
    for (const Object& pod : controlled_by(view.of("pods"), set)) {
      if (pod_ready(*pod)) out.insert(json::get_string(*pod, {"spec", "nodeName"}));
    }
    return out;
  }

  static std::int64_t count_ready(const View& view, const json::value& root) {
    if (api::kind(root) == "DaemonSet") {
      return static_cast<std::int64_t>(nodes_ready(view, root).size());
    }
    std::set<std::string_view> owners{api::uid(root)};
    for (const Object& set : controlled_by(view.of("replicasets.apps"), root)) {
      owners.insert(api::uid(*set));
    }
    return std::ranges::count_if(view.of("pods"), [&](const Object& pod) {
      return pod_ready(*pod) && std::ranges::any_of(owners, [&](std::string_view uid) {
               return api::controlled_by(*pod, uid);
             });
    });
  }

  std::map<std::string, std::int64_t> least_ = {};  // by uid
};

}  // namespace

std::vector<std::unique_ptr<Checker>> make_apps() {
  std::vector<std::unique_ptr<Checker>> out;
  out.push_back(std::make_unique<AppReplicas>());
  out.push_back(std::make_unique<AppOrder>());
  out.push_back(std::make_unique<AppSurge>());
  out.push_back(std::make_unique<AppDaemons>());
  out.push_back(std::make_unique<AppCron>());
  out.push_back(std::make_unique<AppAvailable>());
  return out;
}

}  // namespace skiff::sim::checkers
