#include "features/trainer/jobset_of.h"

#include <algorithm>
#include <string>

#include "api/meta.h"
#include "features/trainer/gang.h"
#include "features/trainer/merge.h"
#include "features/trainer/mpi.h"
#include "features/trainer/policies.h"
#include "features/trainer/trainjob.h"
#include "features/trainer/tune.h"

namespace skiff::trainer {
namespace {

json::object& pod_spec(json::value& part) {
  return json::make_object(part, {"template", "spec", "template", "spec"});
}

json::object* container(json::value& part, std::string_view name) {
  for (const std::string_view list : {"containers", "initContainers"}) {
    for (json::value& entry : array_at(pod_spec(part), list)) {
      if (json::get_string(entry, {"name"}) == name) return entry.if_object();
    }
  }
  return nullptr;
}

class Builder {
 public:
  Builder(const json::value& trainjob, const json::value& runtime)
      : job_(trainjob),
        runtime_(runtime),
        spec_(json::get_object(runtime, {"spec", "template", "spec"})) {}

  json::value make() {
    metadata_ = json::object{{"name", json::string(api::name(job_))},
                             {"namespace", json::string(api::ns(job_))},
                             {"ownerReferences", json::array{api::owner_reference(job_)}}};
    add_metadata(json::get_object(runtime_, {"spec", "template", "metadata"}));
    add_metadata(json::get_object(job_, {"spec"}));  // labels and annotations of 2.0 and 2.1
    apply_patches();
    for (json::value& part : parts_of_spec()) finish_part(part);
    for (json::value& part : parts_of_spec()) inject(part);
    if (runs_mpi(runtime_)) finish_mpi();
    form_gang(job_, runtime_, spec());
    drop_empty_lists();
    // The JobSet is the job's: were it to go by itself before its end was seen, a new one would
    // train again.
    spec().erase("ttlSecondsAfterFinished");
    spec()["suspend"] = json::get_bool(job_, {"spec", "suspend"}).value_or(false);
    return json::object{{"apiVersion", jobset_resource().api_version()},
                        {"kind", "JobSet"},
                        {"metadata", std::move(metadata_)},
                        {"spec", std::move(spec_)}};
  }

 private:
  json::object& spec() { return json::make_object(spec_, {}); }
  json::array& parts_of_spec() { return array_at(spec(), "replicatedJobs"); }

  void add_metadata(const json::object& from) {
    for (const std::string_view kind : {"labels", "annotations"}) {
      const json::value* map = json::find(from, {kind});
      if (map == nullptr || !map->is_object() || map->get_object().empty()) continue;
      json::object& into = json::make_object(metadata_, {kind});
      for (const auto& [key, value] : map->get_object()) into[key] = value;
    }
  }

  // What is stored may be older than the rules that refuse it: what is no map changes nothing.
  void apply_patches() {
    for (const json::value& patch : json::get_array(job_, {"spec", "runtimePatches"})) {
      const json::value* given = json::find(patch, {"trainingRuntimeSpec", "template"});
      if (given == nullptr) continue;
      add_metadata(json::get_object(*given, {"metadata"}));
      if (const json::value* changes = json::find(*given, {"spec"})) merge(spec_, *changes);
    }
    for (const json::value& patch : json::get_array(job_, {"spec", "podSpecOverrides"})) {
      if (!patch.is_object()) continue;
      json::object fields = patch.get_object();
      fields.erase("targetJobs");
      override_pods(patch, {{"spec", std::move(fields)}});
    }
    for (const json::value& patch : json::get_array(job_, {"spec", "podTemplateOverrides"})) {
      if (!patch.is_object()) continue;
      json::object pod = patch.get_object();
      pod.erase("targetJobs");
      override_pods(patch, std::move(pod));
    }
  }

  // The form of 2.0 and 2.1: a list of parts and what their pods get.
  void override_pods(const json::value& patch, json::object pod) {
    for (const json::value& target : json::get_array(patch, {"targetJobs"})) {
      const json::string name(json::get_string(target, {"name"}));
      const json::value part{{"name", name}, {"template", {{"spec", {{"template", pod}}}}}};
      merge(spec_, {{"replicatedJobs", json::array{part}}});
    }
  }

  // How many pods: what the job says of those that train, what the runtime says of the others.
  std::int64_t count(const json::value& part) const {
    const std::int64_t own = json::get_int(part, {"template", "spec", "parallelism"}).value_or(1);
    const std::string_view name = json::get_string(part, {"name"});
    const bool of_mpi = runs_mpi(runtime_) && (name == kNode || name == kLauncher);
    if (!of_mpi && step_of(part) != kTrainerStep) return std::max<std::int64_t>(own, 1);
    const json::value* policy = json::find(runtime_, {"spec", "mlPolicy"});
    std::int64_t nodes = own;
    if (policy != nullptr) nodes = json::get_int(*policy, {"numNodes"}).value_or(1);
    nodes = json::get_int(job_, {"spec", "trainer", "numNodes"}).value_or(nodes);
    return of_mpi ? mpi_count(runtime_, name, nodes) : std::max<std::int64_t>(nodes, 1);
  }

  void finish_part(json::value& part) {
    const std::string step(step_of(part));
    const std::int64_t pods = count(part);
    json::object& job = json::make_object(part, {"template", "spec"});
    job["parallelism"] = pods;
    job["completions"] = pods;
    if (step == kTrainerStep) {
      finish_trainer(part, pods);
    } else if (runs_mpi(runtime_) && json::get_string(part, {"name"}) == kNode) {
      finish_mpi_node(part);
    }
    if (step == kDatasetInitializer) initialize(part, "dataset", kDatasetInitializer);
    if (step == kModelInitializer) initialize(part, "model", kModelInitializer);
  }

  void finish_trainer(json::value& part, std::int64_t pods) {
    json::set(part, {"replicas"}, 1);
    placement_ = {.job = std::string(api::name(job_)),
                  .part = std::string(json::get_string(part, {"name"})),
                  .subdomain = subdomain(),
                  .nodes = pods};
    json::object* node = container(part, kNode);
    if (node == nullptr) return;
    for (const std::string_view field : {"command", "args"}) {
      const json::value* given = json::find(job_, {"spec", "trainer", field});
      if (given != nullptr && !given->is_null()) (*node)[field] = *given;
    }
    put_trainer(*node);
    resources_ = node->contains("resources") ? node->at("resources") : json::value();
    put_environment(*node);
    if (runs_torchtune(job_, runtime_)) {
      (*node)["command"] = torchtune_command(runtime_, job_, placement_, resources_);
      // It is told where to meet by its command.
      json::array& env = array_at(*node, "env");
      const auto gone = std::ranges::remove_if(env, [](const json::value& entry) {
        return json::get_string(entry, {"name"}).starts_with("PET_MASTER_");
      });
      env.erase(gone.begin(), gone.end());
    }
    if (framework_of(runtime_).empty() || runs_mpi(runtime_)) return;
    json::array& ports = array_at(*node, "ports");
    const bool there = std::ranges::any_of(ports, [](const json::value& port) {
      return json::get_int(port, {"containerPort"}) == kPort;
    });
    if (!there) ports.push_back(json::object{{"containerPort", kPort}});
  }

  // What the job says of a container that trains, beside what runs in it.
  void put_trainer(json::object& node) {
    const json::value* trainer = json::find(job_, {"spec", "trainer"});
    if (trainer == nullptr || !trainer->is_object()) return;
    if (const json::value* image = json::find(*trainer, {"image"})) node["image"] = *image;
    const json::value* resources = json::find(*trainer, {"resourcesPerNode"});
    if (resources != nullptr && resources->is_object()) merge(node["resources"], *resources);
    if (const json::array& env = json::get_array(*trainer, {"env"}); !env.empty()) {
      put_named(array_at(node, "env"), env);
    }
  }

  // Nodes of an MPI run what the launcher starts in them: the same image, variables and resources.
  void finish_mpi_node(json::value& part) {
    json::set(part, {"replicas"}, 1);
    if (json::object* node = container(part, kNode)) put_trainer(*node);
  }

  void finish_mpi() {
    const std::int64_t slots = mpi_slots(runtime_, job_, resources_);
    json::make_object(metadata_, {"annotations"})[kHostAnnotation] = std::to_string(slots);
    for (json::value& part : parts_of_spec()) finish_mpi_part(job_, slots, part);
  }

  std::string subdomain() const {
    const std::string_view given = json::get_string(spec_, {"network", "subdomain"});
    return std::string(given.empty() ? api::name(job_) : given);
  }

  void put_environment(json::object& container) {
    const json::array env = environment(runtime_, job_, placement_, resources_);
    if (!env.empty()) put_named(array_at(container, "env"), env);
  }

  // torchrun's variables for containers that the runtime names besides `node`.
  void inject(json::value& part) {
    const json::array& targets =
        json::get_array(runtime_, {"spec", "mlPolicy", "torch", "envInjection", "targets"});
    const std::string_view name = json::get_string(part, {"name"});
    for (const json::value& target : targets) {
      if (json::get_string(target, {"jobName"}) != name) continue;
      for (const std::string& wanted : json::strings(json::get_array(target, {"containerNames"}))) {
        if (json::object* found = container(part, wanted)) put_environment(*found);
      }
    }
  }

  void initialize(json::value& part, std::string_view what, std::string_view name) {
    json::set(part, {"replicas"}, 1);
    json::object* found = container(part, name);
    const json::value* given = json::find(job_, {"spec", "initializer", what});
    if (found == nullptr || given == nullptr || !given->is_object()) return;
    json::array& env = array_at(*found, "env");
    if (const json::value* uri = json::find(*given, {"storageUri"})) {
      put_named(env, {json::object{{"name", "STORAGE_URI"}, {"value", *uri}}});
    }
    put_named(env, json::get_array(*given, {"env"}));
    const std::string_view secret = json::get_string(*given, {"secretRef", "name"});
    if (secret.empty()) return;
    array_at(*found, "envFrom")
        .push_back(json::object{{"secretRef", {{"name", json::string(secret)}}}});
  }

  // Looking for a container makes lists; those that nobody filled go again.
  void drop_empty_lists() {
    for (json::value& part : parts_of_spec()) {
      json::object& pod = pod_spec(part);
      for (const std::string_view list : {"containers", "initContainers"}) {
        if (array_at(pod, list).empty()) pod.erase(list);
      }
    }
  }

  const json::value& job_;
  const json::value& runtime_;
  json::object metadata_ = {};
  json::value spec_;
  Placement placement_ = {};
  json::value resources_ = {};
};

}  // namespace

json::value jobset_of(const json::value& trainjob, const json::value& runtime) {
  return Builder(trainjob, runtime).make();
}

}  // namespace skiff::trainer
