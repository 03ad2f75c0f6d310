// The machine's side of the pods' network: one bridge with the gateway's address, one pair of links
// for each pod, and masquerading towards the outside.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "node/net/addresses.h"
#include "node/net/service_rules.h"

namespace skiff::node {

struct NetworkOptions {
  std::string bridge = {};  // at most 15 bytes
  Subnet subnet = {};
  std::uint32_t gateway = 0;
  Subnet services = {};  // where cluster IPs come from; empty: no way there is made
  bool egress = false;   // lead_services() mends what ensure_egress() made, too
};

// Makes the bridge where it is missing.
Result<void> ensure_bridge(const NetworkOptions& options);
// Says that the Skiff of this bridge runs, for as long as the descriptor is open. What a killed one
// left would else be in the way of others for ever: its route to services, above all. So this also
// removes every network that has no such claim and no pod.
Fd claim_bridge(const std::string& bridge);
// Chooses the first of these networks that leads nowhere else on this machine, and takes it: the
// bridge has its address before anybody else may choose. Skiffs that start at the same moment would
// else choose the same one.
Result<std::string> take_subnet(const std::vector<std::string>& preferred,
                                const std::string& bridge);
// Whether the addresses of services lead somewhere else on this machine. Its own programs are not
// led to services by them then; pods are.
bool services_elsewhere(const NetworkOptions& options);
// Lets pods reach the outside. An error says what is missing; pods still reach each other.
Result<void> ensure_egress(const NetworkOptions& options);
// Leads what is sent to services to their pods, from pods and from this machine; instead of what
// was led before.
Result<void> lead_services(const NetworkOptions& options, const std::vector<ServicePort>& ports);
// Gives the network namespace of process `pid` a loopback, eth0 with `ip`, and a default route.
// What is there already stays.
Result<void> connect_pod(const NetworkOptions& options, const std::string& link, pid_t pid,
                         std::uint32_t ip);
// Removes a link; one that is gone already is fine.
Result<void> remove_link(const std::string& name);
// Undoes ensure_bridge, ensure_egress and lead_services.
Result<void> remove_network(const NetworkOptions& options);

}  // namespace skiff::node
