// The kinds of job that `skiff train` makes, one row each, and the guess which one a script is for.
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace skiff::cli {

struct TrainFramework {
  std::string_view name = {};  // of --framework
  std::string_view kind = {};
  std::string_view replicas_field = {};
  std::string_view container = {};
  std::string_view first = {};     // role of the first worker; empty: as of the others
  std::string_view servers = {};   // role of --ps; empty: it has none
  std::string_view launcher = {};  // role that starts the script in the workers, by mpirun
  std::string_view version = "v1";
  std::string_view all_workers_policy = {};    // spec.successPolicy that waits for every worker
  std::string_view processes = {};             // field of --nproc; empty: one process in each pod
  std::vector<std::string_view> modules = {};  // a script that imports one of them is for it
};

const std::vector<TrainFramework>& train_frameworks();
// Null where there is none of this name.
const TrainFramework* find_framework(std::string_view name);
std::string framework_names();  // "tensorflow, pytorch, ... or mpi"

struct Guess {
  const TrainFramework* framework = nullptr;
  std::string module = {};  // what the script imports
};
// By the first of the modules above that the text imports, but for what needs a launcher, which
// goes with any other; nothing where it imports none.
std::optional<Guess> guess_framework(std::string_view script_text);

}  // namespace skiff::cli
