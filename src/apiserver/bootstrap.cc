// What must exist before the first client comes.
#include "apiserver/admission/service_addresses.h"
#include "apiserver/server.h"

namespace skiff::apiserver {
namespace {

client::Write create(api::Resource resource, std::string ns, json::value body) {
  return {.verb = client::Verb::kCreate,
          .resource = std::move(resource),
          .ns = std::move(ns),
          .body = std::move(body)};
}

json::array kubernetes_ports(int port) {
  return {
      json::object{{"name", "https"}, {"port", 443}, {"protocol", "TCP"}, {"targetPort", port}}};
}

json::value kubernetes_service(int port) {
  return json::object{{"metadata",
                       {{"name", "kubernetes"},
                        {"labels", {{"component", "apiserver"}, {"provider", "kubernetes"}}}}},
                      {"spec",
                       {{"type", "ClusterIP"},
                        {"clusterIP", json::string(kFirstServiceAddress)},
                        {"ports", kubernetes_ports(port)}}}};
}

// The two classes that components of the cluster run in; users cannot make such names.
constexpr std::string_view kPriorityClasses = "priorityclasses.scheduling.k8s.io";
constexpr struct {
  std::string_view name;
  std::int64_t value;
  std::string_view description;
} kSystemClasses[] = {
    {"system-node-critical", 2000001000,
     "Used for system critical pods that must not be moved from their current node."},
    {"system-cluster-critical", 2000000000,
     "Used for system critical pods that must run in the cluster, but can be moved to another "
     "node if necessary."}};

bool points_to(const json::value& service, int port) {
  const json::array& ports = json::get_array(service, {"spec", "ports"});
  return ports.size() == 1 && json::get_int(ports[0], {"targetPort"}) == port;
}

}  // namespace

Result<void> Server::bootstrap() {
  std::vector<client::Write> writes;
  for (std::string_view name : kPermanentNamespaces) {
    if (store_.get({.resource = "namespaces", .name = std::string(name)})) continue;
    writes.push_back(
        create({.version = "v1", .plural = "namespaces", .kind = "Namespace", .namespaced = false},
               "", json::object{{"metadata", {{"name", json::string(name)}}}}));
  }
  if (kinds()->by_key("services") != nullptr) {
    const api::Resource services{.version = "v1", .plural = "services", .kind = "Service"};
    const store::EntryPtr service =
        store_.get({.resource = "services", .ns = "default", .name = "kubernetes"});
    if (!service) {
      writes.push_back(create(services, "default", kubernetes_service(options_.api_port)));
    } else if (!points_to(*service->value(), options_.api_port)) {
      // The server was started on another port than the last time.
      writes.push_back(
          {.verb = client::Verb::kMergePatch,
           .resource = services,
           .ns = "default",
           .name = "kubernetes",
           .body = json::object{{"spec", {{"ports", kubernetes_ports(options_.api_port)}}}}});
    }
  }
  if (kinds()->by_key(kPriorityClasses) != nullptr) {
    for (const auto& [name, value, description] : kSystemClasses) {
      if (store_.get({.resource = std::string(kPriorityClasses), .name = std::string(name)})) {
        continue;
      }
      writes.push_back(create({.group = "scheduling.k8s.io",
                               .version = "v1",
                               .plural = "priorityclasses",
                               .kind = "PriorityClass",
                               .namespaced = false},
                              "",
                              json::object{{"metadata", {{"name", json::string(name)}}},
                                           {"value", value},
                                           {"description", json::string(description)}}));
    }
  }
  for (client::Write& write : access_.bootstrap_writes()) writes.push_back(std::move(write));
  if (!writes.empty()) {
    const auto results = transact(writes);
    if (!results.back()) return std::unexpected(results.back().error());
  }
  // Roles that gather others are full before the first request is judged by them.
  while (access_.pass()) {
  }
  services_.pass();
  return {};
}

}  // namespace skiff::apiserver
