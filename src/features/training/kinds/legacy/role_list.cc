#include "features/training/kinds/legacy/role_list.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/meta.h"
#include "base/strings.h"
#include "features/training/engine/conditions.h"
#include "features/training/engine/defaults.h"
#include "features/training/engine/validation.h"
#include "features/training/kinds/legacy/kept_fields.h"
#include "schema/causes.h"

namespace skiff::training {
namespace {

constexpr std::string_view kPorts = "ports";

std::string upper(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](char c) { return 'a' <= c && c <= 'z' ? c - 32 : c; });
  return out;
}

json::object* training_container_in(const JobKind& kind, json::object& role) {
  json::object& pod = json::make_object(role, {"template"});
  return const_cast<json::object*>(training_container(kind, pod));
}

std::string_view template_restart(const json::object& role) {
  const json::value* given = json::find(role, {"template", "spec", "restartPolicy"});
  return given != nullptr && given->is_string() ? json::view(given->get_string()) : "";
}

// The port of the first version stands beside the template, v1's in the container.
void put_port(const JobKind& kind, json::object& role, const json::value& port) {
  json::object* container = training_container_in(kind, role);
  if (container == nullptr) return;
  json::value& ports = (*container)["ports"];
  if (!ports.is_array()) ports.emplace_array();
  ports.get_array().push_back({{"name", kind.port_name}, {"containerPort", port}});
}

// Whether it was there: v1 may have another one by now.
bool take_port(const JobKind& kind, json::object& role, const json::value& port) {
  json::object* container = training_container_in(kind, role);
  json::value* ports = container == nullptr ? nullptr : container->if_contains("ports");
  if (ports == nullptr || !ports->is_array()) return false;
  json::array& list = ports->get_array();
  const auto ours = std::ranges::find_if(list, [&](const json::value& entry) {
    return json::get_string(entry, {"name"}) == kind.port_name && entry.is_object() &&
           entry.get_object().contains("containerPort") &&
           entry.get_object().at("containerPort") == port;
  });
  if (ours == list.end()) return false;
  list.erase(ours);
  if (list.empty()) container->erase("ports");
  return true;
}

// One entry of the list as a role of v1; `older` takes what v1 has no place for.
void read_entry(const ListVersion& version, const json::value& entry, json::object& roles,
                json::object& older) {
  const JobKind& kind = version.kind();
  const std::string_view type = json::get_string(entry, {version.type_field}, "MASTER");
  const std::string_view known = canonical_role(kind, type);
  std::string name(known.empty() ? type : known);
  // The same type twice: validation says so, since it knows roles in any case.
  if (roles.contains(name)) name = upper(name) == name ? lower(name) : upper(name);
  json::object role = entry.is_object() ? entry.get_object() : json::object{};
  take_members(role, {version.type_field});
  if (!role.contains("replicas")) role["replicas"] = 1;
  if (const std::string_view restart = template_restart(role); !restart.empty()) {
    role["restartPolicy"] = json::string(restart);
  }
  if (const json::value* port = role.if_contains(version.port_field)) {
    const json::value number = *port;
    take_members(role, {version.port_field});
    json::make_object(older, {kPorts})[name] = number;
    put_port(kind, role, number);
  }
  roles[name] = std::move(role);
}

void put_scheduler(json::object& roles, std::string_view scheduler) {
  for (auto& [name, role] : roles) {
    if (!role.is_object()) continue;
    json::object& spec = json::make_object(role, {"template", "spec"});
    if (!spec.contains("schedulerName")) spec["schedulerName"] = json::string(scheduler);
  }
}

json::value write_entry(const ListVersion& version, std::string_view name, json::object role,
                        const json::object& older, json::object& newer) {
  const JobKind& kind = version.kind();
  const json::value all(older);
  if (const json::value* port = json::find(all, {kPorts, name});
      port != nullptr && take_port(kind, role, *port)) {
    role[version.port_field] = *port;
  }
  const std::string_view scheduler = json::get_string(all, {"schedulerName"});
  if (!scheduler.empty()) {
    json::object& spec = json::make_object(role, {"template", "spec"});
    const json::value* own = spec.if_contains("schedulerName");
    if (own != nullptr && *own == json::value(json::string(scheduler))) spec.erase("schedulerName");
  }
  // The first version has one policy, the template's; null: v1's role has none of its own.
  const json::object restart = take_members(role, {"restartPolicy"});
  const json::value own = restart.empty() ? json::value() : restart.at("restartPolicy");
  const std::string_view given = template_restart(role);
  if (own != (given.empty() ? json::value() : json::value(json::string(given)))) {
    json::make_object(newer, {"restartPolicies"})[name] = own;
  }
  json::object entry{{version.type_field, upper(name)}};
  put_back(entry, role);
  return entry;
}

struct OldPhase {
  std::string_view phase = {};
  std::string_view state = "Unknown";
};

OldPhase phase_of(const json::object& status) {
  if (has_condition(status, kSucceeded)) return {"Done", "Succeeded"};
  if (has_condition(status, kFailed)) return {"Done", "Failed"};
  if (has_condition(status, kRunning) || has_condition(status, kRestarting)) {
    return {"Running", "Running"};
  }
  if (has_condition(status, kCreated)) return {"Creating", "Running"};
  return {};
}

std::string failure_message(const json::object& status) {
  const json::value all(status);
  for (const json::value& condition : json::get_array(all, {"conditions"})) {
    if (json::get_string(condition, {"type"}) != kFailed) continue;
    return std::string(json::get_string(condition, {"message"}));
  }
  return {};
}

json::value role_status(const ListVersion& version, std::string_view role,
                        const json::value& counts) {
  json::object states;
  for (const auto& [key, state] :
       {std::pair{"active", "Running"}, {"succeeded", "Succeeded"}, {"failed", "Failed"}}) {
    if (const auto n = json::get_int(counts, {key})) states[state] = *n;
  }
  const std::string_view state = states.contains("Failed")      ? "Failed"
                                 : states.contains("Running")   ? "Running"
                                 : states.contains("Succeeded") ? "Succeeded"
                                                                : "Unknown";
  return {{version.status_type_field, upper(role)},
          {"state", json::string(state)},
          {"ReplicasStates", std::move(states)}};
}

// The first version's words beside v1's own, so that a status written back is whole.
void write_phase(const ListVersion& version, json::value& object) {
  if (json::find(object, {"status"}) == nullptr) return;
  json::object& status = json::make_object(object, {"status"});
  const OldPhase phase = phase_of(status);
  const std::string reason = failure_message(status);
  json::array list;
  if (json::value* roles = status.if_contains("replicaStatuses")) {
    for (const auto& [role, counts] : json::get_object(object, {"status", "replicaStatuses"})) {
      list.push_back(role_status(version, role, counts));
    }
    json::value moved = std::move(*roles);
    status["roles"] = std::move(moved);
  }
  status["phase"] = json::string(phase.phase);
  status["state"] = json::string(phase.state);
  status["reason"] = reason;
  status["replicaStatuses"] = std::move(list);
}

void erase_phase(json::value& object) {
  if (json::find(object, {"status"}) == nullptr) return;
  json::object& status = json::make_object(object, {"status"});
  for (const std::string_view key : {"phase", "state", "reason", "replicaStatuses"}) {
    status.erase(key);
  }
  json::object roles = take_members(status, {"roles"});
  if (!roles.empty()) status["replicaStatuses"] = std::move(roles.at("roles"));
}

// Where a field of v1 stands in the first version. Roles have the order of their list.
std::string path_in_list(const ListVersion& version, const json::object& roles, std::string path) {
  const std::string map = schema::child("spec", version.kind().replicas_field);
  if (!path.starts_with(map)) return path;
  std::size_t index = 0;
  for (const auto& [key, role] : roles) {
    const std::string own = role_path(version.kind(), key);
    const std::string entry = schema::child("spec.replicaSpecs", index++);
    // About the role as such: what is wrong is its type.
    if (path == own) return schema::child(entry, version.type_field);
    if (path.starts_with(own + ".")) return entry + path.substr(own.size());
  }
  return "spec.replicaSpecs" + path.substr(map.size());
}

// The types that a role may have, as this version writes them.
std::vector<std::string> types(const ListVersion& version) {
  std::vector<std::string> out;
  for (const std::string_view role : version.kind().roles) out.push_back(upper(role));
  return out;
}

// What is said of a role that nobody knows, in words of this version.
void rename_types(const ListVersion& version, const json::object& roles,
                  std::vector<Cause>& causes) {
  for (const auto& [key, role] : roles) {
    if (!canonical_role(version.kind(), key).empty()) continue;
    const auto found = std::ranges::find(causes, role_path(version.kind(), key), &Cause::field);
    if (found == causes.end()) continue;
    *found = schema::unsupported(found->field, json::string(key), types(version));
  }
}

// Who decides must be there.
void check_termination(const ListVersion& version, const json::value& object,
                       const json::object& roles, std::vector<Cause>& causes) {
  const Result<json::value> older = json::parse(api::annotation(object, kOlderFields));
  if (!older) return;
  const std::string_view name =
      json::get_string(*older, {"terminationPolicy", version.termination, "replicaName"});
  if (name.empty() || roles.contains(canonical_role(version.kind(), name))) return;
  causes.push_back(
      schema::invalid(fmt::format("spec.terminationPolicy.{}.replicaName", version.termination),
                      json::string(name), "must be the type of one of replicaSpecs"));
}

}  // namespace

std::vector<Cause> validate_role_list(const ListVersion& version, const json::value& object,
                                      const api::Admission& context) {
  std::vector<Cause> causes = validate_job(version.kind(), object, context);
  if (context.subresource == "status") return causes;
  const json::object& roles = json::get_object(object, {"spec", version.kind().replicas_field});
  const auto said = [&](const std::string& field) {
    return std::ranges::find(causes, field, &Cause::field) != causes.end();
  };
  // v1's own rule for some kinds, the first version's for all.
  if (!said(role_path(version.kind(), "Master") + ".replicas")) {
    check_single_master(version.kind(), object, causes);
  }
  rename_types(version, roles, causes);
  for (Cause& cause : causes) cause.field = path_in_list(version, roles, std::move(cause.field));
  check_termination(version, object, roles, causes);
  return causes;
}

void from_role_list(const ListVersion& version, json::value& object) {
  json::object& spec = json::make_object(object, {"spec"});
  const json::object newer = take_fields(object, kNewerFields);
  json::object roles;
  json::object older = take_others(spec, {"replicaSpecs"});
  for (const json::value& entry : json::get_array(object, {"spec", "replicaSpecs"})) {
    read_entry(version, entry, roles, older);
  }
  const json::value all(older);
  if (const std::string_view name = json::get_string(all, {"schedulerName"}); !name.empty()) {
    put_scheduler(roles, name);
  }
  const json::value kept(newer);
  for (const auto& [name, restart] : json::get_object(kept, {"restartPolicies"})) {
    json::value* role = roles.if_contains(name);
    if (role == nullptr) continue;
    take_members(role->as_object(), {"restartPolicy"});
    if (restart.is_string()) role->as_object()["restartPolicy"] = restart;
  }
  // The first version stopped what still ran at the end, as v1 does under this policy.
  spec = {{"runPolicy", {{"cleanPodPolicy", "Running"}}}};
  const json::value* rest = json::find(kept, {"spec"});
  if (rest != nullptr && rest->is_object() && version.fits(*rest)) spec = rest->get_object();
  spec[version.kind().replicas_field] = std::move(roles);
  keep_fields(object, kOlderFields, older);
  erase_phase(object);
}

void to_role_list(const ListVersion& version, json::value& object) {
  json::object& spec = json::make_object(object, {"spec"});
  json::object older = take_fields(object, kOlderFields);
  const json::object roles = json::get_object(object, {"spec", version.kind().replicas_field});
  spec.erase(version.kind().replicas_field);
  json::object newer;
  json::array list;
  for (const auto& [name, role] : roles) {
    list.push_back(write_entry(version, name, role.is_object() ? role.get_object() : json::object{},
                               older, newer));
  }
  if (spec != json::object{{"runPolicy", {{"cleanPodPolicy", "Running"}}}}) newer["spec"] = spec;
  older.erase(kPorts);
  spec = std::move(older);
  spec["replicaSpecs"] = std::move(list);
  keep_fields(object, kNewerFields, newer);
  write_phase(version, object);
}

}  // namespace skiff::training
