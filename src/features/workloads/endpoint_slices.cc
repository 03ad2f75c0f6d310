#include "features/workloads/endpoint_slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "api/meta.h"
#include "features/workloads/endpoints.h"
#include "features/workloads/service_pods.h"

namespace skiff::workloads {
namespace {

constexpr std::string_view kServiceName = "kubernetes.io/service-name";
constexpr std::string_view kSliceManagedBy = "endpointslice.kubernetes.io/managed-by";
constexpr std::string_view kSliceManager = "endpointslice-controller.k8s.io";
constexpr std::string_view kSliceHeadless = "service.kubernetes.io/headless";

struct Slice {
  Object seen = {};  // null: new
  json::array ports = {};
  json::array endpoints = {};
  bool changed = false;

  std::size_t room() const { return kEndpointsPerSlice - endpoints.size(); }
};

// Pods whose ports are the same share slices.
struct Group {
  json::array ports = {};
  std::map<std::string, json::value> endpoints = {};  // by uid of the pod
  std::vector<Slice> slices = {};
};

json::object labels_of(const json::value& service) {
  json::object labels = json::get_object(service, {"metadata", "labels"});
  labels.erase(kSliceHeadless);
  if (headless(service)) labels[kSliceHeadless] = "";
  labels[kServiceName] = json::string(api::name(service));
  labels[kSliceManagedBy] = kSliceManager;
  return labels;
}

json::value endpoint_of(const json::value& service, const json::value& pod, std::string ip) {
  const bool serving = ready(pod);
  const bool going = api::deleting(pod);
  json::object out = about_pod(service, pod);
  out["addresses"] = json::array{json::string(ip)};
  out["conditions"] = json::object{{"ready", publishes_not_ready(service) || (serving && !going)},
                                   {"serving", serving},
                                   {"terminating", going}};
  return out;
}

// Which ports there are, in whatever order.
std::string group_key(const json::array& ports) {
  std::vector<std::string> texts;
  for (const json::value& port : ports) {
    texts.push_back(fmt::format("{} {} {} {}", json::get_string(port, {"name"}),
                                json::get_string(port, {"protocol"}, "TCP"), int_at(port, {"port"}),
                                json::get_string(port, {"appProtocol"})));
  }
  std::ranges::sort(texts);
  return fmt::format("{}", fmt::join(texts, ","));
}

// Leaves in the slice what is still wanted, as it is wanted, and takes that off the group.
void keep(Slice& slice, Group& group) {
  for (const json::value& endpoint : json::get_array(*slice.seen, {"endpoints"})) {
    const auto wanted =
        group.endpoints.find(std::string(json::get_string(endpoint, {"targetRef", "uid"})));
    if (wanted == group.endpoints.end()) {
      slice.changed = true;
      continue;
    }
    slice.changed = slice.changed || wanted->second != endpoint;
    slice.endpoints.push_back(std::move(wanted->second));
    group.endpoints.erase(wanted);
  }
}

void fill(Group& group) {
  const auto into = [&](Slice& slice) {
    while (slice.room() > 0 && !group.endpoints.empty()) {
      slice.endpoints.push_back(std::move(group.endpoints.begin()->second));
      group.endpoints.erase(group.endpoints.begin());
      slice.changed = true;
    }
  };
  for (const bool changed : {true, false}) {
    for (Slice& slice : group.slices) {
      if (slice.changed == changed) into(slice);
    }
  }
  while (!group.endpoints.empty()) into(group.slices.emplace_back(Slice{.ports = group.ports}));
}

class FamilyPlan {
 public:
  FamilyPlan(const json::value& service, std::string_view family, NewNames& names,
             control::Plan& plan)
      : service_(service), family_(family), names_(names), plan_(plan) {}

  void make(const std::vector<Object>& pods, const std::vector<Object>& observed) {
    std::map<std::string, Group> groups = wanted(pods);
    for (const Object& seen : observed) {
      const json::array& ports = json::get_array(*seen, {"ports"});
      const auto group = groups.find(group_key(ports));
      if (group == groups.end()) {
        surplus_.push_back(seen);
        continue;
      }
      keep(group->second.slices.emplace_back(Slice{.seen = seen, .ports = ports}), group->second);
    }
    std::vector<Slice> kept;
    for (auto& [key, group] : groups) {
      fill(group);
      for (Slice& slice : group.slices) {
        if (slice.endpoints.empty()) {
          surplus_.push_back(slice.seen);
        } else {
          kept.push_back(std::move(slice));
        }
      }
    }
    if (kept.empty()) kept.emplace_back();
    for (Slice& slice : kept) write(slice);
    for (const Object& seen : surplus_) {
      plan_.writes.push_back(removal(endpoint_slice_resource(), *seen));
    }
  }

 private:
  std::map<std::string, Group> wanted(const std::vector<Object>& pods) const {
    std::map<std::string, Group> groups;
    const bool has_ports = !json::get_array(service_, {"spec", "ports"}).empty();
    for (const Object& pod : pods) {
      std::string ip = reachable(*pod) ? address(*pod, family_) : "";
      if (ip.empty()) continue;
      json::array ports = has_ports ? ports_of(service_, *pod) : json::array();
      if (!has_ports && json::get_string(service_, {"spec", "clusterIP"}) != "None") continue;
      Group& group = groups[group_key(ports)];
      group.endpoints.emplace(api::uid(*pod), endpoint_of(service_, *pod, std::move(ip)));
      group.ports = std::move(ports);
    }
    return groups;
  }

  // A slice that would go is written anew in the place of one that would come.
  void write(Slice& slice) {
    if (slice.seen == nullptr && !surplus_.empty()) {
      slice.seen = std::move(surplus_.back());
      surplus_.pop_back();
      slice.changed = !json::get_array(*slice.seen, {"endpoints"}).empty() ||
                      !json::get_array(*slice.seen, {"ports"}).empty() ||
                      !slice.endpoints.empty() || !slice.ports.empty();
    }
    json::object labels = labels_of(service_);
    if (slice.seen == nullptr) return create(slice, std::move(labels));
    if (!slice.changed && json::get_object(*slice.seen, {"metadata", "labels"}) == labels) return;
    json::value body = *slice.seen;
    json::set(body, {"metadata", "labels"}, std::move(labels));
    json::set(body, {"endpoints"}, std::move(slice.endpoints));
    json::set(body, {"ports"}, std::move(slice.ports));
    plan_.writes.push_back(update(endpoint_slice_resource(), std::move(body)));
  }

  void create(Slice& slice, json::object labels) {
    const std::string prefix = fmt::format("{}-", api::name(service_));
    json::object meta{{"generateName", prefix},
                      {"name", names_.next(prefix)},
                      {"labels", std::move(labels)},
                      {"ownerReferences", json::array{api::owner_reference(service_)}}};
    plan_.writes.push_back(creation(endpoint_slice_resource(), service_,
                                    json::object{{"apiVersion", "discovery.k8s.io/v1"},
                                                 {"kind", "EndpointSlice"},
                                                 {"metadata", std::move(meta)},
                                                 {"addressType", json::string(family_)},
                                                 {"endpoints", std::move(slice.endpoints)},
                                                 {"ports", std::move(slice.ports)}}));
  }

  const json::value& service_;
  const std::string_view family_;
  NewNames& names_;
  control::Plan& plan_;
  std::vector<Object> surplus_ = {};
};

}  // namespace

void plan_slices(const json::value& service, const std::vector<Object>& pods,
                 const std::vector<Object>& observed, NewNames names, control::Plan& plan) {
  std::map<std::string_view, std::vector<Object>> by_family;
  for (const Object& slice : observed) {
    if (api::label(*slice, kSliceManagedBy) != kSliceManager || api::deleting(*slice)) continue;
    by_family[json::get_string(*slice, {"addressType"})].push_back(slice);
  }
  const std::vector<std::string> wanted = families(service);
  for (const std::string& family : wanted) {
    FamilyPlan(service, family, names, plan).make(pods, by_family[family]);
    by_family.erase(family);
  }
  for (const auto& [family, slices] : by_family) {
    for (const Object& slice : slices) {
      plan.writes.push_back(removal(endpoint_slice_resource(), *slice));
    }
  }
}

}  // namespace skiff::workloads
