// How much the node and its containers use.
#include "node/agent_impl.h"

namespace skiff::node {
namespace {

constexpr std::chrono::seconds kMeasureEvery{10};

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
  probers_.run([this](const std::stop_token&) { meter_.sample(running_pods(), false); });
  post_after(kMeasureEvery, [](Impl& agent) { agent.measure(); });
}

apiserver::Usage Agent::Impl::usage() {
  apiserver::Usage out = meter_.usage(running_pods());
  if (!options_.gpu_loads || out.nodes.empty()) return out;
  if (const auto loads = options_.gpu_loads()) out.nodes[0].more = gpu_usage(*loads);
  return out;
}

}  // namespace skiff::node
