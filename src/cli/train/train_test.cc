// What `skiff train` makes of its options, guesses from a script, copies, and shows of progress.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "api/meta.h"
#include "cli/follow.h"
#include "cli/progress_text.h"
#include "cli/screen.h"
#include "cli/train/code.h"
#include "cli/train/framework.h"
#include "cli/train/manifest.h"

namespace skiff::cli {
namespace {

namespace fs = std::filesystem;

TrainOptions options(std::string framework, int workers) {
  return {.name = "t",
          .ns = "d",
          .framework = std::move(framework),
          .script = "/w/s.py",
          .working_dir = "/w",
          .workers = workers};
}

std::string roles(const json::value& job, std::string_view field) {
  std::string out;
  for (const auto& [role, spec] : json::get_object(job, {"spec", field})) {
    out += fmt::format("{}{}:{}", out.empty() ? "" : " ", std::string_view(role),
                       json::get_int(spec, {"replicas"}).value_or(-1));
  }
  return out;
}

TEST(TrainManifest, EveryKindHasItsRoles) {
  const struct {
    std::string framework, kind, field, container;
    int workers, ps;
    std::string roles;
  } cases[] = {
      {"tensorflow", "TFJob", "tfReplicaSpecs", "tensorflow", 3, 2, "PS:2 Worker:3"},
      {"pytorch", "PyTorchJob", "pytorchReplicaSpecs", "pytorch", 3, 0, "Master:1 Worker:2"},
      {"xgboost", "XGBoostJob", "xgbReplicaSpecs", "xgboost", 1, 0, "Master:1"},
      {"jax", "JAXJob", "jaxReplicaSpecs", "jax", 2, 0, "Worker:2"},
      {"paddle", "PaddleJob", "paddleReplicaSpecs", "paddle", 2, 1, "Master:1 Worker:2"},
  };
  for (const auto& c : cases) {
    TrainOptions train = options(c.framework, c.workers);
    train.ps = c.ps;
    const auto job = train_manifest(train);
    ASSERT_TRUE(job) << c.framework;
    EXPECT_EQ(api::kind(*job), c.kind);
    EXPECT_EQ(roles(*job, c.field), c.roles) << c.framework;
    const json::object& first = json::get_object(*job, {"spec", c.field});
    const json::value& role = first.begin()->value();
    const json::value& container = json::get_array(role, {"template", "spec", "containers"}).at(0);
    EXPECT_EQ(json::get_string(container, {"name"}), c.container);
    EXPECT_EQ(json::strings(json::get_array(container, {"command"})),
              (std::vector<std::string>{"python3", "/w/s.py"}));
  }
}

TEST(TrainManifest, SeveralProcessesInAPodAreTorchruns) {
  TrainOptions train = options("pytorch", 2);
  train.nproc = 4;
  const auto job = train_manifest(train);
  ASSERT_TRUE(job);
  EXPECT_EQ(json::get_string(*job, {"spec", "nprocPerNode"}), "4");
  const json::value& container = json::get_array(*job, {"spec", "pytorchReplicaSpecs", "Worker",
                                                        "template", "spec", "containers"})
                                     .at(0);
  EXPECT_EQ(json::strings(json::get_array(container, {"command"})),
            (std::vector<std::string>{"python3", "-m", "torch.distributed.run", "/w/s.py"}));
}

TEST(TrainManifest, AnMpiJobIsStartedByItsLauncher) {
  TrainOptions train = options("mpi", 2);
  train.nproc = 4;
  const auto job = train_manifest(train);
  ASSERT_TRUE(job);
  EXPECT_EQ(api::api_version(*job), "kubeflow.org/v2beta1");
  EXPECT_EQ(roles(*job, "mpiReplicaSpecs"), "Launcher:1 Worker:2");
  EXPECT_EQ(json::get_int(*job, {"spec", "slotsPerWorker"}), 4);
  const auto container = [&](std::string_view role) {
    return json::get_array(*job,
                           {"spec", "mpiReplicaSpecs", role, "template", "spec", "containers"})
        .at(0);
  };
  EXPECT_EQ(json::strings(json::get_array(container("Launcher"), {"command"})),
            (std::vector<std::string>{"mpirun", "-np", "8", "python3", "/w/s.py"}));
  EXPECT_EQ(json::find(container("Worker"), {"command"}), nullptr);
}

TEST(TrainManifest, TheFoldersOfTheUserAreMountedAndSkiffsDataIsNot) {
  const auto mounted = [](std::string script, std::string working_dir, std::string data) {
    TrainOptions train = options("jax", 1);
    train.script = std::move(script);
    train.working_dir = std::move(working_dir);
    train.data = std::move(data);
    const json::value job = train_manifest(train).value();
    std::string out;
    for (const json::value& volume : json::get_array(
             job, {"spec", "jaxReplicaSpecs", "Worker", "template", "spec", "volumes"})) {
      out += std::string(json::get_string(volume, {"hostPath", "path"})) + " ";
    }
    return out;
  };
  EXPECT_EQ(mounted("/home/me/s.py", "/home/me", "/home/me/.skiff"), "/home/me ");
  EXPECT_EQ(mounted("/code/s.py", "/home/me/runs", "/home/me/.skiff"), "/home/me/runs /code ");
  EXPECT_EQ(mounted("/tmp/s.py", "/", "/home/me/.skiff"), "/tmp ");
  EXPECT_EQ(mounted("/home/me/.skiff/s.py", "/w", "/home/me/.skiff"), "/w ");
}

TEST(TrainManifest, ACopyIsMountedAndTheFoldersAreNot) {
  TrainOptions train = options("jax", 1);
  train.script = "s.py";
  train.code = {{.name = "t-code-x", .items = {{"f0", "s.py"}, {"f1", "lib/a.py"}}}};
  train.claims = {"models:/models"};
  train.datasets = {"/data/images"};
  const auto job = train_manifest(train);
  ASSERT_TRUE(job);
  const json::value* pod =
      json::find(*job, {"spec", "jaxReplicaSpecs", "Worker", "template", "spec"});
  EXPECT_EQ(json::serialize(*json::find(*pod, {"volumes"})),
            R"([{"name":"code","projected":{"sources":[{"configMap":{"name":"t-code-x","items":)"
            R"([{"key":"f0","path":"s.py"},{"key":"f1","path":"lib/a.py"}]}}]}},)"
            R"({"name":"dataset-1","hostPath":{"path":"/data/images"}},)"
            R"({"name":"claim-2","persistentVolumeClaim":{"claimName":"models"}}])");
  const json::value& container = json::get_array(*pod, {"containers"}).at(0);
  EXPECT_EQ(json::serialize(*json::find(container, {"volumeMounts"})),
            R"([{"name":"code","mountPath":"/skiff/code","readOnly":true},)"
            R"({"name":"dataset-1","mountPath":"/data/images","readOnly":true},)"
            R"({"name":"claim-2","mountPath":"/models"}])");
  EXPECT_EQ(json::get_string(container, {"workingDir"}), "/skiff/code");
  EXPECT_EQ(json::strings(json::get_array(container, {"command"})).back(), "/skiff/code/s.py");
}

TEST(TrainManifest, WhatCannotBeIsSaidInASentence) {
  const auto error = [](TrainOptions train) {
    const auto made = train_manifest(train);
    return made ? "none" : made.error().message;
  };
  TrainOptions servers = options("jax", 2), processes = options("xgboost", 2),
               claim = options("jax", 1);
  servers.ps = 1;
  processes.nproc = 2;
  claim.claims = {"models"};
  EXPECT_EQ(error(servers), "--ps: jax has no parameter servers, leave it out");
  EXPECT_EQ(error(processes),
            "--nproc: xgboost has one process in each pod; ask for more --workers");
  EXPECT_EQ(error(claim), "--claim models: write NAME:/path");
  EXPECT_EQ(error(options("caffe", 1)),
            "--framework caffe: write tensorflow, pytorch, xgboost, jax, paddle or mpi");
}

TEST(TrainGuess, ByTheFirstFrameworkAScriptImports) {
  const struct {
    std::string_view script, guess;
  } cases[] = {
      {"import torch\n", "pytorch torch"},
      {"import os, sys, torch.nn as nn\n", "pytorch torch"},
      {"  from tensorflow.keras import layers\n", "tensorflow tensorflow"},
      {"import numpy as np\nimport jax.numpy as jnp\nimport torch\n", "jax jax"},
      {"from xgboost import DMatrix", "xgboost xgboost"},
      {"import paddle;\r\n", "paddle paddle"},
      {"import torch\nimport horovod.torch as hvd\n", "mpi horovod"},
      {"from mpi4py import MPI\n", "mpi mpi4py"},
      {"import torchvision\n", "none"},
      {"# import torch\nx = 'import jax'\n", "none"},
      {"from . import torch\n", "none"},
      {"", "none"},
  };
  for (const auto& c : cases) {
    const auto guess = guess_framework(c.script);
    EXPECT_EQ(guess ? fmt::format("{} {}", guess->framework->name, guess->module) : "none", c.guess)
        << c.script;
  }
}

TEST(TrainCode, FillsOneMapAfterTheOther) {
  const std::string half(kCodeMapBytes / 2 - 1000, 'x');
  const auto maps =
      pack_code({{"a.py", half}, {"lib/b.py", half}, {"c.py", "print()\n"}, {"d.bin", half}});
  ASSERT_TRUE(maps);
  ASSERT_EQ(maps->size(), 2u);
  EXPECT_EQ((*maps)[0].items, (std::vector<std::pair<std::string, std::string>>{
                                  {"f0", "a.py"}, {"f1", "lib/b.py"}, {"f2", "c.py"}}));
  EXPECT_EQ((*maps)[0].binary_data.at("f2"), "cHJpbnQoKQo=");
  EXPECT_EQ((*maps)[1].items.at(0).second, "d.bin");
}

TEST(TrainCode, WhatIsTooMuchIsSaidWithARemedy) {
  const auto one = pack_code({{"data.bin", std::string(kCodeMapBytes + 1, 'x')}});
  ASSERT_FALSE(one);
  EXPECT_TRUE(one.error().message.starts_with("data.bin has 1.0 MiB: a copy of the code may have"))
      << one.error().message;
  EXPECT_TRUE(one.error().message.contains("--claim"));
  EXPECT_FALSE(pack_code(std::vector<CodeFile>(kCodeFiles + 1)));
  const CodeFile large{.path = "a", .bytes = std::string(kCodeMapBytes - 1000, 'x')};
  EXPECT_TRUE(pack_code(std::vector<CodeFile>(kCodeMaps, large)));
  EXPECT_FALSE(pack_code(std::vector<CodeFile>(kCodeMaps + 1, large)));
}

class TrainFolder : public ::testing::Test {
 protected:
  TrainFolder() {
    char pattern[] = "/tmp/skiff-train-folder-XXXXXX";
    top_ = ::mkdtemp(pattern);
    fs::create_directories(top_ / "code/lib");
    write("code/a.py", "print()");
    write("code/lib/b.py", "b");
    write("code/.hidden", "h");
    write("secret", "s");
  }
  ~TrainFolder() override {
    std::error_code error;
    fs::remove_all(top_, error);
  }
  void write(const std::string& path, std::string_view text) { std::ofstream(top_ / path) << text; }
  // path=bytes of each file, sorted, then what was left out.
  std::string read() {
    const auto code = read_code((top_ / "code").native());
    if (!code) return "error: " + code.error().message;
    std::set<std::string> files, links(code->left_out.begin(), code->left_out.end());
    for (const CodeFile& file : code->files) files.insert(file.path + "=" + file.bytes);
    return fmt::format("{} without {}", fmt::join(files, " "), fmt::join(links, " "));
  }

  fs::path top_;
};

TEST_F(TrainFolder, IsReadWithoutWhatIsHidden) {
  EXPECT_EQ(read(), "a.py=print() lib/b.py=b without ");
}

TEST_F(TrainFolder, LinksAreFollowedInsideOnly) {
  fs::create_symlink("lib/b.py", top_ / "code/near.py");
  fs::create_symlink("../secret", top_ / "code/far.txt");
  fs::create_symlink(top_ / "secret", top_ / "code/lib/far.txt");
  fs::create_symlink("nowhere", top_ / "code/broken");
  fs::create_symlink("..", top_ / "code/up");
  EXPECT_EQ(read(), "a.py=print() lib/b.py=b near.py=b without broken far.txt lib/far.txt up");
}

TEST_F(TrainFolder, AFileThatIsTooLargeIsNotRead) {
  write("code/huge.bin", "");
  fs::resize_file(top_ / "code/huge.bin", std::uintmax_t(1) << 40);  // a hole: no disk holds it
  EXPECT_TRUE(read().starts_with("error: huge.bin has 1048576.0 MiB: a copy of")) << read();
}

TEST_F(TrainFolder, ManyFilesThatAreTooMuchTogetherAreNotReadToTheEnd) {
  for (int i = 0; i <= static_cast<int>(kCodeMaps); ++i) {
    const std::string name = fmt::format("code/{}.bin", i);
    write(name, "");
    fs::resize_file(top_ / name, kCodeMapBytes);
  }
  EXPECT_TRUE(read().contains("MiB already: a copy of the code may have")) << read();
}

TEST_F(TrainFolder, WhatIsNotThereIsSaid) {
  const auto none = read_code((top_ / "none").native());
  ASSERT_FALSE(none);
  EXPECT_TRUE(none.error().message.contains("none: ")) << none.error().message;
}

TEST(LastDrawn, IsWhatATerminalShowsInTheEnd) {
  const struct {
    std::string_view line, shown;
  } cases[] = {
      {"", ""},
      {"plain", "plain"},
      {"windows\r", "windows"},
      {"0%\r50%\r100%", "100%"},
      {"0%\r50%\r", "50%"},
      {"\r10%", "10%"},
      {"\r\r", ""},
  };
  for (const auto& c : cases) EXPECT_EQ(last_drawn(c.line), c.shown) << c.line;
}

TEST(TrainCode, HiddenFilesAndLeftoversAreNotCode) {
  for (const char* name : {".git", ".env", "__pycache__", "a.pyc", "node_modules"}) {
    EXPECT_FALSE(belongs_to_code(name)) << name;
  }
  for (const char* name : {"a.py", "lib", "config.yaml", "data.csv"}) {
    EXPECT_TRUE(belongs_to_code(name)) << name;
  }
}

const Time kTrainNow = *parse_time("2026-11-15T12:00:00Z");

json::value job_at(std::string_view progress, bool over = false) {
  json::value job = {{"status", {{"progress", *json::parse(progress)}}}};
  if (over) json::set(job, {"status", "completionTime"}, "2026-11-15T12:00:00Z");
  return job;
}

TEST(ProgressText, SaysWhatIsKnown) {
  const struct {
    std::string_view progress, text;
  } cases[] = {
      {"{}", ""},
      {R"({"step":5})", "step 5"},
      {R"({"step":120,"totalSteps":1000,"percent":12,"metrics":{"loss":"0.31"},)"
       R"("estimatedCompletionTime":"2026-11-15T12:03:20Z"})",
       "step 120/1000 (12 %), loss 0.31, about 3m20s left"},
      {R"({"step":5,"metrics":{"a\u001b[2J":"1\n2","b\u009b":"3"}})", "step 5, a?[2J 1 2, b? 3"},
      {R"({"epoch":2,"totalEpochs":10,"step":5,"totalSteps":9,"percent":15})",
       "epoch 2/10, step 5/9 (15 %)"},
      {R"({"step":1,"percent":1,"estimatedCompletionTime":"2026-11-15T11:00:00Z"})",
       "step 1 (1 %), nearly done"},
      {R"({"step":9,"percent":100,"estimatedCompletionTime":"2026-11-15T12:00:00Z"})",
       "step 9 (100 %)"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(progress_text(job_at(c.progress), kTrainNow), c.text) << c.progress;
  }
  EXPECT_EQ(progress_text(job_at(cases[5].progress, true), kTrainNow), "step 1 (1 %)");
  EXPECT_EQ(progress_text(json::object{}, kTrainNow), "");
}

TEST(ProgressText, SaysWhatATrainJobTells) {
  const auto text = [](std::string_view told, std::string_view condition = "Suspended") {
    json::value job{{"status",
                     {{"trainerStatus", *json::parse(told)},
                      {"conditions", json::array{json::object{{"type", json::string(condition)},
                                                              {"status", "True"}}}}}}};
    return progress_text(job, kTrainNow);
  };
  EXPECT_EQ(text(R"({"progressPercentage": 42})"), "42 %");
  EXPECT_EQ(text(R"({"progressPercentage": 25, "metrics": [{"name": "step", "value": "5"},
      {"name": "totalSteps", "value": "20"}, {"name": "loss", "value": "0.5"}]})"),
            "step 5/20 (25 %), loss 0.5");
  EXPECT_EQ(text(R"({"metrics": [{"name": "step", "value": "many"}]})"), "step many");
  const std::string late = R"({"progressPercentage": 42, "estimatedRemainingSeconds": 0,
      "lastUpdatedTime": "1970-01-01T00:00:00Z"})";
  EXPECT_EQ(text(late), "42 %, nearly done");
  EXPECT_EQ(text(late, "Complete"), "42 %");
  EXPECT_EQ(text("{}"), "");
}

TEST(ProgressText, ABarFitsItsLine) {
  const auto job = job_at(R"({"step":50,"totalSteps":100,"percent":50})");
  EXPECT_EQ(progress_bar(job, kTrainNow, 80), "[##########----------] step 50/100 (50 %)");
  EXPECT_EQ(progress_bar(job, kTrainNow, 10), "[#########");
  EXPECT_EQ(progress_bar(job_at(R"({"step":5})"), kTrainNow, 80), "step 5");
  EXPECT_EQ(progress_bar(json::object{}, kTrainNow, 80), "");
}

TEST(ProgressText, PlainLinesComeNowAndThen) {
  ProgressLines lines;
  const auto at = [](int percent, int second) {
    return job_at(
        fmt::format(R"({{"step":1,"percent":{},"lastUpdateTime":"2026-11-15T12:00:{:02}Z"}})",
                    percent, second));
  };
  EXPECT_FALSE(lines.due(json::object{}, kTrainNow));
  EXPECT_TRUE(lines.due(at(1, 1), kTrainNow)) << "the first";
  EXPECT_FALSE(lines.due(at(5, 2), kTrainNow + std::chrono::seconds(10)));
  EXPECT_TRUE(lines.due(at(10, 3), kTrainNow + std::chrono::seconds(11))) << "a tenth";
  EXPECT_FALSE(lines.due(at(10, 3), kTrainNow + std::chrono::hours(1))) << "nothing is new";
  EXPECT_TRUE(lines.due(at(11, 4), kTrainNow + std::chrono::seconds(71))) << "a minute";
}

std::string drawn(bool live, const std::function<void(Screen&)>& draw) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* file = ::open_memstream(&text, &size);
  {
    Screen screen(file, live);
    draw(screen);
  }
  std::fclose(file);
  std::string out(text, size);
  std::free(text);
  return out;
}

TEST(Screen, LinesScrollAboveTheOneThatStays) {
  const auto draw = [](Screen& screen) {
    screen.line("a");
    screen.status("10 %");
    screen.status("10 %");
    screen.line("b");
    screen.status("20 %");
  };
  EXPECT_EQ(drawn(true, draw), "a\n10 %\r\033[Kb\n10 %\r\033[K20 %\r\033[K");
  EXPECT_EQ(drawn(false, draw), "a\nb\n");
}

}  // namespace
}  // namespace skiff::cli
