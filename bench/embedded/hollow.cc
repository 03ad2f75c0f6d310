#include "bench/embedded/hollow.h"

#include <fmt/format.h>

#include <utility>

#include "api/meta.h"
#include "base/check.h"
#include "node/node_object.h"

namespace skiff::bench {
namespace {

using namespace std::chrono_literals;

const api::Resource kPods{.version = "v1", .plural = "pods", .kind = "Pod"};
const api::Resource kNodes{.version = "v1", .plural = "nodes", .kind = "Node", .namespaced = false};
const api::Resource kLeases{
    .group = "coordination.k8s.io", .version = "v1", .plural = "leases", .kind = "Lease"};
constexpr auto kBeat = 10s;

json::array containers(const json::value& pod, std::string_view phase, const std::string& now) {
  const bool running = phase == "Running";
  json::object state{{"running", {{"startedAt", now}}}};
  if (!running) {
    state = {{"terminated",
              {{"exitCode", 0}, {"reason", "Completed"}, {"startedAt", now}, {"finishedAt", now}}}};
  }
  json::array out;
  for (const json::value& container : json::get_array(pod, {"spec", "containers"})) {
    out.push_back(json::object{{"name", json::string(json::get_string(container, {"name"}))},
                               {"ready", running},
                               {"started", running},
                               {"restartCount", 0},
                               {"image", json::string(json::get_string(container, {"image"}))},
                               {"imageID", ""},
                               {"state", state}});
  }
  return out;
}

}  // namespace

HollowNodes::HollowNodes(EmbeddedWorld& world, int nodes, int pods_per_node)
    : world_(world), client_(world.client()) {
  make_nodes(nodes, pods_per_node);
  beat(true);
  thread_ = std::thread([this] { run(); });
}

HollowNodes::~HollowNodes() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void HollowNodes::make_nodes(int nodes, int pods_per_node) {
  const json::object capacity{
      {"cpu", "64"}, {"memory", "256Gi"}, {"pods", std::to_string(pods_per_node)}};
  const std::string now = rfc3339(world_.clock().now());
  for (int i = 0; i < nodes; ++i) {
    const std::string& name = names_.emplace_back(fmt::format("hollow-{}", i));
    client::Write write{
        .resource = kNodes,
        .body =
            json::object{{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", name}}}}};
    SKIFF_CHECK(client_->write(write).has_value(), "a node can be made");
    write = {.verb = client::Verb::kMergePatch,
             .resource = kNodes,
             .name = name,
             .subresource = "status"};
    write.body =
        json::object{{"status",
                      {{"capacity", capacity},
                       {"allocatable", capacity},
                       {"conditions", json::array{json::object{{"type", "Ready"},
                                                               {"status", "True"},
                                                               {"lastHeartbeatTime", now},
                                                               {"lastTransitionTime", now}}}}}}};
    SKIFF_CHECK(client_->write(write).has_value(), "a node can say that it is ready");
  }
}

void HollowNodes::beat(bool first) {
  const Time now = world_.clock().now();
  for (const std::string& name : names_) {
    client::Write write{
        .resource = kLeases, .ns = "kube-node-lease", .body = node::lease_object(name, "", now)};
    write.synced = false;
    if (!first) {
      write.verb = client::Verb::kMergePatch;
      write.name = name;
    }
    (void)client_->write(write);
  }
}

void HollowNodes::let_go() {
  {
    const std::lock_guard lock(mutex_);
    letting_go_ = woken_ = true;
  }
  changed_.notify_all();
}

void HollowNodes::run() {
  const auto watch = client_->watch(kPods, world_.store().revision(), [this] {
    {
      const std::lock_guard lock(mutex_);
      woken_ = true;
    }
    changed_.notify_all();
  });
  SKIFF_CHECK(watch.has_value(), "pods can be watched");
  auto next_beat = std::chrono::steady_clock::now() + kBeat;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    changed_.wait_until(lock, next_beat, [this] { return stopping_ || woken_; });
    woken_ = false;
    const bool release = std::exchange(letting_go_, false);
    lock.unlock();
    if (release) {
      free_ = true;
      for (const Object& pod : std::exchange(held_, {})) report(*pod, "Succeeded");
    }
    for (auto events = (*watch)->poll();; events = (*watch)->poll()) {
      SKIFF_CHECK(events.has_value(), "a watch that is read goes on");
      if (events->empty()) break;
      for (const client::Event& event : *events) {
        if (event.type != client::EventType::kDeleted) serve(event.object);
      }
    }
    if (std::chrono::steady_clock::now() >= next_beat) {
      beat(false);
      next_beat = std::chrono::steady_clock::now() + kBeat;
    }
    lock.lock();
  }
}

void HollowNodes::serve(const Object& pod) {
  if (json::get_string(*pod, {"spec", "nodeName"}).empty()) return;
  if (api::deleting(*pod)) {
    (void)client_->write({.verb = client::Verb::kDelete,
                          .resource = kPods,
                          .ns = std::string(api::ns(*pod)),
                          .name = std::string(api::name(*pod)),
                          .body = json::object{{"gracePeriodSeconds", 0}},
                          .uid = std::string(api::uid(*pod))});
    return;
  }
  const std::string_view phase = json::get_string(*pod, {"status", "phase"});
  if (phase == "Pending") return report(*pod, "Running");
  if (phase != "Running") return;
  if (free_ || api::label(*pod, kHeldLabel).empty()) return report(*pod, "Succeeded");
  held_.push_back(pod);
  ++held_running_;
}

void HollowNodes::report(const json::value& pod, std::string_view phase) {
  const std::string now = rfc3339(world_.clock().now());
  const char* ready = phase == "Running" ? "True" : "False";
  json::array conditions;
  for (const char* type : {"Initialized", "Ready", "ContainersReady"}) {
    conditions.push_back(
        json::object{{"type", type}, {"status", ready}, {"lastTransitionTime", now}});
  }
  conditions.push_back(
      json::object{{"type", "PodScheduled"}, {"status", "True"}, {"lastTransitionTime", now}});
  client::Write write{.verb = client::Verb::kMergePatch,
                      .resource = kPods,
                      .ns = std::string(api::ns(pod)),
                      .name = std::string(api::name(pod)),
                      .subresource = "status",
                      .uid = std::string(api::uid(pod)),
                      .synced = phase != "Running"};
  write.body = json::object{{"status",
                             {{"phase", json::string(phase)},
                              {"podIP", "10.1.2.3"},
                              {"startTime", now},
                              {"conditions", std::move(conditions)},
                              {"containerStatuses", containers(pod, phase, now)}}}};
  (void)client_->write(write);
}

}  // namespace skiff::bench
