#include "api/discovery/endpoint_slice.h"

#include <fmt/format.h>

#include <set>

#include "api/cells.h"
#include "api/rules.h"
#include "base/strings.h"

namespace skiff::api {
namespace {

using schema::child;

constexpr std::size_t kMostEndpoints = 1000;
constexpr std::size_t kMostAddresses = 100;
constexpr std::size_t kMostPorts = 20000;
constexpr std::size_t kMostTopologyLabels = 16;
constexpr std::size_t kMostHints = 8;

void set_endpoint_slice_defaults(json::value& object) {
  json::object* root = object.if_object();
  if (root == nullptr) return;
  each(*root, "ports", [](json::object& port) {
    put(port, "name", "");
    put(port, "protocol", "TCP");
  });
}

// Labels count for the generation, as if they were part of the slice.
void prepare_endpoint_slice(json::value& object, const Admission& context) {
  std::int64_t generation = 1;
  if (context.old != nullptr) {
    const auto content = [](const json::value& slice) {
      json::object whole = slice.get_object();
      whole["metadata"] = json::get_object(slice, {"metadata", "labels"});
      return whole;
    };
    const bool changed = content(object) != content(*context.old);
    generation = json::get_int(*context.old, {"metadata", "generation"}).value_or(0) + changed;
  }
  json::set(object, {"metadata", "generation"}, generation);
}

void check_domain(const std::string& path, std::string_view name, Rules& rules) {
  if (name.empty()) {
    rules.say(schema::required(path));
    return;
  }
  if (name.ends_with('.')) name.remove_suffix(1);
  if (const auto bad = names::check_dns1123_subdomain(name); !bad.empty()) {
    rules.say(schema::invalid(path, json::string(name), join(bad, ",")));
  } else if (!name.contains('.')) {
    rules.say(schema::invalid(path, json::string(name),
                              "should be a domain with at least two segments separated by dots"));
  }
}

void check_slice_address(std::string_view type, std::string_view address, const std::string& list,
                         std::size_t i, Rules& rules) {
  const std::string at = child(list, i);
  if (type == "FQDN") {
    check_domain(at, address, rules);
  } else if (type == "IPv4" || type == "IPv6") {
    if (!is_ip(address)) {
      rules.ip(at, address);
      return;
    }
    if (is_ipv4(address) != (type == "IPv4")) {
      rules.say(
          schema::invalid(list, json::string(address), fmt::format("must be an {} address", type)));
    }
    rules.endpoint_ip(at, address);
  }
}

void check_hints(const json::value& hints, std::string_view field, const std::string& path,
                 Rules& rules) {
  const std::string at = child(path, field);
  const json::array& list = json::get_array(hints, {field});
  if (list.size() > kMostHints) {
    rules.say(schema::too_many(at, list.size(), kMostHints));
    return;
  }
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string here = child(child(at, i), "name");
    const std::string_view name = json::get_string(list[i], {"name"});
    if (!seen.insert(name).second) rules.say(schema::duplicate(here, json::string(name)));
    rules.called(here, name,
                 field == "forZones" ? names::check_label_value(name)
                                     : names::check_dns1123_subdomain(name));
  }
}

void check_endpoint(const json::value& endpoint, std::string_view type, const std::string& path,
                    Rules& rules) {
  const std::string list = child(path, "addresses");
  const std::vector<std::string> addresses =
      json::strings(json::get_array(endpoint, {"addresses"}));
  if (addresses.empty()) {
    rules.say(schema::required(list, "must contain at least 1 address"));
  } else if (addresses.size() > kMostAddresses) {
    rules.say(schema::too_many(list, addresses.size(), kMostAddresses));
  }
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    check_slice_address(type, addresses[i], list, i, rules);
  }
  if (present(endpoint, {"nodeName"}) != nullptr) {
    const std::string_view node = json::get_string(endpoint, {"nodeName"});
    rules.called(child(path, "nodeName"), node, names::check_dns1123_subdomain(node));
  }
  const json::object& topology = json::get_object(endpoint, {"deprecatedTopology"});
  const std::string at = child(path, "deprecatedTopology");
  if (topology.size() > kMostTopologyLabels) {
    rules.say(schema::too_many(at, topology.size(), kMostTopologyLabels));
  }
  rules.labels(topology, at);
  if (present(endpoint, {"hostname"}) != nullptr) {
    const std::string_view host = json::get_string(endpoint, {"hostname"});
    rules.called(child(path, "hostname"), host, names::check_dns1123_label(host));
  }
  if (const json::value* hints = present(endpoint, {"hints"})) {
    check_hints(*hints, "forZones", child(path, "hints"), rules);
    check_hints(*hints, "forNodes", child(path, "hints"), rules);
  }
}

void check_slice_ports(const json::value& object, Rules& rules) {
  const json::array& ports = json::get_array(object, {"ports"});
  if (ports.size() > kMostPorts) {
    rules.say(schema::too_many("ports", ports.size(), kMostPorts));
    return;
  }
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const std::string at = child("ports", i);
    const std::string_view name = json::get_string(ports[i], {"name"});
    if (!name.empty()) rules.called(child(at, "name"), name, names::check_dns1123_label(name));
    if (!seen.insert(name).second) {
      rules.say(schema::duplicate(child(at, "name"), json::string(name)));
    }
    rules.one_of(child(at, "protocol"), json::get_string(ports[i], {"protocol"}),
                 {"SCTP", "TCP", "UDP"});
    if (present(ports[i], {"appProtocol"}) != nullptr) {
      const std::string_view app = json::get_string(ports[i], {"appProtocol"});
      rules.called(child(at, "appProtocol"), app, names::check_label_key(app));
    }
  }
}

void check_endpoints(const json::value& object, std::string_view type, Rules& rules) {
  const json::array& endpoints = json::get_array(object, {"endpoints"});
  if (endpoints.size() > kMostEndpoints) {
    rules.say(schema::too_many("endpoints", endpoints.size(), kMostEndpoints));
    return;
  }
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    check_endpoint(endpoints[i], type, child("endpoints", i), rules);
  }
}

std::vector<Cause> validate_endpoint_slice(const json::value& object, const Admission& context) {
  Rules rules;
  const std::string_view type = json::get_string(object, {"addressType"});
  if (rules.needs(object, "", "addressType")) {
    rules.one_of("addressType", type, {"FQDN", "IPv4", "IPv6"});
  }
  check_slice_ports(object, rules);
  const bool unchanged =
      context.old != nullptr &&
      same_value(json::find(object, {"endpoints"}), json::find(*context.old, {"endpoints"}));
  if (!unchanged) check_endpoints(object, type, rules);
  if (context.old != nullptr) {
    rules.same(json::find(object, {"addressType"}), json::find(*context.old, {"addressType"}),
               "addressType");
  }
  return rules.take();
}

// The first three, and how many there are besides.
std::string short_list(const std::vector<std::string>& all, std::string_view none) {
  constexpr std::size_t kShown = 3;
  if (all.empty()) return std::string(none);
  if (all.size() <= kShown) return join(all, ",");
  return fmt::format("{} + {} more...", join({all.begin(), all.begin() + kShown}, ","),
                     all.size() - kShown);
}

json::array endpoint_slice_cells(const json::value& object, std::int64_t now_s) {
  std::vector<std::string> ports, addresses;
  for (const json::value& port : json::get_array(object, {"ports"})) {
    const auto number = json::get_int(port, {"port"});
    const std::string_view name = json::get_string(port, {"name"});
    ports.push_back(number                               ? std::to_string(*number)
                    : present(port, {"name"}) != nullptr ? std::string(name)
                                                         : "*");
  }
  for (const json::value& endpoint : json::get_array(object, {"endpoints"})) {
    for (const std::string& address : json::strings(json::get_array(endpoint, {"addresses"}))) {
      addresses.push_back(address);
    }
  }
  return {json::string(json::get_string(object, {"addressType"})),
          json::string(short_list(ports, "<unset>")),
          json::string(short_list(addresses, "<unset>")), json::string(age_cell(object, now_s))};
}

}  // namespace

std::vector<Kind> discovery_kinds() {
  return {{.resource = {"discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", true},
           .singular = "endpointslice",
           .has_generation = false,  // prepare() counts
           .schema = "io.k8s.api.discovery.v1.EndpointSlice",
           .columns = {{"AddressType", "string"},
                       {"Ports", "string"},
                       {"Endpoints", "string"},
                       {"Age", "string"}},
           .set_defaults = set_endpoint_slice_defaults,
           .prepare = prepare_endpoint_slice,
           .validate = validate_endpoint_slice,
           .cells = endpoint_slice_cells}};
}

}  // namespace skiff::api
