#include "features/trainer/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/strings.h"
#include "features/trainer/trainjob.h"
#include "schema/causes.h"

namespace skiff::trainer {
namespace {

using schema::child;
using schema::invalid;

constexpr std::string_view kLargest = "llama3_3/70B";  // the only one for several nodes
constexpr std::array<std::string_view, 4> kModels = {"llama3_2/1B", "llama3_2/3B", kLargest,
                                                     "qwen2_5/1.5B"};
// Set by the runtime, where the model and the data lie.
constexpr std::array<std::string_view, 4> kFixedConfigs = {
    "output_dir", "tokenizer.path", "checkpointer.checkpoint_dir", "tokenizer.merges_file"};

struct Shape {
  std::int64_t nodes = 1;
  std::optional<std::int64_t> processes = {};  // absent: as many as there are devices
  std::int64_t gpus = 0;

  bool one_device() const { return nodes == 1 && (processes == 1 || gpus == 1); }
};

struct Recipe {
  std::string name = {};
  std::string config = {};
};

std::vector<std::string> arguments(const json::value& job) {
  return json::strings(json::get_array(job, {"spec", "trainer", "args"}));
}

bool enabled(const std::vector<std::string>& args, std::string_view config) {
  return std::ranges::any_of(args, [&](std::string_view arg) {
    const std::size_t at = arg.find('=');
    return at != std::string_view::npos && arg.substr(0, at).contains(config) &&
           lower(trim(arg.substr(at + 1))) == "true";
  });
}

bool uses_lora(const std::vector<std::string>& args) {
  return std::ranges::any_of(
      args, [](std::string_view arg) { return arg.contains("model.lora_attn_modules"); });
}

// A base model of fewer bits, unless the weights are taken apart, which goes without.
bool uses_qlora(const std::vector<std::string>& args) {
  return !enabled(args, "model.use_dora") && enabled(args, "model.quantize_base");
}

// torchtune-llama3.2-1b is llama3_2/1B.
std::string model(const json::value& job) {
  const std::vector<std::string_view> fields =
      split(json::get_string(job, {"spec", "runtimeRef", "name"}), '-');
  if (fields.size() != 3) return {};
  std::string family(fields[1]);
  std::ranges::replace(family, '.', '_');
  std::string size(fields[2]);
  for (char& c : size) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return fmt::format("{}/{}", family, size);
}

Recipe recipe(const json::value& job, const Shape& shape) {
  const std::vector<std::string> args = arguments(job);
  const std::string of = model(job);
  const bool alone = shape.one_device();
  if (shape.nodes > 1) return {"full_finetune_distributed", of + "_full_multinode"};
  if (uses_qlora(args) || uses_lora(args)) {
    const std::string_view kind = uses_qlora(args) ? "_qlora" : "_lora";
    return {alone ? "lora_finetune_single_device" : "lora_finetune_distributed",
            fmt::format("{}{}{}", of, kind, alone ? "_single_device" : "")};
  }
  return alone ? Recipe{"full_finetune_single_device", of + "_full_single_device"}
               : Recipe{"full_finetune_distributed", of + "_full"};
}

const json::value* trainer_container(const json::value& runtime) {
  for (const json::value& part : parts(runtime)) {
    if (step_of(part) != kTrainerStep) continue;
    for (const json::value& container : containers(part)) {
      if (json::get_string(container, {"name"}) == kNode) return &container;
    }
  }
  return nullptr;
}

bool is_fixed(std::string_view argument) {
  return std::ranges::count(kFixedConfigs, argument.substr(0, argument.find('='))) > 0;
}

void check_qlora(const json::value& job, const Shape& shape, std::vector<Cause>& out) {
  const std::string of = model(job);
  const std::string config = recipe(job, shape).config;
  if (!config.contains("_qlora")) return;
  if (of == "qwen2_5/1.5B") {
    out.push_back(invalid("spec.runtimeRef.name",
                          json::string(json::get_string(job, {"spec", "runtimeRef", "name"})),
                          fmt::format("QLoRA is not supported for {} model", of)));
  }
  if (shape.one_device() || (of != "llama3_2/1B" && of != "llama3_2/3B")) return;
  const json::value asked = shape.processes ? json::value(*shape.processes) : json::value("auto");
  out.push_back(invalid("spec.trainer.numProcPerNode", asked,
                        fmt::format("must be auto or 1 for {} model when using QLoRA", of)));
  const json::value* resources = json::find(job, {"spec", "trainer", "resourcesPerNode"});
  out.push_back(invalid(
      "spec.trainer.resourcesPerNode", resources == nullptr ? json::value() : *resources,
      fmt::format("must have gpu resource with value 1 for {} model when using QLoRA", of)));
}

}  // namespace

bool runs_torchtune(const json::value& trainjob, const json::value& runtime) {
  const json::value* command = json::find(trainjob, {"spec", "trainer", "command"});
  return framework_of(runtime) == "torch" && command != nullptr &&
         *command == json::value(json::array{"tune", "run"});
}

json::array torchtune_command(const json::value& runtime, const json::value& trainjob,
                              const Placement& placement, const json::value& resources) {
  const Shape shape{.nodes = placement.nodes,
                    .processes = whole_number(processes_of(runtime, trainjob, resources)),
                    .gpus = gpus_of(resources)};
  json::array out{"tune", "run"};
  if (shape.nodes > 1 || shape.processes.value_or(shape.gpus) > 1) {
    out.push_back(json::string(fmt::format("--rdzv_endpoint={}:{}", first_node(placement), kPort)));
  }
  const Recipe chosen = recipe(trainjob, shape);
  for (const std::string& word : {chosen.name, std::string("--config"), chosen.config}) {
    out.push_back(json::string(word));
  }
  if (const json::value* node = trainer_container(runtime)) {
    for (const std::string& word : json::strings(json::get_array(*node, {"command"}))) {
      if (is_fixed(word)) out.push_back(json::string(word));
    }
  }
  return out;
}

void check_torchtune(const json::value& trainjob, const json::value& runtime,
                     std::vector<Cause>& out) {
  if (!runs_torchtune(trainjob, runtime)) return;
  const std::string of = model(trainjob);
  const json::value* given = json::find(trainjob, {"spec", "trainer", "resourcesPerNode"});
  if (const json::value* node = trainer_container(runtime); given == nullptr && node) {
    given = json::find(*node, {"resources"});
  }
  const json::value resources = given == nullptr ? json::value() : *given;
  const Shape shape{.nodes = json::get_int(trainjob, {"spec", "trainer", "numNodes"}).value_or(1),
                    .processes = asked_processes(trainjob, resources),
                    .gpus = gpus_of(resources)};
  if (std::ranges::count(kModels, of) == 0) {
    out.push_back(invalid(
        "spec.runtimeRef.name",
        json::string(json::get_string(trainjob, {"spec", "runtimeRef", "name"})),
        fmt::format("must have a supported pretrained model, invalid model configured: {}", of)));
  }
  if (shape.nodes > 1 && of != kLargest) {
    out.push_back(
        invalid("spec.trainer.numNodes", shape.nodes, fmt::format("must be 1 for {} model", of)));
  }
  check_qlora(trainjob, shape, out);
  const std::vector<std::string> args = arguments(trainjob);
  if (shape.nodes > 1 && (uses_lora(args) || uses_qlora(args))) {
    out.push_back(invalid("spec.trainer.numNodes", shape.nodes,
                          "LoRA fine-tuning is not supported for multi-node training in "
                          "TorchTune"));
  }
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (!is_fixed(args[i])) continue;
    const std::string key = args[i].substr(0, args[i].find('='));
    out.push_back(invalid(child("spec.trainer.args", i), json::string(args[i]),
                          fmt::format("must not set immutable config \"{}\" in trainer args; it is "
                                      "managed by the runtime",
                                      key)));
  }
}

}  // namespace skiff::trainer
