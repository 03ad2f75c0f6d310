// The `process` runtime: pods as processes of this machine, without images. As root every pod has
// namespaces, control groups and an address on a bridge; without privileges containers are plain
// processes and pods have loopback addresses.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/fd.h"
#include "node/runtime.h"

namespace skiff::node {

struct ProcessOptions {
  std::string pods_folder = {};          // absolute
  std::string skiff_binary = {};         // run as: BINARY shim POD-FOLDER
  std::string bridge = "skiff0";         // two data directories on one machine need two names
  std::shared_ptr<const Fd> claim = {};  // of the bridge, see claim_bridge()
  // CIDR, as pick_subnet() chose it; kept over restarts. Empty: pods share the machine's network.
  std::string subnet = {};
  std::string gateway = {};           // empty: the subnet's first address
  std::string services = {};          // CIDR of cluster IPs
  std::string node_ip = "127.0.0.1";  // the address of pods on the machine's own network
  bool privileged = true;             // use root's rights where we have them
  bool egress = true;                 // let pods reach the outside
  // Where pods share the machine's network: the file that says where their calls lead
  // (node/loopback), and the port of 127.0.0.1 that answers for names. Empty: nothing is led.
  std::string led_table = {};
  std::uint16_t names_port = 0;
  // Takes one sentence for each thing that this machine lacks, at most once each.
  std::function<void(std::string)> tell = {};
};

// Makes the bridge, and takes over every pod that is in the folder.
std::unique_ptr<Runtime> make_process_runtime(ProcessOptions options);

// Removes the bridge, the masquerading rule and the pods' empty control group; for when no pod is
// left and none will come.
Result<void> release_network(const ProcessOptions& options);

}  // namespace skiff::node
