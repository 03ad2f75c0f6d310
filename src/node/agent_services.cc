// The agent's part in services: what their addresses lead to follows their endpoints.
#include "node/agent_impl.h"
#include "node/names/service_table.h"

namespace skiff::node {
namespace {

// Pods of a deployment become ready one by one; the rules are made once for a handful of them.
constexpr std::chrono::milliseconds kPause{20};

// Pods with a network of their own are never led to the machine's loopback.
ServiceTarget api_target(const ApiAddress& api, bool own_networks) {
  const auto ip = parse_ip(api.host);
  if (!ip || (own_networks && *ip >> 24 == 127)) return {};
  return {.ip = *ip, .port = static_cast<std::uint16_t>(api.port)};
}

}  // namespace

void Agent::Impl::services_changed() {
  if (services_never_) return;
  if (std::exchange(services_stale_, true)) return;
  post_after(kPause, [](Impl& agent) { agent.lead_services(); });
}

// Somebody else's `nft flush ruleset` takes our rules with it and tells nobody.
void Agent::Impl::services_checked() {
  if (!services_led_) return;  // the next attempt is on its way, or none was asked for
  services_again_ = true;
  services_changed();
}

void Agent::Impl::lead_services() {
  // services_led() comes back to it, or has found that there is nothing to come back to.
  if (services_busy_ || services_never_) return;
  services_stale_ = false;
  const bool own_networks = !options_.pod_cidr.empty();
  std::vector<ServicePort> table =
      build_service_table(values(services_mirror_), values(slices_mirror_),
                          api_target(api_, own_networks), !own_networks);
  if (services_led_ && table == services_ && !services_again_) return;
  services_again_ = false;
  services_ = std::move(table);
  services_busy_ = true;
  // A thousand pods may wait to be started, and those before them for their services.
  jobs_.post_urgent([this, ports = services_] {
    const Result<void> done = runtime_.lead_services(ports);
    post([done](Impl& agent) { agent.services_led(done); });
  });
}

void Agent::Impl::services_led(const Result<void>& done) {
  services_busy_ = false;
  const bool before = std::exchange(services_led_, done.has_value());
  services_refused_ = !services_led_;
  if (before != services_led_) names_changed();
  services_never_ = !done && done.error().code == Code::kNotFound;
  // Without a network of its own there is none tomorrow either, which the runtime has told: names
  // lead to pods then.
  if (services_never_) return;
  if (!std::exchange(services_failed_, !done) && !done) log(done.error().message);
  if (services_stale_) return lead_services();
  if (done || std::exchange(services_retry_, true)) return;
  post_after(options_.services_retry, [](Impl& agent) {
    agent.services_retry_ = false;
    agent.services_changed();
  });
}

}  // namespace skiff::node
