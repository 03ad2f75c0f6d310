#include "node/service_links.h"

#include <fmt/format.h>

#include "api/meta.h"

namespace skiff::node {
namespace {

// In capitals, with _ for -, as a shell can name it.
std::string variable_name(std::string_view name) {
  std::string out(name);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (c == '-') c = '_';
  }
  return out;
}

std::string small(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

void add_links(const json::value& service, std::string_view address, Variables& out) {
  const std::string name = variable_name(api::name(service));
  const json::array& ports = json::get_array(service, {"spec", "ports"});
  if (ports.empty()) return;
  out.emplace_back(name + "_SERVICE_HOST", address);
  const auto number = [](const json::value& port) {
    return std::to_string(json::get_int(port, {"port"}).value_or(0));
  };
  out.emplace_back(name + "_SERVICE_PORT", number(ports.front()));
  for (const json::value& port : ports) {
    const std::string_view own = json::get_string(port, {"name"});
    if (own.empty()) continue;
    out.emplace_back(fmt::format("{}_SERVICE_PORT_{}", name, variable_name(own)), number(port));
  }
  for (const json::value& port : ports) {
    const std::string_view protocol = json::get_string(port, {"protocol"}, "TCP");
    const std::string url = fmt::format("{}://{}:{}", small(protocol), address, number(port));
    if (&port == &ports.front()) out.emplace_back(name + "_PORT", url);
    const std::string prefix = fmt::format("{}_PORT_{}_{}", name, number(port), protocol);
    out.emplace_back(prefix, url);
    out.emplace_back(prefix + "_PROTO", small(protocol));
    out.emplace_back(prefix + "_PORT", number(port));
    out.emplace_back(prefix + "_ADDR", address);
  }
}

}  // namespace

Variables service_links(const json::value& pod, const Services& services) {
  Variables out;
  if (!json::get_bool(pod, {"spec", "enableServiceLinks"}).value_or(true)) return out;
  const std::string ns(api::ns(pod));
  const Services::key_type kApi{"default", "kubernetes"};
  for (auto at = services.lower_bound({ns, ""}); at != services.end() && at->first.first == ns;
       ++at) {
    if (at->first == kApi) continue;
    const std::string_view address = json::get_string(*at->second, {"spec", "clusterIP"});
    if (!address.empty() && address != "None") add_links(*at->second, address, out);
  }
  return out;
}

}  // namespace skiff::node
