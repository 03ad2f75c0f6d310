#include "api/core/node.h"

#include "api/cells.h"
#include "api/meta.h"
#include "base/strings.h"

namespace skiff::api {
namespace {

constexpr std::string_view kRolePrefix = "node-role.kubernetes.io/";

std::string node_status_cell(const json::value& node) {
  const json::object* ready = condition(node, "Ready");
  std::string out = "Unknown";
  if (ready != nullptr) out = condition_true(node, "Ready") ? "Ready" : "NotReady";
  if (json::get_bool(node, {"spec", "unschedulable"}).value_or(false)) out += ",SchedulingDisabled";
  return out;
}

std::string roles_cell(const json::value& node) {
  std::vector<std::string> roles;
  for (const auto& [key, value] : json::get_object(node, {"metadata", "labels"})) {
    const std::string_view label = key;
    if (label.starts_with(kRolePrefix) && label.size() > kRolePrefix.size()) {
      roles.emplace_back(label.substr(kRolePrefix.size()));
    }
  }
  std::ranges::sort(roles);
  return or_none(join(roles, ","));
}

std::string node_address_cell(const json::value& node, std::string_view type) {
  for (const json::value& a : json::get_array(node, {"status", "addresses"})) {
    if (json::get_string(a, {"type"}) == type) return or_none(json::get_string(a, {"address"}));
  }
  return "<none>";
}

std::string info_cell(const json::value& node, std::string_view field) {
  const std::string_view text = json::get_string(node, {"status", "nodeInfo", field});
  return text.empty() ? std::string("<unknown>") : std::string(text);
}

json::array node_cells(const json::value& node, std::int64_t now_s) {
  json::array out;
  for (const std::string& text :
       {node_status_cell(node), roles_cell(node), age_cell(node, now_s),
        std::string(json::get_string(node, {"status", "nodeInfo", "kubeletVersion"})),
        node_address_cell(node, "InternalIP"), node_address_cell(node, "ExternalIP"),
        info_cell(node, "osImage"), info_cell(node, "kernelVersion"),
        info_cell(node, "containerRuntimeVersion")}) {
    out.emplace_back(json::string(text));
  }
  return out;
}

void set_node_defaults(json::value& object) {
  const json::value* capacity = json::find(object, {"status", "capacity"});
  if (capacity == nullptr || json::find(object, {"status", "allocatable"}) != nullptr) return;
  json::value copy = *capacity;
  json::set(object, {"status", "allocatable"}, std::move(copy));
}

// The old field and the first of the new list are the same block.
void set_blocks(json::value& object) {
  const std::string one(json::get_string(object, {"spec", "podCIDR"}));
  const json::array& all = json::get_array(object, {"spec", "podCIDRs"});
  if (!one.empty() && all.empty()) {
    json::set(object, {"spec", "podCIDRs"}, json::array{json::string(one)});
  }
}

void set_all_defaults(json::value& object) {
  if (!object.is_object()) return;
  set_node_defaults(object);
  set_blocks(object);
}

// A flag that nobody set reads as false.
std::optional<std::string> node_field_text(const json::value& object, std::string_view path) {
  if (path != "spec.unschedulable") return std::nullopt;
  return json::get_bool(object, {"spec", "unschedulable"}).value_or(false) ? "true" : "false";
}

}  // namespace

Kind node_kind() {
  return {.resource = {"", "v1", "nodes", "Node", false},
          .singular = "node",
          .short_names = {"no"},
          .has_status = true,
          .has_generation = false,
          .schema = "io.k8s.api.core.v1.Node",
          .columns = {{"Status", "string"},
                      {"Roles", "string"},
                      {"Age", "string"},
                      {"Version", "string"},
                      {"Internal-IP", "string", "", 1},
                      {"External-IP", "string", "", 1},
                      {"OS-Image", "string", "", 1},
                      {"Kernel-Version", "string", "", 1},
                      {"Container-Runtime", "string", "", 1}},
          .selectable = {"spec.unschedulable"},
          .set_defaults = set_all_defaults,
          .field_text = node_field_text,
          .cells = node_cells};
}

}  // namespace skiff::api
