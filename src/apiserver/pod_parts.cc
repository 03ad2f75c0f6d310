// The sub-resources of pods that change a part of them or ask for their end.
#include <fmt/format.h>

#include <algorithm>

#include "api/meta.h"
#include "apiserver/request_body.h"
#include "apiserver/status.h"
#include "apiserver/writes.h"
#include "base/selectors.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kBudgets = "poddisruptionbudgets.policy";
constexpr std::size_t kDisruptedPods = 2000;
constexpr int kRetryAfterSeconds = 10;

Error too_many(std::string message, std::optional<int> retry_after_s) {
  return {.code = Code::kTooManyRequests,
          .message = "Cannot evict pod as it would violate the pod's disruption budget.",
          .causes = {{.reason = "DisruptionBudget", .message = std::move(message)}},
          .retry_after_s = retry_after_s};
}

// A pod that does no work needs no budget.
bool idle(const json::value& pod) {
  const std::string_view phase = json::get_string(pod, {"status", "phase"});
  return phase == "Succeeded" || phase == "Failed" || phase == "Pending" || api::deleting(pod);
}

std::vector<Object> budgets_of(Transaction& txn, const std::string& ns, const json::value& pod) {
  std::vector<Object> out;
  for (const Object& budget : txn.list(kBudgets, ns)) {
    const json::value* selector = json::find(*budget, {"spec", "selector"});
    if (selector == nullptr || selector->is_null()) continue;
    const auto matcher = LabelSelector::from_object(*selector);
    if (matcher && matcher->matches_object(pod)) out.push_back(budget);
  }
  return out;
}

void set_part_condition(json::value& object, json::object condition, const std::string& now) {
  json::value& list = json::make_object(object, {"status"})["conditions"];
  if (!list.is_array()) list.emplace_array();
  for (json::value& existing : list.get_array()) {
    if (json::get_string(existing, {"type"}) != json::view(condition.at("type").get_string())) {
      continue;
    }
    const bool same =
        json::get_string(existing, {"status"}) == json::view(condition.at("status").get_string());
    condition["lastTransitionTime"] =
        same ? existing.get_object()["lastTransitionTime"] : json::value(json::string(now));
    existing = std::move(condition);
    return;
  }
  condition["lastTransitionTime"] = json::string(now);
  list.get_array().emplace_back(std::move(condition));
}

// One disruption less in the budget, or why not.
Result<void> spend(Transaction& txn, const store::Key& key, const json::value& budget,
                   std::string_view pod, const std::string& now) {
  const auto number = [&](std::initializer_list<std::string_view> path) {
    return json::get_int(budget, path).value_or(0);
  };
  const std::string_view name = api::name(budget);
  const api::Resource resource{.group = "policy", .plural = "poddisruptionbudget"};
  if (number({"status", "observedGeneration"}) < number({"metadata", "generation"})) {
    return std::unexpected(too_many(
        fmt::format("The disruption budget {} is still being processed by the server.", name),
        kRetryAfterSeconds));
  }
  const std::int64_t allowed = number({"status", "disruptionsAllowed"});
  if (allowed < 0) {
    return std::unexpected(forbidden(resource, name, "pdb disruptions allowed is negative"));
  }
  if (json::get_object(budget, {"status", "disruptedPods"}).size() > kDisruptedPods) {
    return std::unexpected(forbidden(
        resource, name,
        "DisruptedPods map too big - too many evictions not confirmed by PDB controller"));
  }
  if (allowed == 0) {
    return std::unexpected(too_many(
        fmt::format("The disruption budget {} needs {} healthy pods and has {} currently", name,
                    number({"status", "desiredHealthy"}), number({"status", "currentHealthy"})),
        std::nullopt));
  }
  json::value next = budget;
  json::set(next, {"status", "disruptionsAllowed"}, allowed - 1);
  if (allowed == 1) {
    set_part_condition(next,
                       {{"type", "DisruptionAllowed"},
                        {"status", "False"},
                        {"observedGeneration", number({"status", "observedGeneration"})},
                        {"reason", "InsufficientPods"},
                        {"message", ""}},
                       now);
  }
  json::set(next, {"status", "disruptedPods", pod}, json::string(now));
  txn.put(key, std::move(next));
  return {};
}

// Whether the budget stands in the way, and what it costs.
Result<void> ask_budgets(Transaction& txn, const WriteRequest& request, const json::value& pod,
                         const std::string& now) {
  const std::vector<Object> budgets = budgets_of(txn, request.ns, pod);
  if (budgets.empty()) return {};
  if (budgets.size() > 1) {
    return fail(Code::kInternal,
                "This pod has more than one PodDisruptionBudget, which the eviction subresource "
                "does not support.");
  }
  const json::value& budget = *budgets[0];
  if (!api::condition_true(pod, "Ready")) {
    const std::int64_t healthy = json::get_int(budget, {"status", "currentHealthy"}).value_or(0);
    const std::int64_t wanted = json::get_int(budget, {"status", "desiredHealthy"}).value_or(0);
    const bool always =
        json::get_string(budget, {"spec", "unhealthyPodEvictionPolicy"}) == "AlwaysAllow";
    if (always || (healthy >= wanted && wanted > 0)) return {};
  }
  return spend(
      txn,
      {.resource = std::string(kBudgets), .ns = request.ns, .name = std::string(api::name(budget))},
      budget, request.name, now);
}

}  // namespace

Result<Outcome> Writes::evict(Transaction& txn, const WriteRequest& request) {
  const Object pod = txn.get(key_of(request));
  if (pod == nullptr) return std::unexpected(not_found(request.kind->resource(), request.name));
  if (const std::string_view name = api::name(request.body);
      !name.empty() && name != request.name) {
    return fail(Code::kBadRequest, "name in URL does not match name in Eviction object");
  }
  WriteRequest removal = request;
  removal.verb = Verb::kDelete;
  removal.subresource.clear();
  removal.body = nullptr;
  if (const json::value* options = json::find(request.body, {"deleteOptions"})) {
    SKIFF_TRY(read_delete_options(*options, http::Url(), removal));
  }
  SKIFF_TRY(check_preconditions(removal, *pod));
  const std::string now = stamp();
  if (!idle(*pod)) SKIFF_TRY(ask_budgets(txn, request, *pod, now));
  json::value told = *pod;
  set_part_condition(told,
                     {{"type", "DisruptionTarget"},
                      {"status", "True"},
                      {"lastProbeTime", nullptr},
                      {"reason", "EvictionByEvictionAPI"},
                      {"message", "Eviction API: evicting"}},
                     now);
  txn.put(key_of(request), std::move(told));
  // It was this pod that was judged; the condition above has not changed its version yet.
  SKIFF_ASSIGN(Outcome outcome, remove(txn, removal));
  outcome.status = 201;
  outcome.answer = json::object{{"kind", "Status"},
                                {"apiVersion", "v1"},
                                {"metadata", json::object()},
                                {"status", "Success"},
                                {"code", 201}};
  return outcome;
}

void take_pod_part(std::string_view subresource, const json::value& from, json::value& to) {
  json::object& spec = json::make_object(to, {"spec"});
  if (subresource == "ephemeralcontainers") {
    const json::array& list = json::get_array(from, {"spec", "ephemeralContainers"});
    if (list.empty()) {
      spec.erase("ephemeralContainers");
    } else {
      spec["ephemeralContainers"] = list;
    }
    return;
  }
  for (std::string_view field : {"containers", "initContainers"}) {
    json::value* list = spec.if_contains(field);
    if (list == nullptr || !list->is_array()) continue;
    for (json::value& container : list->get_array()) {
      for (const json::value& wanted : json::get_array(from, {"spec", field})) {
        if (json::get_string(wanted, {"name"}) != json::get_string(container, {"name"})) continue;
        for (std::string_view part : {"resources", "resizePolicy"}) {
          const json::value* value = json::find(wanted, {part});
          if (value != nullptr) container.as_object()[part] = *value;
        }
      }
    }
  }
}

}  // namespace skiff::apiserver
