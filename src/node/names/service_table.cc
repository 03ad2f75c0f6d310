#include "node/names/service_table.h"

#include <algorithm>
#include <map>
#include <set>

#include "api/meta.h"

namespace skiff::node {
namespace {

using Slices = std::map<std::pair<std::string, std::string>, std::vector<const json::value*>>;

Slices by_service(const std::vector<Object>& slices) {
  Slices out;
  for (const Object& slice : slices) {
    if (json::get_string(*slice, {"addressType"}) != "IPv4") continue;
    const std::string_view service = api::label(*slice, "kubernetes.io/service-name");
    if (!service.empty()) {
      out[{std::string(api::ns(*slice)), std::string(service)}].push_back(slice.get());
    }
  }
  return out;
}

std::uint16_t port_number(const json::value& port, std::string_view field) {
  const auto number = json::get_int(port, {field}).value_or(0);
  return number > 0 && number < 65536 ? static_cast<std::uint16_t>(number) : 0;
}

// The slice's port of the same name, which has the number that pods listen at.
std::uint16_t target_port(const json::value& slice, std::string_view name) {
  for (const json::value& port : json::get_array(slice, {"ports"})) {
    if (json::get_string(port, {"name"}) == name) return port_number(port, "port");
  }
  return 0;
}

// Those that are ready; where none is, those that still serve while they end.
std::vector<ServiceTarget> targets(const std::vector<const json::value*>& slices,
                                   std::string_view port_name, bool loopback_pods) {
  std::set<ServiceTarget> ready, serving;
  for (const json::value* slice : slices) {
    const std::uint16_t port = target_port(*slice, port_name);
    if (port == 0) continue;
    for (const json::value& endpoint : json::get_array(*slice, {"endpoints"})) {
      const auto condition = [&](std::string_view name) {
        return json::get_bool(endpoint, {"conditions", name});
      };
      const bool is_ready = condition("ready").value_or(true);
      const bool serves = condition("serving").value_or(is_ready);
      for (const json::value& address : json::get_array(endpoint, {"addresses"})) {
        const auto ip = address.is_string() ? parse_ip(json::view(address.get_string()))
                                            : std::optional<std::uint32_t>();
        if (!ip) continue;
        // The loopback of a pod is not ours.
        if (*ip >> 24 == 127 && !(loopback_pods && is_loopback_pod(*ip))) continue;
        if (is_ready) ready.insert({*ip, port});
        if (serves && condition("terminating").value_or(false)) serving.insert({*ip, port});
      }
    }
  }
  const std::set<ServiceTarget>& chosen = ready.empty() ? serving : ready;
  return {chosen.begin(), chosen.end()};
}

// Not its externalIPs: whoever may write a service could lead everybody's traffic to any address of
// the outside to a pod of his own (CVE-2020-8554).
std::vector<std::uint32_t> addresses(const json::value& service) {
  const auto ip = parse_ip(json::get_string(service, {"spec", "clusterIP"}));
  return ip ? std::vector<std::uint32_t>{*ip} : std::vector<std::uint32_t>{};
}

}  // namespace

std::vector<ServicePort> build_service_table(const std::vector<Object>& services,
                                             const std::vector<Object>& slices,
                                             const ServiceTarget& api, bool loopback_pods) {
  const Slices all = by_service(slices);
  static const std::vector<const json::value*> kNone;
  std::vector<ServicePort> out;
  for (const Object& service : services) {
    const std::vector<std::uint32_t> ips = addresses(*service);
    if (ips.empty() || json::get_string(*service, {"spec", "type"}) == "ExternalName") continue;
    if (api::ns(*service) == "default" && api::name(*service) == "kubernetes" && api.ip != 0) {
      for (const std::uint16_t port : std::set<std::uint16_t>{443, api.port}) {
        out.push_back({.ips = ips, .port = port, .targets = {api}});
      }
      continue;
    }
    const auto found = all.find({std::string(api::ns(*service)), std::string(api::name(*service))});
    for (const json::value& port : json::get_array(*service, {"spec", "ports"})) {
      const std::string_view protocol = json::get_string(port, {"protocol"}, "TCP");
      if (protocol != "TCP" && protocol != "UDP") continue;
      out.push_back(
          {.ips = ips,
           .udp = protocol == "UDP",
           .port = port_number(port, "port"),
           .node_port = port_number(port, "nodePort"),
           .sticky = json::get_string(*service, {"spec", "sessionAffinity"}) == "ClientIP",
           .targets = targets(found == all.end() ? kNone : found->second,
                              json::get_string(port, {"name"}), loopback_pods)});
    }
  }
  std::ranges::sort(out);
  return out;
}

}  // namespace skiff::node
