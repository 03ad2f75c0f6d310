#include "features/workloads/service_pods.h"

#include <charconv>
#include <optional>

#include "api/meta.h"
#include "base/ip.h"
#include "features/workloads/pods.h"

namespace skiff::workloads {
namespace {

std::optional<std::int64_t> named_port(const json::array& containers, bool sidecars_only,
                                       std::string_view name, std::string_view protocol) {
  for (const json::value& container : containers) {
    if (sidecars_only && json::get_string(container, {"restartPolicy"}) != "Always") continue;
    for (const json::value& port : json::get_array(container, {"ports"})) {
      if (json::get_string(port, {"name"}) == name &&
          json::get_string(port, {"protocol"}, "TCP") == protocol) {
        return json::get_int(port, {"containerPort"});
      }
    }
  }
  return std::nullopt;
}

std::optional<std::int64_t> find_port(const json::value& pod, const json::value& port,
                                      std::string_view protocol) {
  const json::value* target = json::find(port, {"targetPort"});
  if (target == nullptr) return json::get_int(port, {"port"});
  if (target->is_int64()) return target->get_int64();
  if (!target->is_string()) return std::nullopt;
  const std::string_view name = json::view(target->get_string());
  if (const auto found =
          named_port(json::get_array(pod, {"spec", "containers"}), false, name, protocol)) {
    return found;
  }
  return named_port(json::get_array(pod, {"spec", "initContainers"}), true, name, protocol);
}

// 127.64.0.0/10: where pods have no network of their own.
bool loopback_pod(std::string_view ip) {
  int part = 0;
  if (!ip.starts_with("127.")) return false;
  (void)std::from_chars(ip.data() + 4, ip.data() + ip.size(), part);
  return part >= 64 && part < 128;
}

// The server takes no endpoint in these ranges: nobody else could reach it.
bool only_local(std::string_view ip) {
  return (ip.starts_with("127.") && !loopback_pod(ip)) || ip.starts_with("169.254.") ||
         ip.starts_with("224.0.0.") || ip == "0.0.0.0" || ip == "::" || ip == "::1" ||
         ip.starts_with("fe80:") || ip.starts_with("ff02:");
}

}  // namespace

bool selects_pods(const json::value& service) {
  return json::get_string(service, {"spec", "type"}) != "ExternalName" &&
         !json::get_object(service, {"spec", "selector"}).empty();
}

bool headless(const json::value& service) {
  const std::string_view ip = json::get_string(service, {"spec", "clusterIP"});
  return ip.empty() || ip == "None";
}

bool publishes_not_ready(const json::value& service) {
  return json::get_bool(service, {"spec", "publishNotReadyAddresses"}).value_or(false);
}

std::vector<std::string> families(const json::value& service) {
  std::vector<std::string> out = json::strings(json::get_array(service, {"spec", "ipFamilies"}));
  if (out.empty()) out.emplace_back("IPv4");
  return out;
}

bool reachable(const json::value& pod) {
  return !ended(pod) && (!json::get_string(pod, {"status", "podIP"}).empty() ||
                         !json::get_array(pod, {"status", "podIPs"}).empty());
}

std::string address(const json::value& pod, std::string_view family) {
  std::vector<std::string_view> all;
  for (const json::value& ip : json::get_array(pod, {"status", "podIPs"})) {
    all.push_back(json::get_string(ip, {"ip"}));
  }
  if (all.empty()) all.push_back(json::get_string(pod, {"status", "podIP"}));
  for (const std::string_view text : all) {
    const auto ip = parse_ip(text);
    if (!ip || ip->v4() != (family == "IPv4")) continue;
    if (std::string out = ip->text(); !only_local(out)) return out;
  }
  return {};
}

json::array ports_of(const json::value& service, const json::value& pod) {
  json::array out;
  for (const json::value& port : json::get_array(service, {"spec", "ports"})) {
    const std::string_view protocol = json::get_string(port, {"protocol"}, "TCP");
    const auto number = find_port(pod, port, protocol);
    if (!number) continue;
    json::object made{{"name", json::string(json::get_string(port, {"name"}))},
                      {"port", *number},
                      {"protocol", json::string(protocol)}};
    if (const json::value* app = json::find(port, {"appProtocol"})) made["appProtocol"] = *app;
    out.push_back(std::move(made));
  }
  return out;
}

bool alike_to_services(const json::value& before, const json::value& after) {
  // One without an address stands behind no service, whatever else it says.
  if (!reachable(before) && !reachable(after)) return true;
  const auto same = [&](std::initializer_list<std::string_view> path) {
    const json::value* was = json::find(before, path);
    const json::value* is = json::find(after, path);
    return was == nullptr || is == nullptr ? was == is : *was == *is;
  };
  return reachable(before) == reachable(after) && ready(before) == ready(after) &&
         api::deleting(before) == api::deleting(after) && same({"metadata", "uid"}) &&
         same({"metadata", "labels"}) && same({"status", "podIP"}) && same({"status", "podIPs"}) &&
         same({"spec"});
}

json::object about_pod(const json::value& service, const json::value& pod) {
  json::object out;
  const auto put = [&](std::string_view key, std::string_view text) {
    if (!text.empty()) out[key] = json::string(text);
  };
  put("nodeName", json::get_string(pod, {"spec", "nodeName"}));
  if (json::get_string(pod, {"spec", "subdomain"}) == api::name(service)) {
    put("hostname", json::get_string(pod, {"spec", "hostname"}));
  }
  out["targetRef"] = json::object{{"kind", "Pod"},
                                  {"namespace", json::string(api::ns(pod))},
                                  {"name", json::string(api::name(pod))},
                                  {"uid", json::string(api::uid(pod))}};
  return out;
}

}  // namespace skiff::workloads
