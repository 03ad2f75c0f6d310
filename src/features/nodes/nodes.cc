#include "features/nodes/nodes.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "api/meta.h"
#include "features/nodes/feature.h"

namespace skiff::nodes {

void again_in(control::GlobalPlan& plan, Duration wait) {
  plan.requeue_after = std::min(plan.requeue_after.value_or(wait), wait);
}

client::Write patch(const api::Resource& resource, const json::value& object, json::value body,
                    std::string_view subresource) {
  return {.verb = client::Verb::kMergePatch,
          .resource = resource,
          .ns = std::string(api::ns(object)),
          .name = std::string(api::name(object)),
          .subresource = std::string(subresource),
          .body = std::move(body),
          .uid = std::string(api::uid(object)),
          .resource_version = std::string(api::resource_version(object))};
}

client::Write removal(const json::value& pod, bool at_once) {
  return removal({std::string(api::ns(pod)), std::string(api::name(pod))},
                 std::string(api::uid(pod)), at_once);
}

client::Write removal(const PodName& pod, const std::string& uid, bool at_once) {
  json::object options{{"apiVersion", "v1"}, {"kind", "DeleteOptions"}};
  if (at_once) options["gracePeriodSeconds"] = 0;
  return {.verb = client::Verb::kDelete,
          .resource = pod_resource(),
          .ns = pod.first,
          .name = pod.second,
          .body = std::move(options),
          .uid = uid};
}

json::array with_condition(const json::value& object, json::object condition, Time now) {
  const std::string type(json::view(condition.at("type").as_string()));
  json::array out;
  bool there = false;
  for (const json::value& known : json::get_array(object, {"status", "conditions"})) {
    if (json::get_string(known, {"type"}) != type) {
      out.push_back(known);
      continue;
    }
    there = true;
    json::value next = known;
    const bool same = known.as_object().if_contains("status") != nullptr &&
                      known.at("status") == condition.at("status");
    for (const auto& [key, value] : condition) next.as_object()[key] = value;
    if (!same) next.as_object()["lastTransitionTime"] = rfc3339(now);
    out.push_back(std::move(next));
  }
  if (!there) {
    condition["lastTransitionTime"] = rfc3339(now);
    out.push_back(std::move(condition));
  }
  return out;
}

control::GlobalPlan plan_nodes(const World& world, Time now) {
  control::GlobalPlan plan;
  if (!world.nodes.empty() || !world.missing.empty()) again_in(plan, kPeriod);
  watch_health(world, now, plan);
  evict(world, now, plan);
  collect_pods(world, now, plan);
  return plan;
}

control::GlobalController make() {
  auto books = std::make_shared<Books>();
  return {.name = "node-controller",
          .watched = Books::watched(),
          .changed = [books](std::size_t which, const Object& before,
                             const Object& after) { books->changed(which, before, after); },
          .plan = [books](Time now) { return plan_nodes(books->look(now), now); }};
}

}  // namespace skiff::nodes
