#include "cli/train/framework.h"

#include <algorithm>

#include "base/strings.h"

namespace skiff::cli {
namespace {

// The modules a line imports: "import a.b as c, d" and "from a.b import c" name a, d and a.
std::vector<std::string_view> imported(std::string_view line) {
  std::vector<std::string_view> out;
  line = trim(line);
  const bool from = line.starts_with("from ");
  if (!from && !line.starts_with("import ")) return out;
  line.remove_prefix(from ? 5 : 7);
  for (std::string_view part : split(line, from ? '\0' : ',')) {
    part = trim(part);
    out.push_back(part.substr(0, part.find_first_of(" .;#\t")));
  }
  return out;
}

}  // namespace

const std::vector<TrainFramework>& train_frameworks() {
  static const std::vector<TrainFramework> kAll = {
      {.name = "tensorflow",
       .kind = "TFJob",
       .replicas_field = "tfReplicaSpecs",
       .container = "tensorflow",
       .servers = "PS",
       .all_workers_policy = "AllWorkers",
       .modules = {"tensorflow", "tf_keras", "keras"}},
      {.name = "pytorch",
       .kind = "PyTorchJob",
       .replicas_field = "pytorchReplicaSpecs",
       .container = "pytorch",
       .first = "Master",
       .processes = "nprocPerNode",
       .modules = {"torch", "lightning", "pytorch_lightning", "accelerate", "transformers"}},
      {.name = "xgboost",
       .kind = "XGBoostJob",
       .replicas_field = "xgbReplicaSpecs",
       .container = "xgboost",
       .first = "Master",
       .modules = {"xgboost", "lightgbm"}},
      {.name = "jax",
       .kind = "JAXJob",
       .replicas_field = "jaxReplicaSpecs",
       .container = "jax",
       .modules = {"jax", "flax"}},
      {.name = "paddle",
       .kind = "PaddleJob",
       .replicas_field = "paddleReplicaSpecs",
       .container = "paddle",
       .servers = "Master",
       .modules = {"paddle"}},
      {.name = "mpi",
       .kind = "MPIJob",
       .replicas_field = "mpiReplicaSpecs",
       .container = "mpi",
       .launcher = "Launcher",
       .version = "v2beta1",
       .processes = "slotsPerWorker",
       .modules = {"horovod", "mpi4py"}},
  };
  return kAll;
}

const TrainFramework* find_framework(std::string_view name) {
  const auto found = std::ranges::find(train_frameworks(), name, &TrainFramework::name);
  return found == train_frameworks().end() ? nullptr : &*found;
}

std::string framework_names() {
  std::string out;
  const auto& all = train_frameworks();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i > 0) out += i + 1 == all.size() ? " or " : ", ";
    out += all[i].name;
  }
  return out;
}

std::optional<Guess> guess_framework(std::string_view script_text) {
  std::optional<Guess> first;
  for (const std::string_view line : split(script_text, '\n')) {
    for (const std::string_view module : imported(line)) {
      for (const TrainFramework& framework : train_frameworks()) {
        const auto& known = framework.modules;
        if (std::ranges::find(known, module) == known.end()) continue;
        // Horovod is imported beside the framework whose gradients it adds up.
        const Guess guess{.framework = &framework, .module = std::string(module)};
        if (!framework.launcher.empty()) return guess;
        if (!first) first = guess;
      }
    }
  }
  return first;
}

}  // namespace skiff::cli
