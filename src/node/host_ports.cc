#include "node/host_ports.h"

namespace skiff::node {
namespace {

struct HostPort {
  std::string_view protocol = {};
  std::int64_t port = 0;
  std::string_view ip = {};  // empty: all of them
};

std::vector<HostPort> host_ports(const json::value& pod) {
  std::vector<HostPort> out;
  for (const std::string_view list : {"containers", "initContainers"}) {
    for (const json::value& container : json::get_array(pod, {"spec", list})) {
      const bool stays =
          list == "containers" || json::get_string(container, {"restartPolicy"}) == "Always";
      if (!stays) continue;
      for (const json::value& port : json::get_array(container, {"ports"})) {
        const std::int64_t number = json::get_int(port, {"hostPort"}).value_or(0);
        if (number <= 0) continue;
        std::string_view ip = json::get_string(port, {"hostIP"});
        if (ip == "0.0.0.0") ip = {};
        out.push_back({json::get_string(port, {"protocol"}, "TCP"), number, ip});
      }
    }
  }
  return out;
}

bool clash(const HostPort& a, const HostPort& b) {
  return a.protocol == b.protocol && a.port == b.port &&
         (a.ip.empty() || b.ip.empty() || a.ip == b.ip);
}

}  // namespace

bool wants_host_ports(const json::value& pod) { return !host_ports(pod).empty(); }

std::optional<std::string> port_clash(const json::value& pod, const std::vector<Object>& others) {
  const std::vector<HostPort> wanted = host_ports(pod);
  for (const Object& other : others) {
    for (const HostPort& taken : host_ports(*other)) {
      for (const HostPort& one : wanted) {
        // As the kubelet words it, which is what clients look for.
        if (clash(one, taken)) {
          return "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for "
                 "the requested pod ports";
        }
      }
    }
  }
  return {};
}

}  // namespace skiff::node
