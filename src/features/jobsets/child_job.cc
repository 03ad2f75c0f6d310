#include "features/jobsets/child_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "api/meta.h"
#include "base/sha1.h"
#include "features/jobsets/claims.h"
#include "features/jobsets/jobset.h"

namespace skiff::jobsets {
namespace {

std::string hex_sha1(std::string_view text) {
  std::string out;
  for (const char c : sha1(text)) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

// Replicas of the parts of a group (of all where it is empty), and those before `part`.
struct Count {
  std::int64_t all = 0;
  std::int64_t before = 0;
};

Count count(const json::value& jobset, const json::value& part, std::string_view group) {
  Count out;
  bool reached = false;
  for (const json::value& other : parts(jobset)) {
    if (!group.empty() && json::get_string(other, {"groupName"}) != group) continue;
    reached = reached || part_name(other) == part_name(part);
    if (!reached) out.before += replicas(other);
    out.all += replicas(other);
  }
  return out;
}

using Marks = std::vector<std::pair<std::string_view, std::string>>;

Marks marks_of(const json::value& jobset, const json::value& part, std::int64_t index,
               std::int64_t restarts) {
  const std::string name = job_name(api::name(jobset), part_name(part), index);
  const std::string group(json::get_string(part, {"groupName"}));
  const Count all = count(jobset, part, {});
  const Count grouped = count(jobset, part, group);
  Marks out{{kJobSetName, std::string(api::name(jobset))},
            {"jobset.sigs.k8s.io/jobset-uid", std::string(api::uid(jobset))},
            {kPartName, std::string(part_name(part))},
            {kRestartAttempt, std::to_string(restarts)},
            {"jobset.sigs.k8s.io/replicatedjob-replicas", std::to_string(replicas(part))},
            {"jobset.sigs.k8s.io/global-replicas", std::to_string(all.all)},
            {kJobIndex, std::to_string(index)},
            {"jobset.sigs.k8s.io/job-key", hex_sha1(fmt::format("{}/{}", api::ns(jobset), name))},
            {"jobset.sigs.k8s.io/job-global-index", std::to_string(all.before + index)},
            {"jobset.sigs.k8s.io/group-name", group},
            {"jobset.sigs.k8s.io/group-replicas", std::to_string(grouped.all)},
            {"jobset.sigs.k8s.io/job-group-index", std::to_string(grouped.before + index)}};
  if (std::string pod = coordinator(jobset); !pod.empty()) {
    out.emplace_back("jobset.sigs.k8s.io/coordinator", std::move(pod));
  }
  return out;
}

void put_marks(json::object& owner, const Marks& marks) {
  for (const std::string_view kind : {"labels", "annotations"}) {
    json::object& map = json::make_object(owner, {"metadata", kind});
    for (const auto& [key, value] : marks) map[key] = json::string(value);
  }
}

// What `now` has and `list` has not, at its end.
json::array joined(const json::array& list, const json::array& now) {
  json::array out = list;
  for (const json::value& item : now) {
    if (std::ranges::find(out, item) == out.end()) out.push_back(item);
  }
  return out;
}

// Both kinds of rules are named: those that are gone must go from the job, too.
void put_node_affinity(json::object& pod, const json::value& job, const json::value& wanted) {
  const json::object& had =
      json::get_object(job, {"spec", "template", "spec", "affinity", "nodeAffinity"});
  const json::object& now = json::get_object(wanted, {"spec", "affinity", "nodeAffinity"});
  if (had == now) return;
  json::object& rules = json::make_object(pod, {"spec", "affinity", "nodeAffinity"});
  for (const auto& [key, value] : had) rules[key] = nullptr;
  for (const auto& [key, value] : now) rules[key] = value;
}

}  // namespace

json::value child_job(const json::value& jobset, const json::value& part, std::int64_t index,
                      std::int64_t restarts) {
  json::object job{{"apiVersion", "batch/v1"},
                   {"kind", "Job"},
                   {"metadata",
                    {{"name", job_name(api::name(jobset), part_name(part), index)},
                     {"namespace", json::string(api::ns(jobset))},
                     {"ownerReferences", json::array{api::owner_reference(jobset)}}}},
                   {"spec", json::get_object(part, {"template", "spec"})}};
  for (const std::string_view kind : {"labels", "annotations"}) {
    json::make_object(job, {"metadata", kind}) =
        json::get_object(part, {"template", "metadata", kind});
  }
  const Marks marks = marks_of(jobset, part, index, restarts);
  put_marks(job, marks);
  json::object& pod = json::make_object(job, {"spec", "template"});
  put_marks(pod, marks);
  json::object& annotations = json::make_object(pod, {"metadata", "annotations"});
  if (json::value* gang = annotations.if_contains(kGangAnnotation);
      gang != nullptr && gang->is_string() && restarts > 0) {
    *gang = json::string(fmt::format("{}-{}", json::view(gang->get_string()), restarts));
  }
  if (has_hostnames(jobset)) {
    json::make_object(pod, {"spec"})["subdomain"] = json::string(subdomain(jobset));
  }
  add_claims(jobset, json::make_object(pod, {"spec"}));
  json::make_object(job, {"spec"})["suspend"] = suspended(jobset);
  return job;
}

json::value resumption(const json::value& job, const json::value& part) {
  json::object pod;
  const json::value* wanted = json::find(part, {"template", "spec", "template"});
  if (wanted != nullptr) {
    for (const std::string_view kind : {"labels", "annotations"}) {
      json::object map = json::get_object(*wanted, {"metadata", kind});
      // Each attempt has its own gang, which the job has since it was made.
      map.erase(kGangAnnotation);
      if (!map.empty()) json::make_object(pod, {"metadata"})[kind] = std::move(map);
    }
    put_node_affinity(pod, job, *wanted);
    const json::object& selector = json::get_object(*wanted, {"spec", "nodeSelector"});
    if (!selector.empty()) json::make_object(pod, {"spec"})["nodeSelector"] = selector;
    for (const std::string_view list : {"tolerations", "schedulingGates"}) {
      const json::array& now = json::get_array(*wanted, {"spec", list});
      if (now.empty()) continue;
      json::make_object(pod, {"spec"})[list] =
          joined(json::get_array(job, {"spec", "template", "spec", list}), now);
    }
  }
  return {{"spec", {{"suspend", false}, {"template", std::move(pod)}}}};
}

json::value headless_service(const json::value& jobset) {
  return {
      {"apiVersion", "v1"},
      {"kind", "Service"},
      {"metadata",
       {{"name", json::string(subdomain(jobset))},
        {"namespace", json::string(api::ns(jobset))},
        {"ownerReferences", json::array{api::owner_reference(jobset)}}}},
      {"spec",
       {{"clusterIP", "None"},
        {"selector", {{kJobSetName, json::string(api::name(jobset))}}},
        {"publishNotReadyAddresses",
         json::get_bool(jobset, {"spec", "network", "publishNotReadyAddresses"}).value_or(true)}}}};
}

}  // namespace skiff::jobsets
