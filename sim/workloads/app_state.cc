#include "sim/workloads/app_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "api/meta.h"
#include "sim/workloads/app_bodies.h"

namespace skiff::sim {
namespace {

using Sentence = std::optional<std::string>;
using Path = std::initializer_list<std::string_view>;

std::int64_t number(const json::value& object, Path path, std::int64_t fallback = 0) {
  return json::get_int(object, path).value_or(fallback);
}

std::string_view version_of(const json::value& pod) { return api::annotation(pod, kVersion); }
std::string_view version_wanted(const json::value& root) {
  return json::get_string(root, {"spec", "template", "metadata", "annotations", kVersion});
}

bool selected(const json::object& labels, const json::value& object) {
  return !labels.empty() && std::ranges::all_of(labels, [&](const auto& pair) {
    return json::value(json::string(api::label(object, pair.key()))) == pair.value();
  });
}

bool heard(const json::value& root) {
  return number(root, {"status", "observedGeneration"}) == number(root, {"metadata", "generation"});
}

// The status says `count` in each of these fields.
Sentence miscounts(const json::value& root, std::int64_t count,
                   std::initializer_list<std::string_view> fields) {
  for (const std::string_view field : fields) {
    const std::int64_t told = number(root, {"status", field});
    if (told == count) continue;
    return fmt::format("{} {} says {} {} of {}", api::kind(root), api::name(root), field, told,
                       count);
  }
  if (heard(root)) return std::nullopt;
  return fmt::format("{} {} is at an older generation", api::kind(root), api::name(root));
}

std::vector<Object> living_pods_of(const View& view, const json::value& root) {
  std::vector<Object> out = controlled_by(view.of("pods"), root);
  std::erase_if(out, [](const Object& pod) { return !pod_lives(*pod); });
  return out;
}

// As many pods as asked for, and all of them ready.
Sentence lacks_pods(const View& view, const json::value& root, std::int64_t wanted) {
  const std::vector<Object> pods = living_pods_of(view, root);
  const auto ready = std::ranges::count_if(pods, [](const Object& p) { return pod_ready(*p); });
  if (std::cmp_equal(pods.size(), wanted) && ready == wanted) return std::nullopt;
  return fmt::format("{} {} has {} pods, {} of them ready, and wants {}", api::kind(root),
                     api::name(root), pods.size(), ready, wanted);
}

Sentence replica_set(const View& view, const json::value& set) {
  const std::int64_t wanted = number(set, {"spec", "replicas"}, 1);
  if (auto wrong = lacks_pods(view, set, wanted)) return wrong;
  return miscounts(set, wanted,
                   {"replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"});
}

Sentence deployment(const View& view, const json::value& root) {
  const std::int64_t wanted = number(root, {"spec", "replicas"}, 1);
  std::size_t old = 0;
  const json::value* current = nullptr;
  for (const Object& set : controlled_by(view.of("replicasets.apps"), root)) {
    if (version_wanted(*set) == version_wanted(root)) {
      if (current != nullptr) return fmt::format("{} has two current sets", api::name(root));
      current = set.get();
    } else if (number(*set, {"spec", "replicas"}) != 0) {
      return fmt::format("the old set {} is not at zero", api::name(*set));
    } else {
      ++old;
    }
  }
  if (current == nullptr) return fmt::format("{} has no current set", api::name(root));
  if (number(*current, {"spec", "replicas"}) != wanted) {
    return fmt::format("the current set of {} has another size", api::name(root));
  }
  if (std::cmp_greater(old, number(root, {"spec", "revisionHistoryLimit"}, 10))) {
    return fmt::format("{} keeps {} old sets", api::name(root), old);
  }
  return miscounts(root, wanted,
                   {"replicas", "updatedReplicas", "readyReplicas", "availableReplicas"});
}

Sentence stateful_set(const View& view, const json::value& set) {
  const std::int64_t wanted = number(set, {"spec", "replicas"}, 1);
  if (auto wrong = lacks_pods(view, set, wanted)) return wrong;
  const bool rolls = json::get_string(set, {"spec", "updateStrategy", "type"}) != "OnDelete";
  const std::int64_t start = number(set, {"spec", "ordinals", "start"});
  std::set<std::string> names;
  for (std::int64_t i = start; i < start + wanted; ++i) {
    names.insert(fmt::format("{}-{}", api::name(set), i));
  }
  for (const Object& pod : living_pods_of(view, set)) {
    if (names.erase(std::string(api::name(*pod))) == 0) {
      return fmt::format("{} is no member of {}", api::name(*pod), api::name(set));
    }
    if (rolls && version_of(*pod) != version_wanted(set)) {
      return fmt::format("{} is of an old revision", api::name(*pod));
    }
  }
  if (auto wrong = miscounts(set, wanted, {"replicas", "readyReplicas", "availableReplicas"})) {
    return wrong;
  }
  if (!rolls) return std::nullopt;
  if (json::get_string(set, {"status", "currentRevision"}) !=
      json::get_string(set, {"status", "updateRevision"})) {
    return fmt::format("{} has not taken its update for current", api::name(set));
  }
  return miscounts(set, wanted, {"currentReplicas", "updatedReplicas"});
}

Sentence daemon_set(const View& view, const json::value& set) {
  const json::object& wants = json::get_object(set, {"spec", "template", "spec", "nodeSelector"});
  std::map<std::string_view, std::vector<Object>> by_node;
  for (const Object& pod : living_pods_of(view, set)) {
    by_node[json::get_string(*pod, {"spec", "nodeName"})].push_back(pod);
  }
  std::int64_t fitting = 0;
  for (const Object& node : view.of("nodes")) {
    const std::vector<Object> pods = std::move(by_node[api::name(*node)]);
    by_node.erase(api::name(*node));
    const bool fits = wants.empty() || selected(wants, *node);
    fitting += fits ? 1 : 0;
    if (pods.size() != (fits ? 1 : 0)) {
      return fmt::format("{} has {} pods on {}", api::name(set), pods.size(), api::name(*node));
    }
    if (!fits) continue;
    if (!pod_ready(*pods[0]) || version_of(*pods[0]) != version_wanted(set)) {
      return fmt::format("{} of {} is not ready or old", api::name(*pods[0]), api::name(set));
    }
  }
  if (!by_node.empty()) return fmt::format("{} has a pod without a node", api::name(set));
  if (number(set, {"status", "numberMisscheduled"}) != 0) {
    return fmt::format("{} says that pods are astray", api::name(set));
  }
  return miscounts(set, fitting,
                   {"desiredNumberScheduled", "currentNumberScheduled", "numberReady",
                    "updatedNumberScheduled", "numberAvailable"});
}

Sentence cron_job(const View& view, const json::value& cron) {
  std::map<std::string_view, std::int64_t> ends;
  for (const Object& job : controlled_by(view.of("jobs.batch"), cron)) {
    ++ends[api::condition_true(*job, "Complete") ? "successfulJobsHistoryLimit"
                                                 : "failedJobsHistoryLimit"];
  }
  for (const auto& [limit, count] : ends) {
    if (count > number(cron, {"spec", limit})) {
      return fmt::format("{} keeps {} jobs against {}", api::name(cron), count, limit);
    }
  }
  if (json::get_array(cron, {"status", "active"}).empty()) return std::nullopt;
  return fmt::format("{} says that jobs are active", api::name(cron));
}

Sentence job(const View&, const json::value& job) {
  if (job_ended(job)) return std::nullopt;
  return fmt::format("job {} has not ended", api::name(job));
}

// The sizes of those that control the pods: of a Deployment, not of its sets.
std::int64_t expected_pods(const View& view, const std::vector<Object>& pods) {
  std::map<std::string_view, std::int64_t> sizes;
  for (const std::string resource :
       {"deployments.apps", "replicasets.apps", "statefulsets.apps", "replicationcontrollers"}) {
    for (const Object& root : view.of(resource)) {
      const bool counts = std::ranges::any_of(
          pods, [&](const Object& pod) { return api::controlled_by(*pod, api::uid(*root)); });
      const json::object* above = api::controller_of(*root);
      if (counts && above == nullptr) sizes[api::uid(*root)] = number(*root, {"spec", "replicas"});
      if (!counts || above == nullptr) continue;
      for (const Object& owner : view.of("deployments.apps")) {
        if (!api::controlled_by(*root, api::uid(*owner))) continue;
        sizes[api::uid(*owner)] = number(*owner, {"spec", "replicas"});
      }
    }
  }
  std::int64_t out = 0;
  for (const auto& [uid, size] : sizes) out += size;
  return out;
}

Sentence budget(const View& view, const json::value& budget) {
  std::vector<Object> pods;
  for (const Object& pod : view.of("pods")) {
    if (selected(json::get_object(budget, {"spec", "selector", "matchLabels"}), *pod)) {
      pods.push_back(pod);
    }
  }
  const std::int64_t healthy =
      std::ranges::count_if(pods, [](const Object& pod) { return pod_ready(*pod); });
  const json::value* least = json::find(budget, {"spec", "minAvailable"});
  std::int64_t expected = expected_pods(view, pods);
  std::int64_t desired = 0;
  if (least == nullptr) {
    const json::value* most = json::find(budget, {"spec", "maxUnavailable"});
    desired = std::max<std::int64_t>(0, expected - share(most, expected, true));
  } else {
    if (least->is_int64()) expected = static_cast<std::int64_t>(pods.size());
    desired = share(least, expected, true);
  }
  const std::int64_t allowed = expected > 0 ? std::max<std::int64_t>(0, healthy - desired) : 0;
  if (auto wrong = miscounts(budget, healthy, {"currentHealthy"})) return wrong;
  if (auto wrong = miscounts(budget, desired, {"desiredHealthy"})) return wrong;
  if (auto wrong = miscounts(budget, expected, {"expectedPods"})) return wrong;
  return miscounts(budget, allowed, {"disruptionsAllowed"});
}

Sentence service(const View& view, const json::value& service) {
  const json::object& selector = json::get_object(service, {"spec", "selector"});
  if (selector.empty()) return std::nullopt;
  std::multiset<std::string> wanted;
  std::multiset<std::string> in_slices;
  std::multiset<std::string> in_endpoints;
  for (const Object& pod : view.of("pods")) {
    if (selected(selector, *pod) && pod_ready(*pod)) {
      wanted.emplace(json::get_string(*pod, {"status", "podIP"}));
    }
  }
  for (const Object& slice : controlled_by(view.of("endpointslices.discovery.k8s.io"), service)) {
    for (const json::value& endpoint : json::get_array(*slice, {"endpoints"})) {
      for (const json::value& address : json::get_array(endpoint, {"addresses"})) {
        const bool ready = json::get_bool(endpoint, {"conditions", "ready"}).value_or(false);
        in_slices.insert(ready ? std::string(json::view(address.as_string())) : "not ready");
      }
    }
  }
  for (const Object& endpoints : view.of("endpoints")) {
    if (api::name(*endpoints) != api::name(service)) continue;
    for (const json::value& subset : json::get_array(*endpoints, {"subsets"})) {
      for (const json::value& address : json::get_array(subset, {"addresses"})) {
        in_endpoints.emplace(json::get_string(address, {"ip"}));
      }
    }
  }
  if (in_slices == wanted && in_endpoints == wanted) return std::nullopt;
  return fmt::format("service {} has {} pods, {} in slices and {} in endpoints", api::name(service),
                     wanted.size(), in_slices.size(), in_endpoints.size());
}

Sentence node(const View&, const json::value& node) {
  if (!api::condition_true(node, "Ready")) return fmt::format("{} is not ready", api::name(node));
  if (json::get_array(node, {"spec", "taints"}).empty()) return std::nullopt;
  return fmt::format("{} is tainted", api::name(node));
}

Sentence claim(const View& view, const json::value& claim) {
  if (json::get_string(claim, {"status", "phase"}) != "Bound") {
    // One whose pod went before it had a node waits for the next.
    const bool used = std::ranges::any_of(view.of("pods"), [&](const Object& p) {
      return api::name(claim).ends_with(fmt::format("-{}", api::name(*p)));
    });
    if (!used) return std::nullopt;
    return fmt::format("claim {} is not bound", api::name(claim));
  }
  for (const Object& volume : view.of("persistentvolumes")) {
    if (json::get_string(*volume, {"spec", "claimRef", "uid"}) == api::uid(claim)) {
      return std::nullopt;
    }
  }
  return fmt::format("claim {} has no volume", api::name(claim));
}

Sentence volume(const View&, const json::value& volume) {
  if (json::get_string(volume, {"status", "phase"}) == "Bound") return std::nullopt;
  return fmt::format("volume {} is left over", api::name(volume));
}

Sentence pod(const View&, const json::value& pod) {
  if (api::controller_of(pod) == nullptr) {
    return fmt::format("pod {} is nobody's", api::name(pod));
  }
  return std::nullopt;
}

struct Judge {
  std::string_view resource = {};
  Sentence (*wrong)(const View& view, const json::value& object) = nullptr;
};

constexpr Judge kJudges[] = {
    {"nodes", node},
    {"pods", pod},
    {"deployments.apps", deployment},
    {"replicasets.apps", replica_set},
    {"replicationcontrollers", replica_set},
    {"statefulsets.apps", stateful_set},
    {"daemonsets.apps", daemon_set},
    {"jobs.batch", job},
    {"cronjobs.batch", cron_job},
    {"poddisruptionbudgets.policy", budget},
    {"services", service},
    {"persistentvolumeclaims", claim},
    {"persistentvolumes", volume},
};

}  // namespace

bool job_ended(const json::value& job) {
  return api::condition_true(job, "Complete") || api::condition_true(job, "Failed");
}

bool pod_lives(const json::value& pod) {
  const std::string_view phase = json::get_string(pod, {"status", "phase"});
  return phase != "Succeeded" && phase != "Failed" && !api::deleting(pod);
}

bool pod_ready(const json::value& pod) {
  return pod_lives(pod) && api::condition_true(pod, "Ready");
}

std::vector<Object> controlled_by(const std::vector<Object>& objects, const json::value& owner) {
  std::vector<Object> out;
  std::ranges::copy_if(objects, std::back_inserter(out), [&](const Object& object) {
    return api::controlled_by(*object, api::uid(owner));
  });
  return out;
}

std::int64_t share(const json::value* int_or_percent, std::int64_t total, bool round_up) {
  if (int_or_percent == nullptr) return 0;
  if (int_or_percent->is_int64()) return int_or_percent->get_int64();
  if (!int_or_percent->is_string()) return 0;
  const std::string_view text = json::view(int_or_percent->get_string());
  std::int64_t percent = 0;
  std::from_chars(text.data(), text.data() + text.size(), percent);
  return (total * percent + (round_up ? 99 : 0)) / 100;
}

std::optional<std::string> unsettled_apps(const View& view) {
  for (const auto& [resource, wrong] : kJudges) {
    for (const Object& object : view.of(std::string(resource))) {
      if (api::deleting(*object)) {
        return fmt::format("{} {} is still on its way out", resource, api::name(*object));
      }
      if (auto sentence = wrong(view, *object)) return sentence;
    }
  }
  return std::nullopt;
}

}  // namespace skiff::sim
