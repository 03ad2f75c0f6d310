// The Node object and its lease: what this machine says about itself. Pure, but for
// read_machine().
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/time.h"

namespace skiff::node {

struct MachineFacts {
  std::string hostname = {};
  std::string architecture = {};  // amd64, arm64
  std::string kernel = {};
  std::string os_image = {};
  std::string machine_id = {};
  std::string boot_id = {};
  std::int64_t cpus = 1;
  std::int64_t memory_bytes = 0;
};
MachineFacts read_machine();

// A name the API takes for a node (and a label's value), as near to the host's name as can be.
std::string valid_node_name(std::string_view host);

struct NodeInput {
  std::string name = {};
  std::string address = {};
  std::string version = {};  // of Skiff
  std::string pod_cidr = {};
  std::map<std::string, std::string> extended = {};  // nvidia.com/gpu: 2
  MachineFacts machine = {};
};

json::value node_object(const NodeInput& input);
// `old` is the Node as the server has it: conditions keep their time of transition.
json::value node_status(const NodeInput& input, const json::value& old, Time now);
json::value lease_object(const std::string& node_name, const std::string& node_uid, Time now);

inline constexpr std::int64_t kPodsPerNode = 1000;

}  // namespace skiff::node
