// The controllers against somebody else's API server: `skiff up --kubeconfig`. No store, no pods,
// no scheduler; the cluster has its own.
#pragma once

#include <memory>
#include <string>

#include "assembly/controller_metrics.h"
#include "assembly/data_folder.h"
#include "assembly/features.h"
#include "assembly/loop.h"
#include "cli/cli.h"
#include "client/remote/remote_client.h"
#include "control/runtime.h"
#include "env/posix/clock.h"
#include "net/server.h"
#include "schema/registry.h"

namespace skiff::assembly {

class Cluster {
 public:
  // Installs the definitions of our kinds, then runs until it is destroyed.
  static Result<std::unique_ptr<Cluster>> start(const cli::UpOptions& options);
  ~Cluster();

  std::string summary() const;

 private:
  Cluster(DataFolder folder, const cli::UpOptions& options);

  Result<void> connect();
  Result<void> install_definitions();
  Result<void> install(const json::value& definition);
  void start_control();
  Result<void> listen();

  const DataFolder folder_;
  const cli::UpOptions options_;
  const env::posix::Clock clock_ = {};
  schema::Registry registry_;
  Features features_;
  ControllerMetrics metrics_{clock_};
  Loop loop_;
  std::unique_ptr<client::RemoteClient> client_;
  std::unique_ptr<control::Runtime> control_;
  std::unique_ptr<net::Server> http_;
};

}  // namespace skiff::assembly
