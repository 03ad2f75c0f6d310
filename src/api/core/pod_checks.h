// The parts of a pod spec's rules, each in a file of its own; pod_validation.cc puts them together.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "api/rules.h"

namespace skiff::api {

// What the rules of containers need to know of their pod.
struct PodFacts {
  std::map<std::string, const json::value*, std::less<>> volumes = {};  // good ones, by name
  std::int64_t grace_s = 30;
  bool host_users = true;
};

// pod_volumes.cc
void check_volumes(const json::value& spec, const std::string& path, PodFacts& facts, Rules& rules);
void check_field_ref(const json::value& ref, const std::vector<std::string>& fields,
                     const std::string& path, Rules& rules);
void check_resource_field_ref(const json::value& ref, bool needs_container, const std::string& path,
                              Rules& rules);
// Relative, and without a step back.
void check_inner_path(std::string path, std::string_view text, Rules& rules);

// pod_containers.cc: containers, initContainers and ephemeralContainers.
void check_containers(const json::value& spec, const std::string& path, const PodFacts& facts,
                      Rules& rules);

// pod_probes.cc
void check_probes(const json::value& container, const std::string& path, const PodFacts& facts,
                  Rules& rules);

// pod_security.cc
void check_security_context(const json::value& context, const std::string& path,
                            const PodFacts& facts, Rules& rules);
void check_pod_security(const json::value& spec, const std::string& path, Rules& rules);

// pod_placement.cc
void check_affinity(const json::value& spec, const std::string& path, Rules& rules);
void check_topology_spread(const json::value& spec, const std::string& path, Rules& rules);

}  // namespace skiff::api
