#include "client/remote/discovery.h"

#include "base/strings.h"

namespace skiff::client {

const std::string_view kDiscoveryAccept =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,"
    "application/json";

namespace {

Discovered kind_of_resource(const json::value& resource, std::string_view group,
                            std::string_view version) {
  Discovered out;
  api::Kind& kind = out.kind;
  kind.resource = {.group = std::string(group),
                   .version = std::string(version),
                   .plural = std::string(json::get_string(resource, {"resource"})),
                   .kind = std::string(json::get_string(resource, {"responseKind", "kind"})),
                   .namespaced = json::get_string(resource, {"scope"}) == "Namespaced"};
  kind.singular = json::get_string(resource, {"singularResource"});
  kind.short_names = json::strings(json::get_array(resource, {"shortNames"}));
  kind.categories = json::strings(json::get_array(resource, {"categories"}));
  for (const json::value& sub : json::get_array(resource, {"subresources"})) {
    out.subresources.emplace_back(json::get_string(sub, {"subresource"}));
    if (out.subresources.back() == "status") kind.has_status = true;
  }
  out.verbs = json::strings(json::get_array(resource, {"verbs"}));
  return out;
}

}  // namespace

bool is_aggregated(const json::value& answer) {
  return json::get_string(answer, {"kind"}) == "APIGroupDiscoveryList";
}

std::vector<Discovered> kinds_of_aggregated(const json::value& list) {
  std::vector<Discovered> out;
  for (const json::value& group : json::get_array(list, {"items"})) {
    const std::string_view name = json::get_string(group, {"metadata", "name"});
    for (const json::value& version : json::get_array(group, {"versions"})) {
      for (const json::value& resource : json::get_array(version, {"resources"})) {
        out.push_back(kind_of_resource(resource, name, json::get_string(version, {"version"})));
      }
    }
  }
  return out;
}

std::vector<std::string> version_paths(const json::value& answer) {
  std::vector<std::string> out;
  for (const std::string& version : json::strings(json::get_array(answer, {"versions"}))) {
    out.push_back("/api/" + version);
  }
  for (const json::value& group : json::get_array(answer, {"groups"})) {
    const std::string_view preferred =
        json::get_string(group, {"preferredVersion", "groupVersion"});
    if (!preferred.empty()) out.push_back("/apis/" + std::string(preferred));
    for (const json::value& version : json::get_array(group, {"versions"})) {
      const std::string_view name = json::get_string(version, {"groupVersion"});
      if (name != preferred) out.push_back("/apis/" + std::string(name));
    }
  }
  return out;
}

std::vector<Discovered> kinds_of_version(const json::value& list) {
  const std::string_view group_version = json::get_string(list, {"groupVersion"});
  const std::size_t slash = group_version.find('/');
  const bool core = slash == std::string_view::npos;
  const std::string_view group = core ? std::string_view() : group_version.substr(0, slash);
  const std::string_view version = core ? group_version : group_version.substr(slash + 1);
  std::vector<Discovered> out;
  for (const json::value& resource : json::get_array(list, {"resources"})) {
    const std::string_view name = json::get_string(resource, {"name"});
    // Sub-resources are listed as PLURAL/NAME, after their resource.
    if (const std::size_t sub = name.find('/'); sub != std::string_view::npos) {
      for (Discovered& one : out) {
        if (one.kind.resource.plural != name.substr(0, sub)) continue;
        one.subresources.emplace_back(name.substr(sub + 1));
        if (one.subresources.back() == "status") one.kind.has_status = true;
      }
      continue;
    }
    out.emplace_back().verbs = json::strings(json::get_array(resource, {"verbs"}));
    api::Kind& kind = out.back().kind;
    kind.resource = {.group = std::string(group),
                     .version = std::string(version),
                     .plural = std::string(name),
                     .kind = std::string(json::get_string(resource, {"kind"})),
                     .namespaced = json::get_bool(resource, {"namespaced"}).value_or(false)};
    kind.singular = json::get_string(resource, {"singularName"});
    kind.short_names = json::strings(json::get_array(resource, {"shortNames"}));
    kind.categories = json::strings(json::get_array(resource, {"categories"}));
  }
  return out;
}

}  // namespace skiff::client
