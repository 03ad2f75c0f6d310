#include "features/workloads/daemon_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "api/meta.h"
#include "features/workloads/adoption.h"
#include "features/workloads/daemon_nodes.h"
#include "features/workloads/pods.h"
#include "features/workloads/revisions.h"

namespace skiff::workloads {
namespace {

constexpr std::string_view kHash = "controller-revision-hash";
constexpr std::string_view kGeneration = "pod-template-generation";
constexpr std::string_view kGenerationOfSet = "deprecated.daemonset.template.generation";
// One plan makes no more than this, so that a typing error does not become one huge write.
constexpr std::size_t kDaemonSetBurst = 250;
// A pod that fails at once is not replaced more often than this.
constexpr Duration kRetry = std::chrono::seconds(10);

// What is on one node. The pods on their way out are in neither.
struct Pair {
  const json::value* fresh = nullptr;
  const json::value* old = nullptr;
  bool crowded = false;  // more than one of a kind: they are thinned out first
};

class DaemonPlan {
 public:
  DaemonPlan(const control::Observed& observed, Time now)
      : set_(*observed.root),
        taken_(observed.owned[0]),
        nodes_(observed.seen[0]),
        refused_(observed.refused),
        now_(now),
        revisions_(set_, observed.owned[1], plan_, kHash),
        template_(daemon_template(set_)) {}

  control::Plan make(const std::vector<Object>& pods) {
    for (const Object& pod : pods) {
      in_use_.insert(fmt::format("{}-{}", api::name(set_), api::label(*pod, kHash)));
      // What has ended and goes is kept by a finalizer at most: it stands in nobody's way. What has
      // no node is nobody's daemon.
      std::string node = target_node(*pod);
      if (node.empty() || (ended(*pod) && api::deleting(*pod))) continue;
      by_node_[std::move(node)].push_back(pod);
    }
    for (auto& [node, list] : by_node_) {
      std::ranges::sort(list, {}, [](const Object& pod) {
        return std::tuple(json::get_string(*pod, {"spec", "nodeName"}).empty(),
                          api::created_at(*pod), api::name(*pod));
      });
    }
    for (const Object& node : nodes_) {
      welcome_[std::string(api::name(*node))] = welcome(template_, *node);
    }
    for (const auto& [node, how] : welcome_) manage(node, how);
    drop_the_lost();
    // A rollout goes on from what is settled.
    if (missing_.empty() && doomed_.empty() && rolls(set_)) roll();
    enact();
    truncate();
    tell();
    return std::move(plan_);
  }

 private:
  std::int64_t limit(std::string_view field, std::int64_t nodes) const {
    if (!rolls(set_)) return 0;
    return scaled(json::find(set_, {"spec", "updateStrategy", "rollingUpdate", field}), nodes,
                  true);
  }
  // The generation counts only for a pod that names no revision: a set that was made again, and
  // adopted the pods of the one before, counts from one again.
  bool updated(const json::value& pod) const {
    const std::string_view hash = api::label(pod, kHash);
    if (!hash.empty()) return hash == revisions_.update_hash();
    const std::string_view generation = api::annotation(set_, kGenerationOfSet);
    return !generation.empty() && api::label(pod, kGeneration) == generation;
  }
  bool available(const json::value& pod) {
    const auto wait = until_available(pod, int_at(set_, {"spec", "minReadySeconds"}), now_);
    if (wait && *wait > Duration(0)) sooner(plan_.requeue_after, *wait);
    return wait && *wait <= Duration(0);
  }
  const std::vector<Object>& on(const std::string& node) const {
    static const std::vector<Object> kNone;
    const auto there = by_node_.find(node);
    return there == by_node_.end() ? kNone : there->second;
  }

  void manage(const std::string& node, Welcome how) {
    const std::vector<Object>& pods = on(node);
    if (how.runs && pods.empty()) {
      missing_.push_back(node);
    } else if (how.stays) {
      thin_out(node, how, pods);
    } else {
      for (const Object& pod : pods) {
        if (!api::deleting(*pod)) doomed_.insert(pod.get());
      }
    }
  }

  // One pod is enough; with a surge an old one stays until the new one is available.
  void thin_out(const std::string& node, Welcome how, const std::vector<Object>& pods) {
    std::vector<const json::value*> running;
    for (const Object& pod : pods) {
      if (api::deleting(*pod)) continue;
      if (ended(*pod)) {
        bury(*pod, node);
      } else {
        running.push_back(pod.get());
      }
    }
    if (limit("maxSurge", 1) == 0) {
      for (std::size_t i = 1; i < running.size(); ++i) doomed_.insert(running[i]);
      return;
    }
    if (running.empty() && how.runs) missing_.push_back(node);
    if (running.size() < 2) return;
    Pair first;
    for (const json::value* pod : running) {
      const json::value*& slot =
          api::label(*pod, kHash) == revisions_.update_hash() ? first.fresh : first.old;
      if (slot == nullptr) {
        slot = pod;
      } else {
        doomed_.insert(pod);
      }
    }
    if (first.fresh == nullptr || first.old == nullptr) return;
    if (!ready(*first.old) || available(*first.fresh)) doomed_.insert(first.old);
  }

  void bury(const json::value& pod, const std::string& node) {
    const Duration wait = api::created_at(pod).value_or(now_) + kRetry - now_;
    const bool failed = phase(pod) == "Failed";
    if (failed && wait > Duration(0)) return sooner(plan_.requeue_after, wait);
    doomed_.insert(&pod);
    plan_.notes.push_back(
        {.warning = failed,
         .reason = failed ? "FailedDaemonPod" : "SucceededDaemonPod",
         .message = fmt::format("Found {} daemon pod {}/{} on node {}, will try to {} it",
                                failed ? "failed" : "succeeded", api::ns(pod), api::name(pod), node,
                                failed ? "kill" : "delete")});
  }

  // Pinned to a node that is gone before they got there: nobody else would collect them.
  void drop_the_lost() {
    for (const auto& [node, pods] : by_node_) {
      if (welcome_.contains(node)) continue;
      for (const Object& pod : pods) {
        const bool bound = !json::get_string(*pod, {"spec", "nodeName"}).empty();
        if (!bound && !api::deleting(*pod)) doomed_.insert(pod.get());
      }
    }
  }

  Pair pair_on(const std::string& node) const {
    Pair out;
    for (const Object& pod : on(node)) {
      if (api::deleting(*pod)) continue;
      const json::value*& slot = updated(*pod) ? out.fresh : out.old;
      out.crowded = out.crowded || slot != nullptr;
      slot = pod.get();
    }
    return out;
  }

  void roll() {
    std::set<std::string> nodes;
    std::int64_t wanted = 0;
    for (const auto& [node, how] : welcome_) {
      wanted += how.runs ? 1 : 0;
      if (how.runs) nodes.insert(node);
    }
    for (const auto& [node, pods] : by_node_) nodes.insert(node);
    const std::int64_t surge = limit("maxSurge", wanted);
    std::int64_t unavailable = limit("maxUnavailable", wanted);
    if (surge > 0) return roll_by_surge(nodes, wanted, surge);
    if (unavailable == 0) unavailable = 1;  // neither one more nor one less: nothing would move
    roll_by_deletion(nodes, unavailable);
  }

  void roll_by_deletion(const std::set<std::string>& nodes, std::int64_t most) {
    std::int64_t unavailable = 0;
    std::vector<const json::value*> candidates;
    for (const std::string& node : nodes) {
      const Pair pair = pair_on(node);
      const bool one = !pair.crowded && (pair.fresh == nullptr) != (pair.old == nullptr);
      if (!one) {
        ++unavailable;
      } else if (pair.fresh != nullptr) {
        unavailable += available(*pair.fresh) ? 0 : 1;
      } else if (available(*pair.old)) {
        candidates.push_back(pair.old);
      } else {
        doomed_.insert(pair.old);  // it does no good anyway
        ++unavailable;
      }
    }
    for (const json::value* pod : candidates) {
      if (unavailable++ >= most) return;
      doomed_.insert(pod);
    }
  }

  void roll_by_surge(const std::set<std::string>& nodes, std::int64_t wanted, std::int64_t most) {
    std::int64_t surging = 0;
    std::int64_t good = 0;
    std::vector<std::string> candidates;
    std::vector<const json::value*> unwelcome;
    for (const std::string& node : nodes) {
      const Pair pair = pair_on(node);
      if (pair.crowded) {
        ++surging;
        continue;
      }
      const json::value* first = pair.old != nullptr ? pair.old : pair.fresh;
      const bool works = first != nullptr && available(*first);
      good += works ? 1 : 0;
      if (pair.old == nullptr) continue;
      const auto how = welcome_.find(node);
      const bool runs = how != welcome_.end() && how->second.runs;
      if (pair.fresh != nullptr) {
        if (available(*pair.fresh)) {
          doomed_.insert(pair.old);
        } else {
          ++surging;
        }
      } else if (works) {
        runs ? candidates.push_back(node) : unwelcome.push_back(pair.old);
      } else if (runs) {
        missing_.push_back(node);
      } else {
        doomed_.insert(pair.old);
      }
    }
    for (const std::string& node : candidates) {
      if (surging++ >= most) break;
      missing_.push_back(node);
    }
    // Where a node is no longer wanted its pod goes when as many as are wanted work elsewhere.
    for (const json::value* pod : unwelcome) {
      if (good-- <= wanted) break;
      doomed_.insert(pod);
    }
  }

  void enact() {
    NewNames names(set_, taken_, now_);
    const std::string prefix = fmt::format("{}-", api::name(set_));
    for (const std::string& node : missing_) {
      if (created_.size() == kDaemonSetBurst) break;
      const std::string name = names.next(prefix);
      json::value pod = pod_from(template_, name, set_);
      json::set(pod, {"metadata", "generateName"}, json::string(prefix));
      json::object& labels = json::make_object(pod, {"metadata", "labels"});
      labels[kHash] = revisions_.update_hash();
      const std::string_view generation = api::annotation(set_, kGenerationOfSet);
      if (!generation.empty()) labels[kGeneration] = json::string(generation);
      pin(pod, node);
      plan_.writes.push_back(creation(pod_resource(), set_, std::move(pod)));
      created_.push_back(name);
    }
    const std::size_t left_out = refused_ ? leave_out(plan_, *refused_).size() : 0;
    if (left_out > 0) {
      plan_.notes.push_back({.warning = true,
                             .reason = "FailedCreate",
                             .message = "Error creating: " + refused_->message});
    }
    created_.resize(created_.size() - left_out);
    for (const std::string& name : created_) {
      plan_.notes.push_back({.reason = "SuccessfulCreate", .message = "Created pod: " + name});
    }
    std::size_t deleted = 0;
    for (const auto& [node, pods] : by_node_) {
      for (const Object& pod : pods) {
        if (!doomed_.contains(pod.get()) || deleted++ >= kDaemonSetBurst) continue;
        plan_.writes.push_back(removal(pod_resource(), *pod));
        plan_.notes.push_back({.reason = "SuccessfulDelete",
                               .message = fmt::format("Deleted pod: {}", api::name(*pod))});
      }
    }
  }

  void truncate() {
    in_use_.insert(revisions_.update());
    revisions_.truncate(in_use_, plan_);
  }

  void tell() {
    std::int64_t wanted = 0, there = 0, astray = 0, ready_count = 0, of_update = 0, good = 0;
    for (const auto& [node, how] : welcome_) {
      const std::vector<Object>& pods = on(node);
      if (!how.runs) {
        astray += pods.empty() ? 0 : 1;
        continue;
      }
      ++wanted;
      if (pods.empty()) continue;
      ++there;
      const json::value& first = *pods.front();
      ready_count += ready(first) ? 1 : 0;
      good += available(first) ? 1 : 0;
      of_update += updated(first) ? 1 : 0;
    }
    json::object status = json::get_object(set_, {"status"});
    status["desiredNumberScheduled"] = wanted;
    status["currentNumberScheduled"] = there;
    status["numberMisscheduled"] = astray;
    status["numberReady"] = ready_count;
    set_count(status, "updatedNumberScheduled", of_update);
    set_count(status, "numberAvailable", good);
    set_count(status, "numberUnavailable", wanted - good);
    if (revisions_.collisions() > 0) status["collisionCount"] = revisions_.collisions();
    status["observedGeneration"] = int_at(set_, {"metadata", "generation"});
    json::value after = std::move(status);
    const json::value* before = json::find(set_, {"status"});
    if (before == nullptr || *before != after) plan_.status = std::move(after);
  }

  control::Plan plan_ = {};
  const json::value& set_;
  const std::vector<Object>& taken_;
  const std::vector<Object>& nodes_;
  const std::optional<control::Refusal>& refused_;
  const Time now_;
  const Revisions revisions_;
  const json::value template_;
  std::map<std::string, std::vector<Object>> by_node_ = {};
  std::set<std::string, std::less<>> in_use_ = {};  // revisions
  std::map<std::string, Welcome> welcome_ = {};
  std::vector<std::string> missing_ = {};  // nodes
  std::vector<std::string> created_ = {};  // pods
  std::set<const json::value*> doomed_ = {};
};

std::vector<std::string> any_node(const json::value&) { return {"node"}; }

}  // namespace

const api::Resource& daemon_set_resource() {
  static const api::Resource kResource{
      .group = "apps", .version = "v1", .plural = "daemonsets", .kind = "DaemonSet"};
  return kResource;
}

control::Plan plan_daemon_set(const control::Observed& observed, Time now) {
  control::Plan plan;
  const json::value& set = *observed.root;
  const auto selector = selector_of(set);
  // One that is deleted makes nothing and counts nothing: its pods and revisions go with it.
  if (!selector || api::deleting(set)) return plan;
  adopt(pod_resource(), set, *selector, observed.seen[1], plan);
  adopt(revision_resource(), set, *selector, observed.seen[2], plan);
  const std::vector<Object> pods = kept(pod_resource(), set, *selector, observed.owned[0], plan);
  if (!plan.writes.empty()) return plan;
  return DaemonPlan(observed, now).make(pods);
}

control::Controller daemon_set_controller() {
  return {.name = "daemonset-controller",
          .root = daemon_set_resource(),
          .owned = {pod_resource(), revision_resource()},
          .seen = {{.resource = node_resource(),
                    .wants = any_node,
                    .has = any_node,
                    .alike = alike_to_daemons},
                   orphans(pod_resource()),
                   orphans(revision_resource())},
          .hears_refusals = true,
          .plan = plan_daemon_set};
}

}  // namespace skiff::workloads
