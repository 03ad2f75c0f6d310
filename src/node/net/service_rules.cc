#include "node/net/service_rules.h"

#include <fmt/format.h>

#include <set>

#include "base/strings.h"

namespace skiff::node {
namespace {

std::string_view protocol(const ServicePort& port) { return port.udp ? "udp" : "tcp"; }

// Where a chain ends: one of the targets, by chance or by who asks.
std::string choice(const ServicePort& port) {
  if (port.targets.size() == 1) {
    const ServiceTarget& only = port.targets.front();
    return fmt::format("meta l4proto {} dnat to {}:{}", protocol(port), format_ip(only.ip),
                       only.port);
  }
  std::vector<std::string> places;
  for (const ServiceTarget& target : port.targets) {
    places.push_back(fmt::format("{} : {} . {}", places.size(), format_ip(target.ip), target.port));
  }
  return fmt::format("meta l4proto {} dnat ip addr . port to {} mod {} map {{ {} }}",
                     protocol(port), port.sticky ? "jhash ip saddr" : "numgen random",
                     places.size(), join(places, ", "));
}

// The elements of a map or set; a list must not be empty, nor name a place twice.
struct Elements {
  std::vector<std::string> by_ip = {};    // cluster IPs
  std::vector<std::string> by_node = {};  // node ports
};

// What is known of it is that nobody is there. A connection gets the answer of a closed port.
struct Refused {
  Elements tcp = {}, udp = {};
  Elements& of(const ServicePort& port) { return port.udp ? udp : tcp; }
};

std::string chain(const std::string& name, const std::string& body) {
  return fmt::format("  chain {} {{\n{}  }}\n", name, body);
}

// `before` and `after` what is looked up.
std::string lookups(const Elements& all, std::string_view before, std::string_view after) {
  std::string out;
  if (!all.by_ip.empty()) {
    out += fmt::format("    ip daddr . meta l4proto . th dport {}{{ {} }}{}\n", before,
                       join(all.by_ip, ", "), after);
  }
  if (!all.by_node.empty()) {
    out += fmt::format("    fib daddr type local meta l4proto . th dport {}{{ {} }}{}\n", before,
                       join(all.by_node, ", "), after);
  }
  return out;
}

// What services need, but for those addresses of theirs that are in `left_out`.
struct Plan {
  std::string chains = {};  // one for each port that leads somewhere
  Elements led = {};
  Refused refused = {};

  std::string lead() const { return lookups(led, "vmap ", ""); }
  std::string refuse() const {
    return lookups(refused.tcp, "", " reject with tcp reset") + lookups(refused.udp, "", " reject");
  }
};

Plan plan(const std::vector<ServicePort>& ports, const Subnet& left_out) {
  Plan out;
  std::set<std::string> taken;  // of two services with one place the first has it
  const auto add = [&](std::vector<std::string>& list, std::string place,
                       const std::string& verdict) {
    if (taken.insert(place).second) list.push_back(place + verdict);
  };
  int number = 0;
  for (const ServicePort& port : ports) {
    std::string verdict;
    if (!port.targets.empty()) {
      const std::string name = fmt::format("service{}", number++);
      out.chains += chain(name, fmt::format("    {}\n", choice(port)));
      verdict = " : goto " + name;
    }
    Elements& into = port.targets.empty() ? out.refused.of(port) : out.led;
    for (const std::uint32_t ip : port.ips) {
      if (left_out.prefix != 0 && left_out.overlaps({ip, 32})) continue;
      add(into.by_ip, fmt::format("{} . {} . {}", format_ip(ip), protocol(port), port.port),
          verdict);
    }
    if (port.node_port != 0) {
      add(into.by_node, fmt::format("{} . {}", protocol(port), port.node_port), verdict);
    }
  }
  return out;
}

}  // namespace

std::string service_rules(const RulesPlace& place, const std::vector<ServicePort>& ports) {
  const Plan all = plan(ports, {}), here = plan(ports, place.not_here);
  // Adding before deleting makes the deletion succeed the first time, too.
  std::string out =
      fmt::format("add table ip {0}\ndelete table ip {0}\ntable ip {0} {{\n", place.table);
  out += all.chains;
  out += chain("services", all.lead()) + chain("refusals", all.refuse());
  const bool same = place.not_here.prefix == 0;
  if (!same) out += chain("services_here", here.lead()) + chain("refusals_here", here.refuse());
  const std::string_view whose = same ? "" : "_here";
  out +=
      chain("from_pods", fmt::format("    type nat hook prerouting priority dstnat;\n"
                                     "    iifname \"{0}\" jump services\n"
                                     "    iifname != \"{0}\" fib daddr type local jump services\n",
                                     place.bridge));
  out += chain("from_here", fmt::format("    type nat hook output priority -100;\n"
                                        "    jump services{}\n",
                                        whose));
  // Before anybody looks for a route: there may be none to a service's address.
  const auto refuse = [&](std::string_view hook, std::string_view whose_refusals) {
    out +=
        chain(fmt::format("refuse_{}", hook), fmt::format("    type filter hook {} priority -90;\n"
                                                          "    ct state new jump refusals{}\n",
                                                          hook, whose_refusals));
  };
  refuse("prerouting", "");
  refuse("output", whose);
  // Pods answer each other past this machine, which must see the answers to what it has led: it
  // asks in its own name. The same for what comes from the machine's loopback, which pods must
  // never reach.
  out += chain("back", fmt::format("    type nat hook postrouting priority srcnat;\n"
                                   "    ct status dnat ip saddr {1} oifname \"{0}\" masquerade\n"
                                   "    ip saddr 127.0.0.0/8 oifname \"{0}\" masquerade\n",
                                   place.bridge, format_subnet(place.subnet)));
  out += chain("loopback", fmt::format("    type filter hook prerouting priority raw;\n"
                                       "    iifname \"{0}\" ip daddr 127.0.0.0/8 drop\n"
                                       "    iifname \"{0}\" ip saddr 127.0.0.0/8 drop\n",
                                       place.bridge));
  return out + "}\n";
}

}  // namespace skiff::node
