// Cluster IPs and node ports as rules of nftables: what is sent to a service goes to one of its
// pods. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "node/net/addresses.h"

namespace skiff::node {

struct ServiceTarget {
  std::uint32_t ip = 0;
  std::uint16_t port = 0;
  auto operator<=>(const ServiceTarget&) const = default;
};

// One port of one service.
struct ServicePort {
  std::vector<std::uint32_t> ips = {};  // cluster IP and external ones
  bool udp = false;
  std::uint16_t port = 0;
  std::uint16_t node_port = 0;  // 0: none
  bool sticky = false;          // a client stays with one pod (sessionAffinity ClientIP)
  std::vector<ServiceTarget> targets = {};  // none: connections are refused
  auto operator<=>(const ServicePort&) const = default;
};

struct RulesPlace {
  std::string table = {};
  // Where pods come from: others on this machine may have the same addresses for services of
  // theirs.
  std::string bridge = {};
  Subnet subnet = {};
  Subnet not_here = {};  // cluster IPs that are somebody else's to programs of this machine
};

// A script for `nft -f`, which takes it whole or not at all.
std::string service_rules(const RulesPlace& place, const std::vector<ServicePort>& ports);

}  // namespace skiff::node
