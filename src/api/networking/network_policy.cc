#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "api/cells.h"
#include "api/checks.h"
#include "api/help.h"
#include "api/networking/networking.h"
#include "api/rules.h"
#include "base/ip.h"
#include "base/names.h"
#include "schema/causes.h"

namespace skiff::api {
namespace {

using schema::child;

struct Direction {
  std::string_view rules, peers;
};
constexpr Direction kDirections[] = {{"ingress", "from"}, {"egress", "to"}};

void default_ports(json::object& spec, std::string_view rules) {
  json::value* list = spec.if_contains(rules);
  if (list == nullptr || !list->is_array()) return;
  for (json::value& rule : list->get_array()) {
    json::object* one = rule.if_object();
    json::value* ports = one == nullptr ? nullptr : one->if_contains("ports");
    if (ports == nullptr || !ports->is_array()) continue;
    for (json::value& port : ports->get_array()) {
      if (json::object* o = port.if_object()) {
        json::value& protocol = (*o)["protocol"];
        if (protocol.is_null()) protocol = "TCP";
      }
    }
  }
}

void set_network_policy_defaults(json::value& object) {
  json::object* root = object.if_object();
  json::object* spec = root == nullptr ? nullptr : object_in(*root, "spec");
  if (spec == nullptr) return;
  object_in(*spec, "podSelector");
  for (const Direction& d : kDirections) default_ports(*spec, d.rules);
  if (!json::get_array(object, {"spec", "policyTypes"}).empty()) return;
  json::value& types = (*spec)["policyTypes"];
  if (!types.is_null() && !types.is_array()) return;
  types = json::array{"Ingress"};
  if (!json::get_array(object, {"spec", "egress"}).empty()) {
    types.get_array().emplace_back("Egress");
  }
}

void check_port_number(std::int64_t n, const std::string& path, Causes& out) {
  if (n < 1 || n > 65535) {
    out.push_back(schema::invalid(path, n, "must be between 1 and 65535, inclusive"));
  }
}

void check_policy_port(const json::value& port, const std::string& path, Causes& out) {
  const std::string_view protocol = json::get_string(port, {"protocol"});
  if (present(port, {"protocol"}) != nullptr && !is_one_of(protocol, {"TCP", "UDP", "SCTP"})) {
    out.push_back(schema::unsupported(child(path, "protocol"), json::string(protocol),
                                      {"TCP", "UDP", "SCTP"}));
  }
  const json::value* number = present(port, {"port"});
  const auto end = json::get_int(port, {"endPort"});
  const std::string end_path = child(path, "endPort");
  if (number == nullptr) {
    if (end) {
      out.push_back(
          schema::invalid(end_path, *end, "may not be specified when `port` is not specified"));
    }
  } else if (number->is_string()) {
    if (end) {
      out.push_back(
          schema::invalid(end_path, *end, "may not be specified when `port` is non-numeric"));
    }
    const std::string_view name = json::view(number->get_string());
    for (const std::string& bad : names::check_port_name(name)) {
      out.push_back(schema::invalid(child(path, "port"), *number, bad));
    }
  } else {
    const std::int64_t n = json::get_int(*number, {}).value_or(0);
    check_port_number(n, child(path, "port"), out);
    if (!end) return;
    // The value in this sentence is that of port.
    if (*end < n) {
      out.push_back(schema::invalid(end_path, n, "must be greater than or equal to `port`"));
    }
    check_port_number(*end, end_path, out);
  }
}

std::optional<IpBlock> check_cidr(std::string_view text, const std::string& path,
                                  const std::set<std::string>& known, Causes& out) {
  const auto block = parse_cidr(text);
  if (!block && !known.contains(std::string(text))) {
    out.push_back(
        schema::invalid(path, json::string(text),
                        "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"));
  }
  return block;
}

void check_block(const json::value& block, const std::string& path,
                 const std::set<std::string>& known, Causes& out) {
  const std::string_view cidr = json::get_string(block, {"cidr"});
  if (cidr.empty()) {
    out.push_back(schema::required(child(path, "cidr")));
    return;
  }
  const auto whole = check_cidr(cidr, child(path, "cidr"), known, out);
  if (!whole) return;
  const json::array& except = json::get_array(block, {"except"});
  for (std::size_t i = 0; i < except.size(); ++i) {
    const std::string at = child(child(path, "except"), i);
    const auto part = check_cidr(json::get_string(except[i], {}), at, known, out);
    if (!part) continue;
    if (!whole->contains(part->network()) || whole->prefix >= part->prefix) {
      out.push_back(schema::invalid(at, except[i], "must be a strict subset of `cidr`"));
    }
  }
}

void check_peer(const json::value& peer, const std::string& path,
                const std::set<std::string>& known, Causes& out) {
  int kinds = 0;
  for (const std::string_view field : {"podSelector", "namespaceSelector"}) {
    if (const json::value* selector = present(peer, {field})) {
      ++kinds;
      check_label_selector(selector, child(path, field), out);
    }
  }
  const json::value* block = present(peer, {"ipBlock"});
  if (block != nullptr) {
    ++kinds;
    check_block(*block, child(path, "ipBlock"), known, out);
  }
  if (kinds == 0) {
    out.push_back(schema::required(path, "must specify a peer"));
  } else if (kinds > 1 && block != nullptr) {
    out.push_back(schema::forbidden(path, "may not specify both ipBlock and another peer"));
  }
}

void check_network_policy_spec(const json::value& spec, const std::set<std::string>& known,
                               Causes& out) {
  check_label_selector(json::find(spec, {"podSelector"}), "spec.podSelector", out);
  for (const Direction& d : kDirections) {
    const json::array& rules = json::get_array(spec, {d.rules});
    for (std::size_t i = 0; i < rules.size(); ++i) {
      const std::string path = child(child("spec", d.rules), i);
      const json::array& ports = json::get_array(rules[i], {"ports"});
      for (std::size_t k = 0; k < ports.size(); ++k) {
        check_policy_port(ports[k], child(child(path, "ports"), k), out);
      }
      const json::array& peers = json::get_array(rules[i], {d.peers});
      for (std::size_t k = 0; k < peers.size(); ++k) {
        check_peer(peers[k], child(child(path, d.peers), k), known, out);
      }
    }
  }
  const json::array& types = json::get_array(spec, {"policyTypes"});
  if (types.size() > 2) {
    out.push_back(
        schema::invalid("spec.policyTypes", types, "may not specify more than two policyTypes"));
    return;
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (is_one_of(json::get_string(types[i], {}), {"Ingress", "Egress"})) continue;
    out.push_back(
        schema::unsupported(child("spec.policyTypes", i), types[i], {"Ingress", "Egress"}));
  }
}

// Every block the policy names, with its path.
std::vector<std::pair<std::string, std::string>> blocks(const json::value& object) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const Direction& d : kDirections) {
    const json::array& rules = json::get_array(object, {"spec", d.rules});
    for (std::size_t i = 0; i < rules.size(); ++i) {
      const json::array& peers = json::get_array(rules[i], {d.peers});
      for (std::size_t k = 0; k < peers.size(); ++k) {
        const json::value* block = present(peers[k], {"ipBlock"});
        if (block == nullptr) continue;
        const std::string path = fmt::format("spec.{}[{}].{}[{}].ipBlock", d.rules, i, d.peers, k);
        out.emplace_back(child(path, "cidr"), json::get_string(*block, {"cidr"}));
        const json::array& except = json::get_array(*block, {"except"});
        for (std::size_t n = 0; n < except.size(); ++n) {
          out.emplace_back(child(child(path, "except"), n), json::get_string(except[n], {}));
        }
      }
    }
  }
  return out;
}

std::vector<Cause> validate_network_policy(const json::value& object, const Admission& context) {
  Causes out;
  static const json::value kNothing = json::object();
  const json::value* found = json::find(object, {"spec"});
  const json::value& spec = found == nullptr ? kNothing : *found;
  check_network_policy_spec(spec, {}, out);
  if (context.old == nullptr) return out;
  // The real server checks an update twice, the second time without complaint about old blocks.
  std::set<std::string> known;
  for (const auto& [path, text] : blocks(*context.old)) known.insert(text);
  check_network_policy_spec(spec, known, out);
  return out;
}

void warn_of_block(const std::string& path, const std::string& text,
                   std::vector<std::string>& out) {
  const auto block = parse_cidr(text);
  if (!block) return;
  const std::size_t before = out.size();
  if (block->address != block->network()) {
    out.push_back(fmt::format(
        "{}: CIDR value \"{}\" is ambiguous in this context (should be \"{}\" or \"{}/{}\"?)", path,
        text, block->text(), block->address.text(), block->v4 ? 32 : 128));
  }
  const std::size_t slash = text.find('/');
  const std::string length = text.substr(slash + 1);
  const bool mapped = !block->v4 && block->address.v4();
  if (!is_strict_ip(text.substr(0, slash)) || (length.size() > 1 && length[0] == '0') || mapped) {
    out.push_back(
        fmt::format("{}: non-standard CIDR value \"{}\" will be considered invalid in a "
                    "future Kubernetes release: use \"{}\"",
                    path, text, block->text()));
  }
  const std::string canonical = fmt::format("{}/{}", block->address.text(), block->prefix);
  if (out.size() == before && !block->v4 && canonical != text) {
    out.push_back(
        fmt::format("{}: IPv6 CIDR value \"{}\" should be in RFC 5952 canonical format (\"{}\")",
                    path, text, canonical));
  }
}

std::vector<std::string> network_policy_warnings(const json::value& object, const Admission&) {
  std::vector<std::string> out;
  for (const auto& [path, text] : blocks(object)) warn_of_block(path, text, out);
  return out;
}

json::array network_policy_cells(const json::value& object, std::int64_t now_s) {
  return {selector_cell(json::find(object, {"spec", "podSelector"})),
          json::string(age_cell(object, now_s))};
}

}  // namespace

Kind network_policy_kind() {
  return {.resource = {"networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", true},
          .singular = "networkpolicy",
          .short_names = {"netpol"},
          .schema = "io.k8s.api.networking.v1.NetworkPolicy",
          .columns = {{"Pod-Selector", "string", "", 0,
                       "Selects the pods to which this NetworkPolicy object applies.  The array of "
                       "ingress rules is applied to any pods selected by this field. Multiple "
                       "network policies can select the same set of pods.  In this case, the "
                       "ingress rules for each are combined additively. This field is NOT optional "
                       "and follows standard label selector semantics. An empty podSelector "
                       "matches all pods in this namespace."},
                      {"Age", "string", "", 0, std::string(kAgeHelp)}},
          .set_defaults = set_network_policy_defaults,
          .validate = validate_network_policy,
          .warnings = network_policy_warnings,
          .cells = network_policy_cells};
}

}  // namespace skiff::api
