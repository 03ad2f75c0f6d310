// The JSON forms of what Skiff and a shim tell each other, and of the records in a pod's folder.
//
// A request is one JSON object on a line, `op` says which; the answer is one line too. With `exec`
// come three descriptors, and its answer comes when the program has ended. The folder:
//   sandbox.json             what start_sandbox was given, the address, the boot it belongs to
//   shim.sock                where the shim listens (mode 0600)
//   state/NAME.ATTEMPT.json  one ContainerRecord each, replaced when the container ends
//   logs/NAME/ATTEMPT.log    CRI lines; ATTEMPT.log.1, .2, ... are full and older
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "node/runtime.h"

namespace skiff::node {

// Which of these forms somebody speaks. Shims outlive the Skiff that started them, so each side
// meets older ones: a field that is absent has the meaning it had before it was invented. The
// number goes up when a shim of before would do something else than it is asked to.
//   0  of before there were numbers: names, commands, volumes and limits are safe to ask for
//   1  images, users, groups, capabilities, terminals, volumes in memory
inline constexpr int kFormat = 1;

// What the shim reads when it starts.
struct SandboxFile {
  int format = kFormat;  // of the shim
  SandboxSpec spec = {};
  std::string ip = {};
  std::string boot = {};
  std::string cgroup = {};  // relative to the root of every hierarchy; empty: none
  bool privileged = false;
  bool own_network = false;  // the shim makes a network namespace
  bool stopped = false;      // only logs and records are left
  std::string led = {};      // the table by which calls are led (node/loopback); empty: none
};

// An error where the pod is held by a shim of a newer Skiff, whose words this one cannot know.
Result<void> known_format(const SandboxFile& file);
// An error where a shim of that format would run something else than this.
Result<void> can_run(int format, const ContainerSpec& spec);
// What an answer of a shim says went wrong; nothing where all went well.
std::optional<Error> answered_error(const json::value& answer);

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
