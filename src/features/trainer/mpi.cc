#include "features/trainer/mpi.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "api/meta.h"
#include "api/mpi.h"
#include "features/trainer/merge.h"
#include "features/trainer/policies.h"
#include "features/trainer/trainjob.h"

namespace skiff::trainer {
namespace {

constexpr std::string_view kVolume = "mpi-hostfile";
constexpr std::string_view kRbac = "rbac.authorization.k8s.io/v1";

std::string map_name(const json::value& job) {
  return fmt::format("{}-mpi-hostfile", api::name(job));
}

std::string own_account(const json::value& job) {
  return fmt::format("{}-launcher", api::name(job));
}

const json::value* mpi_part_named(const json::value& jobset, std::string_view name) {
  for (const json::value& part : json::get_array(jobset, {"spec", "replicatedJobs"})) {
    if (json::get_string(part, {"name"}) == name) return &part;
  }
  return nullptr;
}

// Of the launcher's pods, in the JobSet as it was made.
std::string account(const json::value& job, const json::value& jobset) {
  const json::value* launcher = mpi_part_named(jobset, kLauncher);
  const std::string_view named = launcher == nullptr
                                     ? std::string_view()
                                     : json::get_string(*launcher, {"template", "spec", "template",
                                                                    "spec", "serviceAccountName"});
  return named.empty() ? own_account(job) : std::string(named);
}

json::value mpi_variable(std::string_view name, std::string_view value) {
  return json::object{{"name", json::string(name)}, {"value", json::string(value)}};
}

json::value item(std::string_view key, int mode) {
  return {{"key", json::string(key)}, {"path", json::string(key)}, {"mode", mode}};
}

void give_files(const json::value& job, json::object& pod, json::object& container) {
  put_named(
      array_at(pod, "volumes"),
      {json::object{{"name", json::string(kVolume)},
                    {"configMap",
                     {{"name", map_name(job)},
                      {"items", json::array{item("hostfile", 0444), item("kubexec.sh", 0555)}}}}}});
  put_named(
      array_at(container, "volumeMounts"),
      {json::object{{"name", json::string(kVolume)}, {"mountPath", json::string(mpi::kFolder)}}},
      "mountPath");
}

json::array launcher_variables(std::int64_t slots) {
  json::array out;
  for (const auto& [name, value] : mpi::open_mpi_variables())
    out.push_back(mpi_variable(name, value));
  out.push_back(mpi_variable("OMPI_MCA_orte_set_default_slots", std::to_string(slots)));
  out.push_back(mpi_variable("OMPI_MCA_plm_rsh_args", "-o ConnectionAttempts=10"));
  return out;
}

json::value base(const json::value& job, std::string_view api_version, std::string_view kind,
                 std::string name) {
  return {{"apiVersion", json::string(api_version)},
          {"kind", json::string(kind)},
          {"metadata",
           {{"name", std::move(name)},
            {"namespace", json::string(api::ns(job))},
            {"ownerReferences", json::array{api::owner_reference(job)}}}}};
}

std::string host_file(const json::value& job, const json::value& runtime,
                      const json::value& jobset) {
  std::string subdomain(json::get_string(jobset, {"spec", "network", "subdomain"}));
  if (subdomain.empty()) subdomain = api::name(job);
  std::string out;
  // A JobSet may be older than the rule, or somebody else may have changed it.
  std::int64_t left = kMostHosts;
  for (const json::value& part : json::get_array(jobset, {"spec", "replicatedJobs"})) {
    const std::string_view name = json::get_string(part, {"name"});
    if (name != kNode && !(name == kLauncher && launcher_trains(runtime))) continue;
    const std::int64_t pods = json::get_int(part, {"template", "spec", "parallelism"}).value_or(1);
    // The slots as the launcher was told them when the JobSet was made.
    const std::string_view slots = api::annotation(jobset, kHostAnnotation);
    for (std::int64_t i = 0; i < pods && left > 0; ++i, --left) {
      out += fmt::format("{}-{}-0-{}.{} slots={}\n", api::name(job), name, i, subdomain,
                         slots.empty() ? "1" : slots);
    }
  }
  return out;
}

// Hosts that run, by name; a pod that replaces one which is going wins. Pods of other parts, such
// as initializers, are no hosts.
std::map<std::string, std::string> running(std::span<const Object> pods) {
  std::map<std::string, std::string> out;
  for (const Object& pod : pods) {
    if (api::deleting(*pod) || json::get_string(*pod, {"status", "phase"}) != "Running") continue;
    if (api::annotation(*pod, kHostAnnotation).empty()) continue;
    const std::string_view host = json::get_string(*pod, {"spec", "hostname"});
    if (!host.empty()) out[std::string(host)] = api::name(*pod);
  }
  return out;
}

json::array rules(const json::value& job, const std::map<std::string, std::string>& hosts) {
  json::array names;
  for (const auto& [host, pod] : hosts) names.push_back(json::string(pod));
  json::array out{json::object{{"apiGroups", json::array{""}},
                               {"resources", json::array{"configmaps"}},
                               {"resourceNames", json::array{json::string(map_name(job))}},
                               {"verbs", json::array{"get"}}}};
  // Without a name the rule would mean every pod. A WebSocket begins as a GET; the client looks at
  // the pod first.
  if (!names.empty()) {
    out.push_back(json::object{{"apiGroups", json::array{""}},
                               {"resources", json::array{"pods"}},
                               {"resourceNames", names},
                               {"verbs", json::array{"get"}}});
    out.push_back(json::object{{"apiGroups", json::array{""}},
                               {"resources", json::array{"pods/exec"}},
                               {"resourceNames", std::move(names)},
                               {"verbs", json::array{"create", "get"}}});
  }
  return out;
}

}  // namespace

bool runs_mpi(const json::value& runtime) { return framework_of(runtime) == "mpi"; }

bool launcher_trains(const json::value& runtime) {
  return json::get_bool(runtime, {"spec", "mlPolicy", "mpi", "runLauncherAsNode"}).value_or(false);
}

std::int64_t mpi_count(const json::value& runtime, std::string_view part, std::int64_t nodes) {
  if (part != kNode) return 1;
  return std::max<std::int64_t>(launcher_trains(runtime) ? nodes - 1 : nodes, 1);
}

std::int64_t mpi_slots(const json::value& runtime, const json::value& trainjob,
                       const json::value& resources) {
  const std::optional<std::int64_t> asked = asked_processes(trainjob, resources);
  if (asked) return std::max<std::int64_t>(*asked, 1);
  const std::int64_t usual =
      json::get_int(runtime, {"spec", "mlPolicy", "mpi", "numProcPerNode"}).value_or(1);
  return usual > 1 ? usual : std::max<std::int64_t>(gpus_of(resources), 1);
}

void finish_mpi_part(const json::value& trainjob, std::int64_t slots, json::value& part) {
  const std::string name(json::get_string(part, {"name"}));
  if (name != kNode && name != kLauncher) return;
  json::object& pods = json::make_object(part, {"template", "spec", "template"});
  json::object& annotations = json::make_object(pods, {"metadata", "annotations"});
  annotations[kHostAnnotation] = json::string(name);
  json::object& spec = json::make_object(pods, {"spec"});
  if (name == kLauncher) {
    annotations[mpi::kRemoteShellAnnotation] = "true";
    const json::value* given = spec.if_contains("serviceAccountName");
    if (given == nullptr || !given->is_string() || given->get_string().empty()) {
      spec["serviceAccountName"] = own_account(trainjob);
    }
  }
  for (json::value& container : array_at(spec, "containers")) {
    if (!container.is_object() || json::get_string(container, {"name"}) != kNode) continue;
    json::object& fields = container.get_object();
    // To nodes, too: the daemons that mpirun starts there insist that the remote shell exists.
    give_files(trainjob, spec, fields);
    if (name == kLauncher) {
      put_named(array_at(fields, "env"), launcher_variables(slots));
    } else {
      mpi::make_wait(fields);
    }
  }
}

std::vector<json::value> mpi_objects(const json::value& trainjob, const json::value& runtime,
                                     const json::value& jobset, std::span<const Object> pods) {
  const std::map<std::string, std::string> hosts = running(pods);
  std::string known;
  for (const auto& [host, pod] : hosts) known += fmt::format("{}={}\n", host, pod);
  json::value map = base(trainjob, "v1", "ConfigMap", map_name(trainjob));
  map.as_object()["data"] = {{"hostfile", host_file(trainjob, runtime, jobset)},
                             {"kubexec.sh", mpi::remote_shell_by_map(map_name(trainjob), kNode)},
                             {"pods", known}};
  json::value role = base(trainjob, kRbac, "Role", own_account(trainjob));
  role.as_object()["rules"] = rules(trainjob, hosts);
  json::value binding = base(trainjob, kRbac, "RoleBinding", own_account(trainjob));
  binding.as_object()["roleRef"] = {
      {"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "Role"}, {"name", own_account(trainjob)}};
  binding.as_object()["subjects"] =
      json::array{json::object{{"kind", "ServiceAccount"},
                               {"name", account(trainjob, jobset)},
                               {"namespace", json::string(api::ns(trainjob))}}};
  std::vector<json::value> out;
  if (account(trainjob, jobset) == own_account(trainjob)) {
    out.push_back(base(trainjob, "v1", "ServiceAccount", own_account(trainjob)));
  }
  // The map comes last: who reads a pod's name there may start programs in it.
  out.push_back(std::move(role));
  out.push_back(std::move(binding));
  out.push_back(std::move(map));
  return out;
}

std::vector<api::Resource> mpi_kinds() {
  const std::string rbac = "rbac.authorization.k8s.io";
  return {{.version = "v1", .plural = "serviceaccounts", .kind = "ServiceAccount"},
          {.group = rbac, .version = "v1", .plural = "roles", .kind = "Role"},
          {.group = rbac, .version = "v1", .plural = "rolebindings", .kind = "RoleBinding"}};
}

}  // namespace skiff::trainer
