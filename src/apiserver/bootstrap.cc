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

json::value kubernetes_service(int port) {
  return json::object{
      {"metadata",
       {{"name", "kubernetes"},
        {"labels", {{"component", "apiserver"}, {"provider", "kubernetes"}}}}},
      {"spec",
       {{"type", "ClusterIP"},
        {"clusterIP", "None"},
        {"ports",
         json::array{json::object{
             {"name", "https"}, {"port", 443}, {"protocol", "TCP"}, {"targetPort", port}}}}}}};
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
  const bool services = kinds()->by_key("services") != nullptr;
  if (services && !store_.get({.resource = "services", .ns = "default", .name = "kubernetes"})) {
    writes.push_back(create({.version = "v1", .plural = "services", .kind = "Service"}, "default",
                            kubernetes_service(options_.api_port)));
  }
  if (writes.empty()) return {};
  const auto results = transact(writes);
  if (!results.back()) return std::unexpected(results.back().error());
  return {};
}

}  // namespace skiff::apiserver
