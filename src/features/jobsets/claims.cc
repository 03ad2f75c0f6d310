#include "features/jobsets/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "api/meta.h"
#include "base/names.h"
#include "features/jobsets/child_job.h"
#include "features/jobsets/jobset.h"
#include "schema/causes.h"

namespace skiff::jobsets {
namespace {

constexpr std::size_t kClaimNameBytes = 253;

const json::array& policies(const json::value& jobset) {
  return json::get_array(jobset, {"spec", "volumeClaimPolicies"});
}

std::string_view template_name(const json::value& claim) {
  return json::get_string(claim, {"metadata", "name"});
}

bool mounts(const json::object& pod_spec, std::string_view volume) {
  const json::value spec(pod_spec);
  for (const std::string_view list : {"containers", "initContainers"}) {
    for (const json::value& container : json::get_array(spec, {list})) {
      for (const json::value& mount : json::get_array(container, {"volumeMounts"})) {
        if (json::get_string(mount, {"name"}) == volume) return true;
      }
    }
  }
  return false;
}

json::value claim(const json::value& jobset, const json::value& policy, const json::value& from) {
  json::object meta{{"name", claim_name(template_name(from), api::name(jobset))},
                    {"namespace", json::string(api::ns(jobset))},
                    {"labels", json::get_object(from, {"metadata", "labels"})}};
  meta["labels"].as_object()[kJobSetName] = json::string(api::name(jobset));
  const json::object& annotations = json::get_object(from, {"metadata", "annotations"});
  if (!annotations.empty()) meta["annotations"] = annotations;
  if (json::get_string(policy, {"retentionPolicy", "whenDeleted"}, "Delete") == "Delete") {
    meta["ownerReferences"] = json::array{api::owner_reference(jobset)};
  }
  return json::object{{"apiVersion", "v1"},
                      {"kind", claim_resource().kind},
                      {"metadata", std::move(meta)},
                      {"spec", json::get_object(from, {"spec"})}};
}

void check_volumes(const json::value& jobset, std::string_view name, api::Causes& out) {
  bool mounted = false;
  for (std::size_t i = 0; i < parts(jobset).size(); ++i) {
    const json::object& pod =
        json::get_object(parts(jobset)[i], {"template", "spec", "template", "spec"});
    mounted = mounted || mounts(pod, name);
    const json::array& volumes =
        json::get_array(parts(jobset)[i], {"template", "spec", "template", "spec", "volumes"});
    for (std::size_t k = 0; k < volumes.size(); ++k) {
      if (json::get_string(volumes[k], {"name"}) != name) continue;
      out.push_back(schema::invalid(
          fmt::format("spec.replicatedJobs[{}].template.spec.template.spec.volumes[{}].name", i, k),
          json::string(name),
          fmt::format("volume name conflicts with VolumeClaimPolicy template name: {}", name)));
    }
  }
  if (mounted) return;
  out.push_back(schema::invalid_unshown(
      "spec.replicatedJobs",
      fmt::format("replicatedJob containers don't have a matching volumeMount: {} from "
                  "VolumeClaimPolicies",
                  name)));
}

}  // namespace

const api::Resource& claim_resource() {
  static const api::Resource kResource{
      .version = "v1", .plural = "persistentvolumeclaims", .kind = "PersistentVolumeClaim"};
  return kResource;
}

std::string claim_name(std::string_view claim, std::string_view jobset) {
  return fmt::format("{}-{}", claim, jobset);
}

std::vector<std::string> endings(std::string_view name) {
  std::vector<std::string> out;
  for (std::size_t at = name.find('-'); at != std::string_view::npos; at = name.find('-', at + 1)) {
    out.emplace_back(name.substr(at + 1));
  }
  return out;
}

std::vector<json::value> missing_claims(const json::value& jobset,
                                        const std::vector<Object>& there) {
  std::vector<json::value> out;
  for (const json::value& policy : policies(jobset)) {
    for (const json::value& from : json::get_array(policy, {"templates"})) {
      const std::string name = claim_name(template_name(from), api::name(jobset));
      const auto is = [&](const Object& object) { return api::name(*object) == name; };
      if (std::ranges::none_of(there, is)) out.push_back(claim(jobset, policy, from));
    }
  }
  return out;
}

void add_claims(const json::value& jobset, json::object& pod_spec) {
  for (const json::value& policy : policies(jobset)) {
    for (const json::value& from : json::get_array(policy, {"templates"})) {
      if (!mounts(pod_spec, template_name(from))) continue;
      json::value& volumes = pod_spec["volumes"];
      if (!volumes.is_array()) volumes.emplace_array();
      volumes.get_array().push_back(
          json::object{{"name", json::string(template_name(from))},
                       {"persistentVolumeClaim",
                        {{"claimName", claim_name(template_name(from), api::name(jobset))}}}});
    }
  }
}

void check_claims(const json::value& jobset, api::Causes& out) {
  std::set<std::string, std::less<>> seen;
  for (std::size_t i = 0; i < policies(jobset).size(); ++i) {
    const json::array& templates = json::get_array(policies(jobset)[i], {"templates"});
    for (std::size_t k = 0; k < templates.size(); ++k) {
      const std::string_view name = template_name(templates[k]);
      const std::string path =
          fmt::format("spec.volumeClaimPolicies[{}].templates[{}].metadata.name", i, k);
      if (!seen.emplace(name).second) {
        out.push_back(schema::invalid(path, json::string(name),
                                      "names must be unique for VolumeClaimPolicies template"));
      }
      for (const std::string& complaint : names::check_dns1123_subdomain(name)) {
        out.push_back(schema::invalid(path, json::string(name), complaint));
      }
      if (claim_name(name, api::name(jobset)).size() > kClaimNameBytes) {
        out.push_back(schema::invalid(path, json::string(name),
                                      "VolumeClaimPolicies template name is too long"));
      }
      check_volumes(jobset, name, out);
    }
  }
}

}  // namespace skiff::jobsets
