#include "api/core/endpoints.h"

#include <fmt/format.h>

#include "api/cells.h"
#include "api/rules.h"
#include "base/strings.h"

namespace skiff::api {
namespace {

using schema::child;

void set_endpoints_defaults(json::value& object) {
  json::object* root = object.if_object();
  if (root == nullptr) return;
  each(*root, "subsets", [](json::object& subset) {
    each(subset, "ports", [](json::object& port) { put(port, "protocol", "TCP"); });
  });
}

void check_endpoint_address(const json::value& address, const std::string& path, Rules& rules) {
  const std::string_view ip = json::get_string(address, {"ip"});
  rules.ip(child(path, "ip"), ip);
  const std::string_view host = json::get_string(address, {"hostname"});
  if (!host.empty()) rules.called(child(path, "hostname"), host, names::check_dns1123_label(host));
  if (present(address, {"nodeName"}) != nullptr) {
    const std::string_view node = json::get_string(address, {"nodeName"});
    rules.called(child(path, "nodeName"), node, names::check_dns1123_subdomain(node));
  }
  rules.endpoint_ip(child(path, "ip"), ip);
}

void check_endpoint_port(const json::value& port, bool several, const std::string& path,
                         Rules& rules) {
  const std::string_view name = json::get_string(port, {"name"});
  if (several && name.empty()) {
    rules.say(schema::required(child(path, "name")));
  } else if (!name.empty()) {
    rules.called(child(path, "name"), name, names::check_dns1123_label(name));
  }
  rules.port(child(path, "port"), json::get_int(port, {"port"}).value_or(0));
  rules.one_of(child(path, "protocol"), json::get_string(port, {"protocol"}),
               {"SCTP", "TCP", "UDP"});
  if (present(port, {"appProtocol"}) != nullptr) {
    const std::string_view app = json::get_string(port, {"appProtocol"});
    rules.called(child(path, "appProtocol"), app, names::check_label_key(app));
  }
}

std::vector<Cause> validate_endpoints(const json::value& object, const Admission& context) {
  const json::value* subsets = json::find(object, {"subsets"});
  if (context.old != nullptr && same_value(subsets, json::find(*context.old, {"subsets"}))) {
    return {};
  }
  Rules rules;
  const json::array& list = json::get_array(object, {"subsets"});
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string path = child("subsets", i);
    const json::array& ports = json::get_array(list[i], {"ports"});
    if (json::get_array(list[i], {"addresses"}).empty() &&
        json::get_array(list[i], {"notReadyAddresses"}).empty()) {
      rules.say(schema::required(path, "must specify `addresses` or `notReadyAddresses`"));
    }
    for (const std::string_view field : {"addresses", "notReadyAddresses"}) {
      const json::array& addresses = json::get_array(list[i], {field});
      for (std::size_t k = 0; k < addresses.size(); ++k) {
        check_endpoint_address(addresses[k], child(child(path, field), k), rules);
      }
    }
    for (std::size_t k = 0; k < ports.size(); ++k) {
      check_endpoint_port(ports[k], ports.size() > 1, child(child(path, "ports"), k), rules);
    }
  }
  return rules.take();
}

std::string host_port(std::string_view ip, std::int64_t port) {
  return ip.contains(':') ? fmt::format("[{}]:{}", ip, port) : fmt::format("{}:{}", ip, port);
}

std::string endpoints_cell(const json::value& object) {
  constexpr std::size_t kShown = 3;
  if (json::get_array(object, {"subsets"}).empty()) return "<none>";
  std::vector<std::string> all;
  for (const json::value& subset : json::get_array(object, {"subsets"})) {
    const json::array& addresses = json::get_array(subset, {"addresses"});
    const json::array& ports = json::get_array(subset, {"ports"});
    for (const json::value& port : ports) {
      for (const json::value& a : addresses) {
        all.push_back(
            host_port(json::get_string(a, {"ip"}), json::get_int(port, {"port"}).value_or(0)));
      }
    }
    for (const json::value& a : addresses) {
      if (ports.empty()) all.emplace_back(json::get_string(a, {"ip"}));
    }
  }
  if (all.size() <= kShown) return join(all, ",");
  return fmt::format("{} + {} more...", join({all.begin(), all.begin() + kShown}, ","),
                     all.size() - kShown);
}

json::array endpoints_cells(const json::value& object, std::int64_t now_s) {
  return {json::string(endpoints_cell(object)), json::string(age_cell(object, now_s))};
}

}  // namespace

Kind endpoints_kind() {
  return {
      .resource = {"", "v1", "endpoints", "Endpoints", true},
      .singular = "endpoints",
      .short_names = {"ep"},
      .deprecation = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
      .has_generation = false,
      .schema = "io.k8s.api.core.v1.Endpoints",
      .columns = {{"Endpoints", "string"}, {"Age", "string"}},
      .set_defaults = set_endpoints_defaults,
      .validate = validate_endpoints,
      .cells = endpoints_cells};
}

}  // namespace skiff::api
