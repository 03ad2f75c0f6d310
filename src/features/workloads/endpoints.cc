#include "features/workloads/endpoints.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "api/meta.h"
#include "features/workloads/endpoint_slices.h"
#include "features/workloads/pods.h"
#include "features/workloads/service_pods.h"

namespace skiff::workloads {
namespace {

constexpr std::string_view kEndpointsManagedBy = "endpoints.kubernetes.io/managed-by";
constexpr std::string_view kEndpointsManager = "endpoint-controller";
constexpr std::string_view kEndpointsHeadless = "service.kubernetes.io/headless";
constexpr std::string_view kOverCapacity = "endpoints.kubernetes.io/over-capacity";

struct Address {
  std::string ip = {};
  std::string uid = {};
  const json::value* pod = nullptr;
  bool ready = false;

  auto operator<=>(const Address& other) const {
    return std::tie(ip, uid, ready) <=> std::tie(other.ip, other.uid, other.ready);
  }
  bool operator==(const Address& other) const { return uid == other.uid && ready == other.ready; }
};

// The addresses of one subset, and the ports they all have.
using Subsets = std::map<std::vector<Address>, json::array>;

std::vector<Address> addresses_of(const json::value& service, const std::vector<Object>& pods) {
  const bool unready_too = publishes_not_ready(service);
  const std::string family = families(service).front();
  std::vector<Address> out;
  for (const Object& pod : pods) {
    if (!reachable(*pod) || (api::deleting(*pod) && !unready_too)) continue;
    std::string ip = address(*pod, family);
    if (ip.empty()) continue;
    out.push_back({.ip = std::move(ip),
                   .uid = std::string(api::uid(*pod)),
                   .pod = pod.get(),
                   .ready = unready_too || ready(*pod)});
  }
  std::ranges::sort(out);
  return out;
}

// Ports that have the same addresses stand together.
Subsets subsets_of(const json::value& service, std::vector<Address> addresses) {
  Subsets out;
  if (addresses.empty()) return out;
  if (json::get_array(service, {"spec", "ports"}).empty()) {
    if (json::get_string(service, {"spec", "clusterIP"}) == "None") out[std::move(addresses)];
    return out;
  }
  std::vector<std::pair<json::value, std::vector<Address>>> by_port;
  for (const Address& address : addresses) {
    for (json::value& port : ports_of(service, *address.pod)) {
      auto it = std::ranges::find(by_port, port, [](const auto& entry) { return entry.first; });
      if (it == by_port.end()) it = by_port.insert(it, {std::move(port), {}});
      it->second.push_back(address);
    }
  }
  for (auto& [port, those] : by_port) {
    if (json::get_string(port, {"name"}).empty()) port.as_object().erase("name");
    out[std::move(those)].push_back(std::move(port));
  }
  return out;
}

// What does not fit is cut off, those that are not ready first. True if anything was.
bool cut(Subsets& subsets) {
  std::size_t total = 0;
  std::size_t ready_total = 0;
  for (const auto& [addresses, ports] : subsets) {
    total += addresses.size();
    ready_total += static_cast<std::size_t>(std::ranges::count(addresses, true, &Address::ready));
  }
  if (total <= kEndpointsMost) return false;
  std::size_t ready_room = std::min(kEndpointsMost, ready_total);
  std::size_t other_room = kEndpointsMost - ready_room;
  Subsets out;
  for (auto& [addresses, ports] : subsets) {
    std::vector<Address> kept;
    for (const Address& address : addresses) {
      std::size_t& room = address.ready ? ready_room : other_room;
      if (room == 0) continue;
      --room;
      kept.push_back(address);
    }
    if (!kept.empty()) out[std::move(kept)] = std::move(ports);
  }
  subsets = std::move(out);
  return true;
}

json::array written(const json::value& service, const Subsets& subsets) {
  json::array out;
  for (const auto& [addresses, ports] : subsets) {
    json::object subset;
    for (const Address& address : addresses) {
      json::object made = about_pod(service, *address.pod);
      made["ip"] = address.ip;
      json::value& list = subset[address.ready ? "addresses" : "notReadyAddresses"];
      if (!list.is_array()) list.emplace_array();
      list.get_array().push_back(std::move(made));
    }
    if (!ports.empty()) subset["ports"] = ports;
    out.push_back(std::move(subset));
  }
  return out;
}

void plan_object(const json::value& service, const std::vector<Object>& pods,
                 const std::vector<Object>& existing, control::Plan& plan) {
  Subsets subsets = subsets_of(service, addresses_of(service, pods));
  const bool truncated = cut(subsets);
  json::array list = written(service, subsets);
  json::object labels = json::get_object(service, {"metadata", "labels"});
  labels.erase(kEndpointsHeadless);
  if (headless(service)) labels[kEndpointsHeadless] = "";
  labels[kEndpointsManagedBy] = kEndpointsManager;

  const json::value before = existing.empty() ? json::value(json::object()) : *existing.front();
  json::value after = before;
  json::object& root = after.as_object();
  if (list.empty()) {
    root.erase("subsets");
  } else {
    root["subsets"] = std::move(list);
  }
  json::set(after, {"metadata", "labels"}, std::move(labels));
  if (truncated) {
    json::set(after, {"metadata", "annotations", kOverCapacity}, "truncated");
  } else if (!api::annotation(before, kOverCapacity).empty()) {
    json::make_object(after, {"metadata", "annotations"}).erase(kOverCapacity);
  }
  if (existing.empty()) {
    root["apiVersion"] = "v1";
    root["kind"] = "Endpoints";
    json::set(after, {"metadata", "name"}, json::string(api::name(service)));
    plan.writes.push_back(creation(endpoints_resource(), service, std::move(after)));
  } else if (after != before) {
    plan.writes.push_back(update(endpoints_resource(), std::move(after)));
  }
}

std::vector<std::string> own_name(const json::value& object) {
  return {std::string(api::name(object))};
}

}  // namespace

const api::Resource& service_resource() {
  static const api::Resource kResource{.version = "v1", .plural = "services", .kind = "Service"};
  return kResource;
}

const api::Resource& endpoints_resource() {
  static const api::Resource kResource{.version = "v1", .plural = "endpoints", .kind = "Endpoints"};
  return kResource;
}

const api::Resource& endpoint_slice_resource() {
  static const api::Resource kResource{.group = "discovery.k8s.io",
                                       .version = "v1",
                                       .plural = "endpointslices",
                                       .kind = "EndpointSlice"};
  return kResource;
}

control::Plan plan_endpoints(const control::Observed& observed, Time now) {
  control::Plan plan;
  const json::value& service = *observed.root;
  // Whose endpoints those are without a selector is for others to say.
  if (!selects_pods(service) || api::deleting(service)) return plan;
  const std::vector<Object>& pods = observed.seen[0];
  plan_object(service, pods, observed.seen[1], plan);
  plan_slices(service, pods, observed.owned[0], NewNames(service, observed.owned[0], now), plan);
  return plan;
}

control::Controller endpoints_controller() {
  return {.name = "endpoint-controller",
          .root = service_resource(),
          .owned = {endpoint_slice_resource()},
          .seen = {{.resource = pod_resource(),
                    .wants =
                        [](const json::value& service) {
                          return label_words(json::get_object(service, {"spec", "selector"}));
                        },
                    .has =
                        [](const json::value& pod) {
                          return label_words(json::get_object(pod, {"metadata", "labels"}));
                        },
                    .alike = alike_to_services},
                   {.resource = endpoints_resource(),
                    .wants =
                        [](const json::value& service) {
                          return selects_pods(service) ? own_name(service)
                                                       : std::vector<std::string>{};
                        },
                    .has = own_name,
                    .writes = true}},
          .plan = plan_endpoints};
}

}  // namespace skiff::workloads
