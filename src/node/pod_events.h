// Kubernetes Events about pods: what the node did, once per kind of thing, with a count.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/time.h"
#include "client/client.h"
#include "node/pod_plan.h"

namespace skiff::node {

class PodEvents {
 public:
  PodEvents(client::Client& client, std::string node_name);

  // Best effort: an event that cannot be written is dropped, it must not stop a pod.
  void record(const json::value& pod, const PodNote& note, Time now);
  void forget(std::string_view pod_uid);

 private:
  struct Known {
    std::string pod_uid = {};
    std::int64_t count = 0;
  };
  client::Client& client_;
  const std::string node_name_;
  std::map<std::string, Known, std::less<>> known_ = {};  // by namespace/name of the event
};

json::value pod_event(const json::value& pod, const PodNote& note, std::string_view name,
                      std::string_view node_name, Time now);
// The same note about the same pod has the same name, so that it is counted and not repeated.
std::string pod_event_name(const json::value& pod, const PodNote& note);

}  // namespace skiff::node
