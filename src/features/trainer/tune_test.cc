#include "features/trainer/tune.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "features/trainer/jobset_of.h"
#include "features/trainer/overrides.h"
#include "features/trainer/testing/objects.h"
#include "features/trainer/trainjob.h"

namespace skiff::trainer {
namespace {

using testing::must_parse;

// As upstream's runtimes for torchtune have it.
json::value tune_runtime(std::string_view resources = R"({})") {
  json::value out = testing::runtime(R"({"numNodes": 1, "torch": {}})");
  json::value& node = json::make_object(out, {"spec", "template", "spec"})["replicatedJobs"]
                          .as_array()
                          .at(0)
                          .at("template")
                          .at("spec")
                          .at("template")
                          .at("spec")
                          .at("containers")
                          .as_array()
                          .at(0);
  json::set(node, {"command"}, must_parse(R"(["tune", "run", "--rdzv_endpoint=localhost:29500",
      "full_finetune_distributed", "--config", "llama3_2/1B_full",
      "dataset=torchtune.datasets.instruct_dataset", "output_dir=/workspace/output",
      "tokenizer.path=/workspace/model/original/tokenizer.model",
      "checkpointer.checkpoint_dir=/workspace/model"])"));
  json::set(node, {"resources"}, must_parse(resources));
  return out;
}

json::value tuned_job(std::string_view runtime, std::string_view more = "{}") {
  json::value out = testing::trainjob();
  json::set(out, {"spec", "runtimeRef", "name"}, json::string(runtime));
  json::set(out, {"spec", "trainer"}, must_parse(more));
  json::set(out, {"spec", "trainer", "command"}, json::array{"tune", "run"});
  return out;
}

const json::value& node_spec(const json::value& jobset) {
  return json::get_array(json::get_array(jobset, {"spec", "replicatedJobs"}).at(0),
                         {"template", "spec", "template", "spec", "containers"})
      .at(0);
}

std::string command(const json::value& job, const json::value& runtime) {
  return fmt::format(
      "{}",
      fmt::join(json::strings(json::get_array(node_spec(jobset_of(job, runtime)), {"command"})),
                " "));
}

constexpr std::string_view kPlaces =
    " output_dir=/workspace/output tokenizer.path=/workspace/model/original/tokenizer.model"
    " checkpointer.checkpoint_dir=/workspace/model";
constexpr std::string_view kMeet = "--rdzv_endpoint=mnist-node-0-0.mnist:29500 ";

struct Case {
  const char* name;
  const char* runtime;
  const char* trainer;
  bool meets;
  const char* recipe;
};

struct TuneCommand : ::testing::TestWithParam<Case> {};

TEST_P(TuneCommand, is_that_of_upstream) {
  EXPECT_EQ(
      command(tuned_job(GetParam().runtime, GetParam().trainer), tune_runtime()),
      fmt::format("tune run {}{}{}", GetParam().meets ? kMeet : "", GetParam().recipe, kPlaces));
}

INSTANTIATE_TEST_SUITE_P(
    All, TuneCommand,
    ::testing::Values(
        Case{"several_devices", "torchtune-llama3.2-1b",
             R"({"resourcesPerNode": {"limits": {"nvidia.com/gpu": 2}}})", true,
             "full_finetune_distributed --config llama3_2/1B_full"},
        Case{"as_many_processes", "torchtune-llama3.2-3b", R"({"numProcPerNode": 4})", true,
             "full_finetune_distributed --config llama3_2/3B_full"},
        Case{"one_device", "torchtune-qwen2.5-1.5b",
             R"({"resourcesPerNode": {"limits": {"nvidia.com/gpu": 1}}})", false,
             "full_finetune_single_device --config qwen2_5/1.5B_full_single_device"},
        Case{"no_device", "torchtune-llama3.2-1b", R"({})", false,
             "full_finetune_single_device --config llama3_2/1B_full_single_device"},
        Case{"several_nodes", "torchtune-llama3.3-70b",
             R"({"numNodes": 2, "resourcesPerNode": {"limits": {"nvidia.com/gpu": 8}}})", true,
             "full_finetune_distributed --config llama3_3/70B_full_multinode"},
        Case{"lora_on_one", "torchtune-llama3.2-1b",
             R"({"numProcPerNode": 1, "args": ["model.lora_attn_modules=[q_proj]"]})", false,
             "lora_finetune_single_device --config llama3_2/1B_lora_single_device"},
        Case{"lora_on_several", "torchtune-llama3.2-1b",
             R"({"numProcPerNode": 2, "args": ["model.lora_attn_modules=[q_proj]"]})", true,
             "lora_finetune_distributed --config llama3_2/1B_lora"},
        Case{"qlora_on_one", "torchtune-llama3.2-1b",
             R"({"numProcPerNode": 1, "args": ["model.lora_attn_modules=[q_proj]",
                                               "model.quantize_base=True"]})",
             false, "lora_finetune_single_device --config llama3_2/1B_qlora_single_device"},
        Case{"qlora_on_several", "torchtune-llama3.3-70b",
             R"({"numProcPerNode": 2, "args": ["model.quantize_base=True"]})", true,
             "lora_finetune_distributed --config llama3_3/70B_qlora"},
        Case{"dora_is_no_qlora", "torchtune-llama3.2-1b",
             R"({"numProcPerNode": 1, "args": ["model.lora_attn_modules=[q_proj]",
                 "model.quantize_base=True", "model.use_dora=True"]})",
             false, "lora_finetune_single_device --config llama3_2/1B_lora_single_device"},
        Case{"not_quantized", "torchtune-llama3.2-1b",
             R"({"numProcPerNode": 1, "args": ["model.quantize_base=False"]})", false,
             "full_finetune_single_device --config llama3_2/1B_full_single_device"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(TuneJob, KeepsItsArgumentsAndMeetsByTheCommandAlone) {
  const json::value job =
      tuned_job("torchtune-llama3.2-1b", R"({"numProcPerNode": 2, "args": ["epochs=1"]})");
  const json::value jobset = jobset_of(job, tune_runtime());
  EXPECT_EQ(node_spec(jobset).at("args"), json::value(json::array{"epochs=1"}));
  std::vector<std::string> names;
  for (const json::value& entry : json::get_array(node_spec(jobset), {"env"})) {
    names.emplace_back(json::get_string(entry, {"name"}));
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"LOG", "PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK"}));
}

TEST(TuneJob, IsOneWithThatVeryCommandUnderATorchRuntime) {
  json::value job = tuned_job("torchtune-llama3.2-1b");
  EXPECT_TRUE(runs_torchtune(job, tune_runtime()));
  EXPECT_FALSE(runs_torchtune(job, testing::runtime(R"({"jax": {}})")));
  json::set(job, {"spec", "trainer", "command"}, json::array{"tune", "run", "my_recipe"});
  EXPECT_FALSE(runs_torchtune(job, tune_runtime()));
  EXPECT_EQ(command(job, tune_runtime()), "tune run my_recipe");
}

TEST(TuneJob, WithoutAGpuOfItsOwnHasThoseOfTheRuntime) {
  EXPECT_EQ(command(tuned_job("torchtune-llama3.2-1b"),
                    tune_runtime(R"({"limits": {"nvidia.com/gpu": 2}})")),
            fmt::format("tune run {}full_finetune_distributed --config llama3_2/1B_full{}", kMeet,
                        kPlaces));
}

struct TuneMisfitCase {
  const char* name;
  const char* runtime;
  const char* trainer;
  std::vector<std::string> said;
};

struct TuneMisfit : ::testing::TestWithParam<TuneMisfitCase> {};

TEST_P(TuneMisfit, is_said_as_upstream_says_it) {
  std::vector<Cause> causes;
  check_torchtune(tuned_job(GetParam().runtime, GetParam().trainer), tune_runtime(), causes);
  std::vector<std::string> said;
  for (const Cause& cause : causes) {
    said.push_back(fmt::format("{}: {}", cause.field, cause.message));
  }
  EXPECT_EQ(said, GetParam().said);
}

INSTANTIATE_TEST_SUITE_P(
    All, TuneMisfit,
    ::testing::Values(
        TuneMisfitCase{"good", "torchtune-llama3.2-1b", R"({})", {}},
        TuneMisfitCase{
            "unknown_model",
            "torchtune-llama3.1-70b",
            R"({})",
            {"spec.runtimeRef.name: Invalid value: \"torchtune-llama3.1-70b\": must have a "
             "supported pretrained model, invalid model configured: llama3_1/70B"}},
        TuneMisfitCase{
            "nodes",
            "torchtune-llama3.2-3b",
            R"({"numNodes": 2})",
            {"spec.trainer.numNodes: Invalid value: 2: must be 1 for llama3_2/3B model"}},
        TuneMisfitCase{
            "qlora_of_qwen",
            "torchtune-qwen2.5-1.5b",
            R"({"numProcPerNode": 1, "args": ["model.quantize_base=True"]})",
            {"spec.runtimeRef.name: Invalid value: \"torchtune-qwen2.5-1.5b\": QLoRA is not "
             "supported for qwen2_5/1.5B model"}},
        TuneMisfitCase{
            "qlora_on_several",
            "torchtune-llama3.2-1b",
            R"({"numProcPerNode": 2, "args": ["model.quantize_base=True"]})",
            {"spec.trainer.numProcPerNode: Invalid value: 2: must be auto or 1 for llama3_2/1B "
             "model when using QLoRA",
             "spec.trainer.resourcesPerNode: Invalid value: null: must have gpu resource with "
             "value 1 for llama3_2/1B model when using QLoRA"}},
        TuneMisfitCase{"qlora_on_one_by_text",
                       "torchtune-llama3.2-1b",
                       R"({"numProcPerNode": "1", "args": ["model.quantize_base=True"]})",
                       {}},
        TuneMisfitCase{
            "lora_on_nodes",
            "torchtune-llama3.3-70b",
            R"({"numNodes": 2, "args": ["model.lora_attn_modules=[q_proj]"]})",
            {"spec.trainer.numNodes: Invalid value: 2: LoRA fine-tuning is not supported for "
             "multi-node training in TorchTune"}},
        TuneMisfitCase{
            "places",
            "torchtune-llama3.2-1b",
            R"({"args": ["epochs=1", "output_dir=/tmp"]})",
            {"spec.trainer.args[1]: Invalid value: \"output_dir=/tmp\": must not set immutable "
             "config \"output_dir\" in trainer args; it is managed by the runtime"}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Overrides, NameWhatTheRuntimeHas) {
  const auto said = [](std::string_view form, std::string_view override) {
    json::value job = testing::trainjob();
    json::set(job, {"spec", form}, json::array{must_parse(override)});
    std::vector<Cause> causes;
    check_overrides(job, nullptr, causes);
    EXPECT_TRUE(causes.empty()) << causes[0].field;
    check_override_targets(job, testing::runtime(), causes);
    EXPECT_LE(causes.size(), 1u);
    if (causes.empty()) return std::string();
    EXPECT_EQ(causes[0].field, fmt::format("spec.{}", form));
    return causes[0].message.substr(causes[0].message.rfind("must"));
  };
  EXPECT_EQ(said("podSpecOverrides", R"({"targetJobs": [{"name": "node"}],
      "containers": [{"name": "side", "env": [{"name": "A"}]}]})"),
            "");
  EXPECT_EQ(said("podTemplateOverrides", R"({"targetJobs": [{"name": "launcher"}]})"),
            "must not have targetJob that doesn't exist in the runtime job template");
  EXPECT_EQ(said("podTemplateOverrides", R"({"targetJobs": [{"name": "node"}],
      "spec": {"containers": [{"name": "other"}]}})"),
            "must not have container that doesn't exist in the runtime job node");
  EXPECT_EQ(said("podSpecOverrides", R"({"targetJobs": [{"name": "node"}],
      "initContainers": [{"name": "side"}]})"),
            "must not have initContainer that doesn't exist in the runtime job node");
  EXPECT_EQ(said("podTemplateOverrides", R"({"targetJobs": [{"name": "node"}],
      "spec": {"containers": [{"name": "node", "env": [{"name": "A"}]}]}})"),
            "must not have envs for the dataset-initializer, model-initializer, node containers");
}

}  // namespace
}  // namespace skiff::trainer
