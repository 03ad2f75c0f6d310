#include "node/node_object.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "base/strings.h"

namespace skiff::node {
namespace {

std::string first_line(const char* path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

std::string pretty_os() {
  std::ifstream in("/etc/os-release");
  for (std::string line; std::getline(in, line);) {
    constexpr std::string_view kKey = "PRETTY_NAME=";
    if (!line.starts_with(kKey)) continue;
    std::string value = line.substr(kKey.size());
    if (value.size() >= 2 && value.front() == '"') value = value.substr(1, value.size() - 2);
    return value;
  }
  return "Linux";
}

std::string go_architecture(std::string_view machine) {
  if (machine == "x86_64") return "amd64";
  if (machine == "aarch64") return "arm64";
  return std::string(machine);
}

json::object labels(const NodeInput& input) {
  return {{"kubernetes.io/hostname", input.name},
          {"kubernetes.io/os", "linux"},
          {"kubernetes.io/arch", input.machine.architecture},
          {"beta.kubernetes.io/os", "linux"},
          {"beta.kubernetes.io/arch", input.machine.architecture},
          {"node-role.kubernetes.io/control-plane", ""}};
}

json::object capacity(const NodeInput& input) {
  json::object out{{"cpu", std::to_string(input.machine.cpus)},
                   {"memory", fmt::format("{}Ki", input.machine.memory_bytes / 1024)},
                   {"pods", std::to_string(kPodsPerNode)}};
  for (const auto& [resource, amount] : input.extended) out[resource] = amount;
  return out;
}

json::value condition(const json::value& old, std::string_view type, bool on,
                      std::string_view reason, std::string_view message, Time now) {
  const std::string_view status = on ? "True" : "False";
  std::string since = rfc3339(now);
  for (const json::value& c : json::get_array(old, {"status", "conditions"})) {
    if (json::get_string(c, {"type"}) != type || json::get_string(c, {"status"}) != status)
      continue;
    const std::string_view told = json::get_string(c, {"lastTransitionTime"});
    if (!told.empty()) since = told;
  }
  return json::object{{"type", json::string(type)},        {"status", json::string(status)},
                      {"lastHeartbeatTime", rfc3339(now)}, {"lastTransitionTime", since},
                      {"reason", json::string(reason)},    {"message", json::string(message)}};
}

}  // namespace

std::string valid_node_name(std::string_view host) {
  constexpr std::size_t kLongest = 63;
  std::string text = lower(host.substr(0, kLongest));
  for (char& c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.';
    if (!plain) c = '-';
  }
  std::string out;
  for (std::string_view part : split(text, '.')) {
    while (part.starts_with('-')) part.remove_prefix(1);
    while (part.ends_with('-')) part.remove_suffix(1);
    if (part.empty()) continue;
    if (!out.empty()) out.push_back('.');
    out.append(part);
  }
  return out.empty() ? "skiff" : out;
}

MachineFacts read_machine() {
  utsname names = {};
  ::uname(&names);
  MachineFacts out;
  out.hostname = names.nodename;
  out.architecture = go_architecture(names.machine);
  out.kernel = names.release;
  out.os_image = pretty_os();
  out.machine_id = first_line("/etc/machine-id");
  out.boot_id = first_line("/proc/sys/kernel/random/boot_id");
  out.cpus = std::max<std::int64_t>(1, std::thread::hardware_concurrency());
  out.memory_bytes = ::sysconf(_SC_PHYS_PAGES) * ::sysconf(_SC_PAGE_SIZE);
  return out;
}

json::value node_object(const NodeInput& input) {
  json::object spec;
  if (!input.pod_cidr.empty()) {
    spec["podCIDR"] = input.pod_cidr;
    spec["podCIDRs"] = json::array{json::string(input.pod_cidr)};
  }
  return json::object{{"apiVersion", "v1"},
                      {"kind", "Node"},
                      {"metadata", {{"name", input.name}, {"labels", labels(input)}}},
                      {"spec", std::move(spec)}};
}

json::value node_status(const NodeInput& input, const json::value& old, Time now) {
  const json::array conditions{
      condition(old, "MemoryPressure", false, "KubeletHasSufficientMemory",
                "this machine has memory to spare", now),
      condition(old, "DiskPressure", false, "KubeletHasNoDiskPressure",
                "this machine has disk space to spare", now),
      condition(old, "PIDPressure", false, "KubeletHasSufficientPID",
                "this machine has process ids to spare", now),
      condition(old, "Ready", true, "KubeletReady", "the node agent of Skiff is running", now)};
  return json::object{
      {"capacity", capacity(input)},
      {"allocatable", capacity(input)},
      {"conditions", conditions},
      {"addresses", json::array{json::object{{"type", "InternalIP"}, {"address", input.address}},
                                json::object{{"type", "Hostname"}, {"address", input.name}}}},
      {"nodeInfo",
       {{"architecture", input.machine.architecture},
        {"bootID", input.machine.boot_id},
        {"containerRuntimeVersion", "skiff://" + input.version},
        {"kernelVersion", input.machine.kernel},
        {"kubeProxyVersion", input.version},
        {"kubeletVersion", input.version},
        {"machineID", input.machine.machine_id},
        {"operatingSystem", "linux"},
        {"osImage", input.machine.os_image},
        {"systemUUID", input.machine.machine_id}}}};
}

json::value lease_object(const std::string& node_name, const std::string& node_uid, Time now) {
  json::object metadata{{"name", node_name}, {"namespace", "kube-node-lease"}};
  if (!node_uid.empty()) {
    metadata["ownerReferences"] = json::array{json::object{
        {"apiVersion", "v1"}, {"kind", "Node"}, {"name", node_name}, {"uid", node_uid}}};
  }
  return json::object{{"apiVersion", "coordination.k8s.io/v1"},
                      {"kind", "Lease"},
                      {"metadata", std::move(metadata)},
                      {"spec",
                       {{"holderIdentity", node_name},
                        {"leaseDurationSeconds", 40},
                        {"renewTime", rfc3339_micro(now)}}}};
}

}  // namespace skiff::node
