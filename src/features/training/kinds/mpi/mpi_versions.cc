#include "features/training/kinds/mpi/mpi_versions.h"

#include <algorithm>
#include <string>

#include "features/training/kinds/legacy/kept_fields.h"
#include "features/training/kinds/mpi/mpi_old_schema.h"
#include "features/training/kinds/mpi/mpi_schema.h"
#include "features/training/kinds/mpi/mpi_units.h"

namespace skiff::training {
namespace {

using Names = std::initializer_list<std::string_view>;

struct View {
  std::string_view version = {};
  Names policies = {};  // members of runPolicy that may stand in the spec itself
  Names own = {};       // members that v2beta1 does not have
};

constexpr auto kFirstPolicies = {std::string_view("cleanPodPolicy")};
constexpr auto kFirstOwn = {kMainContainer};
constexpr auto kAlphaPolicies = {
    std::string_view("cleanPodPolicy"), std::string_view("backoffLimit"),
    std::string_view("activeDeadlineSeconds"), std::string_view("ttlSecondsAfterFinished")};
constexpr auto kAlphaOwn = {std::string_view("mpiDistribution"), kMainContainer};

constexpr View kFirst{.version = "v1", .policies = kFirstPolicies, .own = kFirstOwn};
constexpr View kAlpha{.version = "v1alpha2", .policies = kAlphaPolicies, .own = kAlphaOwn};

// What only v2beta1 has.
constexpr auto kNewer = {
    std::string_view("runLauncherAsWorker"), std::string_view("sshAuthMountPath"),
    std::string_view("launcherCreationPolicy"), std::string_view("mpiImplementation")};

// Names of what is kept, beside kWrittenAs and the members themselves.
constexpr std::string_view kLifted = "lifted";        // stood in the spec, and in runPolicy nowhere
constexpr std::string_view kHadPolicy = "runPolicy";  // there was one, be it empty

bool is_among(Names names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

std::string_view implementation_of(std::string_view distribution) {
  return distribution == "IntelMPI" ? "Intel" : distribution;
}

// Policies of the spec itself move to where v2beta1 has them; one that runPolicy has, too, stays
// behind: runPolicy's holds.
void lift(const View& view, json::object& spec, json::object& older) {
  json::object policies = take_members(spec, view.policies);
  if (policies.empty()) return;
  const bool had = spec.contains("runPolicy");
  json::object& run = json::make_object(spec, {"runPolicy"});
  json::array lifted;
  for (auto& [key, value] : policies) {
    if (run.contains(key)) {
      older[key] = std::move(value);
    } else {
      lifted.push_back(json::string(key));
      run[key] = std::move(value);
    }
  }
  older[kLifted] = std::move(lifted);
  if (had) older[kHadPolicy] = true;
}

// The way back.
void lower(const View& view, json::object& spec, const json::object& older) {
  const json::value* lifted = older.if_contains(kLifted);
  json::value* policy = spec.if_contains("runPolicy");
  if (lifted == nullptr || !lifted->is_array() || policy == nullptr || !policy->is_object()) return;
  json::object members;
  for (const json::value& entry : lifted->get_array()) {
    if (!entry.is_string()) continue;
    const std::string_view name = json::view(entry.get_string());
    if (is_among(view.policies, name))
      put_back(members, take_members(policy->get_object(), {name}));
  }
  if (policy->get_object().empty() && !older.contains(kHadPolicy)) spec.erase("runPolicy");
  put_back(spec, members);
}

void to_kept(const View& view, json::value& object) {
  json::object newer = take_fields(object, kNewerFields);
  json::object& spec = json::make_object(object, {"spec"});
  json::object rest = take_members(newer, {kSpec});
  rest = object_at(rest, kSpec);
  take_others(rest, kNewer);
  if (fits_mpi(rest)) put_back(spec, rest);
  const std::string_view written = text_at(newer, kWrittenAs);
  json::object older;
  if (written.empty()) {
    older[kWrittenAs] = json::string(view.version);
    lift(view, spec, older);
  } else {
    older = object_at(newer, kOlder);
    json::object unseen;  // this version's words in a job of another are not remembered as such
    lift(view, spec, unseen);
  }
  const json::object own = take_members(spec, view.own);
  const std::string_view distribution = text_at(own, "mpiDistribution");
  if (!distribution.empty()) {
    spec["mpiImplementation"] = json::string(implementation_of(distribution));
  }
  put_back(older, own);
  keep_fields(object, kOlderFields, older);
}

void from_kept(const View& view, json::value& object) {
  json::object older = take_fields(object, kOlderFields);
  json::object& spec = json::make_object(object, {"spec"});
  json::object newer;
  json::object rest = take_members(spec, kNewer);
  const std::string_view written = text_at(older, kWrittenAs);
  if (written == view.version) {
    lower(view, spec, older);
    const std::string_view distribution = text_at(older, "mpiDistribution");
    if (!distribution.empty() &&
        text_at(rest, "mpiImplementation") == implementation_of(distribution)) {
      take_members(rest, {"mpiImplementation"});
    } else {
      take_members(older, {"mpiDistribution"});  // it is another by now
    }
    for (const auto& [key, value] : older) {
      if (is_among(view.own, key) || is_among(view.policies, key)) spec[key] = value;
    }
  } else {
    newer[kWrittenAs] = json::string(written.empty() ? "v2beta1" : written);
    put_back(spec, take_members(older, {kMainContainer}));
    if (!older.empty()) newer[kOlder] = std::move(older);
  }
  if (!rest.empty()) newer[kSpec] = std::move(rest);
  keep_fields(object, kNewerFields, newer);
}

}  // namespace

std::string_view text_at(const json::object& object, std::string_view key) {
  const json::value* found = object.if_contains(key);
  return found != nullptr && found->is_string() ? json::view(found->get_string())
                                                : std::string_view();
}

json::object object_at(const json::object& object, std::string_view key) {
  const json::value* found = object.if_contains(key);
  return found != nullptr && found->is_object() ? found->get_object() : json::object{};
}

bool fits_mpi(const json::object& spec) {
  return schema::read<MPIJobSpec>(json::value(spec)).has_value();
}

std::vector<OldVersion> old_mpijob_versions() {
  return {{.version = "v1",
           .spec_schema = schema::build<FirstMPIJobSpec>,
           .to_kept = [](json::value& object) { to_kept(kFirst, object); },
           .from_kept = [](json::value& object) { from_kept(kFirst, object); },
           .deprecated = false},
          {.version = "v1alpha2",
           .spec_schema = schema::build<AlphaMPIJobSpec>,
           .to_kept = [](json::value& object) { to_kept(kAlpha, object); },
           .from_kept = [](json::value& object) { from_kept(kAlpha, object); }},
          {.version = std::string(kUnitsVersion),
           .spec_schema = schema::build<UnitsMPIJobSpec>,
           .to_kept = from_units,
           .from_kept = to_units}};
}

}  // namespace skiff::training
