#include "features/trainer/overrides.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>

#include "api/rules.h"
#include "features/trainer/trainjob.h"
#include "schema/causes.h"

namespace skiff::trainer {
namespace {

using schema::child;
using schema::forbidden;
using schema::invalid;

constexpr std::array<std::string_view, 9> kPodFields = {
    "serviceAccountName", "nodeSelector", "affinity",        "tolerations",     "volumes",
    "initContainers",     "containers",   "schedulingGates", "imagePullSecrets"};
constexpr std::array<std::string_view, 3> kOverrideContainerFields = {"name", "env",
                                                                      "volumeMounts"};
constexpr std::array<std::string_view, 3> kTemplateFields = {"targetJobs", "metadata", "spec"};
constexpr std::string_view kOldest = "podSpecOverrides";
constexpr std::string_view kOlder = "podTemplateOverrides";

void check_fields(const json::object& given, std::span<const std::string_view> allowed,
                  const std::string& path, std::string_view what, std::vector<Cause>& out) {
  for (const auto& [key, value] : given) {
    const std::string_view name(key);
    if (std::ranges::count(allowed, name) > 0 || value.is_null()) continue;
    out.push_back(forbidden(child(path, name),
                            fmt::format("an override may not set this field of {}", what)));
  }
}

void check_pod(const json::object& pod, const std::string& path, std::vector<Cause>& out) {
  check_fields(pod, kPodFields, path, "a pod", out);
  for (const std::string_view list : {"containers", "initContainers"}) {
    const json::value* entries = pod.if_contains(list);
    if (entries == nullptr || !entries->is_array()) continue;
    for (std::size_t i = 0; i < entries->get_array().size(); ++i) {
      const json::value& entry = entries->get_array()[i];
      const std::string at = child(child(path, list), i);
      if (json::get_string(entry, {"name"}).empty()) {
        out.push_back(schema::required(child(at, "name")));
      }
      if (entry.is_object()) {
        check_fields(entry.get_object(), kOverrideContainerFields, at, "a container", out);
      }
    }
  }
}

// What an override says of pods: of the oldest form, its fields themselves.
json::object pod_of(std::string_view form, const json::value& override) {
  if (form == kOlder) return json::get_object(override, {"spec"});
  json::object out = override.is_object() ? override.get_object() : json::object();
  out.erase("targetJobs");
  return out;
}

bool has_named(const json::array& list, std::string_view name) {
  return std::ranges::any_of(
      list, [&](const json::value& entry) { return json::get_string(entry, {"name"}) == name; });
}

std::vector<std::string> misfits(const json::object& pod, const json::value& part,
                                 std::string_view name) {
  std::vector<std::string> out;
  for (const auto& [list, word] :
       {std::pair("initContainers", "initContainer"), {"containers", "container"}}) {
    const json::array& there =
        json::get_array(part, {"template", "spec", "template", "spec", list});
    for (const json::value& container : json::get_array(pod, {list})) {
      const std::string_view called = json::get_string(container, {"name"});
      if (!has_named(there, called)) {
        out.push_back(
            fmt::format("must not have {} that doesn't exist in the runtime job {}", word, name));
      } else if (!json::get_array(container, {"env"}).empty() &&
                 (called == kNode || called == kDatasetInitializer ||
                  called == kModelInitializer)) {
        out.push_back(fmt::format("must not have envs for the {}, {}, {} containers",
                                  kDatasetInitializer, kModelInitializer, kNode));
      }
    }
  }
  return out;
}

}  // namespace

void check_overrides(const json::value& trainjob, const json::value* old, std::vector<Cause>& out) {
  for (const std::string_view form : {kOldest, kOlder}) {
    if (old != nullptr &&
        api::same_value(json::find(trainjob, {"spec", form}), json::find(*old, {"spec", form}))) {
      continue;
    }
    const json::array& overrides = json::get_array(trainjob, {"spec", form});
    for (std::size_t i = 0; i < overrides.size(); ++i) {
      if (!overrides[i].is_object()) continue;
      const std::string path = child(child("spec", form), i);
      if (json::get_array(overrides[i], {"targetJobs"}).empty()) {
        out.push_back(schema::required(child(path, "targetJobs")));
      }
      const json::object pod = pod_of(form, overrides[i]);
      if (form == kOldest) {
        check_pod(pod, path, out);
        continue;
      }
      check_fields(overrides[i].get_object(), kTemplateFields, path, "a job", out);
      check_pod(pod, child(path, "spec"), out);
    }
  }
}

void check_override_targets(const json::value& trainjob, const json::value& runtime,
                            std::vector<Cause>& out) {
  for (const std::string_view form : {kOldest, kOlder}) {
    const json::array& overrides = json::get_array(trainjob, {"spec", form});
    const auto say = [&](std::string complaint) {
      out.push_back(invalid(child("spec", form), json::value(overrides), complaint));
    };
    for (const json::value& override : overrides) {
      const json::object pod = pod_of(form, override);
      for (const json::value& target : json::get_array(override, {"targetJobs"})) {
        const std::string_view name = json::get_string(target, {"name"});
        const auto part = std::ranges::find_if(parts(runtime), [&](const json::value& each) {
          return json::get_string(each, {"name"}) == name;
        });
        if (part == parts(runtime).end()) {
          say("must not have targetJob that doesn't exist in the runtime job template");
          continue;
        }
        for (std::string& complaint : misfits(pod, *part, name)) say(std::move(complaint));
      }
    }
  }
}

}  // namespace skiff::trainer
