// The `skiff` command line.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/result.h"

namespace skiff::cli {

// What `skiff up` was asked for. Starting the platform itself is not the CLI's business.
struct UpOptions {
  std::string data = {};
  std::string https = "127.0.0.1:7443";
  std::string http = "127.0.0.1:7420";
  std::string kubeconfig =
      {};                    // set: run the controllers against that cluster, start no API server
  bool images_host = false;  // every image is this machine's own files
  bool local_trust = true;
  bool api_only = false;  // no controllers, no pods: for tests of clients and of the API
  std::map<std::string, std::int64_t> capacity = {};  // extended resources of this node
  // Called when /readyz says ok: once, and again whenever it has started again.
  std::function<void(const std::string& summary)> ready = {};
};

// What is in a backup.
struct BackupSummary {
  std::string taken_at = {};  // RFC 3339
  std::string taken_by = {};  // the version of Skiff
  std::size_t objects = 0;
  std::uint64_t revision = 0;
};

struct Hooks {
  // Runs the platform until it is told to stop; the exit code.
  std::function<int(const UpOptions&)> serve = {};
  // Ends what a Skiff that is not running any more left behind: pods, links, cgroups.
  std::function<Result<void>(const std::string& data)> clean_up = {};
  // Removes a data folder that the user himself cannot remove whole.
  std::function<Result<void>(const std::string& data)> purge = {};
  // Checks all of a backup, and changes nothing.
  std::function<Result<BackupSummary>(const std::string& file)> inspect_backup = {};
  // Puts a backup where the Skiff that runs with this data folder finds it when it starts again.
  std::function<Result<BackupSummary>(const std::string& file, const std::string& data)>
      stage_restore = {};
  // Restores into the data folder of a Skiff that does not run; where the state before is kept.
  std::function<Result<std::string>(const std::string& file, const std::string& data)> restore = {};
};

// Parses the arguments and runs one verb. The exit code: 0 well, 1 an error that was said on
// standard error, 2 wrong usage, or the exit code of what was run.
int run(int argc, char** argv, const Hooks& hooks);

}  // namespace skiff::cli
