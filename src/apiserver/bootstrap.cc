// What must exist before the first client comes.
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
  return json::object{
      {"metadata",
       {{"name", "kubernetes"},
        {"labels", {{"component", "apiserver"}, {"provider", "kubernetes"}}}}},
      {"spec", {{"type", "ClusterIP"}, {"clusterIP", "None"}, {"ports", kubernetes_ports(port)}}}};
}

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
  for (client::Write& write : access_.bootstrap_writes()) writes.push_back(std::move(write));
  if (!writes.empty()) {
    const auto results = transact(writes);
    if (!results.back()) return std::unexpected(results.back().error());
  }
  // Roles that gather others are full before the first request is judged by them.
  while (access_.pass()) {
  }
  return {};
}

}  // namespace skiff::apiserver
