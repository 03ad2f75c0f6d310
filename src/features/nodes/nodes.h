// What is to be done about nodes and their pods. Pure.
#pragma once

#include <cstddef>

#include "control/controller.h"
#include "features/nodes/world.h"

namespace skiff::nodes {

// A node that was silent for so long is taken for lost; its lease is renewed every ten seconds.
inline constexpr Duration kGrace = std::chrono::seconds(40);
// How often the world is looked at; also how a standstill of this process is noticed.
inline constexpr Duration kPeriod = std::chrono::seconds(10);
// So many pods that have ended are kept.
inline constexpr std::size_t kEndedPods = 12'500;

control::GlobalPlan plan_nodes(const World& world, Time now);

// The parts of it. Each adds to the plan.
void watch_health(const World& world, Time now, control::GlobalPlan& plan);
void evict(const World& world, Time now, control::GlobalPlan& plan);
void collect_pods(const World& world, Time now, control::GlobalPlan& plan);

void again_in(control::GlobalPlan& plan, Duration wait);
// A merge patch of an observed object, only if it is as it was observed.
client::Write patch(const api::Resource& resource, const json::value& object, json::value body,
                    std::string_view subresource = {});
client::Write removal(const json::value& pod, bool at_once);
client::Write removal(const PodName& pod, const std::string& uid, bool at_once);
// The conditions of an object with one of them set; it is new since `now` where its status changes.
json::array with_condition(const json::value& object, json::object condition, Time now);

}  // namespace skiff::nodes
