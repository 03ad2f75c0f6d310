// The JSON forms of what Skiff and a shim tell each other, and of the records in a pod's folder.
//
// A request is one JSON object on a line, `op` says which; the answer is one line too. With `exec`
// come three descriptors, and its answer comes when the program has ended. The folder:
//   sandbox.json             what start_sandbox was given, the address, the boot it belongs to
//   shim.sock                where the shim listens (mode 0600)
//   state/NAME.ATTEMPT.json  one ContainerRecord each, replaced when the container ends
//   logs/NAME/ATTEMPT.log    CRI lines; ATTEMPT.log.1, .2, ... are full and older
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "node/runtime.h"

namespace skiff::node {

// What the shim reads when it starts.
struct SandboxFile {
  SandboxSpec spec = {};
  std::string ip = {};
  std::string boot = {};
  std::string cgroup = {};  // relative to the root of every hierarchy; empty: none
  bool privileged = false;
  bool own_network = false;  // the shim makes a network namespace
  bool stopped = false;      // only logs and records are left
};

json::object to_json(const SandboxFile& file);
Result<SandboxFile> sandbox_from_json(const json::value& v);
json::object to_json(const ContainerSpec& spec);
Result<ContainerSpec> container_from_json(const json::value& v);
// Without the descriptors, which travel beside it.
json::object to_json(const ExecSpec& spec);
Result<ExecSpec> exec_from_json(const json::value& v);
json::object to_json(const ContainerRecord& record);
Result<ContainerRecord> record_from_json(const json::value& v);

std::string socket_path(const std::string& pod_folder);
std::string state_folder(const std::string& pod_folder);
std::string record_name(std::string_view container, int attempt);
std::string log_file(const std::string& pod_folder, std::string_view container, int attempt);

// Newest attempt of each container, sorted by name.
std::vector<ContainerRecord> read_records(const std::string& pod_folder);
Result<void> write_record(const std::string& pod_folder, const ContainerRecord& record);

Time wall_clock();

}  // namespace skiff::node
