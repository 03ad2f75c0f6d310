#include "sim/nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "api/meta.h"
#include "sim/resources.h"

namespace skiff::sim {
namespace {

constexpr Duration kFar = std::chrono::hours(1000);
constexpr Duration kRestartDelay = std::chrono::seconds(10);
constexpr int kKilled = 137;

bool ended(std::string_view phase) { return phase == "Succeeded" || phase == "Failed"; }

json::array conditions(bool ready) {
  return {json::object{{"type", "Ready"}, {"status", ready ? "True" : "False"}}};
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

Duration Nodes::step(client::Client& client, bool calm) {
  calm_ = calm;
  next_ = clock_.elapsed() + kFar;
  register_nodes(client);
  const auto pods = client.list(kPods, {}, {});
  if (!pods) return std::chrono::milliseconds(10);
  std::set<std::string_view> present;
  for (const Object& pod : pods->items) {
    present.insert(api::uid(*pod));
    serve(client, *pod);
  }
  std::erase_if(processes_, [&](const auto& entry) { return !present.contains(entry.first); });
  return next_ - clock_.elapsed();
}

void Nodes::register_nodes(client::Client& client) {
  for (auto& [name, node] : nodes_) {
    const bool lost = node.lost_until > clock_.elapsed();
    if (lost) note(node.lost_until);
    const auto known = client.get(kNodes, {}, name);
    if (known && api::condition_true(*known, "Ready") != lost) continue;
    client::Write write{.verb = client::Verb::kMergePatch, .resource = kNodes, .name = name};
    if (!known) {
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
    it = processes_.emplace(uid, Process{.node = node->first}).first;
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
  const json::array& known = json::get_array(pod, {"status", "containerStatuses"});
  const auto restarts_known =
      known.empty() ? 0 : json::get_int(known[0], {"restartCount"}).value_or(0);
  if (json::get_string(pod, {"status", "phase"}) == phase && restarts_known == process.restarts &&
      (phase == "Pending" || !known.empty())) {
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
                                    {"ready", phase == "Running"},
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
  write.body = json::object{
      {"status", {{"phase", json::string(phase)}, {"containerStatuses", std::move(statuses)}}}};
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
