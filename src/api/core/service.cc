#include "api/core/service.h"

#include <fmt/format.h>

#include <set>

#include "api/cells.h"
#include "api/rules.h"
#include "base/ip.h"
#include "base/names.h"
#include "base/selectors.h"
#include "base/strings.h"
#include "schema/causes.h"

namespace skiff::api {
namespace {

using schema::child;

bool headless(const json::value& service) {
  return json::get_string(service, {"spec", "clusterIP"}) == "None";
}

// Reachable from outside the cluster by its own means.
bool exposed(const json::value& service) {
  const std::string_view type = json::get_string(service, {"spec", "type"});
  return type == "LoadBalancer" || type == "NodePort" ||
         (type == "ClusterIP" && !json::get_array(service, {"spec", "externalIPs"}).empty());
}

void default_affinity(json::value& object, json::object& spec) {
  constexpr int kSeconds = 10800;
  put(spec, "sessionAffinity", "None");
  const std::string_view affinity = json::get_string(object, {"spec", "sessionAffinity"});
  if (affinity == "None") spec.erase("sessionAffinityConfig");
  if (affinity == "ClientIP" &&
      !json::get_int(object, {"spec", "sessionAffinityConfig", "clientIP", "timeoutSeconds"})) {
    spec["sessionAffinityConfig"] =
        json::object{{"clientIP", json::object{{"timeoutSeconds", kSeconds}}}};
  }
}

// Where nothing else is told, addresses are of the one family that is here; only a service without
// a selector, whose endpoints are somebody else's, may have both.
void default_families(const json::value& object, json::object& spec) {
  const bool both = headless(object) && json::get_object(object, {"spec", "selector"}).empty();
  put(spec, "ipFamilies", both ? json::array{"IPv4", "IPv6"} : json::array{"IPv4"});
  put(spec, "ipFamilyPolicy", both ? "RequireDualStack" : "SingleStack");
}

void set_service_defaults(json::value& object) {
  if (!object.is_object()) return;
  json::object& spec = json::make_object(object, {"spec"});
  default_affinity(object, spec);
  put(spec, "type", "ClusterIP");
  each(spec, "ports", [](json::object& port) {
    put(port, "protocol", "TCP");
    const json::value* number = port.if_contains("port");
    const json::value copy = number == nullptr ? json::value() : *number;
    if (!copy.is_null()) put(port, "targetPort", copy);
  });
  if (exposed(object)) put(spec, "externalTrafficPolicy", "Cluster");
  const std::string_view type = json::get_string(object, {"spec", "type"});
  if (type == "ClusterIP" || type == "NodePort" || type == "LoadBalancer") {
    put(spec, "internalTrafficPolicy", "Cluster");
  }
  if (type == "LoadBalancer") put(spec, "allocateLoadBalancerNodePorts", true);
}

void check_service_port(const json::value& port, const std::string& path, bool several,
                        std::set<std::string_view>& seen, Rules& rules) {
  const std::string_view name = json::get_string(port, {"name"});
  if (!name.empty()) {
    rules.called(child(path, "name"), name, names::check_dns1123_label(name));
    if (!seen.insert(name).second) {
      rules.say(schema::duplicate(child(path, "name"), json::string(name)));
    }
  } else if (several) {
    rules.say(schema::required(child(path, "name")));
  }
  rules.port(child(path, "port"), json::get_int(port, {"port"}).value_or(0));
  rules.one_of(child(path, "protocol"), json::get_string(port, {"protocol"}),
               {"SCTP", "TCP", "UDP"});
  const json::value* target = present(port, {"targetPort"});
  if (target != nullptr && target->is_string()) {
    const std::string_view text = json::view(target->get_string());
    rules.called(child(path, "targetPort"), text, names::check_port_name(text));
  } else {
    rules.port(child(path, "targetPort"),
               target == nullptr ? 0 : json::get_int(*target, {}).value_or(0));
  }
  if (present(port, {"appProtocol"}) != nullptr) {
    const std::string_view app = json::get_string(port, {"appProtocol"});
    rules.called(child(path, "appProtocol"), app, names::check_label_key(app));
  }
}

// The family of a service's name or address, by its type.
void check_type(const json::value& object, std::string_view type, Rules& rules) {
  if (headless(object) && (type == "LoadBalancer" || type == "NodePort")) {
    rules.say(schema::invalid("spec.clusterIPs[0]", "None",
                              fmt::format("may not be set to 'None' for {} services", type)));
  }
  if (type != "ExternalName") return;
  for (const std::string_view field : {"clusterIPs", "ipFamilies", "ipFamilyPolicy"}) {
    if (present(object, {"spec", field}) != nullptr) {
      rules.say(
          schema::forbidden(child("spec", field), "may not be set for ExternalName services"));
    }
  }
  std::string_view name = json::get_string(object, {"spec", "externalName"});
  if (name.ends_with('.')) name.remove_suffix(1);
  if (name.empty()) {
    rules.say(schema::required("spec.externalName"));
  } else {
    rules.called("spec.externalName", name, names::check_dns1123_subdomain(name));
  }
}

void check_session_affinity(const json::value& object, Rules& rules) {
  const std::string_view affinity = json::get_string(object, {"spec", "sessionAffinity"});
  rules.one_of("spec.sessionAffinity", affinity, {"ClientIP", "None"});
  if (affinity != "ClientIP") return;
  const auto seconds =
      json::get_int(object, {"spec", "sessionAffinityConfig", "clientIP", "timeoutSeconds"});
  if (seconds && (*seconds < 1 || *seconds > 86400)) {
    rules.say(schema::invalid("spec.sessionAffinityConfig.clientIP.timeoutSeconds", *seconds,
                              "must be greater than 0 and less than 86400"));
  }
}

void check_addresses(const json::value& object, Rules& rules) {
  const json::array& list = json::get_array(object, {"spec", "clusterIPs"});
  const std::vector<std::string> ips = json::strings(list);
  const std::string_view first = json::get_string(object, {"spec", "clusterIP"});
  if (!first.empty() && !ips.empty() && ips[0] != first) {
    rules.say(schema::invalid("spec.clusterIPs", list, "first value must match `clusterIP`"));
  } else if (first.empty() && !ips.empty()) {
    rules.say(schema::invalid("spec.clusterIPs", list,
                              "must be empty when `clusterIP` is not specified"));
  }
  std::set<std::string> seen;
  const std::vector<std::string> families =
      json::strings(json::get_array(object, {"spec", "ipFamilies"}));
  for (std::size_t i = 0; i < families.size(); ++i) {
    const std::string at = child("spec.ipFamilies", i);
    rules.one_of(at, families[i], {"IPv4", "IPv6"});
    if (!seen.insert(families[i]).second) {
      rules.say(schema::duplicate(at, json::string(families[i])));
    }
  }
  if (present(object, {"spec", "ipFamilyPolicy"}) != nullptr) {
    rules.one_of("spec.ipFamilyPolicy", json::get_string(object, {"spec", "ipFamilyPolicy"}),
                 {"PreferDualStack", "RequireDualStack", "SingleStack"});
  }
  for (std::size_t i = 0; i < ips.size(); ++i) {
    if (i == 0 && ips[i] == "None") {
      if (ips.size() > 1) {
        rules.say(
            schema::invalid("spec.clusterIPs", list, "'None' must be the first and only value"));
      }
      continue;
    }
    rules.ip(child("spec.clusterIPs", i), ips[i]);
  }
  if (ips.size() > 2) {
    rules.say(schema::invalid("spec.clusterIPs", list, "may only hold up to 2 values"));
  }
}

void check_external_addresses(const json::value& object, Rules& rules) {
  const std::vector<std::string> ips =
      json::strings(json::get_array(object, {"spec", "externalIPs"}));
  for (std::size_t i = 0; i < ips.size(); ++i) {
    const std::string at = child("spec.externalIPs", i);
    if (is_ip(ips[i])) {
      rules.endpoint_ip(at, ips[i]);
    } else {
      rules.ip(at, ips[i]);
    }
  }
}

void check_source_ranges(const json::value& object, std::string_view type, Rules& rules) {
  constexpr std::string_view kBad =
      "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
  constexpr std::string_view kOnly = "may only be used when `type` is 'LoadBalancer'";
  constexpr std::string_view kNote = "service.beta.kubernetes.io/load-balancer-source-ranges";
  const auto check = [&](const std::string& at, std::string_view text) {
    if (!parse_cidr(trim(text))) rules.say(schema::invalid(at, json::string(trim(text)), kBad));
  };
  // The path is spelled so.
  const std::string path = "spec.LoadBalancerSourceRanges";
  const auto ranges = json::strings(json::get_array(object, {"spec", "loadBalancerSourceRanges"}));
  const json::object& notes = json::get_object(object, {"metadata", "annotations"});
  if (!ranges.empty()) {
    if (type != "LoadBalancer") rules.say(schema::forbidden(path, kOnly));
    for (std::size_t i = 0; i < ranges.size(); ++i) check(child(path, i), ranges[i]);
  } else if (notes.contains(kNote)) {
    const std::string at = schema::entry("metadata.annotations", kNote);
    if (type != "LoadBalancer") rules.say(schema::forbidden(at, kOnly));
    const std::string_view text = trim(json::get_string(notes.at(kNote), {}));
    if (text.empty()) return;
    for (const std::string_view range : split(text, ',')) check(at, range);
  }
}

void check_same_ports(const json::array& ports, Rules& rules) {
  std::set<std::pair<std::string_view, std::int64_t>> nodes, seen;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const std::int64_t node = json::get_int(ports[i], {"nodePort"}).value_or(0);
    const std::string_view protocol = json::get_string(ports[i], {"protocol"});
    if (node != 0 && !nodes.emplace(protocol, node).second) {
      rules.say(schema::duplicate(child(child("spec.ports", i), "nodePort"), node));
    }
  }
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const std::int64_t number = json::get_int(ports[i], {"port"}).value_or(0);
    const std::string_view protocol = json::get_string(ports[i], {"protocol"});
    if (seen.emplace(protocol, number).second) continue;
    // As the server prints its own type.
    rules.say(
        schema::duplicate(child("spec.ports", i), json::object{{"Name", ""},
                                                               {"Protocol", json::string(protocol)},
                                                               {"AppProtocol", nullptr},
                                                               {"Port", number},
                                                               {"TargetPort", 0},
                                                               {"NodePort", 0}}));
  }
}

void check_traffic(const json::value& object, std::string_view type, Rules& rules) {
  if (present(object, {"spec", "allocateLoadBalancerNodePorts"}) != nullptr &&
      type != "LoadBalancer") {
    rules.say(schema::forbidden("spec.allocateLoadBalancerNodePorts",
                                "may only be used when `type` is 'LoadBalancer'"));
  }
  const std::string_view policy = json::get_string(object, {"spec", "externalTrafficPolicy"});
  if (exposed(object)) {
    rules.one_of("spec.externalTrafficPolicy", policy, {"Cluster", "Local"});
  } else if (!policy.empty()) {
    rules.say(schema::invalid("spec.externalTrafficPolicy", json::string(policy),
                              "may only be set for externally-accessible services"));
  }
  const std::int64_t health = json::get_int(object, {"spec", "healthCheckNodePort"}).value_or(0);
  if (health != 0 && !(type == "LoadBalancer" && policy == "Local")) {
    rules.say(schema::invalid("spec.healthCheckNodePort", health,
                              "may only be set when `type` is 'LoadBalancer' and "
                              "`externalTrafficPolicy` is 'Local'"));
  }
  if (present(object, {"spec", "internalTrafficPolicy"}) != nullptr) {
    rules.one_of("spec.internalTrafficPolicy",
                 json::get_string(object, {"spec", "internalTrafficPolicy"}), {"Cluster", "Local"});
  }
}

void check_service_update(const json::value& object, const json::value& old, Rules& rules) {
  if (json::get_string(object, {"spec", "type"}) == "ExternalName" ||
      json::get_string(old, {"spec", "type"}) == "ExternalName") {
    return;
  }
  const json::array& list = json::get_array(object, {"spec", "clusterIPs"});
  const std::string_view before = json::get_string(old, {"spec", "clusterIP"});
  const std::string_view now = json::get_string(object, {"spec", "clusterIP"});
  if (before.empty() || before == now) return;
  rules.say(schema::invalid(
      "spec.clusterIPs[0]", list.empty() ? json::value() : json::value(list),
      list.empty() ? "primary clusterIP can not be unset" : "may not change once set"));
}

std::vector<Cause> validate_service(const json::value& object, const Admission& context) {
  Rules rules;
  if (context.subresource == "status") return {};
  const std::string_view type = json::get_string(object, {"spec", "type"});
  const json::array& ports = json::get_array(object, {"spec", "ports"});
  if (context.old != nullptr) check_service_update(object, *context.old, rules);
  if (ports.empty() && !headless(object) && type != "ExternalName") {
    rules.say(schema::required("spec.ports"));
  }
  check_type(object, type, rules);
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    check_service_port(ports[i], child("spec.ports", i), ports.size() > 1, seen, rules);
  }
  rules.labels(json::get_object(object, {"spec", "selector"}), "spec.selector");
  check_session_affinity(object, rules);
  if (type != "ExternalName") check_addresses(object, rules);
  check_external_addresses(object, rules);
  rules.one_of("spec.type", type, {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"});
  for (std::size_t i = 0; type == "ClusterIP" && i < ports.size(); ++i) {
    if (json::get_int(ports[i], {"nodePort"}).value_or(0) == 0) continue;
    rules.say(schema::forbidden(child(child("spec.ports", i), "nodePort"),
                                "may not be used when `type` is 'ClusterIP'"));
  }
  check_same_ports(ports, rules);
  check_source_ranges(object, type, rules);
  check_traffic(object, type, rules);
  return rules.take();
}

// What belonged to the type before goes with it, where the client did not ask for it anew.
void drop_of_old_type(json::value& object, const json::value& old) {
  const std::string_view type = json::get_string(object, {"spec", "type"});
  json::object& spec = object.as_object()["spec"].as_object();
  if (type == "ExternalName") {
    for (const std::string_view field : {"clusterIP", "clusterIPs"}) {
      const json::value* before = present(old, {"spec", field});
      if (before != nullptr && spec.contains(field) && spec[field] == *before) spec.erase(field);
    }
  }
  if (type != "ClusterIP" && type != "ExternalName") return;
  for (const std::string_view field : {"externalTrafficPolicy", "healthCheckNodePort",
                                       "allocateLoadBalancerNodePorts", "loadBalancerClass"}) {
    const json::value* was = present(old, {"spec", field});
    if (was != nullptr && spec.contains(field) && spec[field] == *was) spec.erase(field);
  }
  std::set<std::int64_t> before;
  for (const json::value& port : json::get_array(old, {"spec", "ports"})) {
    before.insert(json::get_int(port, {"nodePort"}).value_or(0));
  }
  each(spec, "ports", [&](json::object& port) {
    const auto number = json::get_int(json::value(port), {"nodePort"});
    if (number && before.contains(*number)) port.erase("nodePort");
  });
}

// A field that the client leaves out of an update stays what it was.
void prepare_service(json::value& object, const Admission& context) {
  if (object.is_object() && context.subresource.empty() &&
      json::get_string(object, {"spec", "type"}) != "ExternalName") {
    default_families(object, json::make_object(object, {"spec"}));
  }
  if (context.old == nullptr || !context.subresource.empty() || !object.is_object()) return;
  json::make_object(object, {"spec"});
  if (json::get_string(object, {"spec", "type"}) !=
      json::get_string(*context.old, {"spec", "type"})) {
    drop_of_old_type(object, *context.old);
  }
  if (json::get_string(object, {"spec", "type"}) == "ExternalName") return;
  json::object& spec = json::make_object(object, {"spec"});
  for (const std::string_view field : {"clusterIP", "clusterIPs"}) {
    const json::value* before = present(*context.old, {"spec", field});
    if (before != nullptr && present(object, {"spec", field}) == nullptr) spec[field] = *before;
  }
}

std::string ports_cell(const json::value& service) {
  std::vector<std::string> out;
  for (const json::value& port : json::get_array(service, {"spec", "ports"})) {
    const std::int64_t number = json::get_int(port, {"port"}).value_or(0);
    const std::int64_t node = json::get_int(port, {"nodePort"}).value_or(0);
    const std::string_view protocol = json::get_string(port, {"protocol"});
    out.push_back(node == 0 ? fmt::format("{}/{}", number, protocol)
                            : fmt::format("{}:{}/{}", number, node, protocol));
  }
  return or_none(join(out, ","));
}

std::string external_cell(const json::value& service) {
  const std::string_view type = json::get_string(service, {"spec", "type"});
  if (type == "ExternalName")
    return std::string(json::get_string(service, {"spec", "externalName"}));
  std::vector<std::string> ips = json::strings(json::get_array(service, {"spec", "externalIPs"}));
  for (const json::value& in : json::get_array(service, {"status", "loadBalancer", "ingress"})) {
    const std::string_view ip = json::get_string(in, {"ip"});
    ips.emplace_back(ip.empty() ? json::get_string(in, {"hostname"}) : ip);
  }
  if (ips.empty() && type == "LoadBalancer") return "<pending>";
  return or_none(join(ips, ","));
}

json::array service_cells(const json::value& service, std::int64_t now_s) {
  const std::string selector =
      LabelSelector::from_map(json::get_object(service, {"spec", "selector"})).text();
  return {json::string(json::get_string(service, {"spec", "type"})),
          json::string(or_none(json::get_string(service, {"spec", "clusterIP"}))),
          json::string(external_cell(service)),
          json::string(ports_cell(service)),
          json::string(age_cell(service, now_s)),
          json::string(or_none(selector))};
}

}  // namespace

Kind service_kind() {
  return {.resource = {"", "v1", "services", "Service", true},
          .singular = "service",
          .short_names = {"svc"},
          .categories = {"all"},
          .returns_deleted = true,
          .has_status = true,
          .has_generation = false,
          .schema = "io.k8s.api.core.v1.Service",
          .columns = {{"Type", "string"},
                      {"Cluster-IP", "string"},
                      {"External-IP", "string"},
                      {"Port(s)", "string"},
                      {"Age", "string"},
                      {"Selector", "string", "", 1}},
          .selectable = {"spec.clusterIP", "spec.type"},
          .set_defaults = set_service_defaults,
          .prepare = prepare_service,
          .validate = validate_service,
          .cells = service_cells};
}

}  // namespace skiff::api
