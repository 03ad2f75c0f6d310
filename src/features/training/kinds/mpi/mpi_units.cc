#include "features/training/kinds/mpi/mpi_units.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "api/meta.h"
#include "base/quantity.h"
#include "features/training/engine/conditions.h"
#include "features/training/engine/pod_template.h"
#include "features/training/kinds/legacy/kept_fields.h"
#include "features/training/kinds/mpi/mpi_schema.h"
#include "features/training/kinds/mpi/mpi_settings.h"
#include "features/training/kinds/mpi/mpi_versions.h"
#include "schema/causes.h"

namespace skiff::training {
namespace {

constexpr std::string_view kGpus = "gpus";
constexpr std::string_view kUnits = "processingUnits";
constexpr std::string_view kReplicas = "replicas";
constexpr std::string_view kSlots = "slotsPerWorker";
constexpr std::string_view kTemplate = "template";
constexpr std::string_view kRoles = "mpiReplicaSpecs";
constexpr std::string_view kRunPolicy = "runPolicy";
constexpr std::string_view kOnMaster = "launcherOnMaster";
constexpr std::string_view kResources = "resources";
constexpr std::string_view kDefaultResource = "nvidia.com/gpu";
// As the operator was installed, which is what manifests of its time lean on.
constexpr std::int64_t kGpusPerNode = 8;
constexpr std::int64_t kUnitsPerNode = 1;

// Words that v2beta1 has no place for. Of the others it is only remembered that they were there.
constexpr auto kOwn = {kGpus,
                       std::string_view("gpusPerNode"),
                       kUnits,
                       std::string_view("processingUnitsPerNode"),
                       std::string_view("processingResourceType"),
                       kOnMaster};
constexpr auto kSizes = {kGpus, kUnits, kReplicas};
constexpr auto kMpiUnitsPolicies = {std::string_view("backoffLimit"),
                                    std::string_view("activeDeadlineSeconds")};
// Where a launcher on a master differs from the template.
constexpr auto kPlaces = {std::string_view("tolerations"), std::string_view("affinity")};

std::optional<std::int64_t> int_at(const json::object& object, std::string_view key) {
  const json::value* found = object.if_contains(key);
  return found == nullptr ? std::nullopt : json::get_int(*found, {});
}

json::object* pod_spec(json::value& pod_template) {
  return json::find(pod_template, {"spec"}) == nullptr ? nullptr
                                                       : &json::make_object(pod_template, {"spec"});
}

// The one that mpirun and its ranks run in.
json::object* template_container(json::value& pod_template) {
  json::object* spec = pod_spec(pod_template);
  json::value* list = spec == nullptr ? nullptr : spec->if_contains("containers");
  if (list == nullptr || !list->is_array() || list->get_array().empty()) return nullptr;
  return list->get_array()[0].if_object();
}

struct Size {
  std::int64_t workers = 1;
  std::int64_t units = 0;  // of each worker
  std::string resource = {};
};

Size size_of(const json::object& spec, json::value pod_template) {
  Size out{.resource = std::string(text_at(spec, "processingResourceType"))};
  if (out.resource.empty()) out.resource = kDefaultResource;
  const bool by_gpus = spec.contains(kGpus);
  if (by_gpus || spec.contains(kUnits)) {
    const std::int64_t total = int_at(spec, by_gpus ? kGpus : kUnits).value_or(1);
    const std::int64_t on_node = std::max<std::int64_t>(
        by_gpus ? int_at(spec, "gpusPerNode").value_or(kGpusPerNode)
                : int_at(spec, "processingUnitsPerNode").value_or(kUnitsPerNode),
        1);
    out.workers = total < on_node ? 1 : total / on_node;
    out.units = std::min(total, on_node);
    return out;
  }
  out.workers = int_at(spec, kReplicas).value_or(1);
  const json::object* container = template_container(pod_template);
  if (container == nullptr) return out;
  const json::value all(*container);
  const json::value* limit = json::find(all, {kResources, "limits", out.resource});
  if (limit == nullptr) return out;
  const Result<Quantity> amount = Quantity::from_json(*limit);
  if (amount && amount->whole()) out.units = amount->value();
  return out;
}

// Upstream insists on a master; one machine has none, and a launcher that waits for one for ever
// helps nobody.
void prefer_master(json::object& pod) {
  json::object& affinity = json::make_object(pod, {"affinity", "nodeAffinity"});
  json::array& preferred = array_at(affinity, "preferredDuringSchedulingIgnoredDuringExecution");
  for (const char* role :
       {"node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane"}) {
    array_at(pod, "tolerations").push_back({{"key", role}, {"effect", "NoSchedule"}});
    const json::object exists{{"key", role}, {"operator", "Exists"}};
    preferred.push_back(
        {{"weight", 100}, {"preference", {{"matchExpressions", json::array{exists}}}}});
  }
}

json::object launcher_of(const json::object& spec, json::object& older) {
  json::object role{{kReplicas, 1}, {"restartPolicy", "OnFailure"}};
  const json::value* given = spec.if_contains(kTemplate);
  if (given == nullptr) return role;
  json::value pod_template = *given;
  if (json::get_string(pod_template, {"spec", "restartPolicy"}) == "Never") {
    role["restartPolicy"] = "Never";
  }
  // It only waits for mpirun: what the template asks for is for the workers.
  if (json::object* container = template_container(pod_template)) {
    put_back(older, take_members(*container, {kResources}));
  }
  const json::value* on_master = spec.if_contains(kOnMaster);
  json::object* pod = pod_spec(pod_template);
  if (pod != nullptr && on_master != nullptr && *on_master == json::value(true)) {
    for (const std::string_view place : kPlaces) {
      if (const json::value* own = pod->if_contains(place)) older[place] = *own;
    }
    prefer_master(*pod);
  }
  role[kTemplate] = std::move(pod_template);
  return role;
}

// Upstream's are a StatefulSet: one that ends is started again.
json::object workers_of(const json::object& spec, const Size& size) {
  json::object role{{kReplicas, size.workers}, {"restartPolicy", "OnFailure"}};
  const json::value* given = spec.if_contains(kTemplate);
  if (given == nullptr) return role;
  json::value pod_template = *given;
  if (json::object* container = template_container(pod_template)) {
    take_members(*container, {"command", "args"});
    if (size.units > 0) {
      json::object& resources = json::make_object(*container, {kResources});
      json::make_object(resources, {"limits"})[size.resource] = size.units;
      // What is asked for follows from the limit, and may not be another number.
      if (json::value* requests = resources.if_contains("requests");
          requests != nullptr && requests->is_object()) {
        requests->get_object().erase(size.resource);
      }
    }
  }
  role[kTemplate] = std::move(pod_template);
  return role;
}

// The part of a kept spec that the words of this version say.
json::object core_of(const json::object& spec, json::object& older) {
  const json::value* given = spec.if_contains(kTemplate);
  const Size size = size_of(spec, given == nullptr ? json::value() : *given);
  json::object out{
      {kSlots, int_at(spec, kSlots).value_or(std::max<std::int64_t>(size.units, 1))},
      {kRoles, {{kLauncher, launcher_of(spec, older)}, {kWorker, workers_of(spec, size)}}}};
  json::object words = spec;
  const json::object policies = take_members(words, kMpiUnitsPolicies);
  if (!policies.empty()) out[kRunPolicy] = policies;
  put_back(older, take_members(words, kOwn));
  for (const std::string_view word : {kReplicas, kSlots}) {
    if (spec.contains(word)) older[word] = true;
  }
  older[kWrittenAs] = json::string(kUnitsVersion);
  return out;
}

// Takes the same part out of a kept spec, and leaves the rest.
json::object take_core(json::object& spec) {
  json::object out = take_members(spec, {kRoles, kSlots});
  json::value* policy = spec.if_contains(kRunPolicy);
  if (policy == nullptr || !policy->is_object()) return out;
  json::object policies = take_members(policy->get_object(), kMpiUnitsPolicies);
  if (policies.empty()) return out;
  if (policy->get_object().empty()) spec.erase(kRunPolicy);
  out[kRunPolicy] = std::move(policies);
  return out;
}

json::object with_rest(json::object core, json::object rest) {
  take_core(rest);
  json::object out = core;
  for (const auto& [key, value] : rest) {
    if (key == kRunPolicy && value.is_object()) {
      put_back(json::make_object(out, {kRunPolicy}), value.get_object());
    } else {
      out[key] = value;
    }
  }
  return fits_mpi(out) ? out : core;
}

// The template as it was written, from the launcher's.
json::value template_of(const json::object& role, const json::object& older) {
  json::value out = role.at(kTemplate);
  if (json::object* container = template_container(out); container != nullptr) {
    json::object kept = older;
    const json::object resources = take_members(kept, {kResources});
    if (!resources.empty()) put_back(*container, resources);
  }
  json::object* pod = pod_spec(out);
  const json::value* on_master = older.if_contains(kOnMaster);
  if (pod != nullptr && on_master != nullptr && *on_master == json::value(true)) {
    json::object kept = older;
    take_members(*pod, kPlaces);
    put_back(*pod, take_members(kept, kPlaces));
  }
  return out;
}

// A kept spec in the words it was written in; nothing where they do not say it any more.
std::optional<json::object> in_own_words(const json::object& core, const json::object& older) {
  json::object kept = older;
  json::object out = take_members(kept, kOwn);
  const json::object roles = object_at(core, kRoles);
  if (older.contains(kReplicas)) {
    const json::object workers = object_at(roles, kWorker);
    if (!workers.contains(kReplicas)) return {};
    out[kReplicas] = workers.at(kReplicas);
  }
  if (older.contains(kSlots) && core.contains(kSlots)) out[kSlots] = core.at(kSlots);
  put_back(out, object_at(core, kRunPolicy));
  const json::object launcher = object_at(roles, kLauncher);
  if (launcher.contains(kTemplate)) out[kTemplate] = template_of(launcher, older);
  json::object again;
  if (core_of(out, again) != core || again != older) return {};
  return out;
}

// A kept spec as a number of replicas.
json::object in_plain_words(const json::object& spec) {
  json::object rest = spec;
  const json::object core = take_core(rest);
  const json::object roles = object_at(core, kRoles);
  json::object out = object_at(core, kRunPolicy);
  if (core.contains(kSlots)) out[kSlots] = core.at(kSlots);
  const json::object workers = object_at(roles, kWorker);
  if (workers.contains(kReplicas)) out[kReplicas] = workers.at(kReplicas);
  const json::object launcher = object_at(roles, kLauncher);
  if (launcher.contains(kTemplate)) out[kTemplate] = launcher.at(kTemplate);
  return out;
}

// Sets or takes away a member of `to`, as `from` has it.
void follow(json::object& to, const json::object& from, std::string_view key) {
  if (const json::value* value = from.if_contains(key)) {
    to[key] = *value;
  } else {
    to.erase(key);
  }
}

// What changed in the plain words of a kept spec changes there.
json::object with_changes(json::object spec, const json::object& before,
                          const json::object& after) {
  const auto differs = [&](std::string_view key) {
    const json::value* old = before.if_contains(key);
    const json::value* now = after.if_contains(key);
    return (old == nullptr) != (now == nullptr) || (old != nullptr && *old != *now);
  };
  if (differs(kSlots)) follow(spec, after, kSlots);
  for (const std::string_view policy : kMpiUnitsPolicies) {
    if (differs(policy)) follow(json::make_object(spec, {kRunPolicy}), after, policy);
  }
  if (differs(kReplicas)) follow(json::make_object(spec, {kRoles, kWorker}), after, kReplicas);
  if (differs(kTemplate)) follow(json::make_object(spec, {kRoles, kLauncher}), after, kTemplate);
  return spec;
}

std::string_view launcher_status(const json::object& status) {
  if (has_condition(status, kSucceeded)) return "Succeeded";
  if (has_condition(status, kFailed)) return "Failed";
  const json::value all(status);
  const auto active = json::get_int(all, {"replicaStatuses", kLauncher, "active"}).value_or(0);
  return has_condition(status, kRunning) || active > 0 ? "Active" : "";
}

// The first version's words beside those that are kept, so that a status written back is whole.
void write_status(json::value& object) {
  if (json::find(object, {"status"}) == nullptr) return;
  const auto workers = json::get_int(object, {"status", "replicaStatuses", kWorker, "active"});
  json::object& status = json::make_object(object, {"status"});
  if (const std::string_view said = launcher_status(status); !said.empty()) {
    status["launcherStatus"] = json::string(said);
  }
  if (workers.value_or(0) > 0) status["workerReplicas"] = *workers;
}

void erase_status(json::value& object) {
  if (json::find(object, {"status"}) == nullptr) return;
  json::object& status = json::make_object(object, {"status"});
  for (const std::string_view key : {"launcherStatus", "workerReplicas"}) status.erase(key);
}

}  // namespace

void from_units(json::value& object) {
  erase_status(object);
  const json::object newer = take_fields(object, kNewerFields);
  json::object& spec = json::make_object(object, {"spec"});
  const json::object rest = object_at(newer, kSpec);
  const bool others = !text_at(newer, kWrittenAs).empty() && fits_mpi(rest);
  const bool in_units = std::ranges::any_of(
      kOwn, [&](std::string_view word) { return word != kOnMaster && spec.contains(word); });
  json::object older;
  if (others && !in_units) {
    spec = with_changes(rest, in_plain_words(rest), spec);
    older = object_at(newer, kOlder);
  } else {
    json::object core = core_of(spec, older);
    spec = with_rest(std::move(core), rest);
  }
  keep_fields(object, kOlderFields, older);
}

void to_units(json::value& object) {
  const json::object older = take_fields(object, kOlderFields);
  json::object& spec = json::make_object(object, {"spec"});
  const std::string written(text_at(older, kWrittenAs));
  json::object rest = spec;
  const json::object core = take_core(rest);
  json::object newer;
  std::optional<json::object> words;
  if (written == kUnitsVersion) words = in_own_words(core, older);
  if (words) {
    if (!rest.empty()) newer[kSpec] = std::move(rest);
    spec = *std::move(words);
  } else {
    newer[kWrittenAs] = json::string(written.empty() ? "v2beta1" : written);
    newer[kSpec] = spec;
    if (!older.empty()) newer[kOlder] = older;
    json::object plain = in_plain_words(spec);
    spec = std::move(plain);
  }
  keep_fields(object, kNewerFields, newer);
  write_status(object);
}

void validate_units(const json::value& object, std::vector<Cause>& causes) {
  const Result<json::value> read = json::parse(api::annotation(object, kOlderFields));
  if (!read || !read->is_object()) return;
  const json::object& words = read->get_object();
  if (text_at(words, kWrittenAs) != kUnitsVersion) return;
  std::string_view first;
  for (const std::string_view size : kSizes) {
    if (!words.contains(size)) continue;
    if (first.empty()) {
      first = size;
      continue;
    }
    causes.push_back(schema::forbidden(
        schema::child("spec", size),
        fmt::format("may not be given beside {}: exactly one of gpus, processingUnits and "
                    "replicas says how large the job is",
                    first)));
  }
  if (first.empty()) {
    causes.push_back(schema::required(
        "spec.replicas", "exactly one of gpus, processingUnits and replicas must be given"));
  }
  if (first != kGpus && first != kUnits) return;
  const std::string on_node = fmt::format("{}PerNode", first);
  const std::int64_t most =
      int_at(words, on_node).value_or(first == kGpus ? kGpusPerNode : kUnitsPerNode);
  const auto total = int_at(words, first);
  if (!total || most < 1 || *total < most || *total % most == 0) return;
  causes.push_back(schema::invalid(
      schema::child("spec", first), *total,
      fmt::format("must be less than {0}, which is {1}, or a multiple of it", on_node, most)));
}

}  // namespace skiff::training
