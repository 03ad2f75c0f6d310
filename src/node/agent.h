// The kubelet of this machine: runs the pods that are bound to it and tells the API how they are.
//
// It sees the API only through client::Client and pods only through Runtime. One thread owns all
// state and makes every call to the client; calls to the runtime are made by a few workers, for one
// pod one after another.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/usage_source.h"
#include "client/client.h"
#include "env/env.h"
#include "image/images.h"
#include "node/environment.h"
#include "node/gpu/gpu_book.h"
#include "node/names/dns_records.h"
#include "node/runtime.h"

namespace skiff::node {

// Where pods find the API; no host: they are not told.
struct ApiAddress {
  std::string host = {};
  int port = 0;
};

struct AgentOptions {
  std::string node_name = {};
  std::string node_address = "127.0.0.1";
  std::string version = {};
  std::string pod_cidr = {};
  bool images_host = false;         // --images=host
  image::Images* images = nullptr;  // the store and registries; null: mapped images only
  std::map<std::string, std::string> capacity = {};  // --capacity RES=N
  // The machine's NVIDIA GPUs, which containers get by asking for nvidia.com/gpu, and what is used
  // of them (from any thread).
  std::vector<Gpu> gpus = {};
  std::function<Result<std::vector<GpuLoad>>()> gpu_loads = {};
  std::vector<std::string> hidden = {};  // folders no pod may see: Skiff's data
  // The program that pods with a remote shell get (remote_shell.h); empty: they get none.
  std::string remote_shell = {};
  std::string volumes_folder = {};  // where volumes for claims are made; empty: nowhere
  // Where pods find names; empty: there is no such address, and they get an /etc/hosts instead.
  std::string dns_address = {};
  Variables machine_env = {};  // the environment of this process
  // Makes tokens of service accounts; absent: pods get none. From the agent's thread.
  TokenSource tokens = {};
  // More than cores: most of a start is waiting for the disk and for the pod's own processes.
  int workers = 8;
  Duration measure_every = std::chrono::seconds(10);  // how often what is used is measured
  Duration volumes_every = std::chrono::seconds(10);  // how often volumes are looked after
  Duration resync_every = std::chrono::seconds(30);   // how often everything else is
  Duration services_retry = std::chrono::seconds(10);
  // What an operator should know: failed writes, failed runtime calls. From the agent's thread.
  std::function<void(std::string)> log = {};
};

class Agent {
 public:
  // All three must outlive the agent. `client` is used from the agent's thread only.
  Agent(client::Client& client, Runtime& runtime, const env::Clock& clock, AgentOptions options);
  // Stops the threads; pods run on, and a new agent finds them.
  ~Agent();

  // Registers the node and starts to work; errors of the API are retried, never returned.
  void start(ApiAddress api = {});
  void stop();

  // What DNS answers from. Never null; from any thread.
  std::shared_ptr<const DnsRecords> dns_records() const;
  // Whether this run of a container may still write to its log. From any thread.
  bool running(std::string_view pod_uid, std::string_view container, int attempt) const;
  // What this node and its running containers use. From any thread.
  apiserver::Usage usage() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace skiff::node
