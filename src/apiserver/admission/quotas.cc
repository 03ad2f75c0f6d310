// ResourceQuota: what a write adds to a namespace's use is charged in the write's own transaction,
// so that two writes cannot both take the last of it.
#include <fmt/format.h>

#include <algorithm>

#include "api/meta.h"
#include "apiserver/admission/quota_usage.h"
#include "apiserver/admission/rules.h"
#include "base/strings.h"

namespace skiff::apiserver {
namespace {

bool counts(const AdmissionRequest& request) {
  const ServedKind& kind = *request.request.kind;
  if (!kind.resource().namespaced) return false;
  const std::string& sub = request.request.subresource;
  if (request.is("events") || request.is("events.events.k8s.io")) return false;
  if (request.is("pods")) {
    if (sub == "resize") return !request.creates();
    if (!sub.empty()) return false;
    if (request.creates()) return true;
    const auto bounded = [](const json::value& pod) {
      return json::get_int(pod, {"spec", "activeDeadlineSeconds"}).value_or(-1) >= 0;
    };
    return bounded(*request.old) != bounded(request.object);  // it changes its scope
  }
  if (request.is("persistentvolumeclaims") && sub == "status") return true;
  if (!sub.empty()) return false;
  return request.creates() || request.is("services") || request.is("persistentvolumeclaims");
}

Amounts only(const Amounts& from, const std::vector<std::string>& names) {
  Amounts out;
  for (const std::string& name : names) {
    if (const auto at = from.find(name); at != from.end()) out.insert(*at);
  }
  return out;
}

std::string amounts_text(const Amounts& amounts) {
  std::vector<std::string> parts;
  for (const auto& [name, quantity] : amounts) parts.push_back(name + "=" + quantity.text());
  return join(parts, ",");
}

// What comes on top of what the old object was charged for, where it was.
Amounts growth(Amounts now, const Amounts& before) {
  for (auto& [name, quantity] : now) {
    if (const auto at = before.find(name); at != before.end()) quantity -= at->second;
  }
  return now;
}

Result<void> charge(const AdmissionRequest& request, const Object& quota, Time now) {
  const std::string resource = request.request.kind->resource().key();
  const Amounts hard = read_amounts(json::get_object(*quota, {"status", "hard"}));
  const std::vector<std::string> names = quota::names_for(resource, hard);
  if (names.empty() || !quota::in_scope(*quota, resource, request.object)) return {};
  const std::string_view title = api::name(*quota);
  if (resource == "pods") {
    if (const std::string why = quota::missing(names, request.object); !why.empty()) {
      return std::unexpected(refused(request, fmt::format("failed quota: {}: {}", title, why)));
    }
  }
  Amounts used = read_amounts(json::get_object(*quota, {"status", "used"}));
  if (!std::ranges::all_of(names, [&](const std::string& n) { return used.contains(n); })) {
    return std::unexpected(refused(
        request,
        fmt::format("status unknown for quota: {}, resources: {}", title, join(names, ","))));
  }
  Amounts asked = quota::usage(resource, request.object, now);
  std::vector<std::string> negative;
  for (const auto& [name, quantity] : asked) {
    if (quantity.negative()) negative.push_back(name);
  }
  if (!negative.empty()) {
    return std::unexpected(refused(
        request, fmt::format("quota usage is negative for resource(s): {}", join(negative, ","))));
  }
  if (!request.creates() && quota::in_scope(*quota, resource, *request.old)) {
    asked = growth(std::move(asked), quota::usage(resource, *request.old, now));
  }
  asked = only(asked, names);
  std::erase_if(asked, [](const auto& item) { return item.second <= Quantity(); });
  if (asked.empty()) return {};
  const Amounts before = used;
  add(used, asked);
  std::vector<std::string> exceeded;
  for (const auto& [name, quantity] : asked) {
    if (used[name] > hard.at(name)) exceeded.push_back(name);
  }
  if (!exceeded.empty() && request.request.subresource != "status") {
    return std::unexpected(refused(
        request,
        fmt::format("exceeded quota: {}, requested: {}, used: {}, limited: {}", title,
                    amounts_text(only(asked, exceeded)), amounts_text(only(before, exceeded)),
                    amounts_text(only(hard, exceeded)))));
  }
  json::value next = *quota;
  json::set(next, {"status", "used"}, write_amounts(used));
  request.txn.put(
      {.resource = "resourcequotas", .ns = request.request.ns, .name = std::string(title)},
      std::move(next));
  return {};
}

}  // namespace

Result<void> charge_quotas(const AdmissionRequest& request) {
  if (!counts(request)) return {};
  const auto now = parse_time(request.now);
  for (const Object& quota : request.txn.list("resourcequotas", request.request.ns)) {
    SKIFF_TRY(charge(request, quota, now.value_or(Time())));
  }
  return {};
}

}  // namespace skiff::apiserver
