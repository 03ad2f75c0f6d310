// Every part of Skiff on one machine, in the order in which they need each other.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apiserver/server.h"
#include "assembly/backup.h"
#include "assembly/controller_metrics.h"
#include "assembly/credentials.h"
#include "assembly/data_folder.h"
#include "assembly/features.h"
#include "assembly/loop.h"
#include "assembly/rootless.h"
#include "assembly/upkeep.h"
#include "cli/cli.h"
#include "client/local/local_client.h"
#include "control/runtime.h"
#include "env/posix/clock.h"
#include "image/images.h"
#include "net/server.h"
#include "node/agent.h"
#include "node/gpu/nvml.h"
#include "node/names/dns_server.h"
#include "node/process/process.h"
#include "node/runtime.h"
#include "schema/registry.h"
#include "store/store.h"

namespace skiff::assembly {

inline constexpr const char* kVersion = "v1.34.0+skiff.0.1";

class Platform {
 public:
  // Called, from any thread, when a client asks for it: to be gone, or to start again at once.
  using AskToStop = std::function<void(bool keep_pods, bool start_again)>;
  static Result<std::unique_ptr<Platform>> start(const cli::UpOptions& options,
                                                 AskToStop ask_to_stop, Outside& outside);
  ~Platform();

  // One line for people: where it answers and how to point clients here.
  std::string summary() const;
  // Pods get their grace unless they are to be kept for the next start.
  void stop(bool keep_pods);

 private:
  Platform(DataFolder folder, cli::UpOptions options, const Outside& outside);

  Result<void> open_store();
  void choose_network();
  Result<void> load_credentials();
  void make_server(AskToStop ask_to_stop);
  Result<void> listen();
  void start_control();
  void open_images();
  std::vector<node::Gpu> find_gpus();
  void start_node();
  Result<void> start_names(const std::string& address, std::uint16_t port);
  void start_led_names();
  Result<std::string> pod_token(const node::TokenWish& wish);
  std::map<std::string, Duration, std::less<>> graces();  // by pod uid
  std::string volumes_folder() const;                     // of claims
  http::Response status_json();

  const DataFolder folder_;
  const cli::UpOptions options_;
  const Outside& outside_;
  const env::posix::Clock clock_ = {};
  const Time started_at_;
  const Duration started_;
  Credentials credentials_ = {};
  Backups backups_{folder_};
  std::optional<Restored> restored_ = {};
  std::string restore_refused_ = {};
  schema::Registry registry_;
  Features features_;
  ControllerMetrics metrics_{clock_};
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<apiserver::Server> server_;
  Loop loop_;
  Loop writer_;   // of controllers' long submits, which would hold up the loop
  Loop planner_;  // of long plans
  std::unique_ptr<client::LocalClient> control_client_;
  std::unique_ptr<control::Runtime> control_;
  std::unique_ptr<Upkeep> upkeep_;
  node::ProcessOptions process_ = {};
  std::unique_ptr<node::Runtime> runtime_;
  std::unique_ptr<apiserver::PodStreams> pod_streams_;
  std::unique_ptr<client::LocalClient> node_client_;
  std::unique_ptr<image::Images> images_;
  std::unique_ptr<node::Nvml> nvml_;  // null: no NVIDIA GPUs here
  std::unique_ptr<node::Agent> agent_;
  // Whose names are answered, once there are any.
  std::shared_ptr<std::atomic<const node::Agent*>> named_;
  std::unique_ptr<node::DnsServer> dns_;
  std::unique_ptr<client::LocalClient> page_client_;
  std::unique_ptr<net::Server> http_;
  std::string api_url_, page_url_;
  bool stopped_ = false;
};

// Ends the pods that a Skiff with this data folder left behind when it was killed, and removes its
// network.
Result<void> clean_up(const std::string& data);
Result<void> clean_up_in(const DataFolder& folder);

}  // namespace skiff::assembly
