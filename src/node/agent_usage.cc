// How much the node and its containers use.
#include "api/meta.h"
#include "node/agent_impl.h"

namespace skiff::node {
namespace {

// What is used of each of the machine's GPUs; empty where there are none, or nobody can tell.
Meter::Loads read_loads(const AgentOptions& options) {
  Meter::Loads out;
  if (!options.gpu_loads) return out;
  const auto loads = options.gpu_loads();
  for (std::size_t i = 0; loads && i < loads->size() && i < options.gpus.size(); ++i) {
    out[options.gpus[i].uuid] = (*loads)[i];
  }
  return out;
}

// The object that an event about the pod's job is about; null where it has none.
std::optional<json::value> owner_of(const json::value& pod) {
  const json::object* reference = api::controller_of(pod);
  if (reference == nullptr) return std::nullopt;
  const json::value owner(*reference);
  return json::object{{"apiVersion", json::string(api::api_version(owner))},
                      {"kind", json::string(api::kind(owner))},
                      {"metadata",
                       {{"name", json::string(json::get_string(owner, {"name"}))},
                        {"namespace", json::string(api::ns(pod))},
                        {"uid", json::string(json::get_string(owner, {"uid"}))}}}};
}

}  // namespace

std::vector<RunningPod> Agent::Impl::running_pods() const {
  const std::lock_guard lock(shared_mutex_);
  std::vector<RunningPod> out;
  out.reserve(running_.size());
  for (const auto& [uid, pod] : running_) out.push_back(pod);
  return out;
}

void Agent::Impl::measure() {
  // Beside the agent: the kernel may take its time over counters of many groups.
  probers_.run([this, cpus = node_.machine.cpus](const std::stop_token&) {
    const std::vector<RunningPod> running = running_pods();
    const bool gpus = !options_.gpus.empty();
    meter_.sample(running, gpus);
    if (!gpus) return;
    auto notes = meter_.idle(running, read_loads(options_), static_cast<int>(cpus));
    if (notes.empty()) return;
    post([notes = std::move(notes)](Impl& agent) {
      for (const UsageNote& note : notes) agent.tell_idle(note);
    });
  });
  post_after(options_.measure_every, [](Impl& agent) { agent.measure(); });
}

// Told of the pod, and of the job it belongs to: that is where people look.
void Agent::Impl::tell_idle(const UsageNote& note) {
  const auto found = pods_.find(note.uid);
  if (found == pods_.end() || !found->second.object) return;
  const PodNote event{true, "AcceleratorIdle", note.message, ""};
  events_.record(*found->second.object, event, clock_.now());
  if (const auto owner = owner_of(*found->second.object)) {
    events_.record(*owner, event, clock_.now());
  }
}

apiserver::Usage Agent::Impl::usage() {
  const Meter::Loads loads = read_loads(options_);
  apiserver::Usage out = meter_.usage(running_pods(), loads);
  if (loads.empty() || out.nodes.empty()) return out;
  std::vector<GpuLoad> all;
  for (const auto& [name, load] : loads) all.push_back(load);
  out.nodes[0].more = gpu_usage(all);
  return out;
}

}  // namespace skiff::node
