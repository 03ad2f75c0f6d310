#include "apiserver/admission/service_addresses.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "api/meta.h"
#include "apiserver/status.h"
#include "base/strings.h"

namespace skiff::apiserver {
namespace {

constexpr std::uint32_t kBase = 10u << 24 | 96u << 16;
constexpr std::uint32_t kAddresses = 1u << 16;
// Addresses at the start of the range are left for those who ask for one.
constexpr std::uint32_t kChosenByHand = 256;
constexpr int kFirstPort = 30000;
constexpr int kLastPort = 32767;
// So many taken in a row in a place chosen at random: the range is full.
constexpr int kAddressAttempts = 4096;

store::Key address_key(const std::string& ip) {
  return {.resource = "ipaddresses.networking.k8s.io", .name = ip};
}
store::Key port_key(std::int64_t port) {
  return {.resource = "nodeports.skiff.internal", .name = std::to_string(port)};
}

std::string type_of(const json::value& service) {
  return std::string(json::get_string(service, {"spec", "type"}, "ClusterIP"));
}
bool external(const json::value& service) { return type_of(service) == "ExternalName"; }

bool takes_ports(const json::value& service) {
  const std::string type = type_of(service);
  if (type == "LoadBalancer") {
    return json::get_bool(service, {"spec", "allocateLoadBalancerNodePorts"}).value_or(true);
  }
  return type == "NodePort";
}

std::optional<std::uint32_t> number_of(std::string_view ip) {
  std::uint32_t out = 0;
  const auto parts = split(ip, '.');
  if (parts.size() != 4) return std::nullopt;
  for (const std::string_view part : parts) {
    unsigned byte = 256;
    std::from_chars(part.data(), part.data() + part.size(), byte);
    if (byte > 255) return std::nullopt;
    out = out << 8 | byte;
  }
  return out;
}

std::string address_text(std::uint32_t ip) {
  return fmt::format("{}.{}.{}.{}", ip >> 24, ip >> 16 & 255, ip >> 8 & 255, ip & 255);
}

// FNV-1a: where to look first, the same in every run.
std::uint64_t place(const AdmissionRequest& request, int attempt) {
  std::uint64_t hash = 14695981039346656037u;
  const std::string text =
      fmt::format("{}/{}/{}", request.request.ns, api::name(request.object), attempt);
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash ^ hash >> 32;
}

std::set<std::string> addresses_of(const json::value* service) {
  std::set<std::string> out;
  if (service == nullptr || external(*service)) return out;
  for (const std::string& ip : json::strings(json::get_array(*service, {"spec", "clusterIPs"}))) {
    if (number_of(ip)) out.insert(ip);
  }
  return out;
}

std::set<std::int64_t> ports_of(const json::value* service) {
  std::set<std::int64_t> out;
  if (service == nullptr) return out;
  for (const json::value& port : json::get_array(*service, {"spec", "ports"})) {
    if (const auto number = json::get_int(port, {"nodePort"}).value_or(0)) out.insert(number);
  }
  if (const auto health = json::get_int(*service, {"spec", "healthCheckNodePort"}).value_or(0)) {
    out.insert(health);
  }
  return out;
}

void hold_address(const AdmissionRequest& request, const std::string& ip) {
  request.txn.put(address_key(ip),
                  json::object{{"apiVersion", "networking.k8s.io/v1"},
                               {"kind", "IPAddress"},
                               {"metadata",
                                {{"name", ip},
                                 {"uid", request.uid()},
                                 {"creationTimestamp", request.now},
                                 {"labels",
                                  {{"ipaddress.kubernetes.io/ip-family", "IPv4"},
                                   {"ipaddress.kubernetes.io/managed-by", "ipallocator.k8s.io"}}}}},
                               {"spec",
                                {{"parentRef",
                                  {{"resource", "services"},
                                   {"namespace", request.request.ns},
                                   {"name", json::string(api::name(request.object))}}}}}});
}

void hold_port(const AdmissionRequest& request, std::int64_t port) {
  request.txn.put(port_key(port),
                  json::object{{"metadata", {{"name", std::to_string(port)}}},
                               {"service", fmt::format("{}/{}", request.request.ns,
                                                       api::name(request.object))}});
}

Error bad_field(const AdmissionRequest& request, std::string field, const json::value& value,
                std::string_view why) {
  return invalid(request.request.kind->resource(), api::name(request.object),
                 {invalid_value(std::move(field), value, why)});
}

Result<void> take_address(const AdmissionRequest& request, const std::string& ip) {
  const std::uint32_t number = *number_of(ip);
  std::string why;
  if (number <= kBase || number >= kBase + kAddresses - 1) {
    why =
        fmt::format("the provided IP ({}) is not in the valid range. The range of valid IPs is {}",
                    ip, kServiceRange);
  } else if (request.txn.get(address_key(ip)) != nullptr) {
    why = "provided IP is already allocated";
  } else {
    hold_address(request, ip);
    return {};
  }
  return std::unexpected(bad_field(request, "spec.clusterIPs",
                                   json::get_array(request.object, {"spec", "clusterIPs"}),
                                   fmt::format("failed to allocate IP {}: {}", ip, why)));
}

Result<std::string> give_address(const AdmissionRequest& request) {
  for (int attempt = 0; attempt < kAddressAttempts; ++attempt) {
    const std::uint64_t span = kAddresses - kChosenByHand - 1;
    const std::string ip = address_text(kBase + kChosenByHand +
                                        static_cast<std::uint32_t>(place(request, attempt) % span));
    if (request.txn.get(address_key(ip)) != nullptr) continue;
    hold_address(request, ip);
    return ip;
  }
  return fail(Code::kInternal,
              "Internal error occurred: failed to allocate a serviceIP: range is full");
}

// Here is one family; only who has no selector and no address may speak of two.
Result<void> check_families(const AdmissionRequest& request, bool headless) {
  if (headless && json::get_object(request.object, {"spec", "selector"}).empty()) return {};
  std::vector<Cause> causes;
  const std::string policy(json::get_string(request.object, {"spec", "ipFamilyPolicy"}));
  if (policy == "RequireDualStack") {
    causes.push_back(invalid_value("spec.ipFamilyPolicy", json::string(policy),
                                   "this cluster is not configured for dual-stack services"));
  }
  const json::array& families = json::get_array(request.object, {"spec", "ipFamilies"});
  for (std::size_t i = 0; i < families.size(); ++i) {
    if (json::get_string(families[i], {}) == "IPv4") continue;
    causes.push_back(invalid_value(fmt::format("spec.ipFamilies[{}]", i), families[i],
                                   "not configured on this cluster"));
  }
  if (causes.empty()) return {};
  return std::unexpected(
      invalid(request.request.kind->resource(), api::name(request.object), std::move(causes)));
}

Result<void> assign_address(const AdmissionRequest& request) {
  json::object& spec = json::make_object(request.object, {"spec"});
  const std::string ip(json::get_string(request.object, {"spec", "clusterIP"}));
  SKIFF_TRY(check_families(request, ip == "None"));
  spec.emplace("ipFamilies", json::array{"IPv4"});
  spec.emplace("ipFamilyPolicy", "SingleStack");
  if (ip == "None") return {};
  const std::set<std::string> held = addresses_of(request.old);
  if (ip.empty()) {
    SKIFF_ASSIGN(const std::string given, give_address(request));
    spec["clusterIP"] = given;
    spec["clusterIPs"] = json::array{json::string(given)};
    return {};
  }
  if (number_of(ip) && !held.contains(ip)) return take_address(request, ip);
  return {};
}

Result<void> take_port(const AdmissionRequest& request, std::size_t index, std::int64_t port,
                       const std::set<std::int64_t>& held) {
  if (held.contains(port)) return {};
  std::string why;
  const Object holder = request.txn.get(port_key(port));
  const std::string self = fmt::format("{}/{}", request.request.ns, api::name(request.object));
  // A dry run asks only whether the port is taken.
  if (!request.request.dry_run && (port < kFirstPort || port > kLastPort)) {
    why = fmt::format("provided port is not in the valid range. The range of valid ports is {}-{}",
                      kFirstPort, kLastPort);
  } else if (holder == nullptr || json::get_string(*holder, {"service"}) == self) {
    // One number may serve two protocols of one service.
    hold_port(request, port);
    return {};
  } else {
    why = "provided port is already allocated";
  }
  return std::unexpected(
      bad_field(request, fmt::format("spec.ports[{}].nodePort", index), port, why));
}

Result<std::int64_t> give_port(const AdmissionRequest& request, std::size_t index) {
  for (int attempt = 0; attempt < kAddressAttempts; ++attempt) {
    const std::uint64_t at = place(request, attempt) + index * 7919;
    const std::int64_t port =
        kFirstPort + static_cast<std::int64_t>(at % (kLastPort - kFirstPort + 1));
    if (request.txn.get(port_key(port)) != nullptr) continue;
    hold_port(request, port);
    return port;
  }
  return fail(Code::kInternal,
              "Internal error occurred: failed to allocate a nodePort: range is full");
}

Result<void> assign_ports(const AdmissionRequest& request) {
  const std::set<std::int64_t> held = ports_of(request.old);
  json::value& ports = json::make_object(request.object, {"spec"})["ports"];
  if (!ports.is_array()) return {};
  // Those that are asked for first, so that no other port of the service takes them.
  for (std::size_t i = 0; i < ports.get_array().size(); ++i) {
    const auto port = json::get_int(ports.get_array()[i], {"nodePort"}).value_or(0);
    if (port != 0) SKIFF_TRY(take_port(request, i, port, held));
  }
  if (!takes_ports(request.object)) return {};
  for (std::size_t i = 0; i < ports.get_array().size(); ++i) {
    json::value& port = ports.get_array()[i];
    if (!port.is_object() || json::get_int(port, {"nodePort"}).value_or(0) != 0) continue;
    SKIFF_ASSIGN(port.get_object()["nodePort"], give_port(request, i));
  }
  return {};
}

void let_go(Transaction& txn, const store::Key& key) {
  if (txn.get(key) != nullptr) txn.remove(key);
}

bool same_port(const json::value& a, const json::value& b) {
  return json::get_int(a, {"port"}) == json::get_int(b, {"port"}) &&
         json::get_string(a, {"protocol"}, "TCP") == json::get_string(b, {"protocol"}, "TCP");
}

void keep_ports(const AdmissionRequest& request) {
  json::value& ports = json::make_object(request.object, {"spec"})["ports"];
  if (!ports.is_array()) return;
  const bool wanted = takes_ports(request.object);
  for (json::value& port : ports.get_array()) {
    if (!port.is_object()) continue;
    for (const json::value& before : json::get_array(*request.old, {"spec", "ports"})) {
      const auto number = json::get_int(before, {"nodePort"}).value_or(0);
      if (number == 0 || !same_port(port, before)) continue;
      if (wanted && !port.get_object().contains("nodePort")) {
        port.get_object()["nodePort"] = number;
      }
      // A service that has no use for node ports any more does not have to say so of each.
      if (type_of(request.object) == "ClusterIP" && takes_ports(*request.old) &&
          json::get_int(port, {"nodePort"}) == number) {
        port.get_object().erase("nodePort");
      }
    }
  }
}

}  // namespace

void keep_service_addresses(const AdmissionRequest& request) {
  if (!request.plain("services")) return;
  json::object& spec = json::make_object(request.object, {"spec"});
  if (!request.creates() && external(request.object) && !external(*request.old)) {
    for (std::string_view field : {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"}) {
      spec.erase(field);
    }
  } else if (!request.creates() && !external(*request.old) &&
             json::get_string(request.object, {"spec", "clusterIP"}).empty()) {
    for (std::string_view field : {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"}) {
      const json::value* before = json::find(*request.old, {"spec", field});
      if (before != nullptr) spec[field] = *before;
    }
  }
  const std::string ip(json::get_string(request.object, {"spec", "clusterIP"}));
  if (!ip.empty() && json::get_array(request.object, {"spec", "clusterIPs"}).empty()) {
    spec["clusterIPs"] = json::array{json::string(ip)};
  }
  if (!request.creates() && spec.contains("ports")) keep_ports(request);
}

Result<void> assign_service_addresses(const AdmissionRequest& request) {
  if (!request.plain("services")) return {};
  if (!external(request.object)) {
    SKIFF_TRY(assign_address(request));
    if (json::make_object(request.object, {"spec"}).contains("ports")) {
      SKIFF_TRY(assign_ports(request));
    }
  }
  const std::set<std::string> kept = addresses_of(&request.object);
  for (const std::string& ip : addresses_of(request.old)) {
    if (!kept.contains(ip)) let_go(request.txn, address_key(ip));
  }
  const std::set<std::int64_t> kept_ports = ports_of(&request.object);
  for (const std::int64_t port : ports_of(request.old)) {
    if (!kept_ports.contains(port)) let_go(request.txn, port_key(port));
  }
  return {};
}

void release_service_addresses(Transaction& txn) {
  if (!txn.touched("services")) return;
  for (const Object& service : txn.removals("services")) {
    for (const std::string& ip : addresses_of(service.get())) let_go(txn, address_key(ip));
    for (const std::int64_t port : ports_of(service.get())) let_go(txn, port_key(port));
    // A successor of the same name must not come to the addresses behind this one.
    let_go(txn, {.resource = "endpoints",
                 .ns = std::string(api::ns(*service)),
                 .name = std::string(api::name(*service))});
  }
}

}  // namespace skiff::apiserver
