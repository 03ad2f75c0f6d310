#include "node/agent.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/meta.h"
#include "node/agent_impl.h"
#include "node/usage/readings.h"

namespace skiff::node {
namespace {

constexpr std::chrono::seconds kHeartbeat{10};
constexpr std::chrono::seconds kRetry{1};
// Names change in bursts, when a job starts: one rebuild serves many changes. Each looks at every
// pod, so where there are many the pause grows with what a rebuild takes.
constexpr std::chrono::milliseconds kNamesPause{20};
constexpr std::chrono::milliseconds kNamesPauseMax{500};
constexpr int kNamesShare = 25;

api::Resource pods_resource() {
  return {.group = "", .version = "v1", .plural = "pods", .kind = "Pod"};
}
api::Resource services_resource() {
  return {.group = "", .version = "v1", .plural = "services", .kind = "Service"};
}
api::Resource slices_resource() {
  return {.group = "discovery.k8s.io",
          .version = "v1",
          .plural = "endpointslices",
          .kind = "EndpointSlice"};
}
api::Resource mappings_resource() {
  return {.group = "skiff.dev",
          .version = "v1",
          .plural = "imagemappings",
          .kind = "ImageMapping",
          .namespaced = false};
}
api::Resource maps_resource() {
  return {.group = "", .version = "v1", .plural = "configmaps", .kind = "ConfigMap"};
}
api::Resource secrets_resource() {
  return {.group = "", .version = "v1", .plural = "secrets", .kind = "Secret"};
}
api::Resource volumes_resource() {
  return {.group = "",
          .version = "v1",
          .plural = "persistentvolumes",
          .kind = "PersistentVolume",
          .namespaced = false};
}
api::Resource nodes_resource() {
  return {.group = "", .version = "v1", .plural = "nodes", .kind = "Node", .namespaced = false};
}
api::Resource leases_resource() {
  return {.group = "coordination.k8s.io", .version = "v1", .plural = "leases", .kind = "Lease"};
}

// Of a pod that has ended nobody asks more than that it is there: it has no name in the DNS.
Object without_the_past(const Object& pod) {
  if (!finished(*pod)) return pod;
  json::object metadata;
  for (const std::string_view field : {"namespace", "name", "uid", "resourceVersion"}) {
    if (const json::value* there = json::find(*pod, {"metadata", field})) metadata[field] = *there;
  }
  return std::make_shared<const json::value>(
      json::object{{"metadata", std::move(metadata)},
                   {"status", {{"phase", json::get_string(*pod, {"status", "phase"})}}}});
}

}  // namespace

Agent::Agent(client::Client& client, Runtime& runtime, const env::Clock& clock,
             AgentOptions options)
    : impl_(std::make_shared<Impl>(client, runtime, clock, std::move(options))) {}

Agent::~Agent() { stop(); }

void Agent::start(ApiAddress api) { impl_->start(std::move(api)); }
void Agent::stop() { impl_->stop(); }

std::shared_ptr<const DnsRecords> Agent::dns_records() const { return impl_->dns_records(); }

bool Agent::running(std::string_view pod_uid, std::string_view container, int attempt) const {
  return impl_->running(pod_uid, container, attempt);
}

apiserver::Usage Agent::usage() const { return impl_->usage(); }

Agent::Impl::Impl(client::Client& client, Runtime& runtime, const env::Clock& clock,
                  AgentOptions options)
    : client_(client),
      runtime_(runtime),
      clock_(clock),
      options_(std::move(options)),
      meter_(
          runtime, clock, options_.node_name, [] { return read_machine_usage(); },
          [](int pid) { return read_network(pid); }),
      pods_mirror_(client, pods_resource(), [this] { poll_soon(); }),
      services_mirror_(client, services_resource(), [this] { poll_soon(); }),
      slices_mirror_(client, slices_resource(), [this] { poll_soon(); }),
      mappings_mirror_(client, mappings_resource(), [this] { poll_soon(); }),
      maps_mirror_(
          client, maps_resource(), [this] { poll_soon(); }, Mirror::Keep::kNothing),
      secrets_mirror_(
          client, secrets_resource(), [this] { poll_soon(); }, Mirror::Keep::kNothing),
      volumes_mirror_(client, volumes_resource(), [this] { poll_soon(); }),
      events_(client, options_.node_name),
      tokens_(options_.tokens, clock),
      gpus_(options_.gpus),
      records_(std::make_shared<const DnsRecords>()) {
  pods_mirror_.keep_only(without_the_past);
  node_ = {.name = options_.node_name,
           .address = options_.node_address,
           .version = options_.version,
           .pod_cidr = options_.pod_cidr,
           .extended = options_.capacity,
           .machine = read_machine()};
  if (!options_.gpus.empty()) {
    node_.extended.try_emplace(std::string(kGpuResource), std::to_string(options_.gpus.size()));
  }
}

void Agent::Impl::start(ApiAddress api) {
  api_ = std::move(api);
  const std::weak_ptr<Impl> self = weak_from_this();
  // The runtime may be telling of a change while the agent goes: it holds no part of it.
  runtime_.on_change([self](std::string uid) {
    if (const auto impl = self.lock()) {
      impl->post([uid](Impl& agent) {
        const auto pod = agent.pods_.find(uid);
        if (pod == agent.pods_.end()) return;
        pod->second.known = false;
        pod->second.changed = true;
        agent.visit(uid);
      });
    }
  });
  post([](Impl& agent) { agent.begin(); });
  for (int i = 0; i < std::max(1, options_.workers); ++i) {
    workers_.emplace_back([this] { jobs_.run(); });
  }
  thread_ = std::thread([this] { mailbox_.run(); });
}

void Agent::Impl::stop() {
  if (!thread_.joinable()) return;
  runtime_.on_change({});
  mailbox_.close();
  jobs_.close();
  probers_.stop();
  hookers_.stop();
  pullers_.stop();
  sweepers_.stop();
  thread_.join();
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
}

std::shared_ptr<const DnsRecords> Agent::Impl::dns_records() const {
  const std::lock_guard lock(shared_mutex_);
  return records_;
}

bool Agent::Impl::running(std::string_view pod_uid, std::string_view container, int attempt) const {
  const std::lock_guard lock(shared_mutex_);
  // Who has not looked cannot say that it has ended: an earlier Skiff may have started it.
  if (!begun_ || unseen_.contains(pod_uid)) return true;
  const auto pod = running_.find(pod_uid);
  if (pod == running_.end()) return false;
  return std::ranges::any_of(pod->second.runs, [&](const RunningPod::Run& run) {
    return run.container == container && run.attempt == attempt;
  });
}

// Work holds no reference to the agent: what is still queued when it goes must not keep it.
void Agent::Impl::post(std::function<void(Impl&)> work) {
  mailbox_.post([this, work = std::move(work)] { work(*this); });
}

void Agent::Impl::post_after(Duration wait, std::function<void(Impl&)> work) {
  mailbox_.post_at(std::chrono::steady_clock::now() + wait,
                   [this, work = std::move(work)] { work(*this); });
}

void Agent::Impl::poll_soon() {
  if (poll_posted_.exchange(true)) return;
  post([](Impl& agent) {
    agent.poll_posted_ = false;
    agent.poll_all();
  });
}

void Agent::Impl::log(std::string text) const {
  if (options_.log) options_.log(std::move(text));
}

void Agent::Impl::begin() {
  heartbeat();
  post_after(options_.resync_every, [](Impl& agent) { agent.resync(); });
  post_after(options_.volumes_every, [](Impl& agent) { agent.check_volumes(); });
  measure();
  look_at_progress(0);
  poll_all();
}

// Pods last: what they need (mappings) is then known.
void Agent::Impl::poll_all() {
  bool well = poll(mappings_mirror_, [this](const client::Event&) { mappings_stale_ = true; });
  if (mappings_stale_) {
    mappings_stale_ = false;
    mappings_ = values(mappings_mirror_);
    images_changed();
  }
  well = poll(services_mirror_,
              [this](const client::Event&) {
                names_changed();
                services_changed();
              }) &&
         well;
  well = poll(slices_mirror_, [this](const client::Event&) { services_changed(); }) && well;
  well = poll_sources(maps_mirror_, SourceKind::kConfigMap) && well;
  well = poll_sources(secrets_mirror_, SourceKind::kSecret) && well;
  well = poll(volumes_mirror_,
              [this](const client::Event& event) {
                if (event.type != client::EventType::kDeleted) reclaim(event.object);
              }) &&
         well;
  const bool pods_known = poll(pods_mirror_, [this](const client::Event& event) {
    names_changed();
    pod_event(event);
  });
  if (pods_known && !adopted_) {
    adopted_ = true;
    adopt(runtime_.list());
    const std::lock_guard lock(shared_mutex_);
    begun_ = true;
    for (const auto& [uid, pod] : pods_) {
      if (!pod.known) unseen_.insert(uid);
    }
  }
  if (well && pods_known) return;
  post_after(kRetry, [](Impl& agent) { agent.poll_soon(); });
}

bool Agent::Impl::poll(Mirror& mirror, const std::function<void(const client::Event&)>& changed) {
  // A watch may hand out its events in pieces.
  for (;;) {
    const auto events = mirror.poll();
    if (!events && events.error().code == Code::kExpired) continue;
    if (!events) {
      log("cannot follow the API: " + events.error().message);
      return false;
    }
    for (const client::Event& event : *events) changed(event);
    if (events->empty()) return true;
  }
}

void Agent::Impl::heartbeat() {
  register_node();
  renew_lease();
  post_after(kHeartbeat, [](Impl& agent) { agent.heartbeat(); });
}

void Agent::Impl::register_node() {
  Result<json::value> node = client_.get(nodes_resource(), "", node_.name);
  const bool first = node_uid_.empty();
  if (!node && node.error().code == Code::kNotFound) {
    client::Write create;
    create.resource = nodes_resource();
    create.body = node_object(node_);
    node = client_.write(create);
  }
  if (!node) return log("cannot register the node: " + node.error().message);
  // The lease is the heartbeat; the status is written when it says something new.
  const bool same = !first && api::uid(*node) == node_uid_ && api::condition_true(*node, "Ready");
  node_uid_ = api::uid(*node);
  if (same) return;
  register_gpus(*node);
  client::Write status;
  status.verb = client::Verb::kMergePatch;
  status.resource = nodes_resource();
  status.name = node_.name;
  status.subresource = "status";
  status.body = json::object{{"status", node_status(node_, *node, clock_.now())}};
  status.synced = false;
  if (const auto done = client_.write(status); !done) {
    node_uid_.clear();
    log("cannot write the node's status: " + done.error().message);
  }
}

void Agent::Impl::renew_lease() {
  const json::value lease = lease_object(node_.name, node_uid_, clock_.now());
  client::Write write;
  write.verb = client::Verb::kMergePatch;
  write.resource = leases_resource();
  write.ns = "kube-node-lease";
  write.name = node_.name;
  write.body = json::object{{"spec", *json::find(lease, {"spec"})}};
  write.synced = false;
  Result<json::value> done = client_.write(write);
  if (!done && done.error().code == Code::kNotFound) {
    write.verb = client::Verb::kCreate;
    write.name.clear();
    write.body = lease;
    done = client_.write(write);
  }
  if (!done) log("cannot renew the node's lease: " + done.error().message);
}

void Agent::Impl::names_changed() {
  if (names_stale_) return;
  names_stale_ = true;
  post_after(names_pause_, [](Impl& agent) { agent.rebuild_names(); });
}

void Agent::Impl::rebuild_names() {
  names_stale_ = false;
  const auto begin = std::chrono::steady_clock::now();
  auto records = std::make_shared<const DnsRecords>(
      build_dns_records(values(pods_mirror_), values(services_mirror_), api_.host, services_led_));
  const auto took = std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - begin);
  names_pause_ = std::clamp<Duration>(took * kNamesShare, kNamesPause, kNamesPauseMax);
  const std::lock_guard lock(shared_mutex_);
  records_.swap(records);
}

}  // namespace skiff::node
