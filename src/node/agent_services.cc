// The agent's part in services: what their addresses lead to follows their endpoints.
#include "node/agent_impl.h"
#include "node/names/service_table.h"

namespace skiff::node {
namespace {

// Pods of a deployment become ready one by one; the rules are made once for a handful of them.
constexpr std::chrono::milliseconds kPause{20};
constexpr std::chrono::seconds kRetry{10};

// Pods are never led to the machine's loopback.
ServiceTarget api_target(const ApiAddress& api) {
  const auto ip = parse_ip(api.host);
  if (!ip || *ip >> 24 == 127) return {};
  return {.ip = *ip, .port = static_cast<std::uint16_t>(api.port)};
}

}  // namespace

void Agent::Impl::services_changed() {
  if (std::exchange(services_stale_, true)) return;
  post_after(kPause, [](Impl& agent) { agent.lead_services(); });
}

void Agent::Impl::lead_services() {
  if (services_busy_) return;  // services_led() comes back to it
  services_stale_ = false;
  std::vector<ServicePort> table =
      build_service_table(values(services_mirror_), values(slices_mirror_), api_target(api_));
  if (services_led_ && table == services_) return;
  services_ = std::move(table);
  services_busy_ = true;
  jobs_.post([this, ports = services_] {
    const Result<void> done = runtime_.lead_services(ports);
    post([done](Impl& agent) { agent.services_led(done); });
  });
}

void Agent::Impl::services_led(const Result<void>& done) {
  services_busy_ = false;
  const bool before = std::exchange(services_led_, done.has_value());
  services_refused_ = !services_led_;
  if (before != services_led_) names_changed();
  if (services_stale_) return lead_services();
  if (done) return;
  // Without a network of its own there is none tomorrow either: names lead to pods then.
  if (before) log(done.error().message);
  post_after(kRetry, [](Impl& agent) { agent.services_changed(); });
}

}  // namespace skiff::node
