#include "api/core/service.h"

#include <fmt/format.h>

#include <set>

#include "api/cells.h"
#include "base/names.h"
#include "base/selectors.h"
#include "base/strings.h"
#include "schema/causes.h"

namespace skiff::api {
namespace {

using schema::child;

void put(json::object& o, std::string_view key, json::value value) {
  o.emplace(key, std::move(value));
}

void set_defaults(json::value& object) {
  if (!object.is_object()) return;
  json::object& spec = json::make_object(object, {"spec"});
  put(spec, "type", "ClusterIP");
  put(spec, "sessionAffinity", "None");
  const bool external = json::get_string(object, {"spec", "type"}) == "ExternalName";
  if (!external) put(spec, "internalTrafficPolicy", "Cluster");
  const std::string ip(json::get_string(object, {"spec", "clusterIP"}));
  if (!ip.empty()) put(spec, "clusterIPs", json::array{json::string(ip)});
  json::value* ports = spec.if_contains("ports");
  if (ports == nullptr || !ports->is_array()) return;
  for (json::value& item : ports->get_array()) {
    json::object* port = item.if_object();
    if (port == nullptr) continue;
    put(*port, "protocol", "TCP");
    const json::value* number = port->if_contains("port");
    if (number != nullptr && !external) {
      const json::value copy = *number;
      put(*port, "targetPort", copy);
    }
  }
}

void check_port(const json::value& port, const std::string& path, bool several,
                std::set<std::string>& seen, std::vector<Cause>& out) {
  const std::string_view name = json::get_string(port, {"name"});
  if (name.empty()) {
    if (several) out.push_back(schema::required(child(path, "name")));
  } else if (const auto bad = names::check_dns1123_label(name)) {
    out.push_back(schema::invalid(child(path, "name"), json::string(name), *bad));
  }
  if (several && !name.empty() && !seen.insert("name " + std::string(name)).second) {
    out.push_back(schema::duplicate(child(path, "name"), json::string(name)));
  }
  const std::int64_t number = json::get_int(port, {"port"}).value_or(0);
  if (number < 1 || number > 65535) {
    out.push_back(
        schema::invalid(child(path, "port"), number, "must be between 1 and 65535, inclusive"));
  }
  const std::string_view protocol = json::get_string(port, {"protocol"});
  if (protocol != "TCP" && protocol != "UDP" && protocol != "SCTP") {
    out.push_back(schema::unsupported(child(path, "protocol"), json::string(protocol),
                                      {"SCTP", "TCP", "UDP"}));
  }
  if (!seen.insert(fmt::format("{}/{}", protocol, number)).second) {
    out.push_back(schema::duplicate(
        path, json::object{{"port", number}, {"protocol", json::string(protocol)}}));
  }
}

std::vector<Cause> validate(const json::value& object, const Admission& context) {
  std::vector<Cause> out;
  const std::string_view type = json::get_string(object, {"spec", "type"});
  if (type != "ClusterIP" && type != "NodePort" && type != "LoadBalancer" &&
      type != "ExternalName") {
    out.push_back(schema::unsupported("spec.type", json::string(type),
                                      {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"}));
  }
  const std::string_view ip = json::get_string(object, {"spec", "clusterIP"});
  const json::array& ports = json::get_array(object, {"spec", "ports"});
  if (ports.empty() && ip != "None" && type != "ExternalName") {
    out.push_back(schema::required("spec.ports"));
  }
  if (type == "ExternalName" && json::get_string(object, {"spec", "externalName"}).empty()) {
    out.push_back(schema::required("spec.externalName"));
  }
  std::set<std::string> seen;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    check_port(ports[i], child("spec.ports", i), ports.size() > 1, seen, out);
  }
  const std::string_view affinity = json::get_string(object, {"spec", "sessionAffinity"});
  if (affinity != "None" && affinity != "ClientIP") {
    out.push_back(
        schema::unsupported("spec.sessionAffinity", json::string(affinity), {"ClientIP", "None"}));
  }
  if (context.old != nullptr && type != "ExternalName") {
    const std::string_view before = json::get_string(*context.old, {"spec", "clusterIP"});
    if (!before.empty() && before != ip) {
      out.push_back(schema::invalid("spec.clusterIPs[0]", json::array{json::string(ip)},
                                    "may not change once set"));
    }
  }
  return out;
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

json::array cells(const json::value& service, std::int64_t now_s) {
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
          .set_defaults = set_defaults,
          .validate = validate,
          .cells = cells};
}

}  // namespace skiff::api
