// `skiff train script.py --framework ...` as a job manifest. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "cli/train/code.h"

namespace skiff::cli {

// The image that stands for this machine's own files; `skiff train` maps it to the host.
inline constexpr std::string_view kHostImage = "skiff.dev/host";

struct TrainOptions {
  std::string name = {};
  std::string ns = {};
  std::string framework = {};  // of train_framework.h
  std::string script = {};     // absolute path on this machine; with code: below its folder
  std::vector<std::string> arguments = {};
  std::string working_dir = {};
  std::string python = "python3";
  int workers = 1;
  int ps = 0;
  std::string cpu = {};  // per replica, as a quantity; empty: none asked
  std::string memory = {};
  std::int64_t gpus = 0;
  std::vector<std::string> env = {};  // NAME=value
  std::int64_t retries = 3;
  std::string data = {};  // Skiff's data folder, which no pod may see
  int nproc = 1;          // processes in each pod
  std::string image = std::string(kHostImage);
  std::vector<std::string> datasets = {};  // absolute paths on this machine, shown read-only
  std::vector<std::string> claims = {};    // NAME:/path
  std::vector<CodeMap> code = {};          // a copy of the code; empty: its folder is mounted
};

// An error is a sentence for the user.
Result<json::value> train_manifest(const TrainOptions& options);

// A DNS label made from a script's name: Train_MNIST.py -> train-mnist.
std::string job_name_from(std::string_view script);

}  // namespace skiff::cli
