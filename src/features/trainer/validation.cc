#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "api/checks.h"
#include "api/meta.h"
#include "api/rules.h"
#include "base/names.h"
#include "base/strings.h"
#include "features/trainer/mpi.h"
#include "features/trainer/overrides.h"
#include "features/trainer/policies.h"
#include "features/trainer/trainjob.h"
#include "features/trainer/tune.h"
#include "schema/causes.h"
#include "schema/check.h"

namespace skiff::trainer {
namespace {

using schema::child;
using schema::forbidden;
using schema::invalid;

const std::string kUri = "^[A-Za-z][A-Za-z0-9+.-]*://.+$";

json::value shown(const json::value& object, std::initializer_list<std::string_view> path) {
  const json::value* found = json::find(object, path);
  return found == nullptr ? json::value() : *found;
}

void check_name(const json::value& job, api::Causes& out) {
  const std::string_view name = api::name(job);
  if (name.empty()) return;  // generateName
  if (name.size() > 63) {
    out.push_back(invalid("metadata.name", json::string(name),
                          "metadata.name must be no more than 63 characters"));
  }
  if (!schema::matches_pattern("^[a-z]([-a-z0-9]*[a-z0-9])?$", name)) {
    out.push_back(invalid("metadata.name", json::string(name),
                          "metadata.name must match RFC 1035 DNS label format"));
  }
}

void check_managed_by(const json::value& job, api::Causes& out) {
  const std::string_view manager = json::get_string(job, {"spec", "managedBy"}, kOwnManager);
  if (manager == kOwnManager || manager == kMultiKueue) return;
  out.push_back(invalid("spec.managedBy", json::string(manager),
                        "ManagedBy must be trainer.kubeflow.org/trainjob-controller or "
                        "kueue.x-k8s.io/multikueue if set"));
}

void check_sources(const json::value& job, api::Causes& out) {
  for (const std::string_view what : {"dataset", "model"}) {
    const std::string_view uri = json::get_string(job, {"spec", "initializer", what, "storageUri"});
    if (uri.empty() || schema::matches_pattern(kUri, uri)) continue;
    out.push_back(invalid(child(child("spec.initializer", what), "storageUri"), json::string(uri),
                          "storageUri may be empty, or it must be a valid URI (scheme://...)"));
  }
}

// A number, as 2.3 has it, or one of the words that 2.0 and 2.1 had.
void check_processes(const json::value& job, api::Causes& out) {
  const json::value* given = json::find(job, {"spec", "trainer", "numProcPerNode"});
  if (given == nullptr || !given->is_string()) return;
  const std::string_view text = json::view(given->get_string());
  if (whole_number(text) || text == "auto" || text == "cpu" || text == "gpu") return;
  out.push_back(
      invalid("spec.trainer.numProcPerNode", *given, "must have an int value or auto, cpu, gpu"));
}

const json::array& patched_parts(const json::value& patch) {
  return json::get_array(patch, {"trainingRuntimeSpec", "template", "spec", "replicatedJobs"});
}

// Fields of a pod that a patch may set; those of the second list also once the job exists.
constexpr std::array<std::string_view, 7> kFixed = {"serviceAccountName",
                                                    "volumes",
                                                    "initContainers",
                                                    "containers",
                                                    "imagePullSecrets",
                                                    "securityContext",
                                                    "terminationGracePeriodSeconds"};
constexpr std::array<std::string_view, 4> kMovable = {"nodeSelector", "affinity", "tolerations",
                                                      "schedulingGates"};
constexpr std::array<std::string_view, 4> kPatchContainerFields = {"name", "env", "volumeMounts",
                                                                   "securityContext"};

// The member is absent or of its type; the schema lets anything through below a patch.
bool is_typed(const json::value& owner, std::string_view key, bool list, const std::string& path,
              api::Causes& out) {
  const json::value* found = json::find(owner, {key});
  if (found == nullptr || (list ? found->is_array() : found->is_object())) return true;
  const std::string at = child(path, key);
  const json::string have(json::type_name(*found));
  out.push_back(schema::type_invalid(at, have,
                                     fmt::format("{} in body must be of type {}: \"{}\"", at,
                                                 list ? "array" : "object", json::view(have))));
  return false;
}

bool is_map(const json::value& owner, std::string_view key, const std::string& path,
            api::Causes& out) {
  return is_typed(owner, key, false, path, out);
}

// The value under `keys`, where all on the way to it are maps and it is there.
const json::value* map_below(const json::value& owner, std::initializer_list<std::string_view> keys,
                             std::string path, api::Causes& out) {
  const json::value* at = &owner;
  for (const std::string_view key : keys) {
    if (!is_map(*at, key, path, out)) return nullptr;
    at = json::find(*at, {key});
    if (at == nullptr) return nullptr;
    path = child(path, key);
  }
  return at;
}

void check_pod_patch(const json::value& pod, const std::string& path, api::Causes& out) {
  for (const auto& [key, value] : json::get_object(pod, {"spec"})) {
    const std::string_view name(key);
    if (std::ranges::count(kFixed, name) + std::ranges::count(kMovable, name) > 0) continue;
    out.push_back(forbidden(child(child(path, "spec"), name),
                            "a runtime patch may not set this field of a pod"));
  }
  for (const std::string_view list : {"containers", "initContainers", "volumes"}) {
    if (const json::value* spec = json::find(pod, {"spec"})) {
      is_typed(*spec, list, true, child(path, "spec"), out);
    }
  }
  for (const std::string_view list : {"containers", "initContainers"}) {
    const json::array& entries = json::get_array(pod, {"spec", list});
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const std::string at = child(child(child(path, "spec"), list), i);
      if (json::get_string(entries[i], {"name"}).empty()) {
        out.push_back(schema::required(child(at, "name")));
      }
      if (!entries[i].is_object()) continue;
      for (const auto& [key, value] : entries[i].get_object()) {
        if (std::ranges::count(kPatchContainerFields, std::string_view(key)) > 0) continue;
        out.push_back(forbidden(child(at, std::string_view(key)),
                                "a runtime patch may not set this field of a container"));
      }
    }
  }
}

void check_part_patch(const json::value& part, const std::string& path, api::Causes& out) {
  if (!part.is_object()) {
    out.push_back(invalid(path, part, "must be an object with the name of a replicated job"));
    return;
  }
  if (json::get_string(part, {"name"}).empty()) {
    out.push_back(schema::required(child(path, "name")));
  }
  const json::value* job = map_below(part, {"template"}, path, out);
  if (job == nullptr) return;
  is_map(*job, "metadata", child(path, "template"), out);
  const json::value* pod = map_below(part, {"template", "spec", "template"}, path, out);
  if (pod == nullptr) return;
  const std::string at = child(path, "template.spec.template");
  is_map(*pod, "metadata", at, out);
  if (is_map(*pod, "spec", at, out)) check_pod_patch(*pod, at, out);
}

void check_patches(const json::value& job, api::Causes& out) {
  const json::array& patches = json::get_array(job, {"spec", "runtimePatches"});
  for (std::size_t i = 0; i < patches.size(); ++i) {
    const std::string path = child("spec.runtimePatches", i);
    api::check_domain_path(json::get_string(patches[i], {"manager"}), child(path, "manager"), out);
    const json::value* jobset =
        map_below(patches[i], {"trainingRuntimeSpec", "template"}, path, out);
    if (jobset == nullptr) continue;
    const std::string top = child(path, "trainingRuntimeSpec.template");
    is_map(*jobset, "metadata", top, out);
    const json::value* spec = map_below(*jobset, {"spec"}, top, out);
    if (spec == nullptr) continue;
    is_typed(*spec, "replicatedJobs", true, child(top, "spec"), out);
    const json::array& jobs = patched_parts(patches[i]);
    for (std::size_t k = 0; k < jobs.size(); ++k) {
      check_part_patch(jobs[k], child(child(top, "spec.replicatedJobs"), k), out);
    }
  }
}

void check_same(const json::value& job, const json::value& old, std::string_view field,
                api::Causes& out) {
  if (api::same_value(json::find(job, {"spec", field}), json::find(old, {"spec", field}))) return;
  out.push_back(invalid(child("spec", field), shown(job, {"spec", field}), "field is immutable"));
}

const json::value* named(const json::array& list, std::string_view key, std::string_view name) {
  for (const json::value& entry : list) {
    if (json::get_string(entry, {key}) == name) return &entry;
  }
  return nullptr;
}

// What of a patched part the JobSet lets nobody change.
constexpr std::array<std::string_view, 11> kFixedPaths = {
    "template.metadata.labels",
    "template.metadata.annotations",
    "template.spec.template.spec.serviceAccountName",
    "template.spec.template.spec.volumes",
    "template.spec.template.spec.initContainers",
    "template.spec.template.spec.containers",
    "template.spec.template.spec.imagePullSecrets",
    "template.spec.template.spec.securityContext",
    "template.spec.template.spec.terminationGracePeriodSeconds",
    "template.spec.template.spec.affinity.podAffinity",
    "template.spec.template.spec.affinity.podAntiAffinity"};

// Null also where it is empty.
const json::value* fixed_at(const json::value* from, std::string_view path) {
  for (const std::string_view key : split(path, '.')) {
    if (from == nullptr) return nullptr;
    from = json::find(*from, {key});
  }
  const bool empty = from != nullptr && from->is_object() && from->get_object().empty();
  return empty ? nullptr : from;
}

const json::value* patched_part(const json::value& job, std::string_view manager,
                                std::string_view part) {
  const json::value* patch =
      named(json::get_array(job, {"spec", "runtimePatches"}), "manager", manager);
  return patch == nullptr ? nullptr : named(patched_parts(*patch), "name", part);
}

// A job that does not fit its runtime has no JobSet yet: its patches can be put right.
bool has_no_jobset(const json::value& job) {
  const json::object* failed = api::condition(job, "Failed");
  return failed != nullptr && json::get_array(job, {"status", "jobsStatus"}).empty() &&
         json::get_string(json::value(*failed), {"reason"}) == "Invalid";
}

// Of the parts that `from` patches: all in their new state, of the old state those that are gone.
void check_fixed_of(const json::value& from, const json::value& other, bool is_new,
                    api::Causes& out) {
  const bool may_come_and_go = has_no_jobset(is_new ? other : from);
  const json::array& patches = json::get_array(from, {"spec", "runtimePatches"});
  for (std::size_t i = 0; i < patches.size(); ++i) {
    const json::array& jobs = patched_parts(patches[i]);
    for (std::size_t k = 0; k < jobs.size(); ++k) {
      const json::value* was = patched_part(other, json::get_string(patches[i], {"manager"}),
                                            json::get_string(jobs[k], {"name"}));
      if (!is_new && was != nullptr) continue;
      for (const std::string_view field : kFixedPaths) {
        const json::value* mine = fixed_at(&jobs[k], field);
        const json::value* theirs = fixed_at(was, field);
        if (api::same_value(mine, theirs)) continue;
        if (may_come_and_go && (mine == nullptr || theirs == nullptr)) continue;
        out.push_back(invalid(fmt::format("spec.runtimePatches[{}].trainingRuntimeSpec.template."
                                          "spec.replicatedJobs[{}].{}",
                                          i, k, field),
                              is_new && mine != nullptr ? *mine : json::value(),
                              "field is immutable"));
      }
    }
  }
}

// What patches have set of a pod's make stays, and nothing of it is set later: the JobSet is there,
// also of a job that is suspended. Only where the pods may go can change.
void check_fixed(const json::value& job, const json::value& old, api::Causes& out) {
  check_fixed_of(job, old, true, out);
  check_fixed_of(old, job, false, out);
}

void check_changes(const json::value& job, const json::value& old, api::Causes& out) {
  for (const std::string_view field :
       {"runtimeRef", "initializer", "trainer", "activeDeadlineSeconds", "managedBy"}) {
    check_same(job, old, field, out);
  }
  const auto suspended = [](const json::value& object) {
    return json::get_bool(object, {"spec", "suspend"}).value_or(false);
  };
  for (const std::string_view field :
       {"runtimePatches", "labels", "annotations", "podSpecOverrides", "podTemplateOverrides"}) {
    const bool same =
        api::same_value(json::find(job, {"spec", field}), json::find(old, {"spec", field}));
    if (same || suspended(job) || suspended(old)) continue;
    const std::string_view name = field == "runtimePatches" ? "RuntimePatches" : field;
    out.push_back(forbidden(
        child("spec", field),
        fmt::format("{} can only be modified when the TrainJob is suspended before or after the "
                    "update",
                    name)));
  }
  if (api::same_value(json::find(job, {"spec", "runtimePatches"}),
                      json::find(old, {"spec", "runtimePatches"}))) {
    return;
  }
  check_fixed(job, old, out);
  for (const json::value& part : json::get_array(old, {"status", "jobsStatus"})) {
    if (json::get_int(part, {"active"}).value_or(0) == 0) continue;
    out.push_back(forbidden(
        "spec.runtimePatches",
        fmt::format("RuntimePatches cannot be modified when the JobSet's ReplicatedJob {} is still "
                    "active",
                    json::get_string(part, {"name"}))));
  }
}

void check_step(const json::value& part, const std::string& path, api::Causes& out) {
  const std::string_view step = step_of(part);
  if (step != kTrainerStep && step != kDatasetInitializer && step != kModelInitializer) return;
  if (json::get_int(part, {"replicas"}).value_or(1) != 1) {
    out.push_back(invalid(child(path, "replicas"), shown(part, {"replicas"}), "always must be 1"));
  }
  const std::string_view wanted = step == kTrainerStep ? kNode : step;
  const auto is = [&](const json::value& c) { return json::get_string(c, {"name"}) == wanted; };
  if (std::ranges::any_of(containers(part), is)) return;
  out.push_back(
      invalid(child(path, "template.spec.template.spec.containers"), json::value(containers(part)),
              fmt::format("must contain the required container for the ancestor: {}", step)));
}

void check_policy(const json::value& runtime, api::Causes& out) {
  const json::object& policy = json::get_object(runtime, {"spec", "mlPolicy"});
  const std::string path = "spec.mlPolicy";
  const auto given = [&](std::string_view name) {
    return policy.contains(name) && policy.at(name).is_object();
  };
  int frameworks = 0;
  for (const std::string_view name : {"torch", "mpi", "jax", "xgboost", "flux"}) {
    frameworks += given(name) ? 1 : 0;
  }
  if (frameworks > 1) {
    out.push_back(invalid(path, json::value(policy), "Only one of the policy can be configured"));
  }
  if (given("flux")) {
    out.push_back(forbidden(child(path, "flux"), "Skiff does not run Flux"));
  }
  const json::array& targets =
      json::get_array(runtime, {"spec", "mlPolicy", "torch", "envInjection", "targets"});
  for (std::size_t i = 0; i < targets.size(); ++i) {
    for (const std::string& name : json::strings(json::get_array(targets[i], {"containerNames"}))) {
      if (name != kNode) continue;
      out.push_back(invalid(
          child(child(child(path, "torch.envInjection.targets"), i), "containerNames"),
          json::value(json::get_array(targets[i], {"containerNames"})),
          "containerNames must not include the main node container because PET_* envs are always "
          "injected into it"));
    }
  }
}

// Containers of each part, init containers among them.
bool has_container(const json::value& runtime, std::string_view part, std::string_view name) {
  for (const json::value& candidate : parts(runtime)) {
    if (json::get_string(candidate, {"name"}) != part) continue;
    for (const std::string_view list : {"containers", "initContainers"}) {
      const json::array& entries =
          json::get_array(candidate, {"template", "spec", "template", "spec", list});
      const auto is = [&](const json::value& c) { return json::get_string(c, {"name"}) == name; };
      if (std::ranges::any_of(entries, is)) return true;
    }
  }
  return false;
}

bool has_part(const json::value& runtime, std::string_view part) {
  return std::ranges::any_of(parts(runtime), [&](const json::value& candidate) {
    return json::get_string(candidate, {"name"}) == part;
  });
}

bool mounts_initializer(const json::value& runtime, std::string_view part) {
  for (const json::value& candidate : parts(runtime)) {
    if (json::get_string(candidate, {"name"}) != part) continue;
    for (const json::value& container : containers(candidate)) {
      if (json::get_string(container, {"name"}) != part) continue;
      for (const json::value& mount : json::get_array(container, {"volumeMounts"})) {
        if (json::get_string(mount, {"name"}) == "initializer") return true;
      }
    }
  }
  return false;
}

void check_initializers(const json::value& job, const json::value& runtime, api::Causes& out) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kSteps = {
      {{"dataset", kDatasetInitializer}, {"model", kModelInitializer}}};
  for (const auto& [what, part] : kSteps) {
    const json::value* given = json::find(job, {"spec", "initializer", what});
    if (given == nullptr || !given->is_object()) continue;
    std::string complaint;
    if (!has_part(runtime, part)) {
      complaint = fmt::format("must have {} job when trainJob is configured with input {}Config",
                              part, what);
    } else if (!has_container(runtime, part, part)) {
      complaint = fmt::format("must have container with name - {} in the {} job", part, part);
    } else if (!mounts_initializer(runtime, part)) {
      complaint = fmt::format(
          "must have volumeMount with name - initializer in container {} of "
          "the {} job",
          part, part);
    }
    if (complaint.empty()) continue;
    out.push_back(invalid("spec.runtimeRef", shown(job, {"spec", "runtimeRef"}), complaint));
  }
}

void check_patch_targets(const json::value& job, const json::value& runtime, api::Causes& out) {
  const auto say = [&](std::string complaint) {
    out.push_back(
        invalid("spec.runtimePatches", shown(job, {"spec", "runtimePatches"}), complaint));
  };
  for (const json::value& patch : json::get_array(job, {"spec", "runtimePatches"})) {
    for (const json::value& part : patched_parts(patch)) {
      const std::string_view name = json::get_string(part, {"name"});
      if (!has_part(runtime, name)) {
        say("must not have replicated job that doesn't exist in the runtime job template");
        continue;
      }
      for (const auto& [list, word] :
           {std::pair("initContainers", "initContainer"), {"containers", "container"}}) {
        for (const json::value& container :
             json::get_array(part, {"template", "spec", "template", "spec", list})) {
          const std::string_view called = json::get_string(container, {"name"});
          if (!has_container(runtime, name, called)) {
            say(fmt::format("must not have {} that doesn't exist in the runtime job {}", word,
                            name));
          } else if (!json::get_array(container, {"env"}).empty() &&
                     (called == kNode || called == kDatasetInitializer ||
                      called == kModelInitializer)) {
            say(fmt::format("must not have envs for the {}, {}, {} containers", kDatasetInitializer,
                            kModelInitializer, kNode));
          }
        }
      }
    }
  }
}

void check_mpi(const json::value& job, const json::value& runtime, api::Causes& out) {
  if (!runs_mpi(runtime)) return;
  const auto nodes = json::get_int(job, {"spec", "trainer", "numNodes"});
  const std::int64_t usual = json::get_int(runtime, {"spec", "mlPolicy", "numNodes"}).value_or(1);
  if (nodes.value_or(usual) > kMostHosts) {
    out.push_back(invalid(nodes ? "spec.trainer.numNodes" : "spec.mlPolicy.numNodes",
                          nodes.value_or(usual),
                          fmt::format("must be no more than {} under an MPI runtime", kMostHosts)));
  }
  if (!launcher_trains(runtime)) return;
  if (!nodes || *nodes < 2 || (has_part(runtime, kLauncher) && has_part(runtime, kNode))) return;
  out.push_back(invalid("spec.trainer.numNodes", *nodes,
                        "must have 1 when MPI trainingRuntime with enabled runLauncherAsNode does "
                        "not have either launcher and node"));
}

void check_reserved(const json::value& job, const json::value& runtime, api::Causes& out) {
  const std::string_view framework = framework_of(runtime);
  const json::array& env = json::get_array(job, {"spec", "trainer", "env"});
  std::set<std::string> taken;
  for (std::size_t i = 0; i < env.size(); ++i) {
    const std::string_view name = json::get_string(env[i], {"name"});
    if (!reserved(framework, name)) continue;
    taken.emplace(name);
    if (framework != "xgboost") continue;
    out.push_back(forbidden(child("spec.trainer.env", i),
                            fmt::format("{} is reserved for the XGBoost runtime", name)));
  }
  if (taken.empty() || framework == "xgboost") return;
  out.push_back(invalid("spec.trainer.env", json::value(env),
                        fmt::format("must not have reserved envs, invalid envs configured: [{}]",
                                    fmt::join(taken, " "))));
}

}  // namespace

std::vector<Cause> validate_trainjob(const json::value& trainjob, const api::Admission& context) {
  if (!context.subresource.empty()) return {};
  api::Causes out;
  check_name(trainjob, out);
  if (runtime_kind(trainjob) == nullptr) {
    out.push_back(invalid("spec.runtimeRef", shown(trainjob, {"spec", "runtimeRef"}),
                          "unsupported runtime: " + runtime_kind_text(trainjob)));
  }
  check_managed_by(trainjob, out);
  check_sources(trainjob, out);
  if (context.old == nullptr) check_processes(trainjob, out);
  check_patches(trainjob, out);
  check_overrides(trainjob, context.old, out);
  if (context.old != nullptr) check_changes(trainjob, *context.old, out);
  return out;
}

std::vector<Cause> validate_runtime(const json::value& runtime, const api::Admission&) {
  api::Causes out;
  check_policy(runtime, out);
  for (std::size_t i = 0; i < parts(runtime).size(); ++i) {
    check_step(parts(runtime)[i], child("spec.template.spec.replicatedJobs", i), out);
  }
  return out;
}

std::vector<Cause> check_against(const json::value& trainjob, const json::value& runtime) {
  api::Causes out = validate_runtime(runtime, {});
  check_mpi(trainjob, runtime, out);
  check_torchtune(trainjob, runtime, out);
  check_override_targets(trainjob, runtime, out);
  check_initializers(trainjob, runtime, out);
  check_patch_targets(trainjob, runtime, out);
  check_reserved(trainjob, runtime, out);
  const json::array& targets =
      json::get_array(runtime, {"spec", "mlPolicy", "torch", "envInjection", "targets"});
  for (const json::value& target : targets) {
    const std::string_view part = json::get_string(target, {"jobName"});
    for (const std::string& name : json::strings(json::get_array(target, {"containerNames"}))) {
      if (has_container(runtime, part, name)) continue;
      out.push_back(invalid("spec.runtimeRef", target,
                            fmt::format("envInjection target podSet \"{}\" container \"{}\" not "
                                        "found in runtime template",
                                        part, name)));
    }
  }
  return out;
}

}  // namespace skiff::trainer
