#include "features/training/engine/services.h"

#include <algorithm>
#include <string>
#include <vector>

#include "api/meta.h"
#include "features/training/engine/defaults.h"
#include "features/training/engine/job_kind.h"
#include "features/training/engine/labels.h"

namespace skiff::training {
namespace {

json::object service_port(std::string_view name, std::int64_t port, std::string_view protocol) {
  return {{"name", json::string(name)},
          {"port", port},
          {"targetPort", port},
          {"protocol", json::string(protocol)}};
}

// Every port of the container that trains, the framework's own added where it is not named. A name
// may stand only once in a service; the first one holds.
json::array service_ports(const Job& job, const Role& role) {
  json::array out;
  std::vector<std::string_view> names;
  const auto add = [&](std::string_view name, std::int64_t port, std::string_view protocol) {
    if (std::ranges::find(names, name) != names.end()) return;
    names.push_back(name);
    out.push_back(service_port(name, port, protocol));
  };
  const json::object* container = training_container(*job.kind, *role.pod_template);
  if (container != nullptr) {
    const json::value* ports = container->if_contains("ports");
    if (ports != nullptr && ports->is_array()) {
      for (const json::value& port : ports->get_array()) {
        add(json::get_string(port, {"name"}), json::get_int(port, {"containerPort"}).value_or(0),
            json::get_string(port, {"protocol"}, "TCP"));
      }
    }
  }
  add(job.kind->port_name, role.port, "TCP");
  return out;
}

}  // namespace

json::object replica_labels(const Job& job, const Role& role, std::int64_t index) {
  return {{kJobLabel, json::string(job.name)},
          {kOperatorLabel, job.kind->controller},
          {kRoleLabel, role.lower},
          {kIndexLabel, std::to_string(index)}};
}

json::value render_service(const Job& job, const Role& role, std::int64_t index) {
  const json::object labels = replica_labels(job, role, index);
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata",
           {{"name", replica_name(job, role, index)},
            {"namespace", json::string(job.ns)},
            {"labels", labels},
            {"ownerReferences", json::array{api::owner_reference(*job.root)}}}},
          {"spec",
           {{"clusterIP", "None"},
            {"selector", labels},
            {"ports", service_ports(job, role)},
            {"publishNotReadyAddresses", true}}}};
}

}  // namespace skiff::training
