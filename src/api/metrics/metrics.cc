#include "api/metrics/metrics.h"

#include <fmt/format.h>

#include "base/check.h"
#include "schema/openapi.h"

namespace skiff::api {
namespace {

constexpr std::string_view kPackage = "io.k8s.metrics.pkg.apis.metrics.v1beta1.";
constexpr const char* kWindowHelp =
    "How long before the timestamp the measurement began; CPU is the mean over that time.";

Kind metrics_kind(std::string plural, std::string kind, bool namespaced) {
  Kind out{.resource = {std::string(kMetricsGroup), "v1beta1", std::move(plural), kind, namespaced},
           .has_generation = false,
           .verbs = {"get", "list"},
           .schema = std::string(kPackage) + kind};
  return out;
}

json::object text(const char* help) { return {{"type", "string"}, {"description", help}}; }

json::object usage_place() {
  return {{"type", "object"},
          {"description", "What is used of each resource: cpu, memory."},
          {"additionalProperties", {{"type", "string"}}}};
}

json::object common_places() {
  return {{"apiVersion", text("The version of this object's form.")},
          {"kind", text("The type of the object.")},
          {"metadata",
           {{"$ref", "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}}},
          {"timestamp", text("When the measurement ended.")},
          {"window", text(kWindowHelp)}};
}

schema::Schema object_of(json::object places, const char* help) {
  auto read = schema::from_openapi(
      json::object{{"type", "object"}, {"description", help}, {"properties", std::move(places)}});
  SKIFF_CHECK(read.has_value(), "our own schema can be read");
  return std::move(*read);
}

}  // namespace

Kind node_metrics_kind() {
  Kind kind = metrics_kind("nodes", "NodeMetrics", false);
  kind.columns = {{.name = "CPU", .type = "string", .json_path = ".usage.cpu"},
                  {.name = "Memory", .type = "string", .json_path = ".usage.memory"},
                  {.name = "Window", .type = "string", .json_path = ".window"}};
  return kind;
}

Kind pod_metrics_kind() {
  Kind kind = metrics_kind("pods", "PodMetrics", true);
  kind.columns = {{.name = "CPU", .type = "string", .json_path = ".containers[*].usage.cpu"},
                  {.name = "Memory", .type = "string", .json_path = ".containers[*].usage.memory"},
                  {.name = "Window", .type = "string", .json_path = ".window"}};
  return kind;
}

std::vector<std::pair<std::string, schema::Schema>> metrics_schemas() {
  json::object node = common_places(), pod = common_places();
  node["usage"] = usage_place();
  pod["containers"] = json::object{
      {"type", "array"},
      {"description", "What each running container uses."},
      {"items",
       {{"type", "object"},
        {"properties", {{"name", text("The container's name.")}, {"usage", usage_place()}}}}}};
  std::vector<std::pair<std::string, schema::Schema>> out;
  out.emplace_back(fmt::format("{}NodeMetrics", kPackage),
                   object_of(std::move(node), "What a node uses."));
  out.emplace_back(fmt::format("{}PodMetrics", kPackage),
                   object_of(std::move(pod), "What the containers of a pod use."));
  return out;
}

json::value metrics_reader_role() {
  const auto gathered = [](std::string_view into) {
    return fmt::format("rbac.authorization.k8s.io/aggregate-to-{}", into);
  };
  return json::object{
      {"apiVersion", "rbac.authorization.k8s.io/v1"},
      {"kind", "ClusterRole"},
      {"metadata",
       {{"name", "system:aggregated-metrics-reader"},
        {"labels",
         {{gathered("admin"), "true"}, {gathered("edit"), "true"}, {gathered("view"), "true"}}}}},
      {"rules", json::array{json::object{{"verbs", {"get", "list", "watch"}},
                                         {"apiGroups", {kMetricsGroup}},
                                         {"resources", {"pods", "nodes"}}}}}};
}

}  // namespace skiff::api
