// How the agent runs lifecycle hooks: when is the plan's, on their own threads is here.
#include <fmt/format.h>

#include "api/meta.h"
#include "node/agent_impl.h"

namespace skiff::node {

void Agent::Impl::begin_hook(Pod& pod, const PodActions::Hook& hook) {
  const json::value* container = find_container(*pod.object, hook.container);
  const json::value* handler = container == nullptr ? nullptr : find_hook(*container, hook.kind);
  if (handler == nullptr || !pod.sandbox) return;
  pod.hooks[{hook.container, hook.kind}] = {.attempt = hook.attempt};
  std::stop_source give_up;
  pod.hook_stops[{hook.container, hook.kind}] = give_up;
  const bool host = json::get_bool(*pod.object, {"spec", "hostNetwork"}).value_or(false);
  HookRequest request{.pod_uid = pod.uid,
                      .pod_ip = host ? options_.node_address : pod.sandbox->ip,
                      .container = *container,
                      .handler = *handler};
  hookers_.run([this, hook, give_up, request = std::move(request)](const std::stop_token& all) {
    const std::stop_callback with_all(all, [give_up]() mutable { give_up.request_stop(); });
    const Result<void> done = run_hook(runtime_, request, give_up.get_token());
    post([uid = request.pod_uid, hook, done](Impl& agent) {
      if (!done) {
        agent.log(fmt::format("{} hook of container {} in pod {}: {}", hook_field(hook.kind),
                              hook.container, uid, done.error().message));
      }
      agent.hooked(uid, hook, done.has_value());
    });
  });
}

void Agent::Impl::hooked(const std::string& uid, const PodActions::Hook& hook, bool well) {
  const auto found = pods_.find(uid);
  if (found == pods_.end() || !found->second.object) return;
  Pod& pod = found->second;
  const bool start = hook.kind == HookKind::kPostStart;
  if (!well) {
    // Why is not told: what a hook says may be secret.
    events_.record(*pod.object,
                   {true, start ? "FailedPostStartHook" : "FailedPreStopHook",
                    start ? "PostStartHook failed" : "PreStopHook failed", hook.container},
                   clock_.now());
  }
  const auto run = pod.hooks.find({hook.container, hook.kind});
  if (run == pod.hooks.end() || run->second.attempt != hook.attempt) return;
  run->second.ended_well = well;
  visit(uid);
}

// A hook whose container has ended has nobody left to speak to.
void Agent::Impl::give_up_hooks(Pod& pod) {
  std::erase_if(pod.hooks, [&](const auto& entry) {
    const auto& [container, kind] = entry.first;
    bool running = false;
    if (pod.sandbox && pod.sandbox->alive) {
      for (const ContainerRecord& record : pod.sandbox->containers) {
        running = running || (record.name == container && record.attempt == entry.second.attempt &&
                              record.state == ContainerState::kRunning);
      }
    }
    if (running) return false;
    const auto stop = pod.hook_stops.find(entry.first);
    if (stop != pod.hook_stops.end()) {
      stop->second.request_stop();
      pod.hook_stops.erase(stop);
    }
    return true;
  });
}

}  // namespace skiff::node
