#include "apiserver/usage.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/meta.h"
#include "api/metrics/metrics.h"
#include "apiserver/negotiate.h"
#include "apiserver/selection.h"
#include "apiserver/status.h"
#include "apiserver/table.h"

namespace skiff::apiserver {
namespace {

json::object amounts(const Used& used) {
  // A page more or less is no matter; that nothing at all is used would be a lie.
  const std::int64_t kib = used.memory_bytes / 1024;
  return {{"cpu", fmt::format("{}n", used.cpu_nano)}, {"memory", fmt::format("{}Ki", kib)}};
}

// `about` is the Node or Pod itself, whose labels are what a selector asks for.
json::object usage_object(const ServedKind& kind, const json::value& about,
                          const Measured& measured, Time now) {
  json::object metadata{{"name", json::string(api::name(about))}};
  if (kind.resource().namespaced) metadata["namespace"] = json::string(api::ns(about));
  metadata["creationTimestamp"] = rfc3339(now);
  if (const json::value* labels = json::find(about, {"metadata", "labels"})) {
    metadata["labels"] = *labels;
  }
  return {{"kind", kind.resource().kind},
          {"apiVersion", kind.resource().api_version()},
          {"metadata", std::move(metadata)},
          {"timestamp", rfc3339(measured.at)},
          {"window", go_duration(measured.window)}};
}

std::vector<json::value> node_objects(const store::Store& store, const ServedKind& kind,
                                      const Usage& usage, Time now) {
  std::vector<json::value> out;
  for (const NodeUsage& node : usage.nodes) {
    const store::EntryPtr entry = store.get({.resource = "nodes", .name = node.name});
    if (!entry) continue;
    json::object object = usage_object(kind, *entry->value(), node.measured, now);
    json::object used = amounts(node.used);
    for (const auto& [resource, amount] : node.more) used[resource] = amount;
    object["usage"] = std::move(used);
    out.emplace_back(std::move(object));
  }
  return out;
}

std::vector<json::value> pod_objects(const store::Store& store, const ServedKind& kind,
                                     const Usage& usage, std::string_view ns, Time now) {
  std::vector<json::value> out;
  for (const PodUsage& pod : usage.pods) {
    if (!ns.empty() && pod.ns != ns) continue;
    const store::EntryPtr entry = store.get({.resource = "pods", .ns = pod.ns, .name = pod.name});
    // A name may be another pod's by now.
    if (!entry || api::uid(*entry->value()) != pod.uid) continue;
    json::object object = usage_object(kind, *entry->value(), pod.measured, now);
    json::array containers;
    for (const ContainerUsage& one : pod.containers) {
      json::object used = amounts(one.used);
      for (const auto& [resource, amount] : one.more) used[resource] = amount;
      containers.emplace_back(json::object{{"name", one.name}, {"usage", std::move(used)}});
    }
    object["containers"] = std::move(containers);
    out.emplace_back(std::move(object));
  }
  return out;
}

// The sentences of metrics-server.
Error not_measured(const store::Store& store, const ServedKind& kind, const Route& route) {
  const bool pods = kind.resource().namespaced;
  const std::string shown = pods ? route.ns + "/" + route.name : route.name;
  const bool there =
      store.get({.resource = kind.resource().plural, .ns = route.ns, .name = route.name}) !=
      nullptr;
  const api::Resource about = there ? api::Resource{.group = std::string(api::kMetricsGroup),
                                                    .plural = pods ? "podmetrics" : "nodemetrics"}
                                    : api::Resource{.plural = kind.resource().plural};
  return not_found(about, shown);
}

json::object shown_list(const ServedKind& kind, const Wanted& wanted,
                        const std::vector<json::value>& objects, Time now) {
  json::array items;
  for (const json::value& object : objects) {
    switch (wanted.shape) {
      case Shape::kObject:
        items.push_back(object);
        break;
      case Shape::kTable:
        items.emplace_back(table_row(kind, object, RowObject::kMetadata, wanted.version, now));
        break;
      case Shape::kPartialMetadata:
      case Shape::kPartialMetadataList:
        items.emplace_back(partial_metadata(object, wanted.version));
        break;
    }
  }
  const std::string meta = "meta.k8s.io/" + wanted.version;
  if (wanted.shape == Shape::kTable) {
    return {{"kind", "Table"},
            {"apiVersion", meta},
            {"metadata", json::object()},
            {"columnDefinitions", table_columns(kind)},
            {"rows", std::move(items)}};
  }
  const bool whole = wanted.shape == Shape::kObject;
  return {{"kind", whole ? kind.resource().kind + "List" : "PartialObjectMetadataList"},
          {"apiVersion", whole ? kind.resource().api_version() : meta},
          {"metadata", json::object()},
          {"items", std::move(items)}};
}

}  // namespace

std::string go_duration(Duration duration) {
  const std::int64_t us = std::max<std::int64_t>(0, duration.count());
  constexpr std::int64_t kSecond = 1'000'000;
  std::string fraction = fmt::format("{:06}", us % kSecond);
  while (!fraction.empty() && fraction.back() == '0') fraction.pop_back();
  const std::int64_t minutes = us / kSecond / 60, hours = minutes / 60;
  return fmt::format("{}{}{}{}{}s", hours > 0 ? fmt::format("{}h", hours) : "",
                     minutes > 0 ? fmt::format("{}m", minutes % 60) : "", us / kSecond % 60,
                     fraction.empty() ? "" : ".", fraction);
}

bool is_usage(const ServedKind& kind) {
  return kind.resource().group == api::kMetricsGroup && !kind.custom;
}

http::Response serve_usage(const store::Store& store, const UsageSource& source,
                           const ServedKind& kind, const Route& route, const http::Request& request,
                           const http::Url& url, Time now) {
  if (!source) {
    return error_response({.code = Code::kServiceUnavailable,
                           .message = "nobody measures here: this Skiff runs no pods"});
  }
  const auto wanted = negotiate(http::header(request.headers, "Accept"), true);
  if (!wanted) return error_response(wanted.error());
  const auto selection = Selection::parse(kind, route.ns, url.param("labelSelector").value_or(""),
                                          url.param("fieldSelector").value_or(""));
  if (!selection) return error_response(selection.error());
  const Usage usage = source();
  std::vector<json::value> objects = kind.resource().namespaced
                                         ? pod_objects(store, kind, usage, route.ns, now)
                                         : node_objects(store, kind, usage, now);
  if (!route.name.empty()) {
    const auto found = std::ranges::find(objects, route.name,
                                         [](const json::value& one) { return api::name(one); });
    if (found == objects.end()) return error_response(not_measured(store, kind, route));
    if (wanted->shape == Shape::kObject) return json_response(200, json::serialize(*found));
    json::object one = shown_list(kind, *wanted, {*found}, now);
    const bool table = wanted->shape == Shape::kTable;
    return json_response(
        200, json::serialize(table ? json::value(std::move(one)) : one["items"].as_array().at(0)));
  }
  std::erase_if(objects, [&](const json::value& one) { return !selection->matches(one); });
  std::ranges::sort(objects, {}, [](const json::value& one) {
    return std::pair(std::string(api::ns(one)), std::string(api::name(one)));
  });
  return json_response(200, json::serialize(shown_list(kind, *wanted, objects, now)));
}

}  // namespace skiff::apiserver
