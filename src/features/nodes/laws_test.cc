#include "control/testing/laws.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/meta.h"
#include "features/nodes/feature.h"
#include "features/nodes/nodes.h"

namespace skiff::nodes {
namespace {

constexpr std::string_view kLeasesAt = "kube-node-lease";
constexpr int kMeddles = 60;
// After the last meddling every grace and every toleration runs out, also for a controller that
// crashes late and counts from there.
constexpr int kSteps = kMeddles + 200;

// Nodes that beat, fall silent, go and come back, with pods on them.
class NodesAtLarge {
 public:
  void arrange(client::Client& client) {
    *this = NodesAtLarge();
    for (int i = 0; i < 3; ++i) add_node(client, fmt::format("n{}", i));
  }

  bool step(client::Client& client, Time now, Random& random) {
    now_ = now;
    for (const Object& node : all(client, node_resource())) {
      if (beats_.contains(api::name(*node))) beat(client, *node);
    }
    for (const Object& pod : all(client, pod_resource())) {
      const bool served = beats_.contains(json::get_string(*pod, {"spec", "nodeName"}));
      if (served && api::deleting(*pod)) remove(client, pod_resource(), *pod, true);
    }
    if (++steps_ <= kMeddles) meddle(client, random);
    return steps_ < kSteps;
  }

  std::optional<std::string> wrong(client::Client& client) const {
    for (const Object& node : all(client, node_resource())) {
      if (auto sentence = wrong_node(*node)) return sentence;
    }
    for (const Object& pod : all(client, pod_resource())) {
      const std::string node(json::get_string(*pod, {"spec", "nodeName"}));
      if (!client.get(node_resource(), {}, node)) {
        return fmt::format("{} is left of a node that is gone", api::name(*pod));
      }
      const bool ended = json::get_string(*pod, {"status", "phase"}) == "Failed";
      if (!beats_.contains(node) && !api::deleting(*pod) && !ended) {
        return fmt::format("{} is left on a silent node", api::name(*pod));
      }
    }
    return std::nullopt;
  }

  // It goes anyway, its node drives it away, or there is none. One that comes back at this moment
  // nobody can know of.
  bool may_delete(client::Client& client, const json::value& pod) const {
    const auto node = client.get(node_resource(), {}, json::get_string(pod, {"spec", "nodeName"}));
    if (api::deleting(pod) || !node) return true;
    return has_taint(*node, "unreachable") || api::created_at(*node) >= now_;
  }

 private:
  static std::vector<Object> all(client::Client& client, const api::Resource& resource) {
    return client.list(resource, {}, {})->items;
  }
  static void write(client::Client& client, client::Verb verb, const api::Resource& resource,
                    std::string_view ns, std::string_view name, json::value body,
                    std::string_view subresource = {}) {
    (void)client.write({.verb = verb,
                        .resource = resource,
                        .ns = std::string(ns),
                        .name = std::string(name),
                        .subresource = std::string(subresource),
                        .body = std::move(body)});
  }
  static void remove(client::Client& client, const api::Resource& resource,
                     const json::value& object, bool at_once) {
    json::object options;
    if (at_once) options["gracePeriodSeconds"] = 0;
    write(client, client::Verb::kDelete, resource, api::ns(object), api::name(object),
          std::move(options));
  }
  static bool has_taint(const json::value& node, std::string_view which) {
    for (const json::value& taint : json::get_array(node, {"spec", "taints"})) {
      if (json::get_string(taint, {"key"}) == fmt::format("node.kubernetes.io/{}", which)) {
        return true;
      }
    }
    return false;
  }

  std::optional<std::string> wrong_node(const json::value& node) const {
    const bool beats = beats_.contains(api::name(node));
    const json::object* ready = api::condition(node, "Ready");
    const std::string status(ready == nullptr ? ""
                                              : json::get_string(json::value(*ready), {"status"}));
    if (status != (beats ? "True" : "Unknown")) {
      return fmt::format("{} is said to be ready: {}", api::name(node), status);
    }
    if (has_taint(node, "unreachable") == beats) return "a taint says otherwise than the node";
    const bool cordoned = json::get_bool(node, {"spec", "unschedulable"}).value_or(false);
    if (has_taint(node, "unschedulable") != cordoned) return "a cordon has no taint of its own";
    return std::nullopt;
  }

  void add_node(client::Client& client, const std::string& name) {
    write(client, client::Verb::kCreate, node_resource(), {}, {},
          {{"metadata", {{"name", name}}}, {"spec", json::object{}}});
    write(client, client::Verb::kCreate, lease_resource(), kLeasesAt, {},
          {{"metadata", {{"name", name}}}, {"spec", {{"renewTime", "0"}}}});
    beats_.insert(name);
  }

  void beat(client::Client& client, const json::value& node) {
    const std::string_view name = api::name(node);
    write(client, client::Verb::kMergePatch, lease_resource(), kLeasesAt, name,
          {{"spec", {{"renewTime", std::to_string(steps_)}}}});
    if (api::condition_true(node, "Ready")) return;
    write(client, client::Verb::kMergePatch, node_resource(), {}, name,
          {{"status",
            {{"conditions", json::array{json::object{{"type", "Ready"}, {"status", "True"}}}}}}},
          "status");
  }

  void meddle(client::Client& client, Random& random) {
    const std::string name = fmt::format("n{}", random.below(3));
    const auto node = client.get(node_resource(), {}, name);
    if (!node) {
      if (random.chance(30)) add_node(client, name);
      return;
    }
    switch (random.below(10)) {
      case 0:
        beats_.erase(name);
        break;
      case 1:
      case 2:
        beats_.insert(name);
        break;
      case 3:
        write(client, client::Verb::kMergePatch, node_resource(), {}, name,
              {{"spec", {{"unschedulable", random.chance(50)}}}});
        break;
      case 4:
        beats_.erase(name);
        remove(client, node_resource(), *node, false);
        break;
      case 5:
        meddle_with_a_pod(client, random);
        break;
      default:
        add_pod(client, name, random);
        break;
    }
  }

  void meddle_with_a_pod(client::Client& client, Random& random) {
    const std::vector<Object> pods = all(client, pod_resource());
    if (pods.empty()) return;
    const json::value& pod = *pods[random.below(pods.size())];
    if (random.chance(50)) return remove(client, pod_resource(), pod, false);
    write(client, client::Verb::kMergePatch, pod_resource(), api::ns(pod), api::name(pod),
          {{"status", {{"phase", "Failed"}}}}, "status");
  }

  void add_pod(client::Client& client, const std::string& node, Random& random) {
    json::array tolerations;
    if (random.chance(50)) {
      tolerations.push_back(json::object{{"key", "node.kubernetes.io/unreachable"},
                                         {"operator", "Exists"},
                                         {"effect", "NoExecute"},
                                         {"tolerationSeconds", 20}});
    }
    json::object ready{{"type", "Ready"}, {"status", "True"}};
    write(client, client::Verb::kCreate, pod_resource(), "team", {},
          {{"metadata", {{"name", fmt::format("p{}", ++pods_)}}},
           {"spec", {{"nodeName", node}, {"tolerations", std::move(tolerations)}}},
           {"status", {{"phase", "Running"}, {"conditions", json::array{std::move(ready)}}}}});
  }

  std::set<std::string, std::less<>> beats_ = {};
  Time now_ = {};
  int steps_ = 0;
  int pods_ = 0;
};

control::testing::GlobalLawCase laws_of_nodes(NodesAtLarge& world) {
  control::testing::GlobalLawCase laws;
  laws.make = make;
  laws.arrange = [&](client::Client& client, Random&) { world.arrange(client); };
  laws.step = [&](client::Client& client, Time now, Random& random) {
    return world.step(client, now, random);
  };
  laws.wrong = [&](client::Client& client) { return world.wrong(client); };
  laws.may_write = [](const client::Write& write) {
    const std::string& on = write.resource.plural;
    return on == "pods" || (on == "nodes" && write.verb == client::Verb::kMergePatch);
  };
  laws.may_delete = [&](client::Client& client, const json::value& object) {
    return world.may_delete(client, object);
  };
  laws.step_takes = std::chrono::seconds(5);
  laws.cuts_max = 30;
  return laws;
}

TEST(NodeController, keeps_the_five_laws) {
  NodesAtLarge world;
  for (const std::string& sentence : control::testing::check_laws(laws_of_nodes(world))) {
    ADD_FAILURE() << sentence;
  }
}

}  // namespace
}  // namespace skiff::nodes
