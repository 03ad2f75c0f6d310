// Which nodes a DaemonSet wants, and what its pods carry so that each runs on its node.
#pragma once

#include <string>
#include <string_view>

#include "api/kind.h"
#include "base/json.h"

namespace skiff::workloads {

const api::Resource& node_resource();

// A pod of the template with what every daemon tolerates: trouble of its node does not drive it
// away.
json::value daemon_template(const json::value& set);
// Only the node of that name will do.
void pin(json::value& pod, std::string_view node);
// The node that the pod is on or pinned to; empty where it is neither.
std::string target_node(const json::value& pod);

struct Welcome {
  bool runs = false;   // a pod is to be there
  bool stays = false;  // one that is there may stay
};
Welcome welcome(const json::value& daemon_template, const json::value& node);
// Whether a node that became the other is as welcome as before, whoever asks.
bool alike_to_daemons(const json::value& before, const json::value& after);

}  // namespace skiff::workloads
