#include "sim/nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "api/core/claims.h"
#include "api/meta.h"
#include "sim/resources.h"

namespace skiff::sim {
namespace {

constexpr Duration kFar = std::chrono::hours(1000);
constexpr Duration kRestartDelay = std::chrono::seconds(10);
constexpr Duration kLease = std::chrono::seconds(10);
constexpr int kKilled = 137;

const api::Resource kLeases = {
    .group = "coordination.k8s.io", .version = "v1", .plural = "leases", .kind = "Lease"};
const api::Resource kVolumes = {.version = "v1",
                                .plural = "persistentvolumes",
                                .kind = "PersistentVolume",
                                .namespaced = false};

bool ended(std::string_view phase) { return phase == "Succeeded" || phase == "Failed"; }

json::array conditions(bool ready) {
  return {json::object{{"type", "Ready"}, {"status", ready ? "True" : "False"}}};
}

// The conditions of the pod, those of others as they are.
json::array with_ready(const json::value& pod, bool ready, Time now) {
  json::array out;
  std::string since = rfc3339(now);
  for (const json::value& known : json::get_array(pod, {"status", "conditions"})) {
    if (json::get_string(known, {"type"}) != "Ready") {
      out.push_back(known);
    } else if (api::condition_true(pod, "Ready") == ready) {
      since = json::get_string(known, {"lastTransitionTime"});
    }
  }
  out.push_back(json::object{
      {"type", "Ready"}, {"status", ready ? "True" : "False"}, {"lastTransitionTime", since}});
  return out;
}

bool restarts(const json::value& pod, int exit_code) {
  const std::string_view policy = json::get_string(pod, {"spec", "restartPolicy"}, "Always");
  return policy == "Always" || (policy == "OnFailure" && exit_code != 0);
}

}  // namespace

Nodes::Nodes(const env::Clock& clock, Random& random, Workload& workload)
    : clock_(clock), random_(random), workload_(workload) {}

void Nodes::add(std::string name, unsigned cpus) { nodes_[std::move(name)].cpus = cpus; }

void Nodes::note(Duration at) { next_ = std::min(next_, std::max(at, clock_.elapsed())); }

Duration Nodes::step(client::Client& client, const View& view, bool calm) {
  calm_ = calm;
  next_ = clock_.elapsed() + kFar;
  std::map<std::string_view, const json::value*> registered;
  for (const Object& node : view.of(kNodes.key())) registered[api::name(*node)] = node.get();
  for (auto& [name, node] : nodes_) {
    const auto known = registered.find(name);
    register_node(client, name, node, known == registered.end() ? nullptr : known->second);
    if (workload_.heartbeats()) renew_lease(client, name, node);
  }
  std::set<std::string_view> present;
  for (const Object& pod : view.of(kPods.key())) {
    present.insert(api::uid(*pod));
    serve(client, *pod);
  }
  reclaim(client, view);
  std::erase_if(processes_, [&](const auto& entry) { return !present.contains(entry.first); });
  return next_ - clock_.elapsed();
}

void Nodes::register_node(client::Client& client, const std::string& name, const Node& node,
                          const json::value* known) {
  const bool lost = node.lost_until > clock_.elapsed();
  if (lost) note(node.lost_until);
  if (lost && workload_.heartbeats()) return;
  if (known != nullptr && api::condition_true(*known, "Ready") != lost) return;
  client::Write write{.verb = client::Verb::kMergePatch, .resource = kNodes, .name = name};
  if (known == nullptr) {
    write.verb = client::Verb::kCreate;
    write.name.clear();
    write.body = json::object{{"apiVersion", "v1"},
                              {"kind", "Node"},
                              {"metadata", {{"name", name}}},
                              {"spec", json::object{}}};
    (void)client.write(write);
    write.verb = client::Verb::kMergePatch;
    write.name = name;
  }
  const json::object capacity{{"cpu", std::to_string(node.cpus)}, {"pods", "110"}};
  write.subresource = "status";
  write.body = json::object{
      {"status",
       {{"capacity", capacity}, {"allocatable", capacity}, {"conditions", conditions(!lost)}}}};
  (void)client.write(write);
}

void Nodes::renew_lease(client::Client& client, const std::string& name, Node& node) {
  const Duration now = clock_.elapsed();
  if (node.lost_until > now) return;
  if (now < node.renews) return note(node.renews);
  node.renews = now + kLease;
  note(node.renews);
  client::Write write{.verb = client::Verb::kMergePatch,
                      .resource = kLeases,
                      .ns = "kube-node-lease",
                      .name = name,
                      .synced = false};
  const json::object spec{{"holderIdentity", name}, {"renewTime", rfc3339_micro(clock_.now())}};
  write.body = json::object{{"spec", spec}};
  if (client.write(write)) return;
  write.verb = client::Verb::kCreate;
  write.name.clear();
  write.body = json::object{{"apiVersion", "coordination.k8s.io/v1"},
                            {"kind", "Lease"},
                            {"metadata", {{"name", name}}},
                            {"spec", spec}};
  (void)client.write(write);
}

// The folder of a volume that nobody wants any more goes, then the object may go.
void Nodes::reclaim(client::Client& client, const View& view) {
  for (const Object& volume : view.of(kVolumes.key())) {
    const std::string_view phase = json::get_string(*volume, {"status", "phase"});
    const bool leaves = api::deleting(*volume);
    if (leaves ? phase == "Bound" : phase != "Released") continue;
    json::array finalizers;
    for (const json::value& each : json::get_array(*volume, {"metadata", "finalizers"})) {
      if (each != json::value(json::string(api::kFolderFinalizer))) finalizers.push_back(each);
    }
    if (finalizers.size() == json::get_array(*volume, {"metadata", "finalizers"}).size()) continue;
    client::Write write{.verb = client::Verb::kDelete,
                        .resource = kVolumes,
                        .name = std::string(api::name(*volume)),
                        .body = json::object{},
                        .uid = std::string(api::uid(*volume))};
    if (leaves) {
      write.verb = client::Verb::kMergePatch;
      write.body = json::object{{"metadata", {{"finalizers", std::move(finalizers)}}}};
    }
    (void)client.write(write);
  }
}

void Nodes::begin(Process& process, const json::value& pod, Duration delay) {
  process.script = workload_.script(pod, process.restarts, calm_, random_);
  const unsigned factor = nodes_.at(process.node).factor;
  process.begins = clock_.elapsed() + (delay + process.script.start_after) * factor;
  process.ends = process.begins + process.script.run_for * factor;
}

void Nodes::serve(client::Client& client, const json::value& pod) {
  const auto node = nodes_.find(std::string(json::get_string(pod, {"spec", "nodeName"})));
  if (node == nodes_.end() || node->second.lost_until > clock_.elapsed()) return;
  const std::string_view phase = json::get_string(pod, {"status", "phase"});
  const std::string uid(api::uid(pod));
  auto it = processes_.find(uid);
  if (it == processes_.end()) {
    if (ended(phase) && !api::deleting(pod)) return;
    it = processes_.emplace(uid, Process{.node = node->first, .address = ++addresses_}).first;
    // The server says it runs and we know nothing of it: it died with the machine.
    it->second.killed = phase == "Running";
    if (!it->second.killed) begin(it->second, pod, {});
  }
  Process& process = it->second;
  if (api::deleting(pod)) return stop(client, pod, process);
  const Duration now = clock_.elapsed();
  const int exit_code = process.killed ? kKilled : process.script.exit_code;
  if ((process.killed || now >= process.ends) && restarts(pod, exit_code)) {
    ++process.restarts;
    process.killed = false;
    begin(process, pod, kRestartDelay);
  }
  report(client, pod, process);
  if (process.killed) return;
  if (now < process.begins) return note(process.begins);
  if (now < process.ends) note(process.ends);
}

void Nodes::stop(client::Client& client, const json::value& pod, Process& process) {
  const Duration now = clock_.elapsed();
  if (process.stops == Duration{}) {
    process.stops =
        now + std::chrono::milliseconds(100 + random_.below(2000)) * nodes_.at(process.node).factor;
  }
  if (now < process.stops) return note(process.stops);
  client::Write write{.verb = client::Verb::kDelete,
                      .resource = kPods,
                      .ns = std::string(api::ns(pod)),
                      .name = std::string(api::name(pod)),
                      .uid = std::string(api::uid(pod))};
  write.body =
      json::object{{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"gracePeriodSeconds", 0}};
  (void)client.write(write);
}

void Nodes::report(client::Client& client, const json::value& pod, const Process& process) {
  const Duration now = clock_.elapsed();
  const bool over = process.killed || now >= process.ends;
  const int exit_code = process.killed ? kKilled : process.script.exit_code;
  std::string_view phase = "Pending";
  // Between restarts a pod stays Running, as Kubernetes has it.
  if (process.restarts > 0 || now >= process.begins) phase = "Running";
  if (over) phase = exit_code == 0 ? "Succeeded" : "Failed";
  const bool ready = !over && now >= process.begins;
  const json::array& known = json::get_array(pod, {"status", "containerStatuses"});
  const auto restarts_known =
      known.empty() ? 0 : json::get_int(known[0], {"restartCount"}).value_or(0);
  if (json::get_string(pod, {"status", "phase"}) == phase && restarts_known == process.restarts &&
      (phase == "Pending" || !known.empty()) && api::condition_true(pod, "Ready") == ready) {
    return;
  }
  json::object state{{"running", json::object{}}};
  if (phase == "Pending") state = {{"waiting", {{"reason", "ContainerCreating"}}}};
  if (over) {
    state = {{"terminated",
              {{"exitCode", exit_code},
               {"reason", process.script.oom ? "OOMKilled"
                          : exit_code == 0   ? "Completed"
                                             : "Error"}}}};
  }
  const json::array& containers = json::get_array(pod, {"spec", "containers"});
  json::array statuses;
  for (const json::value& container : containers) {
    statuses.push_back(json::object{{"name", json::string(json::get_string(container, {"name"}))},
                                    {"ready", ready},
                                    {"restartCount", process.restarts},
                                    {"image", json::string(json::get_string(container, {"image"}))},
                                    {"imageID", ""},
                                    {"state", state}});
  }
  client::Write write{.verb = client::Verb::kMergePatch,
                      .resource = kPods,
                      .ns = std::string(api::ns(pod)),
                      .name = std::string(api::name(pod)),
                      .subresource = "status",
                      .uid = std::string(api::uid(pod)),
                      .synced = over};
  const std::string address = fmt::format("10.{}.{}.{}", 1 + process.address / 65'536,
                                          process.address / 256 % 256, process.address % 256);
  write.body = json::object{{"status",
                             {{"phase", json::string(phase)},
                              {"podIP", address},
                              {"podIPs", {json::object{{"ip", address}}}},
                              {"conditions", with_ready(pod, ready, clock_.now())},
                              {"containerStatuses", std::move(statuses)}}}};
  (void)client.write(write);
}

void Nodes::slow(Random& random, unsigned factor) {
  auto it = nodes_.begin();
  std::advance(it, static_cast<long>(random.below(nodes_.size())));
  it->second.factor = factor;
}

void Nodes::lose(Random& random, Duration how_long) {
  auto it = nodes_.begin();
  std::advance(it, static_cast<long>(random.below(nodes_.size())));
  it->second.lost_until = clock_.elapsed() + how_long;
  for (auto& [uid, process] : processes_) {
    process.killed |= process.node == it->first && clock_.elapsed() < process.ends;
  }
}

void Nodes::calm() {
  for (auto& [name, node] : nodes_) {
    node.factor = 1;
    node.lost_until = {};
  }
}

void Nodes::power_cut() { processes_.clear(); }

}  // namespace skiff::sim
