// What the cluster's DNS knows, as one immutable value built from pods and services. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace skiff::node {

using Ipv4 = std::uint32_t;  // in host byte order
std::optional<Ipv4> parse_ipv4(std::string_view text);
std::string ipv4_text(Ipv4 address);

struct SrvTarget {
  std::uint16_t port = 0;
  std::string target = {};  // a name that has an address
};

struct DnsRecords {
  struct Name {
    std::vector<Ipv4> addresses = {};
    std::vector<SrvTarget> services = {};
    std::string alias = {};  // CNAME, of an ExternalName service
  };
  // Full names in lower case, without the last dot. A name that only has names below it is there
  // too, with nothing in it: asked for, it exists.
  std::map<std::string, Name, std::less<>> names = {};
  std::map<Ipv4, std::string> reverse = {};
  // Namespaces that exist for pod names (1-2-3-4.NS.pod.cluster.local), which need no record.
  std::map<std::string, bool, std::less<>> pod_namespaces = {};
};

inline constexpr std::string_view kClusterDomain = "cluster.local";

// A pod with an address belongs to a service of its namespace whose selector it matches, once it is
// ready or the service publishes those that are not. `api` (empty: none) is where the names of the
// API lead: no pod stands behind them. With `cluster_ips` a service that has one is answered with
// it; else nobody carries what is sent there, and names lead to the pods themselves.
DnsRecords build_dns_records(const std::vector<Object>& pods, const std::vector<Object>& services,
                             std::string_view api = {}, bool cluster_ips = false);

// The pod's /etc/resolv.conf; empty: the machine's own (dnsPolicy Default, or no server).
std::string resolv_conf_for(const json::value& pod, std::string_view dns_address);
// The pod's /etc/hosts, with its own name once it has an address: programs look themselves up. With
// `records`, every name of the cluster is in it, for pods that have no DNS server; names of the
// pod's own namespace also in their short forms.
std::string hosts_for(const json::value& pod, const DnsRecords* records);
// That of a pod on the machine's own network: `machine` is the machine's file.
std::string host_network_hosts(const json::value& pod, std::string_view machine);

// spec.hostname, else the pod's name as far as a host name can hold it.
std::string pod_hostname(const json::value& pod);

}  // namespace skiff::node
