// LimitRange: defaults for containers that say nothing, and bounds on what they and claims say.
#include <fmt/format.h>

#include <algorithm>

#include "api/meta.h"
#include "apiserver/admission/amounts.h"
#include "apiserver/admission/rules.h"
#include "base/strings.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kLimitRangerAnnotation = "kubernetes.io/limit-ranger";
// Beyond this a thousandth cannot be counted in 64 bits, and whole units are compared.
constexpr std::int64_t kMaxMilliValue = INT64_MAX / 1000;

std::vector<Object> limit_ranges(const AdmissionRequest& request) {
  return request.txn.list("limitranges", request.request.ns);
}

std::vector<std::string> fill(json::value& container, std::string_view side,
                              const Amounts& defaults) {
  std::vector<std::string> set;
  for (const auto& [name, quantity] : defaults) {
    json::object& list = json::make_object(container, {"resources", side});
    if (list.contains(name)) continue;
    list[name] = quantity.text();
    set.push_back(name);
  }
  return set;
}

void fill_containers(json::value& pod, std::string_view field, std::string_view what,
                     const Amounts& requests, const Amounts& limits,
                     std::vector<std::string>& notes) {
  json::object& spec = json::make_object(pod, {"spec"});
  json::value* list = spec.if_contains(field);
  if (list == nullptr || !list->is_array()) return;
  for (json::value& container : list->get_array()) {
    const std::string name(
        json::get_string(container, {"name"}));  // it moves when members are added
    const auto limited = fill(container, "limits", limits);
    const auto requested = fill(container, "requests", requests);
    if (!requested.empty()) {
      notes.push_back(fmt::format("{} request for {} {}", join(requested, ", "), what, name));
    }
    if (!limited.empty()) {
      notes.push_back(fmt::format("{} limit for {} {}", join(limited, ", "), what, name));
    }
  }
}

void fill_pod(json::value& pod, const json::value& range) {
  Amounts requests, limits;
  for (const json::value& item : json::get_array(range, {"spec", "limits"})) {
    if (json::get_string(item, {"type"}) != "Container") continue;
    for (const auto& [k, v] : read_amounts(json::get_object(item, {"defaultRequest"}))) {
      requests[k] = v;
    }
    for (const auto& [k, v] : read_amounts(json::get_object(item, {"default"}))) limits[k] = v;
  }
  std::vector<std::string> notes;
  fill_containers(pod, "containers", "container", requests, limits, notes);
  fill_containers(pod, "initContainers", "init container", requests, limits, notes);
  if (notes.empty()) return;
  json::set(pod, {"metadata", "annotations", kLimitRangerAnnotation},
            json::string("LimitRanger plugin set: " + join(notes, "; ")));
}

// One subject of a limit: a container, a pod or a claim.
struct LimitedSubject {
  std::string_view type = {};
  Amounts requests = {};
  Amounts limits = {};
};

struct Observed {
  const Quantity* request = nullptr;
  const Quantity* limit = nullptr;
  std::int64_t request_value = 0;
  std::int64_t limit_value = 0;
  std::int64_t enforced_value = 0;
};

Observed observe(const LimitedSubject& subject, const std::string& name, const Quantity& enforced) {
  const auto find = [&](const Amounts& list) {
    const auto at = list.find(name);
    return at == list.end() ? nullptr : &at->second;
  };
  Observed out{.request = find(subject.requests), .limit = find(subject.limits)};
  const Quantity request = out.request == nullptr ? Quantity() : *out.request;
  const Quantity limit = out.limit == nullptr ? Quantity() : *out.limit;
  const bool small = request.value() <= kMaxMilliValue && limit.value() <= kMaxMilliValue &&
                     enforced.value() <= kMaxMilliValue;
  const auto at = [&](const Quantity& q) { return small ? q.milli() : q.value(); };
  out.request_value = at(request);
  out.limit_value = at(limit);
  out.enforced_value = at(enforced);
  return out;
}

std::string check_minimum(const LimitedSubject& subject, const std::string& name,
                          const Quantity& least) {
  const Observed seen = observe(subject, name, least);
  const std::string start =
      fmt::format("minimum {} usage per {} is {}", name, subject.type, least.text());
  if (seen.request == nullptr) return start + ".  No request is specified";
  if (seen.request_value < seen.enforced_value) {
    return fmt::format("{}, but request is {}", start, seen.request->text());
  }
  if (seen.limit != nullptr && seen.limit_value < seen.enforced_value) {
    return fmt::format("{}, but limit is {}", start, seen.limit->text());
  }
  return {};
}

std::string check_maximum(const LimitedSubject& subject, const std::string& name,
                          const Quantity& most) {
  const Observed seen = observe(subject, name, most);
  const std::string start =
      fmt::format("maximum {} usage per {} is {}", name, subject.type, most.text());
  const bool claim = subject.type == "PersistentVolumeClaim";  // has requests only
  if (claim && seen.request == nullptr) return start + ".  No request is specified";
  if (!claim && seen.limit == nullptr) return start + ".  No limit is specified";
  if (!claim && seen.limit_value > seen.enforced_value) {
    return fmt::format("{}, but limit is {}", start, seen.limit->text());
  }
  if (seen.request != nullptr && seen.request_value > seen.enforced_value) {
    return fmt::format("{}, but request is {}", start, seen.request->text());
  }
  return {};
}

std::string check_ratio(const LimitedSubject& subject, const std::string& name,
                        const Quantity& most) {
  const Observed seen = observe(subject, name, most);
  const std::string start =
      fmt::format("{} max limit to request ratio per {} is {}", name, subject.type, most.text());
  if (seen.request == nullptr || seen.request_value == 0) {
    return start + ", but no request is specified or request is 0";
  }
  if (seen.limit == nullptr || seen.limit_value == 0) {
    return start + ", but no limit is specified or limit is 0";
  }
  const double ratio =
      static_cast<double>(seen.limit_value) / static_cast<double>(seen.request_value);
  const bool small = most.value() <= kMaxMilliValue;
  const double bound = static_cast<double>(small ? most.milli() : most.value());
  if ((small ? ratio * 1000 : ratio) <= bound) return {};
  return fmt::format("{}, but provided ratio is {:f}", start, ratio);
}

using Check = std::string (*)(const LimitedSubject&, const std::string&, const Quantity&);

void judge(const json::value& item, const LimitedSubject& subject,
           std::vector<std::string>& faults) {
  const auto each = [&](std::string_view field, Check check) {
    for (const auto& [name, quantity] : read_amounts(json::get_object(item, {field}))) {
      std::string fault = check(subject, name, quantity);
      if (!fault.empty() && std::ranges::count(faults, fault) == 0) {
        faults.push_back(std::move(fault));
      }
    }
  };
  each("min", check_minimum);
  each("max", check_maximum);
  if (subject.type != "PersistentVolumeClaim") each("maxLimitRequestRatio", check_ratio);
}

std::vector<LimitedSubject> subjects(const AdmissionRequest& request, std::string_view type) {
  const json::value& object = request.object;
  if (request.is("persistentvolumeclaims")) {
    if (type != "PersistentVolumeClaim") return {};
    return {
        {.type = type,
         .requests = read_amounts(json::get_object(object, {"spec", "resources", "requests"}))}};
  }
  std::vector<LimitedSubject> out;
  const json::value* spec = json::find(object, {"spec"});
  if (spec == nullptr) return out;
  if (type == "Pod") {
    out.push_back({.type = type,
                   .requests = pod_amounts(*spec, Side::kRequests, Overhead::kWithout),
                   .limits = pod_amounts(*spec, Side::kLimits, Overhead::kWithout)});
  }
  if (type == "Container") {
    for (std::string_view field : {"containers", "initContainers"}) {
      for (const json::value& container : json::get_array(*spec, {field})) {
        out.push_back(
            {.type = type,
             .requests = read_amounts(json::get_object(container, {"resources", "requests"})),
             .limits = read_amounts(json::get_object(container, {"resources", "limits"}))});
      }
    }
  }
  return out;
}

// What containers ask for is settled when the pod is made, or resized.
bool concerned(const AdmissionRequest& request) {
  if (request.old != nullptr && api::deleting(*request.old)) return false;
  if (request.is("pods")) {
    return request.creates() ? request.request.subresource.empty()
                             : request.request.subresource == "resize";
  }
  return request.plain("persistentvolumeclaims");
}

}  // namespace

Result<void> set_container_limits(const AdmissionRequest& request) {
  if (!concerned(request) || !request.is("pods")) return {};
  for (const Object& range : limit_ranges(request)) fill_pod(request.object, *range);
  return {};
}

Result<void> check_limits(const AdmissionRequest& request) {
  if (!concerned(request)) return {};
  for (const Object& range : limit_ranges(request)) {
    std::vector<std::string> faults;
    for (const json::value& item : json::get_array(*range, {"spec", "limits"})) {
      for (const LimitedSubject& subject : subjects(request, json::get_string(item, {"type"}))) {
        judge(item, subject, faults);
      }
    }
    if (faults.empty()) continue;
    const std::string why = faults.size() == 1 ? faults[0] : "[" + join(faults, ", ") + "]";
    return std::unexpected(refused(request, why));
  }
  return {};
}

}  // namespace skiff::apiserver
